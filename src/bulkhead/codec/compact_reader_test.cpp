// The short way and the strict way must never disagree: what the short way takes, the strict way takes too, and gets
// the same out of it.
#include "bulkhead/codec/compact_reader.hpp"

#include <gtest/gtest.h>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/model/snapshot.hpp"

namespace bulkhead {
namespace {

constexpr std::array<std::string_view, 2> header{"apiVersion", "kind"};

template <class T>
std::optional<T> the_short_way(std::string_view text, const Limits& limits = {}) {
    T value;
    if (!read_compact_into(text, shape_of<T>(), &value, header, limits)) return std::nullopt;
    return value;
}

template <class T>
std::optional<T> the_strict_way(std::string_view text, const Limits& limits = {}) {
    T value;
    if (!read_strictly_into("t", text, shape_of<T>(), &value, header, limits)) return std::nullopt;
    return value;
}

GpuWorkload some_work() {
    GpuWorkload work;
    work.metadata = {.name = "w", .labels = {{"a", "b"}, {"c", "d"}}, .annotations = {{"quote", "\"\\\n\t/"}}};
    work.spec.tenant = "acme";
    work.spec.tasks = 12;
    work.spec.gpu.fraction = Gpus::of_thousandths(250);
    work.spec.gpu.models = {"h100", "b200"};
    work.spec.memory = ByteSize{10LL << 30};
    work.spec.preemptible = false;
    work.spec.duration = Duration::hours(3);
    work.status = GpuWorkloadStatus{.since = Instant{1'800'000'000'123}, .reasons = {"no room", "größer"}};
    return work;
}

GpuLease some_lease() {
    GpuLease lease;
    lease.metadata.name = "lease-0";
    lease.spec = {.tenant = "acme", .workload = "w", .mechanism = Mechanism::mig};
    lease.spec.slices = {{"n", 0, "1g.10gb", 2}, {"n", 1, "", 0, 500}};
    lease.status = GpuLeaseStatus{.gpus = Gpus::of_thousandths(1500), .activeAt = Instant{1'800'000'000'000}};
    return lease;
}

TEST(CompactReader, takes_what_we_write) {
    EXPECT_EQ(the_short_way<GpuWorkload>(to_compact_json(some_work())), some_work());
    EXPECT_EQ(the_short_way<GpuLease>(to_compact_json(some_lease())), some_lease());
}

TEST(CompactReader, reads_gpus_that_are_no_decimal_and_those_that_older_rows_hold) {
    GpuLease lease = some_lease();
    lease.status->gpus = Gpus{gpu_unit * 8 / 7};
    const std::string text = to_compact_json(lease);
    EXPECT_NE(text.find(R"("gpus":"8/7")"), std::string::npos) << text;
    EXPECT_EQ(the_short_way<GpuLease>(text), lease);
    EXPECT_EQ(the_strict_way<GpuLease>(text), lease);
    // Before sevenths were exact, a lease of one was stored as 143 thousandths; in quotes it means the same.
    for (const std::string_view old : {"0.143", "\"0.143\""}) {
        const std::string row = std::string{text}.replace(text.find("\"8/7\""), 5, old);
        ASSERT_TRUE(the_short_way<GpuLease>(row)) << row;
        EXPECT_EQ(the_short_way<GpuLease>(row)->status->gpus, Gpus::of_thousandths(143));
        EXPECT_EQ(the_strict_way<GpuLease>(row)->status->gpus, Gpus::of_thousandths(143));
    }
}

TEST(CompactReader, gives_up_on_what_it_does_not_know_for_certain) {
    struct Row {
        std::string_view says, text;
    };
    for (const Row& row : {
             Row{"nothing", ""},
             Row{"another end", R"({"name":"a"}})"},
             Row{"no end", R"({"name":"a")"},
             Row{"a comma too many", R"({"name":"a",})"},
             Row{"a field that is not known", R"({"name":"a","nam":"b"})"},
             Row{"a field that is missing", R"({"generation":1})"},
             Row{"a field twice", R"({"name":"a","name":"a"})"},
             Row{"a header twice", R"({"kind":"a","kind":"a","name":"a"})"},
             Row{"a key of a dictionary twice", R"({"name":"a","labels":{"a":"b","a":"c"}})"},
             Row{"null", R"({"name":"a","generation":null})"},
             Row{"a name that is none", R"({"name":"A"})"},
             Row{"text without quotes", R"({"name":1})"},
             Row{"a number in quotes", R"({"name":"a","generation":"1"})"},
             Row{"a number out of range", R"({"name":"a","generation":-1})"},
             Row{"a number that is not whole", R"({"name":"a","generation":1.5})"},
             Row{"a number that begins with 0", R"({"name":"a","generation":01})"},
             Row{"a number of more than 64 bits", R"({"name":"a","generation":9223372036854775808})"},
             Row{"an escape that takes thought", R"({"name":"a","labels":{"a":"\u0041"}})"},
             Row{"a line break in a text", "{\"name\":\"a\",\"labels\":{\"a\":\"\n\"}}"},
             Row{"bytes that are no UTF-8", "{\"name\":\"a\",\"labels\":{\"a\":\"\xff\"}}"},
             Row{"blanks", R"({"name": "a"})"},
         })
        EXPECT_FALSE(the_short_way<Metadata>(row.text)) << row.says;
}

TEST(CompactReader, keeps_the_limits) {
    const std::string text = to_compact_json(some_work());
    EXPECT_TRUE(the_short_way<GpuWorkload>(text, {.depth = 4}));
    for (const Limits& limits :
         {Limits{.bytes = text.size() - 1}, Limits{.depth = 2}, Limits{.nodes = 10}, Limits{.scalar_bytes = 2}}) {
        EXPECT_FALSE(the_short_way<GpuWorkload>(text, limits));
        EXPECT_FALSE(the_strict_way<GpuWorkload>(text, limits));
    }
}

template <class T>
void expect_agreement(const std::string& text) {
    if (const auto read = the_short_way<T>(text)) {
        EXPECT_EQ(read, the_strict_way<T>(text)) << text;
    }
}

// Every byte replaced, left out and repeated; every member left out, and put in front of every other.
template <class T>
void expect_agreement_around(const T& value) {
    const std::string text = to_compact_json(value);
    for (std::size_t at = 0; at < text.size(); ++at) {
        for (const char c : std::string_view{"\"\\{}[]:,0159.-+eEntfu aZ\n\x01\x7f\xc3"}) {
            std::string other = text;
            other[at] = c;
            expect_agreement<T>(other);
            expect_agreement<T>(text.substr(0, at) + c + text.substr(at));
        }
        expect_agreement<T>(text.substr(0, at) + text.substr(at + 1));
        if (text[at] != ',') continue;
        const std::size_t end = std::min(text.find_first_of(",}]", at + 1), text.size());
        expect_agreement<T>(text.substr(0, at) + text.substr(end));
        for (std::size_t to = 0; to < text.size(); ++to)
            if (text[to] == ',') expect_agreement<T>(text.substr(0, to) + text.substr(at, end - at) + text.substr(to));
    }
}

TEST(CompactReader, never_disagrees_with_strict_reading) {
    expect_agreement_around(some_work());
    expect_agreement_around(some_lease());
}

}  // namespace
}  // namespace bulkhead

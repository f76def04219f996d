// Invariant 9: a tenant learns nothing of another beyond what its own waiting and placement imply. One tenant does the
// same things twice, once alone and once beside a busy neighbour, and everything it can obtain is compared byte by
// byte. Ids that are drawn at random are compared by where they appear and which of them are the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <regex>
#include <set>

#include "bulkhead/core/plane_test.hpp"
#include "bulkhead/evidence/pseudonym.hpp"
#include "bulkhead/evidence/record.hpp"
#include "bulkhead/shell/catalog.hpp"
#include "bulkhead/shell/watch.hpp"

namespace bulkhead::shell {
namespace {

using CorePlane = bulkhead::Plane;
using testing::HasSubstr;
using testing::Not;

const std::string manifest_head = "apiVersion: bulkhead.dev/v1alpha1\n";

std::string a_tenant(const std::string& name) {
    return manifest_head + "kind: Tenant\nmetadata: {name: " + name + "}\nspec: {class: batch}\n";
}
std::string some_work(const std::string& tenant, const std::string& name, const std::string& site, int gpus,
                      const std::string& more = {}) {
    return manifest_head + "kind: GpuWorkload\nmetadata: {name: " + name + "}\nspec: {tenant: " + tenant +
           ", gpu: {count: " + std::to_string(gpus) + "}, placement: {sites: [" + site + "]}" + more + "}\n";
}

// Opaque ids, numbered in the order in which they appear: 12 hex digits, as versions and lease names are made of, and
// what is signed over them.
std::string with_ids_numbered(const std::string& text) {
    static const std::regex id{"[0-9a-f]{12}(?![0-9a-f])|[0-9A-Za-z+/]{86}=="};
    std::map<std::string, std::string> numbers;
    std::string out;
    auto last = text.cbegin();
    for (std::sregex_iterator it{text.begin(), text.end(), id}, end; it != end; ++it) {
        const auto number = numbers.try_emplace(it->str(), "ID" + std::to_string(numbers.size())).first;
        out.append(last, text.cbegin() + it->position()).append(number->second);
        last = text.cbegin() + it->position() + it->length();
    }
    return out.append(last, text.cend());
}

// Everything that acme can obtain through any door, written down as it happens.
class Notebook {
public:
    explicit Notebook(CorePlane& plane) : plane_{plane} {
        const Grant grant{Role::tenant_admin, "acme"};
        rights_ = *Rights::of({&grant, 1});
        WatchQuery query{.kind = ObjectKind::workload, .tenant = "acme", .its_tenant = true};
        watch_ = watch_feed(catalog_, query);
        query.kind = ObjectKind::lease;
        leases_ = watch_feed(catalog_, query);
    }
    void write_down() {
        std::vector<Row> rows;
        for (const auto& [key, body] : plane_.rows) rows.push_back({key.first, key.second, body, false});
        ASSERT_TRUE(catalog_.replace(rows));
        for (const ObjectKind kind : every<ObjectKind>()) {
            const Catalog::Page page = catalog_.list(kind, {.tenant = "acme"});
            text_ += fmt::format("list {} at {}\n", word(kind), catalog_.print_point(page.number));
            for (const ObjectPtr& object : page.objects) text_ += object->read_by(true) + '\n';
        }
        text_ += *watch_->next() + *leases_->next();
        ask(command::Queue{});
        for (const char* name : {"steady", "burst", "nap", "theirs-0", "ghost"})
            ask(command::Explain{.workload = name});
        std::int64_t number = 0;
        // As the log's index takes them: by name, or by the pseudonym that wipes call a tenant by.
        for (const std::string& payload : plane_.log) {
            const auto record = evidence::read_record(payload);
            ASSERT_TRUE(record) << payload;
            if (record->tenant == "acme" || record->tenant == pseudonym_)
                text_ += fmt::format("{} {}\n", number++, payload);
        }
    }
    void ask(decltype(Command::what) what) {
        plane_.rights = rights_;
        const Answer answer = plane_.ask(std::move(what));
        plane_.rights = Rights::everything();
        text_ += "answer " + answer.body + answer.object + answer.version + '\n';
        if (!answer.outcome) text_ += answer.outcome.error().what + " / " + answer.outcome.error().remedy + '\n';
        for (const Finding& finding : answer.findings) text_ += finding.what + finding.remedy + '\n';
    }
    void submit(const std::string& yaml) {
        plane_.rights = rights_;
        const Answer answer = plane_.apply(yaml);
        plane_.rights = Rights::everything();
        text_ += "apply " + answer.body + '\n';
        if (!answer.outcome) text_ += answer.outcome.error().what + " / " + answer.outcome.error().remedy + '\n';
    }
    std::string text() const { return with_ids_numbered(text_); }
    std::map<std::string, std::string> objects() const {
        std::map<std::string, std::string> out;
        for (const ObjectKind kind : every<ObjectKind>())
            for (const ObjectPtr& object : catalog_.list(kind, {.tenant = "acme"}).objects)
                out[std::string{word(kind)} + '/' + (kind == ObjectKind::lease ? "lease" : object->name)] =
                    object->body;
        return out;
    }

private:
    CorePlane& plane_;
    const std::string pseudonym_ = evidence::pseudonym(evidence::opening_of("test", "acme"));
    Rights rights_;
    Catalog catalog_{1};
    std::shared_ptr<Feed> watch_, leases_;
    std::string text_;
};

const std::string on_the_fabric = ", network: {rdma: true}";

// A neighbour that is busy in every way a tenant can be.
void be_busy(CorePlane& plane, int round, const std::string& site) {
    const std::string name = "theirs-" + std::to_string(round);
    EXPECT_TRUE(plane.apply(some_work("beta", name, site, 1, on_the_fabric)).outcome);
    EXPECT_TRUE(plane.apply(some_work("beta", "steady", site, 1)).outcome) << "also under a name that acme uses";
    static_cast<void>(plane.apply(some_work("beta", "too-much", site, 64)));
    EXPECT_TRUE(plane.apply(a_tenant("beta-" + std::to_string(round))).outcome);
    plane.settle(2);
    if (round > 0) plane.remove(ObjectKind::workload, "theirs-" + std::to_string(round - 1));
    plane.ask(command::Freeze{.tenant = "beta", .on = true, .why = "drill"});
    plane.ask(command::Freeze{.tenant = "beta", .on = false, .why = "drill over"});
}

CorePlane& with_two_sites(CorePlane& plane) {
    EXPECT_TRUE(plane
                    .apply(manifest_head +
                           "kind: FleetPolicy\nmetadata: {name: fleet}\nspec:\n  threatModel: internal\n"
                           "  sites: [{name: fra, jurisdiction: eu}, {name: muc, jurisdiction: eu}]\n"
                           "  versionGate: {shippedAdvisories: false}\n"
                           "  fabric: {pool: 10.128.0.0/9, vlans: {first: 100, last: 3899}}\n")
                    .outcome);
    EXPECT_TRUE(plane.apply(manifest_head + "kind: GpuNode\nmetadata: {name: n1}\nspec: {site: muc}\n").outcome);
    EXPECT_TRUE(plane.apply(a_tenant("acme")).outcome);
    EXPECT_TRUE(plane.apply(a_tenant("beta")).outcome);
    plane.settle();
    return plane;
}

std::string story(bool neighbour) {
    CorePlane plane{2};
    with_two_sites(plane);
    Notebook notebook{plane};
    const auto meanwhile = [&](int round) {
        if (neighbour)
            be_busy(plane, round, "muc");
        else
            plane.settle(2);
        notebook.write_down();
    };
    notebook.write_down();
    notebook.submit(some_work("acme", "steady", "fra", 1, on_the_fabric));
    meanwhile(0);
    notebook.submit(some_work("acme", "burst", "fra", 2));
    meanwhile(1);
    notebook.submit(some_work("acme", "nap", "fra", 64));
    notebook.submit(some_work("acme", "theirs-0", "fra", 1));
    notebook.submit(some_work("beta", "steady", "fra", 1));
    notebook.ask(command::Delete{.kind = ObjectKind::workload, .name = "steady"});
    meanwhile(2);
    notebook.ask(command::Delete{.kind = ObjectKind::tenant, .name = "beta"});
    notebook.ask(command::Delete{.kind = ObjectKind::workload, .name = "burst"});
    meanwhile(3);
    return notebook.text();
}

TEST(Privacy, where_placements_are_equal_every_byte_is) {
    const std::string alone = story(false), beside = story(true);
    EXPECT_THAT(alone, HasSubstr("\"phase\":\"running\"")) << "the story has work that runs";
    EXPECT_THAT(alone, HasSubstr("lease-closed")) << "and ends";
    EXPECT_THAT(alone, HasSubstr("\"address\":\"10.")) << "and is somebody on the fabric";
    EXPECT_EQ(alone, beside);
}

// What a tenant may read differently because somebody else was first: its own state, and nothing else.
const std::set<std::string> own_state{
    "/status/phase",   "/status/reasons", "/status/since",    "/status/lease",   "/metadata/resourceVersion",
    "/status/history", "/spec/slices",    "/status/activeAt", "/status/boundAt", "/status/endedAt",
    "/metadata/name",  "/status/why",     "/spec/drives",     "/spec/functions",
};

void collect_differences(const boost::json::value& one, const boost::json::value& other, const std::string& path,
                         std::set<std::string>& out) {
    if (one == other) return;
    if (own_state.contains(path) || !one.is_object() || !other.is_object()) {
        out.insert(path);
        return;
    }
    std::set<std::string> keys;
    for (const auto& [key, value] : one.as_object()) keys.insert(key);
    for (const auto& [key, value] : other.as_object()) keys.insert(key);
    static const boost::json::value nothing;
    for (const std::string& key : keys) {
        const boost::json::value* left = one.as_object().if_contains(key);
        const boost::json::value* right = other.as_object().if_contains(key);
        collect_differences(left ? *left : nothing, right ? *right : nothing, path + "/" + key, out);
    }
}

TEST(Privacy, where_they_compete_only_a_tenants_own_state_differs) {
    std::map<std::string, std::string> seen[2];
    std::string texts[2];
    for (const bool neighbour : {false, true}) {
        CorePlane plane{2};
        with_two_sites(plane);
        Notebook notebook{plane};
        if (neighbour) {
            EXPECT_TRUE(plane.apply(some_work("beta", "zebra-job", "fra", 2, on_the_fabric)).outcome);
            plane.settle();
        }
        notebook.submit(some_work("acme", "steady", "fra", 2, on_the_fabric));
        notebook.submit(some_work("acme", "nap", "muc", 1, on_the_fabric));
        plane.settle();
        notebook.write_down();
        seen[neighbour ? 1 : 0] = notebook.objects();
        texts[neighbour ? 1 : 0] = notebook.text();
    }
    EXPECT_THAT(texts[0], HasSubstr("\"phase\":\"running\""));
    EXPECT_THAT(texts[1], HasSubstr("\"phase\":\"pending\"")) << "the neighbour is in the way";
    EXPECT_THAT(texts[0], HasSubstr("\"address\":\"10.")) << "there is somebody on the fabric";
    // Who it is there does not depend on who came first.
    const auto vlans_in = [](const std::string& text) {
        std::set<std::string> vlans;
        for (std::size_t at = text.find("\"vlan\":"); at != text.npos; at = text.find("\"vlan\":", at + 1))
            vlans.insert(text.substr(at, text.find_first_of(",}", at) - at));
        return vlans;
    };
    EXPECT_EQ(vlans_in(texts[0]).size(), 1u);
    EXPECT_EQ(vlans_in(texts[0]), vlans_in(texts[1]));
    for (const char* theirs : {"beta", "zebra"}) EXPECT_THAT(texts[1], Not(HasSubstr(theirs)));
    for (const auto& [name, body] : seen[0]) {
        if (name == "GpuLease/lease") continue;  // it waits, and has one fewer
        const auto other = seen[1].find(name);
        ASSERT_NE(other, seen[1].end()) << name;
        std::set<std::string> paths;
        collect_differences(boost::json::parse(body), boost::json::parse(other->second), "", paths);
        for (const std::string& path : paths) EXPECT_TRUE(own_state.contains(path)) << name << ' ' << path;
    }
}

// Two tenants that trust each other, on one host in turn: what is wiped was both of theirs, and each reads of its own.
TEST(Privacy, whoever_shared_a_host_is_not_named_by_its_wipe) {
    CorePlane plane{1};
    EXPECT_TRUE(plane
                    .apply(manifest_head +
                           "kind: FleetPolicy\nmetadata: {name: fleet}\nspec:\n  threatModel: internal\n"
                           "  sites: [{name: fra, jurisdiction: eu}]\n  versionGate: {shippedAdvisories: false}\n"
                           "  trustDomains: [{name: house, members: [acme, beta]}]\n---\n" +
                           manifest_head +
                           "kind: Tenant\nmetadata: {name: acme}\nspec: {class: batch, trustDomain: {name: house, "
                           "consent: {by: a, at: 2026-01-01T00:00:00Z}}}\n---\n" +
                           manifest_head +
                           "kind: Tenant\nmetadata: {name: beta}\nspec: {class: batch, trustDomain: {name: house, "
                           "consent: {by: b, at: 2026-01-01T00:00:00Z}}}\n")
                    .outcome);
    Notebook notebook{plane};
    EXPECT_TRUE(plane.apply(some_work("beta", "zebra", "fra", 1)).outcome);
    plane.settle();
    notebook.submit(some_work("acme", "steady", "fra", 1));
    plane.settle();
    EXPECT_EQ(plane.workload("steady").status->phase, WorkloadPhase::running) << "they share the host";
    EXPECT_EQ(plane.workload("zebra").status->phase, WorkloadPhase::running);
    EXPECT_TRUE(plane.remove(ObjectKind::workload, "zebra").outcome);
    plane.settle();
    notebook.ask(command::Delete{.kind = ObjectKind::workload, .name = "steady"});
    plane.settle(30);
    notebook.write_down();
    EXPECT_GT(plane.logged("wiped"), 1);
    for (const char* theirs : {"\"beta\"", "beta", "zebra"}) EXPECT_THAT(notebook.text(), Not(HasSubstr(theirs)));
}

}  // namespace
}  // namespace bulkhead::shell

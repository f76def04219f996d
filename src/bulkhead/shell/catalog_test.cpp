#include "bulkhead/shell/catalog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "bulkhead/shell/fixture_test.hpp"
#include "bulkhead/shell/watch.hpp"

namespace bulkhead::shell {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Row tenant(std::int64_t key, const std::string& name, int weight = 1, const std::string& labels = "{}") {
    return {Table::tenant, key,
            R"({"apiVersion":"bulkhead.dev/v1alpha1","kind":"Tenant","metadata":{"name":")" + name + R"(","labels":)" +
                labels + R"(,"generation":1,"resourceVersion":"v)" + std::to_string(weight) +
                R"("},"spec":{"class":"batch","quota":{"weight":)" + std::to_string(weight) + "}}}",
            false};
}
Row erased(std::int64_t key) { return {Table::tenant, key, {}, true}; }

std::vector<std::string> names(const Catalog::Page& page) {
    std::vector<std::string> out;
    for (const ObjectPtr& object : page.objects) out.push_back(object->name);
    return out;
}

TEST(Catalog, shows_what_was_committed_last) {
    Catalog catalog{1};
    const Row rows[] = {tenant(1, "acme", 1), tenant(2, "beta"), tenant(1, "acme", 7)};
    ASSERT_TRUE(catalog.feed(rows));
    const ObjectPtr acme = catalog.get(ObjectKind::tenant, "acme");
    ASSERT_TRUE(acme);
    EXPECT_EQ(acme->version, "v7");
    EXPECT_EQ(acme->body, rows[2].body) << "bodies are handed out as they were stored";
    EXPECT_FALSE(catalog.get(ObjectKind::node, "acme")) << "names are of a kind";
    ASSERT_TRUE(catalog.feed(std::vector{erased(1)}));
    EXPECT_FALSE(catalog.get(ObjectKind::tenant, "acme"));
    EXPECT_EQ(acme->version, "v7") << "whoever holds a version keeps it";
}

TEST(Catalog, passes_over_rows_that_are_nobodys_to_read) {
    Catalog catalog{1};
    EXPECT_TRUE(
        catalog.feed(std::vector{Row{Table::gate, 1, "anything", false}, Row{Table::token, 2, "secret", false}}));
    EXPECT_EQ(catalog.number(), 0u);
    EXPECT_TRUE(catalog.everything().objects.empty());
}

TEST(Catalog, refuses_a_body_that_is_no_object) {
    for (const std::string body :
         {"", "{}", R"({"metadata":)", R"({"metadata":{"name":"a"})", R"({"metadata":{"nome":"a"}})"}) {
        Catalog catalog{1};
        const auto fed = catalog.feed(std::vector{Row{Table::tenant, 1, body, false}});
        if (body == R"({"metadata":{"name":"a"})") continue;  // the rest of the body is not looked at
        ASSERT_FALSE(fed) << body;
        EXPECT_EQ(fed.error().code, Code::corrupt) << body;
    }
}

TEST(Catalog, lists_by_name_in_pages_that_continue) {
    Catalog catalog{1};
    for (int i = 0; i < 25; ++i) ASSERT_TRUE(catalog.feed(std::vector{tenant(i, "t" + std::to_string(100 + i))}));
    std::vector<std::string> all;
    std::string after;
    for (int pages = 0;; ++pages) {
        ASSERT_LT(pages, 4);
        const auto page = catalog.list(ObjectKind::tenant, {.limit = 10, .after = after});
        for (const std::string& name : names(page)) all.push_back(name);
        if (!page.more) break;
        after = page.objects.back()->name;
    }
    EXPECT_EQ(all.size(), 25u);
    EXPECT_TRUE(std::ranges::is_sorted(all));
}

TEST(Catalog, selects_by_labels) {
    Catalog catalog{1};
    const Row rows[] = {tenant(1, "a", 1, R"({"team":"vision","env":"prod"})"),
                        tenant(2, "b", 1, R"({"team":"speech"})"),
                        tenant(3, "c", 1, R"({"team":"vision","env":"dev"})"), tenant(4, "d")};
    ASSERT_TRUE(catalog.feed(rows));
    struct Case {
        std::string selector;
        std::vector<std::string> names;
    };
    for (const Case& each : {Case{"", {"a", "b", "c", "d"}},
                             {"team=vision", {"a", "c"}},
                             {"team==vision,env!=prod", {"c"}},
                             {"env", {"a", "c"}},
                             {"!env", {"b", "d"}},
                             {"team in (speech, vision), env notin (dev)", {"a", "b"}},
                             {"team=", {}}}) {
        const auto selector = Selector::parse(each.selector);
        ASSERT_TRUE(selector) << each.selector;
        EXPECT_EQ(names(catalog.list(ObjectKind::tenant, {.selector = *selector})), each.names) << each.selector;
    }
    for (const char* bad : {"=x", "a=b,", "a in b", "a in (b", "a b", "a=\"x\""})
        EXPECT_FALSE(Selector::parse(bad)) << bad;
    EXPECT_FALSE(Selector::parse(std::string(5000, 'a')));
}

TEST(Catalog, remembers_changes_as_far_as_it_is_told_to) {
    Catalog catalog{5, {.changes = 3, .change_bytes = 1 << 20}};
    for (int i = 1; i <= 5; ++i) ASSERT_TRUE(catalog.feed(std::vector{tenant(1, "acme", i)}));
    EXPECT_FALSE(catalog.changes_after(0)) << "forgotten: list anew";
    EXPECT_FALSE(catalog.changes_after(1));
    ASSERT_TRUE(catalog.changes_after(2));
    EXPECT_EQ(catalog.changes_after(2)->size(), 3u);
    EXPECT_TRUE(catalog.changes_after(5)->empty());
    EXPECT_FALSE(catalog.changes_after(6)) << "from the future: not ours";
    EXPECT_EQ(catalog.parse_point(catalog.print_point(4)), 4u);
    for (const char* bad : {"", "5-", "5-x", "4-3", "5-3 ", "5--3", "99999999999999999999-1"})
        EXPECT_FALSE(catalog.parse_point(bad)) << bad;
}

TEST(Catalog, tells_what_differs_when_everything_is_loaded_anew) {
    Catalog catalog{1};
    ASSERT_TRUE(catalog.feed(std::vector{tenant(1, "same"), tenant(2, "changed", 1), tenant(3, "gone")}));
    const std::uint64_t before = catalog.number();
    ASSERT_TRUE(catalog.replace(std::vector{tenant(1, "same"), tenant(2, "changed", 2), tenant(4, "fresh")}));
    const auto changes = catalog.changes_after(before);
    ASSERT_TRUE(changes);
    std::vector<std::string> told;
    for (const Change& change : *changes)
        told.push_back((!change.after ? "-" : !change.before ? "+" : "~") + change.object().name);
    EXPECT_THAT(told, ElementsAre("-gone", "~changed", "+fresh"));
}

TEST(Catalog, a_name_taken_anew_in_the_same_batch_is_not_lost) {
    Catalog catalog{1};
    ASSERT_TRUE(catalog.feed(std::vector{tenant(1, "acme", 1)}));
    ASSERT_TRUE(catalog.feed(std::vector{tenant(9, "acme", 2), erased(1)}));
    ASSERT_TRUE(catalog.get(ObjectKind::tenant, "acme"));
    EXPECT_EQ(catalog.get(ObjectKind::tenant, "acme")->key, 9);
}

TEST(Catalog, can_be_read_by_many_while_one_feeds) {
    Catalog catalog{1};
    std::atomic<bool> done{false};
    std::vector<std::thread> readers;
    std::atomic<int> heard{0};
    const std::uint64_t listener = catalog.listen([&] { ++heard; });
    for (int i = 0; i < 3; ++i)
        readers.emplace_back([&] {
            std::uint64_t seen = 0;
            while (!done.load()) {
                const auto page = catalog.list(ObjectKind::tenant, {});
                EXPECT_GE(page.number, seen) << "time does not run back";
                seen = page.number;
                const ObjectPtr object = catalog.get(ObjectKind::tenant, "t1");
                EXPECT_TRUE(!object || object->name == "t1");
            }
        });
    for (int i = 1; i <= 500; ++i)
        ASSERT_TRUE(catalog.feed(std::vector{tenant(i % 10, "t" + std::to_string(i % 10), i)}));
    done.store(true);
    for (std::thread& reader : readers) reader.join();
    catalog.forget(listener);
    EXPECT_EQ(heard.load(), 500);
    EXPECT_EQ(catalog.count(ObjectKind::tenant), 10u);
}

TEST(Watch, tells_everything_first_and_then_what_changes) {
    Catalog catalog{7};
    ASSERT_TRUE(catalog.feed(std::vector{tenant(1, "acme")}));
    const auto feed = watch_feed(catalog, {.kind = ObjectKind::tenant});
    int ready = 0;
    feed->on_ready([&] { ++ready; });
    const std::string first = *feed->next();
    EXPECT_THAT(first, HasSubstr("event: added\ndata: {"));
    EXPECT_THAT(first, HasSubstr("id: 7-1\nevent: synced\ndata: {}\n\n"));
    EXPECT_EQ(first.find("id: "), first.find("id: 7-1\nevent: synced"))
        << "no point to resume from before all are told";
    EXPECT_EQ(*feed->next(), "");
    ASSERT_TRUE(catalog.feed(std::vector{tenant(1, "acme", 2), tenant(2, "beta")}));
    EXPECT_EQ(ready, 1);
    const std::string second = *feed->next();
    EXPECT_THAT(second, HasSubstr("id: 7-2\nevent: modified\n"));
    EXPECT_THAT(second, HasSubstr("id: 7-3\nevent: added\n"));
    ASSERT_TRUE(catalog.feed(std::vector{erased(2)}));
    EXPECT_THAT(*feed->next(), HasSubstr("id: 7-4\nevent: deleted\n"));
}

TEST(Watch, goes_on_from_a_point_and_says_when_that_is_forgotten) {
    Catalog catalog{7, {.changes = 2, .change_bytes = 1 << 20}};
    for (int i = 1; i <= 4; ++i) ASSERT_TRUE(catalog.feed(std::vector{tenant(1, "acme", i)}));
    const auto late = watch_feed(catalog, {.kind = ObjectKind::tenant, .after = 3});
    EXPECT_THAT(*late->next(), HasSubstr("id: 7-4\nevent: modified"));
    const auto too_late = watch_feed(catalog, {.kind = ObjectKind::tenant, .after = 1});
    EXPECT_THAT(*too_late->next(), HasSubstr("event: gone"));
    EXPECT_FALSE(too_late->next()) << "and then the stream is over";
}

TEST(Watch, an_object_whose_labels_no_longer_match_has_gone_for_it) {
    Catalog catalog{7};
    ASSERT_TRUE(catalog.feed(std::vector{tenant(1, "acme", 1, R"({"env":"prod"})")}));
    const auto feed =
        watch_feed(catalog, {.kind = ObjectKind::tenant, .selector = *Selector::parse("env=prod"), .after = 1});
    ASSERT_TRUE(catalog.feed(std::vector{tenant(1, "acme", 2, R"({"env":"dev"})")}));
    EXPECT_THAT(*feed->next(), HasSubstr("event: deleted"));
    ASSERT_TRUE(catalog.feed(std::vector{tenant(1, "acme", 3, R"({"env":"dev"})")}));
    EXPECT_EQ(*feed->next(), "id: 7-3\n\n") << "nothing to say, but the point moves on";
    ASSERT_TRUE(catalog.feed(std::vector{tenant(1, "acme", 4, R"({"env":"prod"})")}));
    EXPECT_THAT(*feed->next(), HasSubstr("event: added"));
}

}  // namespace
}  // namespace bulkhead::shell

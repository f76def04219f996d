#include "bulkhead/shell/watch.hpp"

#include <fmt/core.h>

namespace bulkhead::shell {

namespace {

class Watch final : public Feed {
public:
    Watch(Catalog& catalog, WatchQuery query) : catalog_{catalog}, query_{std::move(query)} {}
    ~Watch() override {
        if (listener_ != 0) catalog_.forget(listener_);
    }

    void on_ready(std::function<void()> ready) override { listener_ = catalog_.listen(std::move(ready)); }

    std::optional<std::string> next() override {
        if (over_) return std::nullopt;
        if (query_.allowed && !query_.allowed()) {
            over_ = true;
            return "event: denied\ndata: "
                   R"({"code":"denied","detail":"the token of this watch is no longer good","remedy":"ask for a new token"})"
                   "\n\n";
        }
        if (!query_.after) return everything();
        const auto changes = catalog_.changes_after(*query_.after, 512, query_.tenant);
        if (!changes) {
            over_ = true;
            return event(
                "gone", *query_.after,
                R"({"code":"not-found","detail":"what changed since is forgotten","remedy":"list anew, and watch from there"})");
        }
        std::string out;
        for (const Change& change : *changes) append(out, change);
        if (changes->empty()) return out;
        query_.after = changes->back().number;
        // The point moves on although nothing was said: a client that comes back need not start over.
        if (out.empty()) out = fmt::format("id: {}\n\n", catalog_.print_point(*query_.after));
        return out;
    }

private:
    std::string event(std::string_view type, std::uint64_t number, std::string_view data) const {
        return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", catalog_.print_point(number), type, data);
    }

    bool meant(const ObjectPtr& object) const {
        return object && (query_.name.empty() || object->name == query_.name) &&
               query_.selector.matches(object->labels);
    }

    void append(std::string& out, const Change& change) const {
        if (change.object().kind != query_.kind) return;
        // An object whose labels no longer match has, for this watch, gone.
        const bool before = meant(change.before), after = meant(change.after);
        if (after)
            out += event(before ? "modified" : "added", change.number, change.after->read_by(query_.its_tenant));
        else if (before)
            out += event("deleted", change.number, change.before->read_by(query_.its_tenant));
    }

    std::optional<std::string> everything() {
        const Catalog::Page page =
            catalog_.list(query_.kind, {.selector = query_.selector, .limit = SIZE_MAX, .tenant = query_.tenant});
        std::string out;
        for (const ObjectPtr& object : page.objects)
            if (meant(object))
                out += fmt::format("event: added\ndata: {}\n\n",
                                   object->read_by(query_.its_tenant));  // no point before all are told
        out += event("synced", page.number, "{}");
        query_.after = page.number;
        return out;
    }

    Catalog& catalog_;
    WatchQuery query_;
    std::uint64_t listener_ = 0;
    bool over_ = false;
};

}  // namespace

std::shared_ptr<Feed> watch_feed(Catalog& catalog, WatchQuery query) {
    return std::make_shared<Watch>(catalog, std::move(query));
}

}  // namespace bulkhead::shell

#include "bulkhead/sched/fair_tree.hpp"

#include <algorithm>

#include "bulkhead/base/result.hpp"

namespace bulkhead::sched {

namespace {

constexpr std::size_t most_associations = 900'000;

Fraction part_of(std::int64_t own, std::int64_t all) {
    return all == 0 ? Fraction{} : Fraction{static_cast<Wide>(own), static_cast<Wide>(all)};
}

// (own shares / all shares) / (own usage / all usage), with the sums of one list of siblings.
Fraction level_value(std::int64_t shares, std::int64_t all_shares, std::int64_t usage, std::int64_t all_usage) {
    if (shares == 0) return {};
    if (usage == 0) return Fraction::infinity();
    return {static_cast<Wide>(shares) * static_cast<Wide>(all_usage),
            static_cast<Wide>(all_shares) * static_cast<Wide>(usage)};
}

class Walk {
public:
    Walk(const Forest& forest, FairTree& tree) : forest_{forest}, tree_{tree}, left_{tree.users} {}

    void rank_users() {
        descend(forest_.roots, false);
        while (!open_.empty()) {
            Siblings& here = open_.back();
            if (here.next == here.list.size())
                open_.pop_back();
            else
                visit(here);
        }
    }

private:
    struct Siblings {
        std::vector<std::size_t> list;  // the highest value first; of one value, users before accounts
        std::size_t next = 0;
        bool tied = false;  // the first of them, with users ranked before
    };

    bool is_user(std::size_t at) const { return forest_.is_leaf(at); }
    const Fraction& level(std::size_t at) const { return tree_.standings[at].level; }

    void descend(std::vector<std::size_t> list, bool tied) {
        std::ranges::sort(list, [&](std::size_t a, std::size_t b) {
            const std::strong_ordering order = compare(level(a), level(b));
            return order != 0 ? order > 0 : is_user(a) && !is_user(b);
        });
        open_.push_back({std::move(list), 0, tied});
    }

    void visit(Siblings& here) {
        const std::size_t at = here.list[here.next];
        const bool tied = here.next == 0 ? here.tied : level(here.list[here.next - 1]) == level(at);
        if (is_user(at)) {
            if (!tied) rank_ = left_;
            tree_.standings[at].rank = rank_;
            --left_;
            ++here.next;
            return;
        }
        std::vector<std::size_t> merged;
        for (; here.next < here.list.size() && level(here.list[here.next]) == level(at); ++here.next) {
            const auto& children = forest_.children[here.list[here.next]];
            merged.insert(merged.end(), children.begin(), children.end());
        }
        descend(std::move(merged), tied);
    }

    const Forest& forest_;
    FairTree& tree_;
    std::vector<Siblings> open_;  // from the roots down to where the walk is
    std::int64_t left_;           // users not yet ranked
    std::int64_t rank_ = 0;       // of the last one ranked
};

// One list of siblings, once their usage is known.
void value_siblings(std::span<const Association> associations, std::span<const std::size_t> siblings, FairTree& tree) {
    std::int64_t shares = 0, usage = 0;
    for (const std::size_t at : siblings) {
        shares += associations[at].shares;
        usage += tree.standings[at].usage;
    }
    for (const std::size_t at : siblings) {
        Standing& standing = tree.standings[at];
        standing.norm_shares = part_of(associations[at].shares, shares);
        standing.effective_usage = part_of(standing.usage, usage);
        standing.level = level_value(associations[at].shares, shares, standing.usage, usage);
    }
}

}  // namespace

FairTree fair_tree(std::span<const Association> associations) {
    invariant(associations.size() <= most_associations, "sums of shares and usage stay exact");
    const Forest forest = forest_of(associations);
    FairTree tree;
    tree.standings.resize(associations.size());
    for (std::size_t i = forest.down.size(); i-- > 0;) {
        const std::size_t at = forest.down[i];
        const Association& each = associations[at];
        invariant(each.shares >= 0 && each.shares <= most_shares, "shares are within their bounds");
        invariant(each.usage >= 0 && each.usage <= most_usage, "usage is within its bounds");
        tree.standings[at].usage += each.usage;
        (each.parent ? tree.standings[*each.parent].usage : tree.usage) += tree.standings[at].usage;
        tree.users += forest.is_leaf(at) ? 1 : 0;
    }
    value_siblings(associations, forest.roots, tree);
    for (const auto& children : forest.children) value_siblings(associations, children, tree);
    Walk{forest, tree}.rank_users();
    return tree;
}

}  // namespace bulkhead::sched

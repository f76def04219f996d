// Who of the identity provider's people is bound to what, as it was last committed: the bindings of the policy and of
// the tenants, out of their rows. One thread, the commit loop's, feeds; any thread may ask.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/auth/bindings.hpp"
#include "bulkhead/shell/loop.hpp"

namespace bulkhead::shell {

class BoundPeople final : public Follower {
public:
    // `changed`: called after bindings have, by the feeding thread.
    explicit BoundPeople(std::function<void()> changed = [] {}) : changed_{std::move(changed)} {}

    void loaded(const Reign& reign) override;
    void committed(const Batch& batch) override;

    std::shared_ptr<const auth::Bindings> current() const;

private:
    struct Tenants {
        std::string name;
        std::vector<RoleBinding> bindings;
    };
    bool take(const Row& row);  // whether bindings changed
    void publish();

    std::function<void()> changed_;
    std::map<std::int64_t, std::vector<RoleBinding>> policies_;  // by row; those that bind anybody
    std::map<std::int64_t, Tenants> tenants_;
    mutable std::mutex mutex_;
    std::shared_ptr<const auth::Bindings> current_ = std::make_shared<const auth::Bindings>();
};

}  // namespace bulkhead::shell

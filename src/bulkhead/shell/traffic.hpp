// How much is under way in each lane, and for whom: a lane that is full refuses, and no token may fill one alone.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "bulkhead/base/result.hpp"
#include "bulkhead/shell/http_server.hpp"

namespace bulkhead::shell {

class Traffic {
public:
    Traffic(std::size_t lane_max, std::size_t share_max) : lane_max_{lane_max}, share_max_{share_max} {}

    // Held until the request is answered, or cannot be any more. `exhausted` when there is no more room.
    using Turn = std::shared_ptr<const void>;
    Result<Turn> enter(Lane lane, const auth::Caller& caller);

private:
    struct Counts {  // shared with the turns, which may outlive the server
        std::mutex mutex;
        std::array<std::size_t, lanes> inside{};
        std::map<std::pair<Lane, std::string>, std::size_t> of_token;
    };
    const std::size_t lane_max_, share_max_;
    const std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

}  // namespace bulkhead::shell

// Figures for Prometheus, as text. Counters are kept here; everything else is asked for when somebody looks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "bulkhead/shell/catalog.hpp"
#include "bulkhead/shell/loop.hpp"

namespace bulkhead::shell {

class Metrics {
public:
    void note_request(std::string_view route, int status, std::int64_t microseconds);

    struct Sources {
        const Catalog& catalog;
        const Loop& loop;
        std::size_t agents = 0;
        std::uint64_t log_published = 0;
    };
    std::string text(const Sources& sources);

private:
    struct Count {
        std::uint64_t requests = 0;
        std::int64_t microseconds = 0;
    };
    struct Census {  // of one node, as of one version of it
        std::string version;
        std::array<std::uint64_t, 4> units{};  // by CleanState
    };
    std::array<std::uint64_t, 4> units(const Catalog& catalog);

    std::mutex mutex_;
    std::map<std::pair<std::string_view, int>, Count> counts_;  // routes are the table's own words
    std::mutex census_mutex_;
    std::map<std::string, Census> census_;
};

}  // namespace bulkhead::shell

// bulkhead-tenant <lease directory> <cgroup parent> <container runtime>: the keeper of one lease, started by the agent.
// bulkhead-tenant save <the same three> <milliseconds>: saves its work, before it is stopped.
#include <charconv>
#include <cstdio>
#include <string_view>

#include "bulkhead/hw/container/checkpoint.hpp"
#include "bulkhead/hw/container/keeper.hpp"

int main(int count, char** words) {
    if (count == 6 && std::string_view{words[1]} == "save") {
        const std::string_view within{words[5]};
        std::int64_t within_ms = 0;
        std::from_chars(within.data(), within.data() + within.size(), within_ms);
        return bulkhead::container::save_work({words[2], words[3], words[4]}, {within_ms});
    }
    if (count != 4) {
        std::fputs("bulkhead-tenant keeps one tenant's processes and is started by bulkhead's agent, not by hand\n",
                   stderr);
        return 2;
    }
    return bulkhead::container::keep({words[1], words[2], words[3]});
}

#include "bulkhead/hw/container/near.hpp"

#include <sched.h>

#include <charconv>

namespace bulkhead::container {

namespace {

constexpr unsigned cpus_max = 4'096;

}  // namespace

std::optional<std::vector<unsigned>> parse_cpus(std::string_view list) {
    std::vector<unsigned> cpus;
    while (!list.empty()) {
        unsigned first = 0;
        auto read = std::from_chars(list.data(), list.data() + list.size(), first);
        if (read.ec != std::errc{}) return std::nullopt;
        list.remove_prefix(static_cast<std::size_t>(read.ptr - list.data()));
        unsigned last = first;
        if (list.starts_with('-')) {
            list.remove_prefix(1);
            read = std::from_chars(list.data(), list.data() + list.size(), last);
            if (read.ec != std::errc{}) return std::nullopt;
            list.remove_prefix(static_cast<std::size_t>(read.ptr - list.data()));
        }
        if (last < first || last >= cpus_max) return std::nullopt;
        for (unsigned cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
        if (list.empty()) break;
        if (!list.starts_with(',') || list.size() == 1) return std::nullopt;
        list.remove_prefix(1);
    }
    return cpus;
}

void stay_near(std::string_view list) {
    const auto cpus = parse_cpus(list);
    if (!cpus || cpus->empty()) return;
    cpu_set_t* const set = CPU_ALLOC(cpus_max);
    if (set == nullptr) return;
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus_max);
    CPU_ZERO_S(bytes, set);
    for (const unsigned cpu : *cpus) CPU_SET_S(cpu, bytes, set);
    (void)::sched_setaffinity(0, bytes, set);
    CPU_FREE(set);
}

}  // namespace bulkhead::container

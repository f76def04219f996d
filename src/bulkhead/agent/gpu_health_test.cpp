#include "bulkhead/agent/gpu_health.hpp"

#include <gtest/gtest.h>

namespace bulkhead::agent {
namespace {

TEST(GpuHealth, an_xid_means_what_nvidia_says_and_the_worst_where_nobody_knows) {
    struct Row {
        const char* says;
        std::uint64_t xid;
        Concern concern;
    };
    const Row rows[] = {
        {"a program's own mistake", 13, Concern::note},
        {"a program's page fault", 31, Concern::note},
        {"a program that was stopped", 43, Concern::note},
        {"a program that was killed", 45, Concern::note},
        {"an error that ECC could not correct", 48, Concern::quarantine},
        {"a row to be remapped at the next reset", 63, Concern::drain},
        {"a row that could not be remapped", 64, Concern::quarantine},
        {"an NVLink that fails", 74, Concern::quarantine},
        {"fallen off the bus", 79, Concern::quarantine},
        {"an error that was contained", 94, Concern::drain},
        {"an error that was not", 95, Concern::quarantine},
        {"the GPU's own processor does not answer", 119, Concern::quarantine},
        {"a number of a later driver", 9'999, Concern::quarantine},
    };
    for (const Row& row : rows) EXPECT_EQ(concern_of(row.xid), row.concern) << row.says;
}

}  // namespace
}  // namespace bulkhead::agent

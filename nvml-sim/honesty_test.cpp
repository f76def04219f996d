// What keeps the simulator honest: the calls it exports, the answers of hardware, and clients that others wrote.
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>

#include "call_table.hpp"
#include "rig_test.hpp"

namespace bulkhead::nvml_sim {
namespace {

struct Ran {
    int status = -1;
    std::string said;
};
Ran run(const std::string& command) {
    Ran ran;
    FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return ran;
    char text[4096];
    while (std::fgets(text, sizeof text, pipe) != nullptr) ran.said += text;
    ran.status = WEXITSTATUS(::pclose(pipe));
    return ran;
}

std::set<std::string> declared() {
#define BULKHEAD_NAME(symbol, type) #symbol,
    return {BULKHEAD_NVML_CALLS(BULKHEAD_NAME)};
#undef BULKHEAD_NAME
}

std::set<std::string> exported_by(const std::string& library) {
    std::set<std::string> names;
    std::istringstream lines{run("nm -D --defined-only " + library).said};
    for (std::string address, kind, name; lines >> address >> kind >> name;) names.insert(name);
    return names;
}

std::set<std::string> rows_of(std::span<const CallRow> table) {
    std::set<std::string> rows;
    for (const CallRow& row : table) {
        EXPECT_TRUE(rows.insert(std::string{row.symbol}).second) << row.symbol << " has two rows";
        EXPECT_TRUE(row.basis != CallBasis::assumed || !row.note.empty())
            << row.symbol << " assumes, and does not say what";
    }
    return rows;
}

TEST(Honesty, what_is_exported_is_what_has_a_row_and_a_type) {
    std::set<std::string> exported = exported_by(BULKHEAD_NVML_SIM);
    EXPECT_EQ(exported.erase("bulkhead_nvml_sim"), 1u) << "it says of itself that it is simulated";
    EXPECT_EQ(exported, rows_of(call_table()));
    EXPECT_EQ(exported, declared());
    exported = exported_by(BULKHEAD_CUDA_SIM);
    EXPECT_EQ(exported.erase("bulkhead_cuda_sim"), 1u);
    EXPECT_EQ(exported, rows_of(cuda_call_table()));
}

const std::string source = BULKHEAD_SOURCE_DIR;

TEST_F(NvmlSim, an_h200_is_answered_for_as_an_h200_answered) {
    use("gpus: 1 x h200-141gb\npci: 00:06\npassed-through: true\n");
    const std::string answers = (node_ / "answers.json").string();
    const Ran asked =
        run(fmt::format("python3 {}/scripts/capture-nvml.py {} > {}", source, BULKHEAD_NVML_SIM, answers));
    ASSERT_EQ(asked.status, 0) << asked.said;
    const Ran compared = run(fmt::format(
        "python3 {0}/nvml-sim/compare-capture.py {0}/testdata/nvml/h200-580.159.04.json {1}", source, answers));
    EXPECT_EQ(compared.status, 0) << compared.said;
}

// Our layouts, by the names others know them by; pynvml-walk.py compares each with its own declaration. Not the
// fabric's: these bindings declare 92 bytes, the public header 28, and no capture decides between them.
TEST(Honesty, clients_that_others_wrote_run_unmodified) {
    using namespace nvml;
    const std::string sizes = testing::TempDir() + "bulkhead-abi-sizes";
    std::ofstream{sizes} << "c_nvmlMemory_t " << sizeof(Memory) << "\nc_nvmlMemory_v2_t " << sizeof(MemoryV2)
                         << "\nnvmlPciInfo_t " << sizeof(PciInfo) << "\nc_nvmlUtilization_t " << sizeof(Utilization)
                         << "\nc_nvmlBAR1Memory_t " << sizeof(Bar1Memory) << "\nc_nvmlProcessInfo_v2_t "
                         << sizeof(ProcessInfo) << "\nc_nvmlEventData_t " << sizeof(EventData)
                         << "\nc_nvmlFieldValue_t " << sizeof(FieldValue) << "\nc_nvmlGpuInstanceProfileInfo_t "
                         << sizeof(GpuInstanceProfileInfo) << "\nc_nvmlGpuInstanceProfileInfo_v2_t "
                         << sizeof(GpuInstanceProfileInfoV2) << "\nc_nvmlGpuInstanceInfo_t " << sizeof(GpuInstanceInfo)
                         << "\nc_nvmlGpuInstancePlacement_t " << sizeof(InstancePlacement)
                         << "\nc_nvmlComputeInstanceProfileInfo_t " << sizeof(ComputeInstanceProfileInfo)
                         << "\nc_nvmlComputeInstanceProfileInfo_v2_t " << sizeof(ComputeInstanceProfileInfoV2)
                         << "\nc_nvmlComputeInstanceInfo_t " << sizeof(ComputeInstanceInfo)
                         << "\nc_nvmlDeviceAttributes " << sizeof(DeviceAttributes)
                         << "\nc_nvmlRowRemapperHistogramValues " << sizeof(RowRemapperHistogram)
                         << "\nc_nvmlProcessUtilizationSample_t " << sizeof(ProcessUtilizationSample)
                         << "\nc_nvmlSample_t " << sizeof(Sample) << "\nc_nvmlViolationTime_t " << sizeof(ViolationTime)
                         << '\n';
    const Ran clients = run(fmt::format("BULKHEAD_ABI_SIZES={} {}/scripts/third-party-clients.sh {} {}", sizes, source,
                                        BULKHEAD_BUILD_DIR, BULKHEAD_GPUSIM));
    if (clients.status == 77) GTEST_SKIP() << clients.said;
    EXPECT_EQ(clients.status, 0) << clients.said;
    EXPECT_NE(clients.said.find("all of the same size"), std::string::npos) << clients.said;
    std::cout << clients.said;
}

}  // namespace
}  // namespace bulkhead::nvml_sim

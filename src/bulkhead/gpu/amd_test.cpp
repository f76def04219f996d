#include "bulkhead/gpu/amd.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <sstream>

namespace bulkhead::gpu {
namespace {

namespace json = boost::json;

Known known_amd(const json::object& from, std::string_view key) {
    const json::value* value = from.if_contains(key);
    return value == nullptr || value->is_null() ? Known{} : Known{value->to_number<int>()};
}

template <class Mode>
std::vector<std::string> names(std::span<const Mode> modes) {
    std::vector<std::string> all;
    for (const Mode mode : modes) all.emplace_back(print(mode));
    return all;
}

std::vector<std::string> strings(const json::object& from, std::string_view key) {
    std::vector<std::string> all;
    const json::value* value = from.if_contains(key);
    if (value == nullptr || value->is_null()) return all;
    for (const json::value& item : value->as_array()) all.emplace_back(item.as_string());
    return all;
}

template <class Mode>
Mode mode(std::span<const Mode> all, const json::value& name) {
    return *std::ranges::find(all, std::string_view{name.as_string()}, [](Mode m) { return print(m); });
}

constexpr ComputeMode every_compute[]{ComputeMode::spx, ComputeMode::dpx, ComputeMode::tpx, ComputeMode::qpx,
                                      ComputeMode::cpx};
constexpr MemoryMode every_memory[]{MemoryMode::nps1, MemoryMode::nps2, MemoryMode::nps4, MemoryMode::nps8};

TEST(AmdBoards, say_what_the_facts_say) {
    std::ifstream file{BULKHEAD_SHARED_DIR "/facts/gpu-partitioning.json"};
    if (!file) GTEST_SKIP() << "no " BULKHEAD_SHARED_DIR "/facts/gpu-partitioning.json on this machine";
    std::ostringstream text;
    text << file.rdbuf();
    const json::value facts = json::parse(text.str());
    const json::array& models = facts.at("amd").at("models").as_array();
    ASSERT_EQ(models.size(), amd_boards().size());
    for (std::size_t m = 0; m < models.size(); ++m) {
        const AmdBoard& board = amd_boards()[m];
        const json::object& fact = models[m].as_object();
        SCOPED_TRACE(board.id);
        EXPECT_EQ(board.id, fact.at("id").as_string());
        for (const char* key : {"pci_device_ids", "vf_device_ids"})
            for (const std::string& id : strings(fact, key))
                EXPECT_EQ(find_amd_board(id.substr(0, id.find(' '))), &board);
        EXPECT_EQ(board.pci.size(), strings(fact, "pci_device_ids").size());
        EXPECT_EQ(board.pci_virtual.size(), strings(fact, "vf_device_ids").size());
        EXPECT_EQ(board.xcds, fact.at("xcd_count").to_number<unsigned>());
        EXPECT_EQ(board.compute_units_per_xcd, known_amd(fact, "cu_per_xcd"));
        EXPECT_EQ(board.compute_units, known_amd(fact, "cu_total"));
        EXPECT_EQ(board.memory_gb, known_amd(fact, "memory_gb"));
        EXPECT_EQ(names(board.compute_modes), strings(fact, "compute_modes"));
        EXPECT_EQ(names(board.memory_modes), strings(fact, "memory_modes"));
        const json::array& tested = fact.at("validated_combinations").as_array();
        ASSERT_EQ(board.tested.size(), tested.size());
        for (const json::value& row : tested) {
            const AmdVerdict verdict = judge(board, mode<ComputeMode>(every_compute, row.at("compute")),
                                             mode<MemoryMode>(every_memory, row.at("memory")));
            const bool ticked = verdict.why.find("not ticked") == verdict.why.npos &&
                                verdict.why.find("virtual functions") == verdict.why.npos;
            EXPECT_EQ(verdict.standing, ticked ? Standing::validated : Standing::listed) << verdict.why;
            EXPECT_EQ(verdict.partitions, row.at("partitions").to_number<unsigned>());
            EXPECT_EQ(verdict.memory_gb, known_amd(row.as_object(), "memory_gb_per_partition"));
            EXPECT_EQ(verdict.compute_units, known_amd(row.as_object(), "cu_per_partition"));
            const json::value* rocm = row.as_object().if_contains("min_rocm");
            EXPECT_EQ(verdict.min_rocm, rocm == nullptr ? "" : std::string_view{rocm->as_string()});
        }
        const json::value* invalid = fact.if_contains("invalid_combinations");
        if (invalid == nullptr || invalid->is_null()) continue;
        for (const json::value& row : invalid->as_array())
            EXPECT_EQ(judge(board, mode<ComputeMode>(every_compute, row.at("compute")),
                            mode<MemoryMode>(every_memory, row.at("memory")))
                          .standing,
                      Standing::invalid);
    }
}

TEST(AmdJudge, says_why_a_pair_of_modes_cannot_be) {
    using enum ComputeMode;
    using enum MemoryMode;
    struct Row {
        std::string_view board;
        ComputeMode compute;
        MemoryMode memory;
        Standing standing;
        std::string_view why;
    };
    const Row rows[] = {
        {"mi300x", spx, nps4, Standing::invalid, "NPS4 makes 4 memory domains and SPX only 1 partition"},
        {"mi300x", dpx, nps4, Standing::invalid, "DPX only 2 partitions"},
        {"mi300x", qpx, nps4, Standing::invalid, "NPS4 works only with CPX"},
        {"mi300x", cpx, nps2, Standing::invalid, "mi300x has no NPS2"},
        {"mi300x", tpx, nps1, Standing::invalid, "mi300x divides 8 XCDs; it has no TPX"},
        {"mi300x", dpx, nps1, Standing::possible, "no source tested it"},
        {"mi300x", cpx, nps4, Standing::validated, "four domains of 48 GB"},
        {"mi300x", cpx, nps1, Standing::listed, "not ticked in AMD's matrix"},
        {"mi355x", cpx, nps2, Standing::listed, "virtual functions"},
        {"mi325x", cpx, nps4, Standing::unsourced, "available_memory_partition"},
        {"mi325x", spx, nps4, Standing::invalid, "domains may not outnumber partitions"},
        {"mi355x", dpx, nps2, Standing::validated, "arithmetic"},
        {"mi355x", qpx, nps2, Standing::invalid, "the amdgpu driver does not accept QPX with NPS2"},
        {"mi300a", dpx, nps1, Standing::invalid, "6 XCDs"},
        {"mi300a", cpx, nps4, Standing::invalid, "mi300a has no NPS4"},
    };
    for (const Row& row : rows) {
        const AmdVerdict verdict = judge(*find_amd_board(row.board).value(), row.compute, row.memory);
        EXPECT_EQ(verdict.standing, row.standing) << row.board << ' ' << row.why << ": " << verdict.why;
        EXPECT_NE(verdict.why.find(row.why), std::string::npos) << verdict.why;
    }
}

TEST(AmdNames, are_those_of_the_device_plugin) {
    EXPECT_EQ(amd_resource_name(ComputeMode::cpx, MemoryMode::nps4), "amd.com/cpx_nps4");
    EXPECT_EQ(amd_single_resource, "amd.com/gpu");
    EXPECT_EQ(find_amd_board("MI300X").value()->id, "mi300x");
    EXPECT_EQ(find_amd_board("mi350x"), find_amd_board("0x75a3"));
    EXPECT_EQ(find_amd_board("mi300y").error().remedy, "mi300x");
    EXPECT_EQ(find_amd_board("MI32").value()->id, "mi325x");
    EXPECT_NE(find_amd_board("mi300").error().what.find("could be any of mi300x, mi300a"), std::string::npos);
    EXPECT_EQ(print(Standing::listed), "listed");
    EXPECT_EQ(print(Standing::unsourced), "unsourced");
    EXPECT_FALSE(find_amd_board("0xzz"));
    EXPECT_FALSE(find_amd_board(""));
}

}  // namespace
}  // namespace bulkhead::gpu

// The facts, board by board. Only three shapes of GPU exist (seven compute over eight memory slices; the A30; the RTX
// PRO 6000), so a board says its names and numbers and the shape supplies the rest.
#include <array>

#include "bulkhead/gpu/board.hpp"

namespace bulkhead::gpu {

namespace {

// clang-format off: one row is one line, so that a row can be held against a listing.

constexpr auto unsourced = std::nullopt;
constexpr Engines no_engines{unsourced, unsourced, unsourced, unsourced, unsourced};

// One number per size. The double-memory 1g has the memory of a 2g, and a 4g that of a 3g.
struct SmsPerShape {
    Known g1, g1_double, g2, g3, g4, g7;
};
struct MibPerShape {
    Known g1, g2, g3, g7;
};
struct EnginesPerShape {
    Engines g1, g1_me, g1_double, g2, g3, g4, g7;
};
enum class Ids : std::uint8_t { all, up_to_2g, none };  // which profile ids a listing shows

struct SevenSlices {
    std::array<std::string_view, 7> names;  // 1g, 1g+me, double-memory 1g, 2g, 3g, 4g, 7g
    SmsPerShape sms;
    MibPerShape mib;
    EnginesPerShape engines;
    Ids ids = Ids::all;
    std::string_view me_since, double_since;
    std::array<std::string_view, 7> also_named{};
};

constexpr std::array<Profile, 7> seven(const SevenSlices& b) {
    const auto small = [&](int id) { return b.ids == Ids::none ? Known{} : Known{id}; };
    const auto large = [&](int id) { return b.ids == Ids::all ? Known{id} : Known{}; };
    const auto p2p = [](const Engines& e) { return e.copy ? std::optional{false} : std::nullopt; };
    constexpr auto any = Starts::at(0, 1, 2, 3, 4, 5, 6);  // not 7: there are only seven compute slices
    const auto& [n, sms, mib, e, ids, me_since, double_since, also] = b;
    return {{
        {n[0], GiEnum::slice_1, small(19), 1, 1, sms.g1, mib.g1, e.g1, 7, p2p(e.g1), any, Media::some, "", "", also[0]},
        {n[1], GiEnum::slice_1_rev1, small(20), 1, 1, sms.g1, mib.g1, e.g1_me, 1, p2p(e.g1_me), any, Media::extended, "+me", me_since, also[1]},
        {n[2], GiEnum::slice_1_rev2, small(15), 1, 2, sms.g1_double, mib.g2, e.g1_double, 4, p2p(e.g1_double), Starts::at(0, 2, 4, 6), Media::some, "", double_since, also[2]},
        {n[3], GiEnum::slice_2, small(14), 2, 2, sms.g2, mib.g2, e.g2, 3, p2p(e.g2), Starts::at(0, 2, 4), Media::some, "", "", also[3]},
        {n[4], GiEnum::slice_3, large(9), 3, 4, sms.g3, mib.g3, e.g3, 2, p2p(e.g3), Starts::at(0, 4), Media::some, "", "", also[4]},
        {n[5], GiEnum::slice_4, large(5), 4, 4, sms.g4, mib.g3, e.g4, 1, p2p(e.g4), Starts::at(0), Media::some, "", "", also[5]},
        {n[6], GiEnum::slice_7, large(0), 7, 8, sms.g7, mib.g7, e.g7, 1, p2p(e.g7), Starts::at(0), Media::some, "", "", also[6]},
    }};
}

// Copy, decode, encode, JPEG, optical flow.
constexpr EnginesPerShape ampere{{1, 0, 0, 0, 0}, {1, 1, 0, 1, 1}, {1, 1, 0, 0, 0}, {2, 1, 0, 0, 0}, {3, 2, 0, 0, 0}, {4, 2, 0, 0, 0}, {7, 5, 0, 1, 1}};
constexpr EnginesPerShape hopper{{1, 1, 0, 1, 0}, {1, 1, 0, 1, 1}, {1, 1, 0, 1, 0}, {2, 2, 0, 2, 0}, {3, 3, 0, 3, 0}, {4, 4, 0, 4, 0}, {8, 7, 0, 7, 1}};
constexpr EnginesPerShape hopper_up_to_2g{hopper.g1, hopper.g1_me, hopper.g1_double, hopper.g2, no_engines, no_engines, no_engines};
constexpr EnginesPerShape blackwell_up_to_2g{{2, 1, 0, 1, 0}, {2, 1, 0, 1, 1}, {2, 1, 0, 1, 0}, {4, 2, 0, 2, 0}, no_engines, no_engines, no_engines};
constexpr EnginesPerShape engines_unsourced{no_engines, no_engines, no_engines, no_engines, no_engines, no_engines, no_engines};
constexpr SmsPerShape ampere_sms{14, 14, 28, 42, 56, 98}, hopper_sms{16, 26, 32, 60, 64, 132};

constexpr auto a100_40 = seven({{"1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}, ampere_sms, {4864, 9856, 19968, 40192}, ampere, Ids::all, "R470", "R525"});
constexpr auto a100_80 = seven({{"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}, ampere_sms, {9728, 19968, 40192, 80640}, ampere, Ids::all, "R470", "R525"});
constexpr auto h100_sxm5 = seven({{"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}, hopper_sms, {9984, 20096, 40448, 81152}, hopper});
constexpr auto h100_pcie = seven({{"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}, {14, 14, 30, 46, 62, 114}, {9856, 19968, 40192, 80896}, hopper});
constexpr auto h100_94 = seven({{"1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"}, hopper_sms, {11008, 22144, 47488, 95360}, hopper});
constexpr auto gh200_96 = seven({{"1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb"}, hopper_sms, {11264, 23552, 47616, 95232}, hopper});
constexpr auto gh200_144 = seven({{"1g.18gb", "1g.18gb+me", "1g.36gb", "2g.36gb", "3g.72gb", "4g.72gb", "7g.144gb"}, {16, 26, 32, {}, {}, {}}, {17920, 36096, {}, {}}, hopper_up_to_2g, Ids::up_to_2g});
// Our own capture, driver 580.159.04. A published listing of an older driver has 33024, 71168 and 143104: what was read
// on silicon goes before what was printed elsewhere.
constexpr auto h200 = seven({{"1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"}, hopper_sms, {16384, 33280, 71424, 143360}, hopper});
// Two drivers gave the 1g of a B200 22528 and 20992 MiB two months apart, so it has no size here.
constexpr auto b200 = seven({{"1g.23gb", "1g.23gb+me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"}, {18, 30, 36, {}, {}, {}}, {{}, 45312, {}, {}}, blackwell_up_to_2g, Ids::up_to_2g});
constexpr auto gb200 = seven({{"1g.23gb", "1g.23gb+me", "1g.47gb", "2g.47gb", "3g.93gb", "4g.93gb", "7g.186gb"}, {18, 32, 38, {}, {}, {}}, {22528, 46592, {}, {}}, blackwell_up_to_2g, Ids::up_to_2g, "", "", {"1g.24gb", "1g.24gb+me", "", "", "3g.95gb", "4g.95gb", "7g.189gb"}});
constexpr auto b300 = seven({{"1g.34gb", "1g.34gb+me", "1g.67gb", "2g.67gb", "3g.135gb", "4g.135gb", "7g.269gb"}, {}, {}, engines_unsourced, Ids::none});
constexpr auto gb300 = seven({{"1g.35gb", "1g.35gb+me", "1g.70gb", "2g.70gb", "3g.139gb", "4g.139gb", "7g.278gb"}, {}, {}, engines_unsourced});

constexpr auto quarter = Starts::at(0, 1, 2, 3), half = Starts::at(0, 2), whole = Starts::at(0);
constexpr std::optional no_p2p{false};

constexpr Profile a30[]{
    {"1g.6gb", GiEnum::slice_1, 14, 1, 1, 14, 5952, {1, 1, 0, 0, 0}, 4, no_p2p, quarter},
    {"1g.6gb+me", GiEnum::slice_1_rev1, 21, 1, 1, 14, 5952, {1, 1, 0, 1, 1}, 1, no_p2p, quarter, Media::extended, "+me", "R470"},
    {"2g.12gb", GiEnum::slice_2, 5, 2, 2, 28, 11968, {2, 2, 0, 0, 0}, 2, no_p2p, half},
    {"2g.12gb+me", GiEnum::slice_2_rev1, 6, 2, 2, 28, 11968, {2, 2, 0, 1, 1}, 1, no_p2p, half, Media::extended, "+me", "R525"},
    {"4g.24gb", GiEnum::slice_4, 0, 4, 4, 56, 24000, {4, 4, 0, 1, 1}, 1, no_p2p, whole},
};

constexpr Profile rtx_pro_6000[]{
    {"1g.24gb", GiEnum::slice_1, 14, 1, 1, 46, 23680, {1, 1, 1, 1, 0}, 4, no_p2p, quarter},
    {"1g.24gb+me", GiEnum::slice_1_rev1, 21, 1, 1, 46, 23680, {1, 1, 1, 1, 1}, 1, no_p2p, quarter, Media::extended, "+me"},
    {"1g.24gb+gfx", GiEnum::slice_1_gfx, 47, 1, 1, 46, 23680, {1, 1, 1, 1, 0}, 4, no_p2p, quarter, Media::some, "+gfx"},
    {"1g.24gb+me.all", GiEnum::slice_1_all_me, 65, 1, 1, 46, 23680, {1, 4, 4, 4, 1}, 1, no_p2p, quarter, Media::all, "+me.all"},
    {"1g.24gb-me", GiEnum::slice_1_no_me, 67, 1, 1, 46, 23680, {1, 0, 0, 0, 0}, 4, no_p2p, quarter, Media::none, "-me"},
    {"2g.48gb", GiEnum::slice_2, 5, 2, 2, 94, 47616, {2, 2, 2, 2, 0}, 2, no_p2p, half},
    {"2g.48gb+gfx", GiEnum::slice_2_gfx, 35, 2, 2, 94, 47616, {2, 2, 2, 2, 0}, 2, no_p2p, half, Media::some, "+gfx"},
    {"2g.48gb+me.all", GiEnum::slice_2_all_me, 64, 2, 2, 94, 47616, {2, 4, 4, 4, 1}, 1, no_p2p, half, Media::all, "+me.all"},
    {"2g.48gb-me", GiEnum::slice_2_no_me, 66, 2, 2, 94, 47616, {2, 0, 0, 0, 0}, 2, no_p2p, half, Media::none, "-me"},
    {"4g.96gb", GiEnum::slice_4, 0, 4, 4, 188, 95616, {4, 4, 4, 4, 1}, 1, no_p2p, whole},
    {"4g.96gb+gfx", GiEnum::slice_4_gfx, 32, 4, 4, unsourced, unsourced, {4, 4, 4, 4, 1}, 1, no_p2p, whole, Media::some, "+gfx"},
};

constexpr std::string_view listed = "go-nvml mock, matches -lcip listings";
constexpr std::string_view mocked = "go-nvml mock";
constexpr std::string_view owns_all = "a full-size compute instance owns every SM of its GPU instance";
constexpr std::string_view issue_146 = "measured on H100 80GB: go-nvml issue 146";
constexpr std::string_view by_default = "default compute instance of the double-memory 1g, seen on GH200";
constexpr std::string_view not_sourced;

constexpr auto row_1c = Starts::at(0, 1, 2, 3, 4, 5, 6);

constexpr std::array<ComputeProfile, 17> ampere_cis{{
    {GiEnum::slice_1, CiEnum::slice_1, 1, 1, 14, whole, listed},
    {GiEnum::slice_1_rev1, CiEnum::slice_1, 1, 1, 14, whole, listed},
    {GiEnum::slice_1_rev2, CiEnum::slice_1, 1, 1, 14, whole, listed},
    {GiEnum::slice_2, CiEnum::slice_1, 1, 2, 14, Starts::at(0, 1), listed},
    {GiEnum::slice_2, CiEnum::slice_2, 2, 1, 28, whole, listed},
    {GiEnum::slice_3, CiEnum::slice_1, 1, 3, 14, Starts::at(0, 1, 2), listed},
    {GiEnum::slice_3, CiEnum::slice_2, 2, 1, 28, whole, listed},
    {GiEnum::slice_3, CiEnum::slice_3, 3, 1, 42, whole, listed},
    {GiEnum::slice_4, CiEnum::slice_1, 1, 4, 14, quarter, listed},
    {GiEnum::slice_4, CiEnum::slice_2, 2, 2, 28, half, listed},
    {GiEnum::slice_4, CiEnum::slice_4, 4, 1, 56, whole, listed},
    {GiEnum::slice_7, CiEnum::slice_1, 1, 7, 14, row_1c, listed},
    {GiEnum::slice_7, CiEnum::slice_2, 2, 3, 28, Starts::at(0, 2, 4), listed},
    {GiEnum::slice_7, CiEnum::slice_3, 3, 2, 42, Starts::at(0, 4), listed},
    {GiEnum::slice_7, CiEnum::slice_4, 4, 1, 56, whole, listed},
    {GiEnum::slice_7, CiEnum::slice_7, 7, 1, 98, whole, listed},
    // Recent drivers enumerate it and then fail to create it on an A100 (DRA driver issue 1480): never chosen.
    {GiEnum::slice_7, CiEnum::slice_7_nvl, 7, 1, 98, {}, "enumerated, but creation fails on A100: DRA driver issue 1480"},
}};

// SMs of a smaller compute instance were measured inside a 2g only.
constexpr std::array<ComputeProfile, 17> hopper_cis(const SmsPerShape& sms, Known in_2g, Known wide_in_2g) {
    const std::string_view in_2g_basis = in_2g ? issue_146 : not_sourced;
    return {{
        {GiEnum::slice_1, CiEnum::slice_1, 1, 1, sms.g1, whole, owns_all},
        {GiEnum::slice_1_rev1, CiEnum::slice_1, 1, 1, sms.g1, whole, owns_all},
        {GiEnum::slice_2, CiEnum::slice_1, 1, 2, in_2g, Starts::at(0, 1), in_2g_basis},
        {GiEnum::slice_2, CiEnum::slice_2, 2, 1, sms.g2, whole, owns_all},
        {GiEnum::slice_3, CiEnum::slice_1, 1, 3, unsourced, Starts::at(0, 1, 2), not_sourced},
        {GiEnum::slice_3, CiEnum::slice_2, 2, 1, unsourced, whole, not_sourced},
        {GiEnum::slice_3, CiEnum::slice_3, 3, 1, sms.g3, whole, owns_all},
        {GiEnum::slice_4, CiEnum::slice_1, 1, 4, unsourced, quarter, not_sourced},
        {GiEnum::slice_4, CiEnum::slice_2, 2, 2, unsourced, half, not_sourced},
        {GiEnum::slice_4, CiEnum::slice_4, 4, 1, sms.g4, whole, owns_all},
        {GiEnum::slice_7, CiEnum::slice_1, 1, 7, unsourced, row_1c, not_sourced},
        {GiEnum::slice_7, CiEnum::slice_2, 2, 3, unsourced, Starts::at(0, 2, 4), not_sourced},
        {GiEnum::slice_7, CiEnum::slice_3, 3, 2, unsourced, Starts::at(0, 4), not_sourced},
        {GiEnum::slice_7, CiEnum::slice_4, 4, 1, unsourced, whole, not_sourced},
        {GiEnum::slice_7, CiEnum::slice_7, 7, 1, sms.g7, whole, owns_all},
        {GiEnum::slice_2, CiEnum::slice_1_rev1, 1, 1, wide_in_2g, {}, issue_146},
        {GiEnum::slice_1_rev2, CiEnum::slice_1_rev1, 1, 1, sms.g1_double, {}, by_default},
    }};
}
constexpr auto hopper_132_cis = hopper_cis(hopper_sms, 16, 26);
constexpr auto h100_pcie_cis = hopper_cis({14, 14, 30, 46, 62, 114}, unsourced, unsourced);

constexpr std::array<ComputeProfile, 9> a30_cis{{
    {GiEnum::slice_1, CiEnum::slice_1, 1, 1, 14, whole, mocked},
    {GiEnum::slice_1_rev1, CiEnum::slice_1, 1, 1, 14, whole, mocked},
    {GiEnum::slice_2, CiEnum::slice_1, 1, 2, 14, Starts::at(0, 1), mocked},
    {GiEnum::slice_2, CiEnum::slice_2, 2, 1, 28, whole, mocked},
    {GiEnum::slice_2_rev1, CiEnum::slice_1, 1, 2, 14, Starts::at(0, 1), mocked},
    {GiEnum::slice_2_rev1, CiEnum::slice_2, 2, 1, 28, whole, mocked},
    {GiEnum::slice_4, CiEnum::slice_1, 1, 4, 14, quarter, mocked},
    {GiEnum::slice_4, CiEnum::slice_2, 2, 2, 28, half, mocked},
    {GiEnum::slice_4, CiEnum::slice_4, 4, 1, 56, whole, mocked},
}};

constexpr PciDevice a100_40_pci[]{{0x20B010DE, "A100-SXM4-40GB"}, {0x20B110DE, "A100-PCIE-40GB"}, {0x20F110DE, "A100-PCIE-40GB"}, {0x20F610DE, "A800-PCIE-40GB"}};
constexpr PciDevice a100_80_pci[]{{0x20B210DE, "A100-SXM4-80GB"}, {0x20B510DE, "A100-PCIE-80GB"}, {0x20F310DE, "A800-SXM4-80GB"}, {0x20F510DE, "A800-PCIE-80GB"}};
constexpr PciDevice a30_pci[]{{0x20B710DE, "A30 PCIe"}};
constexpr PciDevice h100_sxm5_pci[]{{0x233010DE, "H100 SXM5 80GB"}, {0x232410DE, "H800 SXM5 80GB"}};
constexpr PciDevice h100_pcie_pci[]{{0x233110DE, "H100 PCIe 80GB"}, {0x232210DE, "H800 PCIe 80GB"}};
constexpr PciDevice h100_94_pci[]{{0x232110DE, "H100 NVL 94GB"}, {0x233910DE, "H100 SXM5 94GB"}, {0x233A10DE, "H800 NVL 94GB"}};
constexpr PciDevice gh200_96_pci[]{{0x234210DE, "GH200 120GB/480GB (96GB HBM3)"}, {0x233D10DE, "H100 96GB"}, {0x233810DE, "H100 SXM5 96GB"}, {0x232910DE, "H20 96GB"}};
constexpr PciDevice gh200_144_pci[]{{0x234810DE, "GH200 144G HBM3e"}};
constexpr PciDevice h200_pci[]{{0x233510DE, "H200 SXM 141GB"}, {0x233B10DE, "H200 NVL"}};
constexpr PciDevice b200_pci[]{{0x290110DE, "B200"}};
constexpr PciDevice gb200_pci[]{{0x294110DE, "HGX GB200"}};
constexpr PciDevice b300_pci[]{{0x318210DE, "B300"}};
constexpr PciDevice gb300_pci[]{{0x31C210DE, "GB300"}};
constexpr PciDevice rtx_pro_6000_pci[]{{0x2BB510DE, "RTX PRO 6000 Blackwell Server Edition"}, {0x2BB110DE, "Workstation Edition"}, {0x2BB410DE, "Max-Q Workstation Edition"}};

constexpr std::string_view listed_here = "listed by nvidia-smi mig -lgipp on this board";
constexpr std::string_view from_h100 = "carried over from H100 PCIe and NVL (same profile ids, slices and maxima); not listed for this board";
constexpr std::string_view fixture = "from an NVIDIA test fixture (k8s-test-infra), the same layout as H100; no listing found";
constexpr std::string_view no_data = "assumed: no source shows them; the rule of the other boards with as many slices";
constexpr std::string_view rows_missing = "no source shows the profile ids, SMs and engines of 3g and larger";

constexpr std::array<Board, 14> all_boards{{
    {"a100-40gb", "NVIDIA A100 40GB (SXM4 / PCIe)", "Ampere", "8.0", a100_40_pci, 108, 98, 40960, 7, 8, 7, "", a100_40, ampere_cis, Basis::listing, listed_here, "memory per profile changed between drivers R470 and R525"},
    {"a100-80gb", "NVIDIA A100 80GB (SXM4 / PCIe), A800 80GB", "Ampere", "8.0", a100_80_pci, 108, 98, 81920, 7, 8, 7, "", a100_80, ampere_cis, Basis::listing, listed_here, "three drivers gave 7g.80gb 78.75, 79.00 and 79.25 GiB"},
    {"a30-24gb", "NVIDIA A30 24GB", "Ampere", "8.0", a30_pci, 56, 56, 24576, 4, 4, 4, "", a30, a30_cis, Basis::listing, listed_here, "the user guide prints no decoder for 1g.6gb; three listings print one"},
    {"h100-80gb-sxm5", "NVIDIA H100 80GB HBM3 (SXM5)", "Hopper", "9.0", h100_sxm5_pci, 132, 132, 81559, 7, 8, 7, "", h100_sxm5, hopper_132_cis, Basis::carried_over, from_h100, "SMs are not multiples of 16: seven 1g use 112 of 132"},
    {"h100-80gb-pcie", "NVIDIA H100 80GB PCIe", "Hopper", "9.0", h100_pcie_pci, 114, 114, 81559, 7, 8, 7, "", h100_pcie, h100_pcie_cis, Basis::listing, listed_here, "numbers of driver 525.125.06; newer ones may give 1g.20gb and 3g.40gb more SMs"},
    {"h100-94gb", "NVIDIA H100 NVL 94GB / H100 SXM5 94GB / H800 NVL", "Hopper", "9.0", h100_94_pci, 132, 132, 95830, 7, 8, 7, "", h100_94, hopper_132_cis, Basis::listing, listed_here, "SMs measured on the NVL board only"},
    {"gh200-96gb", "NVIDIA H100 96GB on GH200 (also H100 SXM5 96GB; H20 96GB shares the profile names)", "Hopper", "9.0", gh200_96_pci, 132, 132, 97871, 7, 8, 7, "", gh200_96, hopper_132_cis, Basis::carried_over, from_h100, "SMs are those of GH200; an H20 has fewer"},
    {"gh200-144gb", "NVIDIA GH200 144GB HBM3e", "Hopper", "9.0", gh200_144_pci, {}, {}, {}, 7, 8, 7, "", gh200_144, {}, Basis::carried_over, from_h100, rows_missing},
    {"h200-141gb", "NVIDIA H200 SXM 141GB / H200 NVL 141GB", "Hopper", "9.0", h200_pci, 132, 132, 143771, 7, 8, 7, "", h200, hopper_132_cis, Basis::capture, "read through NVML on an H200 SXM, driver 580.159.04", "memory as captured; an older driver's listing has 256 MiB less from 1g.35gb upwards"},
    {"b200-180gb", "NVIDIA B200 (180 GB usable)", "Blackwell", "10.0", b200_pci, 148, {}, 183359, 7, 8, 7, "570.133.20", b200, {}, Basis::mock, fixture, rows_missing},
    {"gb200-186gb", "NVIDIA GB200 (HGX/NVL72 GPU, 186 GB usable)", "Blackwell", "10.0", gb200_pci, {}, {}, {}, 7, 8, 7, "", gb200, {}, Basis::mock, fixture, rows_missing},
    {"b300-269gb", "NVIDIA B300 SXM6 (269 GB usable)", "Blackwell Ultra", "10.3", b300_pci, {}, {}, {}, 7, 8, 7, "", b300, {}, Basis::assumed, no_data, "only names and maxima are sourced; slice counts follow from them"},
    {"gb300-278gb", "NVIDIA GB300 (278 GB usable)", "Blackwell Ultra", "10.3", gb300_pci, {}, {}, {}, 7, 8, 7, "", gb300, {}, Basis::mock, fixture, "only names, profile ids and maxima are sourced"},
    {"rtx-pro-6000-blackwell-96gb", "NVIDIA RTX PRO 6000 Blackwell (Server / Workstation / Max-Q)", "Blackwell (GB202)", "12.0", rtx_pro_6000_pci, 188, 188, {}, 4, 4, 4, "575.51.03", rtx_pro_6000, {}, Basis::assumed, no_data, ""},
}};

// clang-format on

// geometry.cpp keeps an occupancy as slices plus media engines and counts nothing. That is enough only while a maximum
// is either the number of starts, none of which overlap, or one because of the engines.
constexpr bool maximum_follows(const Profile& p) {
    unsigned covered = 0;
    for (const unsigned start : p.starts) {
        if ((covered & p.at(start).mask()) != 0) return false;
        covered |= p.at(start).mask();
    }
    return p.max_instances == (p.media == Media::extended || p.media == Media::all ? 1 : p.starts.count());
}
static_assert([] {
    for (const Board& board : all_boards)
        for (const Profile& profile : board.profiles)
            if (!maximum_follows(profile)) return false;
    return true;
}());

}  // namespace

std::span<const Board> boards() { return all_boards; }

}  // namespace bulkhead::gpu

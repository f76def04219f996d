// The products, one row each.
#include "bulkhead/node/driver_product.hpp"

#include <fmt/format.h>

#include <vector>

#include "bulkhead/base/nearest.hpp"

namespace bulkhead::driver {

namespace {

// clang-format off: one row is one product
using enum Architecture;
constexpr Grade read_by_us = Grade::silicon, from_habit = Grade::assumed;
constexpr PowerLimits sxm5{700'000, 200'000, 700'000, 75'000};
constexpr Clocks hopper_idle{345, 345, 2619, 765}, hopper_busy{1980, 1980, 2619, 1545}, ampere_idle{210, 210, 1215, 585}, ampere_busy{1410, 1410, 1593, 1290},
                 blackwell_idle{120, 120, 3996, 600}, blackwell_busy{1965, 1965, 3996, 1890}, ada_idle{210, 210, 405, 1185}, ada_busy{2520, 2520, 9001, 1950};
constexpr TemperatureLimits hopper_heat{95, 89, 95, 87}, ampere_heat{92, 89, 95, 85}, workstation_heat{98, 95, 0, 90};
constexpr Links sxm4_links{4, 16, 12, 3, 25'000}, sxm5_links{5, 16, 18, 4, 26'562}, nvl72_links{5, 16, 18, 5, 53'125}, pcie4{4, 16}, pcie5{5, 16};

constexpr Product rows[] = {
    {"a100-40gb", "NVIDIA A100-SXM4-40GB", ampere, 8, 0, 0x20B010DE, 0x134F10DE, 40960, 635904, 5120, 108, 64, {400'000, 100'000, 400'000, 52'000}, ampere_idle, ampere_busy, ampere_heat, sxm4_links, 0, 65536, true, false, 640, from_habit},
    {"a100-80gb", "NVIDIA A100-SXM4-80GB", ampere, 8, 0, 0x20B210DE, 0x147F10DE, 81920, 887808, 5120, 108, 64, {400'000, 100'000, 400'000, 60'000}, ampere_idle, ampere_busy, ampere_heat, sxm4_links, 0, 131072, true, false, 640, from_habit},
    {"a30-24gb", "NVIDIA A30", ampere, 8, 0, 0x20B710DE, 0x153210DE, 24576, 505856, 3072, 56, 64, {165'000, 100'000, 165'000, 28'000}, ampere_idle, {1440, 1440, 1215, 1305}, ampere_heat, pcie4, 0, 32768, true, false, 384, from_habit},
    {"h100-80gb-sxm5", "NVIDIA H100 80GB HBM3", hopper, 9, 0, 0x233010DE, 0x16C110DE, 81559, 564224, 5120, 132, 128, sxm5, hopper_idle, hopper_busy, hopper_heat, sxm5_links, 0, 131072, true, true, 2560, from_habit},
    {"h100-80gb-pcie", "NVIDIA H100 PCIe", hopper, 9, 0, 0x233110DE, 0x162610DE, 81559, 564224, 5120, 114, 128, {350'000, 200'000, 350'000, 48'000}, hopper_idle, {1755, 1755, 1593, 1545}, hopper_heat, pcie5, 0, 131072, true, true, 2560, from_habit},
    {"h100-94gb", "NVIDIA H100 NVL", hopper, 9, 0, 0x232110DE, 0x183910DE, 95830, 614400, 6144, 132, 128, {400'000, 200'000, 400'000, 60'000}, hopper_idle, {1785, 1785, 2619, 1545}, hopper_heat, pcie5, 0, 131072, true, true, 3072, from_habit},
    {"gh200-96gb", "NVIDIA GH200 480GB", hopper, 9, 0, 0x234210DE, 0x16EB10DE, 97871, 636928, 6144, 132, 128, {900'000, 100'000, 900'000, 75'000}, hopper_idle, hopper_busy, hopper_heat, sxm5_links, 0, 131072, true, true, 3072, from_habit},
    {"gh200-144gb", "NVIDIA GH200 144G HBM3e", hopper, 9, 0, 0x234810DE, 0x18D210DE, 147456, 696320, 6144, 132, 128, {900'000, 100'000, 900'000, 75'000}, hopper_idle, {1980, 1980, 3201, 1545}, hopper_heat, sxm5_links, 0, 262144, true, true, 3072, from_habit},
    {"h200-141gb", "NVIDIA H200", hopper, 9, 0, 0x233510DE, 0x18BF10DE, 143771, 629824, 6016, 132, 128, {700'000, 200'000, 700'000, 80'447}, {345, 345, 3201, 765}, {1980, 1980, 3201, 1545}, hopper_heat, sxm5_links, 0, 262144, true, true, 3072, read_by_us},
    {"b200-180gb", "NVIDIA B200", blackwell, 10, 0, 0x290110DE, 0x199910DE, 183359, 716800, 7680, 148, 128, {1'000'000, 200'000, 1'000'000, 140'000}, blackwell_idle, blackwell_busy, hopper_heat, nvl72_links, 0, 262144, true, true, 3840, from_habit},
    {"gb200-186gb", "NVIDIA GB200", blackwell, 10, 0, 0x294110DE, 0x204610DE, 189471, 716800, 7680, 148, 128, {1'200'000, 200'000, 1'200'000, 150'000}, blackwell_idle, {2062, 2062, 3996, 1890}, hopper_heat, nvl72_links, 0, 262144, true, true, 3840, from_habit},
    {"b300-269gb", "NVIDIA B300 SXM6 AC", blackwell, 10, 3, 0x318210DE, 0x20E610DE, 275040, 819200, 7680, 148, 128, {1'100'000, 200'000, 1'100'000, 150'000}, blackwell_idle, blackwell_busy, hopper_heat, nvl72_links, 0, 524288, true, true, 3840, from_habit},
    {"gb300-278gb", "NVIDIA GB300", blackwell, 10, 3, 0x31C210DE, 0x21F110DE, 284208, 819200, 7680, 148, 128, {1'400'000, 200'000, 1'400'000, 160'000}, blackwell_idle, blackwell_busy, hopper_heat, nvl72_links, 0, 524288, true, true, 3840, from_habit},
    {"rtx-pro-6000-blackwell-96gb", "NVIDIA RTX PRO 6000 Blackwell Server Edition", blackwell, 12, 0, 0x2BB510DE, 0x204E10DE, 97887, 665600, 512, 188, 128, {600'000, 300'000, 600'000, 30'000}, {180, 180, 405, 600}, {2430, 2430, 12481, 2287}, workstation_heat, pcie5, 0, 131072, true, false, 0, from_habit},
    // Cannot be cut.
    {"l40s", "NVIDIA L40S", ada, 8, 9, 0x26B910DE, 0x185110DE, 46068, 593920, 384, 142, 128, {350'000, 100'000, 350'000, 34'000}, ada_idle, ada_busy, workstation_heat, pcie4, 0, 65536, true, false, 192, from_habit},
    {"l4", "NVIDIA L4", ada, 8, 9, 0x27B810DE, 0x16EE10DE, 23034, 481280, 192, 60, 128, {72'000, 40'000, 72'000, 12'000}, ada_idle, {2040, 2040, 6251, 1770}, workstation_heat, pcie4, 0, 32768, true, false, 96, from_habit},
    {"t4", "Tesla T4", turing, 7, 5, 0x1EB810DE, 0x12A210DE, 15360, 460800, 256, 40, 64, {70'000, 60'000, 70'000, 9'000}, {300, 300, 405, 540}, {1590, 1590, 5001, 1470}, {96, 93, 0, 85}, {3, 16}, 0, 256, true, false, 0, from_habit},
    {"v100-32gb", "Tesla V100-SXM2-32GB", volta, 7, 0, 0x1DB510DE, 0x124910DE, 32768, 276480, 4096, 80, 64, {300'000, 150'000, 300'000, 40'000}, {135, 135, 877, 555}, {1530, 1530, 877, 1372}, {90, 87, 85, 83}, {3, 16, 6, 2, 25'781}, 0, 32768, true, false, 0, from_habit},
    {"rtx-4090", "NVIDIA GeForce RTX 4090", ada, 8, 9, 0x268410DE, 0x889D1043, 24564, 440320, 384, 128, 128, {450'000, 150'000, 600'000, 20'000}, ada_idle, {3105, 3105, 10501, 2415}, {100, 97, 0, 84}, pcie4, 2, 32768, true, false, 0, from_habit},
};
// clang-format on

}  // namespace

const gpu::Board* Product::board() const {
    for (const gpu::Board& known : gpu::boards())
        if (known.id == id) return &known;
    return nullptr;
}

std::span<const Product> products() { return rows; }

Result<const Product*> find_product(std::string_view id) {
    std::vector<std::string_view> known;
    for (const Product& row : rows) {
        if (row.id == id) return &row;
        known.push_back(row.id);
    }
    const std::string_view near = nearest(id, known);
    return fail(
        Code::not_found, fmt::format("there is no simulated GPU \"{}\"", id),
        !near.empty() ? fmt::format("did you mean \"{}\"?", near) : fmt::format("known: {}", fmt::join(known, ", ")));
}

}  // namespace bulkhead::driver

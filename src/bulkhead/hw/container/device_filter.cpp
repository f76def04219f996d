#include "bulkhead/hw/container/device_filter.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "bulkhead/hw/container/durable.hpp"

namespace bulkhead::container {

namespace {

constexpr const char* program_name = "bulkhead_dev";  // ours among those of others; 15 characters at most

constexpr bpf_insn instruction(int code, int to, int from, int jump, std::int32_t value) {
    bpf_insn one{};
    one.code = static_cast<std::uint8_t>(code);
    one.dst_reg = static_cast<std::uint8_t>(to & 0xf);
    one.src_reg = static_cast<std::uint8_t>(from & 0xf);
    one.off = static_cast<std::int16_t>(jump);
    one.imm = value;
    return one;
}

long bpf_call(bpf_cmd command, bpf_attr& attributes) {
    return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

std::uint64_t address_of(const void* thing) { return reinterpret_cast<std::uintptr_t>(thing); }

Result<Fd> load(std::span<const bpf_insn> program) {
    bpf_attr attributes{};
    attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attributes.insns = address_of(program.data());
    attributes.insn_cnt = static_cast<std::uint32_t>(program.size());
    attributes.license = address_of("Apache-2.0");
    std::strncpy(attributes.prog_name, program_name, sizeof attributes.prog_name - 1);
    Fd loaded{static_cast<int>(bpf_call(BPF_PROG_LOAD, attributes))};
    if (!loaded)
        return cannot(
            "load", "the program that holds device nodes back",
            "the agent needs CAP_BPF and CAP_NET_ADMIN, and a kernel with CONFIG_CGROUP_BPF; no tenant is started "
            "without it");
    return loaded;
}

// What an earlier try of ours left attached; a runtime's own programs stay.
void detach_ours(int cgroup) {
    std::array<std::uint32_t, 64> ids{};
    bpf_attr query{};
    query.query.target_fd = static_cast<std::uint32_t>(cgroup);
    query.query.attach_type = BPF_CGROUP_DEVICE;
    query.query.prog_ids = address_of(ids.data());
    query.query.prog_cnt = ids.size();
    if (bpf_call(BPF_PROG_QUERY, query) != 0) return;
    for (std::uint32_t at = 0; at < query.query.prog_cnt; ++at) {
        bpf_attr by_id{};
        by_id.prog_id = ids[at];
        const Fd program{static_cast<int>(bpf_call(BPF_PROG_GET_FD_BY_ID, by_id))};
        if (!program) continue;
        bpf_prog_info info{};
        bpf_attr ask{};
        ask.info.bpf_fd = static_cast<std::uint32_t>(*program);
        ask.info.info_len = sizeof info;
        ask.info.info = address_of(&info);
        if (bpf_call(BPF_OBJ_GET_INFO_BY_FD, ask) != 0 || std::strcmp(info.name, program_name) != 0) continue;
        bpf_attr detach{};
        detach.target_fd = static_cast<std::uint32_t>(cgroup);
        detach.attach_bpf_fd = static_cast<std::uint32_t>(*program);
        detach.attach_type = BPF_CGROUP_DEVICE;
        bpf_call(BPF_PROG_DETACH, detach);
    }
}

}  // namespace

std::vector<bpf_insn> device_program(std::span<const DeviceNode> devices) {
    // r1 points to { u32 access << 16 | type, u32 major, u32 minor }.
    const auto load_word = [](int to, int offset) {
        return instruction(BPF_LDX | BPF_MEM | BPF_W, to, BPF_REG_1, offset, 0);
    };
    const auto unless = [](int which, std::uint32_t value, int skip) {
        return instruction(BPF_JMP32 | BPF_JNE | BPF_K, which, 0, skip, static_cast<std::int32_t>(value));
    };
    const auto answer = [](std::vector<bpf_insn>& out, int value) {
        out.push_back(instruction(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, value));
        out.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
    };
    std::vector<bpf_insn> program{load_word(BPF_REG_2, 0),
                                  instruction(BPF_ALU | BPF_AND | BPF_K, BPF_REG_2, 0, 0, 0xffff),
                                  load_word(BPF_REG_3, 4), load_word(BPF_REG_4, 8)};
    for (const DeviceNode& device : devices) {
        program.push_back(unless(BPF_REG_2, device.type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR, 4));
        program.push_back(unless(BPF_REG_3, device.major, 3));
        program.push_back(unless(BPF_REG_4, device.minor, 2));
        answer(program, 1);
    }
    answer(program, 0);
    return program;
}

Result<> allow_only(const std::string& cgroup, std::span<const DeviceNode> devices) {
    auto group = open_file(cgroup, O_RDONLY | O_DIRECTORY);
    if (!group) return std::unexpected(group.error());
    auto program = load(device_program(devices));
    if (!program) return std::unexpected(program.error());
    detach_ours(**group);
    bpf_attr attach{};
    attach.target_fd = static_cast<std::uint32_t>(**group);
    attach.attach_bpf_fd = static_cast<std::uint32_t>(**program);
    attach.attach_type = BPF_CGROUP_DEVICE;
    attach.attach_flags = BPF_F_ALLOW_MULTI;  // a container runtime adds its own; a device must pass them all
    if (bpf_call(BPF_PROG_ATTACH, attach) != 0) return cannot("attach the device program to", cgroup);
    return {};
}

}  // namespace bulkhead::container

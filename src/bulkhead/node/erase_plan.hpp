// How a drive is to be erased: from what it says of itself and what the operator allows to one method, as the commands
// that carry it out, or to a refusal. Methods are tried in the policy's order, each one that is passed over is named
// with its reason, and the claim that may be made afterwards is the method's own: who erases by less claims less.
//
// A command that a drive accepts proves nothing: there are controllers that answer Format with any setting by success.
// What counts is what the drive claims, and what is read back afterwards (erase_verdict.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/model/terms.hpp"

namespace bulkhead {

// From the strongest claim to the weakest; `words` are what operators write and certificates say.
enum class EraseMethod : std::uint8_t {
    sanitize_crypto,
    format_crypto,
    sanitize_block,
    format_erase,
    sanitize_overwrite,  // hours
    host_zeroes,         // written by this host: nothing that the drive keeps spare is reached
};
constexpr auto words(EraseMethod) {
    return std::to_array<Words>(
        {"sanitize-crypto", "format-crypto", "sanitize-block", "format-erase", "sanitize-overwrite", "host-zeroes"});
}
std::string method_name(EraseMethod method);  // as evidence has it: "nvme-sanitize-crypto"
// What may be claimed once it has succeeded and was verified, in the words that the standards leave us.
std::string_view claim_of(EraseMethod method);

struct ErasePolicy {
    std::vector<EraseMethod> order{EraseMethod::sanitize_crypto, EraseMethod::format_crypto,
                                   EraseMethod::sanitize_block, EraseMethod::format_erase};
    friend bool operator==(const ErasePolicy&, const ErasePolicy&) = default;
};

struct DriveNamespace {
    std::uint32_t id = 0;
    bool active = true;  // otherwise allocated and detached: no block device shows it, and it holds data all the same
    bool shared = false;
    bool write_protected = false;
    std::uint32_t format = 0;  // its block format and protection, as bits of Format's command: sent again as they are
    friend bool operator==(const DriveNamespace&, const DriveNamespace&) = default;
};

// What a drive says of itself, in the words of Identify Controller.
struct DriveClaims {
    std::uint8_t fna = 0;
    std::uint16_t oacs = 0;
    std::uint32_t sanicap = 0;
    bool several_controllers = false;                // CMIC: its subsystem may have more than one
    std::optional<unsigned> other_controllers = {};  // how many it has; nothing: it does not tell
    bool allocated_known = false;                    // whether it listed detached namespaces too
    std::vector<DriveNamespace> namespaces = {};     // in the order of their ids
    friend bool operator==(const DriveClaims&, const DriveClaims&) = default;
};

struct EraseCommand {  // an admin command of NVMe
    std::uint8_t opcode = 0;
    std::uint32_t nsid = 0, cdw10 = 0;
    friend bool operator==(const EraseCommand&, const EraseCommand&) = default;
};
inline constexpr std::uint8_t format_opcode = 0x80, sanitize_opcode = 0x84;
inline constexpr std::uint32_t every_namespace = 0xFFFF'FFFF;

struct SkippedMethod {
    EraseMethod method{};
    std::string why;
    friend bool operator==(const SkippedMethod&, const SkippedMethod&) = default;
};

struct ErasePlan {
    EraseMethod method{};
    std::vector<std::uint32_t> attach;   // first: detached namespaces, to be erased and read like the others
    std::vector<EraseCommand> commands;  // one after another, each must succeed; none: the host writes
    std::vector<std::uint32_t> covers;   // the namespaces that are empty afterwards
    std::vector<SkippedMethod> skipped;  // all that would have allowed a stronger claim, or that policy wanted first
    friend bool operator==(const ErasePlan&, const ErasePlan&) = default;
};
struct EraseRefusal {
    std::string why, remedy;
    std::vector<SkippedMethod> skipped;
    friend bool operator==(const EraseRefusal&, const EraseRefusal&) = default;
};

std::expected<ErasePlan, EraseRefusal> plan_erase(const DriveClaims& drive, const ErasePolicy& policy);

// "sanitize-crypto,format-erase": each once, at least one.
std::optional<ErasePolicy> parse_erase_policy(std::string_view text);
std::string print(const ErasePolicy& policy);

}  // namespace bulkhead

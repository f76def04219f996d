// What a node states about a sanitisation, and signs with its own key. The text is made once, on the node; everyone
// after that keeps and checks those very bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/evidence/signing.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead::evidence {

enum class WipeResult : std::uint8_t { failed, verified };
constexpr auto words(WipeResult) { return std::to_array<Words>({"failed", "verified"}); }

struct WipeStatement {
    std::string node;
    std::string device;  // serial or UUID: the thing itself, wherever it is plugged in later
    std::string model;
    std::string unit;                         // "gpu3/slices 4-7", "drive0", "host"
    std::string lease;                        // that was the last to have it, by its name
    std::vector<std::string> tenants;         // that had it since it was clean, by pseudonym (pseudonym.hpp)
    std::string method;                       // "overwrite", "nvme-sanitize-crypto", "reboot"
    Instant began, ended;                     // by the node's clock, which nobody else has to believe
    std::int64_t bytes = 0;                   // overwritten
    std::int64_t bytes_verified = 0;          // read back and compared
    std::optional<std::int64_t> bytes_found;  // that were not zero before; nothing: nobody looked
    std::int64_t bytes_unreachable = 0;       // of the device's memory, that no program can take
    std::string unreachable;                  // whose they are: "644939776 of the driver and its firmware, ..."
    std::string digest;                       // SHA-256, hex, of what was read back: how much, and what it adds up to
    std::int64_t ticket = 0;  // the control plane's number of this wipe, used once; where not all bytes are
                              // read back, it chooses which
    WipeResult result{};
    Grade grade = Grade::assumed;
    std::string agent_version;
    // What came later, and what older statements therefore do not have.
    std::string board;   // UUID of the GPU on which the device is an instance; empty: the device is the board
    std::string serial;  // of the board, as its maker counts
    std::string driver;  // version
    std::string vbios;   // version
    // Of a drive.
    std::string firmware;              // revision, as the drive names it
    std::string command;               // what was sent to it: "admin 80h nsid 1 cdw10 200h"
    std::string status;                // what it answered: status codes, or the words of its Sanitize log
    std::vector<std::string> skipped;  // "sanitize-crypto: the drive does not claim it (SANICAP 0x0)"
    std::string samples;               // where it was looked at before and after, and what that can miss
    std::string claim;                 // what the method and this verification allow to say; of a failed one, nothing

    static constexpr void describe(auto&& field) {
        field("node", &WipeStatement::node, "The node that states this.",
              Rule{.required = true, .format = Format::line});
        field("device", &WipeStatement::device, "Serial number or UUID of the device.",
              Rule{.required = true, .format = Format::line});
        field("model", &WipeStatement::model, "The device's model.", Rule{.format = Format::line});
        field("unit", &WipeStatement::unit, "What of the device was wiped.",
              Rule{.required = true, .format = Format::line});
        field("lease", &WipeStatement::lease, "The lease that had used it.", Rule{.format = Format::line});
        field("tenants", &WipeStatement::tenants, "The tenants that had used it since it was clean.",
              Rule{.format = Format::line});
        field("method", &WipeStatement::method, "How it was wiped.", Rule{.required = true, .format = Format::line});
        field("began", &WipeStatement::began, "When the wipe began, by the node's clock.", Rule{.required = true});
        field("ended", &WipeStatement::ended, "When its verification ended, by the node's clock.",
              Rule{.required = true});
        field("bytes", &WipeStatement::bytes, "How many bytes were wiped.", Rule{.required = true, .min = 0});
        field("bytesVerified", &WipeStatement::bytes_verified, "How many of them were read back.",
              Rule{.required = true, .min = 0});
        field("bytesFound", &WipeStatement::bytes_found, "How many bytes were not zero before.", Rule{.min = 0});
        field("bytesUnreachable", &WipeStatement::bytes_unreachable, "How many bytes no program can take, or wipe.",
              Rule{.min = 0});
        field("unreachable", &WipeStatement::unreachable, "Whose those are.", Rule{.format = Format::line});
        field("digest", &WipeStatement::digest, "SHA-256 of what was read back.", Rule{.format = Format::line});
        field("ticket", &WipeStatement::ticket,
              "The control plane's number of this wipe, used once. It chose which bytes were read back.");
        field("result", &WipeStatement::result, "Whether the wipe was verified.", Rule{.required = true});
        field("grade", &WipeStatement::grade, "How the result is known.", Rule{.required = true});
        field("agentVersion", &WipeStatement::agent_version, "The software that did it.", Rule{.format = Format::line});
        field("board", &WipeStatement::board, "UUID of the GPU that the device is an instance of.",
              Rule{.format = Format::line});
        field("serial", &WipeStatement::serial, "Serial number of the board.", Rule{.format = Format::line});
        field("driver", &WipeStatement::driver, "Version of the driver.", Rule{.format = Format::line});
        field("vbios", &WipeStatement::vbios, "Version of the board's firmware.", Rule{.format = Format::line});
        field("firmware", &WipeStatement::firmware, "Revision of the drive's firmware.", Rule{.format = Format::line});
        field("command", &WipeStatement::command, "The commands that were sent to the drive.",
              Rule{.format = Format::line});
        field("status", &WipeStatement::status, "What the drive answered to them.", Rule{.format = Format::line});
        field("skipped", &WipeStatement::skipped, "Methods that were passed over, and why.",
              Rule{.format = Format::line});
        field("samples", &WipeStatement::samples, "Where the drive was read before and after, and what that can miss.",
              Rule{.format = Format::line});
        field("claim", &WipeStatement::claim, "What may be claimed of this wipe.", Rule{.format = Format::line});
    }
    friend bool operator==(const WipeStatement&, const WipeStatement&) = default;
};

struct SignedEvidence {
    std::string statement;  // the exact text that was signed
    std::string key;        // key_id of the node's key
    std::string signature;  // base64

    static constexpr void describe(auto&& field) {
        field("statement", &SignedEvidence::statement, "The exact text that the node signed.", Rule{.required = true});
        field("key", &SignedEvidence::key, "The id of the node's key.", Rule{.required = true, .format = Format::line});
        field("signature", &SignedEvidence::signature, "Ed25519, base64.",
              Rule{.required = true, .format = Format::line});
    }
    friend bool operator==(const SignedEvidence&, const SignedEvidence&) = default;
};

std::string statement_text(const WipeStatement& statement);  // compact JSON; read_statement gives it back
Result<WipeStatement> read_statement(std::string_view text);

// Signed is "bulkhead.dev/evidence/v1\n" and the text, so that no other signature of the same key can pass for
// evidence.
SignedEvidence sign_statement(const SigningKey& key, std::string_view text);
Result<> verify_statement(const PublicKey& key, const SignedEvidence& evidence);

}  // namespace bulkhead::evidence

// What a drive says of itself: the pages of Identify, 4096 bytes each, from outside and so read strictly.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/node/erase_verdict.hpp"

namespace bulkhead::nvme {

inline constexpr std::size_t identify_bytes = 4096;
using Page = std::span<const std::uint8_t>;

namespace cns {  // which page
inline constexpr std::uint32_t name_space = 0x00, controller = 0x01, active = 0x02, allocated = 0x10,
                               allocated_namespace = 0x11, controllers = 0x13;
}

struct Controller {
    std::uint16_t vendor = 0;
    std::string serial, model, firmware;  // without padding; what is no printing character is '?'
    bool several_controllers = false;     // CMIC
    std::uint16_t id = 0;                 // CNTLID
    std::uint32_t version = 0;
    std::uint16_t oacs = 0;
    std::uint32_t sanicap = 0;
    std::uint32_t namespaces_max = 0;  // NN
    std::uint8_t fna = 0;
    friend bool operator==(const Controller&, const Controller&) = default;
};

struct NamespacePage {
    std::uint64_t blocks = 0;
    std::uint32_t block_bytes = 512;
    bool may_fail_when_deallocated = false;  // NSFEAT.DAE
    bool shared = false;                     // NMIC
    bool write_protected = false;            // NSATTR
    Deallocated deallocated{};               // DLFEAT
    std::uint32_t format = 0;  // block format and protection as bits of Format's cdw10, so that it keeps them
    std::uint64_t bytes() const { return blocks * block_bytes; }
    friend bool operator==(const NamespacePage&, const NamespacePage&) = default;
};

Result<Controller> parse_controller(Page page);
Result<NamespacePage> parse_namespace(Page page);
Result<std::vector<std::uint32_t>> parse_namespace_list(Page page);   // ascending, ended by 0
Result<std::vector<std::uint16_t>> parse_controller_list(Page page);  // ascending, after their number

}  // namespace bulkhead::nvme

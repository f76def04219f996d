// A drive for tests, behind the same admin commands and bytes as a real one: it answers Identify by pages, keeps
// contents, sanitizes in the background by its own clock, and does whatever a script wants of it that no emulator can.
// It outlives those who talk to it, as a drive outlives a loss of power.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/hw/nvme/erase.hpp"

namespace bulkhead::nvme {

class ScriptedDrive {
public:
    struct Space {
        std::vector<std::uint8_t> contents;
        bool active = true, shared = false, write_protected = false;
        std::uint8_t deallocated = 1;  // DLFEAT: zeros
        bool broken = false;           // a Format failed in the middle: reads are answered 84h
    };

    ScriptedDrive() { add(1); }
    void add(std::uint32_t nsid, std::size_t bytes = 4 << 20) {
        spaces[nsid].contents.resize(bytes);
        soil(nsid);
    }
    // What a tenant leaves that enciphers its disk itself.
    void soil_with_ciphertext(std::uint32_t nsid) {
        Rng rng{nsid * 31 + 5};
        for (std::uint8_t& byte : spaces[nsid].contents) byte = static_cast<std::uint8_t>(rng.below(256));
    }
    // What a tenant would leave: text all over.
    void soil(std::uint32_t nsid) {
        std::vector<std::uint8_t>& bytes = spaces[nsid].contents;
        for (std::size_t at = 0, row = 0; at < bytes.size(); ++row) {
            const std::string text = "row " + std::to_string(row) + " of somebody's table in " + std::to_string(nsid);
            const std::size_t size = std::min(text.size(), bytes.size() - at);
            std::memcpy(bytes.data() + at, text.data(), size);
            at += size;
        }
    }

    // ---- what it says of itself
    std::string serial = "SCRIPTED-0", model = "Scripted drive", firmware = "1.0";
    std::uint8_t fna = 0;
    std::uint16_t oacs = 0x0A;
    std::uint32_t sanicap = 0;
    bool several = false;
    std::vector<std::uint16_t> controllers{1};
    std::map<std::uint32_t, Space> spaces;

    // ---- how its Sanitize stands
    std::uint16_t sstat = 0;
    std::uint32_t scdw10 = 0;
    std::int64_t sanitize_seconds = 5, sanitize_began = 0;
    std::uint32_t estimate = 5;  // told for every kind

    // ---- what the script wants of it
    std::set<std::uint32_t> lies;        // keeps these namespaces' contents, and says that all went well
    std::size_t keeps = 0;               // one piece of 4 KiB in so many stays as it was
    bool noise = false;                  // what is erased deciphers to noise
    bool hangs = false;                  // Sanitize never ends
    bool fails_to_sanitize = false;      //
    bool forgets_its_command = false;    // its log names another one
    bool written_since = false;          //
    std::uint16_t refuses_sanitize = 0;  // with this status
    std::map<std::uint32_t, std::uint16_t> format_fails;  // by namespace, in the middle
    std::int64_t away_until = 0;                          // answers nothing before
    std::set<std::uint32_t> held_elsewhere;
    bool fails_to_flush = false;

    // ---- what happened
    std::int64_t seconds = 0;
    std::vector<EraseCommand> received;  // that change something
    int resets = 0, flushes = 0;

    EraseClock clock() {
        return {.now = [this] { return std::chrono::steady_clock::time_point{std::chrono::seconds{seconds}}; },
                .sleep = [this](std::chrono::milliseconds time) { seconds += (time.count() + 999) / 1000; }};
    }
    void begin_sanitize(std::uint32_t cdw10) {
        scdw10 = cdw10;
        sstat = 2;
        sanitize_began = seconds;
    }
    void go_on() {
        if ((sstat & 7U) != 2 || hangs || seconds < sanitize_began + sanitize_seconds) return;
        if (fails_to_sanitize) {
            sstat = 3;
            return;
        }
        sstat = written_since ? 1 : 0x101;
        for (auto& [id, space] : spaces) clear(id);
    }
    void clear(std::uint32_t nsid) {
        if (lies.contains(nsid)) return;
        Rng rng{static_cast<std::uint64_t>(seconds) * 1000 + nsid + received.size() * 77};
        std::vector<std::uint8_t>& bytes = spaces[nsid].contents;
        for (std::size_t at = 0; at < bytes.size(); ++at)
            if (keeps == 0 || at / 4096 % keeps != 0) bytes[at] = noise ? static_cast<std::uint8_t>(rng.below(256)) : 0;
        spaces[nsid].broken = false;
    }
};

// One who talks to it; another can after this one is gone.
class ScriptedTransport final : public Transport {
public:
    explicit ScriptedTransport(ScriptedDrive& drive) : drive_{drive} {}

    Result<Completion> admin(const Command& command) override {
        drive_.go_on();
        if (drive_.seconds < drive_.away_until) return fail(Code::unavailable, "no such device", "");
        switch (command.opcode) {
            case 0x06:
                return identify(command);
            case 0x02:
                return log(command);
            case 0x80:
                return format(command);
            case 0x84:
                return sanitize(command);
            case 0x15:
                drive_.spaces.at(command.nsid).active = true;
                drive_.received.push_back({command.opcode, command.nsid, command.cdw10});
                return Completion{};
            default:
                return Completion{0x01, 0};
        }
    }
    Result<> rescan() override { return {}; }
    Result<> fresh() override {
        ++drive_.resets;
        return {};
    }
    Result<> hold(std::span<const std::uint32_t> namespaces) override {
        for (const std::uint32_t id : namespaces) {
            if (drive_.held_elsewhere.contains(id))
                return fail(Code::conflict, "namespace " + std::to_string(id) + " is held by somebody else", "");
            if (!drive_.spaces.at(id).active) return fail(Code::not_found, "it has no block device", "");
            held_.insert(id);
        }
        return {};
    }
    Result<> read(std::uint32_t nsid, std::uint64_t offset, std::span<std::uint8_t> into) override {
        drive_.go_on();
        if (auto refused = refuses_io(nsid); !refused) return refused;
        const std::vector<std::uint8_t>& bytes = drive_.spaces.at(nsid).contents;
        if (offset + into.size() > bytes.size()) return fail(Code::unavailable, "beyond its end", "");
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
        return {};
    }
    Result<> write(std::uint32_t nsid, std::uint64_t offset, std::span<const std::uint8_t> from) override {
        if (auto refused = refuses_io(nsid); !refused) return refused;
        if (drive_.lies.contains(nsid)) return {};
        std::ranges::copy(from, drive_.spaces.at(nsid).contents.begin() + static_cast<std::ptrdiff_t>(offset));
        return {};
    }
    Result<> flush(std::uint32_t nsid) override {
        if (auto refused = refuses_io(nsid); !refused) return refused;
        ++drive_.flushes;
        if (drive_.fails_to_flush) return fail(Code::unavailable, "it cannot be flushed", "");
        return {};
    }

private:
    Result<> refuses_io(std::uint32_t nsid) const {
        if (!held_.contains(nsid)) return fail(Code::invalid, "it is not held", "");
        if ((drive_.sstat & 7U) == 2) return fail(Code::unavailable, print_status(status::sanitize_in_progress), "");
        if ((drive_.sstat & 7U) == 3) return fail(Code::unavailable, print_status(status::sanitize_failed), "");
        if (drive_.spaces.at(nsid).broken) return fail(Code::unavailable, print_status(0x84), "");
        return {};
    }

    static void put(std::span<std::uint8_t> page, std::size_t at, std::uint64_t value, std::size_t size) {
        for (std::size_t i = 0; i < size; ++i) page[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
    }
    static void put_text(std::span<std::uint8_t> page, std::size_t at, const std::string& text, std::size_t size) {
        for (std::size_t i = 0; i < size; ++i)
            page[at + i] = i < text.size() ? static_cast<std::uint8_t>(text[i]) : std::uint8_t{' '};
    }

    Completion identify(const Command& command) const {
        const std::span<std::uint8_t> page = command.data;
        switch (command.cdw10 & 0xFFU) {
            case cns::controller:
                put(page, 0, 0x1234, 2);
                put_text(page, 4, drive_.serial, 20);
                put_text(page, 24, drive_.model, 40);
                put_text(page, 64, drive_.firmware, 8);
                page[76] = drive_.several ? 2 : 0;
                put(page, 78, 1, 2);
                put(page, 80, 0x10400, 4);
                put(page, 256, drive_.oacs, 2);
                put(page, 328, drive_.sanicap, 4);
                put(page, 516, 256, 4);
                page[524] = drive_.fna;
                return {};
            case cns::active:
            case cns::allocated: {
                std::size_t at = 0;
                for (const auto& [id, space] : drive_.spaces)
                    if (id > command.nsid && (space.active || (command.cdw10 & 0xFFU) == cns::allocated))
                        put(page, 4 * at++, id, 4);
                return {};
            }
            case cns::name_space:
            case cns::allocated_namespace: {
                const auto found = drive_.spaces.find(command.nsid);
                if (found == drive_.spaces.end()) return {0x0B, 0};
                put(page, 0, found->second.contents.size() / 512, 8);
                page[30] = found->second.shared ? 1 : 0;
                page[33] = found->second.deallocated;
                page[99] = found->second.write_protected ? 1 : 0;
                page[130] = 9;
                return {};
            }
            case cns::controllers:
                if (drive_.controllers.empty()) return {0x02, 0};
                put(page, 0, drive_.controllers.size(), 2);
                for (std::size_t i = 0; i < drive_.controllers.size(); ++i)
                    put(page, 2 + 2 * i, drive_.controllers[i], 2);
                return {};
            default:
                return {0x02, 0};
        }
    }

    Completion log(const Command& command) const {
        if ((command.cdw10 & 0xFFU) != 0x81 || drive_.sanicap == 0) return {0x02, 0};
        const bool goes_on = (drive_.sstat & 7U) == 2;
        put(command.data, 0, goes_on ? 0x4000 : 0xFFFF, 2);
        put(command.data, 2, drive_.sstat, 2);
        put(command.data, 4, drive_.forgets_its_command ? 0 : drive_.scdw10, 4);
        for (const std::size_t at : {8UL, 12UL, 16UL}) put(command.data, at, drive_.estimate, 4);
        return {};
    }

    Completion sanitize(const Command& command) {
        drive_.received.push_back({command.opcode, command.nsid, command.cdw10});
        if (drive_.refuses_sanitize != 0) return {drive_.refuses_sanitize, 0};
        if ((drive_.sstat & 7U) == 2) return {status::sanitize_in_progress, 0};
        drive_.begin_sanitize(command.cdw10);
        return {};
    }

    Completion format(const Command& command) {
        drive_.received.push_back({command.opcode, command.nsid, command.cdw10});
        if ((drive_.sstat & 7U) == 2) return {status::sanitize_in_progress, 0};
        if ((drive_.sstat & 7U) == 3) return {status::sanitize_failed, 0};
        const bool all = command.nsid == every_namespace || (drive_.fna & 2U) != 0;
        for (auto& [id, space] : drive_.spaces) {
            if (!all && id != command.nsid) continue;
            if (space.write_protected) return {0x20, 0};
            if (const auto fails = drive_.format_fails.find(id); fails != drive_.format_fails.end()) {
                std::fill_n(space.contents.begin(), space.contents.size() / 2, std::uint8_t{0});
                space.broken = true;
                return {fails->second, 0};
            }
            drive_.clear(id);
        }
        return {};
    }

    ScriptedDrive& drive_;
    std::set<std::uint32_t> held_;
};

}  // namespace bulkhead::nvme

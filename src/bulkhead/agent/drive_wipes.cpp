// Erasing a drive and reading it back, with everything that its evidence says.
#include <fmt/format.h>
#include <sys/random.h>

#include <cstring>

#include "bulkhead/agent/drives.hpp"
#include "bulkhead/hw/nvme/virtual_machine.hpp"

namespace bulkhead::agent {

namespace {

// Where it is looked at before, and by which key that is remembered, is nobody's to know.
Result<nvme::EraseSecret> new_secret() {
    nvme::EraseSecret secret{.key = std::string(32, '\0'), .seed = 0};
    if (::getrandom(secret.key.data(), secret.key.size(), 0) != static_cast<ssize_t>(secret.key.size()) ||
        ::getrandom(&secret.seed, sizeof secret.seed, 0) != static_cast<ssize_t>(sizeof secret.seed))
        return fail(Code::unavailable, fmt::format("the system gives no random numbers: {}", std::strerror(errno)), "");
    return secret;
}

std::int64_t bytes_covered(const nvme::Erasure& erasure) {
    std::int64_t sum = 0;
    for (const std::uint32_t id : erasure.covers) sum += static_cast<std::int64_t>(erasure.facts.pages.at(id).bytes());
    return sum;
}

void describe(OperationResult& result, const nvme::Drive& drive, const nvme::Erasure& erasure) {
    result.device_identity = drive.serial;
    result.model = drive.model;
    result.firmware = drive.firmware;
    result.grade = drive.grade();
    result.command = erasure.command;
    result.status = erasure.status;
    for (const SkippedMethod& one : erasure.skipped)
        result.skipped.push_back(fmt::format("{}: {}", word(one.method), one.why));
    result.bytes = bytes_covered(erasure);
    if (!erasure.planned) return;
    result.method = method_name(erasure.method);
    result.claim = claim_of(erasure.method);
}

}  // namespace

OperationResult Drives::wipe(const Wipe& what) {
    const auto refused = [&](const Error& error) {
        OperationResult result{.ok = false, .why = with_remedy(error), .untouched = true};
        result.device_identity = serial_of(what.device).value_or("");
        return result;
    };
    {
        const std::scoped_lock lock{mutex_};
        wiped_.erase(what.device);
    }
    const auto drive = find(what.device);
    if (!drive) return refused(drive.error());
    const auto secret = new_secret();
    if (!secret) return refused(secret.error());
    if (const auto is_free = wait_until_free(*drive); !is_free) return refused(is_free.error());
    auto transport = settings_.open(settings_.tree, *drive);
    if (!transport) return refused(transport.error());
    nvme::Erasure erasure = nvme::erase(**transport, settings_.erase, *secret, settings_.clock);
    OperationResult result{.ok = erasure.done, .why = erasure.why, .untouched = erasure.untouched};
    describe(result, *drive, erasure);
    if (!erasure.done) {
        result.bytes = 0;
        return result;
    }
    const std::scoped_lock lock{mutex_};
    wiped_.insert_or_assign(what.device, Wiped{*std::move(transport), std::move(erasure)});
    return result;
}

OperationResult Drives::verify(const Verify& what) {
    std::optional<Wiped> wiped;
    {
        const std::scoped_lock lock{mutex_};
        if (const auto found = wiped_.find(what.device); found != wiped_.end()) {
            wiped = std::move(found->second);
            wiped_.erase(found);
        }
    }
    if (!wiped) return {.ok = false, .why = "it was not wiped by this agent since it started"};
    const std::size_t samples = settings_.erase.samples;
    const EraseVerdict verdict =
        nvme::verify(*wiped->transport, wiped->erasure, samples, what.sample_seed, settings_.clock);
    OperationResult result{.ok = verdict.erased(), .why = verdict.why_not()};
    result.bytes = std::min(verdict.bytes(), bytes_covered(wiped->erasure));  // both ends may have been read twice
    result.bytes_residue = verdict.bytes_residue();
    result.digest = verdict.digest();
    result.samples = nvme::print_samples(wiped->erasure, verdict);
    if (const std::string machine = nvme::virtual_machine(settings_.tree); !machine.empty())
        result.samples +=
            fmt::format("; read in a virtual machine ({}), to which whoever runs it can show anything", machine);
    return result;
}

}  // namespace bulkhead::agent

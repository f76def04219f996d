// Functions and tests of the fences: which may be tested with, who waits for whom, and what a test leaves.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "bulkhead/agent/function_record.hpp"
#include "bulkhead/agent/functions.hpp"
#include "bulkhead/hw/rdma/nic_identity.hpp"

namespace bulkhead::agent {

namespace {

bool is_of_test(const FunctionRecord& record) {
    return record.lease >= first_test_lease && record.lease <= last_test_lease;
}

}  // namespace

bool Functions::is_under_test(std::uint16_t function) const {
    return under_test_ && tester_ != std::this_thread::get_id() &&
           std::ranges::find(*under_test_, function) != under_test_->end();
}

bool Functions::is_waited_for(std::uint16_t function) const {
    const std::scoped_lock lock{test_mutex_};
    return waited_for_.contains(function);
}

// The lock for a change of that function, once no test has it.
std::unique_lock<std::mutex> Functions::lock_for(std::uint16_t function) {
    std::unique_lock waiting{test_mutex_};
    if (!is_under_test(function)) {
        waiting.unlock();
        std::unique_lock change{mutex_};
        waiting.lock();
        if (!is_under_test(function)) return change;
    }
    // No test begins on it again before its turn has come.
    const auto place = waited_for_.insert(function);
    while (!test_over_.wait_for(waiting, test_patience, [&] { return !is_under_test(function); })) end_test_ = true;
    waiting.unlock();
    std::unique_lock change{mutex_};
    waiting.lock();
    waited_for_.erase(place);
    test_over_.notify_all();  // a test may be waiting for this turn
    return change;
}

Result<> Functions::check_testable(std::uint16_t function, std::span<const std::uint16_t> clean) const {
    if (auto free = check_free(function); !free) return free;
    const std::string path = record_path(known_[function].address);
    std::error_code wrong;
    if (std::filesystem::exists(path, wrong) || wrong)
        return fail(Code::conflict, fmt::format("{} is a lease's", known_[function].address), "wait for its end");
    // Whose it was last is what its next wipe is verified by.
    if (std::ranges::find(clean, function) == clean.end() && (std::filesystem::exists(path + ".last", wrong) || wrong))
        return fail(Code::conflict, fmt::format("{} was a lease's and is not wiped since", known_[function].address),
                    "wait for its wipe");
    return {};
}

Functions::Testable Functions::pairs_to_test(std::span<const std::uint16_t> held,
                                             std::span<const std::uint16_t> clean) {
    // Whoever asks does not wait: a driver may take its time.
    const std::unique_lock lock{mutex_, std::try_to_lock};
    if (!lock) return {.pairs = {}, .why_not = {"a function is being set for somebody right now"}};
    struct OfNic {
        std::vector<std::uint16_t> free;
        std::size_t all = 0;
        std::string why;  // of the last that is not free
    };
    std::map<std::string, OfNic> nics;
    for (std::size_t at = 0; at < known_.size(); ++at) {
        const auto function = static_cast<std::uint16_t>(at);
        if (known_[function].is_gone) continue;
        OfNic& nic = nics[known_[function].physical];
        ++nic.all;
        if (std::ranges::find(held, function) != held.end()) {
            nic.why = fmt::format("{} is held, or waits for its wipe", known_[function].address);
            continue;
        }
        if (auto ok = check_testable(function, clean); !ok)
            nic.why = ok.error().what;
        else
            nic.free.push_back(function);
    }
    Testable found;
    for (const auto& [address, nic] : nics)
        if (nic.free.size() >= 2) {
            found.pairs.push_back({nic.free[0], nic.free[1]});
            std::error_code ignored;  // one that stays is seen when the test begins
            for (const std::uint16_t function : found.pairs.back())
                std::filesystem::remove(record_path(known_[function].address) + ".last", ignored);
        } else {
            found.why_not.push_back(fmt::format("a test takes two functions of {}, and {} of {} are free{}{}", address,
                                                nic.free.size(), nic.all, nic.why.empty() ? "" : ": ", nic.why));
        }
    return found;
}

NicFacts Functions::nic_of(std::uint16_t function) const {
    const Known& one = known_[function];
    NicFacts facts{.address = one.physical,
                   .mac = one.physical_mac,
                   .model = one.model,
                   .driver = {},
                   .firmware = {},
                   .grade = one.is_emulated ? Grade::emulated : Grade::silicon};
    if (auto said = rdma::identity_of(*host_, one.physical_name)) {
        facts.driver = std::move(said->driver);
        facts.firmware = std::move(said->firmware);
    }
    return facts;
}

Result<Functions::TestHold> Functions::hold_for_test(FunctionPair pair) {
    const auto is_wanted = [&] {
        return std::ranges::any_of(pair, [&](std::uint16_t function) { return waited_for_.contains(function); });
    };
    {
        std::unique_lock waiting{test_mutex_};
        test_over_.wait_for(waiting, test_patience, [&] { return !is_wanted(); });
    }
    const std::scoped_lock change{mutex_};
    for (const std::uint16_t function : pair)
        if (auto ok = check_testable(function, {}); !ok) return std::unexpected(ok.error());
    const std::scoped_lock lock{test_mutex_};
    if (under_test_) return fail(Code::conflict, "a test of the fences is under way", "wait for its end");
    if (is_wanted()) return fail(Code::conflict, "a function is wanted by somebody", "ask again");
    under_test_ = pair;
    tester_ = std::this_thread::get_id();
    end_test_ = false;
    return TestHold{*this};
}

Functions::TestHold::~TestHold() {
    if (of_ == nullptr) return;
    {
        const std::scoped_lock lock{of_->test_mutex_};
        of_->under_test_.reset();
    }
    of_->test_over_.notify_all();
}

std::vector<std::string> Functions::clean_after_test(FunctionPair pair) {
    std::vector<std::string> left;
    for (const std::uint16_t function : pair)
        if (const OperationResult wiped = wipe(function); !wiped.ok) left.push_back(wiped.why);
    for (const std::uint16_t function : pair) {
        if (const OperationResult seen = verify(function); !seen.ok) left.push_back(seen.why);
        if (!left.empty()) continue;
        std::error_code ignored;
        std::filesystem::remove(record_path(known_[function].address) + ".last", ignored);
    }
    return left;
}

std::vector<std::pair<std::uint16_t, std::string>> Functions::take_back_tests() {
    std::vector<std::pair<std::uint16_t, std::string>> stuck;
    for (const FunctionRecord& record : records()) {
        if (!is_of_test(record)) continue;
        const auto at = std::ranges::find(known_, record.device, &Known::address);
        const auto function = static_cast<std::uint16_t>(at - known_.begin());
        if (const OperationResult wiped = wipe(function); !wiped.ok) stuck.emplace_back(function, wiped.why);
    }
    // One at a time: a namespace of the other end is nobody's until that is gone, too.
    for (std::size_t at = 0; at < known_.size(); ++at) {
        const auto function = static_cast<std::uint16_t>(at);
        const std::string last = record_path(known_[function].address) + ".last";
        const auto text = container::read_whole(last);
        const auto record = text ? read_function_record(*text) : std::unexpected(text.error());
        if (!record || !is_of_test(*record) || known_[function].is_gone) continue;
        if (const OperationResult seen = verify(function); !seen.ok) {
            stuck.emplace_back(function, seen.why);
            continue;
        }
        std::error_code ignored;
        std::filesystem::remove(last, ignored);
    }
    return stuck;
}

}  // namespace bulkhead::agent

// What the hands do: read a request, check it, do it, answer. One at a time, in the order they came.
#include <fmt/format.h>

#include <set>

#include "bulkhead/agent/hands.hpp"

namespace bulkhead::agent {

namespace {

// Each is a thread of ours, and somebody else decides how many there are.
constexpr std::size_t under_way_max = 512;

class Work {
public:
    Work(Hardware& hardware, bool has_network) : hardware_{hardware}, has_network_{has_network} {}

    hands::Answer answer(const hands::Meet&) {
        return hands::Met{hardware_.grade(), hardware_.boot_id(), has_network_};
    }
    hands::Answer answer(const hands::TakeStock&) {
        auto found = hardware_.inventory();
        if (!found) return std::move(found.error());
        return *std::move(found);
    }
    hands::Answer answer(const hands::Begin& begin) {
        const std::int64_t number = begin.operation.number;
        if (under_way_.contains(number))
            return Error{Code::conflict, fmt::format("operation {} is under way already", number),
                         "this is a fault of the agent: keep its log, and start it again"};
        if (auto sound = hands::check(begin); !sound) return std::move(sound.error());
        if (under_way_.size() >= under_way_max)
            return Error{Code::exhausted, fmt::format("{} operations are under way; no more are begun", under_way_max),
                         "see what they wait for"};
        if (auto begun = hardware_.begin(begin.now, begin.operation); !begun) return std::move(begun.error());
        under_way_.insert(number);
        return hands::Begun{};
    }
    hands::Answer answer(const hands::ReadOutput& output) {
        if (auto sound = hands::check(output); !sound) return std::move(sound.error());
        auto piece = hardware_.output(output.place);
        if (!piece) {
            // A file that cannot be read is the asker's misfortune; `unavailable` would say that we are gone.
            if (piece.error().code == Code::unavailable) piece.error().code = Code::corrupt;
            return std::move(piece.error());
        }
        return *std::move(piece);
    }
    hands::Answer answer(const hands::ReadTelemetry&) {
        auto newest = hardware_.telemetry();
        if (!newest) return std::move(newest.error());
        return hands::Measures{*std::move(newest)};
    }
    hands::Answer answer(const hands::AttackFences& attack) {
        if (auto sound = hands::check(attack); !sound) return std::move(sound.error());
        auto begun = hardware_.test_fabric(attack.order);
        if (begun) return hands::Begun{};
        if (begun.error().code == Code::unavailable) begun.error().code = Code::corrupt;  // we are not gone
        return std::move(begun.error());
    }
    hands::Answer answer(const hands::Poll& poll) {
        auto news = hardware_.poll(poll.now);
        if (!news) return std::move(news.error());
        for (const OperationResult& result : news->results) under_way_.erase(result.number);
        return hands::Polled{*std::move(news), hardware_.boot_id(), hardware_.next_due()};
    }

private:
    Hardware& hardware_;
    bool has_network_;
    std::set<std::int64_t> under_way_;
};

}  // namespace

Result<> serve_hands(HandsLine& line, Hardware& hardware, bool has_network) {
    Work work{hardware, has_network};
    for (;;) {
        const auto heard = line.receive(hands::request_bytes_max);
        if (!heard) return std::unexpected(heard.error());
        if (!*heard) return {};
        const auto request = hands::read_request(**heard);
        if (!request) return std::unexpected(request.error());
        const hands::Answer answer = std::visit([&](const auto& what) { return work.answer(what); }, *request);
        if (!line.send(hands::to_bytes(answer))) return {};
    }
}

void explain_no_hands(HandsLine& line, const Error& why) {
    const auto heard = line.receive(hands::request_bytes_max);
    if (heard && *heard) (void)line.send(hands::to_bytes(why));
}

}  // namespace bulkhead::agent

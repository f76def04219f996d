#include "bulkhead/shell/log_key_files.hpp"

#include <fmt/core.h>

#include <charconv>
#include <filesystem>

#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/base/hash.hpp"

namespace bulkhead::shell {

namespace {

constexpr std::size_t history_max = 16 << 20;

// Nothing when there is no such file.
Result<std::optional<std::string>> read_if_there(const std::string& path, std::size_t at_most = 1 << 20) {
    std::error_code failed;
    if (!std::filesystem::exists(path, failed)) return std::nullopt;
    auto text = auth::read_secret(path, at_most);
    if (!text) return std::unexpected(text.error());
    return *std::move(text);
}

}  // namespace

Result<std::optional<NextLogKey>> LogKeyFiles::next() const {
    const auto text = read_if_there(path("log.next"));
    if (!text) return std::unexpected(text.error());
    if (!*text) return std::nullopt;
    const auto corrupt = [&] {
        return fail(Code::corrupt, fmt::format("{} does not hold a key that is to follow", path("log.next")),
                    "remove it: the log keeps the key it has, and the change can be asked for again");
    };
    const std::size_t blank = (*text)->find(' ');
    if (blank == std::string::npos || !(*text)->ends_with('\n')) return corrupt();
    auto seed = from_hex(std::string_view{**text}.substr(0, blank));
    std::int64_t since = -1;
    const char *const begin = (*text)->data() + blank + 1, *const end = (*text)->data() + (*text)->size() - 1;
    if (const auto read = std::from_chars(begin, end, since); read.ec != std::errc{} || read.ptr != end || since < 0)
        return corrupt();
    if (!seed) return corrupt();
    auto key = evidence::SigningKey::from_seed(*seed);
    if (!key) return corrupt();
    return NextLogKey{*std::move(key), *std::move(seed), since};
}

Result<NextLogKey> LogKeyFiles::begin(const std::string& seed, std::int64_t since) const {
    auto key = evidence::SigningKey::from_seed(seed);
    if (!key) return std::unexpected(key.error());
    if (auto written = auth::write_secret(path("log.next"), fmt::format("{} {}\n", to_hex(seed), since)); !written)
        return std::unexpected(written.error());
    return NextLogKey{*std::move(key), seed, since};
}

Result<> LogKeyFiles::abandon() const {
    std::error_code failed;
    std::filesystem::remove(path("log.next"), failed);
    if (failed)
        return fail(Code::unavailable, fmt::format("{} cannot be removed: {}", path("log.next"), failed.message()), "");
    return {};
}

Result<evidence::KeyHistory> LogKeyFiles::history(const evidence::VerifierKey& first) const {
    const auto text = read_if_there(path("log.history"), history_max);
    if (!text) return std::unexpected(text.error());
    if (!*text) return evidence::KeyHistory{.first = print(first)};
    auto history = evidence::read_key_history(**text);
    if (!history)
        return fail(Code::corrupt, fmt::format("{}: {}", path("log.history"), history.error().what),
                    "put it back from a copy of this folder, or from whoever has asked for /v1/log/keys");
    return history;
}

Result<> LogKeyFiles::keep(const evidence::KeyHistory& history) const {
    return auth::write_secret(path("log.history"), print(history));
}

Result<> LogKeyFiles::roll_forward() const {
    const auto following = next();
    if (!following) return std::unexpected(following.error());
    if (!*following) return {};
    const auto text = read_if_there(path("log.history"), history_max);
    if (!text) return std::unexpected(text.error());
    if (!*text) return {};
    const auto known = history({});
    if (!known) return std::unexpected(known.error());
    if (known->rotations.empty()) return {};
    const auto record = evidence::read_record(known->rotations.back().record.payload);
    const auto change =
        record ? evidence::key_change_of(*record) : Result<evidence::KeyChange>{std::unexpected(record.error())};
    if (!change) return std::unexpected(change.error());
    if (change->after.key != (*following)->key.public_key()) return {};
    if (auto written = auth::write_secret(path("log.seed"), (*following)->seed); !written) return written;
    if (auto written = auth::write_secret(path("log.vkey"), print(change->after) + "\n"); !written) return written;
    return abandon();
}

}  // namespace bulkhead::shell

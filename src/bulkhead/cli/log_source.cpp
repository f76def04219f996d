#include "bulkhead/cli/log_source.hpp"

#include <fmt/core.h>

#include <mutex>

#include "bulkhead/cli/input.hpp"
#include "bulkhead/evidence/key_history.hpp"

namespace bulkhead::cli {

namespace {

std::unexpected<Error> only_to_be_read() {
    return fail(Code::denied, "this log is only read here", "its server writes it");
}

class ServedLog final : public audit::Files {
public:
    explicit ServedLog(Client client) : client_{std::move(client)} {}

    Result<std::optional<std::string>> read(const std::string& path) const override {
        const std::lock_guard lock{mutex_};
        auto reply = client_.send({.target = "/v1/log/" + path});
        if (!reply) return std::unexpected(reply.error());
        if (reply->status == 404) return std::nullopt;
        if (reply->status != 200) return std::unexpected(error_of(*reply));
        return std::move(reply->body);
    }
    // Which older versions of a tile a server still has, nobody needs to know.
    Result<std::vector<std::string>> list(const std::string&) const override { return {}; }
    Result<> put(std::span<const audit::NewFile>) override { return only_to_be_read(); }
    Result<> remove(const std::string&) override { return only_to_be_read(); }

private:
    mutable std::mutex mutex_;
    mutable Client client_;
};

class StoredLog final : public audit::Files {
public:
    StoredLog(std::unique_ptr<audit::Files> files, std::string keys)
        : files_{std::move(files)}, keys_{std::move(keys)} {}

    Result<std::optional<std::string>> read(const std::string& path) const override {
        if (path != "keys") return files_->read(path);
        if (keys_.empty()) return std::nullopt;
        auto text = read_file(keys_);
        if (!text) return std::unexpected(text.error());
        return *std::move(text);
    }
    Result<std::vector<std::string>> list(const std::string& directory) const override {
        return files_->list(directory);
    }
    Result<> put(std::span<const audit::NewFile>) override { return only_to_be_read(); }
    Result<> remove(const std::string&) override { return only_to_be_read(); }

private:
    std::unique_ptr<audit::Files> files_;
    std::string keys_;
};

}  // namespace

std::shared_ptr<const audit::Files> log_of_server(Client client) {
    return std::make_shared<ServedLog>(std::move(client));
}

Result<std::shared_ptr<const audit::Files>> log_of_directory(const std::string& directory, const std::string& keys) {
    auto files = audit::open_directory(directory);
    if (!files) return std::unexpected(files.error());
    return std::make_shared<StoredLog>(*std::move(files), keys);
}

Result<evidence::VerifierKey> read_key(const std::string& given) {
    if (auto key = evidence::parse_verifier_key(given)) return key;
    auto text = read_file(given);
    if (!text)
        return fail(Code::invalid, fmt::format("\"{}\" is neither a log's key nor a file", given.substr(0, 100)),
                    "the server prints its key when it starts; GET /v1/log/key gives it too");
    return evidence::parse_verifier_key(text->substr(0, text->find_first_of("\r\n")));
}

Result<evidence::LogKeys> read_keys(const std::string& given, const std::string& history) {
    auto key = read_key(given);
    if (!key) return std::unexpected(key.error());
    if (history.empty()) return evidence::LogKeys{*std::move(key)};
    const auto text = read_file(history);
    if (!text) return std::unexpected(text.error());
    const auto read = evidence::read_key_history(*text);
    if (!read) return std::unexpected(read.error());
    return evidence::keys_of(*read, *key);
}

}  // namespace bulkhead::cli

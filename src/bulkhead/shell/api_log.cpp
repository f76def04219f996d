// The audit log: its signed checkpoint and tiles as they lie on disk, records for those who may read them,
// certificates.
#include <fmt/core.h>

#include <filesystem>

#include "bulkhead/audit/files.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/evidence/tile.hpp"
#include "bulkhead/shell/api.hpp"
#include "bulkhead/store/backup.hpp"

namespace bulkhead::shell {

void Api::serve_tile(const std::string& path, std::string content_type, const Respond& respond) {
    const auto files = audit::open_directory(settings_.tiles);
    if (!files) return respond(problem(files.error()));
    auto bytes = (*files)->read(path);
    if (!bytes) return respond(problem(bytes.error()));
    if (!*bytes)
        return respond(problem(
            Error{Code::not_found, fmt::format("the log has no {} yet", path), "read the checkpoint for its size"}));
    respond({.content_type = std::move(content_type), .body = **std::move(bytes)});
}

void Api::log_checkpoint(const Call&, const Respond& respond) {
    serve_tile("checkpoint", "text/plain; charset=utf-8", respond);
}

void Api::log_tile(const Call& call, const Respond& respond) {
    // Only what the log itself would have written is looked for: no other name reaches the disk.
    const auto tile = evidence::parse_tile_path("tile/" + call.path("path"));
    if (!tile)
        return respond(problem(
            Error{Code::not_found, "this is not the path of a tile", "c2sp.org/tlog-tiles says how they are named"}));
    serve_tile(evidence::path_of(*tile), "application/octet-stream", respond);
}

namespace {

// Of a record that calls its tenant by a pseudonym: who that is.
std::optional<evidence::TenantOpening> opening_for(Certificates& certificates, const std::string& payload) {
    if (payload.find("\"tenant\":\"~") == std::string::npos) return std::nullopt;
    const auto record = evidence::read_record(payload);
    return record ? certificates.opening(record->tenant) : std::nullopt;
}

}  // namespace

void Api::log_records(const Call& call, const Respond& respond) {
    const auto from = number_of(call, "from", 0, {0, INT64_MAX - 1000});
    const auto limit = number_of(call, "limit", 100, {1, 1000});
    if (!from || !limit) return respond(problem(!from ? from.error() : limit.error()));
    const auto tenant = whose(call, Permission::read_log);
    if (!tenant) return respond(problem(tenant.error()));
    const auto leaves = tenant->empty() ? parts_.certificates.leaves(*from, *limit)
                                        : parts_.certificates.leaves_of(*tenant, *from, *limit);
    if (!leaves) return respond(problem(leaves.error()));
    std::int64_t number = *from;
    JsonWriter json{JsonLayout::compact};
    json.begin_object();
    json.key("items");
    json.begin_array();
    for (const Leaf& leaf : *leaves) {
        json.begin_object();
        if (tenant->empty())
            json.member("index", leaf.index);
        else
            json.member("number", number++);
        json.member("entry", to_hex(bytes_of(leaf.entry)));
        if (leaf.payload.empty()) {
            json.member("lost", true);
        } else {
            json.member("salt", to_hex(leaf.salt));
            json.member("payload", leaf.payload);
            if (const auto opened = opening_for(parts_.certificates, leaf.payload)) {
                json.key("tenant");
                write(json, *opened);
            }
        }
        json.end_object();
    }
    json.end_array();
    json.end_object();
    respond({.body = json.take()});
}

void Api::certificates(const Call& call, const Respond& respond) {
    const std::string lease{call.query("lease")}, node{call.query("node")};
    if (lease.empty() == node.empty())
        return respond(
            problem(Error{Code::invalid, "a certificate is about one lease or one node", "?lease=NAME or ?node=NAME"}));
    const auto limit = number_of(call, "limit", 100, {1, 100});
    const auto from = number_of(call, "from", -1, {0, INT64_MAX});
    if (!limit || !from) return respond(problem(!limit ? limit.error() : from.error()));
    if (*from >= 0 && lease.empty())
        return respond(problem(Error{Code::invalid, "a node's certificates have no pages", "the newest: ?limit="}));
    const auto tenant = whose(call, lease.empty() ? Permission::read_fleet : Permission::read_tenant);
    if (!tenant) return respond(problem(tenant.error()));
    evidence::CertificateList list;
    if (lease.empty()) {
        auto found = parts_.certificates.of_node(node, static_cast<std::size_t>(*limit), *tenant);
        if (!found) return respond(problem(found.error()));
        list.certificates = *std::move(found);
    } else {
        Certificates::Page page{.limit = static_cast<std::size_t>(*limit)};
        if (*from >= 0) page.from = *from;
        auto found = parts_.certificates.of_lease(lease, page, *tenant);
        if (!found) return respond(problem(found.error()));
        list = *std::move(found);
    }
    if (call.query("pseudonymous") == "true") {
        for (auto* certificates : {&list.certificates, &list.failed})
            for (evidence::Certificate& certificate : *certificates) certificate.tenant.reset();
        if (list.consists) list.consists->tenant.reset();
    }
    respond({.body = print(list)});
}

namespace {
constexpr std::string_view backup_begin = "backup-", backup_end = ".db";
}

void remove_unfinished_backups(const std::string& scratch) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator{scratch, ignored}) {
        const std::string name = entry.path().filename();
        // Also what the copy's store keeps beside it: backup-7.db-wal.
        if (name.starts_with(backup_begin) && name.find(backup_end) != name.npos)
            std::filesystem::remove(entry.path(), ignored);
    }
}

void Api::backup(const Call&, const Respond& respond) {
    if (backing_up_.exchange(true))
        return respond(problem(Error{Code::conflict, "a backup is being taken", "ask again when it is done"}));
    const auto take = [&]() -> Result<Response> {
        auto file = std::make_shared<const TemporaryFile>(
            fmt::format("{}/{}{}{}", settings_.scratch, backup_begin, now().ms, backup_end));
        auto copy = store::Backup::start(settings_.store, file->path());
        if (!copy) return std::unexpected(copy.error());
        for (;;) {
            const auto progress = copy->step();
            if (!progress) return std::unexpected(progress.error());
            if (progress->done) break;
        }
        Response response{.content_type = "application/vnd.sqlite3", .file = std::move(file)};
        const store::Position position = copy->position();
        response.headers = {{"Bulkhead-Epoch", std::to_string(position.epoch)},
                            {"Bulkhead-Log-Size", std::to_string(position.log_size)}};
        return response;
    };
    auto response = take();
    backing_up_.store(false);
    if (!response) return respond(problem(response.error()));
    parts_.log.info("backup taken", {{"log_size", response->headers[1].second}});
    respond(*std::move(response));
}

}  // namespace bulkhead::shell

#include "bulkhead/evidence/ocsf.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/evidence/text.hpp"

namespace bulkhead::evidence {

namespace {

enum class OcsfClass : int {
    compliance_finding = 2003,
    authentication = 3002,
    entity_management = 3004,
    application_lifecycle = 6002,
    api_activity = 6003,
};

namespace activity {
constexpr int create = 1, update = 3, erase = 4, other = 99;
constexpr int start = 3;  // of an application
constexpr int logon = 1;  // of a person
constexpr int close = 3;  // of a finding
}  // namespace activity

struct OcsfRow {
    RecordKind kind;
    OcsfClass of;
    int activity;
    std::string_view name;  // of an activity that the schema has no number for
    std::string_view entity;
};

// Entities have four activities of their own; the rest of what happens here is "other", by name.
constexpr OcsfRow ocsf_rows[] = {
    {RecordKind::applied, OcsfClass::api_activity, activity::update, {}, {}},
    {RecordKind::deleted, OcsfClass::api_activity, activity::erase, {}, {}},
    {RecordKind::refused, OcsfClass::api_activity, activity::other, "Refuse", {}},
    {RecordKind::leased, OcsfClass::entity_management, activity::create, {}, "Lease"},
    {RecordKind::lease_units, OcsfClass::entity_management, activity::other, "Assign", "Lease"},
    {RecordKind::bound_restarted, OcsfClass::entity_management, activity::other, "Restart bound", "Workload"},
    {RecordKind::lease_active, OcsfClass::entity_management, activity::other, "Activate", "Lease"},
    {RecordKind::lease_ending, OcsfClass::entity_management, activity::other, "End", "Lease"},
    {RecordKind::lease_closed, OcsfClass::entity_management, activity::erase, {}, "Lease"},
    {RecordKind::workload_failed, OcsfClass::entity_management, activity::other, "Fail", "Workload"},
    {RecordKind::wiped, OcsfClass::entity_management, activity::other, "Sanitize", "Device"},
    {RecordKind::wipe_failed, OcsfClass::compliance_finding, activity::create, {}, {}},
    {RecordKind::quarantined, OcsfClass::entity_management, activity::other, "Quarantine", "Device"},
    {RecordKind::released_from_quarantine, OcsfClass::entity_management, activity::other, "Release", "Device"},
    {RecordKind::held, OcsfClass::entity_management, activity::other, "Hold", "Tenant"},
    {RecordKind::hold_lifted, OcsfClass::entity_management, activity::other, "Lift hold", "Tenant"},
    {RecordKind::node_enrolled, OcsfClass::entity_management, activity::create, {}, "Node"},
    {RecordKind::node_joined, OcsfClass::entity_management, activity::other, "Join", "Node"},
    {RecordKind::node_fenced, OcsfClass::entity_management, activity::other, "Fence", "Node"},
    {RecordKind::node_returned, OcsfClass::entity_management, activity::other, "Return", "Node"},
    {RecordKind::node_drained, OcsfClass::entity_management, activity::other, "Drain", "Node"},
    {RecordKind::reconfigured, OcsfClass::entity_management, activity::update, {}, "Device"},
    {RecordKind::tenant_frozen, OcsfClass::entity_management, activity::other, "Freeze", "Tenant"},
    {RecordKind::tenant_thawed, OcsfClass::entity_management, activity::other, "Thaw", "Tenant"},
    {RecordKind::key_added, OcsfClass::entity_management, activity::create, {}, "Evidence key"},
    {RecordKind::key_retired, OcsfClass::entity_management, activity::erase, {}, "Evidence key"},
    {RecordKind::started, OcsfClass::application_lifecycle, activity::start, {}, {}},
    {RecordKind::restored, OcsfClass::application_lifecycle, activity::start, {}, {}},
    {RecordKind::certificate_renewed, OcsfClass::entity_management, activity::create, {}, "Node certificate"},
    {RecordKind::certificate_retired, OcsfClass::entity_management, activity::erase, {}, "Node certificate"},
    {RecordKind::token_minted, OcsfClass::entity_management, activity::create, {}, "API token"},
    {RecordKind::token_revoked, OcsfClass::entity_management, activity::erase, {}, "API token"},
    {RecordKind::draining, OcsfClass::entity_management, activity::other, "Drain", "Device"},
    {RecordKind::drain_over, OcsfClass::entity_management, activity::other, "Return to use", "Device"},
    {RecordKind::log_key_rotated, OcsfClass::entity_management, activity::update, {}, "Log key"},
    {RecordKind::fabric_tested, OcsfClass::entity_management, activity::other, "Test fences", "Device"},
    {RecordKind::signed_in, OcsfClass::authentication, activity::logon, {}, {}},
    {RecordKind::access_denied, OcsfClass::api_activity, activity::other, "Deny", {}},
    {RecordKind::tenant_entered, OcsfClass::api_activity, activity::other, "Break glass", {}},
    {RecordKind::compliance_on, OcsfClass::entity_management, activity::update, {}, "Tenant"},
    {RecordKind::compliance_off, OcsfClass::entity_management, activity::update, {}, "Tenant"},
    {RecordKind::coverage_lost, OcsfClass::compliance_finding, activity::create, {}, {}},
    {RecordKind::coverage_regained, OcsfClass::compliance_finding, activity::close, {}, {}},
    {RecordKind::usage_corrected, OcsfClass::entity_management, activity::create, {}, "Usage correction"},
};

// A kind of record that has no row is something that was done through the API, by its own name.
OcsfRow row_of_kind(RecordKind kind) {
    const auto* const found = std::ranges::find(ocsf_rows, kind, &OcsfRow::kind);
    return found == std::end(ocsf_rows) ? OcsfRow{kind, OcsfClass::api_activity, activity::other, word(kind), {}}
                                        : *found;
}

bool went_wrong(RecordKind kind) {
    return kind == RecordKind::refused || kind == RecordKind::wipe_failed || kind == RecordKind::access_denied ||
           kind == RecordKind::coverage_lost;
}

// 1 informational, 2 low, 3 medium, 4 high.
int severity_of(RecordKind kind) {
    switch (kind) {
        case RecordKind::wipe_failed:
            return 4;
        case RecordKind::quarantined:
        case RecordKind::node_fenced:
        case RecordKind::tenant_frozen:
        case RecordKind::tenant_entered:
        case RecordKind::coverage_lost:
            return 3;
        case RecordKind::refused:
        case RecordKind::restored:
        case RecordKind::draining:
        case RecordKind::key_retired:
        case RecordKind::log_key_rotated:
        case RecordKind::access_denied:
        case RecordKind::compliance_off:
            return 2;
        default:
            return 1;
    }
}

void write_text(JsonWriter& json, std::string_view name, std::string_view text) {
    if (!text.empty()) json.member(name, text);
}

class OcsfWriter {
public:
    OcsfWriter(const OcsfPlace& place, const Record& record, const std::optional<TenantOpening>& tenant)
        : place_{place}, record_{record}, tenant_{tenant}, row_{row_of_kind(record.kind)} {
        if (record.evidence)
            if (auto statement = read_statement(record.evidence->statement)) statement_ = *std::move(statement);
    }

    std::string event() {
        json_.begin_object();
        head();
        metadata();
        switch (row_.of) {
            case OcsfClass::api_activity:
                api();
                break;
            case OcsfClass::entity_management:
                actor();
                entity();
                break;
            case OcsfClass::authentication:
                user();
                break;
            case OcsfClass::compliance_finding:
                finding();
                break;
            case OcsfClass::application_lifecycle:
                actor();
                application();
                break;
        }
        unmapped();
        json_.end_object();
        return json_.take();
    }

private:
    std::string subject() const {
        if (!record_.object.empty()) return record_.object;
        if (!record_.node.empty() && !record_.unit.empty()) return fmt::format("{}/{}", record_.node, record_.unit);
        if (!record_.lease.empty()) return record_.lease;
        if (!record_.node.empty()) return record_.node;
        if (const auto id = record_.detail.find("id"); id != record_.detail.end()) return id->second;
        if (!record_.tenant.empty()) return record_.tenant;
        return place_.log;
    }

    void head() {
        const int of = static_cast<int>(row_.of);
        json_.member("class_uid", std::int64_t{of});
        json_.member("category_uid", std::int64_t{of / 1000});
        json_.member("activity_id", std::int64_t{row_.activity});
        write_text(json_, "activity_name", row_.name);
        json_.member("type_uid", std::int64_t{of} * 100 + row_.activity);
        json_.member("time", record_.at.ms);
        if (statement_) {
            json_.member("start_time", statement_->began.ms);
            json_.member("end_time", statement_->ended.ms);
        }
        json_.member("severity_id", std::int64_t{severity_of(record_.kind)});
        // Of a finding, the status is about its handling: it is new.
        const bool failed = went_wrong(record_.kind) && row_.of != OcsfClass::compliance_finding;
        const bool closed = record_.kind == RecordKind::coverage_regained;  // of a finding: resolved
        json_.member("status_id", std::int64_t{closed ? 4 : failed ? 2 : 1});
        json_.member("message", fmt::format("{}: {}", word(record_.kind), subject()));
    }

    void metadata() {
        json_.key("metadata");
        json_.begin_object();
        json_.member("version", ocsf_version);
        json_.member("uid", to_hex(bytes_of(place_.entry)));
        json_.member("log_name", place_.log);
        json_.member("sequence", place_.index);
        json_.member("logged_time", record_.at.ms);
        json_.key("product");
        product();
        json_.end_object();
    }

    void product() {
        json_.begin_object();
        json_.member("name", "Bulkhead");
        json_.member("vendor_name", "Bulkhead");
        json_.member("version", place_.product_version);
        json_.end_object();
    }

    // "node:NAME" and "core" are programs; everybody else came through the API.
    void actor() {
        json_.key("actor");
        json_.begin_object();
        const std::string_view who = record_.actor;
        if (who.starts_with("node:")) {
            json_.member("app_name", "bulkhead-agent");
            json_.member("app_uid", who);
        } else if (who == "core") {
            json_.member("app_name", "bulkhead-server");
            json_.member("app_uid", place_.log);
        } else {
            user();
        }
        json_.end_object();
    }

    void user() {
        const std::string_view who = record_.actor;
        json_.key("user");
        json_.begin_object();
        json_.member("uid", who);
        json_.member("name", who.starts_with("api:") ? who.substr(4) : who);
        json_.end_object();
    }

    void api() {
        actor();
        json_.key("api");
        json_.begin_object();
        json_.member("operation", word(record_.kind));
        json_.key("service");
        json_.begin_object();
        json_.member("name", "bulkhead");
        json_.end_object();
        json_.end_object();
        // Addresses of callers are not part of a record: what they came from is known by name alone.
        json_.key("src_endpoint");
        json_.begin_object();
        json_.member("name", record_.actor);
        json_.end_object();
        resources();
    }

    void resources() {
        json_.key("resources");
        json_.begin_array();
        json_.begin_object();
        json_.member("uid", statement_ ? std::string_view{statement_->device} : std::string_view{subject()});
        json_.member("name", subject());
        json_.member("type", type_of_subject());
        if (const std::string tenant = tenant_name(); !tenant.empty()) {
            json_.key("owner");
            json_.begin_object();
            json_.member("uid", fmt::format("tenant:{}", tenant));
            json_.end_object();
        }
        json_.end_object();
        json_.end_array();
    }

    std::string type_of_subject() const {
        if (const std::size_t slash = record_.object.find('/'); slash != std::string::npos)
            return record_.object.substr(0, slash);
        return record_.unit.starts_with("gpu") ? "gpu" : record_.unit.starts_with("drive") ? "drive" : "fleet";
    }

    std::string tenant_name() const {
        if (tenant_ && is_pseudonym(record_.tenant) && pseudonym(*tenant_) == record_.tenant) return tenant_->name;
        return record_.tenant;
    }

    void entity() {
        json_.key("entity");
        json_.begin_object();
        json_.member("uid", statement_ ? std::string_view{statement_->device} : std::string_view{subject()});
        json_.member("name", subject());
        json_.member("type", row_.entity);
        json_.key("data");
        json_.begin_object();
        write_text(json_, row_.kind == RecordKind::wiped ? "previous_tenant" : "tenant", tenant_name());
        write_text(json_, "node", record_.node);
        write_text(json_, "unit", record_.unit);
        write_text(json_, "lease", record_.lease);
        json_.end_object();
        json_.end_object();
        if (const auto why = record_.detail.find("why"); why != record_.detail.end())
            write_text(json_, "comment", why->second);
    }

    void finding() {
        json_.key("finding_info");
        json_.begin_object();
        // What is closed later is called what it was called when it was opened.
        json_.member("uid", record_.kind == RecordKind::wipe_failed
                                ? fmt::format("{}/{}", place_.log, place_.index)
                                : fmt::format("{}/coverage/{}", place_.log, record_.lease));
        json_.member("title", record_.kind == RecordKind::wipe_failed
                                  ? "A device is not proven to be sanitized"
                                  : "Compliance mode is not shown to be in force for a lease");
        json_.end_object();
        json_.key("compliance");
        json_.begin_object();
        json_.key("standards");
        json_.begin_array();
        json_.value("NIST SP 800-53 r5");
        json_.end_array();
        json_.member("control", "SC-4");
        json_.member("status_id", std::int64_t{record_.kind == RecordKind::coverage_regained ? 1 : 3});
        json_.end_object();
        resources();
    }

    void application() {
        json_.key("app");
        product();
    }

    // Whatever the schema has no place for.
    void unmapped() {
        json_.key("unmapped");
        json_.begin_object();
        json_.member("leaf_index", place_.index);
        json_.member("kind", word(record_.kind));
        write_text(json_, "tenant", record_.tenant);
        write_text(json_, "node", record_.node);
        write_text(json_, "lease", record_.lease);
        write_text(json_, "unit", record_.unit);
        if (record_.grade) json_.member("grade", word(*record_.grade));
        if (!record_.detail.empty()) {
            json_.key("detail");
            json_.begin_object();
            for (const auto& [name, text] : record_.detail) json_.member(name, text);
            json_.end_object();
        }
        if (statement_) statement();
        json_.end_object();
    }

    void statement() {
        json_.key("sanitization");
        json_.begin_object();
        json_.member("method", statement_->method);
        json_.member("result", word(statement_->result));
        json_.member("bytes", statement_->bytes);
        json_.member("bytes_verified", statement_->bytes_verified);
        json_.member("bytes_unreachable", statement_->bytes_unreachable);
        write_text(json_, "model", statement_->model);
        write_text(json_, "board", statement_->board);
        write_text(json_, "serial", statement_->serial);
        write_text(json_, "driver", statement_->driver);
        write_text(json_, "vbios", statement_->vbios);
        write_text(json_, "firmware", statement_->firmware);
        write_text(json_, "claim", statement_->claim);
        write_text(json_, "agent", statement_->agent_version);
        json_.member("evidence_key", record_.evidence->key);
        json_.end_object();
    }

    const OcsfPlace& place_;
    const Record& record_;
    const std::optional<TenantOpening>& tenant_;
    const OcsfRow row_;
    std::optional<WipeStatement> statement_;
    JsonWriter json_{JsonLayout::compact};
};

}  // namespace

std::string ocsf_event(const OcsfPlace& place, const Record& record, const std::optional<TenantOpening>& tenant) {
    return OcsfWriter{place, record, tenant}.event();
}

std::string ocsf_lost(const OcsfPlace& place, Instant at) {
    Record gone{.kind = RecordKind::restored, .at = at, .actor = "core"};
    gone.detail.emplace("lost", "the record of this leaf was lost with a restore; its entry is still in the log");
    return ocsf_event(place, gone);
}

std::optional<std::int64_t> ocsf_sequence(std::string_view line) {
    const Result<Document> document = read_object("event", line);
    if (!document) return std::nullopt;
    const Node* const metadata = document->root->find("metadata");
    const Node* const sequence = metadata == nullptr ? nullptr : metadata->find("sequence");
    if (sequence == nullptr) return std::nullopt;
    std::int64_t number = -1;
    const std::string_view text = sequence->text;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || number < 0) return std::nullopt;
    return number;
}

}  // namespace bulkhead::evidence

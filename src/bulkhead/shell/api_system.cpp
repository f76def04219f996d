// How the server itself is.
#include <fmt/core.h>

#include "bulkhead/audit/tile_reader.hpp"
#include "bulkhead/evidence/checkpoint.hpp"
#include "bulkhead/shell/api.hpp"
#include "bulkhead/shell/key_rotation.hpp"

namespace bulkhead::shell {

void Api::healthz(const Call&, const Respond& respond) {
    respond({.content_type = "text/plain; charset=utf-8", .body = "alive\n"});
}

void Api::readyz(const Call&, const Respond& respond) {
    const LoopState state = parts_.loop.state();
    respond({.status = state == LoopState::running ? 200 : 503,
             .content_type = "text/plain; charset=utf-8",
             .body = fmt::format("{}\n", word(state))});
}

void Api::metrics(const Call& call, const Respond& respond) {
    auto samples = parts_.agents.telemetry().newest();
    if (const std::string_view wanted = call.query("nodes"); !wanted.empty())
        std::erase_if(samples, [&](const auto& one) { return !one.first.starts_with(wanted); });
    std::uint64_t published = 0;
    if (const auto tiles = audit::TileReader::open(settings_.tiles))
        if (const auto checkpoint = tiles->checkpoint(parts_.rotation.key())) published = checkpoint->size;
    respond({.content_type = "text/plain; version=0.0.4; charset=utf-8",
             .body = parts_.metrics.text({.catalog = parts_.catalog,
                                          .loop = parts_.loop,
                                          .now = now(),
                                          .agents = settings_.agents ? settings_.agents() : 0,
                                          .log_published = published,
                                          .samples = std::move(samples),
                                          .node_certificates = parts_.agents.certificate_ends(),
                                          .own_certificates = settings_.certificate_ends,
                                          .tokens = parts_.tokens.list()})});
}

void Api::tenant_metrics(const Call& call, const Respond& respond) {
    const std::string& name = call.path("name");
    if (parts_.catalog.get(ObjectKind::tenant, name) == nullptr)
        return respond(
            problem(Error{Code::not_found, fmt::format("there is no Tenant {}", name), "GET /v1/tenants lists them"}));
    respond({.content_type = "text/plain; version=0.0.4; charset=utf-8",
             .body = parts_.metrics.tenant_text(name, {.catalog = parts_.catalog,
                                                       .loop = parts_.loop,
                                                       .now = now(),
                                                       .samples = parts_.agents.telemetry().newest()})});
}

void Api::openapi(const Call&, const Respond& respond) { respond({.body = openapi_}); }

}  // namespace bulkhead::shell

// How the server itself is.
#include <fmt/core.h>

#include "bulkhead/audit/tile_reader.hpp"
#include "bulkhead/evidence/checkpoint.hpp"
#include "bulkhead/shell/api.hpp"

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

void Api::metrics(const Call&, const Respond& respond) {
    std::uint64_t published = 0;
    if (const auto tiles = audit::TileReader::open(settings_.tiles))
        if (const auto key = evidence::parse_verifier_key(settings_.verifier_key))
            if (const auto checkpoint = tiles->checkpoint(*key)) published = checkpoint->size;
    respond({.content_type = "text/plain; version=0.0.4; charset=utf-8",
             .body = parts_.metrics.text({.catalog = parts_.catalog,
                                          .loop = parts_.loop,
                                          .agents = settings_.agents ? settings_.agents() : 0,
                                          .log_published = published})});
}

void Api::openapi(const Call&, const Respond& respond) { respond({.body = openapi_}); }

}  // namespace bulkhead::shell

#include "bulkhead/evidence/schemas.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/codec/schema.hpp"
#include "bulkhead/evidence/certificate_list.hpp"
#include "bulkhead/evidence/fabric_statement.hpp"
#include "bulkhead/evidence/key_history.hpp"

namespace bulkhead::evidence {

namespace {

struct EvidenceSchema {
    std::string_view name, about;
    const Shape& (*shape)();
};

const EvidenceSchema evidence_schemas[] = {
    {"certificate", "One record of a log, and everything needed to believe it.", &shape_of<Certificate>},
    {"certificates", "Several certificates, as the server gives them.", &shape_of<CertificateList>},
    {"record", "What a leaf of the log says: the JSON text in a certificate's payload.", &shape_of<Record>},
    {"wipe-statement", "What a node signs after a wipe: the JSON text in a record's evidence.",
     &shape_of<WipeStatement>},
    {"fabric-statement", "What a node signs after it attacked its own fences: the JSON text in a record's evidence.",
     &shape_of<FabricStatement>},
    {"log-keys", "Each key that a log has had, with the proof of each change.", &shape_of<KeyHistory>},
};

}  // namespace

std::vector<std::string_view> schema_names() {
    std::vector<std::string_view> names;
    for (const EvidenceSchema& one : evidence_schemas) names.push_back(one.name);
    return names;
}

std::optional<std::string> schema_named(std::string_view name) {
    const auto* const found = std::ranges::find(evidence_schemas, name, &EvidenceSchema::name);
    if (found == std::end(evidence_schemas)) return std::nullopt;
    const std::string id = fmt::format("https://bulkhead.dev/schemas/{}-v1.json", name);
    return json_schema(found->shape(), {.id = id, .title = found->name, .about = found->about});
}

}  // namespace bulkhead::evidence

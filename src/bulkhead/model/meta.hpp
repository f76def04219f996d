// What every object carries, and the pieces that several kinds share.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead {

inline constexpr std::string_view api_version = "bulkhead.dev/v1alpha1";

struct Metadata {
    std::string name;
    std::map<std::string, std::string> labels;
    std::map<std::string, std::string> annotations;
    std::int64_t generation = 0;
    std::string resourceVersion;

    static constexpr void describe(auto&& field) {
        field("name", &Metadata::name, "The object's name, unique within its kind; of a workload, within its tenant.",
              Rule{.required = true, .format = Format::name});
        field("labels", &Metadata::labels, "Free key-value pairs to select by.");
        field("annotations", &Metadata::annotations, "Free key-value pairs for other tools.");
        field("generation", &Metadata::generation, "Counts the changes of the spec; written by the system.",
              Rule{.min = 0});
        field("resourceVersion", &Metadata::resourceVersion,
              "Opaque version for conditional writes; written by the system.");
    }
    friend bool operator==(const Metadata&, const Metadata&) = default;
};

// Someone's yes, by name and date, so that an auditor can ask them.
struct Consent {
    std::string by;
    Instant at;

    static constexpr void describe(auto&& field) {
        field("by", &Consent::by, "Who consents: a person or role that can be asked.",
              Rule{.required = true, .format = Format::line});
        field("at", &Consent::at, "When, in UTC.", Rule{.required = true});
    }
    friend bool operator==(const Consent&, const Consent&) = default;
};

// Where work may run. An empty list means anywhere.
struct Whereabouts {
    std::vector<std::string> sites;
    std::vector<std::string> jurisdictions;

    static constexpr void describe(auto&& field) {
        field("sites", &Whereabouts::sites, "Only these sites.", Rule{.format = Format::name});
        field("jurisdictions", &Whereabouts::jurisdictions, "Only sites under these jurisdictions.",
              Rule{.format = Format::name});
    }
    friend bool operator==(const Whereabouts&, const Whereabouts&) = default;
};

}  // namespace bulkhead

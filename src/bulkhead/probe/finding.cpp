#include "bulkhead/probe/finding.hpp"

#include <algorithm>

#include "bulkhead/evidence/text.hpp"

namespace bulkhead::probe {

const Figure* Finding::find(std::string_view name) const {
    const auto found = std::ranges::find(figures, name, &Figure::name);
    return found == figures.end() ? nullptr : &*found;
}

std::string report_text(const Report& report) { return evidence::compact_text(report); }

Result<Report> read_report(std::string_view text) { return evidence::read_text<Report>("probe report", text); }

}  // namespace bulkhead::probe

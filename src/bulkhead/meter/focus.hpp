// Charges as a FOCUS 1.2 data set (focus.finops.org): every mandatory column, the conditional ones that we can fill,
// and ours, which begin with x_.
#pragma once

#include <string>

#include "bulkhead/meter/report.hpp"

namespace bulkhead::meter {

struct FocusWords {
    std::string provider;             // who runs the fleet
    std::size_t most_rows = 250'000;  // more are refused: ask for fewer days
};
Result<std::string> focus_csv(const Known& known, const Question& question, const Report& report,
                              const FocusWords& words);

}  // namespace bulkhead::meter

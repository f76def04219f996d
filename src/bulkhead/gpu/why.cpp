#include "bulkhead/gpu/why.hpp"

#include <array>

#include "bulkhead/base/result.hpp"

namespace bulkhead::gpu {

namespace {

struct Text {
    std::string_view code, text;
};

constexpr std::array texts{
    Text{"mig.slices", "{what} need {needed} memory slices; the GPU has {total}"},
    Text{"mig.maximum", "at most {max} of {profile} may exist on one GPU, not {count}"},
    Text{"mig.one-extended",
         "{first} and {second} each own the GPU's only optical-flow engine, so one excludes the other"},
    Text{"mig.all-engines",
         "{profile} owns every media engine, so only -me profiles may sit beside it; {other} has engines"},
    Text{"mig.taken", "{profile} could start at {start}, but in use there: {by}"},
    Text{"mig.starts", "{what} need {needed} of {total} memory slices but have no places without overlap: {starts}"},
    Text{"mig.no-places",
         "{what} need {needed} memory slices and {free} are not in use, but no choice of starts gives each its own"},
    Text{"mig.in-use", "{profile} at {start} is in use and is never touched, so no {wanted} is created inside it"},
    Text{"mig.driver", "{profile} needs driver {driver} or newer"},
    Text{"mig.together", "{first} beside {second} needs driver R510 or newer"},
};

}  // namespace

std::string explain(const Reason& reason) {
    for (const Text& text : texts)
        if (text.code == reason.code) return fill(text.text, reason.arguments, Audience::fleet_operator);
    stop_for_bug("every code of gpu has a sentence", std::source_location::current());
}

}  // namespace bulkhead::gpu

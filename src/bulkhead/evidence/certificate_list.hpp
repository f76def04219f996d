// Several certificates in one file, as the server gives them. Of a lease it also says what the lease consisted of, by
// the log's own record: then whoever checks it sees whether something was left unwiped, or left out, without asking.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/evidence/certificate.hpp"
#include "bulkhead/evidence/lease_units.hpp"

namespace bulkhead::evidence {

// The first form has the certificates alone, and claims nothing about what else there may be: of a node, and of leases
// from servers of before.
inline constexpr std::string_view certificates_version = "bulkhead.dev/certificates/v1",
                                  lease_certificates_version = "bulkhead.dev/certificates/v2";

// Something of a lease that no wipe on record is of. The server's word: who checks finds out by himself that it is
// missing, and takes the reason from here where no certificate has it.
struct Unwiped {
    std::string node, unit, state, why;

    static constexpr void describe(auto&& field) {
        field("node", &Unwiped::node, "The node.", Rule{.required = true, .format = Format::line});
        field("unit", &Unwiped::unit, "What on the node.", Rule{.required = true, .format = Format::line});
        field("state", &Unwiped::state, "awaited, wipe-failed, quarantined or held.",
              Rule{.required = true, .format = Format::line});
        field("why", &Unwiped::why, "Why, where the log has a reason.");
    }
    friend bool operator==(const Unwiped&, const Unwiped&) = default;
};

struct CertificateList {
    std::string version{certificates_version};
    std::vector<Certificate> certificates;
    // Of the second form.
    std::string lease{};
    std::optional<Certificate> consists{};  // the record `lease-units`; none of leases from before there was one
    std::vector<Certificate> failed{};      // records `wipe-failed` of what is unwiped
    std::vector<Unwiped> unwiped{};
    std::optional<std::int64_t> total{}, next{};

    static constexpr void describe(auto&& field) {
        field("version", &CertificateList::version, "The form of this list.",
              Rule{.required = true, .format = Format::line});
        field("certificates", &CertificateList::certificates, "The certificates, the newest first.",
              Rule{.required = true});
        field("lease", &CertificateList::lease, "The lease that they are about.", Rule{.format = Format::line});
        field("consists", &CertificateList::consists, "The log's record of what the lease consisted of.");
        field("failed", &CertificateList::failed, "Records of wipes that failed, of what was not wiped since.");
        field("unwiped", &CertificateList::unwiped, "What no wipe is on record of, and why; the server's word.");
        field("total", &CertificateList::total, "How many certificates there are.", Rule{.min = 0});
        field("next", &CertificateList::next, "This is a page; ask for the next with from and this number.",
              Rule{.min = 0});
    }
    friend bool operator==(const CertificateList&, const CertificateList&) = default;
};

std::string print(const CertificateList& list);
// A list, or one certificate, which is a list of one. Fails also where a list says more than its form has.
Result<CertificateList> read_certificates(std::string_view file, std::string_view json);

// What all of them come to.
struct LeaseAccount {
    std::string lease;
    bool known = false;  // what the lease consisted of is proven; else the units are those that somebody names
    std::size_t units = 0, wiped = 0;
    std::vector<std::string> not_wiped;  // one line for each, with the reason as far as there is one
    bool whole() const { return known && wiped == units; }
};

struct CheckedList {
    std::vector<Result<Verified>> certificates;  // as they are in the list
    std::optional<LeaseAccount> lease;           // of the second form
    std::vector<Error> refused;                  // what of the rest of the list does not hold
};

// Each certificate by itself, and of a lease all of them together. A lab's certificates are looked at whether they are
// accepted or not; the caller decides what they are good for.
CheckedList verify_certificates(const CertificateList& list, const LogKeys& log, const Expectations& expected = {});

}  // namespace bulkhead::evidence

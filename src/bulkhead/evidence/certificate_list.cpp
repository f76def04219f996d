#include "bulkhead/evidence/certificate_list.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/codec/print.hpp"

namespace bulkhead::evidence {

namespace {

Error does_not_hold(std::string_view what, const Error& error) {
    return {error.code, fmt::format("{}: {}", what, error.what), error.remedy};
}

Error not_of_it(std::string what) { return {Code::corrupt, std::move(what), "do not accept this list"}; }

// A reason, which may be longer than a name: as one line, for a terminal.
std::string in_a_line(std::string_view text) {
    constexpr std::size_t longest = 400;
    std::string out{text.substr(0, longest)};
    for (char& c : out)
        if (const auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte == 0x7f) c = ' ';
    return out;
}

WipeOnRecord on_record(const Verified& of) {
    return {.index = static_cast<std::int64_t>(of.index),
            .node = of.record.node,
            .unit = of.record.unit,
            .device = of.statement ? of.statement->device : std::string{},
            .lease = of.record.lease,
            .tenant = of.record.tenant};
}

// The lease's own record, if the list has it and it holds.
Result<LeaseOnRecord> lease_in(const CertificateList& list, const LogKeys& log, const Expectations& expected) {
    const auto verified = verify_certificate(*list.consists, log,
                                             {.tenant = expected.tenant, .lease = list.lease, .node = {}, .unit = {}});
    if (!verified) return std::unexpected(does_not_hold("what the lease consisted of", verified.error()));
    auto units = units_of(verified->record);
    if (!units) return std::unexpected(does_not_hold("what the lease consisted of", units.error()));
    return LeaseOnRecord{.index = static_cast<std::int64_t>(verified->index),
                         .name = list.lease,
                         .tenant = verified->record.tenant,
                         .units = *std::move(units)};
}

// A record of a failure that holds: what a person is told of it.
struct Failure {
    WipeOnRecord of;
    std::string text;
};
std::vector<Failure> failures_in(const CertificateList& list, const LogKeys& log, std::vector<Error>& refused) {
    std::vector<Failure> out;
    out.reserve(list.failed.size());
    for (const Certificate& one : list.failed) {
        const auto verified = verify_certificate(one, log, {.accept_lab = true});
        if (!verified) {
            refused.push_back(does_not_hold("a record of a wipe that failed", verified.error()));
            continue;
        }
        const Record& record = verified->record;
        if (record.kind != RecordKind::wipe_failed) {
            refused.push_back(not_of_it(fmt::format("a record of kind {} is no wipe that failed", word(record.kind))));
            continue;
        }
        const auto why = record.detail.find("why");
        out.push_back({on_record(*verified),
                       fmt::format("its wipe failed, by entry {} of the log: {}", verified->index,
                                   why == record.detail.end() ? "without a reason" : in_a_line(why->second))});
    }
    return out;
}

std::string because(const CertificateList& list, const std::vector<Failure>& failures, const LeaseUnit& unit,
                    const LeaseOnRecord& lease) {
    // A drive that failed may have said nothing of itself.
    const auto failed = std::ranges::find_if(failures, [&](const Failure& one) {
        WipeOnRecord of = one.of;
        of.device = unit.serial;
        return is_wipe_of(of, unit, lease);
    });
    if (failed != failures.end()) return failed->text;
    const auto said = std::ranges::find_if(
        list.unwiped, [&](const Unwiped& one) { return one.node == unit.node && overlap(one.unit, unit.unit); });
    if (said != list.unwiped.end())
        return fmt::format("{}{}{}, by the server's word", shortened(said->state), said->why.empty() ? "" : ": ",
                           in_a_line(said->why));
    return "no certificate of a wipe of it is here";
}

LeaseAccount account_of(const CertificateList& list, const LeaseOnRecord& lease,
                        const std::vector<Result<Verified>>& certificates, const std::vector<Failure>& failures) {
    std::vector<WipeOnRecord> wipes;
    for (const Result<Verified>& one : certificates)
        if (one && one->statement) wipes.push_back(on_record(*one));
    LeaseAccount out{.lease = lease.name, .known = true, .units = lease.units.size(), .not_wiped = {}};
    for (const std::size_t at : not_wiped(lease, wipes)) {
        const LeaseUnit& unit = lease.units[at];
        out.not_wiped.push_back(fmt::format("{} {}{}{}: {}", shortened(unit.node), shortened(unit.unit),
                                            unit.serial.empty() ? "" : ", drive ", shortened(unit.serial),
                                            because(list, failures, unit, lease)));
    }
    out.wiped = out.units - out.not_wiped.size();
    return out;
}

// What the log does not tell: each wipe that is shown, and what the server names beside it.
LeaseAccount account_by_word(const CertificateList& list, const std::vector<Result<Verified>>& certificates) {
    LeaseAccount out{.lease = list.lease, .not_wiped = {}};
    out.wiped = static_cast<std::size_t>(std::ranges::count_if(
        certificates, [](const Result<Verified>& one) { return one && one->statement.has_value(); }));
    out.units = out.wiped + list.unwiped.size();
    for (const Unwiped& one : list.unwiped)
        out.not_wiped.push_back(fmt::format("{} {}: {}{}{}, by the server's word", shortened(one.node),
                                            shortened(one.unit), shortened(one.state), one.why.empty() ? "" : ": ",
                                            in_a_line(one.why)));
    out.not_wiped.emplace_back("what the lease consisted of: no record of that is here, and there may be more");
    return out;
}

}  // namespace

std::string print(const CertificateList& list) { return to_json(list); }

Result<CertificateList> read_certificates(std::string_view file, std::string_view json) {
    auto list = from_json<CertificateList>(file, json, own_text);
    if (!list) {
        auto one = read_certificate(json);
        if (!one) return std::unexpected(one.error());
        CertificateList of_one;
        of_one.certificates.push_back(*std::move(one));
        return of_one;
    }
    const bool first = list->version == certificates_version, second = list->version == lease_certificates_version;
    if (!first && !second)
        return fail(Code::invalid,
                    fmt::format("a list of certificates of version \"{}\"; this program reads {} and {}",
                                shortened(list->version), certificates_version, lease_certificates_version),
                    "use the program that belongs to it");
    const bool of_lease = !list->lease.empty();
    const bool says_more =
        of_lease || list->consists || !list->failed.empty() || !list->unwiped.empty() || list->total || list->next;
    if (second ? !of_lease : says_more)
        return fail(Code::invalid,
                    fmt::format("a list of version {} {}", list->version,
                                second ? "that names no lease" : "that says more than that has"),
                    "ask its server for it again");
    return *std::move(list);
}

CheckedList verify_certificates(const CertificateList& list, const LogKeys& log, const Expectations& expected) {
    CheckedList out;
    const bool of_lease = list.version == lease_certificates_version;
    if (of_lease && !expected.lease.empty() && expected.lease != list.lease)
        out.refused.push_back({Code::corrupt,
                               fmt::format("the list is about lease \"{}\", and you asked about \"{}\"",
                                           shortened(list.lease), expected.lease),
                               "ask for the certificates of what you mean"});
    std::optional<LeaseOnRecord> lease;
    if (of_lease && list.consists) {
        auto opened = lease_in(list, log, expected);
        if (opened)
            lease = *std::move(opened);
        else
            out.refused.push_back(opened.error());
    }
    Expectations each = expected;
    if (of_lease) each.lease.clear();  // below, where what is shared is known
    out.certificates.reserve(list.certificates.size());
    for (const Certificate& one : list.certificates) {
        // What a lab signed is looked at whether it is accepted or not: a lab's forgery is no lab's evidence.
        each.accept_lab = expected.accept_lab || one.lab.has_value();
        Result<Verified> verified = verify_certificate(one, log, each);
        const auto serves = [&](const LeaseUnit& unit) { return is_wipe_of(on_record(*verified), unit, *lease); };
        if (of_lease && verified && verified->record.lease != list.lease &&
            !(lease && std::ranges::any_of(lease->units, serves)))
            verified = fail(Code::corrupt,
                            fmt::format("the record is about lease \"{}\", and the list about \"{}\"",
                                        shortened(verified->record.lease), shortened(list.lease)),
                            "do not accept this list");
        out.certificates.push_back(std::move(verified));
    }
    if (!of_lease) return out;
    const std::vector<Failure> failures = failures_in(list, log, out.refused);
    if (lease)
        out.lease = account_of(list, *lease, out.certificates, failures);
    else if (!list.consists)
        out.lease = account_by_word(list, out.certificates);
    return out;
}

}  // namespace bulkhead::evidence

// Whatever the bytes: no crash; and what is read survives being printed and read again. Records and statements too.
#include <cstddef>
#include <cstdint>

#include "bulkhead/evidence/certificate_list.hpp"
#include "bulkhead/evidence/text.hpp"

using namespace bulkhead;
using namespace bulkhead::evidence;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    static const VerifierKey log{"log.example/fleet", SigningKey::from_seed(std::string(32, 'L'))->public_key()};
    if (const auto certificate = read_certificate(bytes)) {
        invariant(read_certificate(print(*certificate)) == *certificate, "a certificate is read as it was printed");
        const auto verified = verify_certificate(*certificate, log);
        invariant(verified || !verified.error().what.empty(), "every refusal has words");
        invariant(!verified || !verified->of_lab, "a lab's evidence is for who asks for it");
        const auto accepted = verify_certificate(*certificate, log, {.accept_lab = true});
        invariant(accepted || !verified, "who accepts a lab refuses nothing more");
    }
    if (const auto list = read_certificates("list", bytes)) {
        const CheckedList checked = verify_certificates(*list, log);
        invariant(checked.certificates.size() == list->certificates.size(), "each certificate has an answer");
        invariant(!checked.lease || checked.lease->whole() == checked.lease->not_wiped.empty(),
                  "what is not wiped is named");
    }
    if (const auto record = read_record(bytes)) {
        (void)units_of(*record);
        invariant(read_record(payload_of(*record)) == *record, "a record is read as it was written");
        (void)key_of(*record);
    }
    if (const auto statement = read_statement(bytes))
        invariant(read_statement(statement_text(*statement)) == *statement, "a statement is read as it was written");
    if (const auto statement = read_fabric_statement(bytes)) {
        invariant(read_fabric_statement(fabric_statement_text(*statement)) == *statement,
                  "a statement of a test is read as it was written");
        invariant(summary_of(*statement, bytes).found != FabricFound::closed || statement->why.empty(),
                  "nothing is closed by a test that broke off");
    }
    return 0;
}

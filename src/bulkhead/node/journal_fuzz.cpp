// Whatever the bytes: no crash, no hang, no throw; and what is read says the same when written and read again. The
// checksum would keep a fuzzer out, so the bytes are also taken as the payload of a frame that is sound.
#include <cstddef>
#include <cstdint>
#include <string>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/node/journal.hpp"

using namespace bulkhead;

namespace {

std::string framed(std::string_view payload, char version) {
    std::string frame = "BHJ";
    frame += version;
    for (unsigned i = 0; i < 4; ++i) frame += static_cast<char>(payload.size() >> (8 * i) & 0xFF);
    frame += std::string(8, '\0');
    const Hash hash = sha256({frame, payload});
    frame += bytes_of(hash).substr(0, 8);
    frame += payload;
    return frame;
}

void look_at(std::string_view bytes) {
    const auto read = read_journal(bytes);
    if (!read) {
        invariant(!read.error().what.empty() && !read.error().remedy.empty(), "an error has words");
        return;
    }
    invariant(read->sound_bytes + read->dropped_bytes == bytes.size(), "every byte is accounted for");
    const std::string again = journal_frame(0, read->records);
    const auto twice = read_journal(again);
    invariant(twice && twice->records == read->records, "what was written is read as it was");
    Ledger ledger;
    for (const JournalRecord& record : read->records) play_back(ledger, record);
    const JournalRecord everything = journal::Everything{ledger};
    const auto compact = read_journal(journal_frame(0, {&everything, 1}));
    invariant(compact && compact->records.size() == 1 && compact->records[0] == everything, "a ledger survives");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    look_at(bytes);
    look_at(framed(bytes, '2'));
    look_at(framed(bytes, '3'));
    return 0;
}

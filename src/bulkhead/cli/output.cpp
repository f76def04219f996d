#include "bulkhead/cli/output.hpp"

#include <fmt/format.h>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/cli/objects.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/model/output.hpp"

namespace bulkhead::cli {

std::string legible(std::string_view bytes) {
    std::string out{bytes};
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto byte = static_cast<unsigned char>(out[i]);
        const bool control = (byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r') || byte == 0x7F;
        // The second block of control characters, as UTF-8 has it and as older terminals do.
        const bool second =
            byte >= 0x80 && byte < 0xA0 &&
            (i == 0 || static_cast<unsigned char>(out[i - 1]) < 0x80 || static_cast<unsigned char>(out[i - 1]) == 0xC2);
        if (control || second) out[i] = '?';
    }
    return out;
}

Result<OutputReader::Read> OutputReader::read(Client& client, std::ostream& out, std::ostream& notes) {
    const std::string target = target_of("workloads", workload, "output");
    const auto reply = client.get(fmt::format("{}{}from={}&stream={}&rank={}", target, target.contains('?') ? '&' : '?',
                                              from, errors ? "err" : "out", rank));
    if (!reply) return std::unexpected(reply.error());
    const auto output = from_json<CommandOutput>("the server's answer", reply->body, own_text);
    if (!output) return std::unexpected(output.error());
    if (output->start != start) {  // it was interrupted meanwhile, and prints from its beginning again
        const bool again = start != 0 && from != 0;
        start = output->start;
        if (again) {
            from = 0;
            return Read{.any = true};
        }
    }
    const auto bytes = from_base64(output->bytes);
    if (!bytes || output->from < from)
        return fail(Code::corrupt, "the server answered with another output than was asked for",
                    "is it a bulkhead server of this version?");
    if (output->from > from)
        notes << fmt::format("{} bytes of {} before this are no longer kept\n", output->from - from, workload);
    out << (raw ? *bytes : legible(*bytes)) << std::flush;
    from = output->from + std::ssize(*bytes);
    return Read{.any = !bytes->empty(), .over = output->over};
}

}  // namespace bulkhead::cli

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "bulkhead/cli/mig.hpp"
#include "bulkhead/gpu/why.hpp"

namespace bulkhead::cli {

Result<const gpu::Board*> board_for_mig(std::string_view typed) {
    auto board = gpu::find_board(typed);
    if (board) return board;
    if (const auto amd = gpu::find_amd_board(typed))
        return fail(Code::not_found,
                    fmt::format("{} is divided by partition modes, not into MIG profiles", (*amd)->product),
                    fmt::format("bulkhead mig profiles --gpu {}", (*amd)->id));
    return board;
}

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (i == widths.size()) widths.push_back(0);
            widths[i] = std::max(widths[i], row[i].size());
        }
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}", row[i], widths[i] + 2);
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    return text;
}

std::string assumption(const gpu::Board& board) {
    if (gpu::grade(board.basis) != Grade::assumed) return {};
    return fmt::format("note: placements of {} are not proven: {}\n", board.id, board.basis_note);
}

std::string dash(gpu::Known number) { return number ? std::to_string(*number) : "-"; }

void member_or_null(JsonWriter& json, std::string_view name, gpu::Known number) {
    json.key(name);
    if (number)
        json.value(*number);
    else
        json.null();
}

void write_reasons(JsonWriter& json, std::string_view name, const std::vector<Reason>& reasons) {
    json.key(name);
    json.begin_array();
    for (const Reason& reason : reasons) {
        json.begin_object();
        json.member("code", reason.code);
        json.member("text", gpu::explain(reason));
        json.end_object();
    }
    json.end_array();
}

void write_starts(JsonWriter& json, std::string_view name, gpu::Starts starts) {
    json.key(name);
    json.begin_array();
    for (const unsigned start : starts) json.value(start);
    json.end_array();
}

std::string print_starts(gpu::Starts starts) { return fmt::format("{}", fmt::join(starts.begin(), starts.end(), ",")); }

}  // namespace bulkhead::cli

// Lines that are written once each, whatever stops the program between: the place up to which a file is good is kept
// only after its lines are durable, and a start looks at what came after that place.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "bulkhead/base/result.hpp"
#include "bulkhead/model/describe.hpp"

namespace bulkhead::cli {

inline constexpr std::string_view export_version = "bulkhead.dev/audit-export/v1";

struct ExportState {
    std::string version{export_version};
    std::string log;         // its name
    std::int64_t next = 0;   // the first leaf that is not in the file
    std::int64_t bytes = 0;  // how long the file was then

    static constexpr void describe(auto&& field) {
        field("version", &ExportState::version, "The form.", Rule{.required = true, .format = Format::line});
        field("log", &ExportState::log, "The name of the log.", Rule{.required = true, .format = Format::line});
        field("next", &ExportState::next, "The first leaf that is not in the file.", Rule{.required = true, .min = 0});
        field("bytes", &ExportState::bytes, "How long the file was then.", Rule{.required = true, .min = 0});
    }
    friend bool operator==(const ExportState&, const ExportState&) = default;
};
Result<ExportState> read_export_state(std::string_view json);

class ExportFile {
public:
    struct Places {
        std::string out;        // empty: standard output, which nobody can look at again
        std::string state;      // empty: nothing is kept
        std::string log;        // its name
        std::int64_t from = 0;  // where to begin when nothing is known
    };
    static Result<ExportFile> open(Places places);
    ExportFile(ExportFile&& other) noexcept;
    ExportFile& operator=(ExportFile&&) = delete;
    ~ExportFile();

    std::int64_t next() const { return state_.next; }
    // One line for each leaf from next() on, each with its end. Durable on return, and the place is kept.
    Result<> append(std::span<const std::string> lines);

private:
    explicit ExportFile(Places places) : places_{std::move(places)} {}
    Result<> open_file();
    Result<> look_at_tail(bool state_known);
    Result<> follow_rotation();

    Places places_;
    ExportState state_;
    int fd_ = -1;
};

}  // namespace bulkhead::cli

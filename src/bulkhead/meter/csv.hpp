// CSV as RFC 4180 has it.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead::meter {

class CsvWriter {
public:
    CsvWriter& cell(std::string_view text) {
        if (!first_) text_ += ',';
        first_ = false;
        // A spreadsheet takes what begins so for a formula; names of ours never do, words of people may.
        const bool formula = !text.empty() && (text[0] == '=' || text[0] == '@');
        if (!formula && text.find_first_of(",\"\r\n") == std::string_view::npos) {
            text_ += text;
            return *this;
        }
        text_ += '"';
        if (formula) text_ += '\'';
        for (const char c : text) {
            if (c == '"') text_ += '"';
            text_ += c;
        }
        text_ += '"';
        return *this;
    }
    void end_row() {
        text_ += "\r\n";
        first_ = true;
    }
    std::size_t size() const { return text_.size(); }
    std::string take() { return std::move(text_); }

private:
    std::string text_;
    bool first_ = true;
};

}  // namespace bulkhead::meter

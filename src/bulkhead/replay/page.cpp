#include "bulkhead/replay/page.hpp"

#include <fmt/format.h>

namespace bulkhead::replay {

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '<')
            out += "&lt;";
        else if (c == '&')
            out += "&amp;";
        else if (c == '"')
            out += "&quot;";
        else
            out += c;
    }
    return out;
}

std::string page_head(std::string_view title, std::string_view about) {
    return fmt::format(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{}</title>\n"
        "<style>body{{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}}"
        "svg{{max-width:100%;font-size:12px}}.grid{{stroke:#ddd}}.x{{text-anchor:middle}}.y{{text-anchor:end}}"
        "table{{border-collapse:collapse}}td,th{{padding:.2em "
        ".8em;text-align:right}}td:first-child{{text-align:left}}</style>\n"
        "<h1>{}</h1>\n<p>{}</p>\n",
        title, title, escaped(about));
}

}  // namespace bulkhead::replay

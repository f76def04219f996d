// A file that holds one document and nothing else, read by a reader of its own: all that is wrong with it, in the order
// of the text.
#pragma once

#include <algorithm>
#include <expected>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bulkhead/codec/document.hpp"

namespace bulkhead {

struct LoneDocument {
    std::string_view begins;  // what to try where the file is empty
    std::string_view alone;   // what is wrong with a second document
};

// The reader has read(root), complain(place, what, remedy) and the `errors` it has found so far.
template <class Reader>
auto read_alone(Reader reader, std::string_view file, std::string_view text, LoneDocument says)
    -> std::expected<decltype(reader.read(std::declval<const Node&>())), std::vector<Diagnostic>> {
    ReadText source = read_documents(file, text);
    reader.errors = std::move(source.errors);
    decltype(reader.read(std::declval<const Node&>())) out;
    if (!source.documents.empty())
        out = reader.read(*source.documents[0].root);
    else if (reader.errors.empty())
        reader.complain({}, "the file is empty", std::string{says.begins});
    for (std::size_t i = 1; i < source.documents.size(); ++i)
        reader.complain(source.documents[i].root->at, std::string{says.alone}, "remove it");
    if (reader.errors.empty()) return out;
    std::ranges::sort(reader.errors, {}, [](const Diagnostic& d) {
        return std::tuple{d.where.line, d.where.column, std::string_view{d.what}};
    });
    return std::unexpected(std::move(reader.errors));
}

}  // namespace bulkhead

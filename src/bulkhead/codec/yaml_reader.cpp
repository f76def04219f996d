#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <sstream>

#include "bulkhead/codec/plain.hpp"
#include "bulkhead/codec/tree_builder.hpp"
#include "bulkhead/codec/unicode.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view core_tag = "tag:yaml.org,2002:";

class Events final : public YAML::EventHandler {
public:
    Events(const Chunk& chunk, TreeBuilder& builder) : chunk_{chunk}, builder_{builder} {}

    Place place(const YAML::Mark& mark) const {
        if (mark.is_null()) return {chunk_.first_line, chunk_.first_column};
        return {chunk_.first_line + mark.line, mark.column + (mark.line == 0 ? chunk_.first_column : 1)};
    }

    void OnDocumentStart(const YAML::Mark& mark) override {
        // yaml-cpp takes what is left over after a document for another one, and some tokens for ever another one.
        if (started_)
            throw Unreadable{place(mark), "unexpected text after the end of the document", "begin a new one with ---"};
        started_ = true;
    }
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { builder_.null(where_null(mark), anchor); }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override { builder_.alias(place(mark), anchor); }

    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        const Place at = place(mark);
        std::string text = value;
        // yaml-cpp 0.7 turns \N and \_ into single bytes, which are not UTF-8.
        if (first_invalid_utf8(text) != std::string::npos) {
            builder_.complain(at, "the escapes \\N and \\_ are not read", "write \\u0085 or \\u00a0");
            text.clear();
        }
        if (tag == "?" || tag == "!") return builder_.scalar(at, std::move(text), tag == "!", anchor);
        const std::string_view name = core_name(tag);
        const PlainType type = plain_type(text);
        if (name == "null" && type == PlainType::null) return builder_.null(at, anchor);
        const bool fits = name == "str" || (name == "bool" && type == PlainType::truth) ||
                          ((name == "int" || name == "float") && type == PlainType::number);
        if (!fits) refuse_tag(at, tag);
        builder_.scalar(at, std::move(text), name == "str", anchor);
    }

    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        if (tag != "?" && tag != "!" && core_name(tag) != "seq") refuse_tag(place(mark), tag);
        builder_.begin_list(place(mark), anchor);
    }
    void OnSequenceEnd() override { builder_.end(); }

    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        if (tag != "?" && tag != "!" && core_name(tag) != "map") refuse_tag(place(mark), tag);
        builder_.begin_map(place(mark), anchor);
    }
    void OnMapEnd() override { builder_.end(); }

private:
    static std::string_view core_name(std::string_view tag) {
        return tag.starts_with(core_tag) ? tag.substr(core_tag.size()) : std::string_view{};
    }

    void refuse_tag(Place at, std::string_view tag) {
        builder_.complain(at, fmt::format("the tag {} is not read here", shortened(tag)), "remove the tag");
    }

    // For a value that is not there, yaml-cpp gives the place of whatever comes next.
    Place where_null(const YAML::Mark& mark) const {
        if (const Place* key = builder_.place_of_key()) return *key;
        const auto offset = static_cast<std::size_t>(mark.pos);
        const bool written =
            mark.pos >= 0 && offset < chunk_.text.size() && std::string_view{"~nN!&"}.contains(chunk_.text[offset]);
        if (!written)
            if (const Place* list = builder_.place_of_list()) return *list;
        return place(mark);
    }

    const Chunk& chunk_;
    TreeBuilder& builder_;
    bool started_ = false;
};

}  // namespace

void read_yaml(const Chunk& chunk, TreeBuilder& builder) {
    std::string text{chunk.text};
    // At the end of the text yaml-cpp 0.7 closes a quote by itself if a line end comes before; before ... it does not.
    if (text.ends_with('\n')) text += "...\n";
    std::istringstream in{std::move(text)};
    Events events{chunk, builder};
    try {
        YAML::Parser parser{in};
        while (parser.HandleNextDocument(events)) {
        }
    } catch (const YAML::Exception& error) {
        if (error.msg == YAML::ErrorMsg::DOC_IN_SCALAR)
            throw Unreadable{{chunk.first_line, chunk.first_column},
                             "a quote is opened and not closed in the document that begins here",
                             "look for a missing \" or '"};
        throw Unreadable{events.place(error.mark), fmt::format("this is not YAML: {}", shortened(error.msg)),
                         "look at this line and the one above: indentation, quotes, a missing ':' or bracket"};
    }
}

}  // namespace bulkhead

#include "bulkhead/codec/load.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "bulkhead/base/nearest.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/schema.hpp"

namespace bulkhead {

namespace {

constexpr std::array<std::string_view, 2> header{"apiVersion", "kind"};

Position position(std::string_view file, Place at) { return {std::string{file}, at.line, at.column}; }

class Loader {
public:
    Loader(Loaded& out, const Limits& limits) : out_{out}, limits_{limits} {}

    void read(const SourceText& source) {
        const std::size_t before = out_.errors.size();
        out_.where.add_file(source.name);
        file_ = source.name;
        ReadText text = read_documents(source.name, source.text, limits_);
        out_.errors.insert(out_.errors.end(), text.errors.begin(), text.errors.end());
        for (const Document& document : text.documents) object(*document.root, document.sound);
        out_.where.keep(std::move(text.documents));
        std::ranges::sort(
            out_.errors.begin() + static_cast<std::ptrdiff_t>(before), out_.errors.end(), {},
            [](const Diagnostic& d) { return std::tuple{d.where.line, d.where.column, std::string_view{d.what}}; });
    }

private:
    void complain(Place at, std::string what, std::string remedy) {
        out_.errors.push_back({position(file_, at), std::move(what), std::move(remedy)});
    }

    void object(const Node& root, bool sound) {
        if (root.type != Node::Type::map)
            return complain(root.at, "an object takes fields, and this has none",
                            fmt::format("begin with apiVersion: {} and kind:", api_version));
        const Node::Member* kind = member(root, "kind");
        if (!kind) return complain(root.at, "kind is missing", fmt::format("one of {}", fmt::join(kind_names(), ", ")));
        if (kind->value->type == Node::Type::scalar && kind->value->text == "List") return items(root, sound);
        const bool version_known = check_version(root);
        bool known = false;
        for_each_kind([&]<class T>() {
            if (kind->value->type != Node::Type::scalar || kind->value->text != T::kind) return;
            known = true;
            keep<T>(root, sound && version_known);
        });
        if (known) return;
        const std::vector<std::string_view> kinds = kind_names();
        const std::string_view near = nearest(kind->value->text, kinds);
        complain(
            kind->value->at,
            fmt::format("unknown kind \"{}\"; it is one of {}", shortened(kind->value->text), fmt::join(kinds, ", ")),
            near.empty() ? "choose one of these" : std::string{near});
    }

    // Where kubectl would print several objects as one.
    void items(const Node& root, bool sound) {
        const Node* list = root.find("items");
        if (!list || list->type != Node::Type::list)
            return complain(root.at, "a List takes items",
                            "write items: and the objects below it, each after a \"- \"");
        for (const Node* item : list->items) object(*item, sound);
    }

    static const Node::Member* member(const Node& root, std::string_view key) {
        const auto found = std::ranges::find(root.members, key, &Node::Member::key);
        return found == root.members.end() ? nullptr : &*found;
    }

    bool check_version(const Node& root) {
        const Node::Member* version = member(root, "apiVersion");
        if (version && version->value->type == Node::Type::scalar && version->value->text == api_version) return true;
        if (!version)
            complain(root.at, "apiVersion is missing", fmt::format("apiVersion: {}", api_version));
        else
            complain(version->value->at, fmt::format("apiVersion \"{}\" is not known", shortened(version->value->text)),
                     std::string{api_version});
        return false;
    }

    template <class T>
    void keep(const Node& root, bool sound) {
        T object;
        if (!decode(root, file_, object, out_.errors, header) || !sound) return;
        out_.where.add_object(T::kind, object.metadata.name, root);
        out_.snapshot.list<T>().push_back(std::move(object));
    }

    Loaded& out_;
    const Limits& limits_;
    std::string_view file_;
};

// One step of a JSON Pointer, with ~1 and ~0 undone.
std::string next_step(std::string_view& pointer) {
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    std::string step;
    for (std::size_t i = 0; i < end; ++i) {
        const bool escaped = pointer[i] == '~' && i + 1 < end && (pointer[i + 1] == '0' || pointer[i + 1] == '1');
        if (!escaped)
            step += pointer[i];
        else
            step += pointer[++i] == '0' ? '~' : '/';
    }
    pointer.remove_prefix(end);
    return step;
}

}  // namespace

void SourceMap::add_object(std::string_view kind, std::string_view name, const Node& root) {
    objects_[{std::string{kind}, std::string{name}}].push_back({files_.size() - 1, &root});
}

void SourceMap::keep(std::vector<Document> documents) {
    // A vector that is moved keeps its elements where they are, and so does each document its nodes.
    documents_.push_back(std::make_shared<const std::vector<Document>>(std::move(documents)));
}

Position SourceMap::find(std::string_view kind, std::string_view name, std::size_t occurrence,
                         std::string_view pointer) const {
    const auto found = objects_.find({std::string{kind}, std::string{name}});
    if (found == objects_.end() || occurrence >= found->second.size()) {
        if (files_.empty()) return {"(no file)", 0, 0};
        return {files_.size() == 1 ? files_[0] : fmt::format("{} and {} more", files_[0], files_.size() - 1), 0, 0};
    }
    const Object& object = found->second[occurrence];
    const Node* node = object.root;
    Place at = node->at;
    while (!pointer.empty() && pointer.front() == '/') {
        const std::string step = next_step(pointer);
        if (node->type == Node::Type::map) {
            const auto member = std::ranges::find(node->members, step, &Node::Member::key);
            if (member == node->members.end()) break;
            at = member->at;
            node = member->value;
            if (pointer.empty() && node->type == Node::Type::scalar) at = node->at;
        } else if (node->type == Node::Type::list) {
            const bool is_index = !step.empty() && step.size() < 9 &&
                                  std::ranges::all_of(step, [](char c) { return c >= '0' && c <= '9'; });
            const std::size_t index = is_index ? std::stoul(step) : node->items.size();
            if (index >= node->items.size()) break;
            node = node->items[index];
            at = node->at;
        } else {
            break;
        }
    }
    return position(files_[object.file], at);
}

Loaded load(std::span<const SourceText> files, const Limits& limits) {
    Loaded out;
    Loader loader{out, limits};
    for (const SourceText& file : files) loader.read(file);
    return out;
}

std::vector<Diagnostic> located(const SourceMap& where, std::span<const Finding> findings) {
    std::vector<Diagnostic> out;
    for (const Finding& finding : findings)
        out.push_back(
            {where.find(finding.kind, finding.name, finding.occurrence, finding.path), finding.what, finding.remedy});
    return out;
}

}  // namespace bulkhead

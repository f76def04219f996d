#include "bulkhead/codec/tree_builder.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace bulkhead {

void TreeBuilder::complain(Place at, std::string what, std::string remedy) {
    document_.sound = false;
    errors_.push_back({{std::string{file_}, at.line, at.column}, std::move(what), std::move(remedy)});
}

const Place* TreeBuilder::place_of_key() const {
    return !open_.empty() && open_.back().has_key ? &open_.back().key_at : nullptr;
}

const Place* TreeBuilder::place_of_list() const {
    return !open_.empty() && open_.back().node->type == Node::Type::list ? &open_.back().node->at : nullptr;
}

void TreeBuilder::spend(std::size_t nodes, Place at) {
    if (nodes > left_.nodes)
        throw Unreadable{at,
                         fmt::format("more than {} values, counting every alias as all it stands for", limits_.nodes),
                         "split the file; if it is small, look for aliases of aliases", true};
    left_.nodes -= nodes;
}

Node& TreeBuilder::add(Node::Type type, Place at) {
    Node& node = document_.nodes.emplace_back();
    node.type = type;
    node.at = at;
    return node;
}

void TreeBuilder::null(Place at, Anchor anchor) {
    if (at_key()) {
        complain(at, "a key without text", "write the key; in quotes if it is meant to be ~ or null");
        return take_key(at, {}, false);
    }
    spend(1, at);
    const Anchored value{&add(Node::Type::null, at)};
    if (anchor != 0) anchored_[anchor] = value;
    attach(value);
}

void TreeBuilder::scalar(Place at, std::string text, bool quoted, Anchor anchor) {
    if (text.size() > limits_.scalar_bytes)
        throw Unreadable{at, fmt::format("a text of {} bytes; at most {} are read", text.size(), limits_.scalar_bytes),
                         "shorten it, or keep it in a file of its own"};
    if (at_key()) {
        const bool merge = text == "<<" && !quoted;
        if (merge)
            complain(at, "the merge key << is not read", "write the fields out, or alias the whole value with *name");
        return take_key(at, std::move(text), !merge);
    }
    spend(1, at);
    Node& node = add(Node::Type::scalar, at);
    node.text = std::move(text);
    node.quoted = quoted;
    const Anchored value{.node = &node, .bytes = node.text.size()};
    if (anchor != 0) anchored_[anchor] = value;
    attach(value);
}

void TreeBuilder::take_key(Place at, std::string text, bool counts) {
    Frame& frame = open_.back();
    frame.has_key = true;
    frame.key_counts = counts;
    frame.key = std::move(text);
    frame.key_at = at;
}

void TreeBuilder::begin(Node::Type type, Place at, Anchor anchor) {
    if (open_.size() >= limits_.depth)
        throw Unreadable{at, fmt::format("lists and maps nested more than {} deep", limits_.depth),
                         "no kind of object is that deep; look for an unclosed bracket"};
    const bool is_key = at_key();
    if (is_key) complain(at, "a list or map cannot be a key", "write the key as text");
    spend(1, at);
    open_.push_back(Frame{.node = &add(type, at), .anchor = anchor, .is_key = is_key});
}

void TreeBuilder::end() {
    const Frame frame = std::move(open_.back());
    open_.pop_back();
    if (frame.node->type == Node::Type::map) drop_repeated_keys(*frame.node);
    const Anchored value{frame.node, frame.size, frame.height, frame.bytes};
    if (frame.anchor != 0) anchored_[frame.anchor] = value;
    if (frame.is_key) return take_key(frame.node->at, {}, false);
    attach(value);
}

void TreeBuilder::alias(Place at, Anchor anchor) {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) throw Unreadable{at, "an alias inside the very value it stands for", "write it out"};
    if (at_key()) {
        complain(at, "an alias cannot be a key", "write the key as text");
        return take_key(at, {}, false);
    }
    spend(found->second.size, at);
    if (found->second.bytes > left_.alias_bytes)
        throw Unreadable{at, fmt::format("aliases stand for more than {} bytes of text", limits_.bytes),
                         "split the file, or make what is repeated shorter", true};
    left_.alias_bytes -= found->second.bytes;
    if (open_.size() + found->second.height > limits_.depth)
        throw Unreadable{at, fmt::format("with this alias, lists and maps are nested more than {} deep", limits_.depth),
                         "write the value out, less deep"};
    attach(found->second);
}

void TreeBuilder::attach(const Anchored& value) {
    if (open_.empty()) {
        document_.root = value.node;
        return;
    }
    Frame& frame = open_.back();
    frame.size += value.size;
    frame.height = std::max(frame.height, value.height + 1);
    frame.bytes += value.bytes;
    if (frame.node->type == Node::Type::list) {
        frame.node->items.push_back(value.node);
        return;
    }
    frame.bytes += frame.key.size();
    if (frame.key_counts) frame.node->members.push_back({std::move(frame.key), frame.key_at, value.node});
    frame.has_key = false;
}

void TreeBuilder::drop_repeated_keys(Node& map) {
    std::vector<std::size_t> order(map.members.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {},
                      [&](std::size_t i) { return std::pair<std::string_view, std::size_t>{map.members[i].key, i}; });
    std::vector<Node::Member> kept;
    std::vector<bool> repeated(order.size());
    for (std::size_t i = 1, first = 0; i < order.size(); ++i) {
        const Node::Member& earlier = map.members[order[first]];
        const Node::Member& member = map.members[order[i]];
        if (member.key != earlier.key) {
            first = i;
            continue;
        }
        complain(member.at,
                 fmt::format("\"{}\" is given twice, first in line {}", shortened(member.key), earlier.at.line),
                 "keep one of the two");
        repeated[order[i]] = true;
    }
    for (std::size_t i = 0; i < order.size(); ++i)
        if (!repeated[i]) kept.push_back(std::move(map.members[i]));
    map.members = std::move(kept);
}

}  // namespace bulkhead

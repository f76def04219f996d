#include "bulkhead/hw/program/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace bulkhead::program {

std::vector<std::string> environment_with(const Variables& ours) {
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        if (std::ranges::none_of(ours, [&](const auto& variable) { return variable.first == name; }))
            all.emplace_back(text);
    }
    for (const auto& [name, value] : ours) all.push_back(name + "=" + value);
    return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> all;
    all.reserve(texts.size() + 1);
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
}

}  // namespace bulkhead::program

#include "bulkhead/hw/vm/seed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace bulkhead::vm {

namespace {

constexpr std::size_t record = 512, block = 4096;

bool is_variable_name(std::string_view name) {
    const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
           std::ranges::all_of(name, part);
}

// One header of a ustar archive (POSIX.1-1988): fields of fixed width, numbers in octal.
std::string tar_header(std::string_view name, std::size_t bytes) {
    std::string header(record, '\0');
    const auto put = [&](std::size_t at, std::string_view text) { header.replace(at, text.size(), text); };
    put(0, name);
    put(100, "0000555");
    put(108, "0000000");
    put(116, "0000000");
    put(124, fmt::format("{:011o}", bytes));
    put(136, "00000000000");  // of 1970: the same words give the same disk
    put(148, "        ");
    put(156, "0");
    put(257, std::string_view{"ustar\0"
                              "00",
                              8});
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    put(148, fmt::format("{:06o}", sum));
    header[154] = '\0';
    return header;
}

}  // namespace

std::string shell_word(std::string_view text) {
    std::string word = "'";
    for (const char c : text) {
        if (c == '\'')
            word += "'\\''";
        else if (c != '\0')
            word += c;
    }
    return word + "'";
}

std::string seed_script(const Seed& seed) {
    std::string script = "#!/bin/sh\n";
    for (const std::string& variable : seed.environment) {
        const std::size_t equals = variable.find('=');
        if (equals == std::string::npos || !is_variable_name(std::string_view{variable}.substr(0, equals))) continue;
        script += fmt::format("export {}={}\n", variable.substr(0, equals),
                              shell_word(std::string_view{variable}.substr(equals + 1)));
    }
    if (seed.words.empty()) return script + "while :; do sleep 3600; done\n";
    script += "exec";
    for (const std::string& word : seed.words) script += " " + shell_word(word);
    return script + "\n";
}

std::string seed_disk(const Seed& seed) {
    const std::string script = seed_script(seed);
    std::string disk = tar_header("run", script.size()) + script;
    const std::size_t padded = (disk.size() + record - 1) / record * record + 2 * record;  // two empty records end it
    disk.resize((padded + block - 1) / block * block, '\0');
    return disk;
}

}  // namespace bulkhead::vm

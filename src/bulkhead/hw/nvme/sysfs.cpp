#include "bulkhead/hw/nvme/sysfs.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace bulkhead::nvme {

namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
}

std::string first_line_of(const std::string& path) {
    std::ifstream file{path};
    std::string line;
    std::getline(file, line);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\n' || line.back() == '\0')) line.pop_back();
    line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
    for (char& byte : line)
        if (byte < ' ' || byte > '~') byte = '?';
    return line;
}

std::vector<std::string> names_in(const std::string& path) {
    std::vector<std::string> names;
    std::error_code failed;
    for (fs::directory_iterator at{path, failed}, end; !failed && at != end; at.increment(failed))
        names.push_back(at->path().filename().string());
    std::ranges::sort(names);
    return names;
}

std::string link_name(const std::string& path) {
    std::error_code failed;
    const fs::path target = fs::read_symlink(path, failed);
    return failed ? std::string{} : target.filename().string();
}

std::optional<std::uint64_t> parse_number(std::string_view text, int base) {
    if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<DeviceNumber> parse_device_number(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto major = parse_number(text.substr(0, colon)), minor = parse_number(text.substr(colon + 1));
    if (!major || !minor || *major > 0xFFF || *minor > 0xFFFFF) return std::nullopt;
    return DeviceNumber{static_cast<std::uint32_t>(*major), static_cast<std::uint32_t>(*minor)};
}

}  // namespace bulkhead::nvme

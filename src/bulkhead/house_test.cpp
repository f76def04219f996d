// The house keeps its own rules: rooms and arrows as docs/tour.md lists them, and pure rooms that reach for nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path root = BULKHEAD_SOURCE_DIR;

struct Room {
    int level = 0;
    bool pure = false;
    std::set<std::string> beside;  // rooms of the same level it may include, in brackets in the list
};

std::string slurp(const fs::path& path) {
    std::ifstream file{path};
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// Lines of the block in docs/tour.md: "  policy/     3 pure [other]  who may sit beside whom".
std::map<std::string, Room> rooms_of_the_tour() {
    std::map<std::string, Room> rooms;
    std::istringstream tour{slurp(root / "docs/tour.md")};
    const std::regex row{R"(^  ([a-z0-9]+)/\s+(\d+)( pure)?\s*(?:\[([a-z ]*)\])?.*)"};
    for (std::string line; std::getline(tour, line);) {
        std::smatch match;
        if (!std::regex_match(line, match, row)) continue;
        Room room{.level = std::stoi(match[2]), .pure = match[3].matched};
        std::istringstream beside{match[4].str()};
        for (std::string name; beside >> name;) room.beside.insert(name);
        rooms[match[1]] = room;
    }
    return rooms;
}

struct Source {
    std::string room;
    fs::path path;
    std::string text;
    bool is_test = false;
};

std::vector<Source> sources() {
    std::vector<Source> all;
    for (const auto& entry : fs::recursive_directory_iterator{root / "src/bulkhead"}) {
        const std::string ending = entry.path().extension().string();
        if (ending != ".hpp" && ending != ".cpp") continue;
        const fs::path below = fs::relative(entry.path(), root / "src/bulkhead");
        if (below.begin()->string() == below.string()) continue;  // this file
        const std::string stem = below.stem().string();
        const bool is_test = stem.ends_with("_test") || stem.ends_with("_bench") || stem.ends_with("_fuzz");
        all.push_back({below.begin()->string(), below, slurp(entry.path()), is_test});
    }
    return all;
}

std::vector<std::string> includes_of(const std::string& text) {
    static const std::regex include{R"re(#\s*include\s*[<"]([^>"]+)[>"])re"};
    std::vector<std::string> out;
    for (std::sregex_iterator it{text.begin(), text.end(), include}, end; it != end; ++it) out.push_back((*it)[1]);
    return out;
}

// "bulkhead/gpu/board.hpp" -> "gpu"
std::optional<std::string> room_of_include(const std::string& include) {
    if (!include.starts_with("bulkhead/")) return std::nullopt;
    const std::size_t slash = include.find('/', 9);
    return slash == std::string::npos ? std::nullopt : std::optional{include.substr(9, slash - 9)};
}

std::string without_comments_and_strings(const std::string& text) {
    static const std::regex noise{R"re(//[^\n]*|/\*[\s\S]*?\*/|"(?:\\.|[^"\\\n])*")re"};
    return std::regex_replace(text, noise, " ");
}

bool arrow_is_listed(const std::map<std::string, Room>& rooms, const std::string& from, const std::string& to) {
    if (from == to) return true;
    const auto a = rooms.find(from), b = rooms.find(to);
    if (a == rooms.end() || b == rooms.end()) return false;
    return b->second.level < a->second.level || (b->second.level == a->second.level && a->second.beside.contains(to));
}

// What a pure room must not reach for, as words in code or as headers. Text in, text out needs none of it.
const std::regex impure_word{
    R"re(\b(std::cout|std::cerr|std::clog|std::cin|printf|fprintf|fopen|ifstream|ofstream|fstream|std::thread|std::jthread|std::mutex|std::atomic|std::async|system_clock|steady_clock|high_resolution_clock|getenv|setenv|random_device|std::rand|srand|time\s*\(\s*(nullptr|NULL|0)\s*\)|spdlog|syslog|dlopen|socket\s*\()\b)re"};
const std::set<std::string> impure_headers{
    "iostream",    "fstream", "thread",   "mutex", "atomic", "future",     "random",
    "cstdio",      "stdio.h", "unistd.h", "ctime", "time.h", "filesystem", "condition_variable",
    "shared_mutex"};

TEST(House, the_tour_lists_every_room_and_only_rooms_that_can_be) {
    const auto rooms = rooms_of_the_tour();
    ASSERT_GE(rooms.size(), 6u) << "docs/tour.md has lost its list of rooms";
    for (const auto& entry : fs::directory_iterator{root / "src/bulkhead"})
        if (entry.is_directory()) {
            EXPECT_TRUE(rooms.contains(entry.path().filename())) << entry.path();
        }
    for (const auto& [name, room] : rooms)
        for (const std::string& other : room.beside)
            EXPECT_TRUE(rooms.contains(other)) << name << " may include " << other << ", which is no room";
}

TEST(House, every_room_has_a_readme) {
    for (const auto& entry : fs::directory_iterator{root / "src/bulkhead"})
        if (entry.is_directory()) {
            EXPECT_TRUE(fs::exists(entry.path() / "README.md")) << entry.path();
        }
}

TEST(House, arrows_point_down) {
    const auto rooms = rooms_of_the_tour();
    for (const Source& source : sources())
        for (const std::string& include : includes_of(source.text))
            if (const auto to = room_of_include(include)) {
                EXPECT_TRUE(arrow_is_listed(rooms, source.room, *to))
                    << source.path << " includes " << include << ": no arrow leads from " << source.room << " to "
                    << *to;
            }
}

TEST(House, pure_rooms_reach_for_nothing) {
    const auto rooms = rooms_of_the_tour();
    for (const Source& source : sources()) {
        const auto room = rooms.find(source.room);
        if (source.is_test || room == rooms.end() || !room->second.pure) continue;
        // base/result.cpp holds the one exception: the last words before a bug stops the program.
        if (source.path == fs::path{"base/result.cpp"}) continue;
        for (const std::string& include : includes_of(source.text))
            EXPECT_FALSE(impure_headers.contains(include)) << source.path << " includes <" << include << ">";
        const std::string code = without_comments_and_strings(source.text);
        std::smatch match;
        EXPECT_FALSE(std::regex_search(code, match, impure_word)) << source.path << " uses " << match.str();
    }
}

TEST(House, the_guards_themselves_can_see) {
    const std::map<std::string, Room> rooms{
        {"base", {0, true, {}}}, {"model", {1, true, {}}}, {"codec", {2, true, {}}}, {"gpu", {2, true, {"codec"}}}};
    struct Row {
        const char *from, *to;
        bool allowed;
    };
    for (const Row& row : {Row{"model", "base", true}, Row{"base", "model", false}, Row{"gpu", "codec", true},
                           Row{"codec", "gpu", false}, Row{"codec", "nowhere", false}, Row{"gpu", "gpu", true}})
        EXPECT_EQ(arrow_is_listed(rooms, row.from, row.to), row.allowed) << row.from << " -> " << row.to;
    EXPECT_TRUE(std::regex_search(std::string{"auto t = std::chrono::system_clock::now();"}, impure_word));
    EXPECT_FALSE(std::regex_search(without_comments_and_strings("// std::cout\nauto s = \"getenv\";"), impure_word));
    EXPECT_EQ(room_of_include("bulkhead/gpu/board.hpp"), "gpu");
}

}  // namespace

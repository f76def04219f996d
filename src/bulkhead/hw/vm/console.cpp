#include "bulkhead/hw/vm/console.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace bulkhead::vm {

namespace {

// virtlogd keeps three by default; its max_backups may say otherwise.
constexpr int older_pieces_max = 64;
constexpr int looks_max = 16;

// A number of a file may be given again when the file is gone, but not at the same instant.
struct FileIdentity {
    std::uint64_t inode = 0;
    std::int64_t birth = 0;
    friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct KnownPiece {
    FileIdentity file;
    std::int64_t start = 0, size = 0;
    friend bool operator==(const KnownPiece&, const KnownPiece&) = default;
};

std::unexpected<Error> cannot_console(std::string_view what, const std::string& path) {
    return fail(Code::unavailable, fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)), "see dmesg");
}

std::vector<KnownPiece> read_pieces(const std::string& path) {
    std::vector<KnownPiece> all;
    std::ifstream file{path};
    for (KnownPiece one; file >> one.start >> one.size >> one.file.inode >> one.file.birth;) all.push_back(one);
    return all;
}

// It outlives us, and no machine: no disk is waited for.
Result<> write_pieces(const std::string& path, const std::vector<KnownPiece>& all) {
    const std::string draft = path + ".new";
    {
        std::ofstream file{draft, std::ios::trunc};
        for (const KnownPiece& one : all)
            file << fmt::format("{} {} {} {}\n", one.start, one.size, one.file.inode, one.file.birth);
        if (!file.flush()) return cannot_console("write", draft);
    }
    return ::rename(draft.c_str(), path.c_str()) == 0 ? Result<>{} : cannot_console("keep", path);
}

// Where each begins: after the one before it, counted from one that is known.
void number_pieces(std::vector<KnownPiece>& now, const std::vector<KnownPiece>& before) {
    std::size_t first = 0;
    std::int64_t start = before.empty() ? 0 : before.back().start + before.back().size;
    for (std::size_t i = now.size(); i-- > 0;)
        if (const auto at = std::ranges::find(before, now[i].file, &KnownPiece::file); at != before.end()) {
            first = i;
            start = at->start;
        }
    for (std::size_t i = first; i < now.size(); start += now[i++].size) now[i].start = start;
    for (std::size_t i = first; i-- > 0;) now[i].start = now[i + 1].start - now[i].size;
}

}  // namespace

struct Console::Piece {
    Piece() = default;
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;
    Piece(Piece&& other) noexcept : known{other.known}, handle{std::exchange(other.handle, -1)} {}
    Piece& operator=(Piece&& other) noexcept {
        std::swap(known, other.known);
        std::swap(handle, other.handle);
        return *this;
    }
    ~Piece() {
        if (handle >= 0) ::close(handle);
    }
    KnownPiece known;
    int handle = -1;

    // False: there is none of that name.
    Result<bool> open(const std::string& path) {
        handle = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (handle < 0 && errno == ENOENT) return false;
        struct statx found{};
        if (handle < 0 || ::statx(handle, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &found) != 0)
            return cannot_console("open", path);
        known.file.inode = found.stx_ino;
        if ((found.stx_mask & STATX_BTIME) != 0)
            known.file.birth = found.stx_btime.tv_sec * 1'000'000'000 + found.stx_btime.tv_nsec;
        known.size = static_cast<std::int64_t>(found.stx_size);
        return true;
    }
};

// From the oldest on. Looked at from the newest on, so that one that is renamed meanwhile is seen twice and not never;
// and once more where that was so.
Result<std::vector<Console::Piece>> Console::pieces() const {
    std::vector<Piece> all;
    for (int look = 0;; ++look) {
        all.clear();
        bool is_steady = true;
        for (int i = -1; i < older_pieces_max; ++i) {
            Piece one;
            const auto opened = one.open(i < 0 ? path_ : fmt::format("{}.{}", path_, i));
            if (!opened) return std::unexpected(opened.error());
            if (!*opened && i >= 0) break;
            if (!*opened) continue;  // renamed, and the next is not made yet
            const auto same = [&](const Piece& other) { return other.known.file == one.known.file; };
            if (std::ranges::any_of(all, same)) is_steady = false;
            all.push_back(std::move(one));
        }
        Piece newest;
        const auto still = newest.open(path_);
        if (!still) return std::unexpected(still.error());
        if (*still && (all.empty() || !(all.front().known.file == newest.known.file))) is_steady = false;
        if (is_steady) break;
        if (look >= looks_max)
            return fail(Code::unavailable, fmt::format("{} is renamed faster than it can be looked at", path_),
                        "ask again");
    }
    std::ranges::reverse(all);
    std::vector<KnownPiece> now;
    now.reserve(all.size());
    for (const Piece& one : all) now.push_back(one.known);
    const std::vector<KnownPiece> before = read_pieces(record());
    number_pieces(now, before);
    if (!now.empty() && now != before)
        if (auto kept = write_pieces(record(), now); !kept) return std::unexpected(kept.error());
    for (std::size_t i = 0; i < all.size(); ++i) all[i].known.start = now[i].start;
    return all;
}

Result<ConsoleText> Console::read(std::int64_t from, std::size_t most) const {
    const auto all = pieces();
    if (!all) return std::unexpected(all.error());
    ConsoleText text{.from = std::max(from, all->empty() ? 0 : all->front().known.start), .bytes = {}};
    for (const Piece& one : *all) {
        const std::int64_t at = text.from + std::ssize(text.bytes) - one.known.start;
        if (at >= one.known.size || text.bytes.size() >= most) continue;
        const std::size_t had = text.bytes.size(),
                          wanted = std::min(static_cast<std::size_t>(one.known.size - at), most - had);
        text.bytes.resize(had + wanted);
        const ssize_t got = ::pread(one.handle, text.bytes.data() + had, wanted, at);
        if (got < 0) return cannot_console("read", path_);
        text.bytes.resize(had + static_cast<std::size_t>(got));
        if (static_cast<std::size_t>(got) < wanted) break;  // it was cut since: what comes after is not next to it
    }
    return text;
}

Result<ConsoleText> Console::tail(std::size_t most) const {
    std::int64_t end = 0;
    {
        const auto all = pieces();
        if (!all) return std::unexpected(all.error());
        if (!all->empty()) end = all->back().known.start + all->back().known.size;
    }
    return read(std::max<std::int64_t>(end - static_cast<std::int64_t>(most), 0), most);
}

Result<> Console::keep() const {
    const auto all = pieces();
    return all ? Result<>{} : std::unexpected(all.error());
}

Result<> Console::forget() const {
    if (::unlink(record().c_str()) != 0 && errno != ENOENT) return cannot_console("remove", record());
    for (int i = -1; i < older_pieces_max; ++i) {
        const std::string path = i < 0 ? path_ : fmt::format("{}.{}", path_, i);
        if (::unlink(path.c_str()) != 0 && errno != ENOENT) return cannot_console("remove", path);
    }
    return {};
}

}  // namespace bulkhead::vm

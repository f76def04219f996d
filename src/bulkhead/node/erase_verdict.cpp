#include "bulkhead/node/erase_verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace bulkhead {

namespace {

// Where a 4 KiB piece of a known structure has its mark.
struct Magic {
    std::size_t at;
    std::string_view bytes;
};
constexpr auto magics = std::to_array<Magic>({
    {510, "\x55\xAA"},        // a boot record
    {0, "EFI PART"},          // GPT, in its own block
    {512, "EFI PART"},        // and behind the boot record
    {1080, "\x53\xEF"},       // ext4's superblock
    {0, "XFSB"},              //
    {64, "_BHRfS_M"},         // btrfs
    {0, "LABELONE"},          // LVM
    {512, "LABELONE"},        //
    {0, "LUKS\xBA\xBE"},      //
    {0, "SKUL\xBA\xBE"},      // its second header
    {0, "\xFC\x4E\x2B\xA9"},  // md
    {4086, "SWAPSPACE2"},     //
    {0, "NTFS    "},          //
});

bool has_magic(std::string_view bytes) {
    // Two bytes turn up in noise once in 65,536 pieces, which a thorough look would meet: they do not count alone.
    return std::ranges::any_of(magics, [&](const Magic& magic) {
        return magic.bytes.size() >= 4 && bytes.size() >= magic.at + magic.bytes.size() &&
               bytes.substr(magic.at, magic.bytes.size()) == magic.bytes;
    });
}

bool is_constant(std::string_view bytes) {
    return std::ranges::all_of(bytes, [&](char byte) { return byte == bytes.front(); });
}

// Chi squared over the 256 values of a byte: 255 on average for noise, with a deviation of 23, so that one look in 10^9
// is called data for no reason; text, tables and code are beyond it by thousands.
bool is_noise(std::string_view bytes) {
    std::array<std::int64_t, 256> counts{};
    for (const char byte : bytes) ++counts[static_cast<unsigned char>(byte)];
    const double expected = static_cast<double>(bytes.size()) / 256;
    double chi = 0;
    for (const std::int64_t count : counts) {
        const double off = static_cast<double>(count) - expected;
        chi += off * off / expected;
    }
    return chi < 420;
}

std::string print_place(DrivePlace place) { return fmt::format("byte {} of namespace {}", place.offset, place.nsid); }

}  // namespace

Contents contents_of(std::string_view bytes) {
    if (bytes.empty()) return Contents::data;
    if (is_constant(bytes) && bytes.front() == '\0') return Contents::zeros;
    if (is_constant(bytes) && bytes.front() == '\xFF') return Contents::ones;
    return !has_magic(bytes) && is_noise(bytes) ? Contents::noise : Contents::data;
}

void BeforeImages::saw(DrivePlace place, std::string_view bytes) {
    places_.push_back(place);
    if (bytes.empty() || is_constant(bytes)) return;
    const Hash seen = hash(bytes);
    hashes_[place] = seen;
    by_hash_.emplace(seen, place);
}

void BeforeImages::could_not_read(DrivePlace place) {
    places_.push_back(place);
    ++unread_;
}

bool BeforeImages::is_what_was_there(DrivePlace place, std::string_view bytes) const {
    const auto found = hashes_.find(place);
    return found != hashes_.end() && found->second == hash(bytes);
}

bool BeforeImages::was_anywhere(std::string_view bytes) const {
    return !bytes.empty() && !is_constant(bytes) && by_hash_.contains(hash(bytes));
}

bool BeforeImages::kept_any_of(std::uint32_t nsid) const {
    const auto first = hashes_.lower_bound({nsid, 0});
    return first != hashes_.end() && first->first.nsid == nsid;
}

std::size_t EraseVerdict::told(std::uint32_t nsid) const {
    const auto found = told_.find(nsid);
    return found != told_.end() ? found->second : 0;
}

void EraseVerdict::fault(DrivePlace place, std::string_view what) {
    ++faults_;
    if (first_fault_.empty()) first_fault_ = fmt::format("{} {}", print_place(place), what);
}

void EraseVerdict::read(DrivePlace place, std::string_view bytes, Deallocated promised) {
    ++looks_;
    bytes_ += static_cast<std::int64_t>(bytes.size());
    chain_ = sha256({bytes_of(chain_), fmt::format("{}/{}\n", place.nsid, place.offset), bytes});
    const auto residue = [&](std::string_view what) {
        residue_ += static_cast<std::int64_t>(bytes.size());
        fault(place, what);
    };
    if (before_.is_what_was_there(place, bytes)) return residue("holds what it held before");
    if (before_.was_anywhere(bytes)) return residue("holds what was elsewhere on the drive before");
    switch (contents_of(bytes)) {
        case Contents::zeros:
            ++zeros_;
            ++told_[place.nsid];
            return;
        case Contents::ones:
            ++ones_;
            // A drive may deallocate what it has overwritten.
            if (method_ == EraseMethod::host_zeroes ||
                (method_ == EraseMethod::sanitize_overwrite && promised != Deallocated::ones))
                return residue("holds ones, and was overwritten with zeros");
            ++told_[place.nsid];
            return;
        case Contents::noise:
            ++noise_;
            if (method_ == EraseMethod::host_zeroes || method_ == EraseMethod::sanitize_overwrite)
                return residue("holds noise, and was overwritten with zeros");
            if (promised != Deallocated::unknown)
                return residue("holds noise, and the drive says that erased blocks read as a constant");
            if (!before_.kept_any_of(place.nsid))
                return fault(place,
                             "holds noise, and nothing of its namespace is known from before that it could be "
                             "told from");
            ++noise_let_through_[place.nsid];
            if (before_.kept_at(place)) ++told_[place.nsid];
            return;
        case Contents::data:
            return residue("holds what looks like data");
    }
}

void EraseVerdict::unreadable(DrivePlace place, std::string_view why) {
    ++looks_;
    fault(place, fmt::format("cannot be read: {}", why));
}

// Afterwards as many places are looked at for the first time as are looked at again: where a third of the noise could
// have told, two thirds of what was looked at before were no constant.
std::optional<std::uint32_t> EraseVerdict::too_little_known() const {
    constexpr std::size_t one_in = 3;
    for (const auto& [nsid, noise] : noise_let_through_)
        if (told(nsid) * one_in < noise) return nsid;
    return std::nullopt;
}

std::string EraseVerdict::why_not() const {
    if (erased()) return {};
    if (looks_ == 0) return "nothing was read";
    if (!first_fault_.empty())
        return fmt::format(
            "{} of {} places are not empty or cannot be read; the first: {}; {}", faults_, looks_, first_fault_,
            residue_ > 0 ? "name another method (--erase) before it is wiped again, or take the drive out of the fleet"
                         : "have it wiped again, and see dmesg where it cannot be read");
    const std::uint32_t nsid = *too_little_known();
    return fmt::format(
        "too little is known of namespace {} from before: {} of its places hold noise, and {} could have told it from "
        "what was there; have it wiped again, which then has this noise to compare with",
        nsid, noise_let_through_.at(nsid), told(nsid));
}

std::string EraseVerdict::digest() const { return to_hex(bytes_of(chain_)); }

}  // namespace bulkhead

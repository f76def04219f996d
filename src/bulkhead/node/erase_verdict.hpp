// Whether a drive is empty, judged by what was read from it before and after. What was there before is kept as keyed
// hashes only, so that the judge holds nothing of the tenant's. Zeros and ones pass. Noise passes where the drive does
// not promise zeros, because a drive that lost its key deciphers what is left to noise; but a tenant's own ciphertext
// is noise too, so that it passes only in a namespace of which enough was kept to compare with, and never after an
// overwrite, which leaves zeros. What was there before passes never, nor does anything that looks like data, nor what
// cannot be read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/node/erase_plan.hpp"

namespace bulkhead {

enum class Contents : std::uint8_t { zeros, ones, noise, data };
Contents contents_of(std::string_view bytes);

// What deallocated blocks read as, by Identify Namespace (DLFEAT).
enum class Deallocated : std::uint8_t { unknown, zeros, ones };

struct DrivePlace {
    std::uint32_t nsid = 0;
    std::uint64_t offset = 0;
    friend auto operator<=>(const DrivePlace&, const DrivePlace&) = default;
};

class BeforeImages {
public:
    explicit BeforeImages(std::string key) : key_{std::move(key)} {}
    // Kept only where it is no constant: what was empty before proves nothing by being so after.
    void saw(DrivePlace place, std::string_view bytes);
    void could_not_read(DrivePlace place);
    bool is_what_was_there(DrivePlace place, std::string_view bytes) const;
    // Anywhere: a drive that moves data around has not erased it.
    bool was_anywhere(std::string_view bytes) const;
    const std::vector<DrivePlace>& places() const { return places_; }  // all that were looked at, in that order
    std::size_t kept() const { return hashes_.size(); }
    bool kept_at(DrivePlace place) const { return hashes_.contains(place); }
    bool kept_any_of(std::uint32_t nsid) const;
    std::size_t unread() const { return unread_; }

private:
    Hash hash(std::string_view bytes) const { return hmac_sha256(key_, bytes); }
    std::string key_;
    std::map<DrivePlace, Hash> hashes_;
    std::map<Hash, DrivePlace> by_hash_;
    std::vector<DrivePlace> places_;
    std::size_t unread_ = 0;
};

// Fed with everything that was read afterwards.
class EraseVerdict {
public:
    EraseVerdict(const BeforeImages& before, EraseMethod method) : before_{before}, method_{method} {}
    void read(DrivePlace place, std::string_view bytes, Deallocated promised);
    void unreadable(DrivePlace place, std::string_view why);

    bool erased() const { return first_fault_.empty() && looks_ > 0 && !too_little_known(); }
    std::string why_not() const;
    std::int64_t bytes() const { return bytes_; }
    std::int64_t bytes_residue() const { return residue_; }
    std::string digest() const;  // SHA-256 of what was read, place by place
    std::size_t looks() const { return looks_; }
    std::size_t zeros() const { return zeros_; }
    std::size_t ones() const { return ones_; }
    std::size_t noise() const { return noise_; }
    // Places of a namespace that would have shown it, had they kept what they held: what reads as a constant, and noise
    // where there is something to compare it with.
    std::size_t told(std::uint32_t nsid) const;

private:
    void fault(DrivePlace place, std::string_view what);
    // A namespace in which noise was let through, and too few places could have told whose noise it is.
    std::optional<std::uint32_t> too_little_known() const;
    const BeforeImages& before_;
    EraseMethod method_;
    std::map<std::uint32_t, std::size_t> told_, noise_let_through_;
    std::size_t looks_ = 0, zeros_ = 0, ones_ = 0, noise_ = 0, faults_ = 0;
    std::int64_t bytes_ = 0, residue_ = 0;
    std::string first_fault_;
    Hash chain_{};
};

}  // namespace bulkhead

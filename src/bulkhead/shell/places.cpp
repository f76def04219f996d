#include "bulkhead/shell/places.hpp"

#include <algorithm>

namespace bulkhead::shell {

std::map<Places::Id, Places::Guest>::iterator Places::longest_here(const std::string* address) {
    return std::ranges::find_if(guests_, [&](const auto& entry) {
        const Guest& guest = entry.second;
        return guest.stranger && !guest.answering && (address == nullptr || guest.address == *address);
    });
}

void Places::no_stranger(const Guest& guest) {
    if (!guest.stranger) return;
    --strangers_;
    const auto count = strangers_of_.find(guest.address);
    if (--count->second == 0) strangers_of_.erase(count);
}

void Places::remove(std::map<Id, Guest>::iterator guest) {
    no_stranger(guest->second);
    guests_.erase(guest);
}

Places::Taken Places::take(const std::string& address) {
    const std::lock_guard lock{mutex_};
    const auto of_address = strangers_of_.find(address);
    const bool many_of_it = of_address != strangers_of_.end() && of_address->second >= limits_.strangers_of_one_address;
    Taken taken;
    if (many_of_it || strangers_ >= limits_.strangers || guests_.size() >= limits_.all) {
        // An address that has its share makes room by itself, and does not push others out.
        const auto goes = longest_here(many_of_it ? &address : nullptr);
        if (goes == guests_.end()) return {};
        taken.instead = goes->first;
        remove(goes);
    }
    taken.place = next_++;
    guests_.emplace(*taken.place, Guest{.address = address});
    ++strangers_;
    ++strangers_of_[address];
    return taken;
}

void Places::show_token(Id place) {
    const std::lock_guard lock{mutex_};
    const auto guest = guests_.find(place);
    if (guest == guests_.end()) return;
    no_stranger(guest->second);
    guest->second.stranger = false;
}

void Places::answering(Id place, bool now) {
    const std::lock_guard lock{mutex_};
    if (const auto guest = guests_.find(place); guest != guests_.end()) guest->second.answering = now;
}

void Places::leave(Id place) {
    const std::lock_guard lock{mutex_};
    if (const auto guest = guests_.find(place); guest != guests_.end()) remove(guest);
}

std::size_t Places::strangers() const {
    const std::lock_guard lock{mutex_};
    return strangers_;
}

}  // namespace bulkhead::shell

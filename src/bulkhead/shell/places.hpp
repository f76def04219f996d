// Who may be connected. Whoever has not yet shown a token is a stranger: strangers have only part of the places, and of
// one address only a few. When they are full, the stranger who has been here longest makes room for the newcomer:
// whoever holds a token needs a place only for as long as it takes to show it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace bulkhead::shell {

class Places {
public:
    struct Limits {
        std::size_t all = 1024;
        std::size_t strangers = 768;  // the rest is for those who hold a token
        std::size_t strangers_of_one_address = 64;
    };
    explicit Places(Limits limits) : limits_{limits} {}

    using Id = std::uint64_t;
    struct Taken {
        std::optional<Id> place;    // nothing: there is none
        std::optional<Id> instead;  // whose place it was; that connection has to go
    };
    Taken take(const std::string& address);
    void show_token(Id place);           // a stranger no longer
    void answering(Id place, bool now);  // who is being answered is not sent away
    void leave(Id place);                // one that was given to somebody else is left already

    std::size_t strangers() const;

private:
    struct Guest {
        std::string address;
        bool stranger = true, answering = false;
    };
    // Of all strangers, or of one address, the one who has been here longest.
    std::map<Id, Guest>::iterator longest_here(const std::string* address);
    void remove(std::map<Id, Guest>::iterator guest);
    void no_stranger(const Guest& guest);

    const Limits limits_;
    mutable std::mutex mutex_;
    std::map<Id, Guest> guests_;  // the oldest first
    std::map<std::string, std::size_t> strangers_of_;
    std::size_t strangers_ = 0;
    Id next_ = 1;
};

}  // namespace bulkhead::shell

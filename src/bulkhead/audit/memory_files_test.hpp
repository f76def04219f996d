// A directory in memory whose power can fail. Tests look into it, spoil it, and start again from what is left.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <string>

#include "bulkhead/audit/files.hpp"

namespace bulkhead::audit {

class MemoryFiles final : public Files {
public:
    using Content = std::map<std::string, std::string>;
    explicit MemoryFiles(std::shared_ptr<Content> content = std::make_shared<Content>())
        : content_{std::move(content)} {}

    // After so many changes the power fails: of the files being put then, some arrive, each whole; nothing works after.
    void fail_power_after(int changes, std::uint64_t seed) {
        left_ = changes;
        random_.seed(seed);
    }
    // The change after so many reports an error, and works when tried again. It may have happened all the same.
    void fail_once_after(int changes, bool although_done) {
        once_ = changes;
        although_done_ = although_done;
    }

    Result<std::optional<std::string>> read(const std::string& path) const override {
        if (off_) return dead();
        const auto found = content_->find(path);
        return found == content_->end() ? std::nullopt : std::optional{found->second};
    }
    Result<std::vector<std::string>> list(const std::string& directory) const override {
        if (off_) return dead();
        std::vector<std::string> names;
        for (const auto& [path, bytes] : *content_)
            if (path.starts_with(directory + '/') && path.find('/', directory.size() + 1) == std::string::npos)
                names.push_back(path.substr(directory.size() + 1));
        return names;
    }
    Result<> put(std::span<const NewFile> files) override {
        return change([&](auto&& arrives) {
            for (const NewFile& file : files)
                if (arrives()) (*content_)[file.path] = file.bytes;
        });
    }
    Result<> remove(const std::string& path) override {
        return change([&](auto&& arrives) {
            if (arrives())
                std::erase_if(*content_, [&](const auto& file) {
                    return file.first == path || file.first.starts_with(path + '/');
                });
        });
    }

private:
    static std::unexpected<Error> dead() { return fail(Code::unavailable, "the power is off"); }

    Result<> change(auto&& apply) {
        if (off_) return dead();
        if (left_-- == 0) {
            off_ = true;
            apply([&] { return random_() % 2 == 0; });
            return dead();
        }
        const bool fails = once_-- == 0;
        if (!fails || although_done_) apply([] { return true; });
        if (fails) return fail(Code::exhausted, "the disk is full");
        return {};
    }

    std::shared_ptr<Content> content_;
    int left_ = -1, once_ = -1;
    bool although_done_ = false, off_ = false;
    std::mt19937_64 random_;
};

}  // namespace bulkhead::audit

// A table for people: columns as wide as their widest cell; names to the left, numbers to the right, a rule under the
// heading.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace bulkhead::cli {

class Ruled {
public:
    // The first so many columns are names.
    Ruled(std::vector<std::string> heading, std::size_t names);

    void add(std::vector<std::string> row);
    void print(std::ostream& out) const;
    bool empty() const { return rows_.size() == 1; }

private:
    void print(std::ostream& out, const std::vector<std::string>& row) const;

    std::size_t names_;
    std::vector<std::vector<std::string>> rows_;
    std::vector<std::size_t> widths_;
};

}  // namespace bulkhead::cli

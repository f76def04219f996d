// Objects of the server as the commands handle them: named by kind, read in pages, shown as tables.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/cli/client.hpp"
#include "bulkhead/cli/terminal.hpp"
#include "bulkhead/model/snapshot.hpp"
#include "bulkhead/shell/routes.hpp"

namespace bulkhead::cli {

// "nodes", "node", "no", "GpuNode": whatever a person calls it, with the nearest name when it is none.
Result<const shell::KindName*> parse_kind(std::string_view word);

struct ListQuery {
    ObjectKind kind{};
    std::string selector;
};
struct Listed {
    Snapshot objects;   // of the one kind
    std::string point;  // to watch from
};
Result<Listed> list_all(Client& client, const ListQuery& query);
Result<AnyObject> read_object(std::string_view json);

// The heading, and one row for each object.
Row heading_of(ObjectKind kind, bool wide);
Row row_of(const AnyObject& object, bool wide);

std::string percent_encoded(std::string_view text);
// "/v1/workloads/train", or "/v1/workloads/train?tenant=acme" of what a person calls acme/train.
std::string target_of(std::string_view plural, std::string_view given, std::string_view door = {});

}  // namespace bulkhead::cli

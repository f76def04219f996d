#include "bulkhead/store/reader.hpp"

#include "bulkhead/store/connection.hpp"

namespace bulkhead::store {

struct Reader::State {
    mutable Connection connection;
};

Result<Reader> Reader::open(const Options& options) {
    Result<Connection> connection = Connection::open(options, Access::read);
    if (!connection) return std::unexpected(connection.error());
    return Reader{std::make_unique<State>(std::move(*connection))};
}

Reader::Reader(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

Result<Position> Reader::position() const { return state_->connection.position(); }
Result<std::vector<Leaf>> Reader::leaves(std::int64_t first, std::int64_t count) const {
    return state_->connection.leaves(first, count);
}
Result<Leaf> Reader::leaf(std::int64_t index) const { return state_->connection.leaf(index); }

}  // namespace bulkhead::store

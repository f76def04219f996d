// Whatever bytes are in the file: opening, loading and checking it ends in an answer, never in a crash. An input is
// either a whole file (it begins as SQLite's do) or a list of edits to a sound one: three bytes of place, one of value.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "bulkhead/store/reader.hpp"
#include "bulkhead/store/scratch_test.hpp"

using namespace bulkhead;
using namespace bulkhead::store;

namespace {

Options in(const Scratch& scratch) {
    Options options = scratch.options();
    options.sync = Sync::off;
    options.secret_if_new = std::string(32, 's');
    return options;
}

std::string sound_file() {
    const Scratch scratch;
    {
        Store store = Store::open(in(scratch)).value();
        Batch batch{.epoch = store.raise_epoch().value()};
        for (std::int64_t i = 0; i < 30; ++i) {
            const std::string body(static_cast<std::size_t>(i * i * 8), 'b');
            batch.rows.push_back({static_cast<Table>(i % 11), i, body});
            batch.leaves.push_back(leaf_number(i));
        }
        invariant(store.commit(batch).has_value(), "a sound file can be made");
    }
    std::ifstream file{scratch.path(), std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

std::string edited(std::string file, const std::uint8_t* data, std::size_t size) {
    for (std::size_t i = 0; i + 4 <= size; i += 4) {
        const std::size_t place = data[i] | (std::size_t{data[i + 1]} << 8) | (std::size_t{data[i + 2]} << 16);
        file[place % file.size()] = static_cast<char>(data[i + 3]);
    }
    return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::string sound = sound_file();
    static const Scratch scratch;
    const std::string_view input{reinterpret_cast<const char*>(data), size};
    const std::string bytes = input.starts_with("SQLite format 3") ? std::string{input} : edited(sound, data, size);
    for (const char* ending : {"-wal", "-shm", "-journal"}) ::unlink((scratch.path() + ending).c_str());
    std::ofstream{scratch.path(), std::ios::binary | std::ios::trunc} << bytes;

    Result<Store> store = Store::open(in(scratch));
    if (!store) {
        invariant(!store.error().what.empty() && !store.error().remedy.empty(), "every refusal has words");
        return 0;
    }
    (void)store->load([](Row&&) { return Result<>{}; });
    (void)store->leaves(0, 1000);
    (void)store->check();
    if (auto epoch = store->raise_epoch(); epoch)
        (void)store->commit(
            {.epoch = *epoch, .clock = {1}, .rows = {{Table::lease, 1, "x"}, {Table::node, 4, "", true}}});
    return 0;
}

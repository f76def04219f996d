// What a certificate costs, out of a log of a hundred thousand leaves: the record and the node's key, each with its
// salt from the store and its proof from the tiles.
#include <benchmark/benchmark.h>
#include <fmt/core.h>
#include <stdlib.h>

#include <filesystem>

#include "bulkhead/audit/publisher.hpp"
#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/shell/certificates.hpp"

namespace bulkhead::shell {
namespace {

constexpr std::int64_t leaves_of_bench = 100'000;

struct CertifiedLog {
    CertifiedLog() {
        std::string pattern = std::filesystem::temp_directory_path() / "bulkhead-certificates-XXXXXX";
        folder = ::mkdtemp(pattern.data());
        const auto seeded = [](char c) { return evidence::SigningKey::from_seed(std::string(32, c)).value(); };
        const evidence::SigningKey log_key = seeded('L'), node_key = seeded('n');
        options = {.path = folder / "store.db", .sync = store::Sync::off};
        auto store = store::Store::open(options).value();
        auto tiles = audit::Publisher::open(folder / "tiles", "log.example/fleet", log_key).value();
        Batch batch{.epoch = store.raise_epoch(0).value(), .clock = Instant{1'800'000'000'000}};
        for (std::int64_t i = 0; i < leaves_of_bench; ++i) {
            evidence::Record record{.kind = evidence::RecordKind::wiped, .at = {i}, .actor = "node:node-7"};
            record.node = "node-7";
            record.unit = "gpu3/slices 4-7";
            record.lease = fmt::format("lease-{}", i);
            if (i == 0) {
                record = evidence::key_added({1}, "api:admin", "node-7", node_key.public_key());
            } else {
                evidence::WipeStatement wipe;
                wipe.node = record.node;
                wipe.unit = record.unit;
                wipe.lease = record.lease;
                wipe.device = "GPU-5e1f";
                wipe.method = "overwrite";
                wipe.result = evidence::WipeResult::verified;
                record.evidence = {evidence::statement_text(wipe), evidence::key_id(node_key.public_key()), "c2ln"};
            }
            Leaf leaf{.index = i, .salt = std::string(16, 's'), .payload = payload_of(record)};
            leaf.entry = evidence::commit_to(leaf.salt, leaf.payload);
            tiles.append(leaf.entry);
            batch.leaves.push_back(std::move(leaf));
        }
        if (!store.commit(batch) || !tiles.publish()) std::abort();
        certificates = std::make_unique<Certificates>(options, folder / "tiles",
                                                      Certificates::Signers{"log.example/fleet", log_key, seeded('l')},
                                                      store.secret());
    }
    ~CertifiedLog() {
        certificates.reset();
        std::filesystem::remove_all(folder);
    }
    std::filesystem::path folder;
    store::Options options;
    std::unique_ptr<Certificates> certificates;
};

void certificate_of_a_lease(benchmark::State& state) {
    const CertifiedLog log;
    std::int64_t lease = 0;
    const auto next = [&] {
        lease = lease % (leaves_of_bench - 1) + 1;
        const auto found = log.certificates->of_lease(fmt::format("lease-{}", lease * 7919 % 99'999 + 1), {.limit = 1});
        return found && print(found->certificates.front()).size() > 1000;
    };
    if (!next()) return state.SkipWithError("no certificate");  // the first question reads the whole log
    for (auto _ : state)
        if (!next()) return state.SkipWithError("no certificate");
}
BENCHMARK(certificate_of_a_lease)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace bulkhead::shell

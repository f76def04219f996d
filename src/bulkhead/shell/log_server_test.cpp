// The log as strangers meet it at a running server: proofs, keys, and a key that changes whatever stops the server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <thread>

#include "bulkhead/audit/tile_reader.hpp"
#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/evidence/key_history.hpp"
#include "bulkhead/evidence/log_proof.hpp"
#include "bulkhead/evidence/merkle.hpp"
#include "bulkhead/shell/fixture_test.hpp"
#include "bulkhead/shell/https_probe_test.hpp"
#include "bulkhead/shell/log_key_files.hpp"
#include "bulkhead/shell/server.hpp"
#include "bulkhead/store/store.hpp"

namespace bulkhead::shell {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

struct LogPlane {
    explicit LogPlane(const ScratchFolder& folder) {
        ServerOptions options;
        options.data = folder / "data";
        options.port = options.agent_port = 0;
        options.sync = false;
        options.tick = Duration{100};
        options.log_origin = std::filesystem::exists(options.data) ? "" : "log.example/fleet";
        auto started = Server::start(std::move(options), log);
        if (!started) {
            error = started.error().what;
            return;
        }
        server = *std::move(started);
        token = slurp(server->token_file());
        token.pop_back();
        const std::string admin = server->token_file();
        security = slurp(admin.substr(0, admin.rfind('/') + 1) + "security.token");
        security.pop_back();
        probe = std::make_unique<Probe>(server->port(), slurp(server->ca_file()));
    }
    Heard ask(const std::string& method, const std::string& target, const std::string& body = {}, bool known = false) {
        // The log's keys are not for who operates.
        const std::string& who = target == "/v1/log/rotate-key" ? security : token;
        auto heard = probe->ask(method, target, body, known ? "Authorization: Bearer " + who + "\r\n" : std::string{});
        EXPECT_TRUE(heard) << target;
        return heard.value_or(Heard{});
    }
    // As a stranger: without a token.
    Heard get(const std::string& target) { return ask("GET", target); }
    json::object get_json(const std::string& target) {
        const Heard heard = get(target);
        EXPECT_EQ(heard.status, 200) << target << heard.body;
        return heard.status == 200 ? json::parse(heard.body).as_object() : json::object{};
    }
    // The checkpoint over at least so many leaves.
    std::string checkpoint_over(std::uint64_t size) {
        for (int i = 0; i < 300; ++i) {
            const Heard note = get("/v1/log/checkpoint");
            if (note.status == 200 && checkpoint_in(note.body).size >= size) return note.body;
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
        }
        ADD_FAILURE() << "the log was not published";
        return {};
    }
    static evidence::Checkpoint checkpoint_in(const std::string& note) {
        return evidence::parse_checkpoint(evidence::parse_note(note)->text).value();
    }
    void add_tenants(int first, int count) {
        for (int i = first; i < first + count; ++i)
            EXPECT_EQ(ask("POST", "/v1/tenants", tenant_json("tenant-" + std::to_string(i)), true).status, 201);
    }
    evidence::VerifierKey key() { return evidence::parse_verifier_key(server->verifier_key()).value(); }

    Log log{-1};
    std::unique_ptr<Server> server;
    std::string token, security, error;
    std::unique_ptr<Probe> probe;
};

Hash hash_in(const json::value& text) { return *hash_from(*from_base64(std::string{text.as_string()})); }
std::vector<Hash> hashes_in(const json::value& list) {
    std::vector<Hash> out;
    for (const json::value& one : list.as_array()) out.push_back(hash_in(one));
    return out;
}

TEST(LogServer, proves_every_entry_to_a_stranger) {
    const ScratchFolder folder;
    LogPlane plane{folder};
    ASSERT_TRUE(plane.server) << plane.error;
    ASSERT_EQ(plane.ask("POST", "/v1/apply", policy_yaml, true).status, 200);
    plane.add_tenants(0, 5);
    const std::string note = plane.checkpoint_over(7);
    const evidence::Checkpoint checkpoint = plane.checkpoint_in(note);
    for (std::uint64_t index = 0; index < 7; ++index) {
        const json::object shown = plane.get_json("/v1/log/proof?index=" + std::to_string(index));
        const std::string entry = *from_hex(std::string{shown.at("entry").as_string()});
        EXPECT_TRUE(evidence::verify_inclusion({index, checkpoint.size, evidence::leaf_hash(entry), checkpoint.root},
                                               hashes_in(shown.at("proof"))))
            << index;
        EXPECT_EQ(shown.at("checkpoint").as_string(), note);
        const Heard text = plane.get(fmt::format("/v1/log/proof?entry={}&format=tlog-proof", to_hex(entry)));
        ASSERT_EQ(text.status, 200) << text.body;
        const auto proof = evidence::parse_log_proof(text.body);
        ASSERT_TRUE(proof) << text.body;
        EXPECT_EQ(proof->index, index) << "found by the entry itself";
        EXPECT_TRUE(evidence::verify_log_proof(*proof, entry, plane.key()));
    }
    // In a tree that was, and from any tree to any later one.
    const json::object earlier = plane.get_json("/v1/log/proof?index=2&size=5");
    const std::string entry = *from_hex(std::string{earlier.at("entry").as_string()});
    EXPECT_TRUE(evidence::verify_inclusion({2, 5, evidence::leaf_hash(entry), hash_in(earlier.at("root"))},
                                           hashes_in(earlier.at("proof"))));
    EXPECT_FALSE(earlier.contains("checkpoint"));
    for (std::uint64_t from = 1; from <= 7; ++from)
        for (std::uint64_t to = from; to <= 7; ++to) {
            const json::object shown = plane.get_json(fmt::format("/v1/log/consistency?from={}&to={}", from, to));
            EXPECT_TRUE(evidence::verify_consistency(
                {{from, to}, hash_in(shown.at("fromRoot")), hash_in(shown.at("toRoot"))}, hashes_in(shown.at("proof"))))
                << from << ' ' << to;
        }
    EXPECT_EQ(hash_in(plane.get_json("/v1/log/consistency?from=3").at("toRoot")), checkpoint.root);
}

TEST(LogServer, is_open_to_everybody_for_hashes_and_to_nobody_else_for_records) {
    const ScratchFolder folder;
    LogPlane plane{folder};
    ASSERT_TRUE(plane.server) << plane.error;
    plane.checkpoint_over(1);
    struct Row {
        const char *method, *target;
        int status;
    };
    const Row rows[] = {
        {"GET", "/v1/log/checkpoint", 200},
        {"GET", "/v1/log/key", 200},
        {"GET", "/v1/log/keys", 200},
        {"GET", "/v1/log/tile/0/000.p/1", 200},
        {"GET", "/v1/log/tile/entries/000.p/1", 200},
        {"GET", "/v1/log/proof?index=0", 200},
        {"GET", "/v1/log/proof", 400},
        {"GET", "/v1/log/proof?index=0&entry=00", 400},
        {"GET", "/v1/log/proof?entry=00", 400},
        {"GET", "/v1/log/proof?entry=zz", 400},
        {"GET", "/v1/log/proof?index=-1", 400},
        {"GET", "/v1/log/proof?index=x", 400},
        {"GET", "/v1/log/proof?index=1000000", 404},
        {"GET", "/v1/log/proof?index=0&size=1000000", 404},
        {"GET", "/v1/log/proof?index=0&size=0", 404},
        {"GET", "/v1/log/proof?index=0&format=pdf", 400},
        {"GET", "/v1/log/proof?index=0&colour=red", 400},
        {"GET", "/v1/log/consistency", 400},
        {"GET", "/v1/log/consistency?from=0", 400},
        {"GET", "/v1/log/consistency?from=1000000", 404},
        {"GET", "/v1/log/records", 401},
        {"GET", "/v1/certificates?lease=x", 401},
        {"POST", "/v1/log/rotate-key", 401},
    };
    for (const Row& row : rows) {
        Probe stranger{plane.server->port(), slurp(plane.server->ca_file())};
        const auto heard = stranger.ask(row.method, row.target, {}, "");
        ASSERT_TRUE(heard) << row.target;
        EXPECT_EQ(heard->status, row.status) << row.target << ' ' << heard->body;
    }
    EXPECT_EQ(plane.get("/v1/log/proof?entry=" + std::string(64, '0')).status, 404);
}

TEST(LogServer, gets_another_key_and_old_and_new_certificates_verify) {
    const ScratchFolder folder;
    evidence::VerifierKey first, second;
    std::string old_note, history_text;
    {
        LogPlane plane{folder};
        ASSERT_TRUE(plane.server) << plane.error;
        plane.add_tenants(0, 0);
        ASSERT_EQ(plane.ask("POST", "/v1/apply", policy_yaml, true).status, 200);
        old_note = plane.checkpoint_over(2);
        first = plane.key();
        const Heard rotated = plane.ask("POST", "/v1/log/rotate-key", {}, true);
        ASSERT_EQ(rotated.status, 200) << rotated.body;
        second = plane.key();
        EXPECT_NE(first, second);
        EXPECT_EQ(json::parse(rotated.body).at("key").as_string(), print(second));
        EXPECT_EQ(plane.get("/v1/log/key").body, print(second) + "\n");
        EXPECT_FALSE(std::filesystem::exists(folder / "data/keys/log.next"));
        plane.add_tenants(1, 2);
        const std::string newer = plane.checkpoint_over(5);
        history_text = plane.get("/v1/log/keys").body;
        const auto history = evidence::read_key_history(history_text);
        ASSERT_TRUE(history) << history_text;
        const auto keys = evidence::keys_of(*history, first);
        ASSERT_TRUE(keys) << keys.error().what;
        EXPECT_EQ(keys->newest(), second);
        EXPECT_TRUE(evidence::open_checkpoint(old_note, *keys));
        EXPECT_TRUE(evidence::open_checkpoint(newer, *keys));
        EXPECT_FALSE(evidence::open_checkpoint(newer, first)) << "the old key signs no more";
        const auto record = evidence::read_record(history->rotations[0].record.payload);
        ASSERT_TRUE(record);
        EXPECT_EQ(record->actor, "api:security-admin") << "who asked for it is in the log";
        EXPECT_EQ(plane.ask("POST", "/v1/log/rotate-key", {}, true).status, 200) << "and again";
        EXPECT_EQ(plane.get_json("/v1/log/keys").at("rotations").as_array().size(), 2u);
    }
    LogPlane again{folder};
    ASSERT_TRUE(again.server) << again.error;
    EXPECT_NE(again.key(), second);
    const auto history = evidence::read_key_history(again.get("/v1/log/keys").body);
    const auto keys = evidence::keys_of(*history, first);
    ASSERT_TRUE(keys);
    again.add_tenants(3, 1);
    const auto audited = audit::TileReader::open(again.server->tiles())->verify_all(*keys, old_note);
    ASSERT_TRUE(audited) << audited.error().what;
    EXPECT_TRUE(audited->continues_older);
}

// Wherever the change stops, the next start knows: given up before its record, brought to its end after it.
TEST(LogServer, a_change_of_key_that_was_cut_short_is_settled_by_the_next_start) {
    // Before the record: a key lies there that nobody has heard of.
    {
        const ScratchFolder folder;
        std::string before;
        {
            LogPlane plane{folder};
            ASSERT_TRUE(plane.server) << plane.error;
            before = plane.server->verifier_key();
        }
        const LogKeyFiles files{folder / "data/keys"};
        ASSERT_TRUE(files.begin(std::string(32, 'N'), 1));
        LogPlane again{folder};
        ASSERT_TRUE(again.server) << again.error;
        EXPECT_EQ(again.server->verifier_key(), before);
        EXPECT_FALSE(std::filesystem::exists(folder / "data/keys/log.next"));
        EXPECT_EQ(again.ask("POST", "/v1/log/rotate-key", {}, true).status, 200) << "and it can be asked for again";
    }
    // After the record, at each step: files as they lay at that moment.
    const ScratchFolder folder;
    std::string seed_before, vkey_before, seed_after, vkey_after;
    {
        LogPlane plane{folder};
        ASSERT_TRUE(plane.server) << plane.error;
        seed_before = slurp(folder / "data/keys/log.seed");
        vkey_before = slurp(folder / "data/keys/log.vkey");
        ASSERT_EQ(plane.ask("POST", "/v1/log/rotate-key", {}, true).status, 200);
        seed_after = slurp(folder / "data/keys/log.seed");
        vkey_after = slurp(folder / "data/keys/log.vkey");
        EXPECT_NE(seed_before, seed_after);
    }
    const std::string history = slurp(folder / "data/keys/log.history");
    const auto lay = [&](const ScratchFolder& copy, const std::string& name, const std::string& bytes) {
        EXPECT_TRUE(auth::write_secret(copy / ("data/keys/" + name), bytes));
    };
    struct Row {
        std::string_view says;
        bool history, seed, vkey;  // written already
    };
    const Row rows[] = {
        {"the record is published, and nothing else is done", false, false, false},
        {"the history has it", true, false, false},
        {"the seed is the new one", true, true, false},
        {"only the old file is still there", true, true, true},
    };
    for (const Row& row : rows) {
        const ScratchFolder copy;
        std::filesystem::copy(folder / "data", copy / "data", std::filesystem::copy_options::recursive);
        if (!row.history) std::filesystem::remove(copy / "data/keys/log.history");
        lay(copy, "log.seed", row.seed ? seed_after : seed_before);
        lay(copy, "log.vkey", row.vkey ? vkey_after : vkey_before);
        ASSERT_TRUE(LogKeyFiles{copy / "data/keys"}.begin(seed_after, 1));
        LogPlane again{copy};
        ASSERT_TRUE(again.server) << row.says << ": " << again.error;
        EXPECT_EQ(again.server->verifier_key() + "\n", vkey_after) << row.says;
        EXPECT_FALSE(std::filesystem::exists(copy / "data/keys/log.next")) << row.says;
        EXPECT_EQ(slurp(copy / "data/keys/log.seed"), seed_after) << row.says;
        ASSERT_EQ(again.ask("POST", "/v1/apply", policy_yaml, true).status, 200);
        const auto keys =
            evidence::keys_of(*evidence::read_key_history(again.get("/v1/log/keys").body),
                              *evidence::parse_verifier_key(vkey_before.substr(0, vkey_before.size() - 1)));
        ASSERT_TRUE(keys) << row.says << keys.error().what;
        again.checkpoint_over(4);
        const auto audited = audit::TileReader::open(again.server->tiles())->verify_all(*keys);
        EXPECT_TRUE(audited) << row.says << (audited ? "" : audited.error().what);
    }
}

TEST(LogServer, refuses_a_key_that_the_log_no_longer_has) {
    const ScratchFolder folder;
    {
        LogPlane plane{folder};
        ASSERT_TRUE(plane.server) << plane.error;
        const std::string seed = slurp(folder / "data/keys/log.seed"), vkey = slurp(folder / "data/keys/log.vkey");
        ASSERT_EQ(plane.ask("POST", "/v1/log/rotate-key", {}, true).status, 200);
        plane.probe.reset();
        plane.server.reset();
        ASSERT_TRUE(auth::write_secret(folder / "data/keys/log.seed", seed));
        ASSERT_TRUE(auth::write_secret(folder / "data/keys/log.vkey", vkey));
    }
    const LogPlane again{folder};
    EXPECT_THAT(again.error, HasSubstr("does not lead to the key it has"));
}

TEST(LogKeyFiles, what_is_no_key_is_refused_with_the_way_out) {
    const ScratchFolder folder;
    const LogKeyFiles files{folder.path()};
    EXPECT_FALSE(*files.next());
    for (const std::string& text : {std::string{""}, std::string{"x 1\n"}, to_hex(std::string(32, 'a')) + " -1\n",
                                    to_hex(std::string(32, 'a')) + " 1", to_hex(std::string(31, 'a')) + " 1\n",
                                    to_hex(std::string(32, 'a')) + " 1x\n"}) {
        ASSERT_TRUE(auth::write_secret(folder / "log.next", text));
        const auto next = files.next();
        ASSERT_FALSE(next) << text;
        EXPECT_EQ(next.error().code, Code::corrupt);
        EXPECT_THAT(next.error().remedy, HasSubstr("remove it"));
    }
    ASSERT_TRUE(files.begin(std::string(32, 'a'), 17));
    EXPECT_EQ((*files.next())->since, 17);
    ASSERT_TRUE(files.abandon());
    EXPECT_FALSE(*files.next());
}

}  // namespace
}  // namespace bulkhead::shell

// The client against a real server in this process, and against what is none.
#include "bulkhead/cli/client.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "bulkhead/auth/ca.hpp"
#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/cli/command.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/objects.hpp"
#include "bulkhead/cli/said_test.hpp"
#include "bulkhead/shell/server.hpp"

namespace bulkhead::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::string_view policy =
    R"({"apiVersion":"bulkhead.dev/v1alpha1","kind":"FleetPolicy","metadata":{"name":"fleet"},
"spec":{"sites":[{"name":"here","jurisdiction":"eu"}]}})";
std::string tenant(const std::string& name) {
    return R"({"apiVersion":"bulkhead.dev/v1alpha1","kind":"Tenant","metadata":{"name":")" + name +
           R"("},"spec":{"class":"batch"}})";
}

class Folder {
public:
    Folder() {
        std::string pattern = fs::temp_directory_path() / "bulkhead-cli-XXXXXX";
        invariant(mkdtemp(pattern.data()) != nullptr, "a scratch folder can be made");
        path_ = pattern;
    }
    ~Folder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    std::string operator/(const std::string& name) const { return path_ / name; }

private:
    fs::path path_;
};

class ClientTest : public testing::Test {
protected:
    ClientTest() {
        auto started =
            shell::Server::start({.data = folder_ / "data", .port = 0, .agent_port = 0, .sync = false}, log_);
        EXPECT_TRUE(started) << (started ? "" : started.error().what);
        server_ = *std::move(started);
        door_ = {.server = server_->url(), .token_file = server_->token_file(), .ca_file = server_->ca_file()};
        EXPECT_EQ(::setenv("BULKHEAD_CONTEXT", (folder_ / "context").c_str(), 1), 0);
    }
    ~ClientTest() override { ::unsetenv("BULKHEAD_CONTEXT"); }

    Client client() {
        auto opened = connect(door_);
        EXPECT_TRUE(opened);
        return *std::move(opened);
    }
    struct Said {
        int status = 0;
        std::string out, err;
    };
    Said say(std::vector<std::string> words) {
        words.insert(words.begin(), "bulkhead");
        std::vector<const char*> argv;
        for (const std::string& word : words) argv.push_back(word.c_str());
        std::ostringstream out, err;
        const int status = run(static_cast<int>(argv.size()), argv.data(), out, err, false);
        return {status, out.str(), err.str()};
    }
    std::string file(const std::string& name, std::string_view text) {
        std::ofstream{folder_ / name} << text;
        return folder_ / name;
    }

    Folder folder_;
    shell::Log log_{-1};
    std::unique_ptr<shell::Server> server_;
    // The token of the duty that lifts what operators may not.
    std::string security() const {
        const std::string admin = server_->token_file();
        return admin.substr(0, admin.rfind('/') + 1) + "security.token";
    }
    DoorOptions door_;
};

TEST_F(ClientTest, asks_several_things_on_one_connection) {
    Client asks = client();
    ASSERT_TRUE(asks.post("/v1/apply", std::string{policy}));
    ASSERT_TRUE(asks.post("/v1/tenants", tenant("acme")));
    const auto read = asks.get("/v1/tenants/acme");
    ASSERT_TRUE(read);
    EXPECT_FALSE(read->etag.empty());
    const auto none = asks.get("/v1/tenants/nobody");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Code::not_found);
    EXPECT_THAT(none.error().remedy, HasSubstr("/v1/tenants"));
    EXPECT_EQ(asks.post("/v1/tenants", tenant("acme")).error().code, Code::conflict);
    EXPECT_EQ(asks.send({.target = "/v1/nowhere"})->status, 404);
}

TEST_F(ClientTest, trusts_only_whom_it_was_told_to) {
    const auth::KeyPair other = *auth::create_ca("other", {{0}, {4'000'000'000'000}});
    const auto open = [&](const std::string& ca, const std::string& token) {
        auto opened = Client::open({.server = server_->url(), .token = token, .ca_pem = ca});
        EXPECT_TRUE(opened);
        return opened->get("/v1/nodes");
    };
    const std::string ca = slurp(server_->ca_file());
    const std::string token = slurp(server_->token_file()).substr(0, 68);
    EXPECT_TRUE(open(ca, token));
    const auto stranger = open(other.certificate, token);
    ASSERT_FALSE(stranger);
    EXPECT_EQ(stranger.error().code, Code::unavailable);
    EXPECT_THAT(stranger.error().remedy, HasSubstr("--ca"));
    const auto wrong = open(ca, "bh1_" + std::string(64, '0'));
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().code, Code::denied);
}

TEST_F(ClientTest, says_what_is_wrong_when_there_is_no_server) {
    for (const char* bad :
         {"", "ftp://x", "https://", "https://h:99999", "https://h:0", "https://h/p", "https://[::1"}) {
        const auto opened = Client::open({.server = bad});
        EXPECT_FALSE(opened) << bad;
    }
    auto nobody = Client::open({.server = "https://127.0.0.1:1"});
    ASSERT_TRUE(nobody);
    const auto asked = nobody->get("/healthz");
    ASSERT_FALSE(asked);
    EXPECT_EQ(asked.error().code, Code::unavailable);
    EXPECT_THAT(asked.error().remedy, HasSubstr("bulkhead up"));
}

TEST_F(ClientTest, gives_up_on_a_server_that_says_nothing) {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listener, 4), 0);
    socklen_t size = sizeof address;
    ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
    auto asks = Client::open({.server = "https://127.0.0.1:" + std::to_string(ntohs(address.sin_port))});
    ASSERT_TRUE(asks);
    const auto asked = asks->get("/healthz");
    ASSERT_FALSE(asked);
    EXPECT_EQ(asked.error().code, Code::timeout) << asked.error().what;
    ::close(listener);
}

TEST_F(ClientTest, watches_until_it_has_seen_enough) {
    Client asks = client();
    ASSERT_TRUE(asks.post("/v1/apply", std::string{policy}));
    ASSERT_TRUE(asks.post("/v1/tenants", tenant("acme")));
    Client watches = client();
    std::vector<std::string> seen;
    const auto watched = watches.watch("/v1/tenants?watch=true", "", [&](const Client::Event& event) {
        seen.push_back(event.type);
        if (event.type == "synced") {
            EXPECT_TRUE(asks.post("/v1/tenants", tenant("beta")));
        }
        return event.data.find("\"beta\"") == std::string::npos;
    });
    EXPECT_TRUE(watched);
    EXPECT_THAT(seen, testing::ElementsAre("added", "synced", "added"));
    const auto gone = watches.watch("/v1/tenants?watch=true", "1-1", [](const Client::Event&) { return true; });
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, Code::not_found);
}

TEST_F(ClientTest, downloads_whole_or_not_at_all) {
    Client asks = client();
    const auto bytes = asks.download({.method = "POST", .target = "/v1/backup"}, folder_ / "copy.db");
    ASSERT_TRUE(bytes) << bytes.error().what;
    EXPECT_EQ(static_cast<std::uintmax_t>(*bytes), fs::file_size(folder_ / "copy.db"));
    EXPECT_EQ(fs::status(folder_ / "copy.db").permissions(), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_FALSE(asks.download({.target = "/v1/nowhere"}, folder_ / "other"));
    EXPECT_FALSE(fs::exists(folder_ / "other"));
    EXPECT_FALSE(fs::exists(folder_ / "other.part"));
    EXPECT_FALSE(asks.download({.method = "POST", .target = "/v1/backup"}, folder_ / "no/such/folder"));
}

TEST_F(ClientTest, commands_leave_a_status_that_scripts_can_trust) {
    ASSERT_TRUE(write_context(door_));
    const std::string good = file("good.yaml",
                                  "apiVersion: bulkhead.dev/v1alpha1\nkind: FleetPolicy\nmetadata: {name: fleet}\n"
                                  "spec: {sites: [{name: here, jurisdiction: eu}]}\n---\n" +
                                      tenant("acme") + "\n");
    const std::string typo = file(
        "typo.yaml", "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: x}\nspec: {klass: batch}\n");
    const std::string orphan = file("orphan.yaml",
                                    "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: x}\nspec:\n  "
                                    "class: batch\n  parent: nobody\n");
    const std::string work = file("work.yaml",
                                  "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: w}\nspec: "
                                  "{tenant: acme, gpu: {count: 1}}\n");
    struct Row {
        std::vector<std::string> words;
        int status;
        std::string says;
    };
    const Row rows[] = {
        {{"apply", "-f", good, "--dry-run"}, done, "created (dry run)"},
        {{"get", "tenants"}, done, "no tenants"},
        {{"apply", "-f", good}, done, "Tenant acme created"},
        {{"apply", "-f", good}, done, "Tenant acme unchanged"},
        {{"apply", "-f", typo}, bad_input, "typo.yaml:4:8"},
        {{"apply", "-f", orphan}, bad_input, "orphan.yaml:6:11"},
        {{"apply", "-f", work}, refused, "nothing was changed"},
        {{"apply", "-f", "/no/such/file"}, could_not, "cannot be read"},
        {{"get", "tenants"}, done, "acme  batch"},
        {{"get", "tn", "acme", "-o", "yaml"}, done, "kind: Tenant"},
        {{"get", "tenant", "acme", "-o", "json"}, done, "\"kind\": \"Tenant\""},
        {{"get", "tenants", "-o", "json"}, done, "\"kind\": \"List\""},
        {{"get", "tenants", "-l", "team=x"}, done, "no tenants"},
        {{"get", "tenants", "-l", "="}, bad_input, "label selector"},
        {{"get", "tenannts"}, bad_input, "try: tenants"},
        {{"get", "tenant", "nobody"}, could_not, "there is no Tenant nobody"},
        {{"get", "tenant", "../../etc"}, bad_input, "not a path"},
        {{"describe", "tenant", "acme"}, done, "class: batch"},
        {{"queue"}, done, "nothing waits"},
        {{"fleet"}, done, "no nodes yet"},
        {{"explain", "nothing"}, could_not, "there is no"},
        {{"drain", "nothing"}, could_not, "there is no GpuNode nothing"},
        {{"freeze", "acme"}, bad_input, "--why"},
        {{"freeze", "acme", "--why", "incident 7"}, done, "acme is frozen"},
        {{"thaw", "acme", "--why", "false alarm"}, done, "acme may run again"},
        {{"hold", "acme", "--why", "court order"}, done, "legal hold"},
        {{"delete", "tenant", "acme"}, refused, "legal hold"},
        {{"unhold", "acme", "--why", "lifted"}, no_entry, "security-admin"},
        {{"unhold", "acme", "--why", "lifted", "--token-file", security()}, done, "no longer"},
        {{"repair", "nothing", "gpu0", "--why", "looked", "--token-file", security()}, could_not, "there is no"},
        {{"certificate", "--lease", "nothing"}, could_not, "no wipe"},
        {{"certificate"}, bad_input, "--lease"},
        {{"token", "create", "--subject", "eve", "--role", "auditor"}, no_entry, "bind-roles"},
        {{"token", "create", "--subject", "eve", "--role", "auditor", "--token-file", security()}, done, "bh1_"},
        {{"whoami"}, done, "manage-fleet"},
        {{"token", "create", "--subject", "bob", "--role", "tenant-user", "--tenant", "acme", "--valid-for", "1h"},
         done,
         "bh1_"},
        {{"token", "node", "rack-*"}, done, "bh1_"},
        {{"token", "list"}, done, "auditor"},
        {{"token", "revoke", "0000000000000000"}, could_not, "there is no token"},
        {{"audit", "list"}, done, "tenant-frozen"},
        {{"backup", folder_ / "b.db"}, done, "verified"},
        {{"delete"}, bad_input, "delete what?"},
        {{"get", "nodes", "--server", "https://127.0.0.1:1", "--token-file", server_->token_file(), "--ca",
          server_->ca_file()},
         could_not,
         "cannot reach"},
    };
    for (const Row& row : rows) {
        const Said said = say(row.words);
        std::string line;
        for (const std::string& word : row.words) line += word + " ";
        EXPECT_EQ(said.status, row.status) << line << '\n' << said.out << said.err;
        EXPECT_THAT(said.out + said.err, HasSubstr(row.says)) << line;
    }
    // What is in the way of a deletion is named with the command that removes it.
    const Said kept = say({"delete", "tenant", "acme"});
    EXPECT_EQ(kept.status, refused);
    const std::string remedy = "bulkhead token revoke ", all = kept.out + kept.err;
    ASSERT_THAT(all, HasSubstr(remedy));
    EXPECT_EQ(
        say({"token", "revoke", all.substr(all.find(remedy) + remedy.size(), 16), "--token-file", security()}).status,
        done);
    EXPECT_THAT(say({"delete", "tenant", "acme"}).out, HasSubstr("Tenant acme deleted"));
    const Said gone = say({"delete", "-f", good});
    EXPECT_EQ(gone.status, could_not);
    EXPECT_THAT(gone.out + gone.err, HasSubstr("there is no Tenant acme"));
}

TEST_F(ClientTest, who_may_not_ask_hears_that_and_not_that_it_was_refused) {
    ASSERT_TRUE(write_context(door_));
    ASSERT_EQ(say({"apply", "-f", file("p.yaml", std::string{policy} + "\n")}).status, done);
    const auto secret = [&](const std::string& name, const std::string& text) {
        EXPECT_TRUE(auth::write_secret(folder_ / name, text));
        return folder_ / name;
    };
    const Said made = say({"token", "create", "--subject", "eve", "--role", "auditor", "--token-file", security()});
    const std::string auditor = secret("auditor", made.out), unknown = secret("unknown", "bh1_" + std::string(64, '0'));
    const std::string acme = file("acme.json", tenant("acme"));
    const std::string lease = file(
        "lease.json",
        R"({"apiVersion":"bulkhead.dev/v1alpha1","kind":"GpuLease","metadata":{"name":"l"},"spec":{"tenant":"a","workload":"w","mechanism":"mig","tier":"container"}})");
    EXPECT_EQ(say({"get", "nodes", "--token-file", unknown}).status, no_entry) << "no such token";
    EXPECT_EQ(say({"get", "nodes", "--token-file", auditor}).status, done);
    EXPECT_EQ(say({"apply", "-f", acme, "--token-file", auditor}).status, no_entry) << "another role's business";
    EXPECT_EQ(say({"apply", "-f", lease}).status, refused) << "no token would help";
    fs::permissions(auditor, fs::perms::others_read, fs::perm_options::add);
    EXPECT_EQ(say({"get", "nodes", "--token-file", auditor}).status, no_entry) << "a secret that others can read";
}

TEST_F(ClientTest, a_token_without_an_end_is_not_shown_as_revoked) {
    ASSERT_TRUE(write_context(door_));
    ASSERT_EQ(say({"token", "create", "--subject", "bob", "--valid-for", "8h", "--token-file", security()}).status,
              done);
    const std::string out = say({"token", "list"}).out;
    EXPECT_THAT(out, testing::ContainsRegex("admin +no end")) << "the first ones";
    EXPECT_THAT(out, testing::ContainsRegex("bob +20[0-9][0-9]-"));
    EXPECT_THAT(out, testing::Not(HasSubstr("revoked")));
}

TEST(Answer, of_our_own_server_is_read_whole_or_it_is_said_that_it_was_not) {
    EXPECT_FALSE(read_answer({.status = 200, .body = ""}));
    EXPECT_FALSE(read_answer({.status = 200, .body = "{\"items\":["}));
    std::string items = "{\"items\":[{}";
    while (items.size() < (6u << 20)) items += ",{\"kind\":\"GpuWorkload\",\"result\":\"created\"}";
    const auto read = read_answer({.status = 200, .body = items + "]}"});
    ASSERT_TRUE(read) << "more than is read of strangers";
    EXPECT_GT(read->root->find("items")->items.size(), 100'000u);
}

TEST_F(ClientTest, the_context_of_another_fleet_is_kept) {
    EXPECT_FALSE(other_context(door_)) << "there is none";
    ASSERT_TRUE(write_context(door_));
    EXPECT_FALSE(other_context(door_)) << "this one's";
    EXPECT_FALSE(other_context({.server = "https://127.0.0.1:1", .token_file = door_.token_file})) << "another port";
    EXPECT_EQ(other_context({.server = "https://control.example:7443", .token_file = "/elsewhere"}), door_.server);
    std::ofstream{context_path()} << "nonsense";
    EXPECT_TRUE(other_context(door_)) << "what cannot be read is not replaced";
}

TEST_F(ClientTest, the_published_log_is_checked_without_a_server) {
    ASSERT_TRUE(write_context(door_));
    ASSERT_EQ(say({"apply", "-f", file("p.yaml", policy)}).status, done);
    const std::string tiles = server_->tiles(), key = server_->verifier_key();
    server_.reset();
    EXPECT_THAT(say({"audit", "verify", "--tiles", tiles, "--key", key}).out, HasSubstr("VERIFIED  2 entries"));
    EXPECT_THAT(say({"audit", "prove", "1", "--tiles", tiles, "--key", key}).out, HasSubstr("entry 1 is in the log"));
    EXPECT_EQ(say({"audit", "prove", "7", "--tiles", tiles, "--key", key}).status, could_not);
    EXPECT_EQ(say({"audit", "verify", "--tiles", tiles, "--key", "nonsense"}).status, bad_input);
    // One bit of one published entry.
    for (const auto& entry : fs::recursive_directory_iterator{tiles + "/tile/entries"}) {
        if (!entry.is_regular_file()) continue;
        std::string bytes = slurp(entry.path());
        bytes.back() = static_cast<char>(bytes.back() ^ 1);
        fs::permissions(entry.path(), fs::perms::owner_all);
        std::ofstream{entry.path(), std::ios::binary} << bytes;
    }
    const Said tampered = say({"audit", "verify", "--tiles", tiles, "--key", key});
    EXPECT_EQ(tampered.status, could_not);
    EXPECT_THAT(tampered.out, HasSubstr("NOT WHAT WAS SIGNED"));
    EXPECT_EQ(say({"verify", file("c.json", "{}"), "--key", key}).status, bad_input);
}

TEST_F(ClientTest, a_token_written_down_for_one_server_is_not_shown_to_another) {
    ASSERT_TRUE(write_context(door_));
    EXPECT_EQ(fs::status(context_path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    // Another address of the same server: nothing of the context is used for it, so it is not trusted.
    std::string other = server_->url();
    other.replace(other.find("127.0.0.1"), 9, "localhost");
    const Said said = say({"get", "nodes", "--server", other});
    EXPECT_EQ(said.status, could_not);
    EXPECT_THAT(said.err, HasSubstr("cannot trust"));
    fs::permissions(context_path(), fs::perms::others_read, fs::perm_options::add);
    EXPECT_NE(say({"get", "nodes"}).status, done) << "and a context that others may read is not believed";
}

TEST(Kinds, are_known_by_every_name_people_use) {
    struct Row {
        std::string_view typed, type;
    };
    for (const Row& row : {Row{"nodes", "GpuNode"}, Row{"node", "GpuNode"}, Row{"no", "GpuNode"},
                           Row{"GpuNode", "GpuNode"}, Row{"wl", "GpuWorkload"}, Row{"classes", "TenantClass"},
                           Row{"policy", "FleetPolicy"}, Row{"ls", "GpuLease"}}) {
        const auto kind = parse_kind(row.typed);
        ASSERT_TRUE(kind) << row.typed;
        EXPECT_EQ((*kind)->type, row.type) << row.typed;
    }
    EXPECT_EQ(parse_kind("lease s").error().remedy, "leases");
    EXPECT_EQ(percent_encoded("a/b c%"), "a%2Fb%20c%25");
}

}  // namespace
}  // namespace bulkhead::cli

// Logging in as a person does: with a real provider, a real server and the program itself; and, where a provider has to
// misbehave, with one that does. Numbers are those of the token checklist in docs/decisions/0025.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <thread>

#include "bulkhead/auth/ca.hpp"
#include "bulkhead/auth/pkce.hpp"
#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/cli/clock.hpp"
#include "bulkhead/cli/device_login.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/login_file.hpp"
#include "bulkhead/shell/provider_test.hpp"
#include "bulkhead/shell/server.hpp"

namespace bulkhead::cli {
namespace {

using shell::ScratchFolder;
using shell::slurp;
using testing::ElementsAre;
using testing::HasSubstr;

bool soon(const std::function<bool()>& holds) {
    for (int i = 0; i < 1200; ++i) {
        if (holds()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
    return false;
}

// A program that was started, its output in a file. While `in` is open, it has somebody to listen to.
class Started {
public:
    Started(std::vector<std::string> words, std::string output, const std::vector<std::string>& environment = {})
        : output_{std::move(output)} {
        std::filesystem::remove(output_);  // what an earlier one said must not be taken for this one's
        std::array<int, 2> pipe{};
        invariant(::pipe2(pipe.data(), O_CLOEXEC) == 0, "a pipe can be made");
        in_ = pipe[1];
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        child_ = ::fork();
        if (child_ != 0) {
            ::close(pipe[0]);
            return;
        }
        const int file = ::open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ::dup2(pipe[0], STDIN_FILENO);
        ::dup2(file, STDOUT_FILENO);
        ::dup2(file, STDERR_FILENO);
        for (const std::string& pair : environment) ::putenv(const_cast<char*>(pair.c_str()));
        ::execvp(argv[0], argv.data());
        ::_exit(127);
    }
    ~Started() { stop(); }
    Started(const Started&) = delete;
    Started& operator=(const Started&) = delete;

    std::string said() const { return slurp(output_); }
    int wait() {
        if (child_ <= 0) return status_;
        int status = 0;
        ::waitpid(child_, &status, 0);
        child_ = -1;
        status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        return status_;
    }
    void stop() {
        if (child_ > 0) ::kill(child_, SIGKILL);
        wait();
        if (in_ >= 0) ::close(std::exchange(in_, -1));
    }

private:
    std::string output_;
    pid_t child_ = -1;
    int in_ = -1, status_ = -1;
};

// Where its modules are; empty: it cannot be had here, and `why` says why.
std::string provider_modules(std::string& why) {
    const std::string script = std::string{BULKHEAD_SOURCE_DIR} + "/scripts/test-provider.sh 2>&1";
    FILE* const pipe = ::popen(script.c_str(), "r");
    if (pipe == nullptr) return {};
    std::string said;
    std::array<char, 512> piece{};
    while (std::fgets(piece.data(), piece.size(), pipe) != nullptr) said += piece.data();
    const int status = ::pclose(pipe);
    if (!said.empty() && said.back() == '\n') said.pop_back();
    if (status == 0) return said;
    why = said;
    return {};
}

// A provider, a server that believes it, and a person who has neither token nor context.
class RealLogin : public testing::Test {
protected:
    void SetUp() override {
        std::string why;
        modules_ = provider_modules(why);
        if (modules_.empty()) GTEST_SKIP() << why;
        const Instant now = clock_now();
        const auth::Validity validity{now + Duration{-3'600'000}, now + Duration::days(1)};
        const auto ca = auth::create_ca("a provider's authority", validity);
        ASSERT_TRUE(ca);
        const auto pair = auth::issue_server(*ca, {.dns = {}, .addresses = {"127.0.0.1"}}, validity);
        ASSERT_TRUE(pair);
        ASSERT_TRUE(auth::write_secret(folder_ / "provider.key", pair->key));
        ASSERT_TRUE(auth::write_secret(folder_ / "provider.crt", pair->certificate));
        ASSERT_TRUE(auth::write_secret(provider_ca(), ca->certificate));
        provider_ = std::make_unique<Started>(
            std::vector<std::string>{"node", data("provider.mjs"), folder_ / "provider.key", folder_ / "provider.crt"},
            folder_ / "provider.log", std::vector<std::string>{"OIDC_MODULES=" + modules_});
        ASSERT_TRUE(soon([&] { return provider_->said().find("\nhttps://127.0.0.1:") != std::string::npos; }))
            << provider_->said();
        const std::string said = provider_->said();
        const std::size_t at = said.find("\nhttps://127.0.0.1:") + 1;
        issuer_ = said.substr(at, said.find('\n', at) - at);

        shell::ServerOptions options{.data = folder_ / "data", .port = 0, .agent_port = 0, .sync = false};
        options.oidc = {.issuer = issuer_, .ca_file = provider_ca(), .cool_down = Duration{0}};
        auto started = shell::Server::start(options, log_);
        ASSERT_TRUE(started) << started.error().what;
        server_ = *std::move(started);
        ::setenv("BULKHEAD_CONTEXT", (folder_ / "config/context").c_str(), 1);
        ::unsetenv("BULKHEAD_LOGIN");
        const std::string policy_file = folder_ / "policy.yaml";
        std::ofstream{policy_file} << shell::policy_yaml;
        EXPECT_EQ(with_token("admin", {"apply", "-f", policy_file}).status, 0);
        std::ofstream{policy_file} << shell::policy_yaml
                                   << "  bindings: [{role: platform-admin, group: /fleet/platform-admins}]\n";
        EXPECT_EQ(with_token("security", {"apply", "-f", policy_file}).status, 0);
        std::ofstream{policy_file} << shell::tenant_yaml.substr(0, shell::tenant_yaml.rfind('}'))
                                   << ", bindings: [{role: tenant-user, group: /acme}]}\n";
        EXPECT_EQ(with_token("admin", {"apply", "-f", policy_file}).status, 0);
    }
    void TearDown() override {
        server_.reset();
        ::unsetenv("BULKHEAD_CONTEXT");
    }

    static std::string data(const std::string& name) {
        return std::string{BULKHEAD_SOURCE_DIR} + "/testdata/oidc/" + name;
    }
    std::string provider_ca() const { return folder_ / "provider-ca.crt"; }

    struct Outcome {
        int status = 0;
        std::string said;
    };
    Outcome say(std::vector<std::string> words) const {
        words.insert(words.begin(), BULKHEAD_PROGRAM);
        Started program{std::move(words), folder_ / "said"};
        const int status = program.wait();
        return {status, program.said()};
    }
    Outcome with_token(const std::string& whose, std::vector<std::string> words) const {
        words.insert(words.end(), {"--server", server_->url(), "--ca", server_->ca_file(), "--token-file",
                                   folder_ / ("data/keys/" + whose + ".token")});
        return say(std::move(words));
    }
    std::string browse(const std::string& address, const std::string& name, const std::string& answer = "yes") const {
        Started browser{{"node", data("approve.mjs"), address, name, answer},
                        folder_ / "browser.log",
                        {"NODE_EXTRA_CA_CERTS=" + provider_ca()}};
        browser.wait();
        return browser.said();
    }
    // The whole of it: the command, and the person elsewhere.
    Outcome log_in_as(const std::string& name, const std::string& answer = "yes") const {
        Started login{{BULKHEAD_PROGRAM, "login", "--server", server_->url(), "--ca", server_->ca_file(), "--oidc-ca",
                       provider_ca()},
                      folder_ / "login.log"};
        const std::string mark = "Or both at once: ";
        EXPECT_TRUE(soon([&] { return login.said().find("Waiting.") != std::string::npos; })) << login.said();
        const std::string shown = login.said();
        const std::size_t at = shown.find(mark);
        if (at == std::string::npos) return {login.wait(), login.said()};
        const std::string address = shown.substr(at + mark.size(), shown.find('\n', at) - at - mark.size());
        const std::string page = browse(address, name, answer);
        EXPECT_THAT(page, HasSubstr("200 "));
        if (page.find("200 ") == std::string::npos) login.stop();  // it would wait for ten minutes
        return {login.wait(), login.said()};
    }
    // The access token is almost over.
    void let_it_end() const {
        auto login = read_login();
        ASSERT_TRUE(login && *login);
        (*login)->expiresAt = clock_now();
        ASSERT_TRUE(write_login(**login));
    }
    std::string provider_does(const std::string& path) const {
        auto fetch = shell::HttpsFetch::open(provider_ca());
        const auto said = fetch->ask({.url = issuer_ + path, .form = "x=y"});
        return said ? said->body : said.error().what;
    }

    ScratchFolder folder_;
    std::string modules_, issuer_;
    std::unique_ptr<Started> provider_;
    shell::Log log_{-1};
    std::unique_ptr<shell::Server> server_;
};

TEST_F(RealLogin, a_person_enters_a_code_elsewhere_and_works_as_who_they_are) {
    const Outcome in = log_in_as("ada");
    ASSERT_EQ(in.status, 0) << in.said;
    EXPECT_THAT(in.said, HasSubstr("bulkhead-cli")) << "which client the page must name";
    struct stat status{};
    ASSERT_EQ(::stat(login_path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    const Outcome policies = say({"get", "policies"});  // no token, no server: all of it is in the login
    EXPECT_EQ(policies.status, 0) << policies.said;
    EXPECT_THAT(policies.said, HasSubstr("fleet"));

    // Others may read it: then it is not believed.
    ASSERT_EQ(::chmod(login_path().c_str(), 0644), 0);
    EXPECT_EQ(say({"get", "policies"}).status, 4);
    ASSERT_EQ(::chmod(login_path().c_str(), 0600), 0);

    // A server it was not given for is not shown it.
    const Outcome elsewhere = say({"get", "policies", "--server", "https://127.0.0.1:1"});
    EXPECT_NE(elsewhere.status, 0);

    EXPECT_EQ(say({"logout"}).status, 0);
    EXPECT_FALSE(std::filesystem::exists(login_path()));
    EXPECT_EQ(say({"get", "policies"}).status, 1) << "which server?";
    EXPECT_EQ(say({"logout"}).status, 0) << "twice is no harm";
}

TEST_F(RealLogin, roles_come_from_bindings_and_nobody_else_has_any) {
    ASSERT_EQ(log_in_as("tim").status, 0);
    EXPECT_EQ(say({"get", "workloads"}).status, 0) << say({"get", "workloads"}).said;
    EXPECT_NE(say({"get", "policies"}).status, 0) << "a tenant's user does not read the fleet's policy";
    ASSERT_EQ(log_in_as("eve").status, 0) << "the provider knows her";
    const Outcome eve = say({"get", "workloads"});
    EXPECT_EQ(eve.status, 4) << "and we do not: /acme-evil is not /acme";
    EXPECT_THAT(eve.said, HasSubstr("bound"));
}

TEST_F(RealLogin, keys_rotate_and_tokens_are_renewed_while_somebody_works) {
    ASSERT_EQ(log_in_as("ada").status, 0);
    const auto first = read_login();
    ASSERT_TRUE(first && *first);
    provider_does("/test/rotate");
    EXPECT_EQ(say({"get", "policies"}).status, 0) << "signed by the old key";
    let_it_end();
    EXPECT_EQ(say({"get", "policies"}).status, 0) << say({"get", "policies"}).said;
    const auto second = read_login();
    ASSERT_TRUE(second && *second);
    EXPECT_NE((*second)->accessToken, (*first)->accessToken) << "a new token, signed by the new key";
    EXPECT_NE((*second)->refreshToken, (*first)->refreshToken) << "which the provider exchanges, too";
    EXPECT_GT((*second)->expiresAt, clock_now());
    provider_does("/test/retire");
    let_it_end();
    EXPECT_EQ(say({"get", "policies"}).status, 0) << "and by the next one";
    ASSERT_TRUE(write_login(**first));
    // No, or not before the keys were asked for again: both are no.
    EXPECT_NE(say({"get", "policies"}).status, 0) << "a key that was withdrawn signs for nobody";
}

TEST_F(RealLogin, a_provider_that_is_down_keeps_nobody_from_working_until_their_token_ends) {
    ASSERT_EQ(log_in_as("ada").status, 0);
    EXPECT_EQ(say({"get", "policies"}).status, 0);
    provider_->stop();
    EXPECT_EQ(say({"get", "policies"}).status, 0) << "the last good keys";
    let_it_end();
    const Outcome over = say({"get", "policies"});
    EXPECT_EQ(over.status, 1) << over.said;
    EXPECT_THAT(over.said, HasSubstr("cannot reach"));
    const Outcome login =
        say({"login", "--server", server_->url(), "--ca", server_->ca_file(), "--oidc-ca", provider_ca()});
    EXPECT_EQ(login.status, 1);
    EXPECT_THAT(login.said, HasSubstr("cannot reach"));
    EXPECT_EQ(with_token("admin", {"get", "policies"}).status, 0) << "tokens of the fleet need no provider";
    const Outcome out = say({"logout"});
    EXPECT_EQ(out.status, 0) << "and the file goes all the same";
    EXPECT_THAT(out.said, HasSubstr("could not be told"));
}

TEST_F(RealLogin, who_refuses_on_the_page_is_not_logged_in) {
    const Outcome no = log_in_as("ada", "no");
    EXPECT_EQ(no.status, 4) << no.said;
    EXPECT_THAT(no.said, HasSubstr("refused on the page"));
    EXPECT_FALSE(std::filesystem::exists(login_path()));
}

TEST_F(RealLogin, item_26_a_device_code_is_good_once) {
    auto fetch = shell::HttpsFetch::open(provider_ca());
    ASSERT_TRUE(fetch);
    shell::Question ask{.url = issuer_ + "/device/auth", .form = "client_id=bulkhead-cli&scope=openid"};
    const auto begun = fetch->ask(ask);
    ASSERT_TRUE(begun) << begun.error().what;
    const auto code = auth::read_device_code(begun->body);
    ASSERT_TRUE(code) << code.error().what << begun->body;
    shell::Question redeem{.url = issuer_ + "/token"};
    shell::add_to_form(redeem.form, "grant_type", auth::device_grant_type);
    shell::add_to_form(redeem.form, "device_code", code->device_code);
    shell::add_to_form(redeem.form, "client_id", "bulkhead-cli");
    const auto outcome = [&] {
        const auto said = fetch->ask(redeem);
        return said ? auth::read_token_answer(said->status, said->body) : std::unexpected(said.error());
    };
    using Kind = auth::TokenAnswer::Kind;
    EXPECT_EQ(outcome()->kind, Kind::pending);
    browse(code->page_with_code, "ada");
    EXPECT_EQ(outcome()->kind, Kind::granted);
    const auto replayed = outcome();
    ASSERT_TRUE(replayed);
    EXPECT_EQ(replayed->kind, Kind::refused);
    EXPECT_EQ(replayed->why.code, Code::denied);
}

TEST_F(RealLogin, item_27_a_console_must_prove_that_it_began_what_it_ends) {
    const auth::Pkce pkce = auth::new_pkce();
    const auto visit = [&](const std::string& more) {
        std::string query;
        for (const auto& [name, value] :
             std::vector<std::pair<std::string, std::string>>{{"client_id", "bulkhead-console"},
                                                              {"response_type", "code"},
                                                              {"scope", "openid"},
                                                              {"redirect_uri", "https://console.example/callback"},
                                                              {"state", auth::new_nonce()},
                                                              {"nonce", auth::new_nonce()}})
            shell::add_to_form(query, name, value);
        return browse(issuer_ + "/auth?" + query + more, "ada");
    };
    EXPECT_THAT(visit(""), HasSubstr("callback?error=invalid_request")) << "without a challenge";
    EXPECT_THAT(visit("&code_challenge=" + pkce.verifier + "&code_challenge_method=plain"),
                HasSubstr("error=invalid_request"));
    auto fetch = shell::HttpsFetch::open(provider_ca());
    ASSERT_TRUE(fetch);
    const auto end = [&](const std::string& verifier) {
        const std::string sent = visit("&code_challenge=" + pkce.challenge + "&code_challenge_method=S256");
        const std::size_t at = sent.find("code=");
        if (at == std::string::npos) return sent;
        shell::Question question{.url = issuer_ + "/token"};
        shell::add_to_form(question.form, "grant_type", "authorization_code");
        shell::add_to_form(question.form, "client_id", "bulkhead-console");
        shell::add_to_form(question.form, "redirect_uri", "https://console.example/callback");
        shell::add_to_form(question.form, "code", sent.substr(at + 5, sent.find_first_of("&\n", at) - at - 5));
        if (!verifier.empty()) shell::add_to_form(question.form, "code_verifier", verifier);
        const auto said = fetch->ask(question);
        return said ? said->body : said.error().what;
    };
    EXPECT_THAT(end(""), HasSubstr("invalid_grant"));
    EXPECT_THAT(end(auth::new_pkce().verifier), HasSubstr("invalid_grant"));
    EXPECT_THAT(end(pkce.verifier), HasSubstr("access_token"));
}

// ---- providers that misbehave ----

struct Talk {
    Talk() {
        provider.describe(fmt::format(
            R"(,"device_authorization_endpoint":"{}","token_endpoint":"{}","code_challenge_methods_supported":["plain","S256"])",
            provider.at("/device"), provider.at("/token")));
        provider.answer("/device", {.body = device("https://id.example/device")});
    }
    static std::string device(const std::string& page) {
        return R"({"device_code":"d","user_code":"AB-CD","verification_uri":")" + page +
               R"(","expires_in":60,"interval":2})";
    }
    static shell::Response no(const std::string& error) {
        return {.status = 400, .body = R"({"error":")" + error + R"("})"};
    }
    static shell::Response granted() {
        return {.body = R"({"access_token":"a.b.c","refresh_token":"r","token_type":"bearer","expires_in":60})"};
    }
    Result<LoggedIn> run() {
        auto fetch = shell::HttpsFetch::open(provider.ca_file());
        return log_in({.issuer = provider.issuer(),
                       .client = "bulkhead-cli",
                       .scopes = "openid",
                       .show = [this](const auth::DeviceCode&) { ++shown; },
                       .pause = [this](Duration time) { pauses.push_back(time.ms / 1000); }},
                      *fetch);
    }
    shell::FakeProvider provider;
    std::vector<std::int64_t> pauses;
    int shown = 0;
};

TEST(DeviceLogin, item_26_asks_as_slowly_as_it_is_told) {
    Talk talk;
    talk.provider.answer_in_turn("/token", {Talk::no("authorization_pending"), Talk::no("slow_down"),
                                            Talk::no("slow_down"), Talk::no("authorization_pending"), Talk::granted()});
    const auto in = talk.run();
    ASSERT_TRUE(in) << in.error().what;
    EXPECT_EQ(in->tokens.access, "a.b.c");
    EXPECT_EQ(talk.shown, 1);
    EXPECT_THAT(talk.pauses, ElementsAre(2, 2, 7, 12, 12)) << "five more each time, and it stays so";
    // Who takes S256 is given it, and the secret only at the end.
    const auto begun = talk.provider.forms("/device"), asked = talk.provider.forms("/token");
    ASSERT_EQ(begun.size(), 1u);
    ASSERT_EQ(asked.size(), 5u);
    EXPECT_THAT(begun.front(), HasSubstr("code_challenge_method=S256"));
    const std::size_t at = asked.front().find("code_verifier=");
    ASSERT_NE(at, std::string::npos);
    EXPECT_THAT(begun.front(), HasSubstr("code_challenge=" + auth::pkce_challenge(asked.front().substr(at + 14, 43))));
}

TEST(DeviceLogin, ends_when_it_is_told_no_or_the_time_is_over) {
    for (const std::string error : {"access_denied", "expired_token", "invalid_grant", "unauthorized_client"}) {
        Talk talk;
        talk.provider.answer_in_turn("/token", {Talk::no(error), Talk::granted()});
        EXPECT_FALSE(talk.run()) << error;
        EXPECT_EQ(talk.provider.asked("/token"), 1) << error;
    }
    Talk forever;
    forever.provider.answer_in_turn("/token", {Talk::no("authorization_pending")});
    const auto late = forever.run();
    ASSERT_FALSE(late);
    EXPECT_THAT(late.error().what, HasSubstr("in time"));
    EXPECT_EQ(forever.pauses.size(), 30u) << "sixty seconds, two at a time";
}

TEST(DeviceLogin, takes_nothing_that_would_harm_a_terminal_a_browser_or_a_header) {
    for (const std::string page :
         {"http://id.example/device", "javascript:alert(1)", "https://id.example/\\u001b[2J", "https://a b"}) {
        Talk talk;
        talk.provider.answer("/device", {.body = Talk::device(page)});
        EXPECT_FALSE(talk.run()) << page;
        EXPECT_EQ(talk.shown, 0);
    }
    for (const std::string body :
         {R"({"access_token":"a\r\nX: y","token_type":"Bearer"})", R"({"access_token":"a","token_type":"DPoP"})",
          R"({"token_type":"Bearer"})", R"({"access_token":"","token_type":"Bearer"})", "[]", ""}) {
        Talk talk;
        talk.provider.answer("/token", {.body = body});
        EXPECT_FALSE(talk.run()) << body;
    }
    Talk without;
    without.provider.describe();
    EXPECT_FALSE(without.run()) << "no device grant there";
}

}  // namespace
}  // namespace bulkhead::cli

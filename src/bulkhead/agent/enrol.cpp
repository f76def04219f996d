#include "bulkhead/agent/enrol.hpp"

#include <fmt/format.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "bulkhead/auth/ca.hpp"
#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/base/hash.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/evidence/signing.hpp"

namespace bulkhead::agent {
namespace {

// Written last: where it lies, the rest is whole.
struct NodeFile {
    std::string name, agents;
    static constexpr void describe(auto&& field) {
        field("name", &NodeFile::name, "The node's name.", Rule{.required = true, .format = Format::name});
        field("agents", &NodeFile::agents, "Where the agent connects.", Rule{.required = true, .format = Format::line});
    }
};

struct Paths {
    explicit Paths(const std::string& folder)
        : key(folder + "/tls.key"),
          certificate(folder + "/tls.crt"),
          renewed(folder + "/tls.pem"),
          ca(folder + "/ca.crt"),
          evidence(folder + "/evidence.key"),
          node(folder + "/node.json") {}
    std::string key, certificate, renewed, ca, evidence, node;
};

Instant now() {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return {std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
}

// The secret at the path, or a new one put there.
template <class Make>
Result<std::string> kept_or_made(const std::string& path, Make&& make) {
    auto kept = auth::read_secret(path);
    if (kept || kept.error().code != Code::not_found) return kept;
    Result<std::string> made = make();
    if (!made) return made;
    if (auto written = auth::write_secret(path, *made); !written) return std::unexpected(written.error());
    return made;
}

Result<std::string> new_evidence_seed() {
    std::string seed(32, '\0');
    if (RAND_bytes(reinterpret_cast<unsigned char*>(seed.data()), static_cast<int>(seed.size())) != 1)
        return fail(Code::unavailable, "the operating system gives no random bytes");
    return to_hex(seed) + "\n";
}

Result<evidence::SigningKey> evidence_key(std::string_view file, const std::string& path) {
    const auto seed = from_hex(file.ends_with('\n') ? file.substr(0, file.size() - 1) : file);
    if (!seed || seed->size() != 32) return fail(Code::corrupt, fmt::format("{} is not a key of 64 hex digits", path));
    return evidence::SigningKey::from_seed(*seed);
}

Result<std::string> pinned_fingerprint(const EnrolmentServer& server) {
    if (!server.ca.empty()) return auth::fingerprint(server.ca);
    return server.ca_fingerprint;
}

// Believed is only what we could have checked ourselves: our key, our name, the CA we were told.
Result<> check_answer(const EnrolOptions& options, const std::string& key, const auth::EnrolmentAnswer& answer) {
    const auto pinned = pinned_fingerprint(options.server), shown = auth::fingerprint(answer.ca);
    if (!pinned) return std::unexpected(pinned.error());
    if (!shown) return std::unexpected(shown.error());
    if (*shown != *pinned)
        return fail(Code::denied, fmt::format("the server answered with the CA {}, not {}", *shown, *pinned));
    if (auto pair = auth::check_pair({key, answer.certificate}); !pair) return pair;
    const auto peer = auth::verify_peer(answer.ca, answer.certificate, now());
    if (!peer) return std::unexpected(peer.error());
    if (peer->node != options.name)
        return fail(Code::denied, fmt::format("the server certified the name {}, not {}", peer->node, options.name));
    return {};
}

Result<auth::KeyPair> load_pair(const Paths& paths) {
    auto renewed = auth::read_secret(paths.renewed);
    if (renewed) {
        const std::size_t split = renewed->find("-----BEGIN CERTIFICATE");
        if (split == std::string::npos)
            return fail(Code::corrupt, fmt::format("{} holds no certificate", paths.renewed));
        return auth::KeyPair{renewed->substr(0, split), renewed->substr(split)};
    }
    if (renewed.error().code != Code::not_found) return std::unexpected(renewed.error());
    auto key = auth::read_secret(paths.key);
    if (!key) return std::unexpected(key.error());
    auto certificate = auth::read_secret(paths.certificate);
    if (!certificate) return std::unexpected(certificate.error());
    return auth::KeyPair{*std::move(key), *std::move(certificate)};
}

Result<> store(const Paths& paths, const auth::EnrolmentAnswer& answer, const std::string& name) {
    for (const auto& [path, content] :
         {std::pair{&paths.certificate, answer.certificate}, std::pair{&paths.ca, answer.ca},
          std::pair{&paths.node, to_json(NodeFile{name, answer.agents})}})
        if (auto written = auth::write_secret(*path, content); !written) return written;
    return {};
}

}  // namespace

Result<Identity> enrol(const EnrolOptions& options) {
    if (::mkdir(options.folder.c_str(), 0700) != 0 && errno != EEXIST)
        return fail(Code::unavailable, fmt::format("cannot make {}: {}", options.folder, std::strerror(errno)));
    const Paths paths{options.folder};
    struct stat facts{};
    if (::lstat(paths.node.c_str(), &facts) == 0)
        return fail(Code::conflict, fmt::format("{} holds the identity of a node already", options.folder),
                    "move the folder away if this machine shall be another node");

    // Of a node this folder was before: it would be taken for what this enrolment is about to bring.
    if (::unlink(paths.renewed.c_str()) != 0 && errno != ENOENT)
        return fail(Code::unavailable, fmt::format("cannot remove {}: {}", paths.renewed, std::strerror(errno)));
    const auto key = kept_or_made(paths.key, [&]() -> Result<std::string> {
        auto made = auth::make_request(options.name);
        if (!made) return std::unexpected(made.error());
        return std::move(made->key);
    });
    if (!key) return std::unexpected(key.error());
    const auto seed = kept_or_made(paths.evidence, new_evidence_seed);
    if (!seed) return std::unexpected(seed.error());
    const auto signer = evidence_key(*seed, paths.evidence);
    if (!signer) return std::unexpected(signer.error());
    auto request = auth::make_request(options.name, *key);
    if (!request) return std::unexpected(request.error());

    const auto answer = ask_for_enrolment(options.server, {options.name, options.token, std::move(*request),
                                                           evidence::print(signer->public_key()), options.spec});
    if (!answer) return std::unexpected(answer.error());
    if (auto good = check_answer(options, *key, *answer); !good) return std::unexpected(good.error());
    if (auto stored = store(paths, *answer, options.name); !stored) return std::unexpected(stored.error());
    return load_identity(options.folder);
}

Result<Identity> load_identity(const std::string& folder) {
    const Paths paths{folder};
    const auto node = auth::read_secret(paths.node);
    if (!node)
        return fail(node.error().code, node.error().what,
                    node.error().code == Code::not_found ? "enrol this machine first" : node.error().remedy);
    NodeFile file;
    ReadText text = read_documents(paths.node, *node, {.bytes = 4096, .documents = 1});
    if (!text.errors.empty() || text.documents.size() != 1 ||
        !decode(*text.documents.front().root, paths.node, file, text.errors))
        return fail(Code::corrupt, text.errors.empty() ? fmt::format("{} is not a node's file", paths.node)
                                                       : print(text.errors.front()));
    auto pair = load_pair(paths);
    if (!pair) return std::unexpected(pair.error());
    Identity identity{.name = file.name,
                      .agents = file.agents,
                      .certificate = std::move(pair->certificate),
                      .key = std::move(pair->key)};
    for (const auto& [path, to] :
         {std::pair{&paths.ca, &identity.ca}, std::pair{&paths.evidence, &identity.evidence_seed}}) {
        auto content = auth::read_secret(*path);
        if (!content) return std::unexpected(content.error());
        *to = std::move(*content);
    }
    if (auto good = auth::check_pair({identity.key, identity.certificate}); !good) return std::unexpected(good.error());
    const auto peer = auth::read_peer(identity.certificate);
    if (!peer) return std::unexpected(peer.error());
    if (peer->node != identity.name)
        return fail(Code::corrupt, fmt::format("{} names {}, but {} names {}", paths.node, identity.name,
                                               paths.certificate, peer->node));
    if (auto signer = evidence_key(identity.evidence_seed, paths.evidence); !signer)
        return std::unexpected(signer.error());
    identity.evidence_seed = *from_hex(identity.evidence_seed.substr(0, 64));
    return identity;
}

Result<> store_renewed(const std::string& folder, const auth::KeyPair& renewed) {
    const Paths paths{folder};
    if (auto written = auth::write_secret(paths.renewed, renewed.key + renewed.certificate); !written) return written;
    // They count no more; that an old key lies around is no reason to fail.
    ::unlink(paths.key.c_str());
    ::unlink(paths.certificate.c_str());
    return {};
}

}  // namespace bulkhead::agent

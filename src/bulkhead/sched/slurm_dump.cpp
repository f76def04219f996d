#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "bulkhead/sched/peer_trees.hpp"

namespace bulkhead::sched {

namespace {

constexpr std::size_t most_dump_bytes = 16 << 20, most_dump_lines = 200'000;

constexpr std::int64_t use_parent = 2'147'483'647;  // how a dump writes Fairshare=parent

std::string_view trimmed(std::string_view text) {
    const std::string_view blank = " \t\r";
    const std::size_t first = text.find_first_not_of(blank);
    return first == text.npos ? std::string_view{} : text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::string_view unquoted(std::string_view text) {
    if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'') return text.substr(1, text.size() - 2);
    return text;
}

std::string lowered(std::string_view text) {
    std::string out{text};
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

// What stands between colons. Slurm quotes without escaping, so a quote ends only where an option may; and the model of
// a GPU comes after a colon too: "GrpTRES=gres/gpu:a100=8". Nothing where a quote stays open.
std::optional<std::vector<std::string_view>> options_of(std::string_view text) {
    std::vector<std::string_view> out;
    bool quoted = false;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i == text.size() || (text[i] == ':' && !quoted && !text.substr(begin, i - begin).ends_with("gres/gpu"))) {
            out.push_back(text.substr(begin, i - begin));
            begin = i + 1;
        } else if (text[i] == '\'' && !quoted) {
            quoted = i == begin || text[i - 1] == '=';
        } else if (text[i] == '\'' && (i + 1 == text.size() || text[i + 1] == ':')) {
            quoted = false;
        }
    }
    if (quoted) return std::nullopt;
    return out;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
    std::int64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
    return number;
}

// Of "cpu=64,gres/gpu=16": 16; of GPUs of one model alone "one model's"; nothing where no GPUs are named.
std::optional<std::string_view> gpus_in(std::string_view list) {
    std::optional<std::string_view> out;
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t end = std::min(list.find(',', at), list.size());
        const std::string_view one = list.substr(at, end - at);
        at = end + 1;
        if (one.starts_with("gres/gpu=")) return one.substr(9);
        if (one.starts_with("gres/gpu:")) out = one.substr(8);
    }
    return out;
}

class DumpReader {
public:
    DumpReader(std::string_view file, Gpus all) : file_{file}, all_{all} {}

    void read(std::string_view line) {
        ++line_;
        line = trimmed(line);
        if (line.empty() || line.starts_with('#')) return;
        const std::size_t dash = line.find(" - ");
        const std::string_view what = dash == line.npos ? std::string_view{} : trimmed(line.substr(0, dash));
        if (what != "Cluster" && what != "Parent" && what != "Account" && what != "User" && what != "QOS")
            return complain("this is no line of a dump",
                            "Cluster - , Parent - , Account - or User - and a name in quotes");
        const auto options = options_of(trimmed(line.substr(dash + 3)));
        if (!options) return complain("a quote that does not end", "'...' around what Slurm puts in quotes");
        if (what == "QOS") return;
        const std::string name{unquoted(trimmed(options->front()))};
        if (name.empty()) return complain(fmt::format("{} without a name", what), fmt::format("{} - 'name'", what));
        if (!may_be_a_name(name) || name.find('/') != name.npos)
            return complain(fmt::format("{} with a name that cannot be one", what), "at most 253 bytes, no '/'");
        ClusterTenant tenant{.name = name};
        for (const std::string_view option : std::span{*options}.subspan(1)) read_option(option, tenant);
        if (what == "Cluster") {
            if (std::exchange(begun_, true)) complain("a second cluster", "dump one cluster");
            all_ = std::min(all_, tenant.limit.value_or(all_));
            return;
        }
        if (what == "Parent") {
            if (name != "root" && !accounts_.contains(name))
                return complain(fmt::format("account \"{}\" is named as a parent before it is there", name),
                                "list an account before those below it, as sacctmgr dump does");
            parent_ = name == "root" ? std::string{} : name;
            return;
        }
        tenant.parent = parent_;
        if (what == "Account") {
            if (name == "root") return;  // what everything is part of
            if (const auto [known, fresh] = accounts_.try_emplace(name, line_); !fresh)
                return complain(fmt::format("account {} is there twice; the first is in line {}", name, known->second),
                                "give each account once");
        } else {
            tenant.name = (parent_.empty() ? "root" : parent_) + "/" + name;
            if (!users_.insert(tenant.name).second) return;  // once for each partition; the first counts
            // Root's own user counts among its neighbours, but has no work.
            if (!parent_.empty() || name != "root") askers_.push_back(cluster_.tenants.size());
        }
        if (cluster_.tenants.size() == most_dump_lines)
            return complain(fmt::format("more than {} associations", most_dump_lines), "dump fewer");
        cluster_.tenants.push_back(std::move(tenant));
    }

    PeerCluster done() {
        if (errors_.empty() && cluster_.tenants.empty()) {
            line_ = std::max(line_, 1);
            complain("there is no account and no user", "sacctmgr dump CLUSTER file=FILE");
        }
        if (!errors_.empty()) return std::unexpected(std::move(errors_));
        cluster_.gpus = all_;
        for (const std::size_t at : askers_)
            cluster_.tenants[at].request = std::min(cluster_.tenants[at].limit.value_or(all_), all_);
        return std::move(cluster_);
    }

    bool given_up() const { return errors_.size() >= 100; }
    void complain(std::string what, std::string remedy) {
        errors_.push_back({{std::string{file_}, line_, 1}, std::move(what), std::move(remedy)});
    }

private:
    void read_option(std::string_view option, ClusterTenant& tenant) {
        const std::size_t equals = option.find('=');
        if (equals == option.npos) return;
        const std::string name = lowered(trimmed(option.substr(0, equals)));
        const std::string_view value = unquoted(trimmed(option.substr(equals + 1)));
        if (name == "fairshare" || name == "shares") {
            const auto number = whole_number(value);
            if (!number || *number < 0 || *number > most_weight)
                return complain(fmt::format("Fairshare={} of {}", shortened(std::string{value}), tenant.name),
                                lowered(value) == "parent" || number == use_parent
                                    ? "give it shares of its own: Fairshare=parent is not read"
                                    : fmt::format("a whole number from 0 to {}", most_weight));
            tenant.weight = *number;
            tenant.shares = number;
        }
        if (name == "grptres")
            if (const auto gpus = gpus_in(value)) {
                const auto number = whole_number(*gpus);
                if (!number || *number < 0 || *number > most_gpus / gpu_unit)
                    return complain(fmt::format("gres/gpu={} of {}", shortened(std::string{*gpus}), tenant.name),
                                    "gres/gpu=N; of one model alone it is not read");
                tenant.limit = Gpus::whole(*number);
            }
    }

    std::string_view file_;
    Gpus all_;
    int line_ = 0;
    bool begun_ = false;
    std::string parent_;
    Cluster cluster_;
    std::map<std::string, int> accounts_;  // with their lines
    std::set<std::string> users_;
    std::vector<std::size_t> askers_;
    std::vector<Diagnostic> errors_;
};

}  // namespace

PeerCluster read_slurm_dump(std::string_view file, std::string_view text, Gpus all) {
    DumpReader reader{file, all};
    if (text.size() > most_dump_bytes) {
        reader.complain(fmt::format("{} bytes, and at most {} are read", text.size(), most_dump_bytes),
                        "dump one cluster");
        return reader.done();
    }
    for (std::size_t at = 0; at < text.size() && !reader.given_up();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        reader.read(text.substr(at, end - at));
        at = end + 1;
    }
    return reader.done();
}

}  // namespace bulkhead::sched

// A control plane and a few model nodes in one place, without a network: what the core orders is carried out at once by
// the real executor, and what it reports comes straight back.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/codec/load.hpp"
#include "bulkhead/core/core.hpp"
#include "bulkhead/node/executor.hpp"
#include "bulkhead/node/model.hpp"

namespace bulkhead {

class Plane {
public:
    struct Node {
        Node(const NodeModelSpec& spec, char seed)
            : model(spec), key(*evidence::SigningKey::from_seed(std::string(32, seed))) {
            executor.emplace(NodeIdentity{.node = spec.node, .grade = Grade::simulated}, key,
                             std::span<const JournalRecord>{});
        }
        NodeModel model;
        evidence::SigningKey key;
        std::optional<Executor> executor;
        std::uint64_t session = 0;
        bool reachable = true;
    };

    explicit Plane(int count = 2, CoreSettings settings = {.simulated_fleet = true, .secret = "test"})
        : settings_(settings) {
        restart(1);
        const std::string policy =
            "apiVersion: bulkhead.dev/v1alpha1\nkind: FleetPolicy\nmetadata: {name: fleet}\nspec:\n"
            "  threatModel: internal\n  sites: [{name: fra, jurisdiction: eu}]\n"
            "  versionGate: {shippedAdvisories: false}\n";
        EXPECT_TRUE(apply(policy).outcome) << apply(policy).outcome.error().what;
        for (int i = 0; i < count; ++i) add_node("n" + std::to_string(i));
        settle();
    }

    static NodeModelSpec model_spec(const std::string& name) {
        return {.node = name,
                .gpus = 2,
                .drives = 1,
                .functions = 2,
                .capabilities = {Capability::mig, Capability::mps, Capability::virtual_machines,
                                 Capability::iommu_groups, Capability::verified_reboot, Capability::rdma,
                                 Capability::local_nvme, Capability::nvlink_partition},
                .versions = {{Component::driver, "580.159.04"}, {Component::container_toolkit, "1.19.1"}},
                .cpu = 64};
    }

    void add_node(const std::string& name) { add_node(model_spec(name)); }
    void add_node(const NodeModelSpec& spec) {
        const std::string& name = spec.node;
        auto node = std::make_unique<Node>(spec, static_cast<char>('a' + nodes.size()));
        command::Enrol enrol{.node = name, .spec = {.site = "fra"}, .evidence_key = print(node->key.public_key())};
        nodes[name] = std::move(node);
        ask(enrol);
        carry(name, nodes[name]->executor->resume(now, nodes[name]->model.boot_id()));
        hello(name);
    }

    // A new process on what was durable.
    void restart(std::int64_t epoch, bool restored = false, Instant last_clock = {}) {
        CoreSettings settings = settings_;
        settings.restored = restored;
        settings.last_clock = last_clock;
        core = std::make_unique<Core>(epoch, static_cast<std::int64_t>(log.size()), settings);
        for (const auto& [key, body] : rows) EXPECT_TRUE(core->load({key.first, key.second, body, false}));
        for (auto& [name, node] : nodes) node->session = 0;
        keep(core->start(now));
    }

    void hello(const std::string& name) {
        Node& node = *nodes[name];
        node.session = ++sessions_;
        event(AgentHello{name, node.session, node.executor->hello(node.model.inventory(), node.model.boot_id())});
    }

    void fault(const std::string& name, const FaultReport& report) {
        carry(name, nodes[name]->executor->on_fault(now, report));
    }

    void exit(const std::string& name, const TenantExit& exit) {
        carry(name, nodes[name]->executor->on_exit(now, exit));
    }

    void tested(const std::string& name, evidence::FabricStatement found) {
        carry(name, nodes[name]->executor->on_fabric_tested(std::move(found)));
    }
    void not_tested(const std::string& name, Key ticket, const std::string& why) {
        carry(name, nodes[name]->executor->on_no_fabric_test(ticket, why));
    }

    Answer ask(decltype(Command::what) what) {
        event(Command{++requests_, "test", std::move(what), rights});
        return answers[requests_];
    }
    Answer apply(const std::string& yaml, command::Mode mode = command::Mode::create_or_replace) {
        const SourceText source{"test.yaml", yaml};
        Loaded loaded = load({&source, 1});
        EXPECT_TRUE(loaded.errors.empty()) << (loaded.errors.empty() ? "" : print(loaded.errors.front()));
        command::Apply what{.mode = mode};
        for_each_kind([&]<class T>() {
            for (T& object : loaded.snapshot.list<T>()) what.objects.emplace_back(std::move(object));
        });
        return ask(what);
    }
    // Two tenants of one trust domain: `early`, who is owed nothing and gets what is idle, and `owner`, who is owed
    // two.
    void apply_a_lab() {
        const auto tenant = [](const std::string& name, int guarantee) {
            return "---\napiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: " + name +
                   "}\nspec:\n  class: research\n  trustDomain: {name: lab, consent: {by: head of lab, at: "
                   "2026-11-01T00:00:00Z}}\n  quota: {guarantee: " +
                   std::to_string(guarantee) + "}\n";
        };
        const Answer answer = apply(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: FleetPolicy\nmetadata: {name: fleet}\nspec:\n"
            "  threatModel: internal\n  sites: [{name: fra, jurisdiction: eu}]\n"
            "  versionGate: {shippedAdvisories: false}\n"
            "  trustDomains: [{name: lab, members: [early, owner]}]\n" +
            tenant("early", 0) + tenant("owner", 2));
        EXPECT_TRUE(answer.outcome) << answer.outcome.error().what;
    }

    Answer remove(ObjectKind kind, const std::string& name) { return ask(command::Delete{.kind = kind, .name = name}); }

    void event(Event what) { keep(core->apply(now, what)); }

    // Until nothing moves any more, a second at a time.
    void settle(int seconds = 10) {
        for (int i = 0; i < seconds; ++i) {
            now = now + Duration{1000};
            for (auto& [name, node] : nodes)
                if (node->reachable && node->session != 0) event(AgentHeartbeat{name, node->session});
            event(Tick{});
        }
    }
    void pass(Duration time) {  // silence
        now = now + time;
        event(Tick{});
    }

    // Operations that take a while: they are begun, and done when `carry_on` is called.
    std::function<bool(const Operation&)> holds_back;
    static bool is_wipe(const Operation& operation) { return std::holds_alternative<Wipe>(operation.what); }
    static bool is_stop(const Operation& operation) { return std::holds_alternative<StopTenant>(operation.what); }
    void carry_on() {
        for (const auto& [name, operation] : std::exchange(held_back_, {})) carry_out(name, operation);
    }
    // With what follows from it, which may be held back as well.
    void carry_all(int rounds = 8) {
        for (int round = 0; round < rounds; ++round) {
            carry_on();
            settle(10);
        }
    }
    std::size_t held_back() const { return held_back_.size(); }
    std::vector<std::string> told(const std::string& name) const {  // the environment of its latest start
        for (auto order = orders.rbegin(); order != orders.rend(); ++order)
            if (const auto* prepare = std::get_if<Prepare>(&order->what); prepare && prepare->workload == name)
                return prepare->program.environment;
        return {};
    }

    void accept(const std::string& yaml) {
        const Answer answer = apply(yaml);
        ASSERT_TRUE(answer.outcome) << answer.outcome.error().what << "\n" << answer.outcome.error().remedy;
    }
    GpuWorkload workload(const std::string& name) const { return find<GpuWorkload>(name); }
    GpuNode node(const std::string& name) const { return find<GpuNode>(name); }
    template <class T>
    T find(const std::string& name) const {
        const Snapshot all = core->snapshot();
        const T* found = all.find<T>(name);
        EXPECT_NE(found, nullptr) << name;
        return found == nullptr ? T{} : *found;
    }
    bool exists(const std::string& name) const {
        const Snapshot all = core->snapshot();
        return all.find<GpuWorkload>(name) != nullptr;
    }
    int logged(const std::string& kind) const {
        int count = 0;
        for (const std::string& payload : log)
            if (payload.starts_with("{\"kind\":\"" + kind + "\"")) ++count;
        return count;
    }

    Instant now{1'800'000'000'000};
    Rights rights = Rights::everything();  // of whoever asks
    std::unique_ptr<Core> core;
    std::map<std::string, std::unique_ptr<Node>> nodes;
    std::map<std::pair<Table, std::int64_t>, std::string> rows;
    std::vector<std::string> log;
    std::map<std::uint64_t, Answer> answers;
    std::vector<std::string> closes;
    std::vector<Order> orders;
    std::int64_t epoch_seen = 0;

private:
    void keep(Effects effects) {
        for (Row& row : effects.rows)
            if (row.erased)
                rows.erase({row.table, row.key});
            else
                rows[{row.table, row.key}] = std::move(row.body);
        std::ranges::move(effects.log, std::back_inserter(log));
        for (Answer& answer : effects.answers) answers[answer.request] = std::move(answer);
        for (const Effects::Close& close : effects.closes) closes.push_back(close.why);
        epoch_seen = std::max(epoch_seen, effects.epoch_seen);
        for (const Effects::Welcome& welcome : effects.welcomes)
            carry(welcome.node, nodes[welcome.node]->executor->on_welcome(core->epoch()));
        for (const Effects::Acknowledge& ack : effects.acknowledgements)
            carry(ack.node, nodes[ack.node]->executor->on_ack(ack.number));
        for (const Effects::ToNode& order : effects.orders) {
            orders.push_back(order.order);
            if (nodes[order.node]->reachable && nodes[order.node]->session == order.session)
                carry(order.node, nodes[order.node]->executor->on_order(now, order.order));
        }
    }
    void carry_out(const std::string& name, const Operation& operation) {
        Node& node = *nodes[name];
        if (const auto result = node.model.carry_out(operation)) {
            const Wipe* wipe = std::get_if<Wipe>(&operation.what);
            if (wipe != nullptr && wipe->kind == UnitKind::host)
                carry(name, node.executor->on_boot(now, node.model.boot_id()));
            carry(name, node.executor->on_result(now, *result));
        }
    }
    // Reports leave in the order they were made, as a stream has it.
    void carry(const std::string& name, Outcome outcome) {
        for (Report& report : outcome.reports) reports_.emplace_back(name, std::move(report));
        for (const Operation& operation : outcome.begin)
            if (holds_back && holds_back(operation))
                held_back_.emplace_back(name, operation);
            else
                carry_out(name, operation);
        if (delivering_) return;
        delivering_ = true;
        while (!reports_.empty()) {
            auto [from, report] = std::move(reports_.front());
            reports_.pop_front();
            if (nodes[from]->reachable && nodes[from]->session != 0)
                event(AgentReport{from, nodes[from]->session, std::move(report)});
        }
        delivering_ = false;
    }

    std::deque<std::pair<std::string, Report>> reports_;
    std::vector<std::pair<std::string, Operation>> held_back_;
    bool delivering_ = false;
    CoreSettings settings_;
    std::uint64_t sessions_ = 0, requests_ = 0;
};

}  // namespace bulkhead

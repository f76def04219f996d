// bulkhead-gpusim: makes simulated nodes, does to them what hardware and tenants do, and shows them.
//
//     bulkhead-gpusim new /tmp/node --gpus "8 x h200-141gb"
//     BULKHEAD_SIM_NODE=/tmp/node LD_LIBRARY_PATH=build/dev/nvml-sim/lib nvtop
//     bulkhead-gpusim xid /tmp/node --gpu 3 --number 79
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "call_table.hpp"
#include "node_file.hpp"
#include "store.hpp"

using namespace bulkhead;

namespace {

int complain(const Error& error) {
    std::cerr << error.what << '\n';
    if (!error.remedy.empty()) std::cerr << "  try: " << error.remedy << '\n';
    return 1;
}

int list_calls() {
    for (const auto& table : {nvml_sim::call_table(), nvml_sim::cuda_call_table()})
        for (const nvml_sim::CallRow& row : table)
            fmt::print("{:<58} {:<10} {}\n", row.symbol, print(row.basis), row.note);
    return 0;
}

int list_products() {
    for (const driver::Product& product : driver::products())
        fmt::print("{:<28} {:<46} {:>7} MiB  {}  {}\n", product.id, product.name, product.memory_mib,
                   product.board() ? "MIG" : "   ", word(product.grade));
    return 0;
}

void show_gpu(const driver::Model& model, std::uint16_t index) {
    const driver::Gpu& gpu = model.gpu(index);
    const driver::MemoryUse use = model.memory({.gpu = index});
    const driver::Load load = model.load(index);
    fmt::print("gpu {} {} {}\n", index, model.product(index).name, model.spec().gpus[index].uuid);
    if (gpu.timeslice != 0) fmt::print("  time slice {}\n", gpu.timeslice);
    fmt::print("  mig {}{}  memory {} of {} MiB used  {} %  {} W  {} C{}{}\n", gpu.mig ? "on" : "off",
               gpu.mig == gpu.mig_pending ? "" : " (change pending)", use.used >> 20, use.total >> 20, load.sm_percent,
               load.power_mw / 1000, load.celsius, gpu.lost ? "  LOST" : "",
               gpu.keeps_residue ? "  keeps residue" : "");
    for (const auto& [id, instance] : gpu.instances) {
        fmt::print("  instance {} {} at {}\n", id, model.profile(index, instance.profile_id)->name, instance.start);
        for (const auto& [compute_id, compute] : instance.compute)
            fmt::print("    compute {} profile {} at {}  {}\n", compute_id, compute.profile, compute.start,
                       compute.uuid);
    }
    for (const driver::Process& process : gpu.processes)
        fmt::print("  process {} {}{}\n", process.pid, word(process.kind),
                   process.where.gpu_instance ? fmt::format(" in instance {}/{}", *process.where.gpu_instance,
                                                            process.where.compute_instance.value_or(0))
                                              : "");
}

void show(const driver::Model& model) {
    fmt::print("node {}  driver {}  CUDA {}.{}  boot {}\n", model.spec().node, model.spec().driver,
               model.spec().cuda / 1000, model.spec().cuda % 1000 / 10, model.boots());
    for (std::uint16_t index = 0; index < model.gpus(); ++index) show_gpu(model, index);
    for (const driver::Fault& fault : model.faults())
        fmt::print("fault {} {} {} ({} times)\n", fault.call, word(fault.kind), fault.value, fault.times);
}

// Everything that is done to a node that exists.
struct Action {
    std::string directory;
    std::uint16_t gpu = 0;
    std::uint64_t number = 79;
    bool off = false;
    driver::Fault fault;
    std::string kind = "fail";
    driver::Process process;
    std::uint64_t memory_mib = 0;
    std::string mig;
    std::string stuck = "until-reset";
    std::uint64_t uncorrected = 0;
    bool remap_pending = false, remap_failed = false;
};

Result<> put_process(driver::Model& model, Action& action) {
    driver::Process process = action.process;
    process.where.gpu = action.gpu;
    if (!action.mig.empty()) {
        const auto device = model.mig_device_by_uuid(action.mig);
        if (!device)
            return fail(Code::not_found, fmt::format("there is no MIG device {}", action.mig), "bulkhead-gpusim show");
        process.where = device->where;
    }
    process.context_bytes = std::uint64_t{512} << 20;
    const auto attached = model.attach(process);
    if (!attached)
        return fail(Code::conflict, "the driver refuses this process there",
                    "look at MIG mode, compute mode and memory: bulkhead-gpusim show");
    if (action.memory_mib > 0 && !model.allocate(process.pid, process.where, action.memory_mib << 20))
        return fail(Code::exhausted, "not so much memory is free there");
    return {};
}

template <class Work>
int act(const std::string& directory, Work&& work) {
    nvml_sim::Store store{directory};
    auto turn = store.take();
    if (!turn) return complain(turn.error());
    nvml_sim::reap(turn->model());
    turn->model().advance(nvml_sim::now());
    if (const Result<> done = work(turn->model()); !done) return complain(done.error());
    if (const auto saved = turn->save(); !saved) return complain(saved.error());
    return 0;
}

Result<> has_gpu(const driver::Model& model, std::uint16_t gpu) {
    if (gpu < model.gpus()) return {};
    return fail(Code::not_found,
                fmt::format("{} has {} GPUs, so there is no gpu {}", model.spec().node, model.gpus(), gpu),
                "bulkhead-gpusim show");
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Simulated GPU nodes: make one, break it, look at it."};
    app.set_help_all_flag("--help-all");
    bool calls = false, products = false;
    app.add_flag("--list-calls", calls,
                 "every call of NVML and CUDA that is simulated, and how we know what it answers");
    app.add_flag("--list-gpus", products, "every GPU that can be simulated");
    Action action;
    std::string gpus = "8 x h200-141gb", name = "node", file;
    const auto command = [&](const char* what, const char* help) {
        CLI::App* sub = app.add_subcommand(what, help);
        sub->add_option("directory", action.directory, "the node")->required();
        return sub;
    };
    CLI::App* make = command("new", "make a node; one that is there begins anew");
    make->add_option("--gpus", gpus, "such as \"8 x h200-141gb, 2 x l40s\"");
    make->add_option("--name", name);
    CLI::App* look = command("show", "print a node");
    CLI::App* xid = command("xid", "raise an Xid event");
    xid->add_option("--gpu", action.gpu);
    xid->add_option("--number", action.number);
    CLI::App* lose = command("lose", "a GPU falls off the bus; --off puts it back");
    lose->add_option("--gpu", action.gpu);
    lose->add_flag("--off", action.off);
    CLI::App* residue = command("keep-residue", "freed memory keeps its contents; --off: it is cleared");
    residue->add_option("--gpu", action.gpu);
    residue->add_flag("--off", action.off);
    CLI::App* stick = command("stick", "what kernels store no longer arrives, and nobody says so");
    stick->add_option("--gpu", action.gpu);
    stick->add_option("--how", action.stuck)->check(CLI::IsMember({"no", "until-reset", "for-good"}));
    CLI::App* health = command("health", "what the driver counts of memory errors; what is not named is 0");
    health->add_option("--gpu", action.gpu);
    health->add_option("--uncorrected", action.uncorrected);
    health->add_flag("--remap-pending", action.remap_pending);
    health->add_flag("--remap-failed", action.remap_failed);
    CLI::App* reset = command("reset", "a GPU is reset");
    reset->add_option("--gpu", action.gpu);
    CLI::App* fault = command("fault", "the next calls are slow, fail or lie; --off forgets all faults");
    fault->add_option("--call", action.fault.call, "a call of NVML, or *");
    fault->add_option("--kind", action.kind)->check(CLI::IsMember({"slow", "fail", "lie"}));
    fault->add_option("--value", action.fault.value, "slow: milliseconds; fail: the return code; lie: the number told");
    fault->add_option("--times", action.fault.times);
    fault->add_flag("--off", action.off);
    CLI::App* start = command("start", "a process begins to use a GPU, and stays until it is ended");
    start->add_option("--gpu", action.gpu);
    start->add_option("--mig", action.mig, "UUID of a MIG device");
    start->add_option("--pid", action.process.pid)->required();
    start->add_option("--memory-mib", action.memory_mib);
    start->add_option("--sm-percent", action.process.sm_percent)->check(CLI::Range(0, 100));
    start->add_option("--memory-percent", action.process.memory_percent)->check(CLI::Range(0, 100));
    CLI::App* end = command("end", "a process ends");
    end->add_option("--pid", action.process.pid)->required();
    CLI::App* reboot = command("reboot", "the node reboots");
    CLI11_PARSE(app, argc, argv);

    if (calls) return list_calls();
    if (products) return list_products();
    if (*make) {
        const auto spec = nvml_sim::parse_node(fmt::format("node: {}\ngpus: {}\n", name, gpus));
        if (!spec) return complain(spec.error());
        const auto made = nvml_sim::Store::make(action.directory, *spec);
        return made ? 0 : complain(made.error());
    }
    const auto do_to_gpu = [&](auto&& work) {
        return act(action.directory, [&](driver::Model& model) -> Result<> {
            if (const auto there = has_gpu(model, action.gpu); !there) return there;
            return work(model);
        });
    };
    const auto done = [](auto&&) -> Result<> { return {}; };
    if (*look)
        return act(action.directory, [](driver::Model& model) -> Result<> {
            show(model);
            return {};
        });
    if (*xid)
        return do_to_gpu([&](driver::Model& model) {
            return done((model.raise(driver::EventKind::xid, {.gpu = action.gpu}, action.number), 0));
        });
    if (*lose)
        return do_to_gpu([&](driver::Model& model) { return done((model.set_lost(action.gpu, !action.off), 0)); });
    if (*residue)
        return do_to_gpu(
            [&](driver::Model& model) { return done((model.set_keeps_residue(action.gpu, !action.off), 0)); });
    if (*stick)
        return do_to_gpu([&](driver::Model& model) {
            return done((model.set_stuck(action.gpu, *from_word<driver::Stuck>(action.stuck)), 0));
        });
    if (*health)
        return do_to_gpu([&](driver::Model& model) {
            driver::Health now = model.gpu(action.gpu).health;
            now.uncorrected = action.uncorrected;
            now.remap_pending = action.remap_pending;
            now.remap_failed = action.remap_failed;
            return done((model.set_health(action.gpu, now), 0));
        });
    if (*reset)
        return do_to_gpu([&](driver::Model& model) -> Result<> {
            if (model.reset(action.gpu)) return {};
            return fail(Code::conflict, "somebody is on it", "bulkhead-gpusim show");
        });
    if (*fault) {
        action.fault.kind = *from_word<driver::FaultKind>(action.kind);
        return act(action.directory, [&](driver::Model& model) {
            return done((action.off ? model.clear_faults() : model.add_fault(action.fault), 0));
        });
    }
    if (*start) return do_to_gpu([&](driver::Model& model) { return put_process(model, action); });
    if (*end)
        return act(action.directory, [&](driver::Model& model) { return done((model.end(action.process.pid), 0)); });
    if (*reboot) return act(action.directory, [&](driver::Model& model) { return done((model.reboot(), 0)); });
    std::cout << app.help();
    return 0;
}

#include "bulkhead/cli/mig.hpp"

#include <memory>

namespace bulkhead::cli {

namespace {

using Options = std::shared_ptr<MigOptions>;
using Run = int (*)(const MigOptions&, Context&);

constexpr const char* model_help =
    "Model: h100-80gb-sxm5, an unambiguous beginning of one (a30), or a\nPCI id (0x233010DE). bulkhead mig profiles "
    "lists them.";
constexpr const char* have_help =
    "Instances in use, with their starts: 1g.10gb@0,3g.40gb@4.\n1c.3g.40gb@4 is a compute instance inside one.";
constexpr const char* profile_help =
    "3g.40gb, 1c.3g.40gb, 1g.10gb+me, nvidia.com/mig-1g.10gb.me,\nor id:9 as nvidia-smi numbers it.";
constexpr const char* expect_help =
    "What is likely to come, as weights: 1g.10gb=5,3g.40gb=1.\nProfiles not named are not expected. Default: every "
    "profile\nwithout attributes alike.";

struct Subcommand {
    Command app;
    Options options;

    Option gpu(bool required) const {
        return app.add_option("--gpu", options->gpu, model_help).required(required).type_name("MODEL");
    }
    Option have() const { return app.add_option("--have", options->have, have_help).type_name("LIST"); }
    void profile() const { app.add_option("PROFILE", options->profile, profile_help).required().type_name(""); }
    void expect() const { app.add_option("--expect", options->expect, expect_help).type_name("LIST"); }
};

Subcommand add(Command mig, Context& context, const char* name, const char* what, Run run) {
    Subcommand sub{mig.add_subcommand(name, what), std::make_shared<MigOptions>()};
    sub.app.add_option("-o,--output", sub.options->output, "table or json. Default: table.")
        .one_of({"table", "json"})
        .type_name("FORMAT");
    sub.app.callback([options = sub.options, run, &context] { context.status = run(*options, context); });
    return sub;
}

void add_profiles(Command mig, Context& context) {
    const Subcommand sub = add(mig, context, "profiles", "List GPU models, or what one can be cut into.", mig_profiles);
    sub.app.description(
        "List the GPU models we know, or everything one of them can be cut into.\n\n"
        "The listing has the columns of nvidia-smi mig -lgip, then the placements of -lgipp, the NVML enum (not the\n"
        "same number as the ID), the Kubernetes resource and the driver each profile needs. A dash means that no "
        "source\n"
        "says. The last lines say how the placements are known. AMD models print their partition modes, which --have "
        "and\n"
        "--ci do not apply to: validated is in AMD's matrix, listed is named as compatible by another source, "
        "possible\n"
        "is what the driver's rule allows.");
    Option gpu = sub.gpu(false);
    sub.have().needs(gpu);
    sub.app.add_flag("--ci", sub.options->compute, "List compute-instance profiles, as nvidia-smi mig -lcip does.")
        .needs(gpu);
    sub.app.footer(
        "Examples:\n"
        "  bulkhead mig profiles                               the models\n"
        "  bulkhead mig profiles --gpu h200-141gb              its profiles and placements\n"
        "  bulkhead mig profiles --gpu h200-141gb --have 3g.71gb@4     what is still free\n"
        "  bulkhead mig profiles --gpu a100-80gb --ci          its compute-instance profiles\n"
        "  bulkhead mig profiles --gpu mi300x -o json          AMD partition modes\n\n"
        "Exit status:\n"
        "  0  printed\n"
        "  1  there is no such model\n"
        "  2  an argument is wrong");
}

void add_fit(Command mig, Context& context) {
    const Subcommand sub = add(mig, context, "fit", "Does a profile fit now, and where?", mig_fit);
    sub.app.description(
        "Say whether a profile fits beside what is in use, and every memory slice at which it could start.\n\n"
        "A profile starts only where its placements allow, needs all its memory slices free, and must leave the media\n"
        "engines of its neighbours alone: one +me on a GPU, and only -me beside +me.all. An instance in use is never\n"
        "touched, so a compute instance (1c.3g.40gb) is never created inside one, even where compute slices are free.");
    sub.profile();
    sub.gpu(true);
    sub.have();
    sub.app.footer(
        "Examples:\n"
        "  bulkhead mig fit 3g.40gb --gpu h100-80gb-sxm5\n"
        "  bulkhead mig fit 2g.20gb --gpu h100-80gb-sxm5 --have 4g.40gb@0,2g.20gb@4\n\n"
        "Exit status:\n"
        "  0  it fits\n"
        "  1  there is no such model\n"
        "  2  an argument is wrong\n"
        "  3  it does not fit; the reasons are printed");
}

void add_place(Command mig, Context& context) {
    const Subcommand sub = add(mig, context, "place", "Where is a profile best put?", mig_place);
    sub.app.description(
        "Choose the start that keeps the GPU most useful, and show what each possible start would leave.\n\n"
        "The value of a start is the number of further requests the GPU can be expected to serve before it must "
        "refuse\n"
        "one, when requests come by the weights and each is put where that number stays largest. It is computed "
        "exactly.\n"
        "Of equal values the lowest start is taken.");
    sub.profile();
    sub.gpu(true);
    sub.have();
    sub.expect();
    sub.app.footer(
        "Examples:\n"
        "  bulkhead mig place 3g.40gb --gpu h100-80gb-sxm5                 4, not 0: four 1g stay possible\n"
        "  bulkhead mig place 1g.10gb --gpu h100-80gb-sxm5 --expect 1g.10gb=5,3g.40gb=1\n\n"
        "Exit status:\n"
        "  0  placed\n"
        "  1  there is no such model\n"
        "  2  an argument is wrong\n"
        "  3  it fits nowhere; the reasons are printed");
}

void add_plan(Command mig, Context& context) {
    const Subcommand sub = add(mig, context, "plan", "What to destroy and create to get what is wanted.", mig_plan);
    sub.app.description(
        "Plan, step by step, how to get the wanted instances beside those in use.\n\n"
        "Instances in use are never touched, so no compute instance is created inside one, even where compute slices\n"
        "are free. An idle instance of the wanted profile is handed over as it stands. Of all ways, the one with the\n"
        "fewest GPU instances destroyed, then the fewest memory slices destroyed, then the most useful GPU "
        "afterwards.\n"
        "If there is none, the one instance in use that would have to move, and where to; or why no single move would\n"
        "help. Nothing is contacted and nothing is changed.");
    sub.gpu(true);
    sub.have();
    sub.app
        .add_option("--idle", sub.options->idle,
                    "Instances that exist and nobody uses, with their starts;\nthese may be destroyed.")
        .type_name("LIST");
    sub.app
        .add_option("--want", sub.options->want,
                    "Instances wanted in addition: 3g.40gb,2x1g.10gb. With @START,\nonly there. Several 1c.3g.40gb "
                    "share one 3g.40gb.")
        .required()
        .type_name("LIST");
    sub.expect();
    sub.app.footer(
        "Examples:\n"
        "  bulkhead mig plan --gpu h100-80gb-sxm5 --have 1g.10gb@0 --idle 1g.10gb@4 --want 3g.40gb,1g.10gb\n"
        "  bulkhead mig plan --gpu h100-80gb-sxm5 --have 1g.10gb@0,1g.10gb@1,1g.10gb@5 --want 3g.40gb\n"
        "  bulkhead mig plan --gpu a100-80gb --idle 3g.40gb@0 --want 3x1c.3g.40gb -o json\n\n"
        "Exit status:\n"
        "  0  here is the plan\n"
        "  1  there is no such model\n"
        "  2  an argument is wrong\n"
        "  3  impossible as things stand; the instance that would have to move is named, if one would do");
}

void add_sets(Command mig, Context& context) {
    const Subcommand sub = add(mig, context, "sets", "Which sets of instances fill a GPU.", mig_sets);
    sub.app.description(
        "List every maximal set of instances.\n\n"
        "A set is maximal when its instances can exist together and nothing can be added, however they are\n"
        "placed. Every part of a set is possible too.");
    sub.gpu(true);
    Option all =
        sub.app.add_flag("--all", sub.options->all, "Include profiles with attributes: +me, -me, +me.all, +gfx.");
    sub.app
        .add_flag("--no-double-memory", sub.options->no_double_memory,
                  "Leave out the 1g with twice the memory, as NVIDIA's own lists do.")
        .excludes(all);
    sub.app.footer(
        "Examples:\n"
        "  bulkhead mig sets --gpu a30-24gb\n"
        "  bulkhead mig sets --gpu h100-80gb-sxm5 --no-double-memory      the twelve of NVIDIA's guide\n"
        "  bulkhead mig sets --gpu a30-24gb -o json | jq '.sets | length'\n\n"
        "Exit status:\n"
        "  0  printed\n"
        "  1  there is no such model\n"
        "  2  an argument is wrong");
}

void add_check(Command mig, Context& context) {
    const Subcommand sub =
        add(mig, context, "check", "Check a mig-parted file against the boards it is for.", mig_check);
    sub.app.description(
        "Check every layout of an nvidia-mig-parted file before it meets a GPU.\n\n"
        "mig-parted itself learns only while applying, after it has destroyed what was there.\n\n"
        "An entry with a device-filter is checked for the boards it names (with --gpu, for that one of them); one\n"
        "without, for --gpu; without either, the boards that can hold it are listed. What could not be checked is\n"
        "never called valid. Every mistake is printed as file:line:column.");
    sub.app.add_option("-f,--filename", sub.options->file, "mig-parted file, or - for stdin.")
        .required()
        .type_name("FILE");
    sub.gpu(false);
    sub.app.footer(
        "Examples:\n"
        "  bulkhead mig check -f config.yaml\n"
        "  bulkhead mig check -f config.yaml --gpu h100-80gb-sxm5 -o json | jq '.entries[] | select(.valid != "
        "true)'\n\n"
        "Exit status:\n"
        "  0  every layout was checked and is possible\n"
        "  1  the file cannot be read, there is no such model, or a layout was left unchecked: no board we know has\n"
        "     an id of its device-filter, or the filter does not name the board of --gpu (in JSON, valid is null)\n"
        "  2  the file is malformed\n"
        "  3  at least one layout is impossible or names a device twice; the reasons are printed");
}

}  // namespace

void add_mig(Command program, Context& context) {
    Command mig = program.add_subcommand("mig", "MIG geometry: what fits, where, and how to make room.");
    mig.description(
        "Answer questions about cutting GPUs into MIG instances (and AMD GPUs into partitions) without a GPU.\n\n"
        "The tables say how each board's placements are known: read on silicon, documented for the board, or\n"
        "assumed from others like it.");
    mig.require_subcommand();
    mig.footer(
        "Exit status:\n"
        "  0  yes, or printed\n"
        "  1  the question could not be asked: no such model, no such file, no board to check against\n"
        "  2  a file or an argument is wrong\n"
        "  3  understood, and the answer is no, with reasons\n\n"
        "`bulkhead mig COMMAND --help` explains each command, with examples.");
    add_profiles(mig, context);
    add_fit(mig, context);
    add_place(mig, context);
    add_plan(mig, context);
    add_sets(mig, context);
    add_check(mig, context);
}

}  // namespace bulkhead::cli

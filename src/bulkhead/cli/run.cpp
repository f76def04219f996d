#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <string_view>
#include <vector>

#include "bulkhead/base/nearest.hpp"
#include "bulkhead/cli/command.hpp"

namespace bulkhead::cli {

namespace {

// The list of commands shows the first sentence of each; the rest belongs to its own --help.
class FirstLines : public CLI::Formatter {
public:
    std::string make_subcommand(const CLI::App* command) const override {
        std::string about = command->get_description();
        about.resize(std::min(about.find('\n'), about.size()));
        std::ostringstream out;
        CLI::detail::format_help(out, command->get_name(), about, column_width_);
        return out.str();
    }
};

// The first word when it is neither an option nor a command; empty otherwise.
std::string_view unknown_command(const CLI::App& app, int argc, const char* const* argv) {
    if (argc < 2 || argv[1][0] == '-') return {};
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        if (command->get_name() == argv[1]) return {};
    return argv[1];
}

}  // namespace

int complain(Context& context, int status, const Error& error) {
    context.err << error.what << '\n';
    if (!error.remedy.empty()) context.err << "  try: " << error.remedy << '\n';
    return status;
}

namespace {

// Called as bulkhead-agent, it is the agent: `bulkhead-agent --server ...` is `bulkhead agent --server ...`, and what
// an agent's machine can be asked without a server stays a command of its own.
std::vector<const char*> words_of_caller(int argc, const char* const* argv) {
    std::vector<const char*> words(argv, argv + argc);
    const std::string_view called = argc > 0 ? argv[0] : "";
    const bool is_agent = called.substr(called.find_last_of('/') + 1) == "bulkhead-agent";
    const std::string_view first = argc > 1 ? argv[1] : "";
    if (is_agent && first != "selftest" && first != "--version") words.insert(words.begin() + 1, "agent");
    return words;
}

}  // namespace

int run(int argc_given, const char* const* argv_given, std::ostream& out, std::ostream& err, bool colour) {
    const std::vector<const char*> caller = words_of_caller(argc_given, argv_given);
    const int argc = static_cast<int>(caller.size());
    const char* const* const argv = caller.data();
    CLI::App app{
        "bulkhead: contracts for GPU fleets that several tenants share.\n\n"
        "A tenant's trust decides the isolation tier, its class the sharing and the quota. Unsafe pairs are refused\n"
        "with reasons; every claim says how it is known.\n\n"
        "`bulkhead up` starts a simulated fleet to try it on. contract, mig, shares, schedule, simulate, catalogue,\n"
        "schema and verify read files and answer; they contact nothing.",
        "bulkhead"};
    app.formatter(std::make_shared<FirstLines>());
    app.require_subcommand(1);
    app.set_version_flag("--version", "bulkhead 0.1.0");
    app.footer(
        "Exit status of every command:\n"
        "  0  yes, done\n"
        "  1  the question could not be asked: no such file, no such workload\n"
        "  2  a file or an argument is wrong; nothing was done\n"
        "  3  understood, and the answer is no, with reasons\n"
        "  4  not with this token, or with key files that others can read\n\n"
        "`bulkhead COMMAND --help` explains each command, with examples.");
    Context context{out, err, colour};
    const Command program{app};
    add_up(program, context);
    add_serve(program, context);
    add_agent(program, context);
    add_agent_hands(program, context);
    add_scrub(program, context);
    add_probe(program, context);
    add_drives(program, context);
    add_erase_drive(program, context);
    add_selftest(program, context);
    add_login(program, context);
    add_apply(program, context);
    add_run(program, context);
    add_logs(program, context);
    add_get(program, context);
    add_describe(program, context);
    add_delete(program, context);
    add_fleet(program, context);
    add_queue(program, context);
    add_explain(program, context);
    add_actions(program, context);
    add_certificate(program, context);
    add_verify(program, context);
    add_audit(program, context);
    add_tenant(program, context);
    add_usage(program, context);
    add_history(program, context);
    add_correction(program, context);
    add_token(program, context);
    add_break_glass(program, context);
    add_whoami(program, context);
    add_backup(program, context);
    add_render(program, context);
    add_contract(program, context);
    add_mig(program, context);
    add_shares(program, context);
    add_schedule(program, context);
    add_simulate(program, context);
    add_bench(program, context);
    add_catalogue(program, context);
    add_schema(program, context);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (const std::string_view word = unknown_command(app, argc, argv); !word.empty()) {
            std::vector<std::string_view> known;
            for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
                known.push_back(command->get_name());
            const std::string_view near = nearest(word, known);
            err << "there is no command \"" << word << "\"\n  try: bulkhead " << (near.empty() ? "--help" : near)
                << '\n';
            return bad_input;
        }
        const int status = app.exit(error, out, err);
        return status == 0 ? done : bad_input;
    } catch (const std::exception& error) {
        // Rooms keep their exceptions to themselves, so one that arrives here is a bug, whatever the input was.
        err << "bulkhead stopped at an error of its own: " << error.what()
            << "\n  try: report it with the command line and `bulkhead --version`; the address is in SECURITY.md if a "
               "stranger could cause it\n";
        return internal_error;
    }
    return context.status;
}

}  // namespace bulkhead::cli

// How a command plugs in: add_NAME hangs its subcommand on the program's App; when the person chose it, its callback
// runs, prints, and leaves the exit status. Commands parse, call one function, print; they decide nothing.
#pragma once

#include <iosfwd>

#include "bulkhead/base/result.hpp"

namespace CLI {
class App;
}

namespace bulkhead::cli {

// Exit status that scripts can trust, the same for every command.
inline constexpr int done = 0;       // yes
inline constexpr int could_not = 1;  // the question could not be asked: no such file, no such model
inline constexpr int bad_input = 2;  // a file or an argument is wrong; nothing was done
inline constexpr int refused = 3;    // understood, and the answer is no, with reasons
inline constexpr int no_entry = 4;   // not with this token, or with these key files

struct Context {
    std::ostream& out;
    std::ostream& err;
    bool colour = false;  // the output is a terminal that wants colour
    int status = done;
};

// Prints what is wrong and what to try; gives the status back.
int complain(Context& context, int status, const Error& error);

void add_mig(CLI::App& app, Context& context);
void add_contract(CLI::App& app, Context& context);
void add_shares(CLI::App& app, Context& context);
void add_schedule(CLI::App& app, Context& context);
void add_simulate(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);
void add_catalogue(CLI::App& app, Context& context);
void add_schema(CLI::App& app, Context& context);

// Those that run something.
void add_up(CLI::App& app, Context& context);
void add_serve(CLI::App& app, Context& context);
void add_agent(CLI::App& app, Context& context);

// Those that ask a server.
void add_apply(CLI::App& app, Context& context);
void add_get(CLI::App& app, Context& context);
void add_describe(CLI::App& app, Context& context);
void add_delete(CLI::App& app, Context& context);
void add_fleet(CLI::App& app, Context& context);
void add_queue(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_actions(CLI::App& app, Context& context);  // drain, undrain, repair, revoke, freeze, thaw, hold, unhold
void add_token(CLI::App& app, Context& context);
void add_backup(CLI::App& app, Context& context);
void add_certificate(CLI::App& app, Context& context);
void add_verify(CLI::App& app, Context& context);  // asks nobody
void add_audit(CLI::App& app, Context& context);

// The whole program, with its streams handed in so that tests can read them.
int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err, bool colour);

}  // namespace bulkhead::cli

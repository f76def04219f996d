// How a command plugs in: add_NAME hangs its subcommand on the program; when the person chose it, its callback
// runs, prints, and leaves the exit status. Commands parse, call one function, print; they decide nothing.
#pragma once

#include <iosfwd>

#include "bulkhead/base/result.hpp"
#include "bulkhead/cli/arguments.hpp"

namespace bulkhead::cli {

// Exit status that scripts can trust, the same for every command.
inline constexpr int done = 0;             // yes
inline constexpr int could_not = 1;        // the question could not be asked: no such file, no such model
inline constexpr int bad_input = 2;        // a file or an argument is wrong; nothing was done
inline constexpr int refused = 3;          // understood, and the answer is no, with reasons
inline constexpr int no_entry = 4;         // not with this token, or with these key files
inline constexpr int internal_error = 70;  // a bug of ours, as in sysexits.h

struct Context {
    std::ostream& out;
    std::ostream& err;
    bool colour = false;  // the output is a terminal that wants colour
    int status = done;
};

// Prints what is wrong and what to try; gives the status back.
int complain(Context& context, int status, const Error& error);

void add_mig(Command program, Context& context);
void add_contract(Command program, Context& context);
void add_shares(Command program, Context& context);
void add_schedule(Command program, Context& context);
void add_simulate(Command program, Context& context);
void add_bench(Command program, Context& context);
void add_catalogue(Command program, Context& context);
void add_schema(Command program, Context& context);

// Those that run something.
void add_up(Command program, Context& context);
void add_serve(Command program, Context& context);
void add_agent(Command program, Context& context);
void add_agent_hands(Command program, Context& context);
void add_scrub(Command program, Context& context);
void add_probe(Command program, Context& context);
void add_drives(Command program, Context& context);
void add_erase_drive(Command program, Context& context);
void add_selftest(Command program, Context& context);

// Those that ask a server.
void add_login(Command program, Context& context);  // and logout
void add_apply(Command program, Context& context);
void add_logs(Command program, Context& context);
void add_run(Command program, Context& context);
void add_get(Command program, Context& context);
void add_describe(Command program, Context& context);
void add_delete(Command program, Context& context);
void add_fleet(Command program, Context& context);
void add_queue(Command program, Context& context);
void add_explain(Command program, Context& context);
void add_actions(Command program, Context& context);  // drain, undrain, repair, revoke, freeze, thaw, hold, unhold
void add_tenant(Command program, Context& context);   // compliance
void add_usage(Command program, Context& context);
void add_history(Command program, Context& context);
void add_correction(Command program, Context& context);
void add_token(Command program, Context& context);
void add_break_glass(Command program, Context& context);
void add_whoami(Command program, Context& context);
void add_render(Command program, Context& context);  // nccl, nccl-env, partitions, qos, libvirt
void add_backup(Command program, Context& context);
void add_certificate(Command program, Context& context);
void add_verify(Command program, Context& context);  // asks nobody
void add_audit(Command program, Context& context);

// The whole program, with its streams handed in so that tests can read them.
int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err, bool colour);

}  // namespace bulkhead::cli

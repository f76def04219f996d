// Commands of callers, one by one: whether they may, who carries it out (apply.cpp, deletes.cpp, verbs.cpp and others),
// and what the answer shows. A refused command leaves no trace.
#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/codec/print.hpp"
#include "bulkhead/core/commands.hpp"
#include "bulkhead/core/state.hpp"

namespace bulkhead {

evidence::Record about(std::string_view kind, const std::string& name, evidence::RecordKind what,
                       const std::string& tenant) {
    return {.kind = what, .tenant = tenant, .object = fmt::format("{}/{}", kind, name)};
}

void refuse(Answer& answer, Code code, std::string what, std::string remedy) {
    answer.outcome = fail(code, std::move(what), std::move(remedy));
}

bool at_version(const Metadata& metadata, const std::string& version, std::string_view kind, Answer& answer) {
    if (version.empty() || metadata.resourceVersion == version) return true;
    answer.version = metadata.resourceVersion;
    refuse(answer, Code::conflict,
           fmt::format("{} {} is at version {}, not {}", kind, metadata.name, metadata.resourceVersion,
                       version.substr(0, 64)),
           "read it again");
    return false;
}

void missing(Answer& answer, std::string_view kind, const std::string& name) {
    refuse(answer, Code::not_found, fmt::format("there is no {} {}", kind, name),
           fmt::format("list them: bulkhead get {}", kind));
}

// After the turn: versions are new by then, and what changed has been written as a row already.
void show_object(Core::State& state, const Command& command, const Effects& effects, Answer& answer) {
    const auto written = [&](const WorkloadRun& run) -> const Row* {
        const auto found = std::ranges::find_if(
            effects.rows, [&](const Row& row) { return row.table == Table::workload && row.key == run.key; });
        return found == effects.rows.end() ? nullptr : &*found;
    };
    const auto show = [&]<class T>(const T* object) {
        if (object == nullptr) return;
        answer.version = object->metadata.resourceVersion;
        const Row* row = nullptr;
        if constexpr (std::same_as<T, GpuWorkload>)
            row = written(*state.find_workload(object->spec.tenant, object->metadata.name));
        if (row != nullptr)
            answer.object = row->body;
        else if constexpr (std::same_as<T, GpuNode>)
            answer.object = to_compact_json(shown(state, *state.find_node(object->metadata.name)));
        else
            answer.object = to_compact_json(*object);
    };
    if (!answer.outcome) return;
    std::visit(
        [&]<class T>(const T& what) {
            if constexpr (std::same_as<T, command::Apply>) {
                if (what.objects.size() == 1 && !what.dry_run)
                    std::visit([&]<class O>(const O& one) { show(stored_as(state, one)); }, what.objects.front());
            } else if constexpr (std::same_as<T, command::Freeze> || std::same_as<T, command::Hold>) {
                show(stored<Tenant>(state, what.tenant));
            } else if constexpr (std::same_as<T, command::Drain> || std::same_as<T, command::Repair> ||
                                 std::same_as<T, command::TestFabric> || std::same_as<T, command::Enrol> ||
                                 std::same_as<T, command::Revoke>) {
                show(stored<GpuNode>(state, what.node));
            } else if constexpr (std::same_as<T, command::Delete>) {
                if (what.kind != ObjectKind::workload) return;
                // While it stops; the name is enough only where it was enough to delete it.
                for (auto it = state.workload_names.lower_bound({what.name, what.tenant});
                     it != state.workload_names.end() && it->first.first == what.name; ++it)
                    if (const GpuWorkload& one = state.workloads.at(it->second).object;
                        (what.tenant.empty() || one.spec.tenant == what.tenant) && one.status->deleting &&
                        command.rights.may(Permission::submit, one.spec.tenant))
                        return show(&one);
            }
        },
        command.what);
}

void on_command(Turn& turn, const Command& command) {
    Answer answer{.request = command.request};
    turn.rights = command.rights;
    if (auto allowed = permitted(turn.rights, command.what); !allowed) {
        answer.forbidden = true;
        answer.outcome = std::move(allowed);
        turn.effects.answers.push_back(std::move(answer));
        return;
    }
    std::visit(
        [&]<class T>(const T& what) {
            if constexpr (std::same_as<T, command::Apply>) {
                apply_objects(turn, what, answer);
            } else if constexpr (std::same_as<T, command::SetCompliance>) {
                on_compliance(turn, what, answer);
            } else if constexpr (std::same_as<T, command::CorrectUsage>) {
                on_correction(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Delete>) {
                on_delete(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Drain>) {
                on_drain(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Freeze>) {
                on_freeze(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Hold>) {
                on_hold(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Repair>) {
                on_repair(turn, what, answer);
            } else if constexpr (std::same_as<T, command::TestFabric>) {
                on_test_fabric(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Enrol>) {
                on_enrol(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Renew>) {
                on_renew(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Revoke>) {
                on_revoke(turn, what, answer);
            } else if constexpr (std::same_as<T, command::NoteToken>) {
                evidence::Record record{
                    .kind = what.minted ? evidence::RecordKind::token_minted : evidence::RecordKind::token_revoked,
                    .tenant = what.tenant,
                    .detail = {{"id", what.id}, {"role", what.role}, {"subject", what.subject}}};
                if (!what.why.empty()) record.detail["why"] = what.why;
                turn.log(std::move(record));
            } else if constexpr (std::same_as<T, command::RotateLogKey>) {
                const std::int64_t leaf = turn.log({.kind = evidence::RecordKind::log_key_rotated,
                                                    .detail = {{"before", what.before}, {"after", what.after}}});
                answer.body = fmt::format(R"({{"leaf":{}}})", leaf);
            } else if constexpr (std::same_as<T, command::Explain>) {
                if (const auto found = meant(turn, Permission::read_tenant, what.tenant, what.workload))
                    answer.body = explain(turn, **found);
                else
                    answer.outcome = std::unexpected(found.error());
            } else if constexpr (std::same_as<T, command::NoteAccess>) {
                using enum command::NoteAccess::What;
                turn.log({.kind = what.what == signed_in ? evidence::RecordKind::signed_in
                                  : what.what == denied  ? evidence::RecordKind::access_denied
                                                         : evidence::RecordKind::tenant_entered,
                          .tenant = what.tenant,
                          .detail = what.detail});
            } else {
                answer.body = queue(turn, what.in_the_way);
            }
        },
        command.what);
    turn.effects.answers.push_back(std::move(answer));
}

}  // namespace bulkhead

#include "bulkhead/cli/arguments.hpp"

#include <CLI/CLI.hpp>
#include <utility>

namespace bulkhead::cli {

Option Option::required(bool is_required) const { return Option{option_->required(is_required)}; }
Option Option::type_name(const std::string& name) const { return Option{option_->type_name(name)}; }
Option Option::one_of(const std::vector<std::string>& words) const {
    return Option{option_->check(CLI::IsMember(words))};
}
Option Option::within(std::int64_t least, std::int64_t most) const {
    return Option{option_->check(CLI::Range(least, most))};
}
Option Option::needs(Option other) const { return Option{option_->needs(other.option_)}; }
Option Option::excludes(Option other) const { return Option{option_->excludes(other.option_)}; }
Option Option::delimiter(char between) const { return Option{option_->delimiter(between)}; }
Option Option::one_value_each() const { return Option{option_->allow_extra_args(false)}; }
std::string Option::name() const { return option_->get_name(); }
bool Option::is_given() const { return option_->count() > 0; }

Command Command::add_subcommand(const std::string& name, const std::string& about) const {
    return Command{*app_->add_subcommand(name, about)};
}

Command Command::require_subcommand() const { return Command{*app_->require_subcommand(1)}; }
Command Command::hidden() const { return Command{*app_->group("")}; }
Command Command::description(const std::string& text) const { return Command{*app_->description(text)}; }
Command Command::footer(const std::string& text) const { return Command{*app_->footer(text)}; }

template <class T>
Option Command::add_option(const std::string& name, T& into, const std::string& about) const {
    return Option{app_->add_option(name, into, about)};
}

Option Command::add_flag(const std::string& name, bool& into, const std::string& about) const {
    return Option{app_->add_flag(name, into, about)};
}

bool Command::is_given(const std::string& option) const { return app_->count(option) > 0; }
Command Command::callback(std::function<void()> run) const { return Command{*app_->callback(std::move(run))}; }

template Option Command::add_option(const std::string&, int&, const std::string&) const;
template Option Command::add_option(const std::string&, std::int64_t&, const std::string&) const;
template Option Command::add_option(const std::string&, std::uint16_t&, const std::string&) const;
template Option Command::add_option(const std::string&, std::uint32_t&, const std::string&) const;
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&) const;
template Option Command::add_option(const std::string&, std::string&, const std::string&) const;
template Option Command::add_option(const std::string&, std::vector<std::string>&, const std::string&) const;

}  // namespace bulkhead::cli

// What a command takes from its command line. A thin door before the library that reads it, which is all headers:
// included in every command, it would be most of the time this room takes to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace bulkhead::cli {

// A name for an option that a command has; copying it copies the name.
class Option {
public:
    explicit Option(CLI::Option* option) : option_{option} {}

    Option required(bool is_required = true) const;
    // What the value is called in the help: FILE.
    Option type_name(const std::string& name) const;
    Option one_of(const std::vector<std::string>& words) const;
    Option within(std::int64_t least, std::int64_t most) const;
    Option needs(Option other) const;
    Option excludes(Option other) const;
    // One value may hold several, with this between them.
    Option delimiter(char between) const;
    // Each use of the option takes one value: words after it, and `--`, are not its values.
    Option one_value_each() const;

    std::string name() const;
    bool is_given() const;

private:
    CLI::Option* option_;
};

// A name for a command, or for the program itself.
class Command {
public:
    explicit Command(CLI::App& app) : app_{&app} {}

    Command add_subcommand(const std::string& name, const std::string& about) const;
    Command require_subcommand() const;
    Command hidden() const;  // from the help: other programs call it, people do not
    Command description(const std::string& text) const;
    Command footer(const std::string& text) const;

    // `into` must outlive the command. Its type is one of those at the end of arguments.cpp.
    template <class T>
    Option add_option(const std::string& name, T& into, const std::string& about) const;
    Option add_flag(const std::string& name, bool& into, const std::string& about) const;
    bool is_given(const std::string& option) const;

    Command callback(std::function<void()> run) const;

private:
    CLI::App* app_;
};

}  // namespace bulkhead::cli

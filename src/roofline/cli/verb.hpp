// The options of a verb and what it does. CLI11 reads the command line; only verb.cpp and program.cpp see its headers,
// which take longer to compile than any verb.
//
//   const Verb verb = program.verb("serve", "The calculator in the browser, and an interface for programs");
//   verb.add("--port", options->port, "Port; 0: any that is free").shows_default().type("N");
//   verb.runs([options] { return run(*options); });
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "roofline/core/problem.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace roofline::cli {

struct Program;

class Flag {
  public:
    explicit Flag(CLI::Option& option) : option_(&option) {}

    /// The heading that it stands under in the help.
    Flag& group(const std::string& name);
    /// What stands for its value there.
    Flag& type(const std::string& name);
    Flag& shows_default();
    Flag& required();
    Flag& one_of(std::vector<std::string> values);
    Flag& between(int least, int most);
    /// `problem` says what is wrong with a value, or nothing.
    Flag& check(std::function<std::string(std::string)> problem);
    /// Of a list: several values in one word.
    Flag& separated_by(char separator);
    /// Of a list: one value each time it is given, so that the word after it is something else.
    Flag& repeated();
    /// `action` hears of every value, once all are read.
    Flag& each(std::function<void(std::string)> action);
    bool given() const;

  private:
    CLI::Option* option_;
};

/// `value` must outlive the parsing; so must the program.
class Verb {
  public:
    Verb(Program& program, CLI::App& app) : program_(&program), app_(&app) {}

    Flag add(const std::string& names, std::string& value, const std::string& help) const;
    Flag add(const std::string& names, std::vector<std::string>& values, const std::string& help) const;
    Flag add(const std::string& names, int& value, const std::string& help) const;
    /// One without a value.
    Flag add(const std::string& names, bool& value, const std::string& help) const;
    /// A verb below this one: `models show`. What runs is this verb, which asks whether the other was named.
    Verb verb(const std::string& name, const std::string& help) const;

    bool named() const;
    bool given(const std::string& option) const;
    void runs(std::function<Result<int>()> action) const;

  private:
    Program* program_;
    CLI::App* app_;
};

}  // namespace roofline::cli

#include "roofline/cli/verb.hpp"

#include <utility>

#include <CLI/CLI.hpp>

#include "roofline/cli/program.hpp"

namespace roofline::cli {

Flag& Flag::group(const std::string& name) {
    option_->group(name);
    return *this;
}

Flag& Flag::type(const std::string& name) {
    option_->type_name(name);
    return *this;
}

Flag& Flag::shows_default() {
    option_->capture_default_str();
    return *this;
}

Flag& Flag::required() {
    option_->required();
    return *this;
}

Flag& Flag::one_of(std::vector<std::string> values) {
    option_->check(CLI::IsMember(std::move(values)));
    return *this;
}

Flag& Flag::between(int least, int most) {
    option_->check(CLI::Range(least, most));
    return *this;
}

Flag& Flag::check(std::function<std::string(std::string)> problem) {
    option_->check(CLI::Validator([problem = std::move(problem)](std::string& value) { return problem(value); }, ""));
    return *this;
}

Flag& Flag::separated_by(char separator) {
    option_->delimiter(separator);
    return *this;
}

Flag& Flag::repeated() {
    option_->allow_extra_args(false);
    return *this;
}

Flag& Flag::each(std::function<void(std::string)> action) {
    option_->each(action);
    return *this;
}

bool Flag::given() const {
    return option_->count() > 0;
}

Flag Verb::add(const std::string& names, std::string& value, const std::string& help) const {
    return Flag(*app_->add_option(names, value, help));
}

Flag Verb::add(const std::string& names, std::vector<std::string>& values, const std::string& help) const {
    return Flag(*app_->add_option(names, values, help));
}

Flag Verb::add(const std::string& names, int& value, const std::string& help) const {
    return Flag(*app_->add_option(names, value, help));
}

Flag Verb::add(const std::string& names, bool& value, const std::string& help) const {
    return Flag(*app_->add_flag(names, value, help));
}

Verb Verb::verb(const std::string& name, const std::string& help) const {
    return {*program_, *app_->add_subcommand(name, help)};
}

Verb Program::verb(const std::string& name, const std::string& help) {
    return {*this, *app.add_subcommand(name, help)};
}

bool Verb::named() const {
    return app_->parsed();
}

bool Verb::given(const std::string& option) const {
    return app_->count(option) > 0;
}

void Verb::runs(std::function<Result<int>()> action) const {
    app_->callback([program = program_, action = std::move(action)] { program->action = action; });
}

}  // namespace roofline::cli

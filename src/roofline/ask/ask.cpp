#include "roofline/ask/ask.hpp"

#include <functional>
#include <optional>

#include <fmt/format.h>

#include "roofline/ask/advise_options.hpp"
#include "roofline/ask/plan_options.hpp"
#include "roofline/ask/predict_options.hpp"
#include "roofline/ask/sweep/sweep.hpp"
#include "roofline/core/patience.hpp"
#include "roofline/io/account_json.hpp"
#include "roofline/io/advice_json.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/device_file.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/predict/account.hpp"
#include "roofline/render/predict_text.hpp"

namespace roofline::ask {
namespace {

using io::Json;

constexpr int no_answer = 1;
constexpr int bad_input = 2;
constexpr int not_here = 4;

struct Question {
    std::string verb;
    Json options = Json::object();
    std::string time;
};

/// What a verb knows while it answers.
struct Asked {
    const Question& question;
    const RequestLibrary& library;
    io::RunInfo run;
};

std::string shell_word(const std::string& word) {
    if (!word.empty() &&
        word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+%@") ==
            std::string::npos)
        return word;
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
    return text + "'";
}

/// The command line that asks the same. Model and device stand first, as people type them.
std::string command_of(const std::string& verb, Form& form) {
    std::string command = "roofline " + verb;
    for (const char* position : {"model", "device"}) {
        const Option* option = form.find(position);
        if (option != nullptr && option->given && option->text != nullptr) command += " " + shell_word(*option->text);
    }
    for (const Option& option : form.options()) {
        const std::string key = option.key();
        if (!option.given || key == "model" || key == "device") continue;
        if (option.flag != nullptr) {
            if (*option.flag) command += " --" + key;
        } else if (option.texts != nullptr) {
            for (const std::string& text : *option.texts) command += fmt::format(" --{} {}", key, shell_word(text));
        } else {
            command += fmt::format(" --{} {}", key, shell_word(*option.text));
        }
    }
    return command;
}

/// What was cut short is no answer and may not even be fit to be written down.
template <class Found>
Result<Found> found_in_time(Result<Found> found) {
    if (out_of_patience()) return fail("there was no time left");
    return found;
}

template <class Options>
Result<void> fill_in(const Asked& asked, Options& options, Form& form) {
    options.add_to(form);
    return form.fill(asked.question.options);
}

Result<Answer> answer_predict(Asked asked) {
    PredictOptions options;
    Form form;
    if (auto done = fill_in(asked, options, form); !done) return std::unexpected(done.error());
    const auto predicted = options.answer(asked.library);
    if (!predicted) return std::unexpected(predicted.error());
    asked.run.command = command_of("predict", form);
    return Answer{predicted_text(*predicted, asked.run), predicted->has_answer() ? 0 : no_answer};
}

/// The derivation of every operator, as text.
Result<Answer> answer_explain(Asked asked) {
    PredictOptions options;
    Form form;
    if (auto done = fill_in(asked, options, form); !done) return std::unexpected(done.error());
    const auto predicted = options.answer(asked.library);
    if (!predicted) return std::unexpected(predicted.error());
    io::JsonText json;
    json.object([&] { json.add("text", render::explain(predicted->scenario, predicted->report)); });
    return Answer{std::move(json).finish(), 0};
}

Result<Answer> answer_advise(Asked asked) {
    AdviseOptions options;
    Form form;
    if (auto done = fill_in(asked, options, form); !done) return std::unexpected(done.error());
    const auto advice = found_in_time(options.answer(asked.library));
    if (!advice) return std::unexpected(advice.error());
    asked.run.command = command_of("advise", form);
    return Answer{io::advice_text(*advice, asked.run), advice->asked.fit.fits ? 0 : no_answer};
}

Result<Answer> answer_plan(Asked asked) {
    PlanOptions options;
    Form form;
    if (auto done = fill_in(asked, options, form); !done) return std::unexpected(done.error());
    const auto plans = found_in_time(options.answer(asked.library));
    if (!plans) return std::unexpected(plans.error());
    asked.run.command = command_of("plan", form);
    int exit = 0;
    for (const Planned& planned : *plans) {
        if (planned.plan.best.empty()) exit = no_answer;
    }
    return Answer{plans_text(*plans, asked.run), exit};
}

#ifndef ROOFLINE_WITHOUT_SWEEP  // the page asks for one point after another and is a smaller download without it
Result<Answer> answer_sweep(Asked asked) {
    SweepOptions options;
    Form form;
    options.add_to(form);
    // Lists are welcome here: each value is checked by itself.
    for (Option& option : form.options()) {
        if (option.key() != "stage") option.choices.clear();
    }
    if (auto done = form.fill(asked.question.options); !done) return std::unexpected(done.error());
    auto rows = options.answer(form, asked.library);
    if (!rows) return std::unexpected(rows.error());
    return Answer{std::move(*rows), 0};
}
#endif

Result<std::string> named(const Asked& asked, const char* what) {
    std::string name;
    Form form;
    form.text(fmt::format("--{}", what), name, "");
    if (auto done = form.fill(asked.question.options); !done) return std::unexpected(done.error());
    if (name.empty()) return fail(fmt::format("options: \"{}\" is missing", what));
    return name;
}

Result<Answer> answer_model(Asked asked) {
    const auto name = named(asked, "model");
    if (!name) return std::unexpected(name.error());
    const auto model = asked.library.model(*name);
    if (!model) return std::unexpected(model.error());
    return Answer{io::model_text(*model, model::lower(model->architecture, model->types)), 0};
}

Result<Answer> answer_device(Asked asked) {
    const auto name = named(asked, "device");
    if (!name) return std::unexpected(name.error());
    const auto device = asked.library.device(*name);
    if (!device) return std::unexpected(device.error());
    return Answer{io::device_text(*device), 0};
}

/// Names and titles only: reading every model takes longer than a person waits for a page.
Result<Answer> answer_models(Asked) {
    io::JsonText json;
    json.object([&] {
        json.add("schema", "roofline.names/1");
        json.add("names", io::builtin_model_names());
    });
    return Answer{std::move(json).finish(), 0};
}

Result<Answer> answer_devices(Asked) {
    std::vector<Device> devices;
    for (const std::string& name : io::builtin_device_names()) {
        auto device = io::builtin_device(name);
        if (!device) return std::unexpected(device.error());
        devices.push_back(std::move(*device));
    }
    return Answer{io::devices_text(devices), 0};
}

/// A report that was dropped on the page, read and checked; written again as every report is.
Result<Answer> answer_account(Asked asked) {
    const auto name = named(asked, "report");
    if (!name) return std::unexpected(name.error());
    const auto text = asked.library.file(*name);
    if (!text) return std::unexpected(text.error());
    if (!*text) return fail(fmt::format("{}: is not among the files of the question", *name));
    const auto account = io::read_account(**text, *name);
    if (!account) return std::unexpected(account.error());
    return Answer{io::account_text(*account, asked.run), 0};
}

#ifndef ROOFLINE_WITHOUT_HELP
using io::OrderedJson;

OrderedJson option_json(const Option& option) {
    OrderedJson json = {{"name", option.key()}, {"names", option.names}, {"help", option.help}};
    json["group"] = option.group;
    json["type"] = option.flag != nullptr ? "flag" : option.type;
    json["several"] = option.texts != nullptr;
    json["default"] = option.text != nullptr ? OrderedJson(*option.text) : OrderedJson(nullptr);
    json["choices"] = option.choices;
    return json;
}

/// What every verb takes, as the command line's --help has it.
Result<Answer> answer_options(Asked) {
    PredictOptions predict_options;
    AdviseOptions advise_options;
    PlanOptions plan_options;
#ifndef ROOFLINE_WITHOUT_SWEEP
    SweepOptions sweep_options;
#endif
    OrderedJson json = {{"schema", "roofline.options/1"}, {"verbs", OrderedJson::object()}};
    const auto describe = [&](const char* verb, auto& options) {
        Form form;
        options.add_to(form);
        OrderedJson list = OrderedJson::array();
        for (const Option& option : form.options()) list.push_back(option_json(option));
        json["verbs"][verb] = std::move(list);
    };
    describe("predict", predict_options);
    describe("advise", advise_options);
    describe("plan", plan_options);
#ifndef ROOFLINE_WITHOUT_SWEEP
    describe("sweep", sweep_options);
#endif
    return Answer{io::dump(json), 0};
}
#endif

struct Verb {
    std::string_view name;
    Result<Answer> (*answer)(Asked);
    bool list = false;  // the answer is the same whatever comes with the question
};
constexpr Verb verbs[] = {
    {"predict", answer_predict},       {"explain", answer_explain},
    {"advise", answer_advise},         {"plan", answer_plan},
#ifndef ROOFLINE_WITHOUT_SWEEP
    {"sweep", answer_sweep},
#endif
    {"model", answer_model},           {"device", answer_device},
    {"models", answer_models, true},   {"devices", answer_devices, true},
    {"account", answer_account},
#ifndef ROOFLINE_WITHOUT_HELP
    {"options", answer_options, true},
#endif
};

std::optional<std::vector<std::byte>> decode_base64(std::string_view text) {
    std::vector<std::byte> bytes;
    bytes.reserve(text.size() / 4 * 3);
    unsigned bits = 0;
    int held = 0;
    for (const char c : text) {
        if (c == '=') break;
        static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const std::size_t digit = digits.find(c);
        if (digit == std::string_view::npos) return std::nullopt;
        bits = (bits << 6U) | static_cast<unsigned>(digit);
        held += 6;
        if (held < 8) continue;
        held -= 8;
        bytes.push_back(static_cast<std::byte>((bits >> static_cast<unsigned>(held)) & 0xffU));
    }
    return bytes;
}

Result<void> read_files(const Json& question, RequestLibrary& library) {
    if (question.contains("files")) {
        const Json& files = question["files"];
        if (!files.is_object()) return fail(fmt::format("files: found {}, expected an object", io::describe(files)));
        for (const auto& [name, text] : files.items()) {
            if (!text.is_string()) return fail(fmt::format("files.{}: expected its text", io::printable(name)));
            library.files[name] = text.get<std::string>();
        }
    }
    if (!question.contains("binaries")) return {};
    const Json& binaries = question["binaries"];
    if (!binaries.is_object())
        return fail(fmt::format("binaries: found {}, expected an object", io::describe(binaries)));
    std::optional<Problem> problem;
    for (const auto& [name, value] : binaries.items()) {
        if (!value.is_object()) return fail(fmt::format("binaries.{}: expected an object", io::printable(name)));
        io::Fields fields(value, "question", "binaries", problem);
        auto bytes = decode_base64(fields.text("base64"));
        const double size = fields.number_or("size", 0.0);
        if (problem) return std::unexpected(*problem);
        if (!bytes) return fail(fmt::format("binaries.{}: is not base64", io::printable(name)));
        if (!(size >= static_cast<double>(bytes->size()) && size < 1e16))
            return fail(fmt::format("binaries.{}: its size is less than what was sent of it", io::printable(name)));
        library.binaries[name] = {std::move(*bytes), static_cast<std::uint64_t>(size)};
    }
    return {};
}

Result<Answer> answer_list(const Verb& verb, const Asked& asked, Memory& memory) {
    if (const std::string* known = memory.list(asked.question.verb)) return Answer{*known, 0};
    auto answered = verb.answer(asked);
    if (answered) memory.keep_list(asked.question.verb, answered->text);
    return answered;
}

Result<Answer> answer_or_problem(std::string_view text, RequestLibrary& library, Memory& memory,
                                 const std::string& time) {
    const auto json = io::parse_json(text, "question");
    if (!json) return std::unexpected(json.error());
    if (!json->is_object()) return fail(fmt::format("question: found {}, expected an object", io::describe(*json)));
    Question question;
    std::optional<Problem> problem;
    io::Fields fields(*json, "question", "", problem);
    question.verb = fields.text("verb");
    question.time = time;
    if (problem) return std::unexpected(*problem);
    for (const std::string& key : fields.keys()) {
        if (key != "verb" && key != "options" && key != "files" && key != "binaries")
            return fail(fmt::format("question: \"{}\" is not a key; expected verb, options, files, binaries",
                                    io::printable(key)));
    }
    if (json->contains("options")) question.options = (*json)["options"];
    if (auto done = read_files(*json, library); !done) return std::unexpected(done.error());
    for (const Verb& verb : verbs) {
        if (verb.name != question.verb) continue;
        const Asked asked{question, library, {"", time}};
        return verb.list ? answer_list(verb, asked, memory) : verb.answer(asked);
    }
    std::string known;
    for (const Verb& verb : verbs) known += (known.empty() ? "" : ", ") + std::string(verb.name);
    return fail(fmt::format("question: verb: found \"{}\", expected one of {}", io::printable(question.verb), known));
}

}  // namespace

Answer answer(std::string_view question, Memory& memory, const std::string& time) {
    RequestLibrary library(memory);
    auto answered = answer_or_problem(question, library, memory, time);
    const bool late = out_of_patience();
    if (answered && !late) return std::move(*answered);
    const int exit = late ? stopped : answered.error().unavailable ? not_here : bad_input;
    io::JsonText json;
    json.object([&] {
        json.object("error", [&] {
            json.add("text", late ? std::string("the answer took longer than it may") : answered.error().text);
            json.add("exit", exit);
            if (library.needs() > 0) json.add("needs", library.needs());
        });
    });
    return {std::move(json).finish(), exit};
}

}  // namespace roofline::ask

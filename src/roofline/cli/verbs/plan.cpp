// roofline plan: which devices, how many, and how to spread a model over them, so that requests are answered in time.
#include "roofline/decide/plan.hpp"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <unistd.h>

#include <fmt/format.h>

#include "roofline/cli/execution_options.hpp"
#include "roofline/cli/load.hpp"
#include "roofline/cli/memory_options.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/decide/emit.hpp"
#include "roofline/io/engine_file.hpp"
#include "roofline/io/names.hpp"
#include "roofline/io/plan_json.hpp"
#include "roofline/io/tensors.hpp"
#include "roofline/render/plan_text.hpp"
#include "roofline/serving/mix.hpp"

namespace roofline::cli {
namespace {

constexpr double most_devices = 1024.0;
constexpr std::size_t rows_shown = 16;

struct Options {
    std::string models;
    std::string devices;
    std::string prices;
    std::string prompt = "1024";
    std::string generate = "128";
    std::string ttft;
    std::string tpot;
    std::string rate;
    std::string cost;
    std::string quantization = "auto";
    std::string kv_dtype = "auto";
    std::string batch = "1024";
    std::string chunks = "512,1024,2048,4096,8192,16384";
    MemoryFlags memory;
    std::string goal = "cost";
    std::string emit;
    std::string profile = "engine";
    std::string calibration;
    bool colocated = false;
    bool all = false;
    OutputOptions output;
};

Result<std::vector<decide::Offer>> read_offers(const Options& options) {
    if (options.devices.empty()) return fail("--devices: expected devices with counts, such as h100-sxm:8,h200-sxm:4");
    std::vector<decide::Offer> offers;
    for (const std::string& part : parts_of(options.devices, ',')) {
        const std::size_t colon = part.rfind(':');
        if (colon == std::string::npos) {
            return fail(fmt::format("--devices: found \"{}\", expected a device and how many there are, such as {}:8",
                                    io::printable(part), part.empty() ? "h100-sxm" : io::printable(part)));
        }
        const auto count = parse_whole("--devices", part.substr(colon + 1), 1.0, most_devices);
        if (!count) return std::unexpected(count.error());
        decide::Offer offer;
        auto device = load_device(part.substr(0, colon));
        if (!device) return std::unexpected(device.error());
        offer.device = std::move(*device);
        offer.count = *count;
        auto execution = load_execution(options.profile, options.calibration, offer.device);
        if (!execution) return std::unexpected(execution.error());
        offer.execution = std::move(*execution);
        offers.push_back(std::move(offer));
    }
    return offers;
}

Result<void> read_prices(const Options& options, std::vector<decide::Offer>& offers) {
    if (options.prices.empty()) return {};
    for (const std::string& part : parts_of(options.prices, ',')) {
        const std::size_t equals = part.find('=');
        if (equals == std::string::npos) {
            return fail(fmt::format("--price: found \"{}\", expected a device and the price of an hour, such as {}=2.5",
                                    io::printable(part), offers.front().device.name));
        }
        const auto price = parse_positive("--price", part.substr(equals + 1));
        if (!price) return std::unexpected(price.error());
        const auto device = load_device(part.substr(0, equals));
        if (!device) return std::unexpected(device.error());
        bool found = false;
        for (decide::Offer& offer : offers) {
            if (offer.device.name != device->name) continue;
            offer.price = *price;
            found = true;
        }
        if (!found) return fail(fmt::format("--price: {} is not among --devices", device->name));
    }
    for (const decide::Offer& offer : offers) {
        if (!offer.price)
            return fail(
                fmt::format("--price: has none for {}, and prices cannot be compared with none", offer.device.name));
    }
    return {};
}

Result<const Format*> format_named(const char* option, const std::string& text) {
    if (text == "auto") return nullptr;
    if (const Format* format = find_format(text)) return format;
    std::vector<std::string> names;
    for (const Format& format : all_formats()) names.emplace_back(format.name);
    return fail(fmt::format("{}: found \"{}\", expected auto or a number type such as bf16, fp8 or awq{}", option,
                            io::printable(text), io::suggestion(text, names)));
}

Result<std::vector<predict::TypeChoice>> read_types(const Options& options) {
    std::vector<predict::TypeChoice> types;
    for (const std::string& weights : parts_of(options.quantization, ',')) {
        const auto format = format_named("--quantization", weights);
        if (!format) return std::unexpected(format.error());
        for (const std::string& kv : parts_of(options.kv_dtype, ',')) {
            const auto cache = format_named("--kv-cache-dtype", kv);
            if (!cache) return std::unexpected(cache.error());
            predict::TypeChoice choice;
            choice.weights = *format;
            if (*format != nullptr && !(*format)->weight_only) choice.activations = *format;
            choice.kv = *cache;
            types.push_back(choice);
        }
    }
    return types;
}

Result<decide::Targets> read_targets(const Options& options) {
    decide::Targets targets;
    if (!options.ttft.empty()) {
        const auto value = parse_duration("--ttft", options.ttft);
        if (!value) return std::unexpected(value.error());
        targets.ttft = *value;
    }
    if (!options.tpot.empty()) {
        const auto value = parse_duration("--tpot", options.tpot);
        if (!value) return std::unexpected(value.error());
        targets.tpot = *value;
    }
    if (!options.rate.empty()) {
        const auto value = parse_positive("--requests-per-second", options.rate);
        if (!value) return std::unexpected(value.error());
        targets.requests = *value;
    }
    if (!options.cost.empty()) {
        const std::string number =
            options.cost.ends_with("/h") ? options.cost.substr(0, options.cost.size() - 2) : options.cost;
        const auto value = parse_positive("--max-cost", number);
        if (!value) return std::unexpected(value.error());
        targets.cost_per_hour = *value;
    }
    return targets;
}

Result<decide::Choices> read_choices(const Options& options) {
    decide::Choices choices;
    auto offers = read_offers(options);
    if (!offers) return std::unexpected(offers.error());
    if (auto done = read_prices(options, *offers); !done) return std::unexpected(done.error());
    choices.offers = std::move(*offers);
    auto types = read_types(options);
    if (!types) return std::unexpected(types.error());
    choices.types = std::move(*types);
    choices.steps.clear();
    for (const std::string& part : parts_of(options.chunks, ',')) {
        const auto tokens = parse_whole("--chunk", part, 16.0, 1e6);
        if (!tokens) return std::unexpected(tokens.error());
        choices.steps.push_back(*tokens);
    }
    const auto most = parse_whole("--max-batch", options.batch, 1.0, 65536.0);
    if (!most) return std::unexpected(most.error());
    choices.most_sequences = *most;
    return choices;
}

/// The name a hub knows it by, where the model's file has one.
std::string served_name(const io::ModelFile& model, const std::string& typed) {
    if (typed.find('/') != std::string::npos) return typed;
    for (const std::string& alias : model.aliases) {
        if (alias.find('/') != std::string::npos) return alias;
    }
    return typed;
}

/// The search goes by mean lengths; finalists are asked about the whole mix.
Result<void> read_requests(const Options& options, decide::PlanQuestion& question) {
    serving::Mix mix;
    const auto prompt = serving::parse_lengths(options.prompt, "--prompt");
    if (!prompt) return std::unexpected(prompt.error());
    mix.prompt = *prompt;
    const auto output = serving::parse_lengths(options.generate, "--generate");
    if (!output) return std::unexpected(output.error());
    mix.output = *output;
    mix.longest_context = question.model.architecture->longest_context;
    double prompts = 0.0;
    double outputs = 0.0;
    for (const serving::Share& share : mix.shares()) {
        prompts += share.weight * share.prompt;
        outputs += share.weight * share.output;
        question.choices.longest = std::max(question.choices.longest, share.prompt + share.output);
    }
    question.model.workload.prompt = std::max(1.0, std::round(prompts));
    question.model.workload.generate = std::round(outputs);
    if (question.model.workload.generate < 2.0) {
        return fail(fmt::format("--generate: found \"{}\", expected outputs of at least 2 tokens in the mean",
                                io::printable(options.generate)));
    }
    const bool alike =
        prompt->shape == serving::Lengths::Shape::fixed && output->shape == serving::Lengths::Shape::fixed;
    if (!alike) question.mix = mix;
    return {};
}

Result<decide::PlanQuestion> question_about(const io::ModelFile& model, const Options& options,
                                            const decide::Choices& choices) {
    decide::PlanQuestion question;
    predict::Setup& setup = question.model;
    setup.model_name = model.name;
    setup.model_title = model.title;
    setup.architecture = std::make_shared<const model::Architecture>(model.architecture);
    setup.checkpoint = std::make_shared<const model::TypePlan>(model.types);
    setup.checkpoint_summary = model.types_summary;
    setup.active_counts = model.active_counts;
    setup.notes = model.notes;
    question.choices = choices;
    if (auto done = read_requests(options, question); !done) return std::unexpected(done.error());
    const auto targets = read_targets(options);
    if (!targets) return std::unexpected(targets.error());
    question.targets = *targets;
    MemoryFlags flags = options.memory;
    if (flags.engine.empty()) flags.engine = options.emit.empty() ? "vllm" : options.emit;
    auto memory = flags.load();
    if (!memory) return std::unexpected(memory.error());
    setup.memory = std::move(*memory);
    question.may_disaggregate = !options.colocated;
    question.aim = options.goal == "throughput" ? decide::Aim::throughput
                   : options.goal == "latency"  ? decide::Aim::latency
                                                : decide::Aim::cost;
    return question;
}

/// Everything that does not stand on the first page is on stderr, and only where somebody reads it.
void say_how_long(const decide::Plan& plan, double seconds) {
    if (::isatty(STDERR_FILENO) == 0) return;
    fmt::print(stderr, "{}: {:.0f} candidates in {:.2f} s\n", plan.model_name, plan.counts.candidates, seconds);
}

Result<int> run(const Options& options, const std::string& command) {
    if (options.models.empty()) return fail("no MODEL was named (`roofline models` lists the built-in ones)");
    const auto choices = read_choices(options);
    if (!choices) return std::unexpected(choices.error());
    if (!options.emit.empty()) {
        const auto known = decide::emit(options.emit, {});
        if (!known) return std::unexpected(known.error());
    }
    io::OrderedJson json = {{"schema", "roofline.plan/1"},
                            {"run", {{"version", ROOFLINE_VERSION}, {"command", command}, {"time", now_iso()}}}};
    json["plans"] = io::OrderedJson::array();
    std::string text;
    int code = done;
    for (const std::string& name : parts_of(options.models, ',')) {
        auto model = load_model(name);
        if (!model) return std::unexpected(model.error());
        const auto question = question_about(*model, options, *choices);
        if (!question) return std::unexpected(question.error());
        const auto start = std::chrono::steady_clock::now();
        const auto plan = decide::plan(*question);
        if (!plan) return std::unexpected(plan.error());
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        say_how_long(*plan, seconds);
        if (plan->best.empty()) code = no_answer;
        std::string flags;
        if (!options.emit.empty() && !plan->best.empty()) {
            const auto emitted = decide::emit(
                options.emit, decide::servers_of(plan->best.front(), *question, served_name(*model, name)));
            if (!emitted) return std::unexpected(emitted.error());
            flags = *emitted;
        }
        if (options.output.format == "json") {
            io::OrderedJson one = io::plan_json(*plan, *question);
            one["seconds"] = seconds;
            one["emitted"] = flags.empty() ? io::OrderedJson(nullptr) : io::OrderedJson(flags);
            json["plans"].push_back(std::move(one));
            continue;
        }
        if (!text.empty()) text += "\n";
        const std::size_t rows = options.all ? 0 : rows_shown;
        const bool markdown = options.output.format == "md";
        if (options.output.format == "csv")
            text += render::plan_csv(*plan, *question);
        else if (!flags.empty())
            text += flags;
        else
            text += render::plan_text(*plan, *question, markdown ? render::PlanForm::markdown : render::PlanForm::text,
                                      rows);
    }
    if (options.output.format == "json") text = io::dump(json);
    if (auto written = options.output.write(text); !written) return std::unexpected(written.error());
    return code;
}

}  // namespace

void plan_verb(Program& program) {
    auto options = std::make_shared<Options>();
    CLI::App* verb = program.app.add_subcommand(
        "plan", "Which devices, how many, and how to spread a model over them, so that requests are answered in time?");
    verb->add_option("model,--model", options->models, "Built-in names, folders or files; several with commas")
        ->type_name("MODEL[,MODEL]");
    verb->add_option("--devices", options->devices, "What there is to choose from: h100-sxm:8,h200-sxm:8")
        ->type_name("NAME:COUNT,...");
    const char* work = "Requests";
    verb->add_option("-p,--prompt,--input-len", options->prompt,
                     "Tokens of a prompt: 1024, 100-2000, lognormal:1000,0.8 ...")
        ->group(work)
        ->capture_default_str()
        ->type_name("LENGTHS");
    verb->add_option("-n,--generate,--output-len", options->generate, "Tokens of an output, likewise")
        ->group(work)
        ->capture_default_str()
        ->type_name("LENGTHS");
    const char* targets = "Targets";
    verb->add_option("--ttft", options->ttft, "Time to the first token, e.g. 500ms")->group(targets)->type_name("TIME");
    verb->add_option("--tpot", options->tpot, "Time per further token, e.g. 30ms")->group(targets)->type_name("TIME");
    verb->add_option("--requests-per-second,--rate", options->rate, "Requests that come")
        ->group(targets)
        ->type_name("X");
    verb->add_option("--max-cost", options->cost, "An hour may cost this, e.g. 100/h; without --price, devices")
        ->group(targets)
        ->type_name("X[/h]");
    verb->add_option("--price", options->prices, "Of a device for an hour: h100-sxm=2.5,h200-sxm=3.5")
        ->group(targets)
        ->type_name("NAME=X,...");
    verb->add_option("--goal", options->goal, "What is best among those that meet the targets")
        ->group(targets)
        ->check(CLI::IsMember({"cost", "throughput", "latency"}))
        ->capture_default_str();
    const char* choice = "What may be chosen";
    verb->add_option("-q,--quantization", options->quantization,
                     "Types of weights to try; auto is what the checkpoint says: auto,fp8")
        ->group(choice)
        ->capture_default_str()
        ->type_name("TYPE,...");
    verb->add_option("--kv-cache-dtype", options->kv_dtype, "Types of the KV cache to try: auto,fp8")
        ->group(choice)
        ->capture_default_str()
        ->type_name("TYPE,...");
    verb->add_option("--max-batch,--max-num-seqs", options->batch, "Sequences a scheduler runs at once, at most")
        ->group(choice)
        ->capture_default_str()
        ->type_name("N");
    verb->add_option("--chunk,--max-num-batched-tokens", options->chunks, "Tokens of a step to try")
        ->group(choice)
        ->capture_default_str()
        ->type_name("N,...");
    verb->add_option("--engine", options->memory.engine,
                     fmt::format("Who shares out the memory: {}, or a file (default: vllm, or what --emit names)",
                                 fmt::join(io::builtin_engine_names(), ", ")))
        ->group(choice)
        ->type_name("NAME");
    verb->add_option("--gpu-memory-utilization", options->memory.utilisation,
                     "Share of the memory that the engine may take (default: its own)")
        ->group(choice)
        ->type_name("SHARE");
    verb->add_flag("--colocated", options->colocated, "Prompts and outputs on the same replicas only")->group(choice);
    add_execution_options(*verb, options->profile, options->calibration);
    verb->add_option("--emit", options->emit,
                     fmt::format("Print what starts the best with an engine: {}", fmt::join(decide::emitters(), ", ")))
        ->type_name("ENGINE");
    verb->add_flag("--all", options->all, "Show the whole front");
    options->output.add_to(*verb, {"table", "md", "csv", "json"});
    verb->callback(
        [&program, options] { program.action = [&program, options] { return run(*options, program.command); }; });
}

}  // namespace roofline::cli

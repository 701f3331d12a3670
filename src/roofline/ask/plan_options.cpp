#include "roofline/ask/plan_options.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "roofline/ask/execution_options.hpp"
#include "roofline/ask/parse.hpp"
#include "roofline/ask/scenario_options.hpp"
#include "roofline/ask/traffic_options.hpp"
#include "roofline/decide/emit.hpp"
#include "roofline/io/engine_file.hpp"
#include "roofline/io/names.hpp"
#include "roofline/io/plan_json.hpp"
#include "roofline/io/tensors.hpp"
#include "roofline/serving/mix.hpp"

namespace roofline::ask {
namespace {

constexpr double most_devices = 1024.0;

Result<std::vector<decide::Offer>> read_offers(const Library& library, const PlanOptions& options) {
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
        auto device = library.device(part.substr(0, colon));
        if (!device) return std::unexpected(device.error());
        offer.device = std::move(*device);
        offer.count = *count;
        auto execution = library.execution(options.profile, options.calibration, offer.device);
        if (!execution) return std::unexpected(execution.error());
        offer.execution = std::move(*execution);
        offers.push_back(std::move(offer));
    }
    return offers;
}

Result<void> read_prices(const Library& library, const PlanOptions& options, std::vector<decide::Offer>& offers) {
    if (options.prices.empty()) return {};
    for (const std::string& part : parts_of(options.prices, ',')) {
        const std::size_t equals = part.find('=');
        if (equals == std::string::npos) {
            return fail(fmt::format("--price: found \"{}\", expected a device and the price of an hour, such as {}=2.5",
                                    io::printable(part), offers.front().device.name));
        }
        const auto price = parse_positive("--price", part.substr(equals + 1));
        if (!price) return std::unexpected(price.error());
        const auto device = library.device(part.substr(0, equals));
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

Result<std::vector<predict::TypeChoice>> read_types(const PlanOptions& options) {
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

Result<decide::Targets> read_targets(const PlanOptions& options) {
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

Result<decide::Choices> read_choices(const Library& library, const PlanOptions& options) {
    decide::Choices choices;
    auto offers = read_offers(library, options);
    if (!offers) return std::unexpected(offers.error());
    if (auto done = read_prices(library, options, *offers); !done) return std::unexpected(done.error());
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
    if (!options.speculate.empty()) {
        const auto speculation = parse_speculation(options.speculate);
        if (!speculation) return std::unexpected(speculation.error());
        choices.speculation = *speculation;
    } else if (!options.draft.empty()) {
        return fail("--draft-model: expected --speculate K,ALPHA beside it");
    }
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
Result<void> read_requests(const PlanOptions& options, decide::PlanQuestion& question) {
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
    if (question.model.workload.generate < 2.0 && mix.longest_context > 0.0 && prompts + 2.0 > mix.longest_context) {
        return fail(
            fmt::format("--prompt: found \"{}\", expected prompts that leave room for an output: the model holds {} "
                        "tokens, prompt and output together",
                        io::printable(options.prompt), mix.longest_context));
    }
    if (question.model.workload.generate < 2.0) {
        return fail(fmt::format("--generate: found \"{}\", expected outputs of at least 2 tokens in the mean",
                                io::printable(options.generate)));
    }
    const bool alike =
        prompt->shape == serving::Lengths::Shape::fixed && output->shape == serving::Lengths::Shape::fixed;
    if (!alike) question.mix = mix;
    return {};
}

Result<decide::PlanQuestion> question_about(const Library& library, const io::ModelFile& model,
                                            const PlanOptions& options, const decide::Choices& choices) {
    decide::PlanQuestion question;
    predict::Setup& setup = question.model;
    setup = setup_of_model(model);
    question.choices = choices;
    if (options.draft == own_layers) {
        auto own = own_draft_of(setup);
        if (!own) return std::unexpected(own.error());
        setup.draft = std::move(*own);
    } else if (!options.draft.empty()) {
        // With a share of --speculate only the engine that is started needs to know what guesses.
        if (auto draft = library.model(options.draft))
            setup.draft = std::make_shared<const predict::Setup>(setup_of_model(std::move(*draft)));
        else if (choices.speculation.draft_fraction == 0.0)
            return fail(
                fmt::format("--draft-model: {}; without a third number of --speculate its cost is that of a "
                            "model that must be known",
                            draft.error().text));
    }
    if (auto done = read_requests(options, question); !done) return std::unexpected(done.error());
    const auto targets = read_targets(options);
    if (!targets) return std::unexpected(targets.error());
    question.targets = *targets;
    MemoryFlags flags = options.memory;
    if (flags.engine.empty()) flags.engine = options.emit.empty() ? "vllm" : options.emit;
    auto memory = flags.load(library);
    if (!memory) return std::unexpected(memory.error());
    setup.memory = std::move(*memory);
    question.may_disaggregate = !options.colocated;
    if (options.draft != own_layers) question.draft = options.draft;  // engines know their checkpoint's own layers
    question.aim = options.goal == "throughput" ? decide::Aim::throughput
                   : options.goal == "latency"  ? decide::Aim::latency
                                                : decide::Aim::cost;
    return question;
}

}  // namespace

void PlanOptions::add_to(Form& form) {
    form.text("model,--model", models, "Built-in names, folders or files; several with commas")
        .of_type("MODEL[,MODEL]");
    form.text("--devices", devices, "What there is to choose from: h100-sxm:8,h200-sxm:8").of_type("NAME:COUNT,...");
    const char* work = "Requests";
    form.text("-p,--prompt,--input-len", prompt, "Tokens of a prompt: 1024, 100-2000, lognormal:1000,0.8 ...")
        .in(work)
        .shows_default()
        .of_type("LENGTHS");
    form.text("-n,--generate,--output-len", generate, "Tokens of an output, likewise")
        .in(work)
        .shows_default()
        .of_type("LENGTHS");
    const char* targets = "Targets";
    form.text("--ttft", ttft, "Time to the first token, e.g. 500ms").in(targets).of_type("TIME");
    form.text("--tpot", tpot, "Time per further token, e.g. 30ms").in(targets).of_type("TIME");
    form.text("--requests-per-second,--rate", rate, "Requests that come").in(targets).of_type("X");
    form.text("--max-cost", cost, "An hour may cost this, e.g. 100/h; without --price, devices")
        .in(targets)
        .of_type("X[/h]");
    form.text("--price", prices, "Of a device for an hour: h100-sxm=2.5,h200-sxm=3.5")
        .in(targets)
        .of_type("NAME=X,...");
    form.text("--goal", goal, "What is best among those that meet the targets")
        .in(targets)
        .one_of({"cost", "throughput", "latency"})
        .shows_default();
    const char* choice = "What may be chosen";
    form.text("-q,--quantization", quantization, "Types of weights to try; auto is what the checkpoint says: auto,fp8")
        .in(choice)
        .shows_default()
        .of_type("TYPE,...");
    form.text("--kv-cache-dtype", kv_dtype, "Types of the KV cache to try: auto,fp8")
        .in(choice)
        .shows_default()
        .of_type("TYPE,...");
    form.text("--max-batch,--max-num-seqs", batch, "Sequences a scheduler runs at once, at most")
        .in(choice)
        .shows_default()
        .of_type("N");
    form.text("--chunk,--max-num-batched-tokens", chunks, "Tokens of a step to try")
        .in(choice)
        .shows_default()
        .of_type("N,...");
    form.text("--engine", memory.engine,
              fmt::format("Who shares out the memory: {}, or a file (default: vllm, or what --emit names)",
                          fmt::join(io::builtin_engine_names(), ", ")))
        .in(choice)
        .of_type("NAME");
    form.text("--gpu-memory-utilization", memory.utilisation,
              "Share of the memory that the engine may take (default: its own)")
        .in(choice)
        .of_type("SHARE");
    form.text("--speculate", speculate,
              "Try guessing ahead too: tokens guessed, chance that one is right, cost of guessing as a share of a step")
        .in(choice)
        .of_type("K,ALPHA[,SHARE]");
    form.text(
            "--draft-model", draft,
            "What guesses (mtp: the model's own layers): its memory is counted, and its time unless --speculate has a "
            "SHARE")
        .in(choice)
        .of_type("MODEL");
    form.flag("--colocated", colocated, "Prompts and outputs on the same replicas only").in(choice);
    add_execution_options(form, profile, calibration);
    form.text("--emit", emit,
              fmt::format("Print what starts the best with an engine: {}", fmt::join(decide::emitters(), ", ")))
        .of_type("ENGINE");
}

Result<std::vector<Planned>> PlanOptions::answer(const Library& library) const {
    if (models.empty()) return fail("no MODEL was named (`roofline models` lists the built-in ones)");
    const auto choices = read_choices(library, *this);
    if (!choices) return std::unexpected(choices.error());
    if (!emit.empty()) {
        const auto known = decide::emit(emit, {});
        if (!known) return std::unexpected(known.error());
    }
    std::vector<Planned> answers;
    for (const std::string& name : parts_of(models, ',')) {
        const auto model = library.model(name);
        if (!model) return std::unexpected(model.error());
        auto question = question_about(library, *model, *this, *choices);
        if (!question) return std::unexpected(question.error());
        question->has_time = has_time;
        auto plan = decide::plan(*question);
        if (!plan) return std::unexpected(plan.error());
        std::string flags;
        if (!emit.empty() && !plan->best.empty()) {
            const auto emitted =
                decide::emit(emit, decide::servers_of(plan->best.front(), *question, served_name(*model, name)));
            if (!emitted) return std::unexpected(emitted.error());
            flags = *emitted;
        }
        answers.push_back({std::move(*question), std::move(*plan), std::move(flags)});
    }
    return answers;
}

std::string plans_text(const std::vector<Planned>& plans, const io::RunInfo& run) {
    io::JsonText json;
    json.object([&] {
        json.add("schema", "roofline.plan/1");
        io::write_run(json, run);
        json.array("plans", [&] {
            for (const Planned& planned : plans) {
                json.object([&] {
                    io::write_plan(json, planned.plan, planned.question);
                    json.add("emitted", planned.emitted.empty() ? std::nullopt : std::optional(planned.emitted));
                });
            }
        });
    });
    return std::move(json).finish();
}

}  // namespace roofline::ask

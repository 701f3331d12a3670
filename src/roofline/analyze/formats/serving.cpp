// What benchmarks of servers write: `vllm bench serve --save-result` (benchmark_serving.py; one JSON document) and
// `sglang.bench_serving --output-file` (a document a line).
//
//   { "backend", "model_id"?, "num_prompts"?, "request_rate": number | "inf", "max_concurrency"?: number | null,
//     "duration" (s), "completed", "total_input_tokens", "total_output_tokens",
//     "request_throughput" (1/s), "output_throughput" (tokens/s), "total_token_throughput"?,
//     "mean_ttft_ms", "median_ttft_ms", "p99_ttft_ms", the same of "tpot" and "itl" (and "e2el" or "e2e_latency"),
//     "concurrency"?, "input_lens"?: [], "output_lens"?: [], ... }
//
// TPOT is the mean over tokens after the first. Where no concurrency is written, it follows from Little's law: requests
// a second times the seconds each takes.
#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "roofline/analyze/format.hpp"
#include "roofline/analyze/json_text.hpp"
#include "roofline/analyze/runs.hpp"
#include "roofline/render/numbers.hpp"
#include "roofline/serving/traffic.hpp"

namespace roofline::analyze {

Format serving_format();

namespace {

bool recognises(std::string_view first) {
    const auto has = [&](std::string_view key) { return first.find(key) != std::string_view::npos; };
    return has("\"total_input_tokens\"") && has("\"total_output_tokens\"") &&
           (has("\"request_throughput\"") || has("\"output_throughput\"") || has("_ttft_ms\""));
}

struct Served {
    double duration = 0.0, completed = 0.0, input = 0.0, output = 0.0;
    double rate = 0.0;   // requests per second offered; zero: as fast as they are taken
    double limit = 0.0;  // of requests at a time; zero: none
    std::optional<double> ttft, median_ttft, p99_ttft, tpot, median_tpot, p99_tpot, concurrency;
    std::string model, backend;

    double mean_prompt() const { return input / completed; }
    double mean_output() const { return output / completed; }
};

Result<Served> served_of(const io::Json& json, const std::string& file) {
    Served served;
    const auto need = [&](const char* key, double& target) -> std::optional<Problem> {
        const auto value = number_at(json, key);
        if (!value || *value <= 0.0)
            return Problem{
                fmt::format("{}: {}: found {}, expected a number above zero", file, key,
                            json.is_object() && json.contains(key) ? io::describe(json.at(key)) : "nothing")};
        target = *value;
        return std::nullopt;
    };
    for (const auto& [key, target] :
         {std::pair{"duration", &served.duration}, std::pair{"completed", &served.completed},
          std::pair{"total_input_tokens", &served.input}, std::pair{"total_output_tokens", &served.output}}) {
        if (auto problem = need(key, *target)) return std::unexpected(*problem);
    }
    const auto milliseconds = [&](const char* key) {
        const auto value = number_at(json, key);
        return value && *value > 0.0 ? std::optional(*value * 1e-3) : std::nullopt;
    };
    served.ttft = milliseconds("mean_ttft_ms");
    served.median_ttft = milliseconds("median_ttft_ms");
    served.p99_ttft = milliseconds("p99_ttft_ms");
    served.tpot = milliseconds("mean_tpot_ms");
    served.median_tpot = milliseconds("median_tpot_ms");
    served.p99_tpot = milliseconds("p99_tpot_ms");
    served.rate = std::max(0.0, number_at(json, "request_rate").value_or(0.0));  // "inf" is no number
    served.limit = std::max(0.0, number_at(json, "max_concurrency").value_or(0.0));
    served.model = text_at(json, "model_id");
    if (served.model.empty()) served.model = text_at(json, "model");
    served.backend = text_at(json, "backend");
    served.concurrency = number_at(json, "concurrency");
    if (!served.concurrency && served.ttft && served.tpot) {
        const double each = *served.ttft + *served.tpot * std::max(0.0, served.mean_output() - 1.0);
        served.concurrency = served.completed / served.duration * each;
    }
    return served;
}

/// The stages of one document: what a user waits for, the step that writes, and the whole.
std::vector<AccountStage> stages_of(const Served& served, const std::string& suffix) {
    std::vector<AccountStage> stages;
    const auto add = [&](std::string name, double batch, double tokens, double produced, double seconds) {
        AccountStage& stage = stages.emplace_back();
        stage.name = std::move(name) + suffix;
        stage.batch = batch;
        stage.tokens = tokens;
        stage.produced = produced;
        stage.times.measured = Seconds(seconds);
    };
    const double running = std::max(1.0, served.concurrency.value_or(1.0));
    if (served.ttft) {
        add("first token", 1.0, served.mean_prompt(), 1.0, *served.ttft);
        stages.back().context = served.mean_prompt();
    }
    if (served.tpot) {
        add("next token", running, running, running, *served.tpot);
        stages.back().context = served.mean_prompt() + served.mean_output() / 2.0;
    }
    add("serving", running, served.input, served.output, served.duration);
    return stages;
}

std::string summary(const Served& served, const std::string& suffix) {
    const auto milliseconds = [](const std::optional<double>& value) {
        return value ? render::time(Seconds(*value)) : std::string("-");
    };
    return fmt::format(
        "{}{:.0f} requests of {:.0f} prompt and {:.0f} output tokens on average, {}{}; {:.2f} requests/s, {:.0f} "
        "output "
        "tokens/s; TTFT mean {}, median {}, p99 {}; TPOT mean {}, median {}, p99 {}; {:.1f} at a time",
        suffix.empty() ? "" : suffix.substr(1) + ": ", served.completed, served.mean_prompt(), served.mean_output(),
        served.rate > 0.0 ? fmt::format("{:g} a second offered", served.rate) : "all offered at once",
        served.limit > 0.0 ? fmt::format(", at most {:g} at a time", served.limit) : "",
        served.completed / served.duration, served.output / served.duration, milliseconds(served.ttft),
        milliseconds(served.median_ttft), milliseconds(served.p99_ttft), milliseconds(served.tpot),
        milliseconds(served.median_tpot), milliseconds(served.p99_tpot), served.concurrency.value_or(0.0));
}

/// The closed form of the server under the same load, into the stages that were measured.
Result<void> predict_load(const Served& served, const Options& options, const Device& device,
                          std::span<AccountStage> stages, Analysis& analysis) {
    predict::Workload workload;
    workload.prompt = std::max(1.0, served.mean_prompt());
    workload.generate = std::max(1.0, served.mean_output());
    workload.batch = std::max(1.0, served.concurrency.value_or(1.0));
    const auto setup = setup_for(options, device, workload);
    if (!setup) return std::unexpected(setup.error());
    const auto scenario = predict::realise(*setup);
    if (!scenario) return std::unexpected(scenario.error());
    serving::Traffic traffic;
    traffic.mix.prompt = serving::Lengths::fixed(workload.prompt);
    traffic.mix.output = serving::Lengths::fixed(workload.generate);
    if (setup->architecture) traffic.mix.longest_context = setup->architecture->longest_context;
    // Offered all at once under a limit, each place is taken again as soon as it is free: users. Without a limit all of
    // them queue, and what the first tokens wait for is the queue, not the machine.
    traffic.load = served.limit > 0.0 && (served.rate <= 0.0 || served.rate * served.duration > served.completed)
                       ? serving::Load::users(served.limit)
                   : served.rate > 0.0 ? serving::Load::rate(served.rate)
                                       : serving::Load::users(std::max(1.0, served.concurrency.value_or(1.0)));
    const auto answer = serving::answer(*scenario, traffic);
    if (!answer) return std::unexpected(answer.error());
    analysis.account.model = scenario->model_name;
    for (AccountStage& stage : stages) {
        const bool first = stage.name.starts_with("first token");
        const bool next = stage.name.starts_with("next token");
        const auto time = [&](const serving::Steady& steady) {
            const double rate = steady.flow.output_tokens * answer->replicas;
            return Seconds(first ? steady.ttft : next ? steady.tpot : rate > 0.0 ? served.output / rate : 0.0);
        };
        stage.times.limit = time(answer->limit);
        stage.times.attainable = std::max(stage.times.limit, time(answer->attainable));
        stage.times.expected = std::max(stage.times.attainable, time(answer->expected));
        stage.times.expected_low = stage.times.expected_high = stage.times.expected;
        analysis.joined.push_back({.stage = stage.name,
                                   .name = "",
                                   .limit = stage.times.limit,
                                   .expected = stage.times.expected,
                                   .measured = stage.times.measured.value_or(Seconds{})});
    }
    if (answer->expected.overloaded)
        analysis.account.notes.emplace_back(
            "by our count the rate offered is more than the server can do: its queue grows");
    return {};
}

Result<Analysis> read(Input& input, const Options& options) {
    const auto documents = read_documents(input);
    if (!documents) return std::unexpected(documents.error());
    Analysis analysis;
    analysis.account.verb = "analyze";
    analysis.account.title = input.name();
    const auto device = device_meant("", options, analysis.account.notes);
    analysis.device_known = device.has_value();
    if (device) analysis.account.device = *device;
    if (!device) analysis.account.device.name = "unknown";
    std::size_t number = 0;
    for (const io::Json& document : documents->all) {
        ++number;
        const std::string suffix = documents->all.size() > 1 ? fmt::format(" {}", number) : "";
        const auto served = served_of(document, input.name() + (suffix.empty() ? "" : ": document" + suffix));
        if (!served) return std::unexpected(served.error());
        if (analysis.account.model.empty()) analysis.account.model = served->model;
        std::vector<AccountStage> stages = stages_of(*served, suffix);
        if (options.model && device) {
            if (auto done = predict_load(*served, options, *device, stages, analysis); !done)
                return std::unexpected(done.error());
        }
        analysis.account.notes.push_back(summary(*served, suffix));
        for (AccountStage& stage : stages) {
            StepTime& step = analysis.steps.emplace_back();
            step.stage = step.name = stage.name;
            step.wall = step.busy = stage.times.measured.value_or(Seconds{});
            step.batch = stage.batch;
            step.tokens = stage.tokens;
            step.context = stage.context;
            analysis.account.stages.push_back(std::move(stage));
        }
        analysis.events += served->completed;
    }
    if (!options.model)
        analysis.account.notes.push_back(
            fmt::format("--model NAME --device NAME say what to expect under this load{}",
                        analysis.account.model.empty() ? "" : " (the file names " + analysis.account.model + ")"));
    if (!documents->cut.empty()) {
        analysis.partial = true;
        analysis.account.notes.push_back(documents->cut + " and was left out");
    }
    return analysis;
}

}  // namespace

Format serving_format() {
    return {"serving benchmark (vLLM, SGLang)", "serving", recognises, read};
}

}  // namespace roofline::analyze

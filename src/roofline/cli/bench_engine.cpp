// bench --engine llama.cpp: what a real engine makes of the same model on the same machine.
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include "roofline/bench/llama_cpp.hpp"
#include "roofline/bench/task.hpp"
#include "roofline/bench/threads.hpp"
#include "roofline/cli/bench_run.hpp"
#include "roofline/cli/files.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/io/names.hpp"

namespace roofline::cli {
namespace {

bool begins_as_gguf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    char magic[4] = {};
    return file.read(magic, sizeof magic) && std::string_view(magic, sizeof magic) == "GGUF";
}

}  // namespace

Result<bench::Run> run_engine(const BenchOptions& options) {
    if (options.engine != "llama.cpp")
        return fail(fmt::format("--engine: found \"{}\", expected llama.cpp", options.engine));
    if (options.gguf.empty())
        return fail("--engine llama.cpp needs --gguf FILE (`roofline models synth MODEL -o FILE` writes one)");
    if (!options.model.empty())
        return fail(
            fmt::format("found \"{}\" beside --engine, which runs the model of --gguf", io::printable(options.model)));
    if (options.device != "cpu") return fail("--engine llama.cpp runs on the processors only (--device cpu)");
    if (!exists(options.gguf)) return fail(fmt::format("{}: no such file", options.gguf));
    if (!begins_as_gguf(options.gguf))
        return fail(fmt::format("--gguf: {} does not begin with GGUF, expected a model that llama.cpp reads",
                                io::printable(options.gguf)));
    const auto prompt = parse_whole("--prompt", options.prompt, 1.0, 1e6);
    if (!prompt) return std::unexpected(prompt.error());
    const auto generate = parse_whole("--generate", options.generate, 1.0, 1e6);
    if (!generate) return std::unexpected(generate.error());

    bench::Run run;
    run.threads = options.threads > 0 ? options.threads : bench::usable_processors();
    const std::string title = processor_name();
    const auto roofs = choose_roofs(options, false, title, run);
    if (!roofs) return std::unexpected(roofs.error());
    ask::ScenarioOptions asked;
    asked.model = options.gguf;
    asked.prompt = options.prompt;
    // Tokens are written after a prompt of eight: on average half of them are in the cache.
    asked.context = fmt::format("{:.0f}", 8.0 + *generate / 2.0);
    auto setup = setup_on(asked, *roofs);
    if (setup && bench::rounds_activations(setup->checkpoint_summary)) {
        asked.activation_dtype = "int8";
        setup = setup_on(asked, *roofs);
    }
    if (!setup) return std::unexpected(setup.error());
    const auto scenario = predict::realise(*setup);
    if (!scenario) return std::unexpected(scenario.error());
    const predict::Report report = predict::predict(*scenario);

    const auto read_before = memory_read_now(*roofs, run.threads);
    const auto answer = bench::run_llama_cpp({.gguf = options.gguf,
                                              .node_modules = options.node_modules,
                                              .prompt = static_cast<long>(*prompt),
                                              .generate = static_cast<long>(*generate),
                                              .threads = run.threads,
                                              .repetitions = options.quick ? 1 : 5});
    if (!answer) return std::unexpected(answer.error());
    if (read_before) {
        if (const auto read_after = memory_read_now(*roofs, run.threads)) run.memory_read = {*read_before, *read_after};
    }
    for (const predict::StageReport& predicted : report.stages) {
        const bool prefill = predicted.kind == predict::StageKind::prefill;
        if (options.stage != "both" && (options.stage == "prefill") != prefill) continue;
        bench::StageRun stage = bench::start_stage(*scenario, predicted, "");
        for (const bench::LlamaResult& result : answer->results) {
            if (result.prefill != prefill) continue;
            // A prefill is one step; of the tokens written, each is.
            const double steps = prefill ? 1.0 : result.tokens;
            bench::StepOutcome& step = stage.steps.emplace_back();
            step.backend = answer->engine;
            step.timing = {result.seconds / steps, result.low / steps, result.high / steps,
                           static_cast<std::int64_t>(result.repetitions * steps)};
            step.layers_distinct = static_cast<std::int64_t>(setup->architecture->layers.size());
        }
        stage.planned.clear();
        stage.outcomes.clear();
        run.stages.push_back(std::move(stage));
    }
    run.backends = {"llama.cpp"};
    run.descriptions = {answer->engine};
    run.account.model = scenario->model_name;
    run.account.title = fmt::format("{} in llama.cpp on {}", scenario->model_name, title);
    run.account.device = *roofs;
    bench::settle(run);
    return run;
}

}  // namespace roofline::cli

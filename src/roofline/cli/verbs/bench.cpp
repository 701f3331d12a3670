// roofline bench: the operators and whole steps of a real model, run on this machine and held against its roofs.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "roofline/bench/weight_format.hpp"
#include "roofline/cli/bench_run.hpp"
#include "roofline/cli/bench_text.hpp"
#include "roofline/cli/interrupted.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/plot_options.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/io/report_json.hpp"

namespace roofline::cli {
namespace {

struct Options {
    BenchOptions bench;
    OutputOptions output;
    PlotOptions plot;
};

/// An option that would do nothing is refused: an engine has kernels and types of its own and runs one sequence, and
/// nobody else has a GGUF to run.
Result<void> all_matter(const Verb& verb) {
    const bool engine = verb.given("--engine");
    const std::vector<std::string> idle =
        engine ? std::vector<std::string>{"--batch",   "--context", "--dtype", "--kv-cache-dtype", "--layers",
                                          "--backend", "--plugin",  "--only",  "--seconds"}
               : std::vector<std::string>{"--gguf", "--generate", "--node-modules"};
    for (const std::string& name : idle) {
        if (verb.given(name)) return fail(fmt::format("{} does nothing with{} --engine", name, engine ? "" : "out"));
    }
    return {};
}

Result<int> run(const Options& options, const std::string& command) {
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    if (auto good = options.output.check(); !good) return std::unexpected(good.error());
    if (options.bench.model.empty() && options.bench.engine.empty())
        return fail("no MODEL was named (`roofline models` lists the built-in ones)");
    const auto found = options.bench.engine.empty() ? run_bench(options.bench) : run_engine(options.bench);
    if (!found) return std::unexpected(found.error());
    if (interrupted()) {
        fmt::print(stderr, "roofline: stopped; nothing was written\n");
        return stopped;
    }
    const Shown shown{command, [&] { return Drawing{.accounts = {found->account}}; },
                      [&] { return bench_text(*found, true); }};
    const std::string text = options.output.format == "json"   ? io::dump(bench::run_json(*found, {command, now_iso()}))
                             : options.output.format == "html" ? shown.page()
                                                               : bench_text(*found, options.output.format == "md");
    if (auto written = options.output.write(text); !written) return std::unexpected(written.error());
    if (auto drawn = options.plot.write(shown); !drawn) return std::unexpected(drawn.error());
    return done;
}

}  // namespace

void bench_verb(Program& program) {
    auto options = std::make_shared<Options>();
    BenchOptions& bench = options->bench;
    const Verb verb = program.verb(
        "bench", "Run a model's operators and whole steps on this machine and hold them against its roofs");
    verb.add("model,--model", bench.model, "Built-in name, folder, config.json, .gguf or .safetensors").type("MODEL");
    verb.add("-d,--device", bench.device, "Where to run: cpu or cuda:0").shows_default().type("PLACE");
    verb.add("--roofs", bench.roofs,
             "Ceilings to hold results against: `this`, a device's name or file (default: what is known of PLACE)")
        .type("DEVICE");
    const char* work = "Workload";
    verb.add("-b,--batch", bench.batch, "Sequences: a list or a range, 1,8,32 or 1-32*2")
        .group(work)
        .shows_default()
        .type("LIST");
    verb.add("-p,--prompt", bench.prompt, "New tokens per sequence in prefill").group(work).shows_default().type("N");
    verb.add("-c,--context", bench.context, "Tokens in the KV cache when a token is decoded")
        .group(work)
        .shows_default()
        .type("N");
    verb.add("--stage", bench.stage, "Which steps to run")
        .group(work)
        .one_of({"decode", "prefill", "both"})
        .shows_default();
    verb.add("--dtype", bench.dtype,
             "Number types to compare: bf16, fp8, int8, int4, mxfp4, nvfp4, on processors fp32, " +
                 bench::names_of_gguf() + "; default: the model's")
        .group(work)
        .type("LIST");
    verb.add("--kv-cache-dtype", bench.kv_dtype, "For keys and values").group(work).type("TYPE");
    verb.add("--layers", bench.layers, "A model of only so many layers").group(work).type("N");
    const char* how = "How it is run";
    verb.add("--backend", bench.backends,
             "Which kernels to compare: own,openblas,onednn; on CUDA own,cublaslt,cudnn (default: all that are here)")
        .group(how)
        .type("LIST");
    verb.add("--plugin", bench.plugins,
             "A kernel of your own (include/roofline_kernel.h, or roofline_cuda_kernel.h on CUDA); may be repeated")
        .group(how)
        .repeated()
        .type("FILE.so");
    verb.add("--only", bench.only, "operators one by one, or whole steps (default: both)")
        .group(how)
        .one_of({"operators", "steps"});
    verb.add("--threads", bench.threads,
             "Processors to use (default: all this process may use); 1 is held against ceilings of one thread")
        .group(how)
        .between(1, 4096)
        .type("N");
    verb.add("--seconds", bench.seconds, "Measuring time for each operator and backend: 1s, 100ms (default 0.3s)")
        .group(how)
        .type("TIME");
    verb.add("--quick", bench.quick, "A sixth of the measuring time").group(how);
    const char* engine = "A real engine instead";
    verb.add("--engine", bench.engine, "llama.cpp: through llama-bench on PATH, or node-llama-cpp")
        .group(engine)
        .type("NAME");
    verb.add("--gguf", bench.gguf, "The model it runs").group(engine).type("FILE");
    verb.add("-n,--generate", bench.generate, "Tokens it writes").group(engine).shows_default().type("N");
    verb.add("--node-modules", bench.node_modules, "Folder that holds node-llama-cpp").group(engine).type("FOLDER");
    options->output.add_to(verb, {"table", "md", "json", "html"});
    options->plot.add_to(verb);
    verb.runs([&program, options, verb]() -> Result<int> {
        if (auto good = all_matter(verb); !good) return std::unexpected(good.error());
        return run(*options, program.command);
    });
}

}  // namespace roofline::cli

// roofline bench: the operators and whole steps of a real model, run on this machine and held against its roofs.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

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
Result<void> all_matter(const CLI::App& verb) {
    const bool engine = verb.count("--engine") > 0;
    const std::vector<std::string> idle =
        engine ? std::vector<std::string>{"--batch",   "--context", "--dtype", "--kv-cache-dtype", "--layers",
                                          "--backend", "--plugin",  "--only",  "--seconds"}
               : std::vector<std::string>{"--gguf", "--generate", "--node-modules"};
    for (const std::string& name : idle) {
        if (verb.count(name) > 0)
            return fail(fmt::format("{} does nothing with{} --engine", name, engine ? "" : "out"));
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
    CLI::App* verb = program.app.add_subcommand(
        "bench", "Run a model's operators and whole steps on this machine and hold them against its roofs");
    verb->add_option("model,--model", bench.model, "Built-in name, folder, config.json, .gguf or .safetensors")
        ->type_name("MODEL");
    verb->add_option("-d,--device", bench.device, "Where to run: cpu or cuda:0")
        ->capture_default_str()
        ->type_name("PLACE");
    verb->add_option(
            "--roofs", bench.roofs,
            "Ceilings to hold results against: `this`, a device's name or file (default: what is known of PLACE)")
        ->type_name("DEVICE");
    const char* work = "Workload";
    verb->add_option("-b,--batch", bench.batch, "Sequences: a list or a range, 1,8,32 or 1-32*2")
        ->group(work)
        ->capture_default_str()
        ->type_name("LIST");
    verb->add_option("-p,--prompt", bench.prompt, "New tokens per sequence in prefill")
        ->group(work)
        ->capture_default_str()
        ->type_name("N");
    verb->add_option("-c,--context", bench.context, "Tokens in the KV cache when a token is decoded")
        ->group(work)
        ->capture_default_str()
        ->type_name("N");
    verb->add_option("--stage", bench.stage, "Which steps to run")
        ->group(work)
        ->check(CLI::IsMember({"decode", "prefill", "both"}))
        ->capture_default_str();
    verb->add_option("--dtype", bench.dtype,
                     "Number types to compare: fp32,bf16,int8,int4 (fp8 on CUDA); default: the model's")
        ->group(work)
        ->type_name("LIST");
    verb->add_option("--kv-cache-dtype", bench.kv_dtype, "For keys and values")->group(work)->type_name("TYPE");
    verb->add_option("--layers", bench.layers, "A model of only so many layers")->group(work)->type_name("N");
    const char* how = "How it is run";
    verb->add_option(
            "--backend", bench.backends,
            "Which kernels to compare: own,openblas,onednn; on CUDA own,cublaslt,cudnn (default: all that are here)")
        ->group(how)
        ->type_name("LIST");
    verb->add_option(
            "--plugin", bench.plugins,
            "A kernel of your own (include/roofline_kernel.h, or roofline_cuda_kernel.h on CUDA); may be repeated")
        ->group(how)
        ->allow_extra_args(false)
        ->type_name("FILE.so");
    verb->add_option("--only", bench.only, "operators one by one, or whole steps (default: both)")
        ->group(how)
        ->check(CLI::IsMember({"operators", "steps"}));
    verb->add_option("--threads", bench.threads,
                     "Processors to use (default: all this process may use); 1 is held against ceilings of one thread")
        ->group(how)
        ->check(CLI::Range(1, 4096))
        ->type_name("N");
    verb->add_option("--seconds", bench.seconds,
                     "Measuring time for each operator and backend: 1s, 100ms (default 0.3s)")
        ->group(how)
        ->type_name("TIME");
    verb->add_flag("--quick", bench.quick, "A sixth of the measuring time")->group(how);
    const char* engine = "A real engine instead";
    verb->add_option("--engine", bench.engine, "llama.cpp: through llama-bench on PATH, or node-llama-cpp")
        ->group(engine)
        ->type_name("NAME");
    verb->add_option("--gguf", bench.gguf, "The model it runs")->group(engine)->type_name("FILE");
    verb->add_option("-n,--generate", bench.generate, "Tokens it writes")
        ->group(engine)
        ->capture_default_str()
        ->type_name("N");
    verb->add_option("--node-modules", bench.node_modules, "Folder that holds node-llama-cpp")
        ->group(engine)
        ->type_name("FOLDER");
    options->output.add_to(*verb, {"table", "md", "json", "html"});
    options->plot.add_to(*verb);
    verb->callback([&program, options, verb] {
        program.action = [&program, options, verb]() -> Result<int> {
            if (auto good = all_matter(*verb); !good) return std::unexpected(good.error());
            return run(*options, program.command);
        };
    });
}

}  // namespace roofline::cli

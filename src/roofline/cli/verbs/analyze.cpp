// roofline analyze: where does a real run lose time against what the machine can do?
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "roofline/analyze/format.hpp"
#include "roofline/analyze/json.hpp"
#include "roofline/analyze/ranks.hpp"
#include "roofline/analyze/text.hpp"
#include "roofline/ask/execution_options.hpp"
#include "roofline/ask/scenario_options.hpp"
#include "roofline/cli/colour_options.hpp"
#include "roofline/cli/files.hpp"
#include "roofline/cli/form.hpp"
#include "roofline/cli/load.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/plot_options.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/io/report_json.hpp"
#include "roofline/render/chart/spots.hpp"
#include "roofline/render/chart/timeline.hpp"

namespace roofline::cli {
namespace {

struct Options {
    std::vector<std::string> files;
    ask::ScenarioOptions scenario;
    ask::Form form;
    OutputOptions output;
    PlotOptions plot;
    PlotOptions timeline;
    std::string from;
    std::string by = "record";
    std::string stage;
    std::string top = "20";
};

/// One line on a terminal that says how far reading is.
class Progress {
  public:
    explicit Progress(std::string name) : name_(std::move(name)), shown_(::isatty(STDERR_FILENO) == 1) {}
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() {
        if (last_ >= 0) fmt::print(stderr, "\r\033[K");
    }
    void operator()(double done) {
        const int percent = static_cast<int>(done * 100.0);
        if (!shown_ || percent == last_) return;
        last_ = percent;
        fmt::print(stderr, "\r{}: {}%", name_, percent);
        std::fflush(stderr);
    }

  private:
    std::string name_;
    bool shown_;
    int last_ = -1;
};

Result<analyze::Options> questions(const Options& options, const std::string& command) {
    analyze::Options asked;
    asked.command = command;
    if (!options.scenario.model.empty() || !options.scenario.parameters.empty()) {
        // The device is asked for by the file: any will do to load the model.
        ask::ScenarioOptions scenario = options.scenario;
        if (scenario.device.empty()) scenario.device = "h100-sxm";
        auto setup = scenario.setup(this_machine());
        if (!setup) return std::unexpected(setup.error());
        asked.model = std::move(*setup);
    }
    if (!options.scenario.device.empty()) {
        auto device = load_device(options.scenario.device);
        if (!device) return std::unexpected(device.error());
        asked.device = std::move(*device);
    }
    return asked;
}

Result<analyze::Analysis> read_one(const std::string& file, analyze::Options asked, const std::string& from,
                                   bool alone) {
    auto input = analyze::open_input(file);
    if (!input) return std::unexpected(input.error());
    const auto progress = std::make_shared<Progress>(file);
    if (alone) asked.progress = [progress](double done) { (*progress)(done); };
    return analyze::analyze(*input, asked, from);
}

/// Ranks are files of one run: read at once, as many as there are cores.
std::vector<Result<analyze::Analysis>> read_all(const Options& options, const analyze::Options& asked) {
    std::vector<Result<analyze::Analysis>> results(options.files.size(), fail("not read"));
    if (options.files.size() == 1) {
        results[0] = read_one(options.files[0], asked, options.from, true);
        return results;
    }
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::jthread> threads;
    std::atomic<std::size_t> next = 0;
    for (std::size_t i = 0; i < std::min(cores, options.files.size()); ++i) {
        threads.emplace_back([&] {
            for (std::size_t file = next++; file < options.files.size(); file = next++)
                results[file] = read_one(options.files[file], asked, options.from, false);
        });
    }
    threads.clear();
    return results;
}

/// Of one step: of the stage that was asked for, else of decode, else of the first there is. Empty where no step has
/// times.
std::string timeline_of(const Options& options, const analyze::Analysis& analysis) {
    const std::string wanted = options.stage.empty() ? "decode" : options.stage;
    const analyze::StepEvents* shown = nullptr;
    for (const analyze::StepEvents& step : analysis.timelines) {
        if (shown == nullptr || (!shown->stage.starts_with(wanted) && step.stage.starts_with(wanted))) shown = &step;
    }
    if (shown == nullptr || shown->streams.empty()) return "";
    std::vector<render::chart::TimelineLane> lanes;
    // "device 0 stream 7": the device only where there are several.
    const std::size_t at = shown->streams.front().find("stream");
    const std::string device = at == std::string::npos ? "" : shown->streams.front().substr(0, at);
    const bool one = std::all_of(shown->streams.begin(), shown->streams.end(),
                                 [&](const std::string& stream) { return stream.starts_with(device); });
    for (const std::string& stream : shown->streams) lanes.push_back({one ? stream.substr(device.size()) : stream});
    std::vector<render::chart::TimelineEvent> events;
    for (const analyze::RanInStep& event : shown->events)
        events.push_back({event.name, event.group, event.begin_s, event.end_s, static_cast<int>(event.stream)});
    const std::string title = fmt::format("{}, {}", file_name(analysis.file), shown->step);
    return render::chart::timeline_chart(std::move(events), lanes, title);
}

std::vector<Account> accounts_of(const std::vector<analyze::Analysis>& analyses) {
    std::vector<Account> accounts;
    for (const analyze::Analysis& analysis : analyses) {
        accounts.push_back(analysis.account);
        accounts.back().title = file_name(analysis.account.title);  // a picture has no room for a path
    }
    return accounts;
}

std::string worded(const std::vector<analyze::Analysis>& analyses, const analyze::TextOptions& how) {
    std::string text;
    if (analyses.size() > 1) text = analyze::ranks_text(analyses, how) + "\n";
    for (std::size_t i = 0; i < analyses.size(); ++i)
        text += (i == 0 ? "" : "\n") + analyze::analysis_text(analyses[i], how);
    return text;
}

Result<int> run(const Options& options, const std::string& command) {
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    if (auto good = options.timeline.check("--timeline"); !good) return std::unexpected(good.error());
    const auto top = parse_whole("--top", options.top, 0.0, 1e6);
    if (!top) return std::unexpected(top.error());
    const auto asked = questions(options, command);
    if (!asked) return std::unexpected(asked.error());
    std::vector<analyze::Analysis> analyses;
    for (auto& result : read_all(options, *asked)) {
        if (!result) return std::unexpected(result.error());
        analyses.push_back(std::move(*result));
    }
    analyze::compare_ranks(analyses);
    const bool on_terminal = options.output.file.empty() && ::isatty(STDOUT_FILENO) == 1;
    const analyze::TextOptions how{options.by, options.stage, static_cast<std::size_t>(*top),
                                   options.output.format == "md",
                                   on_terminal ? static_cast<std::size_t>(terminal_columns()) : 0};
    if (!options.stage.empty()) {
        std::string known;
        bool any = false;
        for (const analyze::Analysis& analysis : analyses) {
            for (const AccountStage& stage : analysis.account.stages) {
                any = any || stage.name.starts_with(options.stage);
                known += (known.empty() ? "" : ", ") + stage.name;
            }
        }
        if (!any) return fail(fmt::format("--stage {}: no such stage; there are: {}", options.stage, known));
    }
    const std::string timeline =
        options.timeline.asked() || options.output.format == "html" || options.plot.file.ends_with(".html")
            ? timeline_of(options, analyses.front())
            : "";
    if (options.timeline.asked() && timeline.empty())
        return fail(fmt::format("--timeline: {} has no steps with times", analyses.front().file));
    const auto in_markdown = [&] {
        analyze::TextOptions whole = how;
        whole.markdown = true;
        whole.top = 0;  // a page can be searched
        return worded(analyses, whole);
    };
    const Shown shown{command,
                      [&] {
                          Drawing drawing{.accounts = accounts_of(analyses)};
                          drawing.title = render::chart::common_title(drawing.accounts);
                          if (!timeline.empty()) drawing.charts.push_back(timeline);
                          return drawing;
                      },
                      in_markdown};
    std::string text;
    if (options.output.format == "json") {
        if (analyses.size() == 1) {
            text = io::dump(analyze::analysis_json(analyses[0], options.by, {command, now_iso()}));
        } else {
            io::OrderedJson list = io::OrderedJson::array();
            for (const auto& analysis : analyses)
                list.push_back(analyze::analysis_json(analysis, options.by, {command, now_iso()}));
            text = io::dump(list);
        }
    } else if (options.output.format == "csv") {
        text = analyze::analysis_csv(analyses, how);
    } else {
        text = options.output.format == "html" ? shown.page() : worded(analyses, how);
    }
    if (auto written = options.output.write(text); !written) return std::unexpected(written.error());
    if (auto drawn = options.plot.write(shown); !drawn) return std::unexpected(drawn.error());
    const Shown step{command, [&] { return Drawing{.charts = {timeline}}; }, in_markdown};
    if (auto drawn = options.timeline.write(step); !drawn) return std::unexpected(drawn.error());
    return done;
}

/// What ran, where it is known: enough to predict the same steps. Sizes of steps come from the file where it has them.
void add_model_options(const Verb& verb, ask::Form& form, ask::ScenarioOptions& scenario) {
    const char* what = "What ran";
    verb.add("--model", scenario.model, "Hold the file against the prediction for this model")
        .group(what)
        .type("MODEL");
    verb.add("--device", scenario.device, "Instead of the device that the file names").group(what).type("DEVICE");
    verb.add("-b,--batch", scenario.batch, "Sequences, where the file does not tell").group(what).type("N");
    verb.add("-p,--prompt,--input-len", scenario.prompt, "Prompt tokens, where the file does not tell")
        .group(what)
        .type("N");
    verb.add("-c,--context", scenario.context, "Tokens in the cache, where the file does not tell")
        .group(what)
        .type("N");
    verb.add("-n,--generate,--output-len", scenario.generate, "Tokens written, where the file does not tell")
        .group(what)
        .type("N");
    verb.add("--dtype", scenario.dtype, "Number type of the model").group(what).type("TYPE");
    verb.add("--weight-dtype", scenario.weight_dtype, "Of the weights").group(what).type("TYPE");
    verb.add("--kv-cache-dtype", scenario.kv_dtype, "Of keys and values").group(what).type("TYPE");
    verb.add("--quantization", scenario.quantization, "As vLLM names it").group(what).type("TYPE");
    verb.add("--tensor-parallel-size,--tp", scenario.deployment.tensor, "Devices that share every layer")
        .group(what)
        .type("N");
    ask::add_execution_options(form, scenario.profile, scenario.calibration);
    add_to(verb, form);
}

}  // namespace

void analyze_verb(Program& program) {
    auto options = std::make_shared<Options>();
    const Verb verb = program.verb("analyze", "Where does a real run lose time against what the machine can do?");
    verb.add("files", options->files,
             "Traces and profiles, plain or compressed, or - for standard input; several: ranks of one run")
        .required()
        .type("FILE");
    add_model_options(verb, options->form, options->scenario);
    verb.add("--from", options->from, "Read it as this format instead of recognising it");
    verb.add("--by", options->by, "What a row is").one_of({"record", "operator", "kernel", "group"}).shows_default();
    verb.add("--stage", options->stage, "Only stages whose name begins so: prefill, decode");
    verb.add("--top", options->top, "Rows of a table; 0: all").shows_default();
    options->output.add_to(verb, {"table", "md", "csv", "json", "html"});
    options->plot.add_to(verb);
    verb.add("--timeline", options->timeline.file, "Draw one step (of --stage, else of decode) kernel by kernel")
        .type("FILE.svg|png|pdf|html");
    verb.runs([&program, options] { return run(*options, program.command); });
}

}  // namespace roofline::cli

// The lines llama.cpp prints about its own speed (llama-cli, llama-server, and others), anywhere in a log:
//
//   llama_perf_context_print: prompt eval time =     100.00 ms /   512 tokens (    0.20 ms per token,  5120.00 tokens
//   per second) llama_perf_context_print:        eval time =    1270.00 ms /   127 runs   (   10.00 ms per token,
//   100.00 tokens per second)
//
// (llama_print_timings: in older versions; without a name, "tokens" instead of "runs", in the server's log.) What the
// log says about the model and the device is used where it is there:
//
//   print_info: model type       = 8B             print_info: file size   = 4.58 GiB (4.89 BPW)
//   print_info: model params     = 8.03 B         Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9
#include <algorithm>

#include <fmt/format.h>

#include "roofline/analyze/csv_rows.hpp"
#include "roofline/analyze/format.hpp"
#include "roofline/analyze/runs.hpp"

namespace roofline::analyze {

Format llama_perf_format();

namespace {

constexpr std::string_view prompt_mark = "prompt eval time =";
constexpr std::string_view eval_mark = "eval time =";

bool recognises(std::string_view first) {
    const std::size_t at = first.find(eval_mark);
    if (at == std::string_view::npos) return false;
    const std::string_view line = first.substr(at, first.substr(at).find('\n'));
    return line.find(" ms /") != std::string_view::npos;
}

/// The word behind `mark`, skipping spaces; empty where it is not there.
std::string_view word_behind(std::string_view line, std::string_view mark) {
    std::size_t at = line.find(mark);
    if (at == std::string_view::npos) return {};
    at = line.find_first_not_of(" =", at + mark.size());
    if (at == std::string_view::npos) return {};
    return line.substr(at, line.substr(at).find(' '));
}

double with_unit(std::string_view line, std::string_view mark) {
    const std::string_view word = word_behind(line, mark);
    const auto value = word.empty() ? std::nullopt : number_of(word);
    if (!value || *value <= 0.0) return 0.0;
    const auto after = static_cast<std::size_t>(word.data() - line.data()) + word.size();
    const std::string_view unit = line.substr(std::min(line.size(), after + 1));
    return *value * (unit.starts_with("MiB")   ? 1048576.0
                     : unit.starts_with("GiB") ? 1073741824.0
                     : unit.starts_with("B")   ? 1e9
                     : unit.starts_with("M")   ? 1e6
                                               : 1.0);
}

struct Timed {
    double milliseconds = 0.0;
    double tokens = 0.0;
};

std::optional<Timed> timed(std::string_view line, std::string_view mark) {
    const auto milliseconds = number_of(word_behind(line, mark));
    const auto tokens = number_of(word_behind(line, " ms /"));
    if (!milliseconds || !tokens || *milliseconds <= 0.0 || *tokens <= 0.0 || *tokens > 1e9) return std::nullopt;
    return Timed{*milliseconds, *tokens};
}

Result<Analysis> read(Input& input, const Options& options) {
    CsvRows lines(input);
    RunsOf runs;
    runs.title = input.name();
    runs.profile = "llama.cpp";
    double cached = 0.0;
    std::size_t prompts = 0;
    std::size_t decodes = 0;
    while (true) {
        const auto next = lines.next_line();
        if (!next) return std::unexpected(next.error());
        if (!*next) break;
        const std::string_view line = **next;
        if (const std::size_t at = line.find("Device 0: "); at != std::string_view::npos && runs.device.empty())
            runs.device = line.substr(at + 10, line.substr(at + 10).find(','));
        if (line.find("model type") != std::string_view::npos && runs.model.empty())
            runs.model = word_behind(line, "model type");
        if (line.find("file size") != std::string_view::npos || line.find("model size") != std::string_view::npos) {
            const double size = std::max(with_unit(line, "file size"), with_unit(line, "model size"));
            if (size > 0.0) runs.weight_bytes = size;
        }
        if (const double parameters = with_unit(line, "model params"); parameters > 0.0) runs.parameters = parameters;
        if (line.find(prompt_mark) != std::string_view::npos) {
            const auto found = timed(line, prompt_mark);
            if (!found) continue;
            Run run;
            run.kind = Run::Kind::prefill;
            run.name = prompts++ == 0 ? "prefill" : fmt::format("prefill {}", prompts);
            run.prompt = found->tokens;
            run.chunk = 512.0;  // llama.cpp's own default of a step
            run.measured = Seconds(found->milliseconds * 1e-3);
            runs.runs.push_back(std::move(run));
            cached = found->tokens;
        } else if (line.find(eval_mark) != std::string_view::npos) {
            const auto found = timed(line, eval_mark);
            if (!found) continue;
            Run run;
            run.kind = Run::Kind::decode;
            run.name = decodes++ == 0 ? "decode" : fmt::format("decode {}", decodes);
            run.context = cached + (found->tokens + 1.0) / 2.0;
            run.repetitions = found->tokens;
            run.measured = Seconds(found->milliseconds * 1e-3 / found->tokens);
            runs.runs.push_back(std::move(run));
        }
    }
    // The first of several gets its number too: "decode" beside "decode 2" would be taken for a mean of both.
    for (Run& run : runs.runs) {
        if (run.name == "prefill" && prompts > 1) run.name = "prefill 1";
        if (run.name == "decode" && decodes > 1) run.name = "decode 1";
    }
    if (runs.runs.empty())
        return fail(fmt::format("{}: found no line with a time (\"eval time = 1270.00 ms / 127 runs\")", input.name()));
    return analysis_of(runs, options);
}

}  // namespace

Format llama_perf_format() {
    return {"llama.cpp timings", "llama-perf", recognises, read};
}

}  // namespace roofline::analyze

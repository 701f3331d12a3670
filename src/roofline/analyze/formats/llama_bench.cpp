// llama-bench of llama.cpp, as it prints with -o json, jsonl, csv or md (its default).
//
//   json, jsonl, csv: one object or row a test, with the same names
//     "cpu_info", "gpu_info", "backends", "model_filename", "model_type" ("llama 8B Q4_K - Medium"), "model_size"
//     (bytes), "model_n_params", "n_batch", "n_ubatch", "n_threads", "n_gpu_layers", "n_prompt", "n_gen", "n_depth"?,
//     "avg_ns", "stddev_ns", "avg_ts" (tokens/s), "samples_ns": [ ... ]
//   md:
//     | model | size | params | backend | ngl | test | t/s |
//     | llama 8B Q4_K - Medium | 4.58 GiB | 8.03 B | CUDA | 99 | pp512 @ d1024 | 7263.61 ± 90.94 |
//
// n_prompt tokens at once (pp), n_gen one after another (tg), or both (pp+tg), behind n_depth tokens in the cache.
#include <algorithm>

#include <fmt/format.h>

#include "roofline/analyze/csv_rows.hpp"
#include "roofline/analyze/format.hpp"
#include "roofline/analyze/json_text.hpp"
#include "roofline/analyze/runs.hpp"

namespace roofline::analyze {

Format llama_bench_format();

namespace {

struct Test {
    double prompt = 0.0, generate = 0.0, depth = 0.0, ubatch = 0.0;
    double seconds = 0.0;  // of the whole test
    double samples = 1.0;
};

bool is_markdown(std::string_view first) {
    const std::size_t head = first.find("| model");
    if (head == std::string_view::npos) return false;
    const std::string_view line = first.substr(head, first.substr(head).find('\n'));
    return line.find("t/s |") != std::string_view::npos && line.find("test |") != std::string_view::npos;
}

bool recognises(std::string_view first) {
    if (is_markdown(first)) return true;
    return first.find("build_commit") != std::string_view::npos && first.find("avg_ts") != std::string_view::npos &&
           first.find("n_prompt") != std::string_view::npos;
}

/// A size that cannot be one gives nothing, and the file's other figures stand.
double sensible(std::optional<double> value) {
    return value && *value >= 0.0 && *value < 1e18 ? *value : 0.0;
}

void add(RunsOf& runs, const Test& test) {
    if (test.seconds <= 0.0 || test.prompt + test.generate <= 0.0) return;
    Run run;
    run.repetitions = test.samples;
    run.chunk = test.ubatch;
    const std::string deep = test.depth > 0.0 ? fmt::format(" at {:g}", test.depth) : "";
    if (test.generate <= 0.0) {
        run.kind = Run::Kind::prefill;
        run.name = fmt::format("prefill pp{:g}{}", test.prompt, deep);
        run.prompt = test.prompt;
        run.context = test.depth;
        run.measured = Seconds(test.seconds);
    } else if (test.prompt <= 0.0) {
        run.kind = Run::Kind::decode;
        run.name = fmt::format("decode tg{:g}{}", test.generate, deep);
        run.context = std::max(1.0, test.depth + (test.generate + 1.0) / 2.0);  // it grows by one a token
        run.measured = Seconds(test.seconds / test.generate);
        run.repetitions *= test.generate;
    } else {
        run.kind = Run::Kind::request;
        run.name = fmt::format("request pp{:g}+tg{:g}{}", test.prompt, test.generate, deep);
        run.prompt = test.prompt;
        run.context = test.depth;
        run.generate = test.generate;
        run.measured = Seconds(test.seconds);
    }
    // The same test again (other threads, another backend) keeps its own stage.
    int again = 1;
    const std::string name = run.name;
    while (std::ranges::any_of(runs.runs, [&](const Run& known) { return known.name == run.name; }))
        run.name = fmt::format("{}, run {}", name, ++again);
    runs.runs.push_back(std::move(run));
}

/// What tells the machine: the GPU, unless no layer was on it.
std::string device_named(const std::string& gpu, const std::string& cpu, double layers) {
    const std::string& name = !gpu.empty() && layers != 0.0 ? gpu : cpu;
    std::string first = name.substr(0, name.find(','));
    while (first.ends_with(' ')) first.pop_back();
    return first;
}

void identify(RunsOf& runs, const std::string& model, double size, double parameters, const std::string& device) {
    if (runs.model.empty()) {
        runs.model = model;
        runs.weight_bytes = size;
        runs.parameters = parameters;
        runs.device = device;
    } else if (runs.model != model || runs.weight_bytes != size) {
        if (runs.weight_bytes > 0.0)
            runs.notes.push_back(fmt::format(
                "the file holds several models ({}, {}): sizes and limits of weights are left out", runs.model, model));
        runs.weight_bytes = runs.parameters = 0.0;
    }
}

Result<RunsOf> read_json(Input& input) {
    const auto documents = read_documents(input);
    if (!documents) return std::unexpected(documents.error());
    RunsOf runs;
    for (const io::Json& entry : documents->all) {
        if (!entry.is_object())
            return fail(fmt::format("{}: found {}, expected a test as llama-bench writes it", input.name(),
                                    io::describe(entry)));
        const double layers = number_at(entry, "n_gpu_layers").value_or(99.0);
        identify(runs, text_at(entry, "model_type"), sensible(number_at(entry, "model_size")),
                 sensible(number_at(entry, "model_n_params")),
                 device_named(text_at(entry, "gpu_info"), text_at(entry, "cpu_info"), layers));
        Test test;
        test.prompt = sensible(number_at(entry, "n_prompt"));
        test.generate = sensible(number_at(entry, "n_gen"));
        test.depth = sensible(number_at(entry, "n_depth"));
        test.ubatch = sensible(number_at(entry, "n_ubatch"));
        test.seconds = sensible(number_at(entry, "avg_ns")) * 1e-9;
        if (const auto samples = entry.find("samples_ns"); samples != entry.end() && samples->is_array())
            test.samples = std::max(1.0, static_cast<double>(samples->size()));
        add(runs, test);
    }
    if (!documents->cut.empty()) runs.notes.push_back(documents->cut + " and was left out");
    return runs;
}

Result<RunsOf> read_csv(Input& input) {
    CsvRows rows(input);
    const auto header = rows.next();
    if (!header) return std::unexpected(header.error());
    if (!*header) return fail(fmt::format("{}: found no header", input.name()));
    const Columns columns(**header);
    RunsOf runs;
    while (true) {
        const auto row = rows.next();
        if (!row) return std::unexpected(row.error());
        if (!*row) break;
        if ((*row)->size() != columns.names().size()) {
            runs.notes.push_back(fmt::format("line {} has {} cells instead of {} and was left out", rows.line(),
                                             (*row)->size(), columns.names().size()));
            continue;
        }
        const auto number = [&](const char* column) { return sensible(columns.number(**row, column)); };
        identify(
            runs, std::string(columns.text(**row, "model_type")), number("model_size"), number("model_n_params"),
            device_named(std::string(columns.text(**row, "gpu_info")), std::string(columns.text(**row, "cpu_info")),
                         columns.number(**row, "n_gpu_layers").value_or(99.0)));
        add(runs, {.prompt = number("n_prompt"),
                   .generate = number("n_gen"),
                   .depth = number("n_depth"),
                   .ubatch = number("n_ubatch"),
                   .seconds = number("avg_ns") * 1e-9});
    }
    return runs;
}

/// "4.58 GiB", "8.03 B" (a thousand millions), "885.97 MiB", "1.54 B".
double scaled(std::string_view cell) {
    const std::size_t space = cell.find(' ');
    const auto value = number_of(cell.substr(0, space));
    if (!value || space == std::string_view::npos) return sensible(value);
    const std::string_view unit = cell.substr(space + 1);
    const double factor = unit.starts_with("KiB")   ? 1024.0
                          : unit.starts_with("MiB") ? 1048576.0
                          : unit.starts_with("GiB") ? 1073741824.0
                          : unit.starts_with("TiB") ? 1099511627776.0
                          : unit.starts_with("K")   ? 1e3
                          : unit.starts_with("M")   ? 1e6
                          : unit.starts_with("B")   ? 1e9
                          : unit.starts_with("T")   ? 1e12
                                                    : 1.0;
    return sensible(*value * factor);
}

/// "pp512", "tg128", "pp512+tg128", "tg32 @ d4096".
Test parse_test(std::string_view text) {
    Test test;
    for (std::size_t at = 0; at + 1 < text.size(); ++at) {
        const std::string_view rest = text.substr(at);
        double* target = rest.starts_with("pp") ? &test.prompt : rest.starts_with("tg") ? &test.generate : nullptr;
        std::size_t skip = 2;
        if (target == nullptr && rest.starts_with("d") && at > 0 && text[at - 1] == ' ') {
            target = &test.depth;
            skip = 1;
        }
        if (target == nullptr) continue;
        const std::size_t end = rest.find_first_not_of("0123456789", skip);
        *target = sensible(number_of(rest.substr(skip, end == std::string_view::npos ? end : end - skip)));
    }
    return test;
}

std::vector<std::string> cells_of(std::string_view line) {
    std::vector<std::string> cells;
    while (!line.empty()) {
        const std::size_t bar = line.find('|');
        std::string_view cell = line.substr(0, bar);
        while (cell.starts_with(' ')) cell.remove_prefix(1);
        while (cell.ends_with(' ')) cell.remove_suffix(1);
        cells.emplace_back(cell);
        line.remove_prefix(bar == std::string_view::npos ? line.size() : bar + 1);
    }
    return cells;
}

Result<RunsOf> read_markdown(Input& input) {
    CsvRows rows(input);
    std::optional<Columns> columns;
    RunsOf runs;
    while (true) {
        const auto line = rows.next_line();
        if (!line) return std::unexpected(line.error());
        if (!*line) break;
        const std::string_view text = **line;
        // The log above the table names the device: "  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9".
        if (const std::size_t at = text.find("Device 0: "); at != std::string_view::npos && runs.device.empty())
            runs.device = text.substr(at + 10, text.substr(at + 10).find(','));
        if (!text.starts_with('|')) continue;
        std::vector<std::string> cells = cells_of(text);
        if (text.find("t/s") != std::string_view::npos && text.find("test") != std::string_view::npos) {
            columns = Columns(std::move(cells));
            continue;
        }
        if (!columns || text.find("---") != std::string_view::npos) continue;
        const std::string device = runs.device;
        identify(runs, std::string(columns->text(cells, "model")), scaled(columns->text(cells, "size")),
                 scaled(columns->text(cells, "params")), device);
        Test test = parse_test(columns->text(cells, "test"));
        const std::string_view rate = columns->text(cells, "t/s");
        const double per_second = sensible(number_of(rate.substr(0, rate.find(' '))));
        if (per_second > 0.0) test.seconds = (test.prompt + test.generate) / per_second;
        test.ubatch = sensible(columns->number(cells, "n_ubatch"));
        if (test.ubatch == 0.0) test.ubatch = 512.0;  // what it is unless the table says otherwise
        add(runs, test);
    }
    return runs;
}

Result<Analysis> read(Input& input, const Options& options) {
    const auto first = input.peek(recognition_bytes);
    if (!first) return std::unexpected(first.error());
    const bool markdown = is_markdown(*first);
    const std::size_t begin = first->find_first_not_of(" \t\r\n");
    const bool json = begin != std::string_view::npos && ((*first)[begin] == '[' || (*first)[begin] == '{');
    auto runs = markdown ? read_markdown(input) : json ? read_json(input) : read_csv(input);
    if (!runs) return std::unexpected(runs.error());
    if (runs->runs.empty()) return fail(fmt::format("{}: holds no test with a time", input.name()));
    runs->title = input.name();
    runs->profile = "llama.cpp";
    auto analysis = analysis_of(*runs, options);
    if (analysis && !input.cut_short().empty()) {
        analysis->partial = true;
        analysis->account.notes.push_back("the file is cut off: " + input.cut_short());
    }
    return analysis;
}

}  // namespace

Format llama_bench_format() {
    return {"llama-bench", "llama-bench", recognises, read};
}

}  // namespace roofline::analyze

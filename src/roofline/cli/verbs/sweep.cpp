// roofline sweep: the same question for every combination of many values.
#include "roofline/ask/sweep/sweep.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <unistd.h>

#include <fmt/format.h>

#include "roofline/ask/scenario_options.hpp"
#include "roofline/ask/sweep/grid.hpp"
#include "roofline/cli/form.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/plot_options.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/cli/sweep/curves.hpp"
#include "roofline/cli/sweep/ordered_chunks.hpp"
#include "roofline/cli/sweep/ranks.hpp"
#include "roofline/cli/sweep/sinks.hpp"
#include "roofline/io/tensors.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::cli {
namespace {

constexpr std::size_t most_table_rows = 1000;
constexpr std::size_t most_page_rows = 5000;

struct Options {
    ask::ScenarioOptions scenario;
    ask::TrafficOptions traffic;
    ask::Form form;
    std::string format;
    std::string file;
    std::string metrics;
    std::string threads;
    std::string shard = "1/1";
    bool overwrite = false;
    PlotOptions plot;
};

std::atomic<bool> interrupted{false};

/// The first time rows that were begun are finished and written; the second time the usual thing happens.
void stop_on_signals() {
    struct sigaction action{};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
}

Result<std::string> choose_format(const Options& options) {
    const auto ends = [&](const char* ending) { return options.file.ends_with(ending); };
    const bool database = ends(".sqlite") || ends(".sqlite3") || ends(".db");
    if (options.format.empty()) {
        if (ends(".csv")) return "csv";
        if (ends(".jsonl")) return "jsonl";
        if (ends(".md")) return "md";
        if (ends(".html")) return "html";
        if (database) return "sqlite";
        return options.file.empty() ? "table" : "csv";
    }
    if (options.format == "sqlite" && options.file.empty())
        return fail("--format sqlite: a database needs a file, expected -o FILE");
    return options.format;
}

/// Contiguous parts, as even as they go, so that one after another they are the whole.
Result<RowRange> shard_of(const std::string& text, std::size_t rows) {
    const std::size_t slash = text.find('/');
    const auto problem =
        fail(fmt::format("--shard: found \"{}\", expected i/n with i from 1 to n, such as 2/4", io::printable(text)));
    if (slash == std::string::npos) return problem;
    const auto shards = parse_whole("--shard", text.substr(slash + 1), 1.0, 1e6);
    if (!shards) return problem;
    const auto number = parse_whole("--shard", text.substr(0, slash), 1.0, *shards);
    if (!number) return problem;
    const auto i = static_cast<std::size_t>(*number);
    const auto n = static_cast<std::size_t>(*shards);
    return RowRange{rows * (i - 1) / n, rows * i / n};
}

/// On a terminal only: how far, and how long still.
class Progress {
  public:
    Progress(std::size_t kept, std::size_t total) : kept_(kept), total_(total) {}

    void show(std::size_t done) {
        const auto now = std::chrono::steady_clock::now();
        if (!terminal_ || now - shown_ < std::chrono::milliseconds(200)) return;
        shown_ = now;
        const double seconds = std::chrono::duration<double>(now - begun_).count();
        const double fraction = static_cast<double>(kept_ + done) / static_cast<double>(total_);
        std::string left;
        if (done > 0 && seconds > 1.0) {
            const double rest = seconds * static_cast<double>(total_ - kept_ - done) / static_cast<double>(done);
            left = fmt::format(", {} left", duration(rest));
        }
        fmt::print(stderr, "\r\x1b[K{} of {} rows, {:.0f}%{}", render::grouped(static_cast<double>(kept_ + done)),
                   render::grouped(static_cast<double>(total_)), 100.0 * fraction, left);
        drawn_ = true;
    }
    void end(std::size_t done, const std::string& file) {
        if (!terminal_) return;
        if (drawn_) fmt::print(stderr, "\r\x1b[K");
        if (file.empty()) return;
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
        const std::string before =
            kept_ > 0 ? fmt::format(" ({} were there)", render::grouped(static_cast<double>(kept_))) : "";
        fmt::print(stderr, "{}: {} rows{} in {}\n", file, render::grouped(static_cast<double>(kept_ + done)), before,
                   duration(seconds));
    }

  private:
    static std::string duration(double seconds) {
        if (seconds < 60.0) return fmt::format("{:.1f} s", seconds);
        const auto whole = static_cast<long long>(seconds);
        if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
        return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
    }

    std::size_t kept_;
    std::size_t total_;
    bool terminal_ = ::isatty(STDERR_FILENO) == 1;
    bool drawn_ = false;
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point shown_{};
};

/// What the ranks must agree on before they begin.
struct Start {
    bool go = false;
    std::size_t first = 0;
};

/// Rows that cannot be, as the threads that write them find them.
class Impossible {
  public:
    void add(std::size_t row, const std::string& problem) {
        const std::lock_guard lock(mutex_);
        ++rows_;
        if (row >= first_) return;
        first_ = row;
        problem_ = problem;
    }
    std::size_t rows() const { return rows_; }
    const std::string& first_problem() const { return problem_; }

  private:
    std::mutex mutex_;
    std::size_t rows_ = 0;
    std::size_t first_ = static_cast<std::size_t>(-1);
    std::string problem_;
};

struct Sweep {
    const Options& options;
    ask::Grid grid = {};
    ask::RowLayout layout = {};
    RowRange rows = {};
    std::string format = {};
    std::size_t threads = 1;
    std::string command = {};
    Curves curves = {};                        // what is drawn; none where it was not asked for or cannot be
    std::shared_ptr<std::string> report = {};  // the table as Markdown, once it is there
    std::shared_ptr<Impossible> impossible = std::make_shared<Impossible>();

    bool is_table() const { return format == "table" || format == "md" || format == "html"; }
    Shown shown() const {
        return {command,
                [this] {
                    Drawing drawing{.title = curves.title.empty() ? "Sweep" : curves.title};
                    if (!curves.curves.empty())
                        drawing.charts.push_back(
                            render::chart::throughput_latency_chart(curves.curves, curves.title, curves.along));
                    return drawing;
                },
                [this] { return *report; }};
    }

    /// Enough rows to be worth the handing over, few enough that a stop does not take long.
    std::size_t chunk_rows() const {
        const bool slow =
            std::any_of(layout.metrics.begin(), layout.metrics.end(),
                        [](const ask::MetricColumn& metric) { return metric.source == ask::Source::request; });
        const std::size_t most = grid.under_load() ? 4 : slow ? 128 : 4096;
        return std::min<std::size_t>(most, 16 * grid.rows_per_setup());
    }
};

Result<std::unique_ptr<Sweep>> read(const Options& options) {
    auto sweep = std::make_unique<Sweep>(Sweep{.options = options, .report = std::make_shared<std::string>()});
    auto grid = ask::Grid::read(options.form, this_machine());
    if (!grid) return std::unexpected(grid.error());
    sweep->grid = std::move(*grid);
    const auto format = choose_format(options);
    if (!format) return std::unexpected(format.error());
    sweep->format = *format;
    const auto rows = shard_of(options.shard, sweep->grid.rows());
    if (!rows) return std::unexpected(rows.error());
    sweep->rows = *rows;
    if (sweep->is_table() && sweep->rows.size() > (*format == "html" ? most_page_rows : most_table_rows)) {
        return fail(fmt::format("{} rows are too many for a {}: --format csv or -o FILE.csv takes any number",
                                render::grouped(static_cast<double>(sweep->rows.size())),
                                *format == "html" ? "page" : "table"));
    }
    auto metrics = options.metrics.empty() ? ask::usual_metrics(options.scenario, sweep->grid)
                                           : ask::choose_metrics(options.metrics);
    if (!metrics) return std::unexpected(metrics.error());
    sweep->layout = {&sweep->grid, std::move(*metrics),
                     *format == "csv"     ? ask::Spelling::csv
                     : *format == "jsonl" ? ask::Spelling::jsonl
                                          : ask::Spelling::cells,
                     options.scenario.stage == "mixed"};
    sweep->threads = std::max<std::size_t>(1, usable_cores() / ranks_on_this_machine());
    if (!options.threads.empty()) {
        const auto threads = parse_whole("--threads", options.threads, 1.0, 1024.0);
        if (!threads) return std::unexpected(threads.error());
        sweep->threads = static_cast<std::size_t>(*threads);
    }
    if (auto done = sweep->grid.check_values(); !done) return std::unexpected(done.error());
    return sweep;
}

Result<std::unique_ptr<Sink>> open_sink(const Sweep& sweep) {
    const Options& options = sweep.options;
    if (sweep.format == "sqlite") return sqlite_sink(options.file, sweep.layout, sweep.rows, options.overwrite);
    if (sweep.is_table()) {
        return table_sink(options.file, sweep.layout, [&sweep](const std::string& same, const render::Table& table) {
            const std::string first = same.empty() ? "" : same + "\n\n";
            *sweep.report = first + render::as_markdown(table);
            return sweep.format == "html" ? sweep.shown().page()
                   : sweep.format == "md" ? *sweep.report
                                          : first + render::as_text(table);
        });
    }
    if (options.file.empty()) return text_sink(sweep.layout);
    return file_sink(options.file, sweep.layout, sweep.rows, options.overwrite);
}

std::function<ChunkMaker()> makers(const Sweep& sweep, RowRange rows) {
    return [&sweep, rows]() -> ChunkMaker {
        auto writer = std::make_shared<ask::RowWriter>(sweep.layout);
        const std::size_t size = sweep.chunk_rows();
        return [writer, rows, size, impossible = sweep.impossible](std::size_t chunk) {
            std::string text;
            const std::size_t first = rows.first + chunk * size;
            const std::size_t last = std::min(rows.last, first + size);
            // Rows that were begun are finished; the file then ends with a whole one.
            for (std::size_t row = first; row < last && !interrupted; ++row) {
                writer->append(row, text);
                if (!writer->problem().empty()) impossible->add(row, writer->problem());
            }
            return text;
        };
    };
}

/// Chunks go round the ranks; each sends its own, in order, and the first rank puts them in line.
void send_chunks(const Sweep& sweep, const Ranks& ranks, RowRange rows, std::size_t chunks) {
    OrderedChunks own(ranks.rank(), ranks.size(), chunks, sweep.threads, makers(sweep, rows));
    bool waiting = false;
    while (true) {
        const auto text = own.next(waiting);
        if (waiting) continue;
        if (!text) return;
        ranks.send(*text);
    }
}

struct Written {
    std::size_t rows = 0;
    bool stopped = false;
};

Result<Written> write_chunks(const Sweep& sweep, const Ranks& ranks, RowRange rows, std::size_t chunks, Sink& sink,
                             Progress& progress) {
    OrderedChunks own(0, ranks.size(), chunks, sweep.threads, makers(sweep, rows));
    Written written;
    for (std::size_t chunk = 0; chunk < chunks;) {
        if (interrupted) own.stop();
        std::string text;
        if (const std::size_t rank = chunk % ranks.size(); rank > 0) {
            if (interrupted) break;
            text = ranks.receive(rank);
        } else {
            bool waiting = false;
            auto next = own.next(waiting);
            progress.show(written.rows);
            if (waiting) continue;
            if (!next) break;  // stopped
            text = std::move(*next);
        }
        const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
        if (lines > 0) {
            if (auto done = sink.write(text); !done) return std::unexpected(done.error());
        }
        const std::size_t whole = std::min(sweep.chunk_rows(), rows.size() - written.rows);
        written.rows += lines;
        if (lines < whole) break;  // stopped within it
        ++chunk;
        progress.show(written.rows);
    }
    written.stopped = written.rows < rows.size();
    return written;
}

Result<int> run_first(const Sweep& sweep, const Ranks& ranks) {
    auto sink = open_sink(sweep);
    Start start{sink.has_value(), sink ? sweep.rows.first + (*sink)->kept() : 0};
    ranks.from_first(start);
    if (!sink) {
        ranks.finish();
        return std::unexpected(sink.error());
    }
    const RowRange rows{start.first, sweep.rows.last};
    const std::size_t chunks = (rows.size() + sweep.chunk_rows() - 1) / sweep.chunk_rows();
    const std::size_t kept = (*sink)->kept();
    Progress progress(kept, sweep.rows.size());
    auto written = write_chunks(sweep, ranks, rows, chunks, **sink, progress);
    if (written) {
        if (auto done = (*sink)->close(); !done) written = std::unexpected(done.error());
    }
    const std::string& file = sweep.options.file;
    if (!written) {
        fmt::print(stderr, "roofline: {}\n", written.error().text);
        ranks.abandon(bad_input);
        return bad_input;
    }
    if (written->stopped) {
        progress.end(written->rows, "");
        fmt::print(stderr, "roofline: stopped after {} of {} rows{}\n",
                   render::grouped(static_cast<double>(kept + written->rows)),
                   render::grouped(static_cast<double>(sweep.rows.size())),
                   file.empty() || sweep.is_table() ? "" : "; the same command goes on from there");
        ranks.abandon(stopped);
        return stopped;
    }
    ranks.finish();
    progress.end(written->rows, file);
    // Every row says itself why it has no numbers; where all of them do, that is the answer.
    const Impossible& impossible = *sweep.impossible;
    if (ranks.size() == 1 && kept == 0 && written->rows > 0 && impossible.rows() == written->rows) {
        fmt::print(stderr, "roofline: none of the {} rows can be; the first: {}\n",
                   render::grouped(static_cast<double>(written->rows)), impossible.first_problem());
        return no_answer;
    }
    return done;
}

Result<int> run(const Options& options, const std::string& command) {
    const bool first = rank_of_environment() == 0;
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    auto sweep = read(options);
    // Every rank sees the same mistake; one of them says so.
    if (!sweep && !first) return bad_input;
    if (!sweep) return std::unexpected(sweep.error());
    (*sweep)->command = command;
    if (first && (options.plot.asked() || (*sweep)->format == "html")) {
        // Before any row is written: what cannot be drawn is bad input. A page can do without.
        auto drawn = curves_of((*sweep)->grid, (*sweep)->rows.first, (*sweep)->rows.last);
        if (!drawn && options.plot.asked()) return std::unexpected(drawn.error());
        if (drawn) (*sweep)->curves = std::move(*drawn);
    }
    stop_on_signals();
    const auto ranks = Ranks::join();
    if (!ranks && !first) return not_here;
    if (!ranks) return std::unexpected(ranks.error());
    if (ranks->rank() == 0) {
        const auto code = run_first(**sweep, *ranks);
        if (!code || *code != done) return code;
        if (auto drawn = options.plot.write((*sweep)->shown()); !drawn) return std::unexpected(drawn.error());
        return code;
    }

    Start start;
    ranks->from_first(start);
    if (start.go) {
        const RowRange rows{start.first, (*sweep)->rows.last};
        send_chunks(**sweep, *ranks, rows, (rows.size() + (*sweep)->chunk_rows() - 1) / (*sweep)->chunk_rows());
    }
    ranks->finish();
    return start.go ? done : bad_input;
}

}  // namespace

void sweep_verb(Program& program) {
    auto options = std::make_shared<Options>();
    const Verb verb = program.verb(
        "sweep",
        "The same question for many values: any option takes a list (1,2,4) or a range (1-64*2, 128-1024+128)");
    options->scenario.add_to(options->form);
    options->traffic.add_to(options->form);
    add_to(verb, options->form, Lists::welcome);
    const char* group = "Sweep";
    verb.add("-o,--output", options->file,
             "Write to this file: .csv, .jsonl, .sqlite, .md, .html; one that holds the first rows is taken up again")
        .group(group)
        .type("FILE")
        .check(number_for_a_file);
    verb.add("--format", options->format, "table, md, csv, jsonl, sqlite or html (default: by the file's name)")
        .group(group)
        .one_of({"table", "md", "csv", "jsonl", "sqlite", "html"});
    verb.add("--plot", options->plot.file, "Also draw throughput against latency: .svg, .png, .pdf or .html")
        .group(group)
        .type("FILE");
    verb.add("--metrics", options->metrics,
             "Columns after the axes: names or beginnings of names (decode, ttft, request), or all")
        .group(group)
        .type("LIST");
    verb.add("-t,--threads", options->threads, "Threads (default: all cores)").group(group).type("N");
    verb.add("--shard", options->shard, "Only this part of the rows: i/n, i from 1 to n")
        .group(group)
        .shows_default()
        .type("I/N");
    verb.add("--overwrite", options->overwrite, "Start anew even where the file holds something").group(group);
    verb.runs([&program, options] { return run(*options, program.command); });
}

}  // namespace roofline::cli

// roofline op: one operator by hand, against a device.
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "roofline/ask/execution_options.hpp"
#include "roofline/cli/form.hpp"
#include "roofline/cli/load.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/plot_options.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/io/report_json.hpp"
#include "roofline/io/settings.hpp"
#include "roofline/model/types.hpp"
#include "roofline/predict/one_operator.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::cli {
namespace {

struct Options {
    std::string kind;
    std::string device = "h100-sxm";
    std::string dtype = "bf16";
    std::string weight_dtype;
    std::string kv_dtype;
    std::string flops;  // a number, or "exact"
    std::string bytes;
    std::string traffic = "all";
    std::string m, n, k;
    std::string batch = "1", query = "1", keys, heads, kv_heads, head_dim = "128";
    bool full = false;
    bool unfused = false;
    std::string profile = "engine";
    std::string calibration;
    ask::Form form;
    std::vector<std::string> settings;
    OutputOptions output;
    PlotOptions plot;
};

constexpr double most = 1e9;

Result<const Format*> format_named(const char* option, const std::string& text) {
    if (const Format* format = find_format(text)) return format;
    return fail(fmt::format("{}: found \"{}\", expected a number type such as bf16, fp8 or int4", option, text));
}

Result<double> required(const char* option, const std::string& text) {
    if (text.empty()) return fail(fmt::format("{} is missing", option));
    return parse_whole(option, text, 1.0, most);
}

Result<predict::OneOperator> ask_gemm(const Options& options, const Format& all, const Format& weights) {
    predict::GemmQuestion question;
    for (const auto& [option, text, target] :
         {std::tuple{"--m", &options.m, &question.m}, std::tuple{"--n", &options.n, &question.n},
          std::tuple{"--k", &options.k, &question.k}}) {
        const auto value = required(option, *text);
        if (!value) return std::unexpected(value.error());
        *target = *value;
    }
    if (!options.flops.empty() && options.flops != "exact")
        return fail(fmt::format("--flops: found \"{}\", expected exact: the shape says the rest", options.flops));
    question.weights = weights;
    question.activation = all.weight_only ? DType::bf16 : all.value;
    question.count = options.flops == "exact" ? predict::FlopCount::exact : predict::FlopCount::multiply_adds;
    question.traffic = options.traffic == "loads"     ? predict::Traffic::loads
                       : options.traffic == "weights" ? predict::Traffic::weights
                                                      : predict::Traffic::all;
    return predict::gemm(question);
}

Result<predict::OneOperator> ask_attention(const Options& options, const Format& all) {
    predict::AttentionQuestion question;
    const std::string& kv_heads = options.kv_heads.empty() ? options.heads : options.kv_heads;
    for (const auto& [option, text, target] : {std::tuple{"--batch", &options.batch, &question.batch},
                                               std::tuple{"--q-len", &options.query, &question.query_length},
                                               std::tuple{"--kv-len", &options.keys, &question.kv_length},
                                               std::tuple{"--heads", &options.heads, &question.heads},
                                               std::tuple{"--kv-heads", &kv_heads, &question.kv_heads},
                                               std::tuple{"--head-dim", &options.head_dim, &question.head_dim}}) {
        const auto value = required(option, *text);
        if (!value) return std::unexpected(value.error());
        *target = *value;
    }
    if (question.query_length > question.kv_length) {
        return fail(fmt::format("--kv-len: found {}, expected at least the {} queries, which are among the keys",
                                options.keys, options.query));
    }
    if (std::fmod(question.heads, question.kv_heads) != 0.0) {
        return fail(
            fmt::format("--kv-heads: found {}, expected a divisor of the {} query heads", kv_heads, options.heads));
    }
    question.causal = !options.full;
    question.scores_in_memory = options.unfused;
    question.activation = all.weight_only ? DType::bf16 : all.value;
    question.kv = plain_format(question.activation);
    if (!options.kv_dtype.empty()) {
        const auto kv = format_named("--kv-cache-dtype", options.kv_dtype);
        if (!kv) return std::unexpected(kv.error());
        question.kv = **kv;
    }
    return predict::attention(question);
}

Result<predict::OneOperator> ask(const Options& options) {
    const auto all = format_named("--dtype", options.dtype);
    if (!all) return std::unexpected(all.error());
    const auto weights =
        format_named("--weight-dtype", options.weight_dtype.empty() ? options.dtype : options.weight_dtype);
    if (!weights) return std::unexpected(weights.error());
    if (options.kind == "gemm") return ask_gemm(options, **all, **weights);
    if (options.kind == "attention") return ask_attention(options, **all);
    if (options.flops.empty() || options.bytes.empty())
        return fail("op: expected gemm, attention, or --flops and --bytes");
    const auto flops = parse_positive("--flops", options.flops);
    if (!flops) return std::unexpected(flops.error());
    const auto bytes = parse_positive("--bytes", options.bytes);
    if (!bytes) return std::unexpected(bytes.error());
    return predict::bare_work(*flops, *bytes, (*all)->value);
}

io::OrderedJson as_json(const predict::OneOperator& op, const predict::Judgement& judged, const Device& device) {
    const auto rate = [&](Seconds time) {
        return time.value > 0.0 ? io::OrderedJson(judged.work.flops.value / time.value) : io::OrderedJson(nullptr);
    };
    io::OrderedJson json = {
        {"schema", "roofline.op/1"},
        {"device", device.name},
        {"engine", name(judged.work.engine)},
        {"dtype", name(judged.work.type)},
        {"shape", op.shape},
        {"flops", judged.work.flops.value},
        {"bytes", {{"memory", judged.work.at(Level::memory).value}}},
        {"intensity", io::finite(judged.verdict.intensity.value)},
        {"ridge", io::finite(judged.verdict.ridge.value)},
        {"bound", name(judged.verdict.bound)},
        {"time_s",
         {{"limit", judged.times.limit.value},
          {"attainable", judged.times.attainable.value},
          {"expected", judged.times.expected.value},
          {"expected_low", judged.times.expected_low.value},
          {"expected_high", judged.times.expected_high.value}}},
        {"flops_per_s",
         {{"limit", rate(judged.times.limit)},
          {"attainable", rate(judged.times.attainable)},
          {"expected", rate(judged.times.expected)}}},
        {"calibration", judged.calibration.empty() ? io::OrderedJson(nullptr) : io::OrderedJson(judged.calibration)},
        {"notes", io::OrderedJson::array()}};
    if (judged.stand_in) json["notes"].push_back(*judged.stand_in);
    return json;
}

/// Said in a line each; what goes on from the line above has no name.
using Lines = std::vector<std::pair<std::string, std::string>>;

Lines lines_about(const predict::OneOperator& op, const predict::Judgement& judged, const Device& device) {
    const Roofs roofs = limit_roofs(device);
    const double flop_cost = roofs.flop_cost(judged.work.engine, judged.work.type);
    const double byte_cost = roofs.seconds_per_byte[index(Level::memory)];
    const double flops = judged.work.flops.value;
    const double bytes = judged.work.at(Level::memory).value;
    Lines lines;
    if (!op.shape.empty()) lines.emplace_back("shapes", op.shape);
    lines.emplace_back("FLOPs", fmt::format("{} = {}", op.flops_text, render::flops(Flops(flops))));
    lines.emplace_back("bytes", fmt::format("{} = {}", op.bytes_text, render::bytes(Bytes(bytes))));
    lines.emplace_back("intensity", fmt::format("{} / {} = {} FLOP/B", render::grouped(flops), render::grouped(bytes),
                                                render::intensity(judged.verdict.intensity)));
    if (flop_cost > 0.0) {
        lines.emplace_back(
            "ridge",
            fmt::format("{} {} {} at {} / {} = {} FLOP/B", device.name, name(judged.work.engine),
                        name(judged.work.type), render::with_unit(1.0 / flop_cost, render::peak_unit(judged.work.type)),
                        render::with_unit(1.0 / byte_cost, "B/s"), render::intensity(judged.verdict.ridge)));
    }
    lines.emplace_back("time", fmt::format("compute {}, memory {}: {}-bound",
                                           flop_cost > 0.0 ? render::time(Seconds(flops * flop_cost)) : "unknown",
                                           render::time(Seconds(bytes * byte_cost)), name(judged.verdict.bound)));
    for (const auto& [what, time] :
         {std::pair{"limit", judged.times.limit}, std::pair{"attainable", judged.times.attainable},
          std::pair{"expected", judged.times.expected}}) {
        lines.emplace_back(what, fmt::format("{}, {}", render::time(time),
                                             time.value > 0.0 ? render::with_unit(flops / time.value,
                                                                                  render::peak_unit(judged.work.type))
                                                              : ""));
    }
    if (!judged.calibration.empty()) {
        lines.emplace_back("", fmt::format("{} to {}, calibration: {}", render::time(judged.times.expected_low),
                                           render::time(judged.times.expected_high), judged.calibration));
    }
    if (judged.stand_in) lines.emplace_back("note", *judged.stand_in);
    return lines;
}

std::string as_text(const Lines& lines) {
    std::string text;
    for (const auto& [what, words] : lines) text += fmt::format("{:12}{}\n", what, words);
    return text;
}

std::string as_markdown(const Lines& lines) {
    std::string text;
    for (const auto& [what, words] : lines)
        text += what.empty() ? fmt::format("  - {}\n", words) : fmt::format("- {}: {}\n", what, words);
    return text;
}

/// One point under the roofs of its device.
Account account_of(const Options& options, const predict::OneOperator& op, const predict::Judgement& judged,
                   const Device& device) {
    Account account;
    account.title = fmt::format("{} on {}", op.shape.empty() ? "bare work" : op.shape, device.name);
    account.verb = "op";
    account.device = device;
    AccountStage& stage = account.stages.emplace_back();
    stage.name = options.kind.empty() ? "bare work" : options.kind;
    stage.times = judged.times;
    Record& record = stage.records.emplace_back();
    record.name = stage.name;
    record.kind = options.kind == "attention" ? Kind::attention : options.kind == "gemm" ? Kind::gemm : Kind::other;
    record.group = options.kind == "attention" ? Group::attention : Group::other;
    record.work = judged.work;
    record.times = judged.times;
    return account;
}

Result<int> run(const Options& options, const std::string& command) {
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    const auto op = ask(options);
    if (!op) return std::unexpected(op.error());
    auto device = load_device(options.device);
    if (!device) return std::unexpected(device.error());
    for (const std::string& typed : options.settings) {
        const auto setting = io::parse_setting(typed);
        if (!setting) return std::unexpected(setting.error());
        if (auto done = io::apply(*setting, *device); !done) return std::unexpected(done.error());
    }
    const auto execution = this_machine().execution(options.profile, options.calibration, *device);
    if (!execution) return std::unexpected(execution.error());
    const predict::Judgement judged = predict::judge_on(*op, *device, *execution);
    const Lines lines = lines_about(*op, judged, *device);
    const Account account = account_of(options, *op, judged, *device);
    const Shown shown{command, [&] { return Drawing{.accounts = {account}}; },
                      [&] { return fmt::format("# {}\n\n{}", account.title, as_markdown(lines)); }};
    const std::string& format = options.output.format;
    const std::string text = format == "json"   ? io::dump(as_json(*op, judged, *device))
                             : format == "html" ? shown.page()
                             : format == "md"   ? as_markdown(lines)
                                                : as_text(lines);
    if (auto written = options.output.write(text); !written) return std::unexpected(written.error());
    if (auto drawn = options.plot.write(shown); !drawn) return std::unexpected(drawn.error());
    return done;
}

}  // namespace

void op_verb(Program& program) {
    auto options = std::make_shared<Options>();
    const Verb verb = program.verb("op", "One operator by hand: a matrix product, attention, or bare FLOPs and bytes");
    verb.add("kind", options->kind, "gemm or attention; nothing with --flops and --bytes")
        .one_of({"gemm", "attention"})
        .type("KIND");
    verb.add("--device", options->device, "Built-in name, device file, or `this`").shows_default();
    verb.add("--dtype", options->dtype, "Number type of everything").shows_default();
    verb.add("--weight-dtype", options->weight_dtype, "Number type of the weights (gemm)");
    verb.add("--kv-cache-dtype", options->kv_dtype, "Number type of keys and values (attention)");
    verb.add("--flops", options->flops, "Bare work: FLOPs; for gemm, `exact` counts m n (2k - 1)").type("N|exact");
    verb.add("--bytes", options->bytes, "Bare work: bytes of memory traffic").type("N");
    verb.add("--traffic", options->traffic, "What a gemm's bytes include")
        .one_of({"all", "loads", "weights"})
        .shows_default();
    const char* gemm = "gemm: [m x k] x [k x n]";
    verb.add("--m", options->m, "Rows: tokens").group(gemm);
    verb.add("--n", options->n, "Columns: output width").group(gemm);
    verb.add("--k", options->k, "Inner: input width").group(gemm);
    const char* attention = "attention";
    verb.add("--batch", options->batch, "Sequences").group(attention).shows_default();
    verb.add("--q-len,--tokens", options->query, "New queries per sequence").group(attention).shows_default();
    verb.add("--kv-len,--context", options->keys, "Keys per sequence, the queries' own included").group(attention);
    verb.add("--heads", options->heads, "Query heads").group(attention);
    verb.add("--kv-heads", options->kv_heads, "KV heads [the query heads]").group(attention);
    verb.add("--head-dim", options->head_dim, "Size of a head").group(attention).shows_default();
    verb.add("--full", options->full, "No causal mask").group(attention);
    verb.add("--unfused", options->unfused, "Scores go through memory").group(attention);
    ask::add_execution_options(options->form, options->profile, options->calibration);
    add_to(verb, options->form);
    verb.add("--set", options->settings, "Change a figure of the device for this run").repeated().type("PATH=VALUE|Nx");
    options->output.add_to(verb, {"table", "md", "json", "html"});
    options->plot.add_to(verb);
    verb.runs([&program, options] { return run(*options, program.command); });
}

}  // namespace roofline::cli

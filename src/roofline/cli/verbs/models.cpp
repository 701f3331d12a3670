// roofline models: what models are known, and what one is made of.
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "roofline/bench/synth.hpp"
#include "roofline/cli/bench_run.hpp"
#include "roofline/cli/files.hpp"
#include "roofline/cli/interrupted.hpp"
#include "roofline/cli/load.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/plot_options.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/cli/streamed_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/report_json.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/render/chart/landscape.hpp"
#include "roofline/render/numbers.hpp"
#include "roofline/render/table.hpp"

namespace roofline::cli {
namespace {

struct Options {
    OutputOptions output;
    PlotOptions plot;
    std::string name;
    std::string synth_file;
    std::string synth_layers;
    std::string synth_dtype = "f16";
};

render::chart::LandscapePoint point_of(const io::ModelFile& model, const model::Lowered& lowered) {
    const model::ParameterCount count = model::count_parameters(lowered);
    // What a decoded token adds once windows are full: what a long context is made of.
    const double cache = model::kv_bytes_per_token_beyond_windows(lowered);
    return {model.name, model.active_parameters ? "experts" : "dense", count.stored_bytes, cache,
            fmt::format("{}\n{} of weights in {}\n{} of cache a token in {}", model.title,
                        render::bytes(Bytes(count.stored_bytes)), model.types_summary, render::bytes(Bytes(cache)),
                        model.types.kv.name)};
}

Drawing drawing_of(const std::vector<render::chart::LandscapePoint>& points) {
    render::chart::LandscapeLook look;
    look.title = "Models by what they keep in memory";
    look.subtitle =
        "weights once, cache for every token of every sequence; on a dotted line, one weighs as many tokens";
    look.x_name = "weights (B)";
    look.y_name = "KV cache a token, at long context (B)";
    for (const auto& [tokens, words] : {std::pair{1e4, "10 thousand tokens"}, std::pair{1e5, "100 thousand tokens"},
                                        std::pair{1e6, "a million tokens"}, std::pair{1e7, "10 million tokens"}})
        look.diagonals.push_back({1.0 / tokens, words});
    return {.title = "Known models", .charts = {render::chart::landscape_chart(points, look)}};
}

/// All built-in models, and this one ringed among them.
Drawing among_all(const io::ModelFile& model, const model::Lowered& lowered) {
    std::vector<render::chart::LandscapePoint> points;
    for (const std::string& name : io::builtin_model_names()) {
        const auto other = io::builtin_model(name);
        if (other && other->name != model.name)
            points.push_back(point_of(*other, model::lower(other->architecture, other->types)));
    }
    points.push_back(point_of(model, lowered));
    points.back().ringed = true;
    Drawing drawing = drawing_of(points);
    drawing.title.clear();  // the page is about this model
    return drawing;
}

Result<int> list(const Options& options, const std::string& command) {
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    std::vector<render::chart::LandscapePoint> points;
    render::Table table{{{"name", render::Align::left},
                         {"parameters"},
                         {"active"},
                         {"weights"},
                         {"types", render::Align::left},
                         {"KV a token"},
                         {"layers"},
                         {"context"}},
                        {}};
    std::vector<io::ModelFile> models;
    for (const std::string& name : io::builtin_model_names()) {
        const auto model = io::builtin_model(name);
        if (!model) return std::unexpected(model.error());
        const model::Lowered lowered = model::lower(model->architecture, model->types);
        const model::ParameterCount count = model::count_parameters(lowered);
        const bool sparse = model->active_parameters.has_value();
        table.rows.push_back(
            {model->name, render::with_unit(count.total, ""),
             sparse ? render::with_unit(model::active_parameters(lowered, model->active_counts), "") : "",
             render::bytes(Bytes(count.stored_bytes)), model->types_summary,
             render::bytes(Bytes(model::kv_bytes_per_token(lowered))),
             fmt::format("{}", model->architecture.layers.size()),
             model->architecture.longest_context > 0.0 ? render::grouped(model->architecture.longest_context) : "-"});
        models.push_back(*model);
        points.push_back(point_of(*model, lowered));
    }
    const Shown shown{command, [&] { return drawing_of(points); }, [&] { return render::as_markdown(table); }};
    std::string text;
    if (options.output.format == "json") {
        io::JsonText json;
        json.object([&] {
            json.add("schema", "roofline.models/1");
            json.array("models", [&] {
                for (const io::ModelFile& model : models)
                    json.object([&] { io::write_model(json, model, model::lower(model.architecture, model.types)); });
            });
        });
        text = std::move(json).finish();
    } else {
        text = options.output.format == "md"     ? render::as_markdown(table)
               : options.output.format == "csv"  ? render::as_csv(table)
               : options.output.format == "html" ? shown.page()
                                                 : render::as_text(table);
    }
    if (auto written = options.output.write(text); !written) return std::unexpected(written.error());
    if (auto drawn = options.plot.write(shown); !drawn) return std::unexpected(drawn.error());
    return done;
}

std::string published(const std::optional<io::PublishedCount>& count, double ours) {
    if (!count) return "";
    const double difference = ours / count->value - 1.0;
    return fmt::format(" (published {}, {:+.3f}%)", count->rounding > 0.0 ? count->text : render::grouped(count->value),
                       100.0 * difference);
}

/// Said in a line each: "parameters", "8,030,261,248 (published ...)".
using Lines = std::vector<std::pair<std::string, std::string>>;

Lines lines_about(const io::ModelFile& model, const model::Lowered& lowered) {
    const model::ParameterCount count = model::count_parameters(lowered);
    Lines lines;
    lines.emplace_back("parameters", render::grouped(count.total) + published(model.parameters, count.total));
    static constexpr std::array<std::string_view, 3> conventions = {
        "embedding table counted", "embedding table not counted", "neither embedding table nor head counted"};
    const double active = model::active_parameters(lowered, model.active_counts);
    if (count.active < 0.999 * (count.total - count.embedding) || model.active_parameters) {
        lines.emplace_back("active",
                           fmt::format("{}{}, {}", render::grouped(active), published(model.active_parameters, active),
                                       conventions[static_cast<std::size_t>(model.active_counts)]));
    }
    lines.emplace_back("weights",
                       fmt::format("{} in {}", render::bytes(Bytes(count.stored_bytes)), model.types_summary));
    std::string cache =
        fmt::format("{} a token in {}", render::bytes(Bytes(model::kv_bytes_per_token(lowered))), model.types.kv.name);
    const double beyond = model::kv_bytes_per_token_beyond_windows(lowered);
    if (beyond != model::kv_bytes_per_token(lowered))
        cache += fmt::format(", {} a token beyond the windows", render::bytes(Bytes(beyond)));
    if (const double state = model::state_bytes_per_sequence(lowered); state > 0.0)
        cache += fmt::format(", and {} of state a sequence", render::bytes(Bytes(state)));
    lines.emplace_back("KV cache", cache);
    lines.emplace_back("width", fmt::format("{}, vocabulary {}{}", render::grouped(model.architecture.hidden),
                                            render::grouped(model.architecture.vocabulary),
                                            model.architecture.tied ? ", embeddings tied" : ""));
    return lines;
}

Lines sources_of(const io::ModelFile& model) {
    Lines lines = {{"source", model.source}};
    if (!model.published_source.empty()) lines.emplace_back("published", model.published_source);
    for (const std::string& note : model.notes) lines.emplace_back("note", note);
    return lines;
}

std::string in_text(const io::ModelFile& model, const model::Lowered& lowered, const render::Table& stack) {
    std::string text = fmt::format("{}\n", model.title);
    for (const auto& [what, words] : lines_about(model, lowered)) text += fmt::format("  {:12}{}\n", what, words);
    text += "  stack\n";
    for (const auto& row : stack.rows) {
        const std::string between = row[2].empty() || row[4].empty() ? "" : fmt::format("  {}  ", row[3]);
        text += fmt::format("    {:>4} x {:16}{}{}{}\n", row[0], row[1], row[2], between, row[4]);
    }
    for (const auto& [what, words] : sources_of(model)) text += fmt::format("  {:12}{}\n", what, words);
    return text;
}

std::string in_markdown(const io::ModelFile& model, const model::Lowered& lowered, const render::Table& stack) {
    std::string text = fmt::format("# {}\n\n", model.title);
    for (const auto& [what, words] : lines_about(model, lowered)) text += fmt::format("- {}: {}\n", what, words);
    text += "\n## stack\n\n" + render::as_markdown(stack) + "\n## sources\n\n";
    for (const auto& [what, words] : sources_of(model)) text += fmt::format("- {}: {}\n", what, words);
    return text;
}

render::Table stack_of(const model::Architecture& architecture) {
    render::Table table{{{"layers"},
                         {"kind", render::Align::left},
                         {"mixer", render::Align::left},
                         {"", render::Align::left},
                         {"feed-forward", render::Align::left}},
                        {}};
    for (std::size_t kind = 0; kind < architecture.kinds.size(); ++kind) {
        const model::LayerKind& layer = architecture.kinds[kind];
        const auto layers = std::count(architecture.layers.begin(), architecture.layers.end(), static_cast<int>(kind));
        if (layers == 0) continue;  // of a module that predicts further tokens, beside the stack
        table.rows.push_back({fmt::format("{}", layers), layer.label, layer.mixer ? layer.mixer->describe() : "",
                              layer.parallel ? "beside" : "then", layer.ffn ? layer.ffn->describe() : ""});
    }
    return table;
}

Result<int> show(const Options& options, const std::string& command) {
    if (options.output.format == "csv") return fail("--format csv: lists all models, and takes no name");
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    const auto model = load_model(options.name);
    if (!model) return std::unexpected(model.error());
    const model::Lowered lowered = model::lower(model->architecture, model->types);
    const render::Table stack = stack_of(model->architecture);
    const Shown shown{command, [&] { return among_all(*model, lowered); },
                      [&] { return in_markdown(*model, lowered, stack); }};
    const std::string text = options.output.format == "json"   ? io::model_text(*model, lowered)
                             : options.output.format == "html" ? shown.page()
                             : options.output.format == "md"   ? in_markdown(*model, lowered, stack)
                                                               : in_text(*model, lowered, stack);
    if (auto written = options.output.write(text); !written) return std::unexpected(written.error());
    if (auto drawn = options.plot.write(shown); !drawn) return std::unexpected(drawn.error());
    return done;
}

/// A GGUF with random weights of the model's shapes, streamed to disk.
Result<int> synth(const Options& options) {
    // Whoever reads the file goes by its name.
    if (!options.synth_file.ends_with(".gguf")) {
        return fail(fmt::format("--output: found \"{}\", expected a name that ends in .gguf",
                                io::printable(options.synth_file)));
    }
    ask::ScenarioOptions asked;
    asked.model = options.name;
    asked.dtype = "bf16";
    std::optional<double> layers;
    if (!options.synth_layers.empty()) {
        const auto number = parse_whole("--layers", options.synth_layers, 1.0, 1e4);
        if (!number) return std::unexpected(number.error());
        layers = *number;
    }
    const auto setup = setup_on(asked, Device{}, layers);
    if (!setup) return std::unexpected(setup.error());
    const auto scenario = predict::realise(*setup);
    if (!scenario) return std::unexpected(scenario.error());
    const auto shape = bench::llama_shape(*scenario, "random weights can only be written for");
    if (!shape) return std::unexpected(shape.error());
    bench::SynthOptions wanted;
    wanted.name = setup->model_name;
    wanted.dtype = options.synth_dtype;
    wanted.tied = setup->architecture->tied;
    if (setup->architecture->longest_context > 0.0)
        wanted.context = static_cast<std::int64_t>(setup->architecture->longest_context);
    const auto plan = bench::plan_synth(*shape, wanted);
    if (!plan) return std::unexpected(plan.error());
    const double bytes = static_cast<double>(plan->header.size() + plan->data_bytes);
    std::error_code ignored;
    const auto space = std::filesystem::space(folder_of(options.synth_file), ignored);
    if (!ignored && static_cast<double>(space.available) < bytes) {
        return fail(fmt::format("{}: needs {}, and the disk has {} left", options.synth_file,
                                render::bytes(Bytes(bytes)),
                                render::bytes(Bytes(static_cast<double>(space.available)))));
    }
    const Interruptible watching;
    const auto written = write_streamed(options.synth_file, [&](const TakeBytes& take) {
        return bench::write_synth(*plan,
                                  [&](std::span<const std::byte> piece) { return !interrupted() && take(piece); });
    });
    if (interrupted()) return stopped;
    if (!written) return std::unexpected(written.error());
    fmt::print("{}: {} in {} tensors, {} layer{} in {}\n", options.synth_file, render::bytes(Bytes(bytes)),
               plan->tensors.size(), shape->layers, shape->layers == 1 ? "" : "s", wanted.dtype);
    return done;
}

}  // namespace

void models_verb(Program& program) {
    auto options = std::make_shared<Options>();
    const Verb verb = program.verb(
        "models",
        "Known models; `models MODEL` for what one is made of, `models synth MODEL` for a GGUF of its shapes");
    verb.add("name", options->name, "Only this one, as `show` does").type("MODEL");
    options->output.add_to(verb, {"table", "md", "csv", "json", "html"});
    options->plot.add_to(verb);
    const Verb one = verb.verb("show", "Counts, sizes and layers of one model");
    one.add("name", options->name, "Built-in name, folder, config.json, .gguf or .safetensors")
        .required()
        .type("MODEL");
    options->output.add_to(one, {"table", "md", "json", "html"});
    options->plot.add_to(one);
    const Verb random = verb.verb("synth", "Write a GGUF of a model's shapes with random weights");
    random.add("name", options->name, "Built-in name, folder or config.json of a Llama-like model")
        .required()
        .type("MODEL");
    random.add("-o,--output", options->synth_file, "File to write").required().type("FILE.gguf");
    random.add("--layers", options->synth_layers, "Only so many layers").type("N");
    random.add("--dtype", options->synth_dtype, "f16, q8_0, q4_0, q6_k, q4_k_m or q5_k_m").shows_default().type("TYPE");
    verb.runs([&program, options, one, random] {
        if (random.named()) return synth(*options);
        const bool named = one.named() || !options->name.empty();
        return named ? show(*options, program.command) : list(*options, program.command);
    });
}

}  // namespace roofline::cli

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
#include "roofline/cli/program.hpp"
#include "roofline/cli/streamed_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/report_json.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/render/numbers.hpp"
#include "roofline/render/table.hpp"

namespace roofline::cli {
namespace {

struct Options {
    OutputOptions output;
    std::string name;
    std::string synth_file;
    std::string synth_layers;
    std::string synth_dtype = "f16";
};

Result<int> list(const Options& options) {
    render::Table table{{{"name", render::Align::left},
                         {"parameters"},
                         {"active"},
                         {"weights"},
                         {"types", render::Align::left},
                         {"KV a token"},
                         {"layers"},
                         {"context"}},
                        {}};
    io::OrderedJson json = {{"schema", "roofline.models/1"}, {"models", io::OrderedJson::array()}};
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
        json["models"].push_back(io::model_json(*model, lowered));
    }
    std::string text;
    if (options.output.format == "json") {
        text = io::dump(json);
    } else {
        text = options.output.format == "md"    ? render::as_markdown(table)
               : options.output.format == "csv" ? render::as_csv(table)
                                                : render::as_text(table);
    }
    if (auto written = options.output.write(text); !written) return std::unexpected(written.error());
    return done;
}

std::string published(const std::optional<io::PublishedCount>& count, double ours) {
    if (!count) return "";
    const double difference = ours / count->value - 1.0;
    return fmt::format(" (published {}, {:+.3f}%)", count->rounding > 0.0 ? count->text : render::grouped(count->value),
                       100.0 * difference);
}

Result<int> show(const Options& options) {
    const auto model = load_model(options.name);
    if (!model) return std::unexpected(model.error());
    const model::Lowered lowered = model::lower(model->architecture, model->types);
    if (options.output.format == "json") {
        if (auto written = options.output.write(io::dump(io::model_json(*model, lowered))); !written)
            return std::unexpected(written.error());
        return done;
    }
    const model::ParameterCount count = model::count_parameters(lowered);
    std::string text = fmt::format("{}\n", model->title);
    text +=
        fmt::format("  parameters  {}{}\n", render::grouped(count.total), published(model->parameters, count.total));
    static constexpr std::array<std::string_view, 3> conventions = {
        "embedding table counted", "embedding table not counted", "neither embedding table nor head counted"};
    const double active = model::active_parameters(lowered, model->active_counts);
    if (count.active < 0.999 * (count.total - count.embedding) || model->active_parameters) {
        text += fmt::format("  active      {}{}, {}\n", render::grouped(active),
                            published(model->active_parameters, active),
                            conventions[static_cast<std::size_t>(model->active_counts)]);
    }
    text += fmt::format("  weights     {} in {}\n", render::bytes(Bytes(count.stored_bytes)), model->types_summary);
    text += fmt::format("  KV cache    {} a token in {}", render::bytes(Bytes(model::kv_bytes_per_token(lowered))),
                        model->types.kv.name);
    const double beyond = model::kv_bytes_per_token_beyond_windows(lowered);
    if (beyond != model::kv_bytes_per_token(lowered))
        text += fmt::format(", {} a token beyond the windows", render::bytes(Bytes(beyond)));
    if (const double state = model::state_bytes_per_sequence(lowered); state > 0.0)
        text += fmt::format(", and {} of state a sequence", render::bytes(Bytes(state)));
    text += fmt::format("\n  width       {}, vocabulary {}{}\n", render::grouped(model->architecture.hidden),
                        render::grouped(model->architecture.vocabulary),
                        model->architecture.tied ? ", embeddings tied" : "");
    text += "  stack\n";
    for (std::size_t kind = 0; kind < model->architecture.kinds.size(); ++kind) {
        const model::LayerKind& layer = model->architecture.kinds[kind];
        const auto layers =
            std::count(model->architecture.layers.begin(), model->architecture.layers.end(), static_cast<int>(kind));
        text += fmt::format("    {:4} x {:16}{}{}{}\n", layers, layer.label, layer.mixer ? layer.mixer->describe() : "",
                            layer.mixer && layer.ffn ? (layer.parallel ? "  beside  " : "  then  ") : "",
                            layer.ffn ? layer.ffn->describe() : "");
    }
    text += fmt::format("  source      {}\n", model->source);
    if (!model->published_source.empty()) text += fmt::format("  published   {}\n", model->published_source);
    for (const std::string& note : model->notes) text += "  note        " + note + "\n";
    if (auto written = options.output.write(text); !written) return std::unexpected(written.error());
    return done;
}

/// A GGUF with random weights of the model's shapes, streamed to disk.
Result<int> synth(const Options& options) {
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
    const auto shape = bench::dense_shape(*scenario, "random weights can only be written for");
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
    fmt::print("{}: {} in {} tensors, {} layers in {}\n", options.synth_file, render::bytes(Bytes(bytes)),
               plan->tensors.size(), shape->layers, wanted.dtype);
    return done;
}

}  // namespace

void models_verb(Program& program) {
    auto options = std::make_shared<Options>();
    CLI::App* verb = program.app.add_subcommand(
        "models",
        "Known models; `models show MODEL` for what one is made of, `models synth MODEL` for a GGUF of its shapes");
    options->output.add_to(*verb, {"table", "md", "csv", "json"});
    CLI::App* one = verb->add_subcommand("show", "Counts, sizes and layers of one model");
    one->add_option("name", options->name, "Built-in name, folder, config.json, .gguf or .safetensors")
        ->required()
        ->type_name("MODEL");
    options->output.add_to(*one, {"table", "json"});
    CLI::App* random = verb->add_subcommand("synth", "Write a GGUF of a model's shapes with random weights");
    random->add_option("name", options->name, "Built-in name, folder or config.json of a Llama-like model")
        ->required()
        ->type_name("MODEL");
    random->add_option("-o,--output", options->synth_file, "File to write")->required()->type_name("FILE.gguf");
    random->add_option("--layers", options->synth_layers, "Only so many layers")->type_name("N");
    random->add_option("--dtype", options->synth_dtype, "f16, q8_0 or q4_0")->capture_default_str()->type_name("TYPE");
    verb->callback([&program, options, one, random] {
        program.action = [options, one, random] {
            return one->parsed() ? show(*options) : random->parsed() ? synth(*options) : list(*options);
        };
    });
}

}  // namespace roofline::cli

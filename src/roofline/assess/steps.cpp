#include "roofline/assess/steps.hpp"

#include <algorithm>
#include <cmath>

#include "roofline/io/catalog.hpp"
#include "roofline/io/fields.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/predict/prepared.hpp"

namespace roofline::assess {
namespace {

/// The row's own shape, as a config: what was run counts, not what the name promises.
std::optional<io::Json> config_of_columns(const CsvTable& table, const CsvTable::Row& row) {
    io::Json config = {{"model_type", "llama"}, {"architectures", {"LlamaForCausalLM"}}, {"torch_dtype", "bfloat16"}};
    for (const auto& [column, key] :
         {std::pair{"layers", "num_hidden_layers"}, std::pair{"hidden", "hidden_size"},
          std::pair{"heads", "num_attention_heads"}, std::pair{"kv_heads", "num_key_value_heads"},
          std::pair{"head_dim", "head_dim"}, std::pair{"ffn", "intermediate_size"}, std::pair{"vocab", "vocab_size"}}) {
        const auto value = table.number(row, column);
        if (!value || *value < 1.0 || *value != std::floor(*value)) return std::nullopt;
        config[key] = static_cast<long long>(*value);
    }
    return config;
}

/// Models are lowered once for each name, shape and number type.
class Models {
  public:
    std::shared_ptr<const model::Lowered> find(const CsvTable& table, const CsvTable::Row& row, std::string_view type,
                                               std::string& reason) {
        const std::string name(table.text(row, "model"));
        std::string key = name + "|" + std::string(type);
        for (const char* column : {"layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab"})
            key += "|" + std::string(table.text(row, column));
        const auto known = models_.find(key);
        if (known != models_.end()) {
            reason = known->second.second;
            return known->second.first;
        }
        auto& [lowered, why] = models_[key];
        lowered = load(table, row, name, type, why);
        reason = why;
        return lowered;
    }

  private:
    static std::shared_ptr<const model::Lowered> load(const CsvTable& table, const CsvTable::Row& row,
                                                      const std::string& name, std::string_view type,
                                                      std::string& reason) {
        const Format* format = find_format(type);
        if (format == nullptr) {
            reason = "unknown number type";
            return nullptr;
        }
        const auto config = config_of_columns(table, row);
        auto file = config ? io::read_config_file(*config, table.file(), name) : io::builtin_model(name);
        if (!file) {
            reason = config ? "not a model: " + file.error().text : "unknown model";
            return nullptr;
        }
        const model::TypePlan plan =
            model::uniform_plan(file->types.layers.size(), *format, format->weight_only ? DType::bf16 : format->value,
                                plain_format(DType::bf16));
        return std::make_shared<const model::Lowered>(model::lower(file->architecture, plan));
    }

    std::map<std::string, std::pair<std::shared_ptr<const model::Lowered>, std::string>> models_;
};

/// Limit and attainable of a step; false if it was faster than light.
bool price(Measurement& row) {
    const predict::Prepared prepared(*row.step->model, *row.device);
    std::vector<predict::OperatorTime> times(prepared.size());
    const predict::StageTime stage = prepared.evaluate(row.step->step, times);
    row.limit = stage.limit;
    row.attainable = stage.attainable;
    return row.seconds >= row.limit;
}

}  // namespace

Result<void> read_step_table(const CsvTable& table, Measurements& into) {
    Models models;
    for (const CsvTable::Row& row : table.rows()) {
        Refusal refusal{.file = table.file(),
                        .line = row.line,
                        .device = std::string(table.text(row, "gpu")),
                        .kind = "step",
                        .type = std::string(table.text(row, "dtype")),
                        .stage = std::string(table.text(row, "stage")),
                        .reason = {}};
        const auto refuse = [&](std::string reason) {
            refusal.reason = std::move(reason);
            into.refused.push_back(refusal);
        };
        const auto device = io::builtin_device(table.text(row, "gpu"));
        if (!device) {
            refuse("unknown device");
            continue;
        }
        refusal.device = device->name;
        std::string reason;
        const auto lowered = models.find(table, row, table.text(row, "dtype"), reason);
        if (!lowered) {
            refuse(reason);
            continue;
        }
        const double batch = table.number(row, "batch").value_or(0.0);
        const double tokens = table.number(row, "tokens").value_or(0.0);
        const double context = table.number(row, "context").value_or(0.0);
        const bool decode = refusal.stage == "decode";
        if ((!decode && refusal.stage != "prefill") || batch < 1.0 || tokens < 1.0 || context < tokens) {
            refuse("no stage with a batch, tokens and a context");
            continue;
        }
        const std::string attention(table.text(row, "attention"));
        const std::string execution(table.text(row, "execution"));
        const std::string how = execution.empty() ? "graph+fused" : execution;
        // The same step launched kernel by kernel, where a column has it, is a measurement of its own.
        for (const auto& [column, kind, profile] :
             {std::tuple{"time_ms", "step", how}, std::tuple{"no_graph_ms", "step_eager", how + "-without-graph"}}) {
            if (!table.has(column)) continue;
            const auto time = table.number(row, column);
            refusal.kind = kind;
            if (!io::builtin_profile(profile)) {
                refuse("no profile for the execution " + profile);
                continue;
            }
            if (!time || *time <= 0.0) {
                refuse("no positive time");
                continue;
            }
            Measurement measured;
            measured.file = table.file();
            measured.line = row.line;
            measured.device = std::make_shared<const Device>(*device);
            measured.kind = kind;
            measured.type = refusal.type;
            measured.stack = attention;
            measured.stage = refusal.stage;
            measured.family = std::string(table.text(row, "model"));
            measured.label = measured.family + (attention.empty() ? "" : ", " + attention) + ", batch " + whole(batch) +
                             ", " + (decode ? "context " + whole(context) : whole(tokens) + " tokens");
            measured.seconds = *time * 1e-3;
            Step step{.model = lowered,
                      .step = decode ? model::decode_step(batch, context)
                                     : model::prefill_step(batch, tokens, context - tokens),
                      .profile = profile,
                      .stacks = {}};
            if (!attention.empty()) step.stacks.push_back(attention);
            measured.step = std::make_shared<const Step>(std::move(step));
            if (!price(measured)) {
                refuse("faster than the limit");
                continue;
            }
            into.rows.push_back(std::move(measured));
        }
    }
    return {};
}

}  // namespace roofline::assess

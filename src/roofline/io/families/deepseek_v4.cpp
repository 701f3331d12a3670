// DeepSeek V4: compressed attention, several residual streams, experts in every layer.
#include <algorithm>

#include <fmt/format.h>

#include "roofline/io/family.hpp"
#include "roofline/model/attention/compressed.hpp"

namespace roofline::io {
namespace {

/// transformers 5 names the kinds of layers and gives a rate for each kind.
std::vector<double> ratios_of_types(Fields& config) {
    std::vector<double> ratios;
    if (!config.has("layer_types") || !config.has("compress_rates")) return ratios;
    Fields rates = config.child("compress_rates");
    for (const std::string& type : config.texts("layer_types"))
        ratios.push_back(type == "sliding_attention" ? 0.0 : rates.size(type));
    return ratios;
}

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture);
    architecture.streams = config.size_or("hc_mult", 1.0);
    model::CompressedShape shape;
    shape.heads = config.size("num_attention_heads");
    shape.head_dim = config.size("head_dim");
    shape.rope_dim = config.size("qk_rope_head_dim");
    shape.query_rank = config.size("q_lora_rank");
    shape.out_rank = config.size("o_lora_rank");
    shape.out_groups = config.size("o_groups");
    shape.window = config.size("sliding_window");

    const double index_dim = config.size("index_head_dim");
    const double index_heads = config.size("index_n_heads");
    const double index_best = config.size("index_topk");
    model::MoeShape moe = read_moe(config);
    moe.shared_width = config.count_or("n_shared_experts", 0.0) * moe.width;

    const std::size_t layers = read_layer_count(config);
    const auto ratios = config.has("compress_ratios") ? config.numbers("compress_ratios") : ratios_of_types(config);
    if (ratios.size() < layers) {
        config.complain("compress_ratios",
                        fmt::format("has {} entries, expected one for each of {} layers", ratios.size(), layers));
        return;
    }
    const auto ffns = config.texts("mlp_layer_types");
    const double hashed = ffns.empty() ? config.count_or("num_hash_layers", 0.0)
                                       : static_cast<double>(std::count(ffns.begin(), ffns.end(), "hash_moe"));
    const std::size_t predictor = layers;  // the entry beyond the last layer is that of the module that predicts
    for (std::size_t i = 0; i < ratios.size() && i <= predictor && !config.failed(); ++i) {
        const double ratio = ratios[i];
        if (!(ratio >= 0.0 && ratio <= 1e6)) {
            config.complain("compress_ratios", fmt::format("holds {}, expected numbers from 0 to 1e6", ratio));
            return;
        }
        const bool by_hash = static_cast<double>(i) < hashed;  // experts chosen by a table: no correction bias
        const std::string label =
            (ratio > 0.0 ? fmt::format("pool{:g}", ratio) : std::string("window")) + (by_hash ? ",hash" : "");
        add_layer(architecture, label, [&] {
            model::CompressedShape own = shape;
            own.ratio = ratio;
            if (ratio == 4.0) {  // overlapping pools, and an indexer that chooses among them
                own.series = 2.0;
                own.chosen = index_best;
                own.indexer = model::Indexer{.heads = index_heads,
                                             .dim = index_dim,
                                             .query_inner = shape.query_rank,
                                             .key_bytes = index_dim + 4.0,
                                             .norm_parameters = ratio * 2.0 * index_dim + index_dim,
                                             .key_cols = 4.0 * index_dim,
                                             .waiting_bytes = 2.0 * ratio * 4.0 * index_dim * 4.0,
                                             .scored = model::Reach::pooled(ratio)};
            }
            model::MoeShape experts = moe;
            experts.router_parameters = by_hash ? 0.0 : moe.experts;
            return pre_norm_layer(block<model::Compressed>(own), block<model::Moe>(experts));
        });
    }
    if (architecture.layers.size() > layers) {
        architecture.predictor = {architecture.layers.back()};
        architecture.layers.pop_back();
    }
}

}  // namespace

extern const Family deepseek_v4_family;
const Family deepseek_v4_family{{"deepseek_v4", "deepseek_ref"}, read};

}  // namespace roofline::io

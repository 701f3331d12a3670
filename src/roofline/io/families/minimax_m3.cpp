// MiniMax M3: GQA that reads the blocks an indexer chose, first layers dense in both senses.
#include <fmt/format.h>

#include "roofline/io/family.hpp"
#include "roofline/model/attention/sparse_gqa.hpp"
#include "roofline/model/ffn/dense.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture);
    model::GqaShape shape = read_gqa(config);
    if (config.flag("use_qk_norm", true)) shape.qk_norm = model::QkNorm::per_head;
    shape.gate = config.flag("attention_output_gate", false);

    model::MoeShape moe = read_moe(config);
    moe.shared_width = config.count_or("shared_intermediate_size", 0.0) * config.count_or("n_shared_experts", 1.0);
    if (config.flag("use_routing_bias", true)) moe.router_parameters = moe.experts;

    const std::size_t layers = read_layer_count(config);
    const auto sparse_ffn = config.numbers("moe_layer_freq");
    Fields sparse = config.child("sparse_attention_config");
    const auto sparse_attention = sparse.numbers("sparse_attention_freq");
    const double block_size = sparse.size("sparse_block_size");
    const double chosen = sparse.size("sparse_topk_blocks") * block_size;
    const double index_dim = sparse.size("sparse_index_dim");
    const model::Indexer indexer{.heads = sparse.size("sparse_num_index_heads"),
                                 .dim = index_dim,
                                 .query_inner = architecture.hidden,
                                 .key_bytes = 2.0 * index_dim,
                                 .norm_parameters = 2.0 * index_dim,
                                 .weighs_heads = false,
                                 .scored = model::Reach::full()};
    for (const auto* list : {&sparse_ffn, &sparse_attention}) {
        if (list->size() != layers) {
            config.complain("", fmt::format("moe_layer_freq and sparse_attention_freq have {} and {} entries, expected "
                                            "one for each of {} layers",
                                            sparse_ffn.size(), sparse_attention.size(), layers));
            return;
        }
    }
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        const bool experts = sparse_ffn[i] != 0.0;
        const bool chooses = sparse_attention[i] != 0.0;
        const std::string label = std::string(chooses ? "sparse" : "full") + (experts ? ",moe" : ",dense");
        add_layer(architecture, label, [&] {
            model::BlockPtr attention =
                chooses ? std::make_shared<const model::SparseGqa>(shape, indexer, chosen, block_size)
                        : block<model::Gqa>(shape);
            model::BlockPtr ffn =
                experts ? block<model::Moe>(moe)
                        : block<model::Dense>(model::DenseShape{.width = config.size("dense_intermediate_size")});
            return pre_norm_layer(attention, ffn);
        });
    }
}

}  // namespace

extern const Family minimax_m3_family;
const Family minimax_m3_family{{"minimax_m3", "minimax_m3_vl", "minimax_m3_text"}, read};

}  // namespace roofline::io

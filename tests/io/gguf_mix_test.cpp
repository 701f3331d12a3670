// Files of llama.cpp by the name of their mix, held against what was published.
#include "roofline/model/gguf_mix.hpp"

#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "roofline/io/catalog.hpp"
#include "roofline/io/hf_config.hpp"
#include "roofline/model/lowering.hpp"

namespace roofline::model {
namespace {

double bytes(const Architecture& architecture, std::string_view mix) {
    const TypePlan plan = gguf_plan(architecture, *find_format(mix), DType::fp16, *find_format("fp16"));
    return count_parameters(lower(architecture, plan)).stored_bytes;
}

Architecture builtin(std::string_view name) {
    auto file = io::builtin_model(name);
    EXPECT_TRUE(file.has_value()) << name;
    return file ? file->architecture : Architecture{};
}

struct Published {
    const char* model;
    const char* mix;
    double gigabytes;  // of the tensors and the metadata
    double metadata;   // vocabulary and merges, in GB
};

void PrintTo(const Published& file, std::ostream* stream) {
    *stream << file.model << " " << file.mix;
}

class GgufFile : public testing::TestWithParam<Published> {};

TEST_P(GgufFile, IsAsLargeAsPublished) {
    const Published& file = GetParam();
    const double ours = bytes(builtin(file.model), file.mix) / 1e9 + file.metadata;
    EXPECT_NEAR(ours, file.gigabytes, 0.005 + 1e-3 * file.gigabytes);  // sizes are given to two digits
}

// Llama-3.2-1B-Instruct: the table of bartowski's GGUF repository (b3821). Its 128,256 words and merges take 7.8 MB.
// Qwen2.5-0.5B, Qwen3-0.6B: as llama-quantize and llama-bench print them, in MiB and without metadata. Llama 2 70B:
// files of TheBloke's repositories. Llama 2 7B: what llama-quantize --help says of LLaMA 7B, which has the same shape,
// in GiB, turned into GB; its vocabulary takes 0.7 MB.
constexpr double gib = 1.073741824;
constexpr double mib = gib / 1024.0;
INSTANTIATE_TEST_SUITE_P(
    All, GgufFile,
    testing::Values(
        Published{"llama-3.2-1b", "q8_0", 1.32, 0.0078}, Published{"llama-3.2-1b", "q6_k", 1.02, 0.0078},
        Published{"llama-3.2-1b", "q5_k_m", 0.91, 0.0078}, Published{"llama-3.2-1b", "q5_k_s", 0.89, 0.0078},
        Published{"llama-3.2-1b", "q4_k_m", 0.81, 0.0078}, Published{"llama-3.2-1b", "q4_k_s", 0.78, 0.0078},
        Published{"qwen2.5-0.5b", "q4_k_m", 373.71 * mib, 0.0}, Published{"qwen3-0.6b", "q4_k_m", 372.65 * mib, 0.0},
        Published{"llama-2-70b", "q4_k_m", 41.42, 0.0007}, Published{"llama-2-7b", "q3_k_s", 2.75 * gib, 0.0007},
        Published{"llama-2-7b", "q3_k_m", 3.07 * gib, 0.0007}, Published{"llama-2-7b", "q3_k_l", 3.35 * gib, 0.0007},
        Published{"llama-2-7b", "q4_k_s", 3.59 * gib, 0.0007}, Published{"llama-2-7b", "q4_k_m", 3.80 * gib, 0.0007},
        Published{"llama-2-7b", "q5_k_s", 4.33 * gib, 0.0007}, Published{"llama-2-7b", "q5_k_m", 4.45 * gib, 0.0007},
        Published{"llama-2-7b", "q6_k", 5.15 * gib, 0.0007}));

TEST(GgufMix, ASmallModelWithATiedTableIsLargerThanTheAverageOfAnEightBillionOne) {
    const Architecture one = builtin("llama-3.2-1b");
    const double parameters = count_parameters(lower(one, uniform_plan(one.layers.size(), *find_format("bf16"),
                                                                       DType::bf16, *find_format("bf16"))))
                                  .total;
    EXPECT_GT(bytes(one, "q4_k_m") * 8.0 / parameters, 5.1);
    EXPECT_NEAR(bytes(builtin("llama-3.1-8b"), "q4_k_m") * 8.0 / 8030261248.0, 4.8944, 0.01);
}

TEST(GgufMix, RowsThatAreNoMultipleOf256TakeAWiderType) {
    // Qwen2.5-0.5B: rows of 896, down projections with rows of 4,864 = 19 x 256. Attention and gate-up in q5_0 (5.5
    // bits) for q4_k, values of more bits in q8_0 for q6_k; the tied table in q8_0.
    const io::Json config = {{"model_type", "qwen2"},     {"hidden_size", 896},         {"num_hidden_layers", 24},
                             {"num_attention_heads", 14}, {"num_key_value_heads", 2},   {"intermediate_size", 4864},
                             {"vocab_size", 151936},      {"tie_word_embeddings", true}};
    const auto model = io::read_hf_config(config, "config.json");
    ASSERT_TRUE(model.has_value());
    const double qk = 896.0 * (896.0 + 128.0);
    const double value = 896.0 * 128.0;
    const double out = 896.0 * 896.0;
    const double gate_up = 896.0 * 2.0 * 4864.0;
    const double down = 4864.0 * 896.0;
    // More bits: layers 0 to 2, 21 to 23, and of those between every third: 5, 8, 11, 14, 17, 20: twelve of 24.
    const double layers = 24.0 * (qk + out + gate_up) * 5.5 + 12.0 * value * (5.5 + 8.5) + 12.0 * down * (4.5 + 6.5625);
    const double biases = 24.0 * (896.0 + 256.0) * 32.0;
    const double norms = 49.0 * 896.0 * 32.0;
    const double expected = (layers + 151936.0 * 896.0 * 8.5 + biases + norms) / 8.0;
    EXPECT_NEAR(bytes(model->architecture, "q4_k_m"), expected, 1.0);
}

}  // namespace
}  // namespace roofline::model

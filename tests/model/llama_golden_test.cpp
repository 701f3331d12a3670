// Llama-3-8B on paper. hidden 4096, 32 layers, 32 heads and 8 KV heads of 128, FFN 14336, vocabulary 128256, untied.
//
// Matrices of a layer, in parameters:
//   qkv      4096 x (4096 + 1024 + 1024) = 4096 x 6144 =  25,165,824
//   out      4096 x 4096                               =  16,777,216
//   gate_up  4096 x 2 x 14336            = 4096 x 28672 = 117,440,512
//   down     14336 x 4096                              =  58,720,256
//   together                                             218,103,808;  x 32 = 6,979,321,856
// head = embedding = 128256 x 4096 = 525,336,576
// norms: 2 x 32 + 1 of 4096 = 266,240
#include <gtest/gtest.h>

#include "model/scenarios.hpp"
#include "roofline/model/lowering.hpp"

namespace roofline::model {
namespace {

using testing::Totals;

struct Row {
    const char* name;
    double count;
    double flops;
    double weights;
    double cache;
    double activations;
};

void expect_rows(const Lowered& lowered, const Step& step, const std::vector<Row>& rows) {
    EXPECT_EQ(lowered.operators.size(), rows.size()) << "an operator without a golden row, or the other way round";
    for (const Row& row : rows) {
        const Operator* op = testing::find(lowered, row.name);
        ASSERT_NE(op, nullptr) << row.name;
        const Totals got = testing::one(lowered, row.name, step);
        EXPECT_EQ(op->count, row.count) << row.name;
        EXPECT_EQ(got.flops, row.flops) << row.name << " flops";
        EXPECT_EQ(got.weights, row.weights) << row.name << " weight bytes";
        EXPECT_EQ(got.cache, row.cache) << row.name << " cache bytes";
        EXPECT_EQ(got.activations, row.activations) << row.name << " activation bytes";
    }
}

TEST(LlamaGolden, EveryOperatorOfADecodeStep) {
    // One token, context 4096, bf16: two bytes a number, two flops a parameter, so flops = weight bytes for matrices.
    const Lowered lowered = testing::lowered(testing::llama_3_8b());
    expect_rows(lowered, decode_step(1, 4096),
                {
                    {"embedding", 1, 0, 8192, 0, 8192},  // one row of 4096 x 2 B read, and written out
                    // 4 flops an element; 4096 gains; read and written
                    {"layers.attention.norm", 32, 16384, 8192, 0, 16384},
                    {"layers.attention.qkv", 32, 50331648, 50331648, 0, 20480},  // 2 x 25,165,824; (4096 + 6144) x 2
                    // 3 flops for each of 32 x 128 + 8 x 128 = 5120; read and written
                    {"layers.attention.rotary", 32, 15360, 0, 0, 20480},
                    // 2 x 8 x 128 = 2048 numbers
                    {"layers.attention.kv_write", 32, 0, 0, 4096, 4096},
                    // 2 x 32 x (128 + 128) x 4096 pairs; 4096 entries of 4096 B; q in and the result out: 2 x 4096 x 2
                    {"layers.attention.core", 32, 67108864, 0, 16777216, 16384},
                    {"layers.attention.out", 32, 33554432, 33554432, 0, 16384},
                    {"layers.attention.residual", 32, 4096, 0, 0, 24576},  // two read, one written
                    {"layers.ffn.norm", 32, 16384, 8192, 0, 16384},
                    {"layers.ffn.gate_up", 32, 234881024, 234881024, 0, 65536},  // (4096 + 28672) x 2
                    {"layers.ffn.activation", 32, 71680, 0, 0, 86016},           // 5 x 14336; (28672 + 14336) x 2
                    {"layers.ffn.down", 32, 117440512, 117440512, 0, 36864},     // (14336 + 4096) x 2
                    {"layers.ffn.residual", 32, 4096, 0, 0, 24576},
                    {"final_norm", 1, 16384, 8192, 0, 16384},
                    {"head", 1, 1050673152, 1050673152, 0, 264704},  // 2 x 525,336,576; (4096 + 128256) x 2
                    {"sampling", 1, 256512, 0, 0, 256514},           // 2 x 128256; 128256 logits in and one token out
                });
}

TEST(LlamaGolden, EveryOperatorOfAPrefill) {
    // 512 tokens of one prompt: 512 x 513 / 2 = 131,328 causal pairs, 512 entries, logits for one position.
    const Lowered lowered = testing::lowered(testing::llama_3_8b());
    expect_rows(lowered, prefill_step(1, 512),
                {
                    {"embedding", 1, 0, 512.0 * 8192, 0, 512.0 * 8192},
                    {"layers.attention.norm", 32, 512.0 * 16384, 8192, 0, 512.0 * 16384},
                    {"layers.attention.qkv", 32, 512.0 * 50331648, 50331648, 0, 512.0 * 20480},
                    {"layers.attention.rotary", 32, 512.0 * 15360, 0, 0, 512.0 * 20480},
                    {"layers.attention.kv_write", 32, 0, 0, 2097152, 2097152},  // 512 x 4096
                    // 16,384 flops a pair x 131,328 = 2,151,677,952; 512 entries of 4096 B
                    {"layers.attention.core", 32, 2151677952, 0, 2097152, 8388608},
                    {"layers.attention.out", 32, 512.0 * 33554432, 33554432, 0, 512.0 * 16384},
                    {"layers.attention.residual", 32, 512.0 * 4096, 0, 0, 512.0 * 24576},
                    {"layers.ffn.norm", 32, 512.0 * 16384, 8192, 0, 512.0 * 16384},
                    {"layers.ffn.gate_up", 32, 512.0 * 234881024, 234881024, 0, 512.0 * 65536},
                    {"layers.ffn.activation", 32, 512.0 * 71680, 0, 0, 512.0 * 86016},
                    {"layers.ffn.down", 32, 512.0 * 117440512, 117440512, 0, 512.0 * 36864},
                    {"layers.ffn.residual", 32, 512.0 * 4096, 0, 0, 512.0 * 24576},
                    {"final_norm", 1, 512.0 * 16384, 8192, 0, 512.0 * 16384},
                    {"head", 1, 1050673152, 1050673152, 0, 264704},
                    {"sampling", 1, 256512, 0, 0, 256514},
                });
}

TEST(LlamaGolden, MatricesStream15009316864BytesWhateverTheStep) {
    // (6,979,321,856 + 525,336,576) x 2 B
    const Lowered lowered = testing::lowered(testing::llama_3_8b());
    for (const Step& step : {decode_step(1, 4096), decode_step(64, 100), prefill_step(1, 512)}) {
        EXPECT_EQ(testing::matrix_totals(lowered, step).weights, 15009316864.0);
    }
    // In flops the head counts for one position, the layers for each token.
    EXPECT_EQ(testing::matrix_totals(lowered, decode_step(1, 4096)).flops, 15009316864.0);
    EXPECT_EQ(testing::matrix_totals(lowered, prefill_step(1, 512)).flops,
              512.0 * 2.0 * 6979321856.0 + 2.0 * 525336576.0);
}

TEST(LlamaGolden, Has8030261248Parameters) {
    const Lowered lowered = testing::lowered(testing::llama_3_8b());
    const ParameterCount count = count_parameters(lowered);
    EXPECT_EQ(count.total, 8030261248.0);  // 6,979,321,856 + 2 x 525,336,576 + 266,240
    EXPECT_EQ(count.embedding, 525336576.0);
    EXPECT_EQ(count.active, 8030261248.0 - 525336576.0);
    EXPECT_EQ(count.stored_bytes, 2.0 * 8030261248.0);
    EXPECT_EQ(active_parameters(lowered, ActiveCounts::everything), 8030261248.0);
    EXPECT_EQ(active_parameters(lowered, ActiveCounts::without_embedding), 7504924672.0);
    EXPECT_EQ(active_parameters(lowered, ActiveCounts::without_embedding_and_head), 6979588096.0);
}

TEST(LlamaGolden, Caches131072BytesAToken) {
    // 2 (K and V) x 8 heads x 128 x 2 B x 32 layers
    const Lowered lowered = testing::lowered(testing::llama_3_8b());
    EXPECT_EQ(kv_bytes_per_token(lowered), 131072.0);
    EXPECT_EQ(kv_bytes_per_token_beyond_windows(lowered), 131072.0);
    EXPECT_EQ(cache_bytes(lowered, 4096), 536870912.0);  // 131,072 x 4096
    EXPECT_EQ(state_bytes_per_sequence(lowered), 0.0);
    // Read in a decode step: all of it; and the new entry is written.
    EXPECT_EQ(testing::totals(lowered, decode_step(1, 4096)).cache, 536870912.0 + 131072.0);
    EXPECT_EQ(kv_bytes_per_token(testing::lowered(testing::llama_3_8b(), {}, "bf16", DType::bf16, "fp8")), 65536.0);
}

TEST(LlamaGolden, QuantisedMatricesShrinkByTheirBits) {
    // AWQ: 6,979,321,856 x 4.15625 / 8 in the layers (every inner dimension is a multiple of 128); the head stays bf16.
    const Lowered awq = testing::lowered(testing::llama_3_8b(), {}, "awq");
    EXPECT_EQ(testing::matrix_totals(awq, decode_step(1, 1)).weights, 6979321856.0 * 4.15625 / 8.0 + 1050673152.0);
    EXPECT_EQ(testing::op_of(awq, "layers.ffn.down").type, DType::bf16);
    EXPECT_EQ(testing::matrix_totals(awq, decode_step(1, 1)).flops, 15009316864.0) << "packing saves no flops";
    // fp8 with fp8 activations: inputs of products are one byte, outputs two.
    const Lowered fp8 = testing::lowered(testing::llama_3_8b(), {}, "fp8", DType::fp8);
    EXPECT_EQ(testing::op_of(fp8, "layers.ffn.down").type, DType::fp8);
    EXPECT_EQ(testing::one(fp8, "layers.ffn.gate_up", decode_step(1, 1)).activations, 4096.0 + 28672.0 * 2.0);
    EXPECT_EQ(testing::op_of(fp8, "head").type, DType::bf16);
}

TEST(LlamaGolden, TheWidestActivationIsThatOfTheGate) {
    // per token: activation reads 28672 and writes 14336, in bf16: 86,016 B
    EXPECT_EQ(testing::lowered(testing::llama_3_8b()).widest_activation, 86016.0);
    EXPECT_EQ(testing::lowered(testing::llama_3_8b()).logits_bytes, 256512.0);
}

}  // namespace
}  // namespace roofline::model

// Operators of serving engines: FLOPs and bytes derived by hand from their arguments, and a small trace as vLLM would
// write it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "roofline/analyze/effort.hpp"
#include "roofline/analyze/engine_ranges.hpp"
#include "roofline/analyze/format.hpp"

namespace roofline::analyze {
namespace {

constexpr const char* bf16 = "c10::BFloat16";
constexpr const char* fp8 = "c10::Float8_e4m3fn";

Argument tensor(std::vector<std::int64_t> dims, const char* type) {
    Argument argument;
    argument.type = type;
    argument.tensors.push_back({std::move(dims), {}});
    return argument;
}

Argument value(const std::string& text) {
    Argument argument;
    argument.type = "Scalar";
    argument.value = text;
    argument.tensors.emplace_back();
    return argument;
}

Argument nothing() {
    Argument argument;
    argument.tensors.emplace_back();
    return argument;
}

std::optional<Effort> effort(const char* name, std::vector<Argument> arguments) {
    Signature signature;
    signature.name = name;
    signature.arguments = std::move(arguments);
    signature.has_shapes = true;
    return effort_of(signature);
}

TEST(Engines, ANormThatAddsReadsAndWritesBothTensors) {
    const auto norm = effort("_C::fused_add_rms_norm",
                             {tensor({8, 4096}, bf16), tensor({8, 4096}, bf16), tensor({4096}, bf16), value("1e-05")});
    ASSERT_TRUE(norm);
    EXPECT_EQ(norm->activations, 2.0 * (4 * 8 * 4096 + 4096));
    EXPECT_EQ(norm->kind, Kind::norm);
}

TEST(Engines, AGatedActivationReadsTwoNumbersForEachItWrites) {
    for (const char* name : {"_C::silu_and_mul", "sgl_kernel::silu_and_mul", "_C::gelu_tanh_and_mul"}) {
        const auto gate = effort(name, {tensor({8, 14336}, bf16), tensor({8, 28672}, bf16)});
        ASSERT_TRUE(gate) << name;
        EXPECT_EQ(gate->activations, 2.0 * 8 * (14336 + 28672)) << name;
    }
}

// q and k are read and written, and of the table one row of 128 for each of the 8 positions.
TEST(Engines, RotaryPositionsReadOnlyTheRowsOfTheirTable) {
    const auto turned =
        effort("_C::rotary_embedding", {tensor({8}, "long int"), tensor({8, 4096}, bf16), tensor({8, 1024}, bf16),
                                        value("128"), tensor({131072, 128}, bf16), value("True")});
    ASSERT_TRUE(turned);
    EXPECT_EQ(turned->activations, 2.0 * 2 * 8 * (4096 + 1024) + 8 * 8 + 8 * 128 * 2.0);
}

TEST(Engines, WritingTheCacheTouchesOnlyWhatIsNew) {
    const auto written = effort("_C_cache_ops::reshape_and_cache_flash",
                                {tensor({8, 8, 128}, bf16), tensor({8, 8, 128}, bf16), tensor({9000, 16, 8, 128}, fp8),
                                 tensor({9000, 16, 8, 128}, fp8), tensor({8}, "long int"), value("fp8")});
    ASSERT_TRUE(written);
    EXPECT_EQ(written->activations, 2.0 * 2 * 8 * 8 * 128);
    EXPECT_EQ(written->kv, 2.0 * 8 * 8 * 128) << "one byte a number in the cache";
}

// vLLM hands over only what is new; SGLang the whole cache beside it. 8 tokens, 8 heads of 128.
TEST(Engines, ACacheIsNotReadWhereItIsWritten) {
    const auto told = effort("vllm::unified_kv_cache_update",
                             {tensor({8, 8, 128}, bf16), tensor({8, 8, 128}, bf16), value("model.layers.0")});
    ASSERT_TRUE(told);
    EXPECT_EQ(told->activations, 2.0 * 2 * 8 * 8 * 128);
    EXPECT_EQ(told->kv, told->activations);
    const auto stored =
        effort("sglang::store_cache", {tensor({8, 1024}, bf16), tensor({8, 1024}, bf16), tensor({900000, 8, 128}, fp8),
                                       tensor({900000, 8, 128}, fp8), tensor({8}, "long int")});
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->activations, told->activations);
    EXPECT_EQ(stored->kv, told->kv / 2.0);
}

// q [8 x 32 x 128] and k [8 x 8 x 128] are read and written, v is read; k and v go into the cache; of the table one row
// of 128 floats for each of 8 positions.
TEST(Engines, TurningMayWriteTheCacheOnItsWay) {
    const auto turned = effort("sglang::apply_rope_inplace_with_kvcache",
                               {tensor({8, 32, 128}, bf16), tensor({8, 8, 128}, bf16), tensor({8, 8, 128}, bf16),
                                tensor({900000, 8, 128}, bf16), tensor({900000, 8, 128}, bf16),
                                tensor({131072, 128}, "float"), tensor({8}, "long int"), tensor({8}, "long int")});
    ASSERT_TRUE(turned);
    EXPECT_EQ(turned->flops, 3.0 * 8 * 40 * 128);
    EXPECT_EQ(turned->activations, 2.0 * 2 * 8 * 40 * 128 + 2.0 * 8 * 8 * 128 + 8 * 8 + 8 * 128 * 4.0);
    EXPECT_EQ(turned->kv, 2.0 * 2 * 8 * 8 * 128);
}

// 300 latents of 576 numbers, one byte each in the cache, two where they are wanted.
TEST(Engines, WhatIsGatheredFromACacheIsReadOnce) {
    const auto gathered = effort("_C_cache_ops::gather_and_maybe_dequant_cache",
                                 {tensor({9000, 64, 576}, fp8), tensor({300, 576}, bf16), tensor({2, 100}, "int"),
                                  tensor({3}, "int"), tensor({300}, "int"), value("300")});
    ASSERT_TRUE(gathered);
    EXPECT_EQ(gathered->kv, 300.0 * 576);
    EXPECT_EQ(gathered->activations, 300.0 * 576 * 2);
}

// One token of 4 sequences in 2,048 channels, 4 taps: 3 inputs of each are kept, read and written.
TEST(Engines, AShortConvolutionKeepsItsLastInputs) {
    const auto one = effort("sgl_kernel::causal_conv1d_update", {tensor({4, 2048}, bf16), tensor({500, 2048, 3}, bf16),
                                                                 tensor({2048, 4}, bf16), nothing()});
    ASSERT_TRUE(one);
    EXPECT_EQ(one->flops, 2.0 * 4 * 4 * 2048);
    EXPECT_EQ(one->activations, 2.0 * 2 * 4 * 2048);
    EXPECT_EQ(one->kv, 2.0 * 3 * 2 * 4 * 2048);
    EXPECT_EQ(one->weights, 2.0 * 2048 * 4);
}

// [8 x 7168] x [2112 x 7168] in eight bits: a scale for 128 numbers of a row, and for 128 x 128 of the weight.
TEST(Engines, DeepGemmHoldsItsScalesBesideItsOperands) {
    for (const char* name : {"vllm::fp8_gemm_nt_op", "sglang::deep_gemm_fp8_fp8_bf16_nt"}) {
        const auto product = effort(name, {tensor({8, 7168}, fp8), tensor({8, 56}, "float"), tensor({2112, 7168}, fp8),
                                           tensor({17, 56}, "float"), tensor({8, 2112}, bf16)});
        ASSERT_TRUE(product) << name;
        EXPECT_EQ(product->flops, 2.0 * 8 * 7168 * 2112) << name;
        EXPECT_EQ(product->weights, 2112.0 * 7168 + 4.0 * 17 * 56) << name;
        EXPECT_EQ(product->activations, 8.0 * 7168 + 4.0 * 8 * 56 + 2.0 * 8 * 2112) << name;
        EXPECT_EQ(product->type, DType::fp8) << name;
    }
}

// 4096 numbers of four bits are 2048 bytes; a scale of eight bits for 16 of them.
TEST(Engines, FourBitProductsOfFlashInferTakeEitherOrder) {
    for (const auto& weight : {std::vector<std::int64_t>{6144, 2048}, std::vector<std::int64_t>{2048, 6144}}) {
        const auto product =
            effort("vllm::flashinfer_mm_fp4", {tensor({8, 2048}, "unsigned char"), tensor(weight, "unsigned char"),
                                               tensor({8, 256}, fp8), tensor({6144, 256}, fp8), tensor({1}, "float")});
        ASSERT_TRUE(product);
        EXPECT_EQ(product->flops, 2.0 * 8 * 4096 * 6144);
        EXPECT_EQ(product->weights, 2048.0 * 6144 + 6144.0 * 256);
        EXPECT_EQ(product->type, DType::fp4);
    }
}

// Q4_K: 144 bytes hold 256 numbers, so a row of 4096 takes 2304.
TEST(Engines, FormatsOfGgufAreMultipliedAsTheyAre) {
    const auto product = effort("_C::ggml_mul_mat_vec_a8", {tensor({11008, 2304}, "unsigned char"),
                                                            tensor({1, 4096}, bf16), value("12"), value("11008")});
    ASSERT_TRUE(product);
    EXPECT_EQ(product->flops, 2.0 * 4096 * 11008);
    EXPECT_EQ(product->weights, 11008.0 * 2304);
}

// 4 tokens with 2 experts each of 8, weights of four bits: [8 x 2816 x 512] bytes for an inner size of 1024.
TEST(Engines, PackedExpertsWithoutMarlinReadThoseThatAreChosen) {
    const auto experts =
        effort("_moe_C::moe_wna16_gemm",
               {tensor({4, 1024}, bf16), tensor({4, 2, 2816}, bf16), tensor({8, 2816, 512}, "unsigned char"),
                tensor({8, 2816, 8}, bf16), nothing(), tensor({4, 2}, "float"), tensor({128}, "int"),
                tensor({8}, "int"), tensor({1}, "int"), value("2"), value("16"), value("32"), value("64"), value("4")});
    ASSERT_TRUE(experts);
    EXPECT_EQ(experts->flops, 2.0 * 8 * 1024 * 2816);
    // Of 8 rows, even routing misses an expert with (7/8)^8 = 0.34361: 5.2511 of 8 are read.
    EXPECT_NEAR(experts->weights, (2816.0 * 512 + 2.0 * 2816 * 8) * 5.2511, 100.0);
}

// out [8 x 4096] = a [8 x 14336] b [14336 x 4096], both of eight bits, with their scales.
TEST(Engines, AScaledProductWritesWhatItIsGiven) {
    const auto product =
        effort("_C::cutlass_scaled_mm", {tensor({8, 4096}, bf16), tensor({8, 14336}, fp8), tensor({14336, 4096}, fp8),
                                         tensor({8, 1}, "float"), tensor({4096, 1}, "float"), nothing()});
    ASSERT_TRUE(product);
    EXPECT_EQ(product->flops, 2.0 * 8 * 4096 * 14336);
    EXPECT_EQ(product->weights, 14336.0 * 4096 + 4.0 * (8 + 4096));
    EXPECT_EQ(product->activations, 2.0 * 8 * 4096 + 8.0 * 14336);
    EXPECT_EQ(product->type, DType::fp8);
}

TEST(Engines, FourBitsAreTwoNumbersAByte) {
    const auto product =
        effort("_C::cutlass_scaled_fp4_mm",
               {tensor({8, 4096}, bf16), tensor({8, 2048}, "unsigned char"), tensor({4096, 2048}, "unsigned char"),
                tensor({128, 256}, fp8), tensor({4096, 256}, fp8), tensor({}, "float")});
    ASSERT_TRUE(product);
    EXPECT_EQ(product->flops, 2.0 * 8 * 4096 * 4096);
    EXPECT_EQ(product->type, DType::fp4);
}

// Marlin names m, n and k; the packed weight is [k/16 x 2n] of 32 bits, which is four bits a number.
TEST(Engines, MarlinTellsItsSizesAsNumbers) {
    const std::vector<Argument> arguments = {tensor({8, 4096}, bf16),
                                             nothing(),
                                             tensor({256, 28672}, "int"),
                                             nothing(),
                                             tensor({32, 14336}, bf16),
                                             nothing(),
                                             nothing(),
                                             nothing(),
                                             nothing(),
                                             nothing(),
                                             tensor({132}, "int"),
                                             value("17"),
                                             value("8"),
                                             value("14336"),
                                             value("4096"),
                                             value("True")};
    const auto product = effort("_C::marlin_gemm", arguments);
    ASSERT_TRUE(product);
    EXPECT_EQ(product->flops, 2.0 * 8 * 14336 * 4096);
    EXPECT_EQ(product->weights, 4.0 * 256 * 28672 + 2.0 * 32 * 14336 + 4.0 * 132);
    EXPECT_EQ(4.0 * 256 * 28672, 14336.0 * 4096 / 2) << "four bits each";
    EXPECT_EQ(product->type, DType::bf16) << "it multiplies what it has unpacked";
}

TEST(Engines, AwqIsAsWideAsItsScales) {
    const auto product =
        effort("_C::awq_gemm", {tensor({8, 4096}, "c10::Half"), tensor({4096, 512}, "int"),
                                tensor({32, 4096}, "c10::Half"), tensor({32, 512}, "int"), value("8")});
    ASSERT_TRUE(product);
    EXPECT_EQ(product->flops, 2.0 * 8 * 4096 * 4096);
}

// 16 tokens with 2 experts each of 8: 32 rows. Even routing misses an expert with (7/8)^32 = 0.01394, so 7.888 are
// read.
TEST(Engines, FusedExpertsReadThoseThatAreChosen) {
    const auto experts = effort("vllm::outplace_fused_experts",
                                {tensor({16, 1024}, bf16), tensor({8, 2048, 1024}, bf16), tensor({8, 1024, 1024}, bf16),
                                 tensor({16, 2}, "float"), tensor({16, 2}, "int")});
    ASSERT_TRUE(experts);
    EXPECT_EQ(experts->flops, 2.0 * 32 * (1024 * 2048 + 1024 * 1024));
    EXPECT_NEAR(experts->weights, 7.888 * 2.0 * (2048 * 1024 + 1024 * 1024), 0.001 * experts->weights);
    EXPECT_TRUE(experts->own_kernels);
    EXPECT_TRUE(experts->estimated);
}

// Four sequences that write one token each with up to 1000 in the cache, of 32 heads over 8 of 128: pages are not read
// whole.
TEST(Engines, AttentionOverPagesReadsTheLongestLengthForEach) {
    const std::vector<Argument> arguments = {tensor({4, 32, 128}, bf16),
                                             tensor({9000, 16, 8, 128}, bf16),
                                             tensor({9000, 16, 8, 128}, bf16),
                                             tensor({4, 32, 128}, bf16),
                                             tensor({5}, "int"),
                                             tensor({5}, "int"),
                                             tensor({4}, "int"),
                                             nothing(),
                                             tensor({4, 512}, "int"),
                                             nothing(),
                                             value("1"),
                                             value("1000"),
                                             value("0."),
                                             value("0.088"),
                                             value("False"),
                                             value("True")};
    const auto attention = effort("_vllm_fa2_C::varlen_fwd", arguments);
    ASSERT_TRUE(attention);
    EXPECT_EQ(attention->flops, 2.0 * 4 * 32 * 1000 * (128 + 128));
    EXPECT_EQ(attention->kv, 2.0 * 4 * 1000 * 8 * 256);
    EXPECT_EQ(attention->attention->batch, 4.0);
    EXPECT_EQ(attention->attention->keys, 1000.0);
}

// Two prompts of together 300 tokens, the longer of 200: alike, each has 150, and 150 * 151 / 2 pairs.
TEST(Engines, PackedPromptsAreNotOneLongSequence) {
    const std::vector<Argument> arguments = {tensor({300, 32, 128}, bf16),
                                             tensor({300, 8, 128}, bf16),
                                             tensor({300, 8, 128}, bf16),
                                             tensor({3}, "int"),
                                             tensor({3}, "int"),
                                             value("200"),
                                             value("200"),
                                             value("0."),
                                             value("0.088"),
                                             value("True")};
    const auto attention = effort("flash_attn::_flash_attn_varlen_forward", arguments);
    ASSERT_TRUE(attention);
    EXPECT_EQ(attention->flops, 2.0 * 2 * 32 * (150.0 * 151 / 2) * 256);
    EXPECT_TRUE(attention->estimated);
}

TEST(Engines, UnknownLengthsAreNotGuessed) {
    EXPECT_FALSE(
        effort("vllm::unified_attention_with_output", {tensor({4, 32, 128}, bf16), tensor({4, 8, 128}, bf16),
                                                       tensor({4, 8, 128}, bf16), tensor({4, 32, 128}, bf16)}));
}

TEST(EngineRanges, SayHowManyReadAndHowManyWrite) {
    const auto plain = scheduled_in("execute_context_1(512)_generation_3(3)");
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->reading.requests, 1.0);
    EXPECT_EQ(plain->reading.tokens, 512.0);
    EXPECT_EQ(plain->writing.requests, 3.0);
    EXPECT_EQ(plain->writing.lengths, 0.0);
    const auto detailed =
        scheduled_in("execute_515_context_1(sq512sk768sqsq262144sqsk393216)_generation_3(sq3sk3000sqsq3sqsk3000)");
    ASSERT_TRUE(detailed);
    EXPECT_EQ(detailed->reading.tokens, 512.0);
    EXPECT_EQ(detailed->reading.lengths, 768.0);
    EXPECT_EQ(detailed->writing.lengths, 3000.0);
    for (const char* other : {"", "context_", "execute_context_1(512)", "context_(1)_generation_(2)",
                              "context_1)_generation_2(", "execute_context_0(0)_generation_0(0)"})
        EXPECT_FALSE(scheduled_in(other)) << other;
}

/// A trace of engine operators one after another, each with one kernel, inside one range.
class EngineTrace {
  public:
    explicit EngineTrace(const std::string& range) : range_(range) {}

    void op(const std::string& name, const std::string& dims, const std::string& types, const std::string& kernel,
            const std::string& values = "[]") {
        const int begin = 100 + 20 * count_;
        events_ += fmt::format(
            R"(,{{"ph":"X","cat":"cpu_op","name":"{}","pid":1,"tid":1,"ts":{},"dur":10,"args":{{"External id":{},"Input Dims":{},"Input type":{},"Concrete Inputs":{}}}}})",
            name, begin, count_, dims, types, values);
        events_ += fmt::format(
            R"(,{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},"dur":2,"args":{{"correlation":{}}}}})",
            begin + 1, count_);
        events_ += fmt::format(
            R"(,{{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":7,"ts":{},"dur":5,"args":{{"device":0,"stream":7,"correlation":{},"External id":{}}}}})",
            kernel, begin + 4, count_, count_);
        ++count_;
    }

    std::string text() const {
        return fmt::format(
            R"({{"deviceProperties":[{{"id":0,"name":"NVIDIA H100 80GB HBM3"}}],"traceEvents":[{{"ph":"X","cat":"user_annotation","name":"{}","pid":1,"tid":1,"ts":90,"dur":{}}}{}]}})",
            range_, 100 + 20 * count_, events_);
    }

  private:
    std::string range_;
    std::string events_;
    int count_ = 0;
};

constexpr const char* b2 = R"(["c10::BFloat16","c10::BFloat16"])";
constexpr const char* b3 = R"(["c10::BFloat16","c10::BFloat16","c10::BFloat16"])";

/// Three layers of an engine in a step that writes four tokens.
std::string engine_decode(const std::string& range) {
    EngineTrace trace(range);
    trace.op("aten::embedding", "[[32000,1024],[4]]", R"(["c10::BFloat16","long int"])", "indexSelectLargeIndex");
    for (int layer = 0; layer < 3; ++layer) {
        trace.op("_C::fused_add_rms_norm", "[[4,1024],[4,1024],[1024]]", b3, "fused_add_rms_norm_kernel");
        trace.op("aten::mm", "[[4,1024],[1024,1536]]", b2, "nvjet_qkv");
        trace.op("_C::rotary_embedding", "[[4],[4,1024],[4,256],[],[4096,64]]",
                 R"(["long int","c10::BFloat16","c10::BFloat16","Scalar","c10::BFloat16"])", "rotary_embedding_kernel");
        trace.op("_C_cache_ops::reshape_and_cache_flash", "[[4,4,64],[4,4,64],[99,16,4,64],[99,16,4,64],[4]]",
                 R"(["c10::BFloat16","c10::BFloat16","c10::BFloat16","c10::BFloat16","long int"])",
                 "reshape_and_cache_flash_kernel");
        trace.op(
            "_vllm_fa2_C::varlen_fwd", "[[4,16,64],[99,16,4,64],[99,16,4,64],[4,16,64],[5],[5],[4],[],[4,32],[],[],[]]",
            R"(["c10::BFloat16","c10::BFloat16","c10::BFloat16","c10::BFloat16","int","int","int","","int","","Scalar","Scalar"])",
            "flash_fwd_splitkv_kernel", R"(["","","","","","","","","","","1","100"])");
        trace.op("aten::mm", "[[4,1024],[1024,1024]]", b2, "nvjet_out");
        trace.op("_C::fused_add_rms_norm", "[[4,1024],[4,1024],[1024]]", b3, "fused_add_rms_norm_kernel");
        trace.op("aten::mm", "[[4,1024],[1024,5632]]", b2, "nvjet_up");
        trace.op("_C::silu_and_mul", "[[4,2816],[4,5632]]", b2, "act_and_mul_kernel");
        trace.op("aten::mm", "[[4,2816],[2816,1024]]", b2, "nvjet_down");
    }
    trace.op("_C::fused_add_rms_norm", "[[4,1024],[4,1024],[1024]]", b3, "fused_add_rms_norm_kernel");
    trace.op("aten::mm", "[[4,1024],[1024,32000]]", b2, "nvjet_head");
    return trace.text();
}

const Record* find(const AccountStage& stage, const std::string& name) {
    for (const Record& record : stage.records) {
        if (record.name == name) return &record;
    }
    return nullptr;
}

TEST(Engines, AStepOfAnEngineFallsIntoItsRoles) {
    Input input = Input::from_memory("made.json", engine_decode("execute_context_0(0)_generation_4(4)"));
    const auto analysis = analyze(input, {});
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(analysis->explained_time, analysis->kernel_time);
    EXPECT_EQ(analysis->layers, 3.0);
    ASSERT_EQ(analysis->account.stages.size(), 1U);
    const AccountStage& decode = analysis->account.stages[0];
    EXPECT_EQ(decode.name, "decode");
    EXPECT_EQ(decode.batch, 4.0);
    EXPECT_EQ(decode.context, 100.0);
    const std::vector<std::pair<const char*, double>> counts = {{"embedding", 1},
                                                                {"layers.attention.qkv", 3},
                                                                {"layers.attention.rotary", 3},
                                                                {"layers.attention.kv_write", 3},
                                                                {"layers.attention.core", 3},
                                                                {"layers.attention.out", 3},
                                                                {"layers.ffn.gate_up", 3},
                                                                {"layers.ffn.activation", 3},
                                                                {"layers.ffn.down", 3},
                                                                {"head", 1}};
    for (const auto& [name, count] : counts) {
        const Record* record = find(decode, name);
        ASSERT_NE(record, nullptr) << name;
        EXPECT_EQ(record->count, count) << name;
    }
    EXPECT_EQ(find(decode, "layers.attention.core")->work.flops.value, 3.0 * 2 * 4 * 16 * 100 * 128);
}

// One prompt of 512 tokens beside three sequences that write: the engine says so, the shapes need not.
TEST(Engines, AMixedStepIsHeldAgainstAMixedStep) {
    Input input = Input::from_memory(
        "made.json", engine_decode("execute_515_context_1(sq512sk512sqsq1sqsk1)_generation_3(sq3sk300sqsq3sqsk300)"));
    Options options;
    const auto analysis = analyze(input, options);
    ASSERT_TRUE(analysis) << analysis.error().text;
    ASSERT_EQ(analysis->steps.size(), 1U);
    EXPECT_EQ(analysis->account.stages[0].name, "mixed");
    EXPECT_EQ(analysis->steps[0].batch, 3.0);
    EXPECT_EQ(analysis->steps[0].tokens, 515.0);
    EXPECT_EQ(analysis->steps[0].context, 100.0);
}

}  // namespace
}  // namespace roofline::analyze

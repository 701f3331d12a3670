#include "roofline/io/quantization.hpp"

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "roofline/io/hf_config.hpp"
#include "roofline/io/module_patterns.hpp"
#include "roofline/model/lowering.hpp"

namespace roofline::io {
namespace {

using model::Role;
using model::WeightType;

/// Two layers; every inner width is a multiple of 128, so that blocks and groups come out even.
Json dense(const Json& extra = Json::object()) {
    Json config = {{"model_type", "llama"},    {"hidden_size", 256},        {"num_hidden_layers", 2},
                   {"num_attention_heads", 4}, {"num_key_value_heads", 4},  {"intermediate_size", 512},
                   {"vocab_size", 1000},       {"torch_dtype", "bfloat16"}, {"tie_word_embeddings", false}};
    config.update(extra);
    return config;
}

Json mixture(const Json& extra) {
    Json config = dense({{"model_type", "mixtral"}, {"num_local_experts", 4}, {"num_experts_per_tok", 2}});
    config.update(extra);
    return config;
}

HfModel read(const Json& config) {
    auto model = read_hf_config(config, "config.json");
    EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().text);
    return model ? *model : HfModel{};
}

std::string format(const HfModel& model, std::size_t layer, Role role) {
    return std::string(model.types.of(layer, role).format.name);
}

std::string head(const HfModel& model) {
    return std::string(model.types.outside_layers(Role::head).format.name);
}

double bits(const HfModel& model, Role role) {
    return bits_per_element(model.types.of(0, role).format);
}

constexpr std::array matrices = {Role::attention_qkv, Role::attention_out, Role::ffn_gate_up, Role::ffn_down};

// ---- patterns

TEST(ModuleMatches, APlainNameMeansTheModuleAndWhatIsInsideIt) {
    EXPECT_TRUE(module_matches("self_attn", "layers.3.self_attn.q_proj"));
    EXPECT_TRUE(module_matches("layers.3.self_attn", "layers.3.self_attn.q_proj"));
    EXPECT_TRUE(module_matches("q_proj", "layers.3.self_attn.q_proj"));
    EXPECT_FALSE(module_matches("layers.3", "layers.30.self_attn.q_proj"));
    EXPECT_FALSE(module_matches("attn", "layers.3.self_attn.q_proj"));
    EXPECT_FALSE(module_matches("mlp.gate", "layers.3.mlp.gate_proj"));
}

TEST(ModuleMatches, AStarMeansAnything) {
    EXPECT_TRUE(module_matches("layers.*.self_attn*", "layers.3.self_attn.q_proj"));
    EXPECT_TRUE(module_matches("*.attn.*", "layers.3.attn.wq_a"));
    EXPECT_TRUE(module_matches("layers.1*", "layers.1.mlp.up_proj"));
    EXPECT_TRUE(module_matches("layers.1*", "layers.12.mlp.up_proj"));
    EXPECT_FALSE(module_matches("layers.1*", "layers.2.mlp.up_proj"));
    EXPECT_FALSE(module_matches("*.attn.*", "layers.3.self_attn.q_proj"));
    EXPECT_TRUE(module_matches("layers.*.mlp.experts.*.w1", "layers.3.mlp.experts.0.w1"));
    EXPECT_FALSE(module_matches("layers.*.mlp.gate", "layers.3.mlp.gate_proj"));
}

TEST(ModuleMatches, APatternThatNamesAContainerMeansWhatIsInsideItToo) {
    // "model.language_model.layers.*.mlp.experts": NVFP4 of Qwen3.6 lists the experts by their container.
    EXPECT_TRUE(module_matches("layers.*.mlp.experts", "layers.3.mlp.experts.0.gate_proj"));
    EXPECT_TRUE(module_matches("layers.*.self_attn", "layers.3.self_attn.q_proj"));
    EXPECT_FALSE(module_matches("layers.*.mlp.expert", "layers.3.mlp.experts.0.gate_proj"));
}

TEST(ModuleMatches, SimpleExpressions) {
    EXPECT_TRUE(module_matches("re:.*self_attn.*", "layers.3.self_attn.q_proj"));
    EXPECT_TRUE(module_matches("re:.*shared_experts.*", "layers.3.mlp.shared_experts.up_proj"));
    EXPECT_FALSE(module_matches("re:.*self_attn.*", "layers.3.mlp.up_proj"));
    EXPECT_TRUE(module_matches("re:^lm_head$", "lm_head"));
    EXPECT_TRUE(module_matches(R"(re:.*layers\.0\..*)", "layers.0.mlp.up_proj"));
    EXPECT_FALSE(module_matches(R"(re:.*layers\.0\..*)", "layers.10.mlp.up_proj"));
}

TEST(ModuleMatches, AlternativesInAnExpression) {
    // Kimi K2.5 keeps its dense layer in 16 bits this way, and its experts out of it.
    const char* pattern = R"(re:.*mlp\.(gate|up|gate_up|down)_proj.*)";
    EXPECT_TRUE(module_matches(pattern, "layers.0.mlp.gate_proj"));
    EXPECT_TRUE(module_matches(pattern, "layers.0.mlp.gate_up_proj"));
    EXPECT_TRUE(module_matches(pattern, "layers.0.mlp.down_proj"));
    EXPECT_FALSE(module_matches(pattern, "layers.0.mlp.experts.0.gate_proj"));
}

TEST(ModuleMatches, EmptyAndEndlessPatternsAreHarmless) {
    EXPECT_FALSE(module_matches("", "layers.3.mlp.up_proj"));
    EXPECT_FALSE(module_matches(std::string(2000, '*') + "x", "layers.3.mlp.up_proj"));
    EXPECT_TRUE(module_matches(std::string(2000, '*'), "layers.3.mlp.up_proj"));
}

// ---- methods

TEST(Quantisation, WithoutAnyEverythingIsTheCheckpointsType) {
    const HfModel model = read(dense());
    for (const Role role : matrices) EXPECT_EQ(format(model, 0, role), "bf16");
    EXPECT_EQ(model.types.kv.name, "bf16");
    EXPECT_EQ(model.types_summary, "bf16");
}

TEST(Quantisation, Fp8InBlocks) {
    const HfModel model =
        read(dense({{"quantization_config", {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}}}}));
    for (const Role role : matrices) {
        EXPECT_EQ(format(model, 1, role), "fp8_block");
        EXPECT_EQ(model.types.of(1, role).compute(), DType::fp8);
    }
    EXPECT_EQ(format(model, 0, Role::norm), "bf16");
    EXPECT_EQ(head(model), "bf16");
    EXPECT_EQ(model.types.outside_layers(Role::embedding).format.name, "bf16");
    // A layer: qkv 256x768, out 256x256, gate and up 256x1024, down 512x256 = 655,360 bytes and a 4-byte scale for each
    // of 2x6 + 2x2 + 2x8 + 4x2 = 40 blocks; norms 2 x 256 x 2. Tables 2 x 1000x256 x 2, the last norm 256 x 2.
    const auto count = model::count_parameters(model::lower(model.architecture, model.types));
    EXPECT_EQ(count.stored_bytes, 2.0 * (655360.0 + 160.0 + 1024.0) + 1024000.0 + 512.0);
}

TEST(Quantisation, Fp8PerTensorHasNoScalesWorthCounting) {
    const HfModel model = read(dense({{"quantization_config", {{"quant_method", "fp8"}}}}));
    EXPECT_EQ(format(model, 0, Role::ffn_down), "fp8");
    EXPECT_EQ(bits(model, Role::ffn_down), 8.0);
}

TEST(Quantisation, ModulesNotConvertedStayAsTheyWere) {
    const HfModel model = read(dense({{"quantization_config",
                                       {{"quant_method", "fp8"},
                                        {"weight_block_size", {128, 128}},
                                        {"modules_to_not_convert", {"model.layers.0.mlp.down_proj", "self_attn"}}}}}));
    EXPECT_EQ(format(model, 0, Role::ffn_down), "bf16");
    EXPECT_EQ(format(model, 1, Role::ffn_down), "fp8_block");
    EXPECT_EQ(format(model, 0, Role::ffn_gate_up), "fp8_block");
    EXPECT_EQ(format(model, 1, Role::attention_qkv), "bf16");
    EXPECT_EQ(format(model, 1, Role::attention_out), "bf16");
}

TEST(Quantisation, Mxfp4IsOfTheExpertsAlone) {
    const HfModel model = read(mixture({{"quantization_config", {{"quant_method", "mxfp4"}}}}));
    EXPECT_EQ(format(model, 0, Role::expert_gate_up), "mxfp4");
    EXPECT_EQ(format(model, 1, Role::expert_down), "mxfp4");
    EXPECT_EQ(bits(model, Role::expert_down), 4.25);  // 4, and 8 bits for 32
    EXPECT_EQ(model.types.of(0, Role::expert_down).compute(), DType::bf16);
    EXPECT_EQ(format(model, 0, Role::attention_qkv), "bf16");
    EXPECT_EQ(format(model, 0, Role::router), "bf16");
}

TEST(Quantisation, AwqHasAScaleAndAZeroPointForEachGroup) {
    const HfModel model = read(dense(
        {{"quantization_config", {{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}, {"zero_point", true}}}}));
    EXPECT_EQ(bits(model, Role::ffn_down), 4.0 + (16.0 + 4.0) / 128.0);
    EXPECT_EQ(model.types.of(0, Role::ffn_down).compute(), DType::bf16);  // unpacked, not multiplied in int4
    EXPECT_EQ(head(model), "bf16");
}

TEST(Quantisation, GptqStoresZeroPointsEvenWhereItIsSymmetric) {
    const auto gptq = [](const Json& extra) {
        Json config = {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 64}};
        config.update(extra);
        return read(dense({{"quantization_config", config}}));
    };
    EXPECT_EQ(bits(gptq({{"sym", true}}), Role::ffn_down), 4.0 + 20.0 / 64.0);
    EXPECT_EQ(bits(gptq({{"sym", false}}), Role::ffn_down), 4.0 + 20.0 / 64.0);
    EXPECT_EQ(bits(gptq({{"bits", 8}, {"sym", true}}), Role::ffn_down), 8.0 + 24.0 / 64.0);
    EXPECT_EQ(format(gptq({{"bits", 8}}), 0, Role::ffn_down), "int8");
}

TEST(Quantisation, AGroupSizeOfMinusOneMeansOneScaleForEachChannel) {
    const HfModel model =
        read(dense({{"quantization_config", {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", -1}}}}));
    // down is 512 x 256: half a byte each, and 20 bits for each of 256 columns.
    EXPECT_EQ(model.types.of(0, Role::ffn_down).bytes(512.0, 256.0).value, 65536.0 + 640.0);
}

TEST(Quantisation, AGroupSizeThatIsNoSizeIsRefusedOrHarmless) {
    for (const Json& size : {Json(0.5), Json(1e30), Json(-1), Json(0), Json(1e-300)}) {
        const auto awq =
            read_hf_config(dense({{"quantization_config", {{"quant_method", "awq"}, {"group_size", size}}}}), "c.json");
        const auto groups =
            read_hf_config(dense({{"quantization_config",
                                   {{"quant_method", "compressed-tensors"},
                                    {"config_groups",
                                     {{"group_0",
                                       {{"targets", {"Linear"}},
                                        {"weights", {{"num_bits", 4}, {"type", "int"}, {"group_size", size}}}}}}}}}}),
                           "c.json");
        for (const auto* model : {&awq, &groups}) {
            if (!*model) continue;
            const Format& used = (*model)->types.of(0, Role::ffn_down).format;
            if (used.scaling == Scaling::group) {
                EXPECT_GE(used.group, 1) << size;
            }
            const double bytes =
                model::count_parameters(model::lower((*model)->architecture, (*model)->types)).stored_bytes;
            EXPECT_LT(bytes, 1e9) << size;
        }
    }
}

TEST(Quantisation, CompressedTensorsInt4WithGroupsOf32) {
    // As Kimi K2.5: 4 bits and a 16-bit scale for 32, symmetric.
    const Json config = {
        {"quant_method", "compressed-tensors"},
        {"ignore", {"lm_head", "re:.*self_attn.*"}},
        {"config_groups",
         {{"group_0",
           {{"targets", {"Linear"}},
            {"input_activations", nullptr},
            {"weights", {{"num_bits", 4}, {"type", "int"}, {"group_size", 32}, {"symmetric", true}}}}}}}};
    const HfModel model = read(dense({{"quantization_config", config}}));
    EXPECT_EQ(bits(model, Role::ffn_gate_up), 4.5);
    EXPECT_EQ(model.types.of(0, Role::ffn_gate_up).compute(), DType::bf16);
    EXPECT_EQ(format(model, 0, Role::attention_qkv), "bf16");
    EXPECT_EQ(head(model), "bf16");
}

TEST(Quantisation, CompressedTensorsW8A8) {
    const auto groups = [](const char* type) {
        return Json{{"quant_method", "compressed-tensors"},
                    {"config_groups",
                     {{"group_0",
                       {{"targets", {"Linear"}},
                        {"input_activations", {{"num_bits", 8}, {"type", type}}},
                        {"weights", {{"num_bits", 8}, {"type", type}, {"strategy", "channel"}}}}}}}};
    };
    EXPECT_EQ(read(dense({{"quantization_config", groups("int")}})).types.of(0, Role::ffn_down).compute(), DType::int8);
    EXPECT_EQ(read(dense({{"quantization_config", groups("float")}})).types.of(0, Role::ffn_down).compute(),
              DType::fp8);
}

TEST(Quantisation, ModeloptNvfp4WithExclusions) {
    const Json file = {
        {"quantization",
         {{"quant_algo", "NVFP4"},
          {"group_size", 16},
          {"kv_cache_quant_algo", "FP8"},
          {"exclude_modules", {"lm_head", "model.layers.*.self_attn*", "model.layers.1.mlp.down_proj"}}}}};
    const HfModel model = read(dense({{"hf_quant_config", file}}));
    EXPECT_EQ(format(model, 0, Role::ffn_gate_up), "nvfp4");
    EXPECT_EQ(bits(model, Role::ffn_gate_up), 4.5);  // 4, and 8 bits for 16
    EXPECT_EQ(model.types.of(0, Role::ffn_gate_up).compute(), DType::fp4);
    EXPECT_EQ(format(model, 0, Role::attention_qkv), "bf16");
    EXPECT_EQ(format(model, 0, Role::ffn_down), "nvfp4");
    EXPECT_EQ(format(model, 1, Role::ffn_down), "bf16");
    EXPECT_EQ(model.types.kv.name, "fp8");
    EXPECT_EQ(head(model), "bf16");
}

TEST(Quantisation, AnExclusionOfLayerOneDoesNotMeanLayerTen) {
    Json config = dense({{"num_hidden_layers", 12}});
    config["hf_quant_config"] = {{"quantization", {{"quant_algo", "FP8"}, {"exclude_modules", {"model.layers.1.*"}}}}};
    const HfModel model = read(config);
    EXPECT_EQ(format(model, 1, Role::ffn_down), "bf16");
    EXPECT_EQ(format(model, 10, Role::ffn_down), "fp8");
    EXPECT_EQ(format(model, 11, Role::ffn_down), "fp8");
}

TEST(Quantisation, LayersOfAnotherPartOfTheModelAreNotItsLayers) {
    // Prediction layers and vision towers number their layers from 0 too.
    for (const char* pattern :
         {"mtp.layers.0*", "mtp.layers.0.mlp.down_proj", "vision_tower.encoder.layers.0.mlp*", "visual.layers.0"}) {
        const Json file = {{"quantization", {{"quant_algo", "NVFP4"}, {"exclude_modules", {pattern}}}}};
        const HfModel model = read(dense({{"hf_quant_config", file}}));
        EXPECT_EQ(format(model, 0, Role::ffn_down), "nvfp4") << pattern;
        EXPECT_EQ(format(model, 0, Role::attention_qkv), "nvfp4") << pattern;
    }
}

TEST(Quantisation, MixedPrecisionQuantisesOnlyWhatItLists) {
    const Json file = {{"quantization",
                        {{"quant_algo", "MIXED_PRECISION"},
                         {"quantized_layers",
                          {{"model.layers.*.self_attn.q_proj", {{"quant_algo", "FP8"}}},
                           {"model.layers.*.mlp.gate_proj", {{"quant_algo", "W4A16_NVFP4"}, {"group_size", 16}}},
                           {"model.layers.1.mlp.down_proj", {{"quant_algo", "MXFP8"}}},
                           {"lm_head", {{"quant_algo", "NVFP4"}}}}}}}};
    const HfModel model = read(dense({{"hf_quant_config", file}}));
    EXPECT_EQ(format(model, 0, Role::attention_qkv), "fp8");
    EXPECT_EQ(format(model, 0, Role::attention_out), "bf16");
    EXPECT_EQ(format(model, 0, Role::ffn_gate_up), "nvfp4");
    EXPECT_EQ(model.types.of(0, Role::ffn_gate_up).compute(), DType::bf16);  // A16: activations stay wide
    EXPECT_EQ(format(model, 0, Role::ffn_down), "bf16");
    EXPECT_EQ(format(model, 1, Role::ffn_down), "mxfp8");
    EXPECT_EQ(head(model), "nvfp4");
    EXPECT_EQ(model.types.outside_layers(Role::embedding).format.name, "bf16");
}

TEST(Quantisation, ExpertsListedByTheirContainer) {
    const Json file = {
        {"quantization",
         {{"quant_algo", "MIXED_PRECISION"},
          {"quantized_layers", {{"model.layers.*.block_sparse_moe.experts", {{"quant_algo", "NVFP4"}}}}}}}};
    const HfModel model = read(mixture({{"hf_quant_config", file}}));
    EXPECT_EQ(format(model, 0, Role::expert_gate_up), "nvfp4");
    EXPECT_EQ(format(model, 0, Role::expert_down), "nvfp4");
    EXPECT_EQ(format(model, 0, Role::attention_qkv), "bf16");
}

TEST(Quantisation, AnEightBitCacheIsSaidInThreeWays) {
    EXPECT_EQ(read(dense({{"hf_quant_config", {{"quantization", {{"kv_cache_quant_algo", "FP8"}}}}}})).types.kv.name,
              "fp8");
    EXPECT_EQ(read(dense({{"quantization_config", {{"quant_method", "modelopt"}, {"kv_cache_scheme", "FP8"}}}}))
                  .types.kv.name,
              "fp8");
    EXPECT_EQ(read(dense({{"quantization_config",
                           {{"quant_method", "modelopt"}, {"kv_cache_scheme", {{"num_bits", 8}, {"type", "float"}}}}}}))
                  .types.kv.name,
              "fp8");
    EXPECT_EQ(read(dense({{"hf_quant_config", {{"quantization", {{"kv_cache_quant_algo", nullptr}}}}}})).types.kv.name,
              "bf16");
}

std::string problem(const Json& extra) {
    const auto model = read_hf_config(dense(extra), "config.json");
    return model ? std::string("no problem") : model.error().text;
}

TEST(Quantisation, OneThatIsNotKnownIsRefusedByItsField) {
    // Weights counted in the plain type instead would be several times too large.
    EXPECT_EQ(problem({{"quantization_config", {{"quant_method", "abacus"}}}}),
              "config.json: quantization_config.quant_method is \"abacus\", a quantisation that is not known here");
    EXPECT_EQ(
        problem({{"hf_quant_config", {{"quantization", {{"quant_algo", "W3A5"}}}}}}),
        "config.json: hf_quant_config.quantization.quant_algo is \"W3A5\", a quantisation that is not known here");
    EXPECT_EQ(problem({{"quantization_config", {{"quant_method", "modelopt"}, {"quant_algo", "W3A5"}}}}),
              "config.json: quantization_config.quant_algo is \"W3A5\", a quantisation that is not known here");
    EXPECT_NE(problem({{"quantization_config", {{"quant_method", "modelopt"}}}}), "no problem");
}

TEST(Quantisation, MethodsMetNowAndThen) {
    const auto bits_as = [](const Json& quantization) {
        const HfModel model = read(dense({{"quantization_config", quantization}}));
        const WeightType& type = model.types.of(0, Role::ffn_down);
        return type.file_bits.value_or(bits_per_element(type.format));
    };
    EXPECT_EQ(bits_as({{"quant_method", "bitnet"}}), 2.0);
    EXPECT_EQ(bits_as({{"quant_method", "eetq"}}), 8.0);
    EXPECT_EQ(bits_as({{"quant_method", "exl2"}, {"bits", 4.25}, {"head_bits", 6}}), 4.25);
    EXPECT_EQ(bits_as({{"quant_method", "hqq"},
                       {"quant_config", {{"weight_quant_params", {{"nbits", 4}, {"group_size", 64}}}}}}),
              4.5);
    EXPECT_EQ(bits_as({{"quant_method", "quanto"}, {"weights", "int8"}}), 8.0);
    const HfModel quark =
        read(dense({{"quantization_config",
                     {{"quant_method", "quark"},
                      {"exclude", {"lm_head", "*self_attn*"}},
                      {"global_quant_config",
                       {{"weight", {{"dtype", "fp8_e4m3"}}}, {"input_tensors", {{"dtype", "fp8_e4m3"}}}}}}}}));
    EXPECT_EQ(format(quark, 0, Role::ffn_down), "fp8");
    EXPECT_EQ(quark.types.of(0, Role::ffn_down).compute(), DType::fp8);
    EXPECT_EQ(format(quark, 0, Role::attention_qkv), "bf16");
}

TEST(Quantisation, OfANestedLanguageModelMayStandInEitherPlace) {
    const Json quantization = {{"quant_method", "fp8"}};
    const HfModel outer = read({{"text_config", dense()}, {"quantization_config", quantization}});
    const HfModel inner = read({{"text_config", dense({{"quantization_config", quantization}})}});
    EXPECT_EQ(format(outer, 0, Role::ffn_down), "fp8");
    EXPECT_EQ(format(inner, 0, Role::ffn_down), "fp8");
}

TEST(Quantisation, AWrongTypeInItIsNamed) {
    const auto model =
        read_hf_config(dense({{"quantization_config", {{"quant_method", "awq"}, {"bits", "four"}}}}), "config.json");
    ASSERT_FALSE(model.has_value());
    EXPECT_EQ(model.error().text,
              "config.json: quantization_config.bits is \"four\", expected a whole number from 1 to 1e+09");
}

TEST(Quantisation, ASummaryNamesEveryFormatInUseOnce) {
    const Json file = {{"quantization", {{"quant_algo", "NVFP4"}, {"exclude_modules", {"model.layers.*.self_attn*"}}}}};
    const std::string summary = read(dense({{"hf_quant_config", file}})).types_summary;
    EXPECT_NE(summary.find("nvfp4"), std::string::npos) << summary;
    EXPECT_NE(summary.find("bf16"), std::string::npos) << summary;
    // What the model has no weights of is not in use.
    const Json all = {{"quantization", {{"quant_algo", "FP8"}}}};
    EXPECT_EQ(read(dense({{"hf_quant_config", all}})).types_summary, "fp8");
    const Json experts = {{"quant_method", "mxfp4"}};
    EXPECT_EQ(read(dense({{"quantization_config", experts}})).types_summary, "bf16") << "a dense model has no experts";
}

// ---- MLX

double stored(const Json& config) {
    const HfModel model = read(config);
    return model::count_parameters(model::lower(model.architecture, model.types)).stored_bytes;
}

TEST(Mlx, EveryMatrixIsQuantisedTheTablesToo) {
    // A layer has 256 x 768 + 256 x 256 + 256 x 1024 + 512 x 256 = 655,360 weights; table and head 256,000 each. With a
    // 16-bit scale and a 16-bit bias for 64 weights of 4 bits these take 4.5 bits; five norms of 256 stay in 16.
    const double bytes = (2.0 * 655360.0 + 2.0 * 256000.0) * 4.5 / 8.0 + 5.0 * 256.0 * 2.0;
    const Json mlx = {{"group_size", 64}, {"bits", 4}};
    EXPECT_EQ(stored(dense({{"quantization", mlx}})), bytes);
    EXPECT_EQ(stored(dense({{"quantization_config", mlx}})), bytes);  // mlx-lm writes it twice
    EXPECT_EQ(stored(dense({{"quantization", mlx}, {"quantization_config", mlx}})), bytes);
    EXPECT_EQ(read(dense({{"quantization", mlx}})).types_summary, "int4");
}

TEST(Mlx, OtherWidthsAndModesHaveTheirOwnScales) {
    const auto bits_as = [](const Json& quantization) {
        return bits(read(dense({{"quantization", quantization}})), Role::ffn_down);
    };
    EXPECT_EQ(bits_as({{"group_size", 32}, {"bits", 3}}), 4.0);
    EXPECT_EQ(bits_as({{"group_size", 64}, {"bits", 6}}), 6.5);
    EXPECT_EQ(bits_as({{"group_size", 64}, {"bits", 8}}), 8.5);
    EXPECT_EQ(bits_as({{"group_size", 32}, {"bits", 4}, {"mode", "mxfp4"}}), 4.25);
    EXPECT_EQ(bits_as({{"group_size", 16}, {"bits", 4}, {"mode", "nvfp4"}}), 4.5);
    EXPECT_EQ(bits_as({{"group_size", 32}, {"bits", 8}, {"mode", "mxfp8"}}), 8.25);
    EXPECT_EQ(read(dense({{"quantization", {{"group_size", 64}, {"bits", 6}}}})).types_summary, "int6");
}

TEST(Mlx, ModulesMayDiffer) {
    const Json quantization = {{"group_size", 64},
                               {"bits", 4},
                               {"model.embed_tokens", {{"group_size", 64}, {"bits", 8}}},
                               {"lm_head", {{"group_size", 64}, {"bits", 6}}},
                               {"model.layers.0.mlp.down_proj", {{"group_size", 64}, {"bits", 6}}},
                               {"model.layers.1.self_attn.v_proj", {{"group_size", 64}, {"bits", 6}}},
                               {"model.layers.1.self_attn.o_proj", false}};
    const HfModel model = read(dense({{"quantization", quantization}}));
    EXPECT_EQ(bits_per_element(model.types.outside_layers(Role::embedding).format), 8.5);
    EXPECT_EQ(bits_per_element(model.types.outside_layers(Role::head).format), 6.5);
    EXPECT_EQ(format(model, 0, Role::ffn_down), "int6");
    EXPECT_EQ(format(model, 1, Role::ffn_down), "int4");
    EXPECT_EQ(format(model, 1, Role::attention_out), "bf16");
    // q and k in 4.5 bits, v in 6.5: all three are as wide.
    EXPECT_NEAR(model.types.of(1, Role::attention_qkv).file_bits.value_or(0.0), (4.5 + 4.5 + 6.5) / 3.0, 1e-12);
    EXPECT_FALSE(model.types.of(0, Role::attention_qkv).file_bits.has_value());
    const HfModel fused = read(dense({{"quantization",
                                       {{"group_size", 64},
                                        {"bits", 4},
                                        {"model.layers.0.self_attn.qkv_proj", {{"group_size", 64}, {"bits", 8}}}}}}));
    EXPECT_EQ(format(fused, 0, Role::attention_qkv), "int8");
    EXPECT_EQ(format(fused, 1, Role::attention_qkv), "int4");
}

TEST(Mlx, ATiedTableIsQuantisedOnce) {
    const double bytes = (2.0 * 655360.0 + 256000.0) * 4.5 / 8.0 + 5.0 * 256.0 * 2.0;
    const Json config = dense({{"tie_word_embeddings", true}, {"quantization", {{"group_size", 64}, {"bits", 4}}}});
    EXPECT_EQ(stored(config), bytes);
}

TEST(Mlx, RoutersAreMatricesLikeOthers) {
    const HfModel model = read(
        mixture({{"quantization",
                  {{"group_size", 64},
                   {"bits", 4},
                   {"model.layers.1.block_sparse_moe.gate", {{"group_size", 64}, {"bits", 8}}},
                   {"model.layers.1.block_sparse_moe.switch_mlp.down_proj", {{"group_size", 64}, {"bits", 6}}}}}}));
    EXPECT_EQ(format(model, 0, Role::router), "int4");
    EXPECT_EQ(format(model, 1, Role::router), "int8");
    EXPECT_EQ(format(model, 0, Role::expert_down), "int4");
    EXPECT_EQ(format(model, 1, Role::expert_down), "int6");
    EXPECT_EQ(format(model, 1, Role::expert_gate_up), "int4");
}

TEST(Mlx, WhatCannotBeIsRefused) {
    const auto problem_of = [](const Json& quantization) { return problem({{"quantization", quantization}}); };
    EXPECT_EQ(problem_of({{"group_size", 64}, {"bits", 7}}),
              "config.json: quantization.bits is 7, expected 2, 3, 4, 5, 6 or 8");
    EXPECT_EQ(problem_of({{"group_size", 64}}), "config.json: quantization.bits is missing");
    EXPECT_EQ(problem_of({{"group_size", 64}, {"bits", 4}, {"mode", "magic"}}),
              "config.json: quantization.mode is \"magic\", expected affine, mxfp4, nvfp4 or mxfp8");
}

}  // namespace
}  // namespace roofline::io

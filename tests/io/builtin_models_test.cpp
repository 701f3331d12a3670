// Every model the program carries, held against what its publisher says of it, and a few worked out by hand.
#include <cmath>
#include <map>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "roofline/io/catalog.hpp"
#include "roofline/io/embedded.hpp"
#include "roofline/io/names.hpp"
#include "roofline/model/lowering.hpp"

namespace roofline::io {
namespace {

struct Loaded {
    ModelFile file;
    model::Lowered lowered;
    model::ParameterCount count;
};

Loaded load(std::string_view name) {
    auto file = builtin_model(name);
    EXPECT_TRUE(file.has_value()) << (file ? "" : file.error().text);
    if (!file) return {};
    model::Lowered lowered = model::lower(file->architecture, file->types);
    const model::ParameterCount count = model::count_parameters(lowered);
    return {std::move(*file), std::move(lowered), count};
}

/// What a publisher's figure allows. Exact counts: a tenth of a percent (some include rotary buffers or padding rows).
/// Rounded ones: cards round ("37B" for 36.6) or cut ("3.3B" for 3.35), so from half a unit below to one unit above.
/// The unit is that of the last digit shown; a count of three digits or more that ends in zeros (550B) was rounded
/// there.
struct Range {
    double least;
    double most;
};

Range allowed(const PublishedCount& count) {
    if (count.rounding == 0.0) return {count.value * 0.999, count.value * 1.001};
    double unit = 2.0 * count.rounding;
    std::string digits = count.text.substr(0, count.text.size() - 1);
    if (digits.find('.') == std::string::npos && digits.size() >= 3) {
        for (; digits.size() > 1 && digits.back() == '0'; digits.pop_back()) unit *= 10.0;
    }
    return {count.value - unit / 2.0, count.value + unit};
}

/// An embedded file that GoogleTest prints by its name.
struct Named : EmbeddedFile {
    friend void PrintTo(const Named& file, std::ostream* stream) { *stream << file.name; }
};

class BuiltinModel : public testing::TestWithParam<Named> {};

TEST_P(BuiltinModel, HasThePublishedNumberOfParameters) {
    const Loaded model = load(GetParam().name);
    ASSERT_TRUE(model.file.parameters.has_value()) << "no published count to hold it against";
    const Range range = allowed(*model.file.parameters);
    EXPECT_GE(model.count.total, range.least) << model.file.parameters->text;
    EXPECT_LT(model.count.total, range.most) << model.file.parameters->text;
}

TEST_P(BuiltinModel, HasThePublishedNumberOfActiveParameters) {
    const Loaded model = load(GetParam().name);
    const auto& architecture = model.file.architecture;
    if (!model.file.active_parameters) {
        // Then it is dense: every weight but the table that is only looked up in takes part in every token (a tied
        // table is the head and does).
        if (model.count.active + model.count.embedding < model.count.total) {
            EXPECT_EQ(model.file.name.substr(0, 7), "glm-5.2")
                << "a mixture of experts without a published active count";
        }
        return;
    }
    // What "active" counts is the publisher's choice; the file says which one its source made (active_counts), mostly
    // because only that reading fits: DeepSeek leaves the embedding table out and keeps the head (36.6B -> 37B; 37.6B
    // with the table), Mistral and Qwen count both (12.88B -> 12.9B), GLM-5 and MiniMax M3 count neither. A tied table
    // is one table, counted once.
    const Json json = Json::parse(GetParam().text, nullptr, false);
    const std::string convention = json["published"].value("active_counts", "without embedding");
    const double table = architecture.tied ? 0.0 : model.count.embedding;
    const double head = architecture.hidden * architecture.vocabulary;
    double counted = model.count.active;
    if (convention == "everything") counted += table;
    if (convention == "without embedding and head") counted -= head;
    const Range range = allowed(*model.file.active_parameters);
    EXPECT_GE(counted, range.least) << model.file.active_parameters->text << ", " << convention;
    EXPECT_LT(counted, range.most) << model.file.active_parameters->text << ", " << convention;

    // The words of the source and the key say the same.
    const std::string& source = model.file.published_source;
    if (source.find("output head not counted") != std::string::npos) {
        EXPECT_EQ(convention, "without embedding and head") << source;
    } else if (source.find("embedding not counted, output head counted") != std::string::npos) {
        EXPECT_EQ(convention, "without embedding") << source;
    } else if (source.find("embedding counted") != std::string::npos) {
        EXPECT_EQ(convention, "everything") << source;
    }
}

TEST_P(BuiltinModel, PricesADecodeStepWithFiniteNumbers) {
    const Loaded model = load(GetParam().name);
    ASSERT_LE(model.lowered.features.size(), static_cast<std::size_t>(model::max_features));
    model::FeatureValues values{};
    const model::Step step = model::decode_step(3.0, 1000.0);
    for (std::size_t i = 0; i < model.lowered.features.size(); ++i)
        values[i] = model::evaluate(model.lowered.features[i], step);
    double flops = 0.0;
    for (const model::Operator& op : model.lowered.operators) {
        for (const model::Form* form : {&op.flops, &op.weight_bytes, &op.cache_bytes, &op.activation_bytes}) {
            const double value = (*form)(values);
            EXPECT_TRUE(std::isfinite(value) && value >= 0.0) << op.name << ": " << value;
        }
        flops += op.count * op.flops(values);
    }
    // Two flops for each active parameter and token, and something for attention on top.
    EXPECT_GE(flops, 2.0 * 3.0 * model.count.active * 0.98);
}

TEST_P(BuiltinModel, IsStoredInNoMoreThanFourBytesAndNoLessThanHalfAByteAParameter) {
    const Loaded model = load(GetParam().name);
    EXPECT_LE(model.count.stored_bytes, 4.001 * model.count.total);
    EXPECT_GE(model.count.stored_bytes, 0.5 * model.count.total);
}

TEST_P(BuiltinModel, NamedForFewerBitsIsSmallerThanSixteenBits) {
    // A rule that failed to match leaves its weights in 16 bits without a word; the name gives it away.
    const Loaded model = load(GetParam().name);
    const std::string& name = model.file.name;
    const double bytes = model.count.stored_bytes / model.count.total;
    const double most = name.find("nvfp4") != std::string::npos ? 0.8 : name.ends_with("-fp8") ? 1.1 : 4.001;
    EXPECT_LT(bytes, most);
}

std::string test_name(const testing::TestParamInfo<Named>& info) {
    std::string name;
    for (const char c : info.param.name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return name;
}

std::vector<Named> all_models() {
    std::vector<Named> files;
    for (const EmbeddedFile& file : embedded_models()) files.push_back({file});
    return files;
}

INSTANTIATE_TEST_SUITE_P(All, BuiltinModel, testing::ValuesIn(all_models()), test_name);

// ---- names

TEST(BuiltinModels, ThereAreAtLeastAHundred) {
    EXPECT_GE(embedded_models().size(), 100U);
    EXPECT_EQ(builtin_model_names().size(), embedded_models().size());
}

TEST(BuiltinModels, NoTwoAnswerToTheSameName) {
    std::map<std::string, std::string> owner;
    for (const EmbeddedFile& file : embedded_models()) {
        const Json json = Json::parse(file.text, nullptr, false);
        EXPECT_EQ(json["name"], file.name);
        std::vector<std::string> names = {std::string(file.name)};
        for (const Json& alias : json["aliases"]) names.push_back(alias.get<std::string>());
        for (const std::string& name : names) {
            const auto [place, fresh] = owner.try_emplace(normalised(name), file.name);
            EXPECT_TRUE(fresh || place->second == file.name) << name << " is " << place->second << " and " << file.name;
        }
    }
}

TEST(BuiltinModels, AreFoundByHubNamesAndSuggestedWhenMisspelt) {
    EXPECT_EQ(load("meta-llama/Llama-3.1-8B").file.name, "llama-3.1-8b");
    EXPECT_EQ(load("LLAMA 3.1 8B").file.name, "llama-3.1-8b");
    const auto missing = builtin_model("llama-3.1-8c");
    ASSERT_FALSE(missing.has_value());
    EXPECT_NE(missing.error().text.find("llama-3.1-8b"), std::string::npos) << missing.error().text;
}

// ---- KV cache, by hand: layers x 2 (key and value) x KV heads x head size x 2 bytes unless said otherwise

TEST(BuiltinModels, KvBytesPerToken) {
    const auto kv = [](const char* name) { return model::kv_bytes_per_token(load(name).lowered); };
    EXPECT_EQ(kv("llama-3.1-8b"), 131072.0);       // 32 x 2 x 8 x 128 x 2
    EXPECT_EQ(kv("llama-2-7b"), 524288.0);         // 32 x 2 x 32 x 128 x 2
    EXPECT_EQ(kv("mixtral-8x7b"), 131072.0);       // 32 x 2 x 8 x 128 x 2
    EXPECT_EQ(kv("qwen3-30b-a3b"), 98304.0);       // 48 x 2 x 4 x 128 x 2: head_dim 128, not 2048 / 32
    EXPECT_EQ(kv("falcon-7b"), 8192.0);            // 32 x 2 x 1 x 64 x 2: one KV head for 71
    EXPECT_EQ(kv("gpt-oss-120b"), 73728.0);        // 36 x 2 x 8 x 64 x 2
    EXPECT_EQ(kv("gemma-2-9b"), 344064.0);         // 42 x 2 x 8 x 256 x 2
    EXPECT_EQ(kv("deepseek-v3"), 70272.0);         // 61 x (512 + 64) x 2: one latent for all heads
    EXPECT_EQ(kv("deepseek-v3.2"), 78324.0);       // the same and 61 index keys of 128 bytes and a 4-byte scale
    EXPECT_EQ(kv("minimax-m3"), 137472.0);         // 60 x 2 x 4 x 128 x 2, and 57 index keys of 128 x 2
    EXPECT_EQ(kv("llama-3.1-70b-fp8"), 163840.0);  // 80 x 2 x 8 x 128 x 1: its kv_cache_quant_algo is FP8
    EXPECT_EQ(kv("mamba2-2.7b"), 0.0);
}

TEST(BuiltinModels, WindowsStopGrowing) {
    const auto beyond = [](const char* name) { return model::kv_bytes_per_token_beyond_windows(load(name).lowered); };
    EXPECT_EQ(beyond("gpt-oss-120b"), 36864.0);   // 18 of 36 layers see everything
    EXPECT_EQ(beyond("gemma-2-9b"), 172032.0);    // 21 of 42
    EXPECT_EQ(beyond("gemma-3-27b"), 81920.0);    // 10 of 62: 10 x 2 x 16 x 128 x 2
    EXPECT_EQ(beyond("llama-4-scout"), 49152.0);  // 12 of 48, the others stay within chunks: 12 x 2 x 8 x 128 x 2
    EXPECT_EQ(beyond("llama-3.1-8b"), 131072.0);
}

TEST(BuiltinModels, CacheOfASequenceWithWindows) {
    // gemma-2-9b, 10,000 tokens: a layer keeps 2 x 8 x 256 x 2 = 8192 bytes a token; 21 layers keep all 10,000 and 21
    // keep 4096: 21 x 8192 x 14,096.
    EXPECT_EQ(model::cache_bytes(load("gemma-2-9b").lowered, 10000.0), 21.0 * 8192.0 * 14096.0);
    EXPECT_EQ(model::cache_bytes(load("gemma-2-9b").lowered, 1000.0), 42.0 * 8192.0 * 1000.0);
}

TEST(BuiltinModels, DeepSeekV4KeepsAWindowAndPooledEntries) {
    // Of 61 layers (the 62nd ratio is of the prediction layer) 31 pool 128 tokens and 30 pool 4. An entry is 512
    // numbers of 2 bytes. All layers keep a window of 128. Those that pool 4 also keep an index key of 128 + 4 bytes
    // for each entry. Beyond the window a token adds 31 x 1024 / 128 + 30 x 1024 / 4 + 30 x 132 / 4 = 248 + 7680 + 990.
    const Loaded model = load("deepseek-v4-pro");
    EXPECT_EQ(model::kv_bytes_per_token_beyond_windows(model.lowered), 8918.0);
    EXPECT_EQ(model::kv_bytes_per_token(model.lowered), 61.0 * 1024.0 + 8918.0);
}

// ---- bytes of weights, by hand

TEST(BuiltinModels, WeightBytesOfGptOss) {
    // One expert: [2880 x 5760] and [2880 x 2880] in MXFP4, half a byte a number and one byte for 32 of them along the
    // inner 2880 (90 groups): 8,294,400 + 518,400 and 4,147,200 + 259,200, with bf16 biases 11,520 and 5,760:
    // 13,236,480 bytes. The rest of a layer in bf16: qkv 2880 x 5120 + 5120, out 4096 x 2880 + 2880, 64 sinks,
    // two norms of 2880: 26,555,904 parameters, and a router of 2880 x E + E.
    // 20b: 24 x (32 x 13,236,480 + 53,111,808 + 184,384) + 2 tables of 201088 x 2880 x 2 + 5,760 of the last norm.
    EXPECT_EQ(load("gpt-oss-20b").count.stored_bytes, 13761264768.0);
    // 120b: 36 x (128 x 13,236,480 + 53,111,808 + 737,536) + 2,316,533,760 + 5,760. Both are also the total_size of the
    // published safetensors indexes.
    EXPECT_EQ(load("gpt-oss-120b").count.stored_bytes, 65248815744.0);
}

TEST(BuiltinModels, WeightBytesOfDeepSeekV3) {
    // 8-bit floats with a 4-byte scale for each block of 128 x 128; everything that is not a matrix product, the
    // router, the tables and the head in bf16. attention of a layer: 7168x1536 + 1536x24576 + 7168x576 + 512x32768 +
    // 16384x7168 = 187,105,280 bytes,
    //   672 + 2304 + 280 + 1024 + 7168 = 11,448 scales = 45,792 bytes (576 columns are 4.5 blocks: 5),
    //   norms 1536 + 512 + 2x7168 = 16,384 in bf16 = 32,768:                           61 x 187,183,840 =
    //   11,418,214,240
    // dense FFN: 3 x 7168x18432 = 396,361,728 bytes and 24,192 scales = 96,768:         3 x 396,458,496 = 1,189,375,488
    // expert: 3 x 7168x2048 = 44,040,192 bytes and 2,688 scales = 10,752: 44,050,944; 256 and a shared one,
    //   router 7168x256 and 256 biases in bf16 = 3,670,528:                        58 x 11,324,763,136 =
    //   656,836,261,888
    // embedding and head: 2 x 129280x7168 x 2 = 3,706,716,160; the last norm 14,336
    EXPECT_EQ(load("deepseek-v3").count.stored_bytes, 673150582112.0);
}

TEST(BuiltinModels, WeightBytesOfFp8Llamas) {
    // Llama 3.1 70B with one scale a tensor: a layer has 8192x8192 x 2 + 8192x1024 x 2 + 3 x 8192x28672 = 855,638,016
    // bytes and norms of 2 x 8192 x 2; 80 of them, two tables of 128256 x 8192 x 2, the last norm.
    EXPECT_EQ(load("llama-3.1-70b-fp8").count.stored_bytes, 80.0 * 855670784.0 + 4202692608.0 + 16384.0);
    // Qwen3-32B with blocks: 5120x10240 + 8192x5120 + 5120x51200 + 25600x5120 = 487,587,840 bytes, 3200 + 2560 + 16000
    // + 8000 scales x 4, norms (2 x 5120 + 2 x 128) x 2; 64 of them, two tables of 151936 x 5120 x 2, the last norm.
    EXPECT_EQ(load("qwen3-32b-fp8").count.stored_bytes,
              64.0 * (487587840.0 + 119040.0 + 20992.0) + 3111649280.0 + 10240.0);
}

TEST(BuiltinModels, WeightBytesOfKimiK25) {
    // Routed experts alone in 4 bits with a 16-bit scale for 32: 4.5 bits. An expert is 3 x 7168x2048 = 44,040,192
    // numbers; 60 layers of 384. Attention, shared experts, the dense first layer
    // ("re:.*mlp\.(gate|up|gate_up|down)_proj.*") and the head are ignored and stay in bf16: 1,026,408,232,448
    // parameters in all.
    const double experts = 60.0 * 384.0 * 44040192.0;
    EXPECT_EQ(load("kimi-k2.5").count.stored_bytes, experts * 4.5 / 8.0 + (1026408232448.0 - experts) * 2.0);
}

TEST(BuiltinModels, WeightBytesOfQwen35WithNvfp4Experts) {
    // Routed experts alone in NVFP4 (4 bits, 8-bit scale for 16: 4.5): 60 layers of 512 x 3 x 4096x1024. All the rest
    // is excluded. "mtp.layers.0*" speaks of the prediction layer, not of layer 0.
    const double experts = 60.0 * 512.0 * 3.0 * 4096.0 * 1024.0;
    EXPECT_EQ(load("qwen3.5-397b-a17b-nvfp4").count.stored_bytes,
              experts * 4.5 / 8.0 + (396346350336.0 - experts) * 2.0);
}

TEST(BuiltinModels, WeightBytesOfGemma4WithNvfp4Experts) {
    // Routed experts alone in NVFP4: 30 layers of 128 x 3 x 2816x704; "layers.*.mlp*" excludes the dense FFN beside
    // them, not the experts, which are layers.N.experts. The rest of 25.2B (rounded to 0.05B) is in bf16.
    const double experts = 30.0 * 128.0 * 3.0 * 2816.0 * 704.0;
    EXPECT_NEAR(load("gemma-4-26b-a4b-nvfp4").count.stored_bytes, experts * 4.5 / 8.0 + (25.2e9 - experts) * 2.0,
                0.11e9);
}

TEST(BuiltinModels, WeightBytesOfQwen36InMixedPrecision) {
    // 4.5 bits: 40 layers of 257 experts of 3 x 2048x512 (routed and shared) and the head of 248320 x 2048.
    // 8 bits: q with its gate, k, v, o of 10 layers (27,262,976 each), in_proj_qkv, in_proj_z, out_proj of 30
    // (33,554,432). 16 bits: what is left of 34,660,610,688. The two small projections of linear attention (3,932,160
    // in all) may go either way: hence 0.1%.
    const double four = 40.0 * 257.0 * 3.0 * 2048.0 * 512.0 + 248320.0 * 2048.0;
    const double eight = 10.0 * 27262976.0 + 30.0 * 33554432.0;
    const double bytes = four * 4.5 / 8.0 + eight + (34660610688.0 - four - eight) * 2.0;
    EXPECT_NEAR(load("qwen3.6-35b-a3b-nvfp4").count.stored_bytes, bytes, 0.001 * bytes);
}

TEST(BuiltinModels, DeepSeekV4InNvfp4HasNvfp4Experts) {
    // expert_dtype "fp4" is of the original MXFP4 checkpoint; this one's quantized_layers say NVFP4 with groups of 16.
    const Loaded model = load("deepseek-v4-pro-nvfp4");
    const auto& type = model.file.types.of(10, model::Role::expert_gate_up);
    EXPECT_EQ(type.format.name, "nvfp4");
    EXPECT_EQ(load("deepseek-v4-pro").file.types.of(10, model::Role::expert_gate_up).format.name, "mxfp4");
}

}  // namespace
}  // namespace roofline::io

#include "roofline/io/hf_config.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "roofline/io/embedded.hpp"
#include "roofline/io/family.hpp"
#include "roofline/model/lowering.hpp"

namespace roofline::io {
namespace {

/// Small enough to count by hand: 2 layers, width 64, 4 heads of 16, 2 KV heads, FFN of 128, 100 words, untied.
Json tiny() {
    return {{"model_type", "llama"},
            {"hidden_size", 64},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 4},
            {"num_key_value_heads", 2},
            {"intermediate_size", 128},
            {"vocab_size", 100},
            {"torch_dtype", "bfloat16"},
            {"tie_word_embeddings", false},
            {"max_position_embeddings", 512}};
}

HfModel read(const Json& config) {
    auto model = read_hf_config(config, "config.json");
    EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().text);
    return model ? *model : HfModel{};
}

std::string problem(const Json& config) {
    const auto model = read_hf_config(config, "config.json");
    if (model) return "no problem";
    EXPECT_EQ(model.error().text.find('\n'), std::string::npos) << model.error().text;
    return model.error().text;
}

model::Lowered lowered(const Json& config) {
    const HfModel model = read(config);
    return model::lower(model.architecture, model.types);
}

double parameters(const Json& config) {
    return model::count_parameters(lowered(config)).total;
}

double kv(const Json& config) {
    return model::kv_bytes_per_token(lowered(config));
}

bool has_note(const HfModel& model, std::string_view words) {
    for (const std::string& note : model.architecture.notes) {
        if (note.find(words) != std::string::npos) return true;
    }
    return false;
}

Json with(Json config, const Json& changes) {
    config.update(changes);
    return config;
}

Json without(Json config, const char* key) {
    config.erase(key);
    return config;
}

// A layer: q 64x64, k and v 64x32, o 64x64, FFN 3 x 64x128, two norms of 64 = 4096 + 4096 + 4096 + 24576 + 128 =
// 36,992. Around them: two tables of 100 x 64 and the last norm.
constexpr double tiny_parameters = 2.0 * 36992.0 + 2.0 * 6400.0 + 64.0;

TEST(HfConfig, ATinyLlamaCountsAsWorkedOutByHand) {
    EXPECT_EQ(parameters(tiny()), tiny_parameters);
    EXPECT_EQ(kv(tiny()), 256.0);  // 2 layers x 2 x 2 KV heads x 16 x 2 bytes
    EXPECT_TRUE(read(tiny()).architecture.notes.empty());
    EXPECT_EQ(read(tiny()).architecture.longest_context, 512.0);
    EXPECT_EQ(read(tiny()).types_summary, "bf16");
}

TEST(HfConfig, AnUnknownModelTypeWithLlamasFieldsIsReadAndSaysSo) {
    const HfModel model = read(with(tiny(), {{"model_type", "zebra9"}}));
    EXPECT_TRUE(has_note(model, "model_type \"zebra9\" is not known here"));
    EXPECT_EQ(parameters(with(tiny(), {{"model_type", "zebra9"}})), tiny_parameters);
}

TEST(HfConfig, NoModelTypeAtAllIsReadAndSaysSo) {
    EXPECT_TRUE(has_note(read(without(tiny(), "model_type")), "names no model_type"));
    EXPECT_EQ(parameters(without(tiny(), "model_type")), tiny_parameters);
}

TEST(HfConfig, AnUnknownModelTypeWithExpertsIsReadAsAMixture) {
    const Json config = with(tiny(), {{"model_type", "zebra9"}, {"num_local_experts", 8}, {"num_experts_per_tok", 2}});
    // In place of one FFN of 24,576 there are eight and a router of 64 x 8.
    EXPECT_EQ(parameters(config), tiny_parameters + 2.0 * (7.0 * 24576.0 + 512.0));
    EXPECT_TRUE(has_note(read(config), "not known here"));
}

TEST(HfConfig, AnUnknownModelTypeWithAFieldThatMayCountIsRefusedByIt) {
    const Json zebra = with(tiny(), {{"model_type", "zebra9"}});
    EXPECT_EQ(problem(with(zebra, {{"stripes_per_layer", 3}})),
              "config.json: stripes_per_layer is set: model_type \"zebra9\" is not known here, and what this field "
              "changes cannot be told");
    EXPECT_EQ(
        problem(with(zebra, {{"hidden_act", "relu2"}})),
        "config.json: hidden_act is \"relu2\": model_type \"zebra9\" is not known here, and whether its FFN has a "
        "gate cannot be told");
    EXPECT_NE(problem(with(without(tiny(), "model_type"), {{"stripes", true}})), "no problem");
    // What is off, empty, or about text and training changes nothing.
    EXPECT_EQ(parameters(with(zebra, {{"stripes_per_layer", 0},
                                      {"stripes", false},
                                      {"striped_layers", Json::array()},
                                      {"hidden_act", "silu"},
                                      {"rms_norm_eps", 1e-5},
                                      {"rope_parameters", {{"rope_theta", 1e4}}},
                                      {"attention_dropout", 0.1},
                                      {"bos_token_id", 1},
                                      {"initializer_range", 0.02}})),
              tiny_parameters);
}

TEST(HfConfig, ANestedConfigLeavesOutTheDefaultsOfItsClass) {
    // Gemma 3 4B as published: 34 layers of width 2,560, and neither heads nor vocabulary.
    const Json gemma = {{"model_type", "gemma3"},
                        {"text_config",
                         {{"model_type", "gemma3_text"},
                          {"hidden_size", 2560},
                          {"intermediate_size", 10240},
                          {"num_hidden_layers", 34},
                          {"sliding_window", 1024}}},
                        {"vision_config", {{"hidden_size", 1152}}}};
    // A layer: q 2560 x 2048, k and v 2560 x 1024, o 2048 x 2560, FFN 3 x 2560 x 10240, four norms of 2560, two of 256.
    const double layer = 2560.0 * (2048.0 + 2048.0 + 2048.0) + 3.0 * 2560.0 * 10240.0 + 4.0 * 2560.0 + 512.0;
    EXPECT_EQ(parameters(gemma), 34.0 * layer + 262208.0 * 2560.0 + 2560.0);
    EXPECT_TRUE(has_note(read(gemma), "text_config leaves out num_attention_heads, num_key_value_heads, head_dim"));
    // LLaVA 1.5 7B says hardly more than that its language model is a Llama.
    const Json llava = {{"model_type", "llava"},
                        {"tie_word_embeddings", false},
                        {"text_config", {{"model_type", "llama"}, {"vocab_size", 32064}}}};
    EXPECT_EQ(parameters(llava), 6738415616.0 + 2.0 * 64.0 * 4096.0);  // Llama 2 7B and 64 words more
    // At the top nothing is filled in: no writer leaves these out there.
    EXPECT_EQ(problem({{"model_type", "llama"}, {"vocab_size", 32064}}), "config.json: hidden_size is missing");
}

TEST(HfConfig, AWholeWrittenByTransformersFiveDecidesWhetherTheHeadIsTied) {
    const Json inner = with(tiny(), {{"tie_word_embeddings", true}});
    const auto tied = [&](const Json& extra) {
        Json whole = {{"model_type", "llava"}, {"text_config", inner}};
        whole.update(extra);
        return read(whole).architecture.tied;
    };
    EXPECT_TRUE(tied(Json::object()));
    EXPECT_FALSE(tied({{"tie_word_embeddings", false}, {"transformers_version", "5.17.0"}}));
    EXPECT_TRUE(tied({{"tie_word_embeddings", false}, {"transformers_version", "4.51.3"}}));
}

TEST(HfConfig, TheFirstFalconsHaveOtherNames) {
    // tiiuae/falcon-40b as first published.
    const Json refined = {{"model_type", "RefinedWeb"},
                          {"hidden_size", 8192},
                          {"n_layer", 60},
                          {"n_head", 128},
                          {"n_head_kv", 8},
                          {"bias", false},
                          {"vocab_size", 65024},
                          {"alibi", false},
                          {"tie_word_embeddings", true}};
    Json renamed = {{"model_type", "falcon"},     {"hidden_size", 8192}, {"num_hidden_layers", 60},
                    {"num_attention_heads", 128}, {"num_kv_heads", 8},   {"new_decoder_architecture", true},
                    {"vocab_size", 65024}};
    EXPECT_EQ(parameters(refined), parameters(renamed));
    // Falcon 2 11B has one norm before both: 60 fewer here, each of 8,192 gains and biases.
    renamed["num_ln_in_parallel_attn"] = 1;
    EXPECT_EQ(parameters(refined) - parameters(renamed), 60.0 * 2.0 * 8192.0);
}

TEST(HfConfig, LayersWithExpertsMayBeListed) {
    // As transformers 5 writes GLM-4.7 Flash: first_k_dense_replace has gone, mlp_layer_types has come.
    const Json config = with(tiny(), {{"model_type", "qwen3_moe"},
                                      {"num_experts", 8},
                                      {"num_experts_per_tok", 2},
                                      {"moe_intermediate_size", 32},
                                      {"mlp_layer_types", {"dense", "sparse"}}});
    // Norms of q and k in both layers; one FFN of 3 x 64 x 128 gives way to eight of 3 x 64 x 32 and a router.
    EXPECT_EQ(parameters(config), tiny_parameters + 2.0 * 32.0 - 24576.0 + 8.0 * 6144.0 + 512.0);
    EXPECT_EQ(problem(with(config, {{"mlp_layer_types", {"dense"}}})),
              "config.json: mlp_layer_types has 1 entries, expected one for each of 2 layers");
    EXPECT_EQ(problem(with(config, {{"mlp_layer_types", {"dense", "loose"}}})),
              "config.json: mlp_layer_types holds \"loose\", expected dense or sparse");
}

TEST(HfConfig, AMissingFieldIsNamed) {
    for (const char* key :
         {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"}) {
        EXPECT_EQ(problem(without(tiny(), key)), std::string("config.json: ") + key + " is missing");
        EXPECT_EQ(problem(with(without(tiny(), key), {{"model_type", "zebra9"}})),
                  std::string("config.json: ") + key + " is missing");
    }
}

TEST(HfConfig, SomethingThatIsNoConfigIsRefused) {
    EXPECT_EQ(problem(Json::array()), "config.json: the file is a list, expected an object");
    EXPECT_EQ(problem(Json()), "config.json: the file is null, expected an object");
    EXPECT_NE(problem(Json::object()), "no problem");
}

TEST(HfConfig, TheLanguageModelMayBeNested) {
    for (const char* key : {"text_config", "language_config", "llm_config"}) {
        const Json config = {{"model_type", "some_vl"}, {key, tiny()}, {"vision_config", {{"hidden_size", 9}}}};
        EXPECT_EQ(parameters(config), tiny_parameters) << key;
        EXPECT_TRUE(has_note(read(config), "vision_config")) << key;
        const Json lacking = with(without(tiny(), "hidden_size"), {{"model_type", "olmo2"}});
        EXPECT_EQ(problem({{"model_type", "some_vl"}, {key, lacking}}),
                  std::string("config.json: ") + key + ".hidden_size is missing");
    }
}

TEST(HfConfig, WhatTheOuterConfigSaysHoldsForTheLanguageModelUnlessItSaysOtherwise) {
    const Json nested = without(without(tiny(), "tie_word_embeddings"), "vocab_size");
    const Json tied = {{"text_config", nested}, {"tie_word_embeddings", true}, {"vocab_size", 200}};
    EXPECT_TRUE(read(tied).architecture.tied);
    EXPECT_EQ(read(tied).architecture.vocabulary, 200.0);
    const Json both = {{"text_config", tiny()}, {"tie_word_embeddings", true}, {"vocab_size", 200}};
    EXPECT_FALSE(read(both).architecture.tied);
    EXPECT_EQ(read(both).architecture.vocabulary, 100.0);
}

TEST(HfConfig, ATiedTableIsStoredOnce) {
    EXPECT_EQ(parameters(with(tiny(), {{"tie_word_embeddings", true}})), tiny_parameters - 6400.0);
    // Llama's default is untied, Gemma's is tied.
    EXPECT_FALSE(read(without(tiny(), "tie_word_embeddings")).architecture.tied);
    EXPECT_TRUE(read(with(without(tiny(), "tie_word_embeddings"), {{"model_type", "gemma2"}})).architecture.tied);
}

TEST(HfConfig, TheHeadSizeIsDerivedUnlessItIsSaid) {
    // head_dim 32 in place of 16: q and o 64x128, k and v 64x64.
    EXPECT_EQ(parameters(with(tiny(), {{"head_dim", 32}})), tiny_parameters + 2.0 * (2.0 * 4096.0 + 2.0 * 2048.0));
    EXPECT_EQ(kv(with(tiny(), {{"head_dim", 32}})), 512.0);
    EXPECT_EQ(kv(with(tiny(), {{"head_dim", nullptr}})), 256.0);
    EXPECT_NE(problem(with(tiny(), {{"num_attention_heads", 6}, {"num_key_value_heads", 6}}))
                  .find("config.json: num_attention_heads is 6, which does not divide hidden_size 64"),
              std::string::npos);
    EXPECT_EQ(problem(with(tiny(), {{"num_attention_heads", 6}, {"num_key_value_heads", 6}, {"head_dim", 16}})),
              "no problem");
}

TEST(HfConfig, KvHeadsDefaultToAllHeadsAndMustShareEvenly) {
    EXPECT_EQ(kv(without(tiny(), "num_key_value_heads")), 512.0);  // 4 of 16 instead of 2
    EXPECT_EQ(problem(with(tiny(), {{"num_key_value_heads", 3}})),
              "config.json: num_key_value_heads is 3, but 4 heads cannot be shared evenly by 3 key-value heads");
    EXPECT_NE(problem(with(tiny(), {{"num_key_value_heads", 0}})), "no problem");
    EXPECT_NE(problem(with(tiny(), {{"num_key_value_heads", 8}})), "no problem");
}

TEST(HfConfig, EveryFamilyRefusesHeadsThatCannotBeShared) {
    const Json falcon = {{"model_type", "falcon"}, {"new_decoder_architecture", true}, {"num_kv_heads", 3},
                         {"hidden_size", 64},      {"num_attention_heads", 4},         {"num_hidden_layers", 1},
                         {"vocab_size", 100}};
    EXPECT_NE(problem(falcon), "no problem");
    const Json dbrx = {{"model_type", "dbrx"},
                       {"d_model", 64},
                       {"n_heads", 4},
                       {"n_layers", 1},
                       {"vocab_size", 100},
                       {"attn_config", {{"kv_n_heads", 3}}},
                       {"ffn_config", {{"moe_num_experts", 4}, {"moe_top_k", 1}, {"ffn_hidden_size", 128}}}};
    EXPECT_NE(problem(dbrx), "no problem");
    Json uneven = dbrx;
    uneven["n_heads"] = 5;
    uneven["attn_config"]["kv_n_heads"] = 5;
    EXPECT_NE(problem(uneven), "no problem") << "64 is no multiple of 5 heads";
    Json more = dbrx;
    more["attn_config"]["kv_n_heads"] = 2;
    more["ffn_config"]["moe_top_k"] = 9;
    EXPECT_NE(problem(more), "no problem") << "9 of 4 experts";
    const Json gpt2 = {{"model_type", "gpt2"}, {"n_embd", 64},      {"n_head", 5},
                       {"n_layer", 1},         {"vocab_size", 100}, {"n_positions", 32}};
    EXPECT_NE(problem(gpt2), "no problem") << "64 is no multiple of 5 heads";
}

TEST(HfConfig, LayerTypesMustBeOneForEachLayer) {
    EXPECT_EQ(problem(with(tiny(), {{"layer_types", {"full_attention"}}})),
              "config.json: layer_types has 1 entries, expected one for each of 2 layers");
    EXPECT_EQ(problem(with(tiny(), {{"layer_types", {1, 2}}})),
              "config.json: layer_types holds 1, expected only strings");
}

TEST(HfConfig, LayerTypesSayWhichLayersHaveTheWindow) {
    const Json mixed = with(tiny(), {{"sliding_window", 32}, {"layer_types", {"sliding_attention", "full_attention"}}});
    EXPECT_EQ(model::cache_bytes(lowered(mixed), 100.0), 128.0 * 32.0 + 128.0 * 100.0);
    const Json all = with(tiny(), {{"sliding_window", 32}});
    EXPECT_EQ(model::cache_bytes(lowered(all), 100.0), 2.0 * 128.0 * 32.0);
}

TEST(HfConfig, AWindowThatIsNotInUseIsIgnored) {
    EXPECT_EQ(model::cache_bytes(lowered(with(tiny(), {{"sliding_window", 32}, {"use_sliding_window", false}})), 100.0),
              256.0 * 100.0);
    EXPECT_EQ(model::cache_bytes(lowered(with(tiny(), {{"sliding_window", nullptr}})), 100.0), 256.0 * 100.0);
}

TEST(HfConfig, PredictionLayersAreNamedAndNotCounted) {
    const Json config = with(tiny(), {{"num_nextn_predict_layers", 1}});
    EXPECT_TRUE(has_note(read(config), "multi-token prediction"));
    EXPECT_EQ(parameters(config), tiny_parameters);
    EXPECT_FALSE(has_note(read(with(tiny(), {{"num_nextn_predict_layers", 0}})), "prediction"));
}

TEST(HfConfig, TheNumberTypeIsTheCheckpoints) {
    EXPECT_EQ(model::count_parameters(lowered(tiny())).stored_bytes, 2.0 * tiny_parameters);
    EXPECT_EQ(model::count_parameters(lowered(with(tiny(), {{"torch_dtype", "float32"}}))).stored_bytes,
              4.0 * tiny_parameters);
    EXPECT_EQ(read(with(without(tiny(), "torch_dtype"), {{"dtype", "float16"}})).types.stream, DType::fp16);
    EXPECT_EQ(read(with(tiny(), {{"torch_dtype", "auto"}})).types.stream, DType::bf16);
    EXPECT_NE(problem(with(tiny(), {{"torch_dtype", "bfloat17"}})).find("config.json: torch_dtype is \"bfloat17\""),
              std::string::npos);
}

TEST(HfConfig, LayersAreCountedWithinReason) {
    EXPECT_EQ(problem(with(tiny(), {{"num_hidden_layers", 10001}})),
              "config.json: num_hidden_layers is 10001, expected at most 10000");
    EXPECT_EQ(problem(with(tiny(), {{"num_hidden_layers", 10000}})), "no problem");
}

TEST(HfConfig, ExpertsChosenAreNoMoreThanThereAre) {
    EXPECT_EQ(problem(with(tiny(), {{"model_type", "mixtral"}, {"num_local_experts", 4}, {"num_experts_per_tok", 5}})),
              "config.json: num_experts_per_tok is 5, but there are only 4 experts");
}

TEST(HfConfig, MoreKindsOfLayersThanAStepCanHoldAreRefused) {
    // Each pooling ratio brings its own features; a step has room for 32. A list of sixty different ones must not be
    // priced past the end of that room.
    Json config;
    for (const EmbeddedFile& file : embedded_models()) {
        if (file.name == "deepseek-v4-pro") config = Json::parse(file.text, nullptr, false)["config"];
    }
    ASSERT_TRUE(config.is_object());
    ASSERT_EQ(problem(config), "no problem");
    for (std::size_t i = 0; i < config["compress_ratios"].size(); ++i) config["compress_ratios"][i] = 8 + i;
    EXPECT_NE(problem(config), "no problem");
}

// ---- families

TEST(Families, EveryModelTypeIsReadByExactlyOneFamily) {
    const auto types = known_model_types();
    ASSERT_GE(types.size(), 50U);
    for (std::size_t i = 0; i < types.size(); ++i) {
        EXPECT_NE(find_family(types[i]), nullptr) << types[i];
        if (i > 0) {
            EXPECT_NE(types[i - 1], types[i]) << "claimed twice";
        }
    }
    EXPECT_EQ(find_family("zebra9"), nullptr);
    EXPECT_EQ(find_family(""), nullptr);
}

TEST(Families, EveryOneSaysWhatAnEmptyConfigLacks) {
    for (const std::string_view type : known_model_types()) {
        const std::string text = problem({{"model_type", type}});
        EXPECT_NE(text.find("is missing"), std::string::npos) << type << ": " << text;
    }
}

TEST(Families, EveryBuiltinModelIsOfAKnownFamily) {
    for (const EmbeddedFile& file : embedded_models()) {
        const Json json = Json::parse(file.text, nullptr, false);
        EXPECT_FALSE(has_note(read(json["config"]), "not known here")) << file.name;
    }
}

TEST(Families, EveryFamilyHasABuiltinModel) {
    std::vector<const Family*> used;
    for (const EmbeddedFile& file : embedded_models()) {
        const Json json = Json::parse(file.text, nullptr, false);
        const std::string family = read(json["config"]).architecture.family;
        const Json& config = json["config"];
        const Family* found = find_family(family);
        if (found == nullptr) found = find_family(config.value("model_type", ""));
        if (found != nullptr) used.push_back(found);
    }
    for (const std::string_view type : known_model_types())
        EXPECT_NE(std::find(used.begin(), used.end(), find_family(type)), used.end())
            << "no model in data/models is read by the family of " << type;
}

// ---- hostile configs

/// Every value of a config by its address; long lists by their first few.
void collect(Json& value, std::vector<Json*>& places, std::vector<std::pair<Json*, std::string>>& keys) {
    places.push_back(&value);
    if (value.is_object()) {
        for (auto& [key, child] : value.items()) {
            keys.emplace_back(&value, key);
            collect(child, places, keys);
        }
    } else if (value.is_array()) {
        for (std::size_t i = 0; i < value.size() && i < 4; ++i) collect(value[i], places, keys);
    }
}

void mutate(Json& config, std::mt19937_64& random) {
    std::vector<Json*> places;
    std::vector<std::pair<Json*, std::string>> keys;
    collect(config, places, keys);
    if (keys.empty()) return;
    if (random() % 5 == 0) {
        const auto& [object, key] = keys[random() % keys.size()];
        object->erase(key);
        return;
    }
    static const std::vector<Json> values = {Json(),
                                             Json(true),
                                             Json(false),
                                             Json(-1),
                                             Json(0),
                                             Json(1),
                                             Json(2),
                                             Json(0.5),
                                             Json(-0.5),
                                             Json(1e30),
                                             Json(1e9),
                                             Json(999999937),
                                             Json(1e-300),
                                             Json("text"),
                                             Json(""),
                                             Json("fp8"),
                                             Json::array(),
                                             Json::object(),
                                             Json::array({1}),
                                             Json::array({"x", nullptr}),
                                             Json({{"a", 1}}),
                                             Json(9007199254740993),
                                             Json::array({Json::array({Json::array()})}),
                                             Json("MIXED_PRECISION")};
    *places[1 + random() % (places.size() - 1)] = values[random() % values.size()];
}

/// Lowers and prices; every number must be finite and not negative.
std::string priced(const HfModel& model) {
    const model::Lowered lowered = model::lower(model.architecture, model.types);
    if (lowered.features.size() > static_cast<std::size_t>(model::max_features)) return "too many features";
    for (const model::Step& step : {model::decode_step(3.0, 1000.0), model::prefill_step(2.0, 100.0, 50.0)}) {
        model::FeatureValues values{};
        for (std::size_t i = 0; i < lowered.features.size(); ++i)
            values[i] = model::evaluate(lowered.features[i], step);
        for (const model::Operator& op : lowered.operators) {
            for (const model::Form* form : {&op.flops, &op.weight_bytes, &op.cache_bytes, &op.activation_bytes}) {
                const double value = (*form)(values);
                if (!(std::isfinite(value) && value >= 0.0)) return op.name + ": " + std::to_string(value);
            }
        }
    }
    const model::ParameterCount count = model::count_parameters(lowered);
    if (!(std::isfinite(count.total) && count.total > 0.0 && std::isfinite(count.stored_bytes))) return "parameters";
    return "";
}

TEST(HfConfigFuzz, AMutatedConfigIsReadOrRefusedInOneLine) {
    std::mt19937_64 random(20240229);
    int read_well = 0;
    int refused = 0;
    int reported = 0;
    for (const EmbeddedFile& file : embedded_models()) {
        const Json original = Json::parse(file.text, nullptr, false)["config"];
        for (int round = 0; round < 30 && reported < 20; ++round) {
            Json config = original;
            mutate(config, random);
            if (round % 3 == 0) mutate(config, random);
            const auto model = read_hf_config(config, "fuzz.json");
            std::string wrong;
            if (!model) {
                ++refused;
                const std::string& text = model.error().text;
                if (text.find('\n') != std::string::npos || !text.starts_with("fuzz.json: ")) wrong = text;
            } else {
                ++read_well;
                wrong = priced(*model);
            }
            if (wrong.empty()) continue;
            ++reported;
            const Json difference = Json::diff(original, config);
            ADD_FAILURE() << file.name << ": " << wrong << "\n  after " << difference.dump().substr(0, 300);
        }
    }
    // Both ends of the road are travelled, or the mutations are too tame or too wild to test anything.
    EXPECT_GT(read_well, 500);
    EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace roofline::io

// use_file_sizes: every byte of a weight file ends up with the operator that reads it, or in a note.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "roofline/io/model_file.hpp"
#include "roofline/model/lowering.hpp"

namespace roofline::io {
namespace {

/// Two layers, width 64, 4 heads of 16, 2 KV heads, FFN of 128, 100 words.
ModelFile tiny(const Json& extra = Json::object()) {
    Json config = {{"model_type", "llama"},    {"hidden_size", 64},         {"num_hidden_layers", 2},
                   {"num_attention_heads", 4}, {"num_key_value_heads", 2},  {"intermediate_size", 128},
                   {"vocab_size", 100},        {"torch_dtype", "bfloat16"}, {"tie_word_embeddings", false}};
    config.update(extra);
    auto model = read_config_file(config, "config.json", "tiny");
    EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().text);
    return model ? *model : ModelFile{};
}

StoredTensor tensor(std::string name, std::uint64_t rows, std::uint64_t columns, double bytes_each) {
    StoredTensor result;
    result.name = std::move(name);
    result.type = "BF16";
    result.shape = {rows, columns};
    result.elements = rows * columns;
    result.bytes = static_cast<std::uint64_t>(std::llround(static_cast<double>(result.elements) * bytes_each));
    return result;
}

/// The weights of a tiny Llama as Hugging Face names them; matrices of layer n take `each[n]` bytes a number.
std::vector<StoredTensor> tensors(std::vector<double> each, bool head = true) {
    std::vector<StoredTensor> list = {tensor("model.embed_tokens.weight", 100, 64, 2.0),
                                      tensor("model.norm.weight", 64, 1, 2.0)};
    if (head) list.push_back(tensor("lm_head.weight", 100, 64, 2.0));
    for (std::size_t layer = 0; layer < each.size(); ++layer) {
        const std::string at = "model.layers." + std::to_string(layer) + ".";
        list.push_back(tensor(at + "self_attn.q_proj.weight", 64, 64, each[layer]));
        list.push_back(tensor(at + "self_attn.k_proj.weight", 32, 64, each[layer]));
        list.push_back(tensor(at + "self_attn.v_proj.weight", 32, 64, each[layer]));
        list.push_back(tensor(at + "self_attn.o_proj.weight", 64, 64, each[layer]));
        list.push_back(tensor(at + "mlp.gate_proj.weight", 128, 64, each[layer]));
        list.push_back(tensor(at + "mlp.up_proj.weight", 128, 64, each[layer]));
        list.push_back(tensor(at + "mlp.down_proj.weight", 64, 128, each[layer]));
        list.push_back(tensor(at + "input_layernorm.weight", 64, 1, 2.0));
        list.push_back(tensor(at + "post_attention_layernorm.weight", 64, 1, 2.0));
    }
    return list;
}

double sum(const std::vector<StoredTensor>& list) {
    double bytes = 0.0;
    for (const StoredTensor& item : list) bytes += static_cast<double>(item.bytes);
    return bytes;
}

double stored(const ModelFile& model) {
    return model::count_parameters(model::lower(model.architecture, model.types)).stored_bytes;
}

std::string notes(const ModelFile& model) {
    std::string all;
    for (const std::string& note : model.notes) all += note + "\n";
    return all;
}

constexpr double rounding = 1e-6;  // bytes; doubles carry bits per parameter

TEST(FileSizes, SixteenBitsAreWhatTheConfigSaidAlready) {
    ModelFile model = tiny();
    const double before = stored(model);
    const auto list = tensors({2.0, 2.0});
    use_file_sizes(model, list);
    EXPECT_NEAR(stored(model), before, rounding);
    EXPECT_NEAR(stored(model), sum(list), rounding);
    EXPECT_TRUE(model.notes.empty()) << notes(model);
}

TEST(FileSizes, TheTotalIsThatOfTheFileWhateverItsTensorsTake) {
    for (const auto& each : {std::vector<double>{1.0, 1.0}, {0.5625, 0.5625}, {2.0, 0.5625}, {0.8203125, 4.0}}) {
        ModelFile model = tiny();
        const auto list = tensors(each);
        use_file_sizes(model, list);
        EXPECT_NEAR(stored(model), sum(list), rounding) << each[0] << ", " << each[1];
    }
}

TEST(FileSizes, EveryTensorMayTakeItsOwnSize) {
    ModelFile model = tiny();
    auto list = tensors({1.0, 1.0});
    for (std::size_t i = 0; i < list.size(); ++i) list[i].bytes += 37 * i + 1;
    use_file_sizes(model, list);
    EXPECT_NEAR(stored(model), sum(list), rounding);
}

TEST(FileSizes, OfGgufTheFormatIsThatOfTheLargestTensor) {
    ModelFile model = tiny();
    auto list = tensors({0.5625, 0.5625});
    for (StoredTensor& one : list) {
        if (one.name.find("norm") == std::string::npos) one.type = "Q4_K";
        if (one.name.find("v_proj") != std::string::npos || one.name.find("layers.1.mlp.down") != std::string::npos)
            one.type = "Q6_K";
    }
    use_file_sizes(model, list);
    EXPECT_EQ(model.types.of(0, model::Role::attention_qkv).format.name, "q4_k") << "of queries";
    EXPECT_EQ(model.types.of(0, model::Role::ffn_down).format.name, "q4_k");
    EXPECT_EQ(model.types.of(1, model::Role::ffn_down).format.name, "q6_k");
    EXPECT_EQ(model.types.of(0, model::Role::norm).format.name, "bf16");
    EXPECT_NEAR(stored(model), sum(list), rounding) << "bytes are those of the file all the same";
    // Unpacked to what activations are in.
    EXPECT_EQ(model.types.of(0, model::Role::ffn_down).compute(), DType::bf16);
}

TEST(FileSizes, ScalesBelongToTheirMatrix) {
    ModelFile model = tiny();
    auto list = tensors({1.0, 1.0});
    list.push_back(tensor("model.layers.1.mlp.down_proj.weight_scale_inv", 1, 1, 4.0));
    list.push_back(tensor("model.layers.1.mlp.down_proj.input_scale", 1, 1, 4.0));
    use_file_sizes(model, list);
    EXPECT_NEAR(stored(model), sum(list), rounding);
    // 64 x 128 one-byte numbers and 8 bytes of scales
    EXPECT_NEAR(model.types.of(1, model::Role::ffn_down).bytes(128.0, 64.0).value, 8192.0 + 8.0, rounding);
    EXPECT_NEAR(model.types.of(0, model::Role::ffn_down).bytes(128.0, 64.0).value, 8192.0, rounding);
}

TEST(FileSizes, AnOperatorReadsTheBytesOfItsOwnTensors) {
    ModelFile model = tiny();
    use_file_sizes(model, tensors({1.0, 0.5}));
    // qkv is 64 x 128 numbers: one byte each in layer 0, half of one in layer 1
    EXPECT_NEAR(model.types.of(0, model::Role::attention_qkv).bytes(64.0, 128.0).value, 8192.0, rounding);
    EXPECT_NEAR(model.types.of(1, model::Role::attention_qkv).bytes(64.0, 128.0).value, 4096.0, rounding);
}

TEST(FileSizes, ATiedTableIsInTheFileOnce) {
    ModelFile model = tiny({{"tie_word_embeddings", true}});
    auto list = tensors({1.0, 1.0}, /*head=*/false);
    list[0].bytes = 100 * 64;  // an 8-bit table
    use_file_sizes(model, list);
    EXPECT_NEAR(stored(model), sum(list), rounding);
    // The head reads the same 8-bit table.
    for (const model::Operator& op : model::lower(model.architecture, model.types).operators) {
        if (op.name != "head") continue;
        EXPECT_NEAR(op.weight_bytes.constant, 6400.0, rounding);
    }
}

TEST(FileSizes, AHeadStoredBesideATiedTableIsNotLostWithoutAWord) {
    ModelFile model = tiny({{"tie_word_embeddings", true}});
    const auto list = tensors({1.0, 1.0}, /*head=*/true);
    use_file_sizes(model, list);
    const bool counted = std::fabs(stored(model) - sum(list)) < rounding;
    EXPECT_TRUE(counted || !model.notes.empty());
}

TEST(FileSizes, VisionAndPredictionAreLeftOutAndSaid) {
    ModelFile model = tiny();
    auto list = tensors({1.0, 1.0});
    const double language = sum(list);
    list.push_back(tensor("vision_tower.encoder.layers.0.mlp.fc1.weight", 2000, 1000, 2.0));  // 0.004 GB
    list.push_back(tensor("multi_modal_projector.linear_1.weight", 1000, 1000, 1.0));         // 0.001 GB
    list.push_back(tensor("model.layers.2.mlp.up_proj.weight", 7000, 1000, 1.0));             // beyond the last layer
    use_file_sizes(model, list);
    EXPECT_NEAR(stored(model), language, rounding);
    EXPECT_NE(notes(model).find("0.005 GB of the file are the vision or audio side"), std::string::npos)
        << notes(model);
    EXPECT_NE(notes(model).find("0.007 GB of the file are multi-token prediction layers"), std::string::npos)
        << notes(model);
}

TEST(FileSizes, PredictionLayersAreKnownByName) {
    ModelFile model = tiny();
    auto list = tensors({1.0, 1.0});
    const double language = sum(list);
    list.push_back(tensor("mtp.layers.0.mlp.up_proj.weight", 7000, 1000, 1.0));
    use_file_sizes(model, list);
    EXPECT_NEAR(stored(model), language, rounding);
    EXPECT_NE(notes(model).find("0.007 GB of the file are multi-token prediction layers"), std::string::npos)
        << notes(model);
}

TEST(FileSizes, TensorsWithoutAnOperatorAreSaid) {
    ModelFile model = tiny();
    auto list = tensors({1.0, 1.0});
    const double language = sum(list);
    list.push_back(tensor("model.layers.0.mlp.experts.3.up_proj.weight", 3000, 1000, 1.0));  // a dense model has none
    use_file_sizes(model, list);
    EXPECT_NEAR(stored(model), language, rounding);
    EXPECT_NE(notes(model).find("0.003 GB of the file are tensors that the model has no operator for"),
              std::string::npos)
        << notes(model);
}

TEST(FileSizes, BiasesOfAnotherTypeDoNotChangeTheTotal) {
    // Qwen2 has biases on q, k and v: 128 numbers a layer, in fp32 beside 8-bit matrices.
    ModelFile model = tiny({{"model_type", "qwen2"}});
    auto list = tensors({1.0, 1.0});
    for (const char* layer : {"0", "1"}) {
        const std::string at = std::string("model.layers.") + layer + ".self_attn.";
        list.push_back(tensor(at + "q_proj.bias", 64, 1, 4.0));
        list.push_back(tensor(at + "k_proj.bias", 32, 1, 4.0));
        list.push_back(tensor(at + "v_proj.bias", 32, 1, 4.0));
    }
    use_file_sizes(model, list);
    EXPECT_NEAR(stored(model), sum(list), rounding);
}

TEST(FileSizes, NamesOfGgufFilesWorkAsWell) {
    ModelFile model = tiny();
    std::vector<StoredTensor> list = {tensor("token_embd.weight", 100, 64, 0.5625),
                                      tensor("output.weight", 100, 64, 0.8203125),
                                      tensor("output_norm.weight", 64, 1, 4.0)};
    for (const char* layer : {"0", "1"}) {
        const std::string at = std::string("blk.") + layer + ".";
        list.push_back(tensor(at + "attn_q.weight", 64, 64, 0.5625));
        list.push_back(tensor(at + "attn_k.weight", 32, 64, 0.5625));
        list.push_back(tensor(at + "attn_v.weight", 32, 64, 0.8203125));
        list.push_back(tensor(at + "attn_output.weight", 64, 64, 0.5625));
        list.push_back(tensor(at + "ffn_gate.weight", 128, 64, 0.5625));
        list.push_back(tensor(at + "ffn_up.weight", 128, 64, 0.5625));
        list.push_back(tensor(at + "ffn_down.weight", 64, 128, 0.8203125));
        list.push_back(tensor(at + "attn_norm.weight", 64, 1, 4.0));
        list.push_back(tensor(at + "ffn_norm.weight", 64, 1, 4.0));
    }
    use_file_sizes(model, list);
    EXPECT_NEAR(stored(model), sum(list), rounding);
    EXPECT_TRUE(model.notes.empty()) << notes(model);
}

TEST(FileSizes, NoTensorsChangeNothing) {
    ModelFile model = tiny();
    const double before = stored(model);
    use_file_sizes(model, {});
    EXPECT_EQ(stored(model), before);
}

// ---- parse_count and the model file around it

TEST(ParseCount, KnowsTheDigitsShown) {
    const auto whole = parse_count("397B");
    ASSERT_TRUE(whole.has_value());
    EXPECT_EQ(whole->value, 397e9);
    EXPECT_EQ(whole->rounding, 0.5e9);
    EXPECT_EQ(whole->text, "397B");
    const auto tenth = parse_count("1.6T");
    ASSERT_TRUE(tenth.has_value());
    EXPECT_DOUBLE_EQ(tenth->value, 1.6e12);
    EXPECT_DOUBLE_EQ(tenth->rounding, 0.05e12);
    EXPECT_DOUBLE_EQ(parse_count("0.13B")->rounding, 0.005e9);
    EXPECT_EQ(parse_count("125M")->value, 125e6);
    EXPECT_EQ(parse_count("7K")->value, 7e3);
}

TEST(ParseCount, WhatIsNoCountIsNone) {
    for (const char* text :
         {"", "B", ".B", "397", "397b", "3.9.7B", "-3B", "1e3B", "397BB", " 397B", "397 B", "about 7B"})
        EXPECT_FALSE(parse_count(text).has_value()) << text;
}

TEST(ModelFile, ProblemsAreOneLineAndNameThePlace) {
    const auto problem = [](const Json& changes) {
        Json json = {{"schema", "roofline.model/1"},
                     {"name", "toy"},
                     {"published", {{"parameters", "1B"}}},
                     {"config", tiny().config}};
        json.update(changes);
        for (auto it = json.begin(); it != json.end();) it = it->is_null() ? json.erase(it) : std::next(it);
        const auto model = read_model_file(json.dump(), "toy.json");
        return model ? std::string("no problem") : model.error().text;
    };
    EXPECT_EQ(problem(Json::object()), "no problem");
    EXPECT_EQ(problem({{"schema", "roofline.model/9"}}),
              "toy.json: schema is \"roofline.model/9\", expected \"roofline.model/1\"");
    EXPECT_EQ(problem({{"schema", nullptr}}), "toy.json: schema is missing");
    EXPECT_EQ(problem({{"name", nullptr}}), "toy.json: name is missing");
    EXPECT_EQ(problem({{"config", nullptr}}), "toy.json: config is missing");
    EXPECT_NE(problem({{"config", 7}}), "no problem");
    EXPECT_EQ(problem({{"published", {{"parameters", "many"}}}}),
              "toy.json: published.parameters is \"many\", expected a number or a text such as \"397B\"");
    EXPECT_EQ(problem({{"published", {{"parameters", -5}}}}),
              "toy.json: published.parameters is -5, expected a number above zero");
    EXPECT_EQ(problem({{"published", 7}}), "toy.json: published is 7, expected an object");
    EXPECT_EQ(problem({{"aliases", "x"}}), "toy.json: aliases is \"x\", expected a list of strings");
}

TEST(FileSizes, AFileThatHoldsOtherWeightsThanTheConfigDescribesIsSaid) {
    const auto said = [](const ModelFile& model) {
        for (const std::string& note : model.notes) {
            if (note.find("one of the two is misread") != std::string::npos) return true;
        }
        return false;
    };
    ModelFile whole = tiny();
    use_file_sizes(whole, tensors({2.0, 2.0}));
    EXPECT_FALSE(said(whole));
    // No gate in the file: a type that was taken for a Llama and is none.
    std::vector<StoredTensor> plain = tensors({2.0, 2.0});
    std::erase_if(plain, [](const StoredTensor& each) { return each.name.find("gate_proj") != std::string::npos; });
    ModelFile other = tiny();
    use_file_sizes(other, plain);
    EXPECT_TRUE(said(other));
    // Packed weights cannot be counted by their elements.
    for (StoredTensor& each : plain) each.type = "U32";
    ModelFile packed = tiny();
    use_file_sizes(packed, plain);
    EXPECT_FALSE(said(packed));
}

}  // namespace
}  // namespace roofline::io

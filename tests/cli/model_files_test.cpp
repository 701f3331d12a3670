// A model given as a folder, a config.json, safetensors or a GGUF: the bytes of its weights are those of the files.
#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"
#include "io/gguf_writer.hpp"

namespace roofline::cli::testing {
namespace {

// A Llama of two layers: hidden 64, 4 heads of 16, 2 key-value heads, FFN 128, vocabulary 100, head and embedding
// apart. A layer: q 64 x 64, k and v 64 x 32, o 64 x 64, three FFN matrices of 64 x 128: 36,864 in matrices; two norms
// of 64. Outside: embedding and head 100 x 64 each, a norm of 64. In all 2 x (36,864 + 128) + 2 x 6,400 + 64 = 86,848.
constexpr double matrices = 36864.0;
constexpr double parameters = 86848.0;
constexpr const char* config =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,"intermediate_size":128,
        "num_attention_heads":4,"num_key_value_heads":2,"num_hidden_layers":2,"vocab_size":100,
        "max_position_embeddings":2048,"tie_word_embeddings":false,"torch_dtype":"bfloat16"})";
constexpr const char* fp8_config =
    R"({"producer":{"name":"modelopt","version":"0.30"},
        "quantization":{"quant_algo":"FP8","kv_cache_quant_algo":"FP8","exclude_modules":["lm_head"]}})";

class Safetensors {
  public:
    void add(const std::string& name, const std::string& type, const std::vector<int>& shape, std::size_t width) {
        std::size_t bytes = width;
        for (const int size : shape) bytes *= static_cast<std::size_t>(size);
        header_[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {data_, data_ + bytes}}};
        data_ += bytes;
    }
    std::size_t data_bytes() const { return data_; }
    std::string file() const {
        const std::string text = header_.dump();
        std::string bytes;
        for (std::size_t i = 0; i < 8; ++i) bytes += static_cast<char>(text.size() >> (8 * i) & 0xff);
        bytes += text;
        bytes.resize(bytes.size() + data_);
        return bytes;
    }

  private:
    Json header_ = Json::object();
    std::size_t data_ = 0;
};

void add_layer(Safetensors& file, int layer, const std::string& type, std::size_t width) {
    const std::string start = "model.layers." + std::to_string(layer) + ".";
    const std::pair<const char*, std::vector<int>> products[] = {
        {"self_attn.q_proj", {64, 64}}, {"self_attn.k_proj", {32, 64}}, {"self_attn.v_proj", {32, 64}},
        {"self_attn.o_proj", {64, 64}}, {"mlp.gate_proj", {128, 64}},   {"mlp.up_proj", {128, 64}},
        {"mlp.down_proj", {64, 128}}};
    for (const auto& [name, shape] : products) {
        file.add(start + name + ".weight", type, shape, width);
        if (width == 1) file.add(start + name + ".weight_scale", "F32", {1}, 4);
    }
    file.add(start + "input_layernorm.weight", "BF16", {64}, 2);
    file.add(start + "post_attention_layernorm.weight", "BF16", {64}, 2);
}

void add_outside(Safetensors& file) {
    file.add("model.embed_tokens.weight", "BF16", {100, 64}, 2);
    file.add("model.norm.weight", "BF16", {64}, 2);
    file.add("lm_head.weight", "BF16", {100, 64}, 2);
}

Json shown(const std::string& model) {
    const Answer answer = run({"models", "show", model, "--format", "json"});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_EQ(answer.err, "");
    const Json json = parsed(answer.out);
    const auto found = Schema::published("model_summary.schema.json").violations(json);
    EXPECT_TRUE(found.empty()) << joined(found);
    return json.is_object() ? json : Json::object();
}

double weight_bytes(const Json& model) {
    return model.value("weight_bytes", -1.0);
}

TEST(ModelFiles, AConfigAloneGivesTheBytesOfItsNumberType) {
    const TemporaryFolder folder;
    const std::string file = folder.write("tiny/config.json", config);
    const Json model = shown(file);
    EXPECT_EQ(model.value("parameters", -1.0), parameters);
    EXPECT_EQ(weight_bytes(model), 2.0 * parameters);
    EXPECT_EQ(model.value("weight_dtype", ""), "bf16");
    // Keys and values of 2 heads of 16 in 2 bytes over 2 layers.
    EXPECT_EQ(model.value("kv_bytes_per_token", -1.0), 2.0 * 2.0 * 16.0 * 2.0 * 2.0);
    EXPECT_EQ(model.value("max_context", -1.0), 2048.0);
    // Its folder means the same model, under the same name; so does any other file name.
    Json by_folder = shown(folder.path("tiny"));
    EXPECT_EQ(by_folder, model);
    EXPECT_EQ(by_folder.value("name", ""), "tiny");
    EXPECT_EQ(weight_bytes(shown(folder.write("other-name.json", config))), 2.0 * parameters);
}

TEST(ModelFiles, AFolderGivenByADotGoesByItsName) {
    const TemporaryFolder folder;
    folder.write("tiny/config.json", config);
    for (const char* place : {"tiny/.", "tiny/./config.json", "tiny/../tiny/config.json"})
        EXPECT_EQ(shown(folder.path(place)).value("name", ""), "tiny") << place;
}

TEST(ModelFiles, AQuantisationConfigBesideItIsHeeded) {
    const TemporaryFolder folder;
    folder.write("tiny/config.json", config);
    folder.write("tiny/hf_quant_config.json", fp8_config);
    const Json model = shown(folder.path("tiny"));
    // One byte for the matrices of the layers, two for the rest.
    EXPECT_EQ(weight_bytes(model), 2.0 * parameters - 2.0 * matrices);
    // The KV cache is one byte wide too.
    EXPECT_EQ(model.value("kv_bytes_per_token", -1.0), 2.0 * 2.0 * 16.0 * 2.0);
    EXPECT_NE(model.value("weight_dtype", "").find("fp8"), std::string::npos);
}

TEST(ModelFiles, TheBytesOfAFolderAreThoseOfItsSafetensorsFiles) {
    const TemporaryFolder folder;
    folder.write("tiny/config.json", config);
    folder.write("tiny/hf_quant_config.json", fp8_config);
    Safetensors one;
    add_outside(one);
    add_layer(one, 0, "F8_E4M3", 1);
    Safetensors two;
    add_layer(two, 1, "F8_E4M3", 1);
    folder.write("tiny/model-00001-of-00002.safetensors", one.file());
    const std::string shard = folder.write("tiny/model-00002-of-00002.safetensors", two.file());
    // Layers: 36,864 + 7 scales of 4 + two norms of 128. Outside: two tables of 12,800 and a norm of 128.
    constexpr double expected = 2.0 * (36864.0 + 28.0 + 256.0) + 25728.0;
    ASSERT_EQ(static_cast<double>(one.data_bytes() + two.data_bytes()), expected);
    EXPECT_DOUBLE_EQ(weight_bytes(shown(folder.path("tiny"))), expected);
    EXPECT_DOUBLE_EQ(weight_bytes(shown(folder.path("tiny/config.json"))), expected);
    EXPECT_DOUBLE_EQ(weight_bytes(shown(shard)), expected);
    // What is streamed in a decode step is the file's too: matrices of the layers with their scales, and the head.
    const Json report = parsed(run({"predict", folder.path("tiny"), "h100-sxm", "--format", "json"}).out);
    double streamed = 0.0;
    for (const Json& record : report["stages"][1]["records"]) {
        if (record["kind"] == "gemm") streamed += record["bytes"]["weights"].get<double>();
    }
    EXPECT_DOUBLE_EQ(streamed, 2.0 * (36864.0 + 28.0) + 12800.0);
}

TEST(ModelFiles, AnIndexWhoseShardsWereNotDownloadedIsAConfigAlone) {
    const TemporaryFolder folder;
    folder.write("tiny/config.json", config);
    folder.write("tiny/model.safetensors.index.json",
                 R"({"metadata":{"total_size":1},"weight_map":{"lm_head.weight":"model-00001-of-00009.safetensors"}})");
    EXPECT_EQ(weight_bytes(shown(folder.path("tiny"))), 2.0 * parameters);
}

TEST(ModelFiles, TheBytesOfAGgufAreThoseOfItsTensors) {
    const TemporaryFolder folder;
    const auto bytes = io::testing::tiny_llama().file();
    const std::string content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::string file = folder.write("models/tiny.gguf", content);
    const Json model = shown(file);
    // Q4_K packs 256 weights in 144 bytes, Q6_K in 210. A layer: q and o 36,864 each, k 18,432, v 26,880, gate and up
    // 73,728 each, down 107,520, norms 2 x 1,024: 376,064. Outside: embedding 46,080, norm 1,024, head 67,200.
    constexpr double expected = 2.0 * 376064.0 + 46080.0 + 1024.0 + 67200.0;
    static_assert(expected == 866432.0);
    EXPECT_DOUBLE_EQ(weight_bytes(model), expected);
    EXPECT_EQ(model.value("name", ""), "Tiny");
    // A layer: 256 x (256 + 128 + 128) + 256 x 256 + 3 x 256 x 512 + 512. Outside: two tables of 320 x 256 and a norm.
    EXPECT_EQ(model.value("parameters", -1.0), 2.0 * 590336.0 + 2.0 * 81920.0 + 256.0);
    // The folder that holds it, and the file without its ending, mean the same.
    EXPECT_DOUBLE_EQ(weight_bytes(shown(folder.path("models"))), expected);
    EXPECT_DOUBLE_EQ(weight_bytes(shown(folder.write("tiny", content))), expected);
}

TEST(ModelFiles, ABuiltInModelFileMeansTheSameAsItsName) {
    for (const char* name : {"llama-3.1-8b", "deepseek-v3", "mamba2-2.7b"}) {
        EXPECT_EQ(shown(std::string(ROOFLINE_SOURCE_DIR "/data/models/") + name + ".json"), shown(name));
    }
}

TEST(ModelFiles, ANumberTypeOnTheCommandLineReplacesThatOfTheFile) {
    const TemporaryFolder folder;
    const std::string file = folder.write("tiny/config.json", config);
    const auto weights = [&](const char* type) {
        const Json report = parsed(run({"predict", file, "h100-sxm", "--dtype", type, "--format", "json"}).out);
        return report["fit"]["weights_bytes"].get<double>();
    };
    EXPECT_EQ(weights("fp32"), 4.0 * parameters);
    EXPECT_EQ(weights("fp16"), 2.0 * parameters);
    EXPECT_EQ(weights("bfloat16"), 2.0 * parameters);
}

}  // namespace
}  // namespace roofline::cli::testing

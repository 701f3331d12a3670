// `bench` and `models synth` on a model so small that no time matters.
#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/run.hpp"
#include "cli/schema.hpp"
#include "roofline/cli/bench_text.hpp"

namespace roofline::cli::testing {
namespace {

using Json = nlohmann::json;

constexpr const char* toy = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 128,
    "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
    "num_hidden_layers": 2, "vocab_size": 320, "torch_dtype": "bfloat16", "max_position_embeddings": 256,
    "rms_norm_eps": 1e-05, "hidden_act": "silu", "tie_word_embeddings": false})";

std::vector<std::string> quick(const std::string& model, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"bench", model,      "--threads", "1",         "--seconds",
                                      "0.001", "--prompt", "8",         "--context", "16"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

TEST(Bench, TheReportFollowsTheSchemaAndHoldsWhatWasMeasured) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    const Answer answer = run(quick(model, {"--stage", "both", "--batch", "1,2", "--dtype", "bf16,int8", "--roofs",
                                            "xeon-8480", "--backend", "own", "--format", "json"}));
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    const Json report = Json::parse(answer.out, nullptr, false);
    const auto found = Schema::published("report.schema.json").violations(report);
    EXPECT_TRUE(found.empty()) << joined(found);
    EXPECT_EQ(report["verb"], "bench");
    // Two types, two batches, two stages.
    ASSERT_EQ(report["stages"].size(), 8U);
    EXPECT_EQ(report["bench"]["stages"].size(), 8U);
    for (const Json& stage : report["stages"]) {
        EXPECT_GT(stage["time_s"]["measured"], 0.0);
        for (const Json& record : stage["records"]) {
            EXPECT_EQ(record["origin"], "measured") << record["name"];
            EXPECT_GT(record["time_s"]["measured"], 0.0);
        }
    }
    EXPECT_EQ(report["stages"][0]["stage"], "prefill bf16");
    EXPECT_EQ(report["stages"][7]["stage"], "decode int8");
}

TEST(Bench, NamesItsRecordsAsPredictDoes) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    const Answer bench = run(quick(model, {"--roofs", "h100-sxm", "--only", "operators", "--format", "json"}));
    const Answer predict = run(
        {"predict", model, "h100-sxm", "--stage", "decode", "--prompt", "8", "--context", "16", "--format", "json"});
    ASSERT_EQ(bench.exit_code, 0) << bench.err;
    const Json ours = Json::parse(bench.out, nullptr, false)["stages"][0];
    const Json theirs = Json::parse(predict.out, nullptr, false)["stages"][0];
    ASSERT_EQ(ours["records"].size(), theirs["records"].size());
    for (std::size_t i = 0; i < ours["records"].size(); ++i) {
        EXPECT_EQ(ours["records"][i]["name"], theirs["records"][i]["name"]);
        EXPECT_EQ(ours["records"][i]["flops"], theirs["records"][i]["flops"]);
        EXPECT_EQ(ours["records"][i]["time_s"]["limit"], theirs["records"][i]["time_s"]["limit"]);
    }
    EXPECT_FALSE(ours["time_s"].contains("measured")) << "a sum of operators is no step";
}

TEST(Bench, HoldsInt4OnAProcessorAgainstItsRateOfInt8) {
    // The kernels round x to int8: in 16 bits, as weight-only int4 is counted elsewhere, the limit would be another.
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    const Answer answer = run(quick(model, {"--roofs", "xeon-8480", "--backend", "own", "--dtype", "int4", "--only",
                                            "operators", "--format", "json"}));
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    const Json stage = Json::parse(answer.out, nullptr, false)["stages"][0];
    int products = 0;
    for (const Json& record : stage["records"]) {
        if (record["kind"] != "gemm") continue;
        ++products;
        EXPECT_EQ(record["dtype"], record["name"] == "head" ? "bf16" : "int8") << record["name"];
    }
    EXPECT_EQ(products, 5);  // qkv, out, gate_up, down, head
}

TEST(Bench, WithoutKnownRoofsNothingIsSaidOfLimits) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    const Answer answer = run(quick(model), {{"XDG_CONFIG_HOME", folder.path("none")}});
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_EQ(answer.out.find("attainable"), std::string::npos);
    EXPECT_NE(answer.out.find("no ceilings of this machine are known"), std::string::npos);
    EXPECT_NE(answer.out.find("tokens/s"), std::string::npos);
}

// Three threads of a machine that was never there; one reads 2 GB/s.
constexpr const char* three_threads = R"({"schema": "roofline.device/1", "name": "made-up-3",
    "title": "Made up, 3 threads", "vendor": "Nobody", "kind": "cpu",
    "engines": [{"id": "vector", "rates": {"fp32": {"value": 3e9, "unit": "FLOP/s", "source": "measured"}}}],
    "multiprocessors": {"value": 3, "unit": "count", "source": "measured"},
    "memory": [{"id": "memory", "technology": "main memory",
                "bandwidth": {"value": 5e9, "unit": "B/s", "source": "measured"}}],
    "sources": {"measured": {"kind": "measured", "title": "made up", "date": "2026-01-02"}},
    "context": {"figures": [
        {"name": "vector.fp32", "unit": "FLOP/s", "value": 3e9, "one_thread": 1e9},
        {"name": "memory.read", "unit": "B/s", "value": 5e9, "one_thread": 2e9}]}})";

TEST(Bench, OneThreadIsHeldAgainstTheCeilingsOfOne) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    folder.write("roofline/this.json", three_threads);
    const Answer answer =
        run(quick(model, {"--only", "operators", "--format", "json"}), {{"XDG_CONFIG_HOME", folder.path()}});
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    const Json report = Json::parse(answer.out, nullptr, false);
    EXPECT_EQ(report["device"]["memory"][0]["bandwidth"]["value"], 2e9);
    EXPECT_EQ(report["device"]["multiprocessors"]["value"], 1);
    EXPECT_GT(report["bench"]["memory_read"]["before"], 0.0);
    EXPECT_GT(report["bench"]["memory_read"]["after"], 0.0);
    EXPECT_NE(answer.out.find("ceilings are those of one thread, measured beside those of 3 threads"),
              std::string::npos);
    const auto found = Schema::published("report.schema.json").violations(report);
    EXPECT_TRUE(found.empty()) << joined(found);
}

TEST(Bench, CeilingsOfOtherThreadsAreSaidToBe) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    std::string silent = three_threads;  // of one thread
    silent.resize(silent.find(",\n    \"context\""));
    const std::string file = folder.write("three.json", silent + "}");
    const Answer answer = run(quick(model, {"--only", "operators", "--roofs", file}));
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_EQ(answer.out.find("memory was read"), std::string::npos) << "what three read is not what one reads";
    EXPECT_NE(answer.out.find("ceilings are those of 3 threads, one thread ran here: `roofline measure --threads 1"),
              std::string::npos)
        << answer.out;
    // Cores of a datasheet are counted likewise; a GPU has none to compare.
    const Answer cores = run(quick(model, {"--only", "operators", "--roofs", "xeon-8480"}));
    EXPECT_NE(cores.out.find("ceilings are those of 56 cores"), std::string::npos) << cores.out;
    const Answer gpu = run(quick(model, {"--only", "operators", "--roofs", "h100-sxm"}));
    EXPECT_EQ(gpu.out.find("ceilings are those"), std::string::npos) << gpu.out;
}

TEST(Bench, WhatCannotBeRunIsSaidInOneLine) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    const Environment alone = {{"ROOFLINE_CUDA_PLUGIN", folder.path("none.so")}};
    for (const auto& [arguments, code] : std::vector<std::pair<std::vector<std::string>, int>>{
             {quick(model, {"--device", "cuda:0"}), 4},
             {quick(model, {"--device", "tpu"}), 2},
             {quick(model, {"--backend", "mkl"}), 2},
             {quick(model, {"--batch", "0"}), 2},
             {quick(model, {"--dtype", "fp7"}), 2},
             {quick(model, {"--layers", "none"}), 2},
             {quick(model, {"--layers", "9999"}), 2},
             {{"bench", model, "--seconds", "soon"}, 2},
             {{"bench", model, "--seconds", "61"}, 2},
             {quick(model, {"--plugin", folder.path("none.so")}), 2},
             {quick(model, {"--plugin", SCALAR_KERNEL, "--plugin", SCALAR_KERNEL}), 2},
             {quick(model, {"--roofs", "no-such-device"}), 2},
             {quick(folder.path("none.gguf")), 2},
             {{"bench"}, 2},
             {{"bench", "--engine", "llama.cpp"}, 2},
             {{"bench", model, "--engine", "llama.cpp", "--gguf", model}, 2},
             {{"bench", "--engine", "llama.cpp", "--gguf", model, "--dtype", "int8"}, 2},
             {{"bench", model, "--gguf", model}, 2},
             {{"bench", model, "-n", "8"}, 2},
             {{"bench", "--engine", "vllm", "--gguf", model}, 2},
             {{"models", "synth", "mixtral-8x7b", "-o", folder.path("m.gguf")}, 2},
             {{"models", "synth", model, "-o", folder.path("m.gguf"), "--dtype", "q9"}, 2},
             {{"models", "synth", model, "-o", folder.path("m.safetensors")}, 2},
             {{"models", "synth", model, "-o", folder.path("no/such/m.gguf")}, 2}}) {
        const Answer answer = run(arguments, alone);
        EXPECT_EQ(answer.exit_code, code) << typed(arguments) << "\n" << answer.err;
        EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << typed(arguments) << "\n" << answer.err;
        EXPECT_EQ(answer.out, "") << typed(arguments);
    }
}

TEST(Bench, AFileThatIsNoGgufIsSaidToBeNone) {
    const TemporaryFolder folder;
    const Answer answer =
        run({"bench", "--engine", "llama.cpp", "--gguf", folder.write("weights.bin", "something else")});
    EXPECT_EQ(answer.exit_code, 2);
    EXPECT_NE(answer.err.find("does not begin with GGUF"), std::string::npos) << answer.err;
}

/// MiniMax M3's kind: attention to blocks that an indexer chooses, which no step has.
constexpr const char* blocks = R"({"architectures": ["MiniMaxM3ForCausalLM"], "model_type": "minimax_m3",
    "hidden_size": 128, "dense_intermediate_size": 256, "intermediate_size": 64, "moe_intermediate_size": 64,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "num_hidden_layers": 2, "vocab_size": 320,
    "torch_dtype": "bfloat16", "moe_layer_freq": [0, 0], "num_local_experts": 4, "num_experts_per_tok": 2,
    "sparse_attention_config": {"sparse_attention_freq": [1, 1], "sparse_block_size": 16, "sparse_topk_blocks": 1,
    "sparse_index_dim": 32, "sparse_num_index_heads": 2}, "tie_word_embeddings": false})";

/// DeepSeek V3.2's kind: attention to what an indexer chooses.
constexpr const char* sparse = R"({"architectures": ["DeepseekV32ForCausalLM"], "model_type": "deepseek_v32",
    "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4,
    "num_hidden_layers": 2, "vocab_size": 320, "torch_dtype": "bfloat16", "first_k_dense_replace": 2,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 64,
    "q_lora_rank": 64, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 32, "v_head_dim": 32,
    "index_n_heads": 2, "index_head_dim": 64, "index_topk": 16, "tie_word_embeddings": false})";

TEST(Bench, AModelOfAnotherKindIsRunOperatorByOperator) {
    const TemporaryFolder folder;
    const std::string model = folder.write("blocks/config.json", blocks);
    const Answer answer = run(quick(model, {"--backend", "own"}));
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_NE(answer.out.find("layers.attention.qkv "), std::string::npos) << answer.out;
    EXPECT_NE(
        answer.out.find(
            "a whole step needs layers of attention or states and an FFN, and this one has layers.attention.index_key"),
        std::string::npos)
        << answer.out;
}

TEST(Bench, AModelThatChoosesWhatItSeesIsRun) {
    const TemporaryFolder folder;
    const std::string model = folder.write("sparse/config.json", sparse);
    const Answer answer = run({"bench", model, "--threads", "1", "--seconds", "0.001", "--prompt", "8", "--context",
                               "64", "--backend", "own"});
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_NE(answer.out.find("the best 16, 4/1 heads of 96, 64 "), std::string::npos) << answer.out;
    EXPECT_NE(answer.out.find("2 heads of 64 "), std::string::npos) << answer.out;
    EXPECT_NE(answer.out.find("decode step, batch 1, context 64"), std::string::npos) << answer.out;
    EXPECT_EQ(answer.out.find("not run"), std::string::npos) << answer.out;
}

TEST(Bench, AModelOfStatesAloneIsRun) {
    const Answer answer = run({"bench", "mamba-2.8b", "--layers", "1", "--threads", "1", "--seconds", "0.001",
                               "--context", "16", "--dtype", "bf16", "--backend", "own"});
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_NE(answer.out.find("1 x 5120 states of 16 "), std::string::npos) << answer.out;
    EXPECT_NE(answer.out.find("decode step, batch 1, context 16"), std::string::npos) << answer.out;
    EXPECT_EQ(answer.out.find("not run"), std::string::npos) << answer.out;
}

TEST(Bench, AStepOfAModelUnlikeLlamaIsRun) {
    // GPT-2 has none of what Llama has but attention and an FFN.
    const Answer answer = run({"bench", "gpt2", "--layers", "1", "--threads", "1", "--seconds", "0.001", "--context",
                               "16", "--backend", "own", "--only", "steps"});
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_NE(answer.out.find("decode step, batch 1, context 16"), std::string::npos) << answer.out;
    EXPECT_EQ(answer.out.find("a whole step needs"), std::string::npos) << answer.out;
}

TEST(Bench, EveryRateHasItsOwnUnit) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    const Answer answer = run(quick(model, {"--backend", "own", "--dtype", "int8", "--only", "operators"}));
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    const auto line_of = [&](const std::string& name) {
        const std::size_t at = answer.out.find("  " + name + " ");
        return at == std::string::npos ? "" : answer.out.substr(at, answer.out.find('\n', at) - at);
    };
    EXPECT_NE(line_of("layers.attention.qkv").find("OP/s"), std::string::npos) << answer.out;
    EXPECT_EQ(line_of("layers.attention.qkv").find("FLOP/s"), std::string::npos) << answer.out;
    EXPECT_NE(line_of("layers.attention.norm").find("FLOP/s"), std::string::npos) << answer.out;
}

TEST(Bench, WeightsOfFourBitsAreHeldAgainstTheArithmeticOfBytes) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    for (const std::string type : {"mxfp4", "nvfp4"}) {
        const Answer answer = run(quick(model, {"--backend", "own", "--dtype", type}));
        ASSERT_EQ(answer.exit_code, 0) << answer.err;
        EXPECT_EQ(answer.out.find("not run"), std::string::npos) << answer.out;
        EXPECT_NE(answer.out.find("256 x 128 " + type), std::string::npos) << answer.out;
        const std::size_t at = answer.out.find("  layers.attention.qkv ");
        ASSERT_NE(at, std::string::npos) << answer.out;
        const std::string line = answer.out.substr(at, answer.out.find('\n', at) - at);
        EXPECT_NE(line.find(" GOP/s"), std::string::npos) << "x is rounded to int8 beside it: " << line;
    }
}

TEST(BenchText, WhatWasNotRunSaysInWhichTypesWhereNotInAll) {
    bench::Run run;
    for (const char* type : {"bf16", "fp8", "int8"}) {
        bench::StageRun& stage = run.stages.emplace_back();
        stage.dtype = type;
        stage.stage.records.resize(1);
        stage.stage.records[0].name = "indexer";
        stage.planned = {{std::nullopt, "no kernel for it"}};
        stage.outcomes.resize(1);
        if (stage.dtype != "bf16") stage.no_step = "no product of mixed types";
    }
    const std::string text = bench_text(run, false);
    EXPECT_NE(text.find("- not run: indexer (no kernel for it)"), std::string::npos) << text;
    EXPECT_NE(text.find("- not run: whole step in fp8 and int8 (no product of mixed types)"), std::string::npos)
        << text;
    run.stages.resize(1);
    EXPECT_EQ(bench_text(run, false).find("bf16"), std::string::npos) << "there is but one type";
}

TEST(Bench, AGgufIsRunInTheTypesItHas) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    const std::string file = folder.path("toy.gguf");
    ASSERT_EQ(run({"models", "synth", model, "-o", file, "--dtype", "q8_0"}).exit_code, 0);
    const Answer answer = run(quick(file, {"--backend", "own"}));
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_NE(answer.out.find("256 x 128 q8_0"), std::string::npos) << answer.out;
    EXPECT_NE(answer.out.find("decode step"), std::string::npos) << answer.out;
    EXPECT_EQ(answer.out.find("not run"), std::string::npos) << answer.out;
    // 34 bytes for 32 weights: 128 x 256 of them are 34,816 bytes.
    const Answer in_json = run(quick(file, {"--backend", "own", "--format", "json"}));
    const Json report = Json::parse(in_json.out, nullptr, false);
    ASSERT_FALSE(report.is_discarded()) << in_json.err;
    for (const Json& record : report["stages"][0]["records"]) {
        if (record["name"] == "layers.attention.qkv") {
            EXPECT_EQ(record["bytes"]["weights"], 2 * 34816);
        }
    }
}

TEST(Bench, WeightsThatNoKernelReadsAreNotRunInOthers) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    const std::string file = folder.path("toy.gguf");
    ASSERT_EQ(run({"models", "synth", model, "-o", file, "--dtype", "q4_0"}).exit_code, 0);
    // Queries, keys and values as IQ4_NL (20), which has as many bytes: behind a tensor's name stand how many sizes it
    // has, these, and its type.
    std::ifstream written(file, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(written)), std::istreambuf_iterator<char>());
    for (const char* layer : {"0", "1"}) {
        for (const char* part : {"q", "k", "v"}) {
            const std::string name = std::string("blk.") + layer + ".attn_" + part + ".weight";
            const std::size_t place = bytes.find(name);
            ASSERT_NE(place, std::string::npos);
            ASSERT_EQ(bytes[place + name.size() + 4 + 16], 2);
            bytes[place + name.size() + 4 + 16] = 20;
        }
    }
    folder.write("other.gguf", bytes);
    const Answer answer = run(quick(folder.path("other.gguf"), {"--backend", "own"}));
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_NE(answer.out.find("no kernel reads iq4_nl weights; of GGUF those in q4_0, q8_0, q4_k, q5_k and q6_k are"),
              std::string::npos)
        << answer.out;
    EXPECT_EQ(answer.out.find("256 x 128"), std::string::npos) << answer.out;
    EXPECT_EQ(answer.out.find("decode step, batch 1, context 16  own"), std::string::npos) << answer.out;
    const Answer nearest = run(quick(folder.path("other.gguf"), {"--backend", "own", "--dtype", "int8"}));
    EXPECT_EQ(nearest.out.find("no kernel reads"), std::string::npos) << nearest.out;
}

TEST(Bench, WhatTakesLongEvenAtItsLimitIsAnnounced) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    // A byte a second. The QKV product reads 2 bytes for each of 128 x (4 + 2 + 2) x 32 weights: 65,536, so 1,092
    // minutes.
    const std::string slow = folder.write("slow.json", R"({"schema": "roofline.device/1", "name": "slow",
        "engines": [{"id": "matrix", "rates": {"bf16": {"value": 1, "unit": "TFLOP/s", "source": "s"}}},
                    {"id": "vector", "rates": {"fp32": {"value": 1, "unit": "TFLOP/s", "source": "s"}}}],
        "memory": [{"id": "memory", "capacity": {"value": 80, "unit": "GB", "source": "s"},
                    "bandwidth": {"value": 1, "unit": "B/s", "source": "s"}}],
        "sources": {"s": {"kind": "assumed", "title": "t"}}})");
    const Answer announced = run(quick(model, {"--backend", "own", "--roofs", slow}));
    ASSERT_EQ(announced.exit_code, 0) << announced.err;
    EXPECT_NE(
        announced.err.find("roofline: decode, batch 1: layers.attention.qkv: a call takes 1092 minutes at the least\n"),
        std::string::npos)
        << announced.err;
    EXPECT_NE(announced.err.find("decode, batch 1: whole step: a call takes "), std::string::npos) << announced.err;
    EXPECT_EQ(run(quick(model, {"--backend", "own", "--roofs", "xeon-8480"})).err, "");
}

TEST(Bench, CtrlCEndsItWithinACall) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    // Attention of 200,000 tokens to each other: 4 x (2e5)^2 / 2 x 128 = 1e13 FLOPs, which take a thread minutes.
    const Answer answer =
        run({"bench", model, "--threads", "1", "--stage", "prefill", "--prompt", "200000", "--backend", "own", "--only",
             "operators", "--seconds", "0.001", "-o", folder.path("report.json")},
            {}, nullptr, 2'000'000);
    EXPECT_EQ(answer.exit_code, 130) << answer.err;
    EXPECT_EQ(answer.out, "");
    EXPECT_NE(answer.err.find("roofline: stopped; nothing was written\n"), std::string::npos) << answer.err;
    EXPECT_FALSE(std::filesystem::exists(folder.path("report.json")));
}

TEST(Bench, TheNameOfAFileSaysItsFormat) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    const auto begins = [&](const std::string& name, const std::vector<std::string>& more = {}) {
        std::vector<std::string> words = {"--backend", "own", "--only", "operators", "-o", folder.path(name)};
        words.insert(words.end(), more.begin(), more.end());
        const Answer answer = run(quick(model, words));
        EXPECT_EQ(answer.exit_code, 0) << answer.err;
        std::ifstream file(folder.path(name));
        return static_cast<char>(file.get());
    };
    EXPECT_EQ(begins("report.json"), '{');
    EXPECT_EQ(begins("report.md"), '#');
    EXPECT_EQ(begins("report.txt"), 't');  // toy on ...
    EXPECT_EQ(begins("table.json", {"--format", "md"}), '#');
}

TEST(Bench, WhereNothingOfWhatWasAskedForRunsItEndsWithFour) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    // 256 bytes a token and sequence in the cache: terabytes, which no machine of today has free.
    const Answer large = run({"bench", model, "--threads", "1", "--only", "steps", "--batch", "1000000", "--context",
                              "100000", "--backend", "own"});
    EXPECT_EQ(large.exit_code, 4) << large.err;
    EXPECT_EQ(large.out, "");
    EXPECT_NE(large.err.find("nothing of what was asked for could be run (whole step: "), std::string::npos)
        << large.err;
    // The reason is that of a backend that does embeddings, not that OpenBLAS (where it is there) does products only.
    // 64 kB a row of activations: 65 TB for a thousand million of them.
    const Answer operators = run(
        {"bench", "llama-3.1-405b", "--layers", "1", "--threads", "1", "--only", "operators", "--batch", "1000000000"});
    EXPECT_EQ(operators.exit_code, 4) << operators.err;
    EXPECT_EQ(operators.err.find("a call takes"), std::string::npos) << operators.err;
    EXPECT_NE(operators.err.find("(embedding: needs "), std::string::npos) << operators.err;
    EXPECT_NE(operators.err.find(" GB of memory, and "), std::string::npos) << operators.err;
    const std::string indexed = folder.write("blocks/config.json", blocks);
    const Answer other = run(quick(indexed, {"--only", "steps", "--backend", "own"}));
    EXPECT_EQ(other.exit_code, 4) << other.err;
    EXPECT_NE(other.err.find("a whole step needs layers of attention or states and an FFN"), std::string::npos)
        << other.err;
}

TEST(Bench, ANumberTypeThatNoKernelReadsIsNotHere) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    const Answer alone = run(quick(model, {"--backend", "own", "--dtype", "int5"}));
    EXPECT_EQ(alone.exit_code, 4);
    EXPECT_EQ(alone.out, "");
    EXPECT_EQ(alone.err,
              "roofline: --dtype: no kernel here reads weights in int5; there are some for fp32, bf16, int8, fp8, "
              "fp8_block, int4, mxfp4, nvfp4, q4_0, q8_0, q4_k, q5_k, q6_k\n");
    const Answer beside = run(quick(model, {"--backend", "own", "--dtype", "int5,int8"}));
    EXPECT_EQ(beside.exit_code, 0) << beside.err;
    EXPECT_NE(beside.out.find("without int5: no kernel here reads such weights"), std::string::npos) << beside.out;
    EXPECT_NE(beside.out.find("int8"), std::string::npos) << beside.out;
}

TEST(Bench, ACheckpointInFp16RunsInBf16AndSaysSo) {
    const TemporaryFolder folder;
    std::string config = toy;
    const std::size_t type = config.find("bfloat16");
    ASSERT_NE(type, std::string::npos);
    const std::string model = folder.write("toy/config.json", config.replace(type, 8, "float16"));
    const Answer whole = run(quick(model, {"--backend", "own"}));
    EXPECT_EQ(whole.exit_code, 0) << whole.err;
    EXPECT_NE(whole.out.find("weights in fp16 are run in bf16, as many bytes"), std::string::npos) << whole.out;
    EXPECT_EQ(whole.out.find("not run"), std::string::npos) << whole.out;
    // Weights as asked for; what the checkpoint says of keys and values still holds.
    const Answer narrow = run(quick(model, {"--backend", "own", "--dtype", "int8"}));
    EXPECT_EQ(narrow.exit_code, 0) << narrow.err;
    EXPECT_NE(narrow.out.find("keys and values in fp16 are run in bf16"), std::string::npos) << narrow.out;
    EXPECT_EQ(narrow.out.find("not run"), std::string::npos) << narrow.out;
}

TEST(Bench, ACacheThatNoProcessorKernelKeepsIsKeptInBf16UnlessItWasNamed) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    const auto report_of = [&](const std::string& of, const std::vector<std::string>& more) {
        std::vector<std::string> words = {"--backend", "own", "--roofs", "xeon-8480", "--format", "json"};
        words.insert(words.end(), more.begin(), more.end());
        const Answer answer = run(quick(of, words));
        EXPECT_EQ(answer.exit_code, 0) << answer.err;
        return Json::parse(answer.out, nullptr, false);
    };
    const auto notes_of = [](const Json& report) { return report["notes"].dump(); };
    const std::string kept = "no kernel for processors keeps one in fp8; limits are those of bf16 too";
    const Json report = report_of(model, {"--dtype", "fp8"});
    EXPECT_NE(notes_of(report).find("the KV cache beside weights in fp8 is kept in bf16: " + kept), std::string::npos)
        << notes_of(report);
    const Json& stage = report["stages"][0];
    EXPECT_TRUE(stage["time_s"].contains("measured")) << "a whole step";
    // Everything is counted as if bf16 had been asked for, which needs no note. The KV cache of 16 tokens: 16 x 2 x
    // 2 heads x 32 x 2 B = 4,096 B a layer.
    const Json named = report_of(model, {"--dtype", "fp8", "--kv-cache-dtype", "bf16"});
    EXPECT_EQ(notes_of(named).find("KV cache"), std::string::npos) << notes_of(named);
    ASSERT_EQ(stage["records"].size(), named["stages"][0]["records"].size());
    for (std::size_t i = 0; i < stage["records"].size(); ++i) {
        const Json& ours = stage["records"][i];
        const Json& theirs = named["stages"][0]["records"][i];
        EXPECT_EQ(ours["bytes"], theirs["bytes"]) << ours["name"];
        EXPECT_EQ(ours["dtype"], theirs["dtype"]) << ours["name"];
        EXPECT_EQ(ours["time_s"]["limit"], theirs["time_s"]["limit"]) << ours["name"];
        if (ours["name"] == "layers.attention.core") {
            EXPECT_EQ(ours["bytes"]["kv"], 2 * 4096);
        }
    }
    // Of several types only the one that asks for it; fp32 keeps its own.
    const Json both = report_of(model, {"--dtype", "fp32,fp8", "--only", "operators"});
    EXPECT_NE(notes_of(both).find("beside weights in fp8"), std::string::npos) << notes_of(both);
    for (const Json& record : both["stages"][0]["records"]) {
        if (record["name"] == "layers.attention.core") {
            EXPECT_EQ(record["bytes"]["kv"], 2 * 8192);
        }
    }
    // A checkpoint whose own config asks for it was not named by the user either.
    std::string config = toy;
    config.back() = ',';
    config += R"("quantization_config": {"quant_method": "modelopt", "kv_cache_scheme": "FP8"}})";
    const Json checkpoint = report_of(folder.write("narrow/config.json", config), {});
    EXPECT_NE(notes_of(checkpoint).find("the KV cache is kept in bf16: " + kept), std::string::npos)
        << notes_of(checkpoint);
    EXPECT_TRUE(checkpoint["stages"][0]["time_s"].contains("measured")) << "a whole step";
    // Named, it is refused as before.
    const Answer refused =
        run(quick(model, {"--backend", "own", "--dtype", "fp8", "--kv-cache-dtype", "fp8", "--only", "steps"}));
    EXPECT_EQ(refused.exit_code, 4);
    EXPECT_NE(refused.err.find("no processor kernel keeps a KV cache in fp8; --kv-cache-dtype bf16"), std::string::npos)
        << refused.err;
    // Nothing is said of a cache that a model does not have.
    const Answer without = run({"bench", "mamba2-130m", "--layers", "1", "--threads", "1", "--seconds", "0.001",
                                "--context", "16", "--dtype", "fp8", "--backend", "own", "--only", "operators"});
    ASSERT_EQ(without.exit_code, 0) << without.err;
    EXPECT_EQ(without.out.find("KV cache"), std::string::npos) << without.out;
}

TEST(Bench, StoppedInTheMiddleItWritesNothing) {
    const TemporaryFolder folder;
    const TemporaryFolder results;
    const std::string model = folder.write("toy/config.json", toy);
    const Answer answer = run({"bench", model, "--threads", "1", "--seconds", "30", "-o", results.path("report.json"),
                               "--format", "json", "--plot", results.path("report.svg")},
                              {}, nullptr, 700'000);
    EXPECT_EQ(answer.exit_code, 130) << answer.err;
    EXPECT_EQ(answer.out, "");
    EXPECT_TRUE(results.is_empty());
}

TEST(Bench, AFileThatCannotBeWrittenIsNamedBeforeAnythingIsRun) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    const std::string nowhere = folder.path("none/report.json");
    const Answer answer = run({"bench", model, "--threads", "1", "--seconds", "60", "-o", nowhere});
    EXPECT_EQ(answer.exit_code, 2);
    EXPECT_NE(answer.err.find(nowhere + ": cannot be written: No such file or directory"), std::string::npos)
        << answer.err;
}

TEST(Synth, StoppedInTheMiddleItLeavesNothing) {
    const TemporaryFolder folder;
    const Answer answer =
        run({"models", "synth", "llama-3.1-8b", "-o", folder.path("large.gguf")}, {}, nullptr, 300'000);
    // Where the disk has no 16 GB left it is refused at once.
    EXPECT_EQ(answer.exit_code, answer.err.find("and the disk has") == std::string::npos ? 130 : 2) << answer.err;
    EXPECT_TRUE(folder.is_empty());
}

TEST(Synth, WritesAFileThatPredictReads) {
    const TemporaryFolder folder;
    const std::string model = folder.write("toy/config.json", toy);
    const std::string file = folder.path("toy.gguf");
    const Answer written = run({"models", "synth", model, "-o", file, "--dtype", "q8_0"});
    ASSERT_EQ(written.exit_code, 0) << written.err;
    const Answer shown = run({"models", "show", file, "--format", "json"});
    ASSERT_EQ(shown.exit_code, 0) << shown.err;
    const Answer original = run({"models", "show", model, "--format", "json"});
    EXPECT_EQ(Json::parse(shown.out, nullptr, false)["parameters"],
              Json::parse(original.out, nullptr, false)["parameters"]);
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
        EXPECT_EQ(entry.path().string().find(".part"), std::string::npos);
}

}  // namespace
}  // namespace roofline::cli::testing

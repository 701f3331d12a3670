// What a plan becomes on an engine's command line.
#include "roofline/decide/emit.hpp"

#include <gtest/gtest.h>

namespace roofline::decide {
namespace {

Server dense() {
    Server server;
    server.model = "org/model";
    server.deployment.tensor = 2;
    server.replicas = 3;
    server.sequences = 96;
    server.step_tokens = 2048;
    server.longest = 1500;
    server.utilisation = 0.92;
    return server;
}

Server spread() {
    Server server = dense();
    server.experts = true;
    server.replicas = 1;
    server.deployment = {.tensor = 1, .groups = 8, .experts = 8};
    server.weights = "fp8";
    server.kv = "fp8";
    return server;
}

TEST(Emit, KnowsItsEngines) {
    EXPECT_EQ(emitters(), (std::vector<std::string>{"sglang", "trtllm", "vllm"}));
    EXPECT_EQ(emit("vlm", {}).error().text, "--emit: found \"vlm\", expected one of sglang, trtllm, vllm");
}

TEST(Emit, VllmTakesCopiesOfADenseModelAsDataParallelRanks) {
    EXPECT_EQ(*emit("vllm", {dense()}),
              "vllm serve org/model \\\n"
              "  --tensor-parallel-size 2 \\\n"
              "  --data-parallel-size 3 \\\n"
              "  --max-num-seqs 96 \\\n"
              "  --max-num-batched-tokens 2048 \\\n"
              "  --max-model-len 1500 \\\n"
              "  --gpu-memory-utilization 0.92\n");
}

TEST(Emit, VllmCountsSequencesByAttentionGroup) {
    EXPECT_EQ(*emit("vllm", {spread()}),
              "vllm serve org/model \\\n"
              "  --tensor-parallel-size 1 \\\n"
              "  --data-parallel-size 8 \\\n"
              "  --enable-expert-parallel \\\n"
              "  --max-num-seqs 12 \\\n"
              "  --max-num-batched-tokens 2048 \\\n"
              "  --max-model-len 1500 \\\n"
              "  --gpu-memory-utilization 0.92 \\\n"
              "  --quantization fp8 \\\n"
              "  --kv-cache-dtype fp8\n");
}

TEST(Emit, CopiesOfAModelWithExpertsAreStartedOneByOne) {
    Server server = spread();
    server.replicas = 2;
    EXPECT_TRUE(emit("vllm", {server})->starts_with("# start 2 of these behind a load balancer\nvllm serve"));
}

TEST(Emit, SglangCountsAllDevicesOfAStageAndSharesLimitsOutItself) {
    EXPECT_EQ(*emit("sglang", {spread()}),
              "python -m sglang.launch_server \\\n"
              "  --model-path org/model \\\n"
              "  --tp-size 8 \\\n"
              "  --dp-size 8 \\\n"
              "  --enable-dp-attention \\\n"
              "  --ep-size 8 \\\n"
              "  --max-running-requests 96 \\\n"
              "  --chunked-prefill-size 16384 \\\n"
              "  --enable-mixed-chunk \\\n"
              "  --context-length 1500 \\\n"
              "  --mem-fraction-static 0.92 \\\n"
              "  --quantization fp8 \\\n"
              "  --kv-cache-dtype fp8_e4m3\n");
}

TEST(Emit, TrtllmPutsWhatHasNoFlagIntoAFile) {
    EXPECT_EQ(*emit("trtllm", {spread()}),
              "# MODEL must be a checkpoint in fp8\n"
              "cat > options.yaml <<'END'\n"
              "enable_chunked_prefill: true\n"
              "enable_attention_dp: true\n"
              "kv_cache_config:\n"
              "  free_gpu_memory_fraction: 0.92\n"
              "  dtype: fp8\n"
              "END\n"
              "trtllm-serve org/model \\\n"
              "  --tp_size 8 \\\n"
              "  --ep_size 8 \\\n"
              "  --max_batch_size 12 \\\n"
              "  --max_num_tokens 2048 \\\n"
              "  --max_seq_len 1500 \\\n"
              "  --kv_cache_free_gpu_memory_fraction 0.92 \\\n"
              "  --extra_llm_api_options options.yaml\n");
    Server groups_of_two = spread();
    groups_of_two.deployment = {.tensor = 2, .groups = 4, .experts = 8};
    EXPECT_FALSE(emit("trtllm", {groups_of_two}).has_value());
}

TEST(Emit, SequencesThatDevicesShareAreSaidAsEachEngineSaysIt) {
    Server server = dense();
    server.replicas = 1;
    server.deployment = {.tensor = 2, .context = 4};
    EXPECT_NE(emit("vllm", {server})->find("--tensor-parallel-size 2 \\\n  --prefill-context-parallel-size 4 \\\n"),
              std::string::npos);
    // Of SGLang's eight tensor ranks, every four share a sequence.
    EXPECT_NE(emit("sglang", {server})->find("--tp-size 8 \\\n  --attn-cp-size 4 \\\n"), std::string::npos);
    EXPECT_NE(emit("trtllm", {server})->find("--tp_size 2 \\\n  --cp_size 4 \\\n"), std::string::npos);
}

TEST(Emit, PoolsApartAreStartedApart) {
    Server first = dense();
    first.part = Part::prompts;
    first.replicas = 1;
    Server second = dense();
    second.part = Part::outputs;
    const std::string vllm = *emit("vllm", {first, second});
    EXPECT_NE(vllm.find("# prompts\n"), std::string::npos);
    EXPECT_NE(vllm.find("# outputs\n"), std::string::npos);
    EXPECT_NE(vllm.find("--kv-transfer-config '{\"kv_connector\":\"NixlConnector\""), std::string::npos);
    const std::string sglang = *emit("sglang", {first, second});
    EXPECT_NE(sglang.find("--disaggregation-mode prefill"), std::string::npos);
    EXPECT_NE(sglang.find("--disaggregation-mode decode"), std::string::npos);
    EXPECT_NE(sglang.find("# start 3 of these"), std::string::npos);
}

TEST(Emit, SaysWhenTheCheckpointMustBeAnother) {
    Server server = dense();
    server.weights = "awq";
    EXPECT_TRUE(emit("vllm", {server})->starts_with("# MODEL must be a checkpoint in awq\n"));
    EXPECT_EQ(emit("vllm", {server})->find("--quantization"), std::string::npos);
}

TEST(Emit, SaysWhoGuessesAheadAndWhere) {
    Server server = dense();
    server.drafted = 3;
    server.draft = "org/draft";
    server.device = "h100-sxm";
    const std::string vllm = *emit("vllm", {server});
    EXPECT_NE(vllm.find("# on h100-sxm\n"), std::string::npos);
    EXPECT_NE(vllm.find(R"(--speculative-config '{"model":"org/draft","num_speculative_tokens":3}')"),
              std::string::npos)
        << vllm;
    const std::string sglang = *emit("sglang", {server});
    EXPECT_NE(sglang.find("--speculative-draft-model-path org/draft"), std::string::npos);
    EXPECT_NE(sglang.find("--speculative-num-draft-tokens 4"), std::string::npos);
    EXPECT_NE(emit("trtllm", {server})->find("  speculative_model_dir: org/draft\n  max_draft_len: 3\n"),
              std::string::npos);
    // Nobody named: the checkpoint's own heads, with a word about it.
    server.draft.clear();
    EXPECT_NE(emit("vllm", {server})->find("\"method\":\"mtp\""), std::string::npos);
    EXPECT_NE(emit("trtllm", {server})->find("num_nextn_predict_layers: 3"), std::string::npos);
    EXPECT_NE(emit("sglang", {server})->find("# guesses come from the checkpoint's own heads"), std::string::npos);
    EXPECT_EQ(emit("vllm", {dense()})->find("speculative"), std::string::npos);
}

TEST(Emit, NamesALibraryWhereTokensAreSentToTheirExperts) {
    // Gathering is what engines do unless they are told.
    Server server = spread();
    server.deployment.exchange = model::ExpertExchange::gather;
    for (const char* engine : {"vllm", "sglang", "trtllm"})
        EXPECT_EQ(*emit(engine, {server}), *emit(engine, {spread()})) << engine;
    server.deployment.exchange = model::ExpertExchange::all_to_all;
    EXPECT_NE(emit("vllm", {server})->find("--all2all-backend deepep_low_latency"), std::string::npos);
    EXPECT_NE(emit("sglang", {server})->find("--moe-a2a-backend deepep"), std::string::npos);
    EXPECT_NE(emit("trtllm", {server})->find("moe_config:\n  backend: WIDEEP\n"), std::string::npos);
    server.part = Part::prompts;
    EXPECT_NE(emit("vllm", {server})->find("--all2all-backend deepep_high_throughput"), std::string::npos);
}

}  // namespace
}  // namespace roofline::decide

// Numbers that are published elsewhere or follow from a line of arithmetic, asked of the program itself through its
// JSON. Each stands beside its derivation.
#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"

namespace roofline::cli::testing {
namespace {

using Arguments = std::vector<std::string>;

Json ask(Arguments arguments) {
    arguments.insert(arguments.end(), {"--format", "json"});
    const Answer answer = run(arguments);
    EXPECT_EQ(answer.exit_code, 0) << typed(arguments) << "\n" << answer.err;
    Json json = parsed(answer.out);
    EXPECT_TRUE(json.is_object()) << typed(arguments);
    return json;
}

double number(const Json& json, const char* place) {
    const Json::json_pointer pointer(place);
    if (!json.contains(pointer) || !json[pointer].is_number()) {
        ADD_FAILURE() << "no number at " << place;
        return -1.0;
    }
    return json[pointer].get<double>();
}

Json stage_of(const Json& report, const std::string& name) {
    for (const Json& stage : report["stages"]) {
        if (stage["stage"] == name) return stage;
    }
    ADD_FAILURE() << "the report has no stage " << name;
    return Json::object();
}

Json record_of(const Json& stage, const std::string& name) {
    for (const Json& record : stage["records"]) {
        if (record["name"] == name) return record;
    }
    ADD_FAILURE() << "the stage has no record " << name;
    return Json::object();
}

TEST(PublishedNumbers, TheRidgeOfAnH100IsAt295FlopsPerByte) {
    // 989.4e12 FLOP/s / 3.35e12 B/s = 295.34
    EXPECT_NEAR(number(ask({"devices", "show", "h100-sxm"}), "/ridge/fp16"), 989.4e12 / 3.35e12, 1e-9);
    EXPECT_NEAR(number(ask({"devices", "show", "h100-sxm"}), "/ridge/fp16"), 295.34, 0.005);
}

TEST(PublishedNumbers, TheRidgeOfAnA100IsAt153FlopsPerByte) {
    // 312e12 FLOP/s / 2.039e12 B/s = 153.02
    EXPECT_NEAR(number(ask({"devices", "show", "a100-sxm-80gb"}), "/ridge/fp16"), 153.02, 0.005);
}

TEST(PublishedNumbers, TheRidgeOfATpuV4IsAt229FlopsPerByte) {
    // 275e12 FLOP/s / 1.2e12 B/s = 229.17
    EXPECT_NEAR(number(ask({"devices", "show", "tpu-v4"}), "/ridge/bf16"), 229.17, 0.005);
}

TEST(PublishedNumbers, TheRooflineRisesWithIntensityUpToThePeak) {
    const auto at = [](const char* intensity) {
        return ask({"op", "--flops", intensity, "--bytes", "1", "--device", "h100-sxm", "--dtype", "fp16"});
    };
    // min(989.4e12, I x 3.35e12): 1 x 3.35e12; 295 x 3.35e12 = 988.25e12, still below the peak; 600 x 3.35e12 =
    // 2010e12, above it.
    EXPECT_NEAR(number(at("1"), "/flops_per_s/limit"), 3.35e12, 1e3);
    EXPECT_NEAR(number(at("295"), "/flops_per_s/limit"), 988.25e12, 1e3);
    EXPECT_NEAR(number(at("600"), "/flops_per_s/limit"), 989.4e12, 1e3);
    EXPECT_EQ(at("1")["bound"], "memory");
    EXPECT_EQ(at("295")["bound"], "memory");
    EXPECT_EQ(at("296")["bound"], "compute");
    EXPECT_EQ(at("600")["bound"], "compute");
}

TEST(PublishedNumbers, AThreeByTwoMatrixTimesAVectorByHand) {
    // Three dot products of length two: 3 x (2 multiplications + 1 addition) = 9 FLOPs. Loads: 6 weights and 2 inputs
    // of 2 bytes = 16 bytes; the three outputs are not loaded. 9 / 16 = 0.5625.
    const Json op = ask({"op", "gemm", "--m", "3", "--n", "1", "--k", "2", "--dtype", "fp16", "--flops", "exact",
                         "--traffic", "loads"});
    EXPECT_DOUBLE_EQ(number(op, "/flops"), 9.0);
    EXPECT_DOUBLE_EQ(number(op, "/bytes/memory"), 16.0);
    EXPECT_DOUBLE_EQ(number(op, "/intensity"), 0.5625);
    // With the usual count, a multiply-add for each weight: 2 x 3 x 2 = 12. All traffic: 16 + 3 outputs x 2 = 22.
    const Json usual = ask({"op", "gemm", "--m", "3", "--n", "1", "--k", "2", "--dtype", "fp16"});
    EXPECT_DOUBLE_EQ(number(usual, "/flops"), 12.0);
    EXPECT_DOUBLE_EQ(number(usual, "/bytes/memory"), 22.0);
}

TEST(PublishedNumbers, AMatrixTimesOneTokenHasIntensityOne) {
    // 2 x 4096 x 14336 FLOPs over 4096 x 14336 weights of 2 bytes.
    const Json op =
        ask({"op", "gemm", "--m", "1", "--n", "4096", "--k", "14336", "--dtype", "fp16", "--traffic", "weights"});
    EXPECT_DOUBLE_EQ(number(op, "/flops"), 117440512.0);
    EXPECT_DOUBLE_EQ(number(op, "/bytes/memory"), 117440512.0);
    EXPECT_DOUBLE_EQ(number(op, "/intensity"), 1.0);
    EXPECT_EQ(op["bound"], "memory");
}

TEST(PublishedNumbers, EightBillionParametersDecodeIn4776MicrosecondsOnAnH100) {
    // 8e9 x 2 bytes / 3.35e12 B/s = 4.776 ms; 1 / 4.776 ms = 209.4 tokens/s
    const Json report = ask({"predict", "--params", "8e9", "--device", "h100-sxm", "--dtype", "fp16"});
    const Json decode = stage_of(report, "decode");
    EXPECT_NEAR(number(decode, "/time_s/limit"), 4.776e-3, 0.0005e-3);
    EXPECT_NEAR(number(decode, "/tokens_per_s/limit"), 209.4, 0.05);
    EXPECT_DOUBLE_EQ(number(report, "/fit/weights_bytes"), 16e9);
    EXPECT_DOUBLE_EQ(number(report, "/model/parameters"), 8e9);
    EXPECT_DOUBLE_EQ(number(report, "/model/active_parameters"), 8e9);
}

TEST(PublishedNumbers, ThirtyBillionParametersMove60GigabytesFor60GigaflopsAToken) {
    // 30e9 x 2 bytes; 30e9 multiply-adds of 2 FLOPs; 60e9 / 60e9 = 1 FLOP/B
    const Json decode =
        stage_of(ask({"predict", "--params", "30e9", "--device", "h100-sxm", "--dtype", "fp16"}), "decode");
    EXPECT_DOUBLE_EQ(number(decode, "/bytes/memory"), 60e9);
    EXPECT_DOUBLE_EQ(number(decode, "/flops"), 60e9);
    EXPECT_DOUBLE_EQ(number(decode, "/intensity"), 1.0);
}

TEST(PublishedNumbers, PrefillOf512TokensIsComputeBoundWithAnIntensityOfAboutItsTokens) {
    // Every 2-byte weight is used for 512 multiply-adds of 2 FLOPs: 512 FLOP/B over the matrices of the layers, less
    // where activations go through memory or only the last token is used (the head).
    const Json prefill = stage_of(ask({"predict", "llama-3-8b", "h100-sxm", "--prompt", "512"}), "prefill");
    EXPECT_EQ(prefill["bound"], "compute");
    EXPECT_GT(number(prefill, "/intensity"), 0.75 * 512.0);
    EXPECT_LT(number(prefill, "/intensity"), 1.25 * 512.0);
    const Json gate_up = record_of(prefill, "layers.ffn.gate_up");
    EXPECT_DOUBLE_EQ(number(gate_up, "/flops") / number(gate_up, "/bytes/weights"), 512.0);
}

TEST(PublishedNumbers, DecodeIsMemoryBoundWithAnIntensityOfAboutItsBatch) {
    for (const double batch : {1.0, 16.0, 64.0}) {
        const Json decode = stage_of(ask({"predict", "llama-3-8b", "h100-sxm", "--context", "128", "--batch",
                                          std::to_string(static_cast<int>(batch))}),
                                     "decode");
        EXPECT_EQ(decode["bound"], "memory");
        EXPECT_NEAR(number(decode, "/intensity") / batch, 1.0, 0.1) << batch;
    }
}

TEST(PublishedNumbers, Llama3At4096TokensStreamsItsMatricesAndReadsItsCache) {
    const Json decode = stage_of(
        ask({"predict", "llama-3-8b", "h100-sxm", "--dtype", "bf16", "--batch", "1", "--context", "4096"}), "decode");
    // A layer: 4096 x (4096 + 2 x 1024) + 4096 x 4096 for attention and 3 x 4096 x 14336 for the FFN = 218,103,808
    // weights; 32 layers and the head of 128256 x 4096: 7,504,658,432 weights of 2 bytes. The embedding table is looked
    // up, not streamed.
    constexpr double streamed = 2.0 * (32.0 * 218103808.0 + 128256.0 * 4096.0);
    static_assert(streamed == 15009316864.0);
    double weights = 0.0;
    double time = 0.0;
    for (const Json& record : decode["records"]) {
        if (record["kind"] != "gemm") continue;
        weights += number(record, "/bytes/weights");
        time += number(record, "/time_s/limit");
    }
    EXPECT_DOUBLE_EQ(weights, streamed);
    // 15,009,316,864 B / 3.35e12 B/s = 4.4804 ms; each product is memory-bound, so their limits add up to it.
    EXPECT_NEAR(weights / 3.35e12, 4.4804e-3, 0.00005e-3);
    EXPECT_NEAR(time, 4.4804e-3, 0.00005e-3);
    // Keys and values of 8 heads of 128 in 2 bytes over 32 layers: 2 x 8 x 128 x 2 x 32 = 131,072 B a token.
    const Json core = record_of(decode, "layers.attention.core");
    EXPECT_DOUBLE_EQ(number(core, "/bytes/kv"), 131072.0 * 4096.0);
    // 536,870,912 B / 3.35e12 B/s = 0.1603 ms
    EXPECT_NEAR(number(core, "/time_s/limit"), 0.1603e-3, 0.00005e-3);
}

TEST(PublishedNumbers, DoublingTheComputeLeavesDecodeAloneAndTheProgramSaysSo) {
    const Json before = stage_of(ask({"predict", "llama-3.1-8b", "h100-sxm"}), "decode");
    const Json after = stage_of(ask({"predict", "llama-3.1-8b", "h100-sxm", "--set", "compute=2x"}), "decode");
    EXPECT_DOUBLE_EQ(number(after, "/time_s/limit"), number(before, "/time_s/limit"));
    // Some vector work of a few nanoseconds is compute-bound; the step's attainable time moves by less than 1e-4.
    EXPECT_NEAR(number(after, "/time_s/attainable") / number(before, "/time_s/attainable"), 1.0, 1e-4);
    const Answer answer = run({"predict", "llama-3.1-8b", "h100-sxm", "--set", "compute=2x"});
    const std::size_t changes = answer.out.find("what compute=2x changes");
    ASSERT_NE(changes, std::string::npos) << answer.out;
    const std::size_t decode = answer.out.find("decode", changes);
    ASSERT_NE(decode, std::string::npos) << answer.out;
    const std::string line = answer.out.substr(decode, answer.out.find('\n', decode) - decode);
    EXPECT_NE(line.find("did not change"), std::string::npos) << line;
    EXPECT_NE(line.find("memory"), std::string::npos) << line;
}

TEST(PublishedNumbers, DoublingTheBandwidthHalvesDecodeAndLeavesTheProductsOfPrefillAlone) {
    const Json before = ask({"predict", "llama-3.1-8b", "h100-sxm"});
    const Json after = ask({"predict", "llama-3.1-8b", "h100-sxm", "--set", "memory.bandwidth=2x"});
    EXPECT_NEAR(
        number(stage_of(before, "decode"), "/time_s/limit") / number(stage_of(after, "decode"), "/time_s/limit"), 2.0,
        1e-3);
    for (const char* product : {"layers.attention.qkv", "layers.ffn.gate_up", "layers.ffn.down"}) {
        EXPECT_DOUBLE_EQ(number(record_of(stage_of(before, "prefill"), product), "/time_s/limit"),
                         number(record_of(stage_of(after, "prefill"), product), "/time_s/limit"));
    }
}

}  // namespace
}  // namespace roofline::cli::testing

// From the rows of measured tables to work, by hand; and what becomes of rows that cannot be used.
#include "roofline/assess/measured.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace roofline::assess {
namespace {

Measurements read(const std::string& text) {
    Measurements result;
    const auto done = read_measured(text, "t.csv", result);
    EXPECT_TRUE(done.has_value()) << done.error().text;
    return result;
}

std::string problem_with(const std::string& text) {
    Measurements result;
    const auto done = read_measured(text, "t.csv", result);
    EXPECT_FALSE(done.has_value());
    EXPECT_TRUE(result.rows.empty());
    return done ? "" : done.error().text;
}

Measurement only(const Measurements& measured) {
    EXPECT_EQ(measured.rows.size(), 1U) << (measured.refused.empty() ? "" : measured.refused.front().reason);
    return measured.rows.empty() ? Measurement{} : measured.rows.front();
}

/// The reasons in the order of the lines, each with its line: "3: unknown device".
std::vector<std::string> reasons(const Measurements& measured) {
    std::vector<std::pair<int, std::string>> sorted;
    for (const Refusal& refusal : measured.refused) {
        EXPECT_EQ(refusal.file, "t.csv");
        sorted.emplace_back(refusal.line, std::to_string(refusal.line) + ": " + refusal.reason);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> result;
    for (const auto& [line, reason] : sorted) result.push_back(reason);
    return result;
}

using Reasons = std::vector<std::string>;

const std::string gemm_header = "gpu,op,dtype,m,n,k,time_us,framework\n";

std::string gemm(const std::string& gpu, const std::string& type, const std::string& sizes, const std::string& time) {
    return gpu + ",gemm," + type + "," + sizes + "," + time + ",vLLM\n";
}

TEST(MeasuredRows, AProductByHand) {
    const Measurement row = only(read(gemm_header + gemm("h100_sxm", "bf16", "2,3,4", "5.5")));
    EXPECT_EQ(row.device->name, "h100-sxm") << "tables write names in their own way";
    EXPECT_EQ(row.kind, "gemm");
    EXPECT_EQ(row.type, "bf16");
    EXPECT_EQ(row.fit_type, "bf16");
    EXPECT_EQ(row.stack, "") << "everyone calls the same library for bf16";
    EXPECT_EQ(row.family, "3x4") << "all m of one matrix belong together";
    EXPECT_EQ(row.line, 2);
    EXPECT_DOUBLE_EQ(row.seconds, 5.5e-6);
    ASSERT_EQ(row.calls.size(), 1U);
    EXPECT_EQ(row.calls[0].kernel_class->name, "gemm");
    EXPECT_EQ(row.calls[0].engine, Engine::matrix);
    const predict::Kernel& kernel = row.calls[0].kernel;
    EXPECT_EQ(kernel.flops, 48.0) << "2 x 2 x 3 x 4";
    EXPECT_EQ(kernel.weight_bytes, 24.0);
    EXPECT_EQ(kernel.input_bytes, 16.0);
    EXPECT_EQ(kernel.output_bytes, 12.0);
}

TEST(MeasuredRows, NarrowWeightsAndActivationsButResultsOfTwoBytes) {
    const Measurement row = only(read(gemm_header + gemm("h100-sxm", "fp8", "2,3,4", "5")));
    EXPECT_EQ(row.calls.at(0).type, DType::fp8);
    EXPECT_EQ(row.calls.at(0).kernel.weight_bytes, 12.0);
    EXPECT_EQ(row.calls.at(0).kernel.input_bytes, 8.0);
    EXPECT_EQ(row.calls.at(0).kernel.output_bytes, 12.0);
    EXPECT_EQ(row.stack, "vllm") << "who quantises, and how, differs";
    // 32 x 2 elements of half a byte, a byte of scale for every 16 of a column.
    const Measurement four = only(read(gemm_header + gemm("b200-sxm", "nvfp4", "2,2,32", "5")));
    EXPECT_EQ(four.calls.at(0).type, DType::fp4);
    EXPECT_EQ(four.calls.at(0).kernel.weight_bytes, 32.0 + 4.0);
    EXPECT_EQ(four.calls.at(0).kernel.input_bytes, 32.0);
}

TEST(MeasuredRows, WithoutATypeARowIsInBf16) {
    EXPECT_EQ(only(read(gemm_header + gemm("h100-sxm", "", "2,3,4", "5"))).type, "bf16");
    EXPECT_EQ(only(read("gpu,op,m,n,k,time_us\nh100-sxm,gemm,2,3,4,5\n")).type, "bf16");
}

TEST(MeasuredRows, TheLimitIsTheSlowerOfFlopsAndBytes) {
    // 33,554,432 bytes of weights at 3.35 TB/s; activations of 16 kB stay on the chip.
    const Measurement thin = only(read(gemm_header + gemm("h100-sxm", "bf16", "1,4096,4096", "20")));
    EXPECT_NEAR(thin.limit, 10.0162e-6, 1e-10);
    // 2 x 4096^3 flops at 989.4 TFLOP/s.
    const Measurement fat = only(read(gemm_header + gemm("h100-sxm", "bf16", "4096,4096,4096", "200")));
    EXPECT_NEAR(fat.limit, 138.911e-6, 1e-9);
    for (const Measurement& row : {thin, fat}) EXPECT_GE(row.attainable, row.limit);
    // Activations of 33,554,432 bytes in and 67,108,864 out do not stay in a cache of 50 MB.
    const Measurement wide = only(read(gemm_header + gemm("h100-sxm", "bf16", "131072,256,128", "200")));
    EXPECT_NEAR(wide.limit, (65536.0 + 33554432.0 + 67108864.0) / 3.35e12, 1e-12);
}

const std::string attention_header =
    "gpu,op,dtype,kv_dtype,batch,q_len,kv_len,heads,kv_heads,head_dim,time_us,"
    "framework,kernel\n";

std::string attention(const std::string& op, const std::string& types, const std::string& sizes,
                      const std::string& software = "pytorch,cudnn_attention") {
    return "h200-sxm," + op + "," + types + "," + sizes + ",9," + software + "\n";
}

TEST(MeasuredRows, OneTokenAgainstACacheByHand) {
    const Measurement row = only(read(attention_header + attention("attention_decode", "bf16,bf16", "2,1,8,4,2,16")));
    ASSERT_EQ(row.calls.size(), 1U);
    EXPECT_EQ(row.calls[0].kernel_class->name, "attention_decode");
    const predict::Kernel& kernel = row.calls[0].kernel;
    EXPECT_EQ(kernel.flops, 4096.0) << "4 heads of 16, 2 sequences, 8 keys; 2 for the scores and 2 for the values";
    EXPECT_EQ(kernel.weight_bytes, 2048.0) << "keys and values: 2 x 2 x 8 x 2 heads x 16 x 2 bytes";
    EXPECT_EQ(kernel.input_bytes, 256.0);
    EXPECT_EQ(kernel.output_bytes, 256.0);
    EXPECT_EQ(kernel.sequences, 2.0);
    EXPECT_EQ(kernel.keys, 8.0);
    EXPECT_EQ(row.stack, "cudnn_attention") << "PyTorch offers several kernels";
    EXPECT_EQ(row.fit_type, "bf16");
    EXPECT_EQ(row.family, "4/2x16");
}

TEST(MeasuredRows, ACacheOfEightBitsHalvesWhatStreams) {
    const Measurement row =
        only(read(attention_header + attention("attention_decode", "bf16,fp8", "2,1,8,4,2,16", "SGLang,some")));
    EXPECT_EQ(row.calls.at(0).kernel.weight_bytes, 1024.0);
    EXPECT_EQ(row.calls.at(0).kernel.flops, 4096.0);
    EXPECT_EQ(row.fit_type, "bf16/fp8");
    EXPECT_EQ(row.stack, "sglang") << "an engine has made its choice";
}

TEST(MeasuredRows, KernelsThatAreKnownToCutContextsHaveAClassOfTheirOwn) {
    const auto class_on = [](const std::string& gpu, const std::string& software) {
        return only(read(attention_header + gpu + ",attention_decode,bf16,bf16,2,1,8,4,2,16,90," + software + "\n"))
            .calls.at(0)
            .kernel_class->name;
    };
    EXPECT_EQ(class_on("h200-sxm", "pytorch,flash_attention_2"), "flash_decode");
    EXPECT_EQ(class_on("a100-sxm-80gb", "vLLM,vllm_flash_attn"), "flash_decode");
    EXPECT_EQ(class_on("h200-sxm", "vLLM,vllm_flash_attn"), "attention_decode") << "the third, on a Hopper";
    EXPECT_EQ(class_on("arc-pro-b60", "vLLM,vllm_flash_attn"), "xe_decode") << "another vendor's kernel";
}

TEST(MeasuredRows, WhatTheDeviceCannotMultiplyIsUnpacked) {
    const Measurement unpacked = only(read(gemm_header + gemm("a100-sxm-80gb", "fp8", "2,3,4", "5")));
    EXPECT_EQ(unpacked.type, "fp8");
    EXPECT_EQ(unpacked.fit_type, "fp8/bf16");
    EXPECT_EQ(unpacked.calls.at(0).machine.peak, 312e12) << "as in bf16";
    const Measurement four = only(read(gemm_header + gemm("h100-sxm", "nvfp4", "2,2,32", "5")));
    EXPECT_EQ(four.fit_type, "nvfp4/bf16");
    EXPECT_EQ(four.calls.at(0).type, DType::fp8) << "what stands in for the limit";
    EXPECT_EQ(four.calls.at(0).machine.peak, 989.4e12) << "kernels multiply in bf16";
}

TEST(MeasuredRows, APromptSeesWhatIsBeforeItAndAnEncoderAll) {
    // 4 queries after 2 cached tokens see 3, 4, 5 and 6 keys: 18 pairs.
    const Measurement causal = only(read(attention_header + attention("attention_prefill", "bf16,", "1,4,6,2,1,8")));
    EXPECT_EQ(causal.calls.at(0).kernel_class->name, "attention_prefill");
    EXPECT_EQ(causal.calls.at(0).kernel.flops, 4.0 * 2 * 8 * 18);
    EXPECT_EQ(causal.calls.at(0).kernel.weight_bytes, 2.0 * 6 * 8 * 2);
    const Measurement full =
        only(read(attention_header + attention("attention_encoder", "bf16,", "1,4,4,2,2,8", "vLLM,flash_fa3")));
    EXPECT_EQ(full.calls.at(0).kernel.flops, 4.0 * 2 * 8 * 16);
    EXPECT_EQ(full.stack, "encoder/fa3, odd heads");  // of 72: no matrix instruction divides them
}

TEST(MeasuredRows, UnusableKernelRowsAreNamedWithTheirReason) {
    const Measurements measured = read(gemm_header +                                      //
                                       gemm("h100-sxm", "bf16", "1,4096,4096", "20") +    //
                                       gemm("h100-sxm", "bf16", "1,4096,8192", "20.0") +  // 20.03 us at the limit
                                       gemm("h100-sxm", "bf16", "0,4096,4096", "20") +    //
                                       gemm("h100-sxm", "bf16", "1,,4096", "20") +        //
                                       gemm("h100-sxm", "bf16", "1,4096,-3", "20") +      //
                                       gemm("h100-sxm", "bf16", "1,many,4096", "20") +    //
                                       gemm("warp-drive", "bf16", "1,4096,4096", "20") +  //
                                       "h100-sxm,conv3d,bf16,1,1,1,20,vLLM\n" +           //
                                       gemm("h100-sxm", "bf17", "1,4096,4096", "20") +    //
                                       gemm("h100-sxm", "bf16", "1,4096,4096", "0") +     //
                                       gemm("h100-sxm", "bf16", "1,4096,4096", "-20") +   //
                                       gemm("h100-sxm", "bf16", "1,4096,4096", "") +      //
                                       gemm("h100-sxm", "bf16", "1,4096,4096", "inf") +   //
                                       gemm("h100-sxm", "bf16", "1,4096,4096", "soon"));
    EXPECT_EQ(only(measured).line, 2);
    EXPECT_EQ(
        reasons(measured),
        (Reasons{"3: faster than the limit", "4: m, n or k is missing, or is no whole number up to a billion",
                 "5: m, n or k is missing, or is no whole number up to a billion",
                 "6: m, n or k is missing, or is no whole number up to a billion",
                 "7: m, n or k is missing, or is no whole number up to a billion", "8: unknown device",
                 "9: no formula for this kind of row", "10: unknown number type", "11: no positive time",
                 "12: no positive time", "13: no positive time", "14: no positive time", "15: no positive time"}));
    EXPECT_EQ(measured.refused[0].device, "h100-sxm");
    EXPECT_EQ(measured.refused[0].kind, "gemm");
    EXPECT_EQ(measured.refused[0].type, "bf16");
    const auto unknown = std::find_if(measured.refused.begin(), measured.refused.end(),
                                      [](const Refusal& refusal) { return refusal.line == 8; });
    EXPECT_EQ(unknown->device, "warp-drive") << "as far as known";
}

TEST(MeasuredRows, UnusableAttentionRowsAreNamedWithTheirReason) {
    const Measurements measured = read(attention_header + attention("attention_decode", "bf16,bf16", "0,1,8,4,2,16") +
                                       attention("attention_prefill", "bf16,bf16", "1,9,8,4,2,16") +
                                       attention("attention_prefill", "bf16,none", "1,8,8,4,2,16") +
                                       attention("attention_prefill", "none,bf16", "1,8,8,4,2,16"));
    EXPECT_TRUE(measured.rows.empty());
    EXPECT_EQ(reasons(measured),
              (Reasons{"2: a size is missing, or is no whole number up to a billion", "3: fewer keys than queries",
                       "4: unknown number type", "5: unknown number type"}));
}

TEST(MeasuredRows, ColumnsThatNobodyReadsAreNoted) {
    const std::string line = "h100-sxm,gemm,bf16,1,4096,4096,20,vLLM";
    EXPECT_TRUE(read(gemm_header + line + "\n").notes.empty());
    const Measurements measured = read("gpu,op,dtype,m,n,k,time_us,framework,weather,head_dim\n" + line + ",rain,3\n");
    EXPECT_EQ(measured.notes,
              (std::vector<std::string>{"t.csv: column weather is not used", "t.csv: column head_dim is not used"}));
    EXPECT_EQ(measured.rows.size(), 1U);
}

TEST(MeasuredRows, AHeaderNobodyKnowsIsOneLine) {
    for (const char* header : {"colour,shape\n", "gpu,op,time_ms\n", "model,stage\n", "GPU,OP,TIME_US\n"}) {
        const std::string problem = problem_with(std::string(header));
        EXPECT_TRUE(problem.starts_with("t.csv: found no table known here, expected the columns gpu, op, time_us"))
            << problem;
        EXPECT_EQ(problem.find('\n'), std::string::npos);
    }
}

TEST(MeasuredRows, ReadsTheSameRowsFromJson) {
    const Measurements csv = read(gemm_header + gemm("h100-sxm", "bf16", "1,4096,4096", "20"));
    const Measurements json = read(
        R"({"schema": "roofline.measured/1", "rows": [{"gpu": "h100-sxm", "op": "gemm", "dtype": "bf16", "m": 1, "n": 4096,
            "k": 4096, "time_us": 20.0, "framework": null}]})");
    ASSERT_EQ(json.rows.size(), 1U);
    EXPECT_EQ(json.rows[0].label, csv.rows[0].label);
    EXPECT_EQ(json.rows[0].seconds, csv.rows[0].seconds);
    EXPECT_EQ(json.rows[0].limit, csv.rows[0].limit);
    EXPECT_EQ(problem_with("{\"a\": 1}"),
              "t.csv: found no rows, expected {\"schema\": \"roofline.measured/1\", \"rows\": [...]}");
    EXPECT_EQ(problem_with("[1]"), "t.csv: rows: found 1, expected an object");
}

TEST(MeasuredRows, TablesAreAddedToWhatIsThere) {
    Measurements measured = read(gemm_header + gemm("h100-sxm", "bf16", "1,4096,4096", "20"));
    ASSERT_TRUE(read_measured(gemm_header + gemm("l40s", "bf16", "1,16384,16384", "900"), "u.csv", measured));
    ASSERT_EQ(measured.rows.size(), 2U);
    EXPECT_EQ(measured.rows[0].file, "t.csv");
    EXPECT_EQ(measured.rows[1].file, "u.csv");
}

// ---- warm caches: an L40S has 96 MB of cache and 864 GB/s; 4096 x 4096 in bf16 are 33,554,432 bytes, 38.8 us ----

const std::string warm = "operands stay in the cache: a quarter of such rows beat the memory";

std::string l40s(int m, const std::string& time, const std::string& matrix = "4096,4096") {
    return gemm("l40s", "bf16", std::to_string(m) + "," + matrix, time);
}

TEST(WarmCaches, WhereAQuarterOfAFamilyBeatsTheMemoryAllOfItGoes) {
    const Measurements measured = read(gemm_header + l40s(1, "30") + l40s(2, "40") + l40s(4, "45") + l40s(8, "60"));
    EXPECT_TRUE(measured.rows.empty());
    EXPECT_EQ(reasons(measured), (Reasons{"2: faster than the limit", "3: " + warm, "4: " + warm, "5: " + warm}));
}

TEST(WarmCaches, FewerThanAQuarterAreOddRowsOfTheirOwn) {
    const Measurements measured =
        read(gemm_header + l40s(1, "30") + l40s(2, "40") + l40s(4, "45") + l40s(8, "60") + l40s(16, "60"));
    EXPECT_EQ(measured.rows.size(), 4U);
    EXPECT_EQ(reasons(measured), (Reasons{"2: faster than the limit"}));
}

TEST(WarmCaches, OnlyRowsThatTheCacheCouldHelpAreUnderSuspicion) {
    const Measurements measured = read(gemm_header + l40s(1, "30") + l40s(2, "40") +  //
                                       l40s(8192, "900") +                            // 759 us of flops: not the memory
                                       l40s(64, "500") +                              // 8% of it could be the memory
                                       l40s(1, "170", "16384,4096") +                 // 134 MB of weights do not fit
                                       l40s(1, "50", "8192,2048") +                   // another family
                                       gemm("l40s", "fp8", "1,4096,4096", "25") +     // other kernels
                                       gemm("l4", "bf16", "1,4096,4096", "130"));     // another device
    EXPECT_EQ(reasons(measured), (Reasons{"2: faster than the limit", "3: " + warm}));
    EXPECT_EQ(measured.rows.size(), 6U);
}

TEST(WarmCaches, EachTableIsJudgedByItself) {
    Measurements measured = read(gemm_header + l40s(2, "40") + l40s(4, "45"));
    ASSERT_TRUE(read_measured(gemm_header + l40s(1, "30") + l40s(2, "40"), "t.csv", measured));
    EXPECT_EQ(measured.rows.size(), 2U);
    EXPECT_EQ(measured.refused.size(), 2U);
}

// ---- whole models ----

const std::string step_header =
    "gpu,model,layers,hidden,heads,kv_heads,head_dim,ffn,vocab,dtype,execution,attention,"
    "stage,batch,tokens,context,time_ms\n";
const std::string tiny = "h100-sxm,tiny,2,64,4,2,16,128,100,bf16,graph+fused,cudnn_attention,";

TEST(MeasuredSteps, ADecodeStepByHand) {
    const Measurement row = only(read(step_header + tiny + "decode,1,1,16,0.5\n"));
    EXPECT_EQ(row.kind, "step");
    EXPECT_EQ(row.stage, "decode");
    EXPECT_EQ(row.family, "tiny") << "a model is left out whole";
    EXPECT_EQ(row.stack, "cudnn_attention");
    EXPECT_DOUBLE_EQ(row.seconds, 0.5e-3);
    EXPECT_TRUE(row.calls.empty());
    ASSERT_NE(row.step, nullptr);
    EXPECT_EQ(row.step->profile, "graph+fused");
    EXPECT_EQ(row.step->stacks, std::vector<std::string>{"cudnn_attention"});
    ASSERT_EQ(row.step->step.size(), 1U);
    EXPECT_EQ(row.step->step[0].count, 1.0);
    EXPECT_EQ(row.step->step[0].past, 15.0);
    // A layer: 4096 queries, 4096 keys and values, 4096 out, 3 x 8192, two norms of 64: 36,992; twice, with 64 of the
    // last norm, a head of 6400 and one embedding of 64: 80,512 parameters or 161,024 bytes. 16 tokens of cache, 128
    // bytes each in 2 layers: 4096; one of them written: 256. All of it streams, and the chip holds the rest.
    EXPECT_NEAR(row.limit * 3.35e12, 161024.0 + 4096.0 + 256.0, 1.0);
    EXPECT_GE(row.attainable, row.limit);
}

TEST(MeasuredSteps, APrefillStepAndItsCachedPrefix) {
    const Measurements measured = read(step_header + tiny + "prefill,2,8,8,0.5\n" + tiny + "prefill,2,8,24,0.5\n");
    ASSERT_EQ(measured.rows.size(), 2U);
    EXPECT_EQ(measured.rows[0].stage, "prefill");
    EXPECT_EQ(measured.rows[0].step->step[0].count, 2.0);
    EXPECT_EQ(measured.rows[0].step->step[0].past, 0.0);
    EXPECT_EQ(measured.rows[1].step->step[0].past, 16.0);
}

TEST(MeasuredSteps, TheSameStepWithoutAGraphIsARowOfItsOwn) {
    const std::string header = step_header.substr(0, step_header.size() - 1) + ",no_graph_ms\n";
    const Measurements measured = read(header + tiny + "decode,1,1,16,0.5,2\n" + tiny + "decode,1,1,16,0.5,\n");
    ASSERT_EQ(measured.rows.size(), 3U);
    EXPECT_EQ(measured.rows[1].kind, "step_eager");
    EXPECT_EQ(measured.rows[1].step->profile, "graph+fused-without-graph");
    EXPECT_DOUBLE_EQ(measured.rows[1].seconds, 2e-3);
    EXPECT_EQ(reasons(measured), (Reasons{"3: no positive time"}));
    EXPECT_EQ(measured.refused[0].kind, "step_eager");
}

TEST(MeasuredSteps, AModelThatIsKnownNeedsNoShape) {
    const Measurement row =
        only(read("gpu,model,dtype,stage,batch,tokens,context,time_ms\n"
                  "h200-sxm,llama-3.1-8b,bf16,decode,1,1,1024,9\n"));
    // 8,030,261,248 parameters without the embedding's 525,336,576: 15,009,849,344 bytes at 4.8 TB/s, and the cache.
    EXPECT_GT(row.limit, 15009849344.0 / 4.8e12);
    EXPECT_LT(row.limit, 1.02 * 15009849344.0 / 4.8e12);
    EXPECT_EQ(row.step->profile, "graph+fused");
}

TEST(MeasuredSteps, UnusableStepsAreNamedWithTheirReason) {
    const std::string other = "h100-sxm,no-such-model,,,,,,,,bf16,graph+fused,cudnn_attention,";
    const std::string type = "h100-sxm,tiny,2,64,4,2,16,128,100,bf17,graph+fused,cudnn_attention,";
    const Measurements measured = read(step_header +                                            //
                                       "warp-drive" + tiny.substr(8) + "decode,1,1,16,0.5\n" +  //
                                       other + "decode,1,1,16,0.5\n" +                          //
                                       type + "decode,1,1,16,0.5\n" +                           //
                                       tiny + "warmup,1,1,16,0.5\n" +                           //
                                       tiny + "decode,0,1,16,0.5\n" +                           //
                                       tiny + "prefill,1,0,16,0.5\n" +                          //
                                       tiny + "prefill,1,32,16,0.5\n" +                         //
                                       tiny + "decode,1,1,16,0\n" +                             //
                                       tiny + "decode,1,1,16,0.00001\n");
    EXPECT_TRUE(measured.rows.empty());
    const std::string no_stage = "no stage with a batch, tokens and a context";
    EXPECT_EQ(reasons(measured), (Reasons{"2: unknown device", "3: unknown model", "4: unknown number type",
                                          "5: " + no_stage, "6: " + no_stage, "7: " + no_stage, "8: " + no_stage,
                                          "9: no positive time", "10: faster than the limit"}));
    EXPECT_EQ(measured.refused.back().stage, "decode");
}

}  // namespace
}  // namespace roofline::assess

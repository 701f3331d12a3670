// From rows of llama.cpp's benchmarks to the steps they timed.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "roofline/assess/steps.hpp"

namespace roofline::assess {
namespace {

const std::string header =
    "gpu,num_gpus,tp,pp,ep,model,weight_dtype,kv_dtype,input_len,output_len,concurrency,context_depth,metric,value,"
    "stddev,framework,source,note\n";

std::string row(const std::string& model, const std::string& sizes, const std::string& metric_and_value,
                const std::string& engine = "llama.cpp b7941") {
    return "NVIDIA GB10 (DGX Spark),1,1,1,1," + model + ",f16 (llama.cpp default)," + sizes + "," + metric_and_value +
           ",," + engine + ",,\n";
}

const std::string oss = "gpt-oss-20b-GGUF,MXFP4";

Measurements read(const std::string& rows) {
    Measurements result;
    const auto table = CsvTable::parse(header + rows, "test.csv");
    EXPECT_TRUE(table.has_value());
    if (table) {
        EXPECT_TRUE(read_rate_table(*table, result).has_value());
    }
    return result;
}

/// Micro-batches of a row: each has the host's cost once.
double steps_of(const Measurement& measured) {
    double steps = 0.0;
    for (const Call& call : measured.calls) {
        if (call.kernel.pattern == Pattern::step) steps += call.count;
    }
    return steps;
}

/// Tokens in the cache after each of the micro-batches.
std::set<double> contexts_of(const Measurement& measured) {
    std::set<double> contexts;
    for (const Call& call : measured.calls) {
        if (call.kernel.pattern == Pattern::attention) contexts.insert(call.kernel.context);
    }
    return contexts;
}

TEST(RateSteps, ADecodeStepIsReadInTheMiddleOfWhatIsGenerated) {
    const Measurements read_rows = read(row(oss, "512,32,4,", "decode_step_ms,25.62"));
    ASSERT_EQ(read_rows.rows.size(), 1U);
    const Measurement& measured = read_rows.rows.front();
    EXPECT_EQ(measured.device->name, "gb10");
    EXPECT_EQ(measured.kind, "step");
    EXPECT_EQ(measured.stage, "decode");
    EXPECT_EQ(measured.type, "mxfp4");
    EXPECT_EQ(measured.stack, "llama.cpp");
    EXPECT_EQ(measured.family, "gpt-oss-20b-GGUF");
    EXPECT_DOUBLE_EQ(measured.seconds, 25.62e-3);
    ASSERT_EQ(measured.step->step.size(), 1U);
    EXPECT_EQ(measured.step->step.front().count, 4.0);
    EXPECT_EQ(measured.step->step.front().past, 527.0);  // and the token itself: 512 + 32 / 2
    EXPECT_EQ(steps_of(measured), 1.0);
    EXPECT_EQ(contexts_of(measured), std::set<double>{528.0});
    EXPECT_GT(measured.limit, 0.0);
    EXPECT_LE(measured.limit, measured.attainable);
    for (const Call& call : measured.calls) EXPECT_EQ(call.kernel_class->name, "ggml_cuda");
}

TEST(RateSteps, LongPromptsAreCutIntoMicroBatchesAndShortOnesGathered) {
    const Measurements read_rows = read(row(oss, "8192,32,2,", "prefill_tok_s,4430.0") +  //
                                        row(oss, "512,32,6,", "prefill_tok_s,4700.0") +   //
                                        row(oss, "2048,0,1,4096", "prefill_tok_s,4158.0"));
    ASSERT_EQ(read_rows.rows.size(), 3U);
    const Measurement& cut = read_rows.rows[0];
    EXPECT_DOUBLE_EQ(cut.seconds, 2 * 8192 / 4430.0);
    EXPECT_EQ(steps_of(cut), 8.0);  // 2 prompts of 4
    EXPECT_EQ(contexts_of(cut), (std::set<double>{2048.0, 4096.0, 6144.0, 8192.0}));
    const Measurement& gathered = read_rows.rows[1];
    EXPECT_DOUBLE_EQ(gathered.seconds, 6 * 512 / 4700.0);
    EXPECT_EQ(steps_of(gathered), 2.0);  // 4 prompts and 2
    EXPECT_EQ(gathered.step->step.front().count, 4.0);
    EXPECT_EQ(contexts_of(gathered), std::set<double>{512.0});
    const Measurement& deep = read_rows.rows[2];
    EXPECT_EQ(steps_of(deep), 1.0);
    EXPECT_EQ(contexts_of(deep), std::set<double>{6144.0});
    EXPECT_EQ(deep.stage, "prefill");
}

TEST(RateSteps, EachMeasurementCountsOnce) {
    const Measurements read_rows = read(row(oss, "512,32,2,", "prefill_tok_s,4451.23") +      //
                                        row(oss, "512,32,2,", "prefill_time_s,0.230") +       //
                                        row(oss, "512,32,2,", "decode_tok_s_total,109.71") +  //
                                        row(oss, "512,32,2,", "decode_step_ms,18.22") +       //
                                        row(oss, "512,32,8,", "decode_tok_s_total,271.79"));
    ASSERT_EQ(read_rows.rows.size(), 3U);
    EXPECT_DOUBLE_EQ(read_rows.rows[1].seconds, 18.22e-3);
    EXPECT_DOUBLE_EQ(read_rows.rows[2].seconds, 8 / 271.79);  // the only way in which it was printed
    ASSERT_EQ(read_rows.refused.size(), 2U);
    for (const Refusal& refusal : read_rows.refused) EXPECT_EQ(refusal.reason, "the same measurement as a rate/time");
    EXPECT_EQ(read_rows.refused[0].line, 3);
    EXPECT_EQ(read_rows.refused[1].line, 4);
}

TEST(RateSteps, RatesOfWholeEnginesArePassedOverWhereNothingIsFittedToThem) {
    const std::string rate =
        "h200-sxm,1,1,1,1,llama-3.1-8b,fp8,fp8,128,128,max,,output_tok_s_total,20000,,TensorRT-LLM 1.0,,\n";
    const auto table = CsvTable::parse(header + rate, "test.csv");
    ASSERT_TRUE(table.has_value());
    Measurements judged;
    ASSERT_TRUE(read_rate_table(*table, judged).has_value());
    EXPECT_EQ(judged.rows.size() + judged.refused.size(), 1U);
    Measurements fitted;
    fitted.with_served = false;
    ASSERT_TRUE(read_rate_table(*table, fitted).has_value());
    EXPECT_TRUE(fitted.rows.empty());
    EXPECT_TRUE(fitted.refused.empty());
}

TEST(RateSteps, WhatCannotBeUsedIsNamed) {
    const Measurements read_rows =
        read(row(oss, "512,32,1,", "prefill_tok_s,1895.57") +                    // 0.270 s
             row(oss, "512,32,2,", "prefill_tok_s,4451.23") +                    // 0.230 s
             row(oss, "512,32,1,", "decode_step_ms,0.01") +                      //
             row("no-such-model-GGUF,Q8_0", "512,32,1,", "decode_step_ms,10") +  //
             row(oss, "512,32,1,", "requests_per_s,10") +                        //
             row("gpt-oss-20b,FP4", "128,128,max,", "output_tok_s_total,25342", "another engine"));
    ASSERT_EQ(read_rows.rows.size(), 1U);
    ASSERT_EQ(read_rows.refused.size(), 5U);
    EXPECT_EQ(read_rows.refused[0].reason, "as slow as twice the work: a first run");
    EXPECT_EQ(read_rows.refused[1].reason, "faster than the limit");
    EXPECT_EQ(read_rows.refused[2].reason, "unknown model");
    EXPECT_EQ(read_rows.refused[3].reason, "no known metric with a positive value, a batch and a length");
    EXPECT_EQ(read_rows.refused[4].reason, "no profile for this engine");
}

TEST(RateSteps, ApplesDevicesRunOtherKernels) {
    const std::string line = row("Qwen2.5-Coder-7B-Q8_0-GGUF,Q8_0", "512,32,1,", "decode_step_ms,12.9");
    const Measurements read_rows = read("Apple M2 Ultra" + line.substr(line.find(",1,1,1,1,")));
    ASSERT_EQ(read_rows.rows.size(), 1U);
    EXPECT_EQ(read_rows.rows.front().step->profile, "llama.cpp-metal");
    EXPECT_EQ(read_rows.rows.front().calls.front().kernel_class->name, "ggml_metal");
}

}  // namespace
}  // namespace roofline::assess

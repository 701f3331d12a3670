// What recorded traces of other architectures and backends come to, each figure derived by hand, and findings on them.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "places.hpp"
#include "roofline/analyze/format.hpp"
#include "roofline/analyze/json.hpp"
#include "roofline/analyze/ranks.hpp"
#include "roofline/analyze/text.hpp"
#include "roofline/io/calibration_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/profile_file.hpp"

namespace roofline::analyze {
namespace {

Analysis analysis_of(const std::string& file, const Options& options = {}, const std::string& ending = ".json.gz") {
    auto input = open_input(ROOFLINE_SOURCE_DIR "/tests/analyze/data/" + file + ending);
    EXPECT_TRUE(input) << (input ? "" : input.error().text);
    if (!input) return {};
    auto analysis = analyze(*input, options);
    EXPECT_TRUE(analysis) << (analysis ? "" : analysis.error().text);
    return analysis ? std::move(*analysis) : Analysis{};
}

/// A model that is built in, cut to so many layers where that is above zero.
Options running(const std::string& model, const std::string& profile, double layers) {
    Options options;
    options.device = *io::builtin_device("h200-sxm");
    const auto file = io::builtin_model(model);
    EXPECT_TRUE(file);
    auto architecture = file->architecture;
    auto types = file->types;
    if (layers > 0.0) {
        architecture.layers.resize(static_cast<std::size_t>(layers));
        types.layers.resize(architecture.layers.size());
    }
    predict::Setup& setup = options.model.emplace();
    setup.model_name = model;
    setup.architecture = std::make_shared<const model::Architecture>(std::move(architecture));
    setup.checkpoint = std::make_shared<const model::TypePlan>(std::move(types));
    setup.device = *options.device;
    setup.execution.profile = *io::builtin_profile(profile, setup.device);
    setup.execution.calibration = std::make_shared<const predict::Calibration>(*io::builtin_calibration(setup.device));
    return options;
}

double flops_of(const std::vector<AccountStage>& stages, const std::string& begins) {
    double sum = 0.0;
    for (const AccountStage& stage : stages) {
        for (const Record& record : stage.records)
            sum += record.name.starts_with(begins) ? record.work.flops.value * stage.repetitions : 0.0;
    }
    return sum;
}

TEST(Findings, EveryKernelOfTheseTracesIsExplained) {
    for (const char* file : {"opt_fp16", "bert", "t5", "attention_backends", "flex_attention", "quantised_products",
                             "llama_compiled_templates"}) {
        const Analysis analysis = analysis_of(file);
        EXPECT_GT(analysis.kernel_time.value, 0.0) << file;
        EXPECT_EQ(analysis.explained_time, analysis.kernel_time) << file;
    }
}

// PyTorch's own count for the same recordings (with_flops): bert 154,618,822,656 in addmm; opt 19,629,342,720 in addmm
// and 17,039,360,000 in mm. By hand for BERT: two passes of 1,024 rows through 3 layers of 4 * 1024^2 + 2 * 1024 * 4096
// weights and a pooler of 4 rows: 2 * 2 * (1024 * 3 * 12,582,912 + 4 * 1,048,576).
TEST(Findings, ProductsHaveTheFlopsThatPyTorchCounts) {
    EXPECT_EQ(flops_of(analysis_of("bert").by_operator, "aten::addmm"),
              2.0 * 2.0 * (1024.0 * 3 * 12'582'912 + 4.0 * 1'048'576));
    // 3 layers, 256 + 2 * 2 rows; the head of 32,000 takes all of them.
    EXPECT_EQ(flops_of(analysis_of("opt_fp16").by_operator, "aten::addmm"), 2.0 * 260 * 3 * 12'582'912);
    EXPECT_EQ(flops_of(analysis_of("opt_fp16").by_operator, "aten::mm"), 2.0 * 260 * 1024 * 32000);
}

// Two passes of 256 rows through 2 layers (queries 1024, keys and values 256 each, output 1024, feed-forward 2816 three
// times) and a head of 32,000.
TEST(Findings, TemplatesOfTheCompilerAreProducts) {
    const Analysis analysis = analysis_of("llama_compiled_templates");
    const double layer = 1024.0 * (1024 + 256 + 256) + 1024.0 * 1024 + 3 * 1024.0 * 2816;
    double products = 0.0;
    for (const AccountStage& stage : analysis.by_operator) {
        for (const Record& record : stage.records) {
            if (record.kind == Kind::gemm) products += record.work.flops.value * stage.repetitions;
        }
    }
    EXPECT_EQ(products, 2.0 * 2.0 * 256 * (2 * layer + 1024.0 * 32000));
}

// Two sequences of 16 heads of 64, 512 queries and keys: 2 * 2 * 16 * pairs * 128, once with all 512 * 512 pairs and
// once with the 512 * 513 / 2 of a causal mask.
TEST(Findings, FlexAttentionIsAttention) {
    EXPECT_EQ(flops_of(analysis_of("flex_attention").by_operator, "triton_tem"),
              2.0 * 2 * 16 * 128 * (512.0 * 512 + 512.0 * 513 / 2));
}

// 64 rows, 2048 inside, 4096 columns in each of seven products; of the grouped ones every row meets one expert.
TEST(Findings, ProductsOfFewBitsHaveTheFlopsOfTheirSizes) {
    const Analysis analysis = analysis_of("quantised_products");
    const double one = 2.0 * 64 * 2048 * 4096;
    EXPECT_EQ(flops_of(analysis.by_operator, "aten::_scaled_mm"), 2.0 * one);
    for (const char* name : {"aten::_int_mm", "aten::_weight_int4pack_mm", "aten::_weight_int8pack_mm",
                             "aten::_grouped_mm", "aten::_scaled_grouped_mm"})
        EXPECT_EQ(flops_of(analysis.by_operator, name), one) << name;
}

// Relative positions are looked up in a table of their own in the middle of each pass: not the begin of another.
TEST(Findings, ASecondTableDoesNotCutAStep) {
    const Analysis analysis = analysis_of("t5");
    ASSERT_EQ(analysis.steps.size(), 4U);
    EXPECT_EQ(analysis.steps[0].name, "prefill");
    EXPECT_EQ(analysis.steps[3].name, "decode_2");
}

// Batch 4 with a prompt of 512: 2,048 rows of logits where 4 go on.
TEST(Findings, AHeadForEveryTokenIsPriced) {
    const Analysis analysis = analysis_of("hf_llama_1b_h200_torch_profiler");
    const Diagnosis* head = nullptr;
    for (const Diagnosis& diagnosis : analysis.diagnoses) {
        if (diagnosis.words.find("head is computed for every") != std::string::npos) head = &diagnosis;
    }
    ASSERT_NE(head, nullptr);
    EXPECT_EQ(head->stage, "prefill");
    EXPECT_NE(head->evidence.find("2048 rows of logits, of which 4"), std::string::npos) << head->evidence;
    EXPECT_GT(head->saved.value, 0.0);
}

// What is expected of a step is expected of its kernels and of the time between them; of eager decode steps the larger
// part lies between.
TEST(Findings, ExpectedKernelsAndTheWaitBetweenThemAddUpToTheStep) {
    const Analysis analysis = analysis_of("hf_llama_1b_h200_torch_profiler", running("llama-3.2-1b", "eager", 0.0));
    double whole = 0.0;
    double waiting = 0.0;
    double parts = 0.0;
    for (const Joined& row : analysis.joined) {
        if (row.stage != "decode") continue;
        if (row.name == "whole step") {
            whole = row.expected.value;
        } else {
            parts += row.expected.value;
        }
        if (row.name == "idle") waiting = row.expected.value;
    }
    ASSERT_GT(whole, 0.0);
    EXPECT_NEAR(parts / whole, 1.0, 0.01);
    EXPECT_GT(waiting, 0.5 * whole);
}

// 662 kernels of a prompt in 16 layers: 41 each.
TEST(Findings, ARunKernelByKernelIsNotHeldAgainstAnEngineWithoutAWord) {
    const auto says = [](const std::string& profile) {
        const Analysis analysis = analysis_of("hf_llama_1b_h200_torch_profiler", running("llama-3.2-1b", profile, 0.0));
        return std::any_of(analysis.account.notes.begin(), analysis.account.notes.end(), [](const std::string& note) {
            return note.starts_with("prefill started 41 kernels a layer, one by one");
        });
    };
    EXPECT_TRUE(says("engine"));
    EXPECT_FALSE(says("eager"));
}

// 2,048 rows of logits, where `predict` counts one position a sequence: 2 x 2,048 x 2,048 x 128,256 FLOPs at 989.4
// TFLOP/s are 1.0874 ms. The trace has 1.362 ms.
TEST(Findings, AHeadForEveryTokenIsExpectedForEveryToken) {
    const Analysis analysis = analysis_of("hf_llama_1b_h200_torch_profiler", running("llama-3.2-1b", "eager", 0.0));
    const auto head = std::find_if(analysis.joined.begin(), analysis.joined.end(),
                                   [](const Joined& row) { return row.stage == "prefill" && row.name == "head"; });
    ASSERT_NE(head, analysis.joined.end());
    EXPECT_NEAR(head->limit.value, 2.0 * 2048.0 * 2048.0 * 128256.0 / 989.4e12, 1e-6);
    EXPECT_LT(head->limit, head->expected);
    EXPECT_NEAR(head->measured / head->expected, 1.0, 0.2);
}

// The Llama of 1B cut to 2 layers, batch 4, 512 tokens and one more: every launch finds its operator but a few that
// belong to none, and the products' bytes are those of their weights and activations.
TEST(Findings, CountedLaunchesFindTheirOperators) {
    Options options = running("llama-3.2-1b", "eager", 2.0);
    options.model->workload.batch = 4.0;
    options.model->workload.prompt = 512.0;
    options.model->workload.context = 513.0;
    const Analysis analysis = analysis_of("hf_llama_2layer_h200_ncu_raw", options, ".csv.gz");
    double found = 0.0;
    for (const Joined& row : analysis.joined) found += row.expected.value > 0.0 ? row.measured.value : 0.0;
    EXPECT_GT(found, 0.97 * analysis.kernel_time.value);
    EXPECT_EQ(analysis.account.model, "llama-3.2-1b");
    bool bytes = false;
    for (const std::string& note : analysis.memory_notes)
        bytes = bytes || note.find("decode: layers.ffn.gate_up moved") != std::string::npos;
    EXPECT_TRUE(bytes);
}

Analysis rank(double number, double computing, double exposed) {
    Analysis analysis;
    analysis.rank.emplace();
    analysis.rank->number = number;
    analysis.file = "some file";
    analysis.whole.wall = Seconds(10e-3);
    analysis.whole.computing = Seconds(computing);
    analysis.whole.communicating = Seconds(exposed);
    return analysis;
}

// Rank 1 computes 6 ms and is 1 ms in collectives; the others 4 ms and 3 ms: 2 ms of those are waiting. Spread evenly
// each computes 14/3 ms: 4/3 ms less of 10 ms, 10 / (10 - 4/3) = 1.154.
TEST(Ranks, TheSlowestIsTheOneThatOthersWaitFor) {
    std::vector<Analysis> ranks = {rank(2, 4e-3, 3e-3), rank(0, 4e-3, 3e-3), rank(1, 6e-3, 1e-3)};
    compare_ranks(ranks);
    EXPECT_TRUE(ranks[2].rank->slowest);
    EXPECT_FALSE(ranks[0].rank->slowest);
    EXPECT_EQ(ranks[2].rank->waiting.value, 0.0);
    EXPECT_NEAR(ranks[0].rank->waiting.value, 2e-3, 1e-12);
    const std::string text = ranks_text(ranks, {});
    EXPECT_NE(text.find("rank 1 computes longest: 6.000 ms, the others 4.000 ms on average; they wait 2.000 ms"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("at most 1.15x"), std::string::npos) << text;
}

TEST(Ranks, OfEqualOnesNoneIsBlamed) {
    std::vector<Analysis> ranks = {rank(0, 4e-3, 3e-3), rank(1, 4e-3, 3e-3)};
    compare_ranks(ranks);
    EXPECT_EQ(ranks_text(ranks, {}).find("longest"), std::string::npos);
}

// A linear layer of 80 us around a product of 60 us that copies its bias in 10 us; then one of 5 us that
// nobody knows and a norm of 20 us. The product and the norm did the work; of the unknown one what its tensor leaves
// likely is taken, and a note says so.
TEST(Findings, OfNestedOperatorsOnAProcessorTheOneThatWorksCounts) {
    const auto op = [](const char* name, int begin, int duration, const char* dims, const char* types) {
        return fmt::format(
            R"({{"ph":"X","cat":"cpu_op","name":"{}","pid":1,"tid":1,"ts":{},"dur":{},"args":{{"Input Dims":{},"Input type":{}}}}})",
            name, begin, duration, dims, types);
    };
    const char* floats = R"(["float","float","float"])";
    Input input = Input::from_memory("cpu.json", "{\"traceEvents\":[" +
                                                     op("aten::linear", 100, 80, "[[4,8],[16,8],[16]]", floats) + "," +
                                                     op("aten::addmm", 110, 60, "[[16],[4,8],[8,16]]", floats) + "," +
                                                     op("aten::copy_", 115, 10, "[[4,16],[16]]", floats) + "," +
                                                     op("somebody::looks", 190, 5, "[[4,16]]", R"(["float"])") + "," +
                                                     op("aten::native_layer_norm", 200, 20, "[[4,16],[],[16],[16]]",
                                                        R"(["float","ScalarList","float","float"])") +
                                                     "]}");
    const auto analysis = analyze(input, {});
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(std::llround(analysis->kernel_time.value * 1e9), 85'000);
    EXPECT_EQ(std::llround(analysis->explained_time.value * 1e9), 85'000);
    EXPECT_TRUE(
        std::any_of(analysis->account.notes.begin(), analysis->account.notes.end(), [](const std::string& note) {
            return note.starts_with(
                "5.9% of kernel time is in operators without a formula of their own (somebody::looks)");
        }));
    EXPECT_EQ(flops_of(analysis->by_operator, "aten::addmm"), 2.0 * 4 * 8 * 16);
    EXPECT_EQ(flops_of(analysis->by_operator, "aten::linear"), 0.0);
}

TEST(Formats, AReportOfOurOwnSaysWhoReadsIt) {
    Input report = Input::from_memory("p.json", "{\n  \"schema\": \"roofline.report/1\",\n  \"run\": {}\n}\n");
    const auto analysis = analyze(report, {});
    ASSERT_FALSE(analysis);
    EXPECT_NE(analysis.error().text.find("roofline compare"), std::string::npos) << analysis.error().text;
    Input sweep = Input::from_memory("s.json", "{\"schema\": \"roofline.sweep/1\"}");
    EXPECT_NE(analyze(sweep, {}).error().text.find("roofline.sweep"), std::string::npos);
}

// Llama 3.1 8B cut to 4 layers, 8 sequences of 4,096 tokens, launched by PyTorch's modules (record/joined.py). The
// cache of a layer is 8 x 4,097 x 2 x 1,024 numbers of two bytes; appending one token reads and writes all of it: 268
// MB, 56 us at the datasheet's bandwidth, 224 us in 4 layers. Nothing of this file was used to set the profile.
TEST(Findings, PlainDecodesAreExpectedWithTheCopyOfTheirCache) {
    const Analysis analysis = analysis_of("plain_llama_b8_k4096", running("llama-3.1-8b", "eager", 4));
    double expected = 0.0;
    double measured = 0.0;
    for (const Joined& row : analysis.joined) {
        if (row.stage != "decode" || row.name == "whole step" || row.name == "idle") continue;
        expected += row.expected.value;
        measured += row.measured.value;
        const bool watched = row.name == "layers.attention.kv_write" || row.name == "layers.attention.rotary" ||
                             row.name == "layers.attention.core" || row.name == "layers.ffn.gate_up";
        if (!watched) continue;
        EXPECT_GT(row.measured / row.expected, 0.75) << row.name;
        EXPECT_LT(row.measured / row.expected, 1.33) << row.name;
        if (row.name == "layers.attention.kv_write") {
            EXPECT_GT(row.expected.value, 224e-6);
        }
    }
    EXPECT_NEAR(measured / expected, 1.0, 0.2);
}

// 50,257 words are 6,282 times 8 and one more; 768 columns are none of these.
TEST(Findings, AVocabularyThatFillsNoRowIsNamed) {
    const Analysis analysis = analysis_of("gpt2_eager");
    const auto odd = std::find_if(analysis.diagnoses.begin(), analysis.diagnoses.end(), [](const Diagnosis& found) {
        return found.words.starts_with("prefill: a product of odd width runs at ");
    });
    ASSERT_NE(odd, analysis.diagnoses.end());
    EXPECT_TRUE(odd->evidence.starts_with("50,257 is no multiple of 8")) << odd->evidence;
    EXPECT_GT(odd->saved.value, 0.0);
    for (const Diagnosis& found : analysis_of("hf_llama_1b_h200_torch_profiler").diagnoses)
        EXPECT_EQ(found.words.find("odd width"), std::string::npos) << found.words;
}

// Tables, CSV and JSON name one and the same: what held a record back under the ceilings that were measured.
TEST(Findings, EveryFormatNamesTheSameBound) {
    const Analysis analysis = analysis_of("hf_llama_1b_h200_torch_profiler");
    const std::string csv = analysis_csv({analysis}, {});
    const io::OrderedJson json = analysis_json(analysis, "record", {});
    std::set<std::string> bounds;
    for (const auto& stage : json["stages"]) {
        for (const auto& record : stage["records"]) {
            if (record["kind"] == "idle") continue;
            const std::string bound = record["bound"];
            const std::string place =
                fmt::format(",{},{},", stage["stage"].get<std::string>(), record["name"].get<std::string>());
            const std::size_t at = csv.find(place);
            ASSERT_NE(at, std::string::npos) << place;
            const std::string line = csv.substr(at, csv.find('\n', at) - at);
            EXPECT_TRUE(line.ends_with("," + bound)) << line << " " << bound;
            bounds.insert(bound);
        }
    }
    EXPECT_TRUE(bounds.contains("latency"));
    EXPECT_TRUE(bounds.contains("compute"));
    EXPECT_TRUE(bounds.contains("memory"));
}

}  // namespace
}  // namespace roofline::analyze

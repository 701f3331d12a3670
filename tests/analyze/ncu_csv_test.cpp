// Nsight Compute's CSV: real pages of an H200, and small ones made to hold each thing that may be in one.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "places.hpp"
#include "roofline/analyze/counters.hpp"
#include "roofline/analyze/csv_rows.hpp"
#include "roofline/analyze/format.hpp"
#include "roofline/analyze/metric_units.hpp"
#include "roofline/analyze/text.hpp"

namespace roofline::analyze {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

Result<Analysis> analyzed_file(const std::string& name) {
    auto input = open_input(ROOFLINE_SOURCE_DIR "/tests/analyze/data/" + name);
    if (!input) return std::unexpected(input.error());
    return analyze(*input, {});
}

Result<Analysis> analyzed(std::string text) {
    Input input = Input::from_memory("x.csv", std::move(text));
    return analyze(input, {});
}

struct Sums {
    double seconds = 0.0, flops = 0.0, memory = 0.0, cache = 0.0, count = 0.0;
};

Sums sums_of(const Analysis& analysis) {
    Sums sums;
    for (const AccountStage& stage : analysis.account.stages) {
        for (const Record& record : stage.records) {
            sums.seconds += record.times.measured.value_or(Seconds{}).value;
            sums.flops += record.work.flops.value;
            sums.memory += record.work.at(Level::memory).value;
            sums.cache += record.work.at(Level::cache).value;
            sums.count += record.count;
        }
    }
    return sums;
}

TEST(MetricUnits, PrefixesArePowersOfAThousandOnEitherSideOfTheSlash) {
    EXPECT_DOUBLE_EQ(metric_factor("Tbyte/s"), 1e12);
    EXPECT_DOUBLE_EQ(metric_factor("Gbyte/second"), 1e9);
    EXPECT_DOUBLE_EQ(metric_factor("byte/nsecond"), 1e9);
    EXPECT_DOUBLE_EQ(metric_factor("Kbyte"), 1e3);
    EXPECT_DOUBLE_EQ(metric_factor("usecond"), 1e-6);
    EXPECT_DOUBLE_EQ(metric_factor("us"), 1e-6);
    EXPECT_DOUBLE_EQ(metric_factor("ms"), 1e-3);
    EXPECT_DOUBLE_EQ(metric_factor("s"), 1.0);
    EXPECT_DOUBLE_EQ(metric_factor("Ghz"), 1e9);
    EXPECT_DOUBLE_EQ(metric_factor("cycle/nsecond"), 1e9);
    EXPECT_DOUBLE_EQ(metric_factor("%"), 0.01);
    EXPECT_DOUBLE_EQ(metric_factor("inst/cycle"), 1.0);
    EXPECT_DOUBLE_EQ(metric_factor(""), 1.0);
    EXPECT_DOUBLE_EQ(metric_factor("Mystery"), 1.0);
}

TEST(CsvRows, NumbersMayHaveCommasBetweenThousandsAndNowhereElse) {
    EXPECT_EQ(number_of("2,184,533,333,333.33"), 2184533333333.33);
    EXPECT_EQ(number_of(" 12.5 "), 12.5);
    EXPECT_EQ(number_of("1e-3"), 1e-3);
    for (const char* none : {"", "no data", "n/a", "nan", "inf", "1,23", "1,2345", ",123", "1.5,000", "12 apples"})
        EXPECT_EQ(number_of(none), std::nullopt) << none;
}

TEST(NsightComputeCsv, RawPageOfAnH200AgreesWithTheToolsOwnTotals) {
    const auto analysis = analyzed_file("hf_llama_2layer_h200_ncu_raw.csv.gz");
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(analysis->account.device.name, "h200-sxm");
    EXPECT_TRUE(analysis->device_known);
    EXPECT_FALSE(analysis->partial);
    const Sums sums = sums_of(*analysis);
    EXPECT_EQ(sums.count, 210.0);
    // Added up from the file's columns with a few lines of Python: gpu__time_duration.sum is 3.503776 ms in all,
    // dram__bytes.sum.per_second x duration 3,886,157,248 bytes, derived__lts__lts2xbar_bytes x duration
    // 11,676,763,123 bytes, sm__ops_path_tensor_src_bf16_dst_fp32.sum 1,592,178,769,920.
    EXPECT_NEAR(sums.seconds, 3.503776e-3, 1e-12);
    EXPECT_NEAR(sums.memory / 3886157248.0, 1.0, 1e-6);
    EXPECT_NEAR(sums.cache / 11676763123.0, 1.0, 1e-6);
    double matrix = 0.0;
    double vector = 0.0;
    for (const AccountStage& stage : analysis->account.stages) {
        for (const Record& record : stage.records)
            (record.work.engine == Engine::matrix ? matrix : vector) += record.work.flops.value;
    }
    EXPECT_DOUBLE_EQ(matrix, 1592178769920.0);
    // fp32 of fadd + fmul + 2 x ffma: 1.070657e9 in all, of which kernels with tensor work hold a part (their record
    // is of the tensor pipe alone).
    EXPECT_GT(vector, 0.5e9);
    EXPECT_LT(vector, 1.0707e9);
    EXPECT_THAT(analysis->memory_notes, Contains(HasSubstr("1.071 GFLOP fp32 on plain units")));
    EXPECT_THAT(analysis->memory_notes, Contains(HasSubstr("1.592 TFLOP bf16 on tensor cores")));
}

TEST(NsightComputeCsv, MatrixFlopsAreThoseOfTheShapes) {
    const auto analysis = analyzed_file("hf_llama_2layer_h200_ncu_raw.csv.gz");
    ASSERT_TRUE(analysis);
    ASSERT_EQ(analysis->account.stages.size(), 2U);
    EXPECT_EQ(analysis->account.stages[0].name, "prefill");
    EXPECT_EQ(analysis->account.stages[1].name, "decode");
    // The head of the prompt, by hand: 2 x (4 x 512) rows x 2048 x 128,256 columns = 1,075,889,307,648. The kernel's
    // tiles are 320 wide: 128,256 columns are 400.8 of them, so it does 401 (128,320 columns): 1,076,426,178,560.
    const Record& head = analysis->account.stages[0].records.front();
    EXPECT_EQ(head.name, "nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_TNT [2x66]");
    EXPECT_EQ(head.kind, Kind::gemm);
    EXPECT_EQ(head.work.type, DType::bf16);
    EXPECT_DOUBLE_EQ(head.work.flops.value, 1076426178560.0);
    // One token each of four sequences, in tiles of 8 rows and 256 columns: 2 x 8 x 2048 x 128,512 = 4,211,081,216.
    EXPECT_DOUBLE_EQ(analysis->account.stages[1].records.front().work.flops.value, 4211081216.0);
}

TEST(NsightComputeCsv, EveryRecordIsHeldAgainstTheRoofAndNoneBeatsIt) {
    const auto analysis = analyzed_file("hf_llama_2layer_h200_ncu_raw.csv.gz");
    ASSERT_TRUE(analysis);
    for (const AccountStage& stage : analysis->account.stages) {
        for (const Record& record : stage.records) {
            EXPECT_GT(record.times.limit.value, 0.0) << record.name;
            EXPECT_LE(record.times.limit.value, record.times.attainable.value) << record.name;
            EXPECT_LE(record.times.limit.value, record.times.measured->value * 1.0001) << record.name;
        }
    }
}

TEST(NsightComputeCsv, TimeIsAllAccountedFor) {
    for (const char* name : {"hf_llama_2layer_h200_ncu_raw.csv.gz", "hf_llama_2layer_h200_ncu_details.csv.gz"}) {
        const auto analysis = analyzed_file(name);
        ASSERT_TRUE(analysis);
        ASSERT_EQ(analysis->streams.size(), 1U);
        const StreamTime& stream = analysis->streams[0];
        EXPECT_NEAR(stream.attributed.value + stream.unattributed.value + stream.idle.value, stream.wall.value, 1e-12);
        EXPECT_NEAR(stream.wall.value, sums_of(*analysis).seconds, 1e-12);
    }
}

TEST(NsightComputeCsv, ClocksAndCachesAreToldFromTheData) {
    const auto analysis = analyzed_file("hf_llama_2layer_h200_ncu_raw.csv.gz");
    ASSERT_TRUE(analysis);
    EXPECT_THAT(analysis->memory_notes, Contains(HasSubstr("clocks were not locked: 1.58 GHz to 1.98 GHz")));
    EXPECT_THAT(analysis->memory_notes, Contains(HasSubstr("caches look flushed before every launch")));
}

TEST(NsightComputeCsv, DetailsPageGivesTheSameBytesAndSaysThatItCountsNoFlops) {
    const auto raw = analyzed_file("hf_llama_2layer_h200_ncu_raw.csv.gz");
    const auto details = analyzed_file("hf_llama_2layer_h200_ncu_details.csv.gz");
    ASSERT_TRUE(raw);
    ASSERT_TRUE(details) << details.error().text;
    // The page for people rounds to three digits.
    EXPECT_NEAR(sums_of(*details).seconds / sums_of(*raw).seconds, 1.0, 0.01);
    EXPECT_NEAR(sums_of(*details).memory / sums_of(*raw).memory, 1.0, 0.01);
    EXPECT_EQ(sums_of(*details).count, 210.0);
    EXPECT_EQ(sums_of(*details).flops, 0.0);
    EXPECT_FALSE(details->device_known);
    EXPECT_THAT(details->memory_notes, Contains(HasSubstr("this page counts no FLOPs")));
    EXPECT_THAT(details->memory_notes, Contains(HasSubstr("what the device allows is not on this page")));
    EXPECT_THAT(analysis_text(*details, {}), HasSubstr("100.0% of it with bytes counted; FLOPs are not on this page"));
    EXPECT_THAT(analysis_text(*raw, {}), HasSubstr("100.0% of it with FLOPs and bytes counted"));
    EXPECT_THAT(details->account.notes, Contains(HasSubstr("--device NAME")));
}

// One launch, 10 us: 8 MB of memory (6 read, 2 written), 1e6 fadd, 2e6 ffma, 1e9 tensor operations on fp16.
const std::string header =
    "\"ID\",\"Process ID\",\"Kernel Name\",\"Grid Size\",\"gpu__time_duration.sum\",\"dram__bytes_read.sum\","
    "\"dram__bytes_write.sum\",\"lts__t_bytes.sum\",\"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum\","
    "\"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum\",\"sm__ops_path_tensor_src_fp16_dst_fp32.sum\","
    "\"smsp__cycles_elapsed.avg.per_second\",\"device__attribute_max_gpu_frequency_khz\","
    "\"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio\",\"derived__local_spilling_requests\"\n";
const std::string units =
    "\"\",\"\",\"\",\"\",\"nsecond\",\"Mbyte\",\"byte\",\"Mbyte\",\"inst\",\"inst\",\"\",\"Ghz\",\"\",\"byte/"
    "sector\",\"\"\n";
std::string launch(int id, const std::string& kernel) {
    return "\"" + std::to_string(id) + "\",\"7\",\"" + kernel +
           "\",\"(4, 2, "
           "1)\",\"10,000\",\"6\",\"2,000,000\",\"9\",\"1,000,000\",\"2,000,000\",\"1,000,000,000\",\"1.5\","
           "\"1,980,000\",\"8.0\",\"1,024\"\n";
}

TEST(NsightComputeCsv, UnitsThousandsAndPipesAreReadAndProgramsMayTalkInBetween) {
    const auto analysis = analyzed("==PROF== Connected to process 7\nhello, \"world\"\n" + header + units +
                                   launch(0, "void k<int>(float *)") + "==PROF== Profiling\nloss 3.2\n" +
                                   launch(1, "void k<int>(float *)") + "==PROF== Disconnected\n");
    ASSERT_TRUE(analysis) << analysis.error().text;
    ASSERT_EQ(analysis->account.stages.size(), 1U);
    const AccountStage& stage = analysis->account.stages[0];
    EXPECT_EQ(stage.name, "all");
    ASSERT_EQ(stage.records.size(), 1U);
    const Record& record = stage.records[0];
    EXPECT_EQ(record.name, "k [4x2]");
    EXPECT_EQ(record.count, 2.0);
    EXPECT_NEAR(record.times.measured->value, 20e-6, 1e-15);
    EXPECT_EQ(record.work.at(Level::memory).value, 16e6);
    EXPECT_EQ(record.work.at(Level::cache).value, 18e6);
    // No device, so no rates: the pipe with most FLOPs stands for the record. fp32: 2 x (1e6 + 2 x 2e6) = 1e7.
    EXPECT_EQ(record.work.engine, Engine::matrix);
    EXPECT_EQ(record.work.type, DType::fp16);
    EXPECT_EQ(record.work.flops.value, 2e9);
    EXPECT_THAT(analysis->memory_notes, Contains(HasSubstr("10.00 MFLOP fp32 on plain units")));
    EXPECT_THAT(analysis->memory_notes, Contains(HasSubstr("25.0% of it written")));
    EXPECT_THAT(analysis->memory_notes, Contains(HasSubstr("uncoalesced: 8.0 of the 32 bytes")));
    EXPECT_THAT(analysis->memory_notes, Contains(HasSubstr("registers spill")));
    ASSERT_EQ(analysis->diagnoses.size(), 2U);
    // A quarter of every sector is used: at most three quarters of the time go, a gain of 4.
    EXPECT_NEAR(analysis->diagnoses[0].gain, 4.0, 1e-9);
}

TEST(NsightComputeCsv, AClockThatNeverMovesBelowTheHighestWasLocked) {
    const auto analysis = analyzed(header + units + launch(0, "a") + launch(1, "b") + launch(2, "c"));
    ASSERT_TRUE(analysis);
    // 1.98 / 1.5 = 1.32.
    EXPECT_THAT(analysis->memory_notes, Contains(HasSubstr("clocks were locked: 1.50 GHz in all 3 launches")));
    EXPECT_THAT(analysis->memory_notes, Contains(HasSubstr("up to 1.32 times")));
}

TEST(NsightComputeCsv, HostileTablesAreOneLineOrAPartialResult) {
    const auto nothing = analyzed(header + units);
    ASSERT_FALSE(nothing);
    EXPECT_THAT(nothing.error().text, HasSubstr("x.csv: the table has a header and no launches"));
    const std::string whole = header + units + launch(0, "a") + launch(1, "b");
    for (std::size_t kept = header.size(); kept < whole.size(); kept += 7) {
        const auto cut = analyzed(whole.substr(0, kept));
        if (!cut) continue;
        EXPECT_LE(sums_of(*cut).count, 2.0);
    }
    const auto cut = analyzed(whole.substr(0, whole.size() - 30));
    ASSERT_TRUE(cut);
    EXPECT_TRUE(cut->partial);
    EXPECT_THAT(cut->account.notes, Contains(HasSubstr("cut off")));
    EXPECT_FALSE(analyzed("\"ID\",\"Kernel Name\"\n\"\xff\xfe\",\"\n"));
    const auto huge = analyzed(
        header + units +
        "\"0\",\"7\",\"k\",\"(1)\",\"1e400\",\"1e308\",\"1e308\",\"-1\",\"x\",\"\",\"\",\"\",\"\",\"\",\"\"\n");
    if (huge) {
        for (const Record& record : huge->account.stages.at(0).records)
            EXPECT_FALSE(std::isnan(record.work.at(Level::memory).value));
    }
}

TEST(KernelName, IsWhatPeopleWouldSay) {
    EXPECT_EQ(spoken_kernel_name("nvjet_sm90_tst_256x8_64x6_2x1_v_bz_TNT"), "nvjet_sm90_tst_256x8_64x6_2x1_v_bz_TNT");
    EXPECT_EQ(spoken_kernel_name("void at::vectorized_gather_kernel<16, long>(char *, char *, T2 *, int, long)"),
              "vectorized_gather_kernel");
    EXPECT_EQ(spoken_kernel_name("void at::vectorized_elementwise_kernel<8, at::<unnamed>::silu_kernel("
                                 "at::TensorIteratorBase &)::[lambda() (instance 1)]>(int)"),
              "vectorized_elementwise_kernel(silu_kernel)");
    EXPECT_EQ(spoken_kernel_name("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(T1::Params)"),
              "cutlass_80_simt_sgemm_128x32_8x5_nn_align1");
    EXPECT_EQ(spoken_kernel_name(""), "(no name)");
    EXPECT_EQ(spoken_kernel_name("<<<((("), "<<<(((");
}

// Recorded with the command of docs/tracing.md, all defaults: a LayerNorm, two linear layers and a GELU of 200 rows.
// The products need 2 x 200 x 1024 x 4096 FLOPs each; tiles of 104 rows reach 208, tiles of 40 in pairs 240, and whole
// tiles are what tensor cores do: 2 x (208 + 240) x 1024 x 4096. Clocks in the file: 1.352 to 1.629 GHz of 1.98.
TEST(NcuCsv, DefaultsOfTheToolAreSeenInItsData) {
    auto input = open_input(ROOFLINE_SOURCE_DIR "/tests/analyze/data/block_ncu_defaults.csv.gz");
    ASSERT_TRUE(input) << input.error().text;
    const auto analysis = analyze(*input, {});
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(std::llround(analysis->kernel_time.value * 1e9), 2'080 + 5'888 + 8'768 + 4'000 + 13'664);
    EXPECT_THAT(analysis->memory_notes, Contains(HasSubstr("clocks were held down")));
    EXPECT_THAT(analysis->memory_notes, Contains(HasSubstr("1.35 GHz to 1.63 GHz")));
    double products = 0.0;
    for (const Record& record : analysis->account.stages.at(0).records) {
        if (record.name.starts_with("nvjet")) products += record.work.flops.value;
    }
    EXPECT_NEAR(products / (2.0 * (208.0 + 240.0) * 1024.0 * 4096.0), 1.0, 0.01);
}

// The tool was stopped before it wrote a table.
TEST(NcuCsv, WordsOfTheToolAloneAreNoProfile) {
    Input input = Input::from_memory("kernels.csv", "==PROF== Connected to process 1485 (/usr/bin/python3)\n");
    const auto analysis = analyze(input, {});
    ASSERT_FALSE(analysis);
    EXPECT_THAT(analysis.error().text, HasSubstr("was the profiler stopped before it ended?"));
}

}  // namespace
}  // namespace roofline::analyze

// Whole answers as a user sees them, compared letter for letter with tests/cli/transcripts/*.txt.
//
// After a change of the output that is meant, rewrite them and read the difference:
//   ROOFLINE_WRITE_TRANSCRIPTS=1 ctest -R Transcripts && git diff tests/cli/transcripts
//
// Read once by eye, and these numbers recomputed with a calculator from the shapes and datasheets:
//   predict       qkv of prefill: 2 x 1024 x 4096 x 6144 x 32 = 1.649 TFLOP, / 989.4e12 = 1.667 ms
//                 kv_write: 1024 x 131,072 B = 134.2 MB, / 3.35e12 = 40.06 us
//                 core of prefill: 4 x 32 x 128 x (1024 x 1025 / 2) x 32 = 275.1 GFLOP
//                 gate_up: (4096 x 28672 + 1024 x 28672 + 1024 x 4096) x 2 B x 32 = 9.664 GB
//                 ffn.activation: 1024 x (28672 + 14336) x 2 B x 32 = 2.819 GB
//                 decode: 15,009,316,864 (matrices) + 65 x 8192 (norms) + 8192 (embedding) + 134,217,728 + 131,072 (KV)
//                 = 15.14 GB, / 3.35e12 = 4.521 ms, 221.2 tokens/s
//                 fit: KV 131,072 x 1152 = 151.0 MB, activations 1024 x 43008 x 2 + 128256 x 2 = 88.34 MB,
//                 (80e9 - 16,060,522,496) / (150,994,944 + 88,336,896) = 267.2 sequences
//                 residual: 1024 x 4096 x 2 B x 3 x 32 = 805.3 MB of the L2, / 9.366e12 = 85.98 us attainable
//                 request: 14.73 + 127 x 4.523 = 589.2 ms; 700 W x 4.523 ms = 3.166 J
//   op-gemm       117,440,512 + 28,672 + 8,192 = 117,477,376 B, / 3.35e12 = 35.07 us; 117,440,512 / 989.4e12 = 118.7 ns
//   devices-show  275e12 / 1.2e12 = 229.2 FLOP/B; 32 GiB = 34.36 GB
//   models-show   KV: (512 + 64) x 2 B x 61 = 70.27 kB
//   explain       qkv: 2 x 8192 x 4096 x 6144 = 412,316,860,416 FLOPs, / 989.4e12 = 416.7 us;
//                 (50,331,648 + 167,772,160) / 4.8e12 = 45.44 us; 412.3e9 / 218.1e6 = 1890 FLOP/B
//                 core: 8 x 1024 x 1025 / 2 = 4,198,400 pairs, 2 x 32 x 256 x 4,198,400 = 68,786,585,600 FLOPs
//                 active: 32 x (41,943,040 + 2 x 176,160,768 + 32,768 + 8,192) + 2 x 131,072,000 + 4,096 =
//                 12,879,925,248
#include <cstdlib>

#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"

namespace roofline::cli::testing {
namespace {

constexpr std::size_t everything = static_cast<std::size_t>(-1);

std::string first_lines(const std::string& text, std::size_t lines) {
    std::size_t end = 0;
    for (std::size_t line = 0; line < lines && end < text.size(); ++line) {
        const std::size_t next = text.find('\n', end);
        end = next == std::string::npos ? text.size() : next + 1;
    }
    return text.substr(0, end);
}

void compare(const std::string& name, const std::vector<std::string>& arguments, std::size_t lines = everything) {
    const std::string file = std::string(ROOFLINE_SOURCE_DIR) + "/tests/cli/transcripts/" + name + ".txt";
    const Answer answer = run(arguments);
    EXPECT_EQ(answer.exit_code, 0);
    EXPECT_EQ(answer.err, "");
    const std::string shown = "$ " + typed(arguments) + "\n" + first_lines(answer.out, lines);
    if (std::getenv("ROOFLINE_WRITE_TRANSCRIPTS") != nullptr) {
        std::ofstream(file, std::ios::binary) << shown;
        return;
    }
    EXPECT_EQ(shown, text_of_file(file)) << "rewrite " << name
                                         << ".txt with ROOFLINE_WRITE_TRANSCRIPTS=1 if it is meant";
}

TEST(Transcripts, PredictLlamaOnAnH100) {
    compare("predict", {"predict", "llama-3.1-8b", "h100-sxm"});
}

TEST(Transcripts, OneMatrixProduct) {
    compare("op-gemm", {"op", "gemm", "--m", "1", "--n", "4096", "--k", "14336", "--dtype", "fp16"});
}

TEST(Transcripts, OneDevice) {
    compare("devices-show", {"devices", "show", "tpu-v4"});
}

TEST(Transcripts, OneModel) {
    compare("models-show", {"models", "show", "deepseek-v3"});
}

TEST(Transcripts, ExplainMixtralOnAnH200) {
    compare("explain", {"predict", "mixtral-8x7b", "h200-sxm", "--batch", "8", "--explain"}, 60);
}

TEST(Transcripts, ANameBehindDevicesOrModelsShowsThatOne) {
    for (const auto& [verb, name] : {std::pair{"devices", "h100-sxm"}, std::pair{"models", "llama-3.1-8b"}}) {
        const Answer shown = run({verb, "show", name});
        EXPECT_EQ(shown.exit_code, 0) << shown.err;
        EXPECT_EQ(run({verb, name}).out, shown.out);
        EXPECT_EQ(run({verb, name, "--format", "csv"}).exit_code, 2);
    }
}

}  // namespace
}  // namespace roofline::cli::testing

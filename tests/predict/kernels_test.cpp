// The formulas of kernel times: what must hold for every class of the registry. Values by hand are in *_times_test.cpp.
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "predict/kernel_times.hpp"

namespace roofline::predict {
namespace {

using namespace kernel_times;

// ---- the registry

TEST(KernelClasses, AreFoundByTheirNamesWhichAreUnique) {
    std::set<std::string_view> names;
    for (const KernelClass* known : kernel_classes()) {
        EXPECT_TRUE(names.insert(known->name).second) << known->name;
        EXPECT_EQ(kernel_class(known->name), known);
    }
    for (const std::string_view needed :
         {"gemm", "batched_gemm", "expert_product", "attention_prefill", "attention_decode", "mla_prefill",
          "mla_decode", "scan", "elementwise", "graph_step", "eager_step"}) {
        EXPECT_TRUE(names.contains(needed)) << needed;
    }
    EXPECT_EQ(kernel_class("gem"), nullptr);
    EXPECT_EQ(kernel_class(""), nullptr);
}

TEST(KernelClasses, HaveAFormulaNumberEach) {
    std::set<std::string_view> numbers;
    for (const KernelClass* known : kernel_classes()) {
        EXPECT_EQ(known->formula.substr(0, 1), "E") << known->name;
        EXPECT_TRUE(numbers.insert(known->formula).second)
            << known->name << ": " << known->formula << " is another class's number";
    }
}

TEST(KernelClasses, ConstantsStartWithinTheirBounds) {
    for (const KernelClass* known : kernel_classes()) {
        EXPECT_LE(known->constants.size(), max_constants) << known->name;
        std::set<std::string_view> names;
        for (const Constant& constant : known->constants) {
            const std::string what = std::string(known->name) + "." + std::string(constant.name);
            EXPECT_TRUE(names.insert(constant.name).second) << what;
            EXPECT_GT(constant.low, 0.0) << what << ": fitted in log space";
            EXPECT_LE(constant.low, constant.start) << what;
            EXPECT_LE(constant.start, constant.high) << what;
            EXPECT_FALSE(constant.unit.empty()) << what;
        }
    }
}

TEST(KernelClasses, FractionsOfAPeakDoNotExceedIt) {
    // A share of the cache and a correction of a sum are fractions too, but not of a ceiling.
    const std::set<std::string> others = {"elementwise.share", "scan.share", "graph_step.scale"};
    for (const KernelClass* known : kernel_classes()) {
        for (const Constant& constant : known->constants) {
            const std::string what = std::string(known->name) + "." + std::string(constant.name);
            if (constant.unit == "fraction" && !others.contains(what)) {
                EXPECT_LE(constant.high, 1.0) << what;
            }
        }
    }
}

// ---- properties of every formula

TEST(KernelTimes, AreFiniteAndPositiveWhateverIsUnknown) {
    for (const KernelClass* known : kernel_classes()) {
        for (const Work work : work_of(known->name)) {
            for (const Kernel& kernel : grid(work)) {
                for (const auto& [name, machine] : machines()) {
                    const double seconds = start_seconds(*known, kernel, machine);
                    ASSERT_TRUE(std::isfinite(seconds) && seconds > 0.0)
                        << describe(*known, kernel, name) << ": " << seconds;
                }
            }
        }
    }
}

TEST(KernelTimes, AreFiniteAndPositiveAtTheBoundsOfEveryConstant) {
    for (const KernelClass* known : kernel_classes()) {
        for (std::size_t i = 0; i < known->constants.size(); ++i) {
            for (const double bound : {known->constants[i].low, known->constants[i].high}) {
                Values values = start_values(*known);
                values[i] = bound;
                for (const Work work : work_of(known->name)) {
                    for (const Kernel& kernel : grid(work)) {
                        const double seconds = known->seconds(kernel, large, values);
                        ASSERT_TRUE(std::isfinite(seconds) && seconds > 0.0)
                            << describe(*known, kernel, "large") << ", " << known->constants[i].name << " = " << bound;
                    }
                }
            }
        }
    }
}

TEST(KernelTimes, AreFiniteAndNotNegativeForNoWorkAtAll) {
    // What rides along in a neighbour is priced against an empty kernel.
    for (const KernelClass* known : kernel_classes()) {
        for (const Pattern pattern : {Pattern::stream, Pattern::product, Pattern::experts, Pattern::attention,
                                      Pattern::latent, Pattern::scan, Pattern::step}) {
            for (const auto& [name, machine] : machines()) {
                Kernel nothing;
                nothing.pattern = pattern;
                const double seconds = start_seconds(*known, nothing, machine);
                EXPECT_TRUE(std::isfinite(seconds) && seconds >= 0.0) << known->name << " on " << name;
            }
        }
    }
}

TEST(KernelTimes, AreNoFasterThanPeakAndBandwidthAllow) {
    for (const KernelClass* known : kernel_classes()) {
        for (const Work work : work_of(known->name)) {
            if (work == Work::step) continue;  // has no peak of its own
            if (known->constants.back().name == "backlog" || known->constants.back().name == "network")
                continue;  // collectives: links hold them back, see collective_kernels_test.cpp
            // llama.cpp's count the experts that are touched themselves; single rows and recurrences are work for the
            // vector units, which costs nothing where their peak is unknown.
            const bool whole_engine = known->name.starts_with("ggml");
            if (whole_engine && work == Work::experts) continue;
            for (const Kernel& kernel : grid(work)) {
                for (const auto& [name, machine] : machines()) {
                    if (whole_engine && machine.vector_peak == 0.0) continue;
                    const double seconds = start_seconds(*known, kernel, machine);
                    if (machine.bandwidth > 0.0) {
                        ASSERT_GE(seconds, kernel.weight_bytes / machine.bandwidth) << describe(*known, kernel, name);
                    }
                    if (machine.peak > 0.0 && !(whole_engine && work == Work::stream)) {  // those only move bytes
                        ASSERT_GE(seconds, kernel.flops / machine.peak) << describe(*known, kernel, name);
                    }
                }
            }
        }
    }
}

/// Twice the work may not take less: 1 % is left for what fits a machine better.
void expect_no_faster(const KernelClass& known, const Kernel& less, const Kernel& more, std::string_view what) {
    for (const auto& [name, machine] : machines()) {
        ASSERT_GE(start_seconds(known, more, machine), 0.99 * start_seconds(known, less, machine))
            << describe(known, less, name) << "; twice the " << what;
    }
}

TEST(KernelTimes, OfTwiceTheRowsAreNotShorter) {
    for (const std::string_view name : {"gemm", "batched_gemm"}) {
        const KernelClass& known = class_named(name);
        for (Product p :
             {Product{}, Product{.inner = 100, .cols = 130}, Product{.inner = 512, .cols = 128, .copies = 128},
              Product{.inner = 16384, .cols = 6144, .weight_size = 0.5}}) {
            for (const double rows : {0.3, 1.0, 5.0, 16.0, 60.0, 64.0, 96.0, 128.0, 300.0, 1000.0, 4096.0, 50000.0}) {
                p.rows = rows;
                const Kernel less = product(p);
                p.rows = 2.0 * rows;
                expect_no_faster(known, less, product(p), "rows");
                Kernel more = less;  // rows, flops and all bytes, weights included
                more.rows *= 2.0;
                more.flops *= 2.0;
                more.weight_bytes *= 2.0;
                more.input_bytes *= 2.0;
                more.output_bytes *= 2.0;
                expect_no_faster(known, less, more, "flops, bytes and rows");
            }
        }
    }
}

TEST(KernelTimes, OfTwiceTheColumnsOrDepthAreNotShorter) {
    for (const std::string_view name : {"gemm", "batched_gemm"}) {
        for (const double rows : {1.0, 64.0, 3000.0}) {
            for (const double size : {1.0, 64.0, 100.0, 128.0, 1000.0, 4096.0, 6144.0, 8448.0, 16896.0}) {
                const Kernel less = product({.rows = rows, .cols = size});
                expect_no_faster(class_named(name), less, product({.rows = rows, .cols = 2.0 * size}), "columns");
                const Kernel shallow = product({.rows = rows, .inner = size});
                expect_no_faster(class_named(name), shallow, product({.rows = rows, .inner = 2.0 * size}), "depth");
            }
        }
    }
}

TEST(KernelTimes, OfTwiceTheTokensOnExpertsAreNotShorter) {
    for (double tokens = 0.25; tokens < 1e5; tokens *= 2.0)
        expect_no_faster(class_named("expert_product"), experts(tokens), experts(2.0 * tokens), "tokens");
}

TEST(KernelTimes, OfTwiceTheKeysAreNotShorter) {
    for (const std::string_view name :
         {"attention_prefill", "attention_decode", "mla_prefill", "mla_decode", "ggml_cuda", "ggml_metal"}) {
        const KernelClass& known = class_named(name);
        for (const double sequences : {1.0, 4.0, 17.0, 128.0}) {
            for (const double queries : {1.0, 100.0, 2048.0}) {
                // In whole tiles: a context that is none takes some kernels longer than the next that is (E4).
                for (double keys = 64.0 * std::ceil(queries / 64.0); keys < 3e5; keys *= 2.0) {
                    for (const double kv_heads : {1.0, 8.0, 32.0}) {
                        Attention a = {.sequences = sequences, .queries = queries, .keys = keys, .kv_heads = kv_heads};
                        const Kernel less = attention(a);
                        const Kernel less_latent = latent(a);
                        a.keys *= 2.0;
                        if (name.starts_with("mla"))
                            expect_no_faster(known, less_latent, latent(a), "keys");
                        else
                            expect_no_faster(known, less, attention(a), "keys");
                    }
                }
            }
        }
    }
}

TEST(KernelTimes, OfTwiceTheTokensInAttentionAreNotShorter) {
    for (const std::string_view name : {"attention_prefill", "mla_prefill", "ggml_cuda", "ggml_metal"}) {
        const auto kernel = [&](const Attention& a) { return name.starts_with("mla") ? latent(a) : attention(a); };
        for (double queries = 2.0; queries < 2e5; queries *= 2.0) {
            for (const double sequences : {1.0, 7.0}) {
                const Attention less = {.sequences = sequences, .queries = queries, .keys = queries};
                const Attention more = {.sequences = sequences, .queries = 2.0 * queries, .keys = 2.0 * queries};
                expect_no_faster(class_named(name), kernel(less), kernel(more), "tokens");
            }
        }
    }
}

TEST(KernelTimes, OfTwiceTheSequencesInAttentionAreNotShorter) {
    for (const std::string_view name :
         {"attention_prefill", "attention_decode", "mla_prefill", "mla_decode", "ggml_cuda", "ggml_metal"}) {
        const auto kernel = [&](const Attention& a) { return name.starts_with("mla") ? latent(a) : attention(a); };
        for (const double keys : {64.0, 1024.0, 30000.0}) {
            for (const double kv_heads : {1.0, 8.0, 32.0}) {
                for (double sequences = 1.0; sequences < 1000.0; sequences *= 2.0) {
                    const Attention less = {.sequences = sequences, .keys = keys, .kv_heads = kv_heads};
                    const Attention more = {.sequences = 2.0 * sequences, .keys = keys, .kv_heads = kv_heads};
                    expect_no_faster(class_named(name), kernel(less), kernel(more), "sequences");
                    if (HasFailure()) return;  // one is enough
                }
            }
        }
    }
}

TEST(KernelTimes, OfTwiceTheTokensInScansAndStreamsAreNotShorter) {
    for (double tokens = 1.0; tokens < 1e6; tokens *= 2.0) {
        expect_no_faster(class_named("scan"), scan(1.0, tokens), scan(1.0, 2.0 * tokens), "tokens");
        expect_no_faster(class_named("scan"), scan(tokens, 100.0), scan(2.0 * tokens, 100.0), "sequences");
        expect_no_faster(class_named("elementwise"), stream(tokens, 128.0), stream(tokens, 256.0), "width");
        // Norms: the weights are the same for all rows. Rows may be unknown.
        for (const double rows : {0.0, tokens}) {
            Kernel less = stream(tokens, 16384.0);
            Kernel more = stream(2.0 * tokens, 16384.0);
            less.rows = rows;
            more.rows = 2.0 * rows;
            expect_no_faster(class_named("elementwise"), less, more, "tokens");
        }
        if (HasFailure()) return;  // one is enough
    }
}

TEST(KernelTimes, OfTwiceTheKernelsAreNotShorter) {
    for (const std::string_view name : {"graph_step", "eager_step", "ggml_cuda", "ggml_metal"}) {
        for (const Kernel& less : grid(Work::step)) {
            Kernel more = less;
            more.kernel_seconds *= 2.0;
            more.launches *= 2.0;
            more.flops *= 2.0;
            more.weight_bytes *= 2.0;
            expect_no_faster(class_named(name), less, more, "kernels");
        }
    }
}

TEST(KernelTimes, FasterMachinesAreNotSlower) {
    for (const KernelClass* known : kernel_classes()) {
        for (const Work work : work_of(known->name)) {
            for (const Kernel& kernel : grid(work)) {
                const double before = start_seconds(*known, kernel, large);
                for (double Machine::* figure :
                     {&Machine::peak, &Machine::vector_peak, &Machine::bandwidth, &Machine::cache}) {
                    Machine faster = large;
                    faster.*figure *= 2.0;
                    ASSERT_LE(start_seconds(*known, kernel, faster), before * (1.0 + 1e-12))
                        << describe(*known, kernel, "large");
                }
            }
        }
    }
}

}  // namespace
}  // namespace roofline::predict

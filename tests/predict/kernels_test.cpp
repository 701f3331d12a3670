// The formulas of kernel times: what must hold for every class of the registry, and values of a few by hand.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {
namespace {

using Values = std::array<double, max_constants>;

Values start_values(const KernelClass& kernel_class) {
    Values values{};
    for (std::size_t i = 0; i < kernel_class.constants.size(); ++i) values[i] = kernel_class.constants[i].start;
    return values;
}

/// Start values, but for those named.
Values values_of(const KernelClass& kernel_class,
                 std::initializer_list<std::pair<std::string_view, double>> changes = {}) {
    Values values = start_values(kernel_class);
    for (const auto& [name, value] : changes) {
        const auto found = std::find_if(kernel_class.constants.begin(), kernel_class.constants.end(),
                                        [&](const Constant& constant) { return constant.name == name; });
        EXPECT_NE(found, kernel_class.constants.end()) << "no constant " << name;
        if (found != kernel_class.constants.end())
            values[static_cast<std::size_t>(found - kernel_class.constants.begin())] = value;
    }
    return values;
}

const KernelClass& class_named(std::string_view name) {
    const KernelClass* found = kernel_class(name);
    EXPECT_NE(found, nullptr) << name;
    return found != nullptr ? *found : *kernel_classes().front();
}

double start_seconds(const KernelClass& kernel_class, const Kernel& kernel, const Machine& machine) {
    return kernel_class.seconds(kernel, machine, start_values(kernel_class));
}

// ---- machines: a large GPU, one with a systolic array, and such that keep a figure or all of them to themselves

struct NamedMachine {
    std::string name;
    Machine machine;
};

const Machine large = {.peak = 1e15, .vector_peak = 6e13, .bandwidth = 4e12, .cache = 5e7, .units = 132.0, .tile = 0.0};

std::vector<NamedMachine> machines() {
    std::vector<NamedMachine> result = {{"large", large}};
    Machine machine = large;
    machine.units = 0.0;
    machine.cache = 0.0;
    machine.tile = 128.0;
    result.push_back({"systolic, units and cache unknown", machine});
    result.push_back({"small", {.peak = 2e12, .vector_peak = 1e12, .bandwidth = 1e11, .cache = 4e6, .units = 10.0}});
    for (const auto& [name, figure] :
         std::vector<std::pair<std::string, double Machine::*>>{{"peak unknown", &Machine::peak},
                                                                {"vector peak unknown", &Machine::vector_peak},
                                                                {"bandwidth unknown", &Machine::bandwidth},
                                                                {"cache unknown", &Machine::cache},
                                                                {"units unknown", &Machine::units}}) {
        machine = large;
        machine.*figure = 0.0;
        result.push_back({name, machine});
    }
    result.push_back({"nothing known", {}});
    return result;
}

// ---- launches, as kernel_of makes them: flops and bytes follow from the sizes

enum class Work { product, experts, attention, latent, scan, stream, step };

/// What a class is asked to time. Classes that time an engine as a whole take every pattern.
std::vector<Work> work_of(std::string_view name) {
    if (name == "gemm" || name == "batched_gemm") return {Work::product};
    if (name == "expert_product") return {Work::experts};
    if (name == "attention_prefill" || name == "attention_decode") return {Work::attention};
    if (name == "mla_prefill" || name == "mla_decode") return {Work::latent};
    if (name == "scan") return {Work::scan};
    if (name == "elementwise") return {Work::stream};
    if (name == "graph_step" || name == "eager_step") return {Work::step};
    if (name == "mla_module") return {Work::latent};
    return {Work::product, Work::experts, Work::attention, Work::latent, Work::scan, Work::stream, Work::step};
}

struct Product {
    double rows = 1.0;
    double inner = 4096.0;
    double cols = 4096.0;
    double copies = 1.0;
    double weight_size = 2.0;  // bytes
};

Kernel product(const Product& p) {
    Kernel kernel;
    kernel.pattern = Pattern::product;
    kernel.rows = p.rows;
    kernel.inner = p.inner;
    kernel.cols = p.cols;
    kernel.copies = p.copies;
    kernel.flops = 2.0 * p.rows * p.inner * p.cols * p.copies;
    kernel.weight_bytes = p.weight_size * p.inner * p.cols * p.copies;
    kernel.input_bytes = 2.0 * p.rows * p.inner * p.copies;
    kernel.output_bytes = 2.0 * p.rows * p.cols * p.copies;
    kernel.tokens = p.rows;
    return kernel;
}

/// `tokens` that choose 8 of 128 experts, all of which are touched from 16 tokens on.
Kernel experts(double tokens, double inner = 2048.0, double cols = 768.0) {
    const double touched = std::min(8.0 * std::max(tokens, 1.0), 128.0);
    Kernel kernel = product({.rows = 8.0 * tokens / touched, .inner = inner, .cols = cols, .copies = touched});
    kernel.pattern = Pattern::experts;
    kernel.queries = 8.0 * tokens / 128.0;
    kernel.experts_total = 128.0;
    kernel.experts_chosen = 8.0;
    kernel.tokens = tokens;
    return kernel;
}

struct Attention {
    double sequences = 1.0;
    double queries = 1.0;
    double keys = 1024.0;
    double heads = 32.0;
    double kv_heads = 8.0;
    double dim = 128.0;
};

Kernel attention(const Attention& a) {
    Kernel kernel;
    kernel.pattern = Pattern::attention;
    kernel.sequences = a.sequences;
    kernel.queries = a.queries;
    kernel.keys = a.keys;
    kernel.context = a.keys;
    kernel.heads = a.heads;
    kernel.kv_heads = a.kv_heads;
    kernel.key_dim = a.dim;
    kernel.value_dim = a.dim;
    // The last query sees all keys, the first `queries - 1` fewer.
    const double pairs = a.sequences * a.queries * std::max(a.keys - 0.5 * (a.queries - 1.0), 1.0);
    kernel.flops = 4.0 * pairs * a.heads * a.dim;
    kernel.weight_bytes = 4.0 * a.sequences * a.keys * a.kv_heads * a.dim;
    kernel.input_bytes = 2.0 * a.sequences * a.queries * a.heads * a.dim;
    kernel.output_bytes = kernel.input_bytes;
    kernel.tokens = a.sequences * a.queries;
    return kernel;
}

Kernel latent(const Attention& a) {
    Kernel kernel = attention(a);
    kernel.pattern = Pattern::latent;
    kernel.kv_heads = 1.0;
    kernel.key_dim = 576.0;
    kernel.value_dim = 512.0;
    kernel.flops *= (576.0 + 512.0) / (2.0 * a.dim);
    kernel.weight_bytes = 2.0 * a.sequences * a.keys * 576.0;
    return kernel;
}

Kernel scan(double sequences, double queries) {
    Kernel kernel;
    kernel.pattern = Pattern::scan;
    kernel.sequences = sequences;
    kernel.queries = queries;
    kernel.context = queries;
    kernel.heads = 32.0;
    kernel.key_dim = 128.0;
    kernel.value_dim = 128.0;
    kernel.flops = sequences * queries * 6.0 * 32.0 * 128.0 * 128.0;
    kernel.weight_bytes = sequences * 2.0 * 4.0 * 32.0 * 128.0 * 128.0;
    kernel.input_bytes = kernel.output_bytes = sequences * queries * 2.0 * 32.0 * 128.0;
    kernel.tokens = sequences * queries;
    return kernel;
}

Kernel stream(double tokens, double width) {
    Kernel kernel;
    kernel.input_bytes = kernel.output_bytes = 2.0 * tokens * width;
    kernel.weight_bytes = 2.0 * width;
    kernel.flops = 5.0 * tokens * width;
    kernel.rows = tokens;
    kernel.tokens = tokens;
    return kernel;
}

Kernel step(double kernel_seconds, double launches) {
    Kernel kernel;
    kernel.pattern = Pattern::step;
    kernel.kernel_seconds = kernel_seconds;
    kernel.launches = launches;
    kernel.flops = 0.5 * kernel_seconds;
    kernel.weight_bytes = 0.7 * kernel_seconds;
    return kernel;
}

/// From nearly nothing over fractions of a row to more than any model asks for.
std::vector<Kernel> grid(Work work) {
    std::vector<Kernel> result;
    switch (work) {
        case Work::product:
            for (const double rows : {1e-3, 0.3, 1.0, 7.5, 8.0, 64.0, 65.0, 4096.0, 1e6}) {
                for (const double inner : {1.0, 100.0, 4096.0, 53248.0}) {
                    for (const double cols : {1.0, 129.0, 4096.0, 256000.0}) {
                        for (const double copies : {1.0, 12.5, 128.0})
                            result.push_back(product({.rows = rows, .inner = inner, .cols = cols, .copies = copies}));
                    }
                }
            }
            break;
        case Work::experts:
            for (const double tokens : {1e-3, 0.25, 1.0, 3.0, 64.0, 5000.0, 1e6}) {
                for (const double cols : {1.0, 768.0, 28672.0}) result.push_back(experts(tokens, 2048.0, cols));
            }
            break;
        case Work::attention:
        case Work::latent:
            for (const double sequences : {0.5, 1.0, 33.0, 1024.0}) {
                for (const double queries : {0.5, 1.0, 2.0, 100.0, 8192.0}) {
                    for (const double keys : {1.0, 63.5, 1024.0, 1e6}) {
                        for (const double kv_heads : {1.0, 8.0, 32.0}) {
                            const Attention a = {.sequences = sequences,
                                                 .queries = queries,
                                                 .keys = std::max(keys, queries),
                                                 .kv_heads = kv_heads};
                            result.push_back(work == Work::attention ? attention(a) : latent(a));
                        }
                    }
                }
            }
            break;
        case Work::scan:
            for (const double sequences : {0.5, 1.0, 300.0}) {
                for (const double queries : {0.5, 1.0, 63.0, 65.0, 1e5}) result.push_back(scan(sequences, queries));
            }
            break;
        case Work::stream:
            for (const double tokens : {1e-3, 0.5, 1.0, 100.0, 1e6}) {
                for (const double width : {1.0, 4096.0, 256000.0}) result.push_back(stream(tokens, width));
            }
            break;
        case Work::step:
            for (const double kernel_seconds : {1e-9, 1e-5, 1e-2, 100.0}) {
                for (const double launches : {0.0, 1.5, 1000.0}) result.push_back(step(kernel_seconds, launches));
            }
            break;
    }
    return result;
}

std::string describe(const KernelClass& kernel_class, const Kernel& k, std::string_view machine) {
    return std::string(kernel_class.name) + " on " + std::string(machine) + ": rows " + std::to_string(k.rows) +
           ", inner " + std::to_string(k.inner) + ", cols " + std::to_string(k.cols) + ", copies " +
           std::to_string(k.copies) + ", sequences " + std::to_string(k.sequences) + ", queries " +
           std::to_string(k.queries) + ", keys " + std::to_string(k.keys) + ", kv heads " + std::to_string(k.kv_heads);
}

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
            EXPECT_FALSE(constant.meaning.empty()) << what;
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
                for (double keys = queries; keys < 3e5; keys *= 2.0) {
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

// ---- by hand

TEST(Gemm, InWholeTilesBoundByComputeByHand) {
    const KernelClass& gemm = class_named("gemm");
    // One multiprocessor, so every number of tiles is whole waves; 256 x 256 is two of the largest tiles (128 x 256 =
    // 32768), which lose nothing to being small. 2 x 65536 x 1000 = 131,072,000 flop at half of 1 Tflop/s: 262.144 us.
    // The clock does not give way (sustained 1). Memory is unknown but for the walk along k: 1000 x 0.05 ns = 0.05 us,
    // of which 0.01 x 0.05^2 / 262.144 us shows: 1e-7 us.
    const Values values =
        values_of(gemm, {{"startup", 3.0}, {"compute", 0.5}, {"sustained", 1.0}, {"overlap", 0.01}, {"step", 0.05}});
    const Machine machine = {.peak = 1e12, .units = 1.0};
    EXPECT_NEAR(gemm.seconds(product({.rows = 256, .inner = 1000, .cols = 256}), machine, values), 265.144e-6, 1e-12);
}

TEST(Gemm, PaysHalfOfTheClocksWayDownAtTheHeatTime) {
    const KernelClass& gemm = class_named("gemm");
    // The same product at 262.144 us x 5.7220458984375 = 1.5 ms of full-speed work (131,072,000 flop at 87.381333
    // Gflop/s): half of the way to 0.5 of the speed is there, so 1.5 ms / (1 - 0.5 x 0.5) = 2 ms.
    const Values values =
        values_of(gemm, {{"startup", 0.3}, {"compute", 1.0}, {"sustained", 0.5}, {"overlap", 0.01}, {"step", 0.05}});
    const Machine machine = {.peak = 131072000.0 / 1.5e-3, .units = 1.0};
    EXPECT_NEAR(gemm.seconds(product({.rows = 256, .inner = 1000, .cols = 256}), machine, values), 2.0003e-3, 1e-9);
}

TEST(Gemm, BoundByMemoryByHand) {
    const KernelClass& gemm = class_named("gemm");
    // Nothing known but the bandwidth: 1000 x 1000 weights of 2 B, 2 x 1000 B in, 2 x 1000 B out: 2,004,000 B at half
    // of 1 GB/s, 4008 us; the input once more at full speed (input_passes 1), 2 us; start-up 3 us.
    const Values values = values_of(gemm, {{"startup", 3.0}, {"memory", 0.5}, {"input_passes", 1.0}});
    EXPECT_NEAR(gemm.seconds(product({.rows = 1, .inner = 1000, .cols = 1000}), {.bandwidth = 1e9}, values), 4013e-6,
                1e-12);
}

TEST(Gemm, IdleMultiprocessorsCostAShareOfTheWeights) {
    const KernelClass& gemm = class_named("gemm");
    // 64 columns over two multiprocessors: at a width of 64, one of two has columns (1 / 0.5 - 1 = 1); at 128, a
    // quarter of the wave is filled (1 / 0.25 - 1 = 3); on average 2. idle 0.25 x 2 = half of the 128,000 B of weights
    // again. (128,000 + 2000 + 128 + 64,000) B at 1 GB/s: 194.128 us, start-up 3 us, the input once more: 2 us.
    const Values values = values_of(gemm, {{"startup", 3.0}, {"memory", 1.0}, {"idle", 0.25}, {"input_passes", 1.0}});
    EXPECT_NEAR(gemm.seconds(product({.rows = 1, .inner = 1000, .cols = 64}), {.bandwidth = 1e9, .units = 2}, values),
                199.128e-6, 1e-12);
}

TEST(Gemm, WalksAlongKHoweverThin) {
    const KernelClass& gemm = class_named("gemm");
    // 10,000 elements of k at 2 ns each: 20 us and the start-up, though there are hardly any bytes.
    const Values values = values_of(gemm, {{"startup", 3.0}, {"step", 2.0}});
    EXPECT_NEAR(gemm.seconds(product({.rows = 1, .inner = 10000, .cols = 1}), {.units = 132}, values), 23e-6, 1e-12);
}

TEST(Gemm, SystolicArraysPadColumnsAndDepthToTheirSide) {
    const KernelClass& gemm = class_named("gemm");
    // No bandwidth: only compute counts.
    const Machine machine = {.peak = 1e12, .tile = 128.0};
    const auto seconds = [&](double rows, double inner, double cols) {
        return start_seconds(gemm, product({.rows = rows, .inner = inner, .cols = cols}), machine);
    };
    EXPECT_EQ(seconds(1024, 4096, 1), seconds(1024, 4096, 128));
    EXPECT_GT(seconds(1024, 4096, 129), 1.8 * seconds(1024, 4096, 128));
    // A deeper product also walks further along k, of which next to nothing shows: 46 ms against 3 us.
    EXPECT_NEAR(seconds(1024, 3969, 4096), seconds(1024, 4096, 4096), 1e-9);
    EXPECT_GT(seconds(1024, 4097, 4096), 1.03 * seconds(1024, 4096, 4096));
    EXPECT_EQ(seconds(1, 4096, 4096), seconds(8, 4096, 4096));  // rows stream through eight at a time
    EXPECT_GT(seconds(9, 4096, 4096), 1.8 * seconds(8, 4096, 4096));
}

TEST(Gemm, SystolicPaddingByHand) {
    const KernelClass& gemm = class_named("gemm");
    // 1000 x 100 x 1: 2 x 1000 x 128 x 128 = 32,768,000 flop at 1 Tflop/s, 32.768 us; start-up 3 us; the walk along k
    // (100 x 0.05 ns = 0.005 us) shows by 0.01 x 0.005^2 / 32.768 us, nothing.
    const Values values =
        values_of(gemm, {{"startup", 3.0}, {"compute", 1.0}, {"sustained", 1.0}, {"overlap", 0.01}, {"step", 0.05}});
    EXPECT_NEAR(gemm.seconds(product({.rows = 1000, .inner = 100, .cols = 1}), {.peak = 1e12, .tile = 128}, values),
                35.768e-6, 1e-12);
}

TEST(BatchedGemm, OfOneTilePerHeadByHand) {
    const KernelClass& batched = class_named("batched_gemm");
    // 4 heads of 128 x 128 on 4 multiprocessors, one wave of tiles of 128 x 128; such a tile is slower by 4 x 256 /
    // 16384 = 1/16. One of 64 x 64 would be by 1/8 (four waves), one of 256 x 128 would be half empty.
    // k of 984 and a prologue of 40: 2 x 4 x 16384 x 17/16 x 1024 = 142,606,336 flop at half of 1 Tflop/s: 285.212672
    // us; start-up 4 us.
    const Values values = values_of(batched, {{"startup", 4.0}, {"compute", 0.5}, {"prologue", 40.0}});
    EXPECT_NEAR(batched.seconds(product({.rows = 128, .inner = 984, .cols = 128, .copies = 4}),
                                {.peak = 1e12, .units = 4}, values),
                289.212672e-6, 1e-12);
}

TEST(ExpertProduct, OfOneWaveByHand) {
    const KernelClass& known = class_named("expert_product");
    // 2 experts with 8 rows each, 128 columns: tiles of 8 rows, each expert 8 / 8 + 0.5 of them: 3 tiles on 3
    // multiprocessors, even 1, waves 1 + 1 / 2 = 1.5. No peak: an element of k costs 1 ns + 16 ns x 8 / 128 = 2 ns.
    // k of 872 and a lead of 128: 1.5 x 1000 x 2 ns = 3 us. No bandwidth. Start-up 10 us.
    const Values values =
        values_of(known, {{"startup", 10.0}, {"step", 1.0}, {"tile_step", 16.0}, {"lead", 128.0}, {"tile", 64.0}});
    Kernel kernel = product({.rows = 8, .inner = 872, .cols = 128, .copies = 2});
    kernel.pattern = Pattern::experts;
    EXPECT_NEAR(known.seconds(kernel, {.units = 3}, values), 13e-6, 1e-15);
}

TEST(AttentionDecode, StreamsItsCacheByHand) {
    const KernelClass& known = class_named("attention_decode");
    // 64 MB of keys and values at half of 1 TB/s: 128 us; half of the ramp of 6 us; start-up 7 us. Blocks just fill the
    // machine where the multiprocessors are unknown: nothing to combine. Queries and results, 2 MB at full speed: 2 us.
    Kernel kernel = attention({.sequences = 4, .heads = 32, .kv_heads = 8});
    kernel.weight_bytes = 64e6;
    kernel.input_bytes = kernel.output_bytes = 1e6;
    const Values values = values_of(known, {{"startup", 7.0}, {"efficiency", 0.5}, {"ramp", 6.0}});
    EXPECT_NEAR(known.seconds(kernel, {.bandwidth = 1e12}, values), 140e-6, 1e-12);
}

TEST(AttentionDecode, ABlockDrawsNoMoreThanItCanByHand) {
    const KernelClass& known = class_named("attention_decode");
    // One block of 1,000 keys of 512 bytes, too short to be cut: 512,000 bytes at twice its share of 1 TB/s over 100
    // multiprocessors, 20 GB/s, 25.6 us; its softmax 1,000 x 1 ns. All of the bandwidth would take half a microsecond.
    Kernel kernel = attention({.sequences = 1, .keys = 1000, .heads = 8, .kv_heads = 1, .dim = 128});
    kernel.input_bytes = kernel.output_bytes = 0.0;
    const Machine machine = {.bandwidth = 1e12, .units = 100};
    for (const double pairs : {0.0, 1.0}) {
        const Values values = values_of(
            known, {{"startup", 5.0}, {"ramp", 0.0}, {"chunk", 2000.0}, {"key", 1.0}, {"lone", 2.0}, {"pairs", pairs}});
        EXPECT_NEAR(known.seconds(kernel, machine, values), 31.6e-6, 1e-12) << pairs;
    }
}

TEST(AttentionDecode, PaysForEachPartOfAContextByHand) {
    const KernelClass& known = class_named("attention_decode");
    // One block of 12,800 keys on 100 multiprocessors: 100 parts of 128 keys are possible, 50 allowed. 6,553,600 bytes
    // at 1 TB/s: 6.5536 us. A part by itself is quicker: 256 keys of 512 bytes at 10 x 10 GB/s, 1.31072 us. Start-up 5
    // us, joining 2 us and 49 x 0.1 us.
    Kernel kernel = attention({.sequences = 1, .keys = 12800, .heads = 8, .kv_heads = 1, .dim = 128});
    kernel.input_bytes = kernel.output_bytes = 0.0;
    const Values values = values_of(known, {{"startup", 5.0},
                                            {"ramp", 0.0},
                                            {"efficiency", 1.0},
                                            {"splits", 50.0},
                                            {"chunk", 128.0},
                                            {"key", 0.0},
                                            {"lone", 10.0},
                                            {"combine", 2.0},
                                            {"merge", 0.1},
                                            {"pairs", 0.0}});
    EXPECT_NEAR(known.seconds(kernel, {.bandwidth = 1e12, .units = 100}, values), 18.4536e-6, 1e-12);
}

TEST(AttentionDecode, WaitsForALastWaveThatIsPartEmptyByHand) {
    const KernelClass& known = class_named("attention_decode");
    // 12 whole contexts on 4 multiprocessors with two places each: a wave of 8 and one of 4. Narrow keys (256 bytes)
    // are no faster in it, so two full waves are paid: 3.072 MB at 1 TB/s, 3.072 us x 16 / 12 = 4.096 us. Wide ones
    // (512 bytes) are 1.4 times as fast: 6.144 us x (8 + 4 / 0.7) / 12. Start-up 5 us.
    const Values values = values_of(known, {{"startup", 5.0},
                                            {"ramp", 0.0},
                                            {"efficiency", 1.0},
                                            {"direct", 1.0},
                                            {"key", 0.0},
                                            {"lone", 8.0},
                                            {"pairs", 1.0}});
    const Machine machine = {.bandwidth = 1e12, .units = 4};
    Kernel narrow = attention({.sequences = 12, .keys = 1000, .heads = 8, .kv_heads = 1, .dim = 64});
    narrow.input_bytes = narrow.output_bytes = 0.0;
    EXPECT_NEAR(known.seconds(narrow, machine, values), 9.096e-6, 1e-12);
    Kernel wide = attention({.sequences = 12, .keys = 1000, .heads = 8, .kv_heads = 1, .dim = 128});
    wide.input_bytes = wide.output_bytes = 0.0;
    EXPECT_NEAR(known.seconds(wide, machine, values), (5.0 + 6.144 * (8.0 + 4.0 / 0.7) / 12.0) * 1e-6, 1e-12);
}

TEST(MlaDecode, TakesTheFasterOfNarrowAndWideTilesByHand) {
    const KernelClass& known = class_named("mla_decode");
    // Nothing is known but a peak of 1 Tflop/s, of which narrow tiles reach a tenth and wide ones half. 100 Mflop of
    // 128 heads: 1,000 us or 200 us. Of 8 heads, padded to 16 or 64: 2,000 us or 1,600 us. Of one head, padded to 16 or
    // 64: 16,000 us or 12,800 us; where narrow tiles reach 0.4 instead, 4,000 us. Start-up 9 us, no host.
    Kernel kernel;
    kernel.pattern = Pattern::latent;
    kernel.sequences = kernel.queries = 1.0;
    kernel.flops = 1e8;
    const auto seconds = [&](double heads, double compute) {
        kernel.heads = heads;
        return known.seconds(kernel, {.peak = 1e12},
                             values_of(known, {{"startup", 9.0}, {"host", 0.0}, {"compute", compute}, {"wide", 0.5}}));
    };
    EXPECT_NEAR(seconds(128.0, 0.1), 209e-6, 1e-12);
    EXPECT_NEAR(seconds(8.0, 0.1), 1609e-6, 1e-12);
    EXPECT_NEAR(seconds(1.0, 0.1), 12809e-6, 1e-12);
    EXPECT_NEAR(seconds(1.0, 0.4), 4009e-6, 1e-12);
}

TEST(Scan, ChainsItsChunksByHand) {
    const KernelClass& known = class_named("scan");
    // 640 tokens are 10 chunks of 2 us each; nothing else is known. Start-up 18 us.
    EXPECT_NEAR(known.seconds(scan(1, 640), {}, values_of(known, {{"startup", 18.0}, {"step", 2.0}})), 38e-6, 1e-12);
    // One token more is another chunk.
    EXPECT_NEAR(known.seconds(scan(1, 641), {}, values_of(known, {{"startup", 18.0}, {"step", 2.0}})), 40e-6, 1e-12);
}

TEST(Elementwise, BoundByMemoryByHand) {
    const KernelClass& known = class_named("elementwise");
    // 2 MB in, 1 MB out, 1 MB of weights, no cache: 4 MB at half of 1 GB/s, 8 ms; start-up 2 us.
    Kernel kernel;
    kernel.input_bytes = 2e6;
    kernel.output_bytes = 1e6;
    kernel.weight_bytes = 1e6;
    EXPECT_NEAR(known.seconds(kernel, {.bandwidth = 1e9}, values_of(known, {{"startup", 2.0}, {"memory", 0.5}})),
                8.002e-3, 1e-12);
}

TEST(Elementwise, FindsInTheCacheWhatFitsByHand) {
    const KernelClass& known = class_named("elementwise");
    // A cache of 4 MB of which half may be filled, 4 MB of activations: room 1/2, of which the square is found: 3/4 of
    // 4 MB are missed and come at 1 GB/s, 3 ms. With 2 MB nothing is missed, and only the start-up is left.
    const Values values = values_of(known, {{"startup", 2.0}, {"memory", 1.0}, {"share", 0.5}});
    Kernel kernel;
    kernel.input_bytes = 3e6;
    kernel.output_bytes = 1e6;
    EXPECT_NEAR(known.seconds(kernel, {.bandwidth = 1e9, .cache = 4e6}, values), 3.002e-3, 1e-12);
    kernel.input_bytes = 1e6;
    EXPECT_NEAR(known.seconds(kernel, {.bandwidth = 1e9, .cache = 4e6}, values), 2e-6, 1e-12);
}

TEST(Elementwise, FewRowsKeepFewMultiprocessorsBusyByHand) {
    const KernelClass& known = class_named("elementwise");
    // 10 rows on at most 4 multiprocessors each: 40 of 100 are busy. 4 MB at 40 x 10 GB/s: 10 us. Row costs: 10 x 1 us
    // over 100 multiprocessors, 0.1 us. Start-up 2 us. With 1000 rows all 100 are: 4 us for the bytes, 10 us for the
    // rows, which then hold it back.
    const Values values = values_of(
        known, {{"startup", 2.0}, {"unit_rate", 10.0}, {"row_cost", 1.0}, {"row_units", 4.0}, {"memory", 1.0}});
    Kernel kernel;
    kernel.input_bytes = kernel.output_bytes = 2e6;
    kernel.rows = 10.0;
    EXPECT_NEAR(known.seconds(kernel, {.units = 100}, values), 12e-6, 1e-12);
    kernel.rows = 1000.0;
    EXPECT_NEAR(known.seconds(kernel, {.units = 100}, values), 12e-6, 1e-12);
    kernel.rows = 2000.0;
    EXPECT_NEAR(known.seconds(kernel, {.units = 100}, values), 22e-6, 1e-12);
}

TEST(GraphStep, ByHand) {
    const KernelClass& known = class_named("graph_step");
    const Values values =
        values_of(known, {{"per_step", 10.0}, {"per_launch", 0.5}, {"sustained", 0.2}, {"onset", 5.0}, {"scale", 1.1}});
    // 100 launches: 10 us + 50 us. Kernels of 10 ms, of which the matrix units are busy for half: 5 ms is the onset, so
    // the loss is 0.2 x 0.5 x 1/2 = 5 %: 10 ms x 1.1 x 1.05 = 11.55 ms.
    Kernel kernel = step(10e-3, 100.0);
    kernel.flops = 5e-3;
    const Machine machine = {.peak = 1.0, .bandwidth = 1.0};
    EXPECT_NEAR(known.seconds(kernel, machine, values), 11.61e-3, 1e-12);
    // Never busier than all the time, though flops at a low peak may say so: 0.2 x 1 x 10 / 15.
    kernel.flops = 1.0;
    EXPECT_NEAR(known.seconds(kernel, machine, values), 60e-6 + 11e-3 * (1.0 + 0.4 / 3.0), 1e-12);
}

TEST(EagerStep, WaitsForTheSlowerOfHostAndDeviceByHand) {
    const KernelClass& known = class_named("eager_step");
    const Values values = values_of(known, {{"per_step", 300.0}, {"per_launch", 6.0}});
    // The host needs 300 us and 6 us for each of 200 launches: 1.5 ms.
    EXPECT_NEAR(known.seconds(step(1e-3, 200.0), {}, values), 1.5e-3, 1e-12);
    // 3% for kernels in a row: 2.06 ms of the device are longer than that.
    EXPECT_NEAR(known.seconds(step(2e-3, 200.0), {}, values), 2.06e-3, 1e-12);
}

}  // namespace
}  // namespace roofline::predict

// What tests of kernel times share: machines, work of every pattern, and constants at their start values.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict::kernel_times {

using Values = std::array<double, max_constants>;

inline Values start_values(const KernelClass& kernel_class) {
    Values values{};
    for (std::size_t i = 0; i < kernel_class.constants.size(); ++i) values[i] = kernel_class.constants[i].start;
    return values;
}

/// Start values, but for those named.
inline Values values_of(const KernelClass& kernel_class,
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

inline const KernelClass& class_named(std::string_view name) {
    const KernelClass* found = kernel_class(name);
    EXPECT_NE(found, nullptr) << name;
    return found != nullptr ? *found : *kernel_classes().front();
}

inline double start_seconds(const KernelClass& kernel_class, const Kernel& kernel, const Machine& machine) {
    return kernel_class.seconds(kernel, machine, start_values(kernel_class));
}

// ---- machines: a large GPU, one with a systolic array, and such that keep a figure or all of them to themselves

struct NamedMachine {
    std::string name;
    Machine machine;
};

inline const Machine large = {
    .peak = 1e15, .vector_peak = 6e13, .bandwidth = 4e12, .cache = 5e7, .units = 132.0, .tile = 0.0};

inline std::vector<NamedMachine> machines() {
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
inline std::vector<Work> work_of(std::string_view name) {
    if (name == "gemm" || name == "batched_gemm") return {Work::product};
    if (name == "expert_product") return {Work::experts};
    if (name == "attention_prefill" || name == "attention_decode" || name == "flash_decode" || name == "xe_decode")
        return {Work::attention};
    if (name == "mla_prefill" || name == "mla_decode") return {Work::latent};
    if (name == "scan") return {Work::scan};
    if (name == "elementwise" || name == "selection") return {Work::stream};
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

inline Kernel product(const Product& p) {
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
inline Kernel experts(double tokens, double inner = 2048.0, double cols = 768.0) {
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

inline Kernel attention(const Attention& a) {
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

inline Kernel latent(const Attention& a) {
    Kernel kernel = attention(a);
    kernel.pattern = Pattern::latent;
    kernel.kv_heads = 1.0;
    kernel.key_dim = 576.0;
    kernel.value_dim = 512.0;
    kernel.flops *= (576.0 + 512.0) / (2.0 * a.dim);
    kernel.weight_bytes = 2.0 * a.sequences * a.keys * 576.0;
    return kernel;
}

inline Kernel scan(double sequences, double queries) {
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

inline Kernel stream(double tokens, double width) {
    Kernel kernel;
    kernel.input_bytes = kernel.output_bytes = 2.0 * tokens * width;
    kernel.weight_bytes = 2.0 * width;
    kernel.flops = 5.0 * tokens * width;
    kernel.rows = tokens;
    kernel.tokens = tokens;
    return kernel;
}

inline Kernel step(double kernel_seconds, double launches) {
    Kernel kernel;
    kernel.pattern = Pattern::step;
    kernel.kernel_seconds = kernel_seconds;
    kernel.launches = launches;
    kernel.flops = 0.5 * kernel_seconds;
    kernel.weight_bytes = 0.7 * kernel_seconds;
    return kernel;
}

/// From nearly nothing over fractions of a row to more than any model asks for.
inline std::vector<Kernel> grid(Work work) {
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

inline std::string describe(const KernelClass& kernel_class, const Kernel& k, std::string_view machine) {
    return std::string(kernel_class.name) + " on " + std::string(machine) + ": rows " + std::to_string(k.rows) +
           ", inner " + std::to_string(k.inner) + ", cols " + std::to_string(k.cols) + ", copies " +
           std::to_string(k.copies) + ", sequences " + std::to_string(k.sequences) + ", queries " +
           std::to_string(k.queries) + ", keys " + std::to_string(k.keys) + ", kv heads " + std::to_string(k.kv_heads);
}

}  // namespace roofline::predict::kernel_times

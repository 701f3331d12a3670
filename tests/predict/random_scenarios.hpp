// Random but reproducible models, devices and workloads: std::mt19937_64 gives the same numbers everywhere, and nothing
// here uses a distribution of the standard library, which need not.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/devices.hpp"
#include "model/scenarios.hpp"
#include "roofline/model/attention/gated_delta.hpp"
#include "roofline/model/attention/mamba2.hpp"
#include "roofline/model/attention/mla.hpp"
#include "roofline/predict/report.hpp"

namespace roofline::testing {

class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}

    /// A whole number of [low, high].
    double whole(int low, int high) {
        return low + static_cast<double>(engine_() % static_cast<std::uint64_t>(high - low + 1));
    }
    bool maybe() { return engine_() % 2 == 0; }
    double pick(std::initializer_list<double> values) {
        return *(values.begin() + static_cast<std::ptrdiff_t>(engine_() % values.size()));
    }
    const char* pick(std::initializer_list<const char*> values) {
        return *(values.begin() + static_cast<std::ptrdiff_t>(engine_() % values.size()));
    }
    /// Between low and high, evenly over orders of magnitude (steps of a quarter octave, by multiplication only).
    double scale(double low, double high) {
        double value = low;
        for (auto steps = engine_() % 64; steps > 0 && value * 1.19 < high; --steps) value *= 1.19;
        return value;
    }

  private:
    std::mt19937_64 engine_;
};

enum class Mixers { attention, any };  // `attention`: full or sliding GQA only
enum class Experts { never, sometimes };

inline GqaShape random_gqa(Random& random) {
    GqaShape shape;
    shape.kv_heads = random.whole(1, 8);
    shape.heads = shape.kv_heads * random.pick({1.0, 2.0, 4.0, 8.0});
    shape.head_dim = random.pick({32.0, 64.0, 80.0, 128.0});
    shape.reach = random.maybe() ? Reach::full() : Reach::window(random.pick({16.0, 100.0, 512.0, 4096.0}));
    shape.qkv_bias = random.maybe();
    shape.out_bias = random.maybe();
    shape.qk_norm = random.maybe() ? model::QkNorm::per_head : model::QkNorm::none;
    shape.gate = random.maybe();
    return shape;
}

inline BlockPtr random_mixer(Random& random, Mixers mixers) {
    const double which = mixers == Mixers::attention ? 0.0 : random.whole(0, 4);
    if (which == 1.0) {
        return block<model::Mla>(model::MlaShape{.heads = random.whole(1, 16),
                                                 .query_rank = random.pick({0.0, 96.0}),
                                                 .kv_rank = random.pick({64.0, 512.0}),
                                                 .nope_dim = 64,
                                                 .rope_dim = 32,
                                                 .value_dim = 64,
                                                 .bias = random.maybe(),
                                                 .indexer = {},
                                                 .chosen = 0.0});
    }
    if (which == 2.0) {
        return block<model::GatedDelta>(model::GatedDeltaShape{
            .key_heads = random.whole(1, 8), .value_heads = random.whole(1, 8), .key_dim = 64, .value_dim = 64});
    }
    if (which == 3.0) {
        return block<model::Mamba2>(
            model::Mamba2Shape{.heads = random.whole(1, 16), .head_dim = 64, .groups = 1, .state_size = 128});
    }
    if (which == 4.0) {
        GqaShape shape = random_gqa(random);
        shape.reach = random.maybe() ? Reach::chunked(random.pick({64.0, 512.0})) : Reach::best(256.0);
        return gqa(shape);
    }
    return gqa(random_gqa(random));
}

inline Architecture random_architecture(Random& random, Mixers mixers = Mixers::any,
                                        Experts experts = Experts::sometimes) {
    Architecture architecture;
    architecture.name = "random";
    architecture.hidden = 64.0 * random.whole(1, 64);
    architecture.vocabulary = random.whole(100, 200000);
    architecture.tied = random.maybe();
    architecture.norm = random.maybe() ? model::NormKind::rms : model::NormKind::layer_norm;
    const int kinds = static_cast<int>(random.whole(1, 3));
    for (int i = 0; i < kinds; ++i) {
        BlockPtr ffn;
        if (experts == Experts::sometimes && random.maybe()) {
            const double total = random.whole(2, 64);
            ffn = moe({.experts = total,
                       .chosen = std::min(total, random.whole(1, 8)),
                       .width = 32.0 * random.whole(1, 32),
                       .shared_width = random.pick({0.0, 64.0})});
        } else {
            ffn = dense({.width = 32.0 * random.whole(1, 128), .gated = random.maybe(), .bias = random.maybe()});
        }
        LayerKind kind = layer(random_mixer(random, mixers), ffn, "kind" + std::to_string(i));
        kind.parallel = random.maybe();
        kind.norm_after_mixer = random.maybe();
        architecture.kinds.push_back(kind);
    }
    const int layers = static_cast<int>(random.whole(1, 40));
    for (int i = 0; i < layers; ++i) architecture.layers.push_back(static_cast<int>(random.whole(0, kinds - 1)));
    return architecture;
}

inline Lowered random_lowered(Random& random, const Architecture& architecture) {
    const bool narrow = random.maybe();
    return lowered(architecture, {}, random.pick({"bf16", "fp16", "fp8", "awq", "nvfp4", "q4_k", "fp32"}),
                   narrow ? DType::fp8 : DType::bf16, random.pick({"bf16", "fp8"}));
}

/// Some engines, memory, maybe a cache that is faster than memory, maybe measured ceilings somewhat below.
inline Device random_device(Random& random) {
    Device device;
    device.name = "random";
    const double peak = random.scale(1e10, 1e16);
    if (random.maybe()) set_rate(device, Engine::matrix, DType::bf16, peak);
    if (random.maybe()) set_rate(device, Engine::matrix, DType::fp16, peak);
    if (random.maybe()) set_rate(device, Engine::matrix, DType::fp8, 2.0 * peak);
    if (random.maybe()) set_rate(device, Engine::vector, DType::fp32, peak / random.pick({4.0, 16.0}));
    const double bandwidth = random.scale(1e9, 1e13);
    set_bandwidth(device, Level::memory, bandwidth);
    if (random.maybe()) set_capacity(device, Level::memory, random.scale(1e9, 1e12));
    if (random.maybe()) set_capacity(device, Level::cache, random.scale(1e4, 1e9));
    if (random.maybe()) set_bandwidth(device, Level::cache, bandwidth * random.pick({2.0, 5.0}));
    if (random.maybe()) {
        const auto ceiling = [&](double peak_value) {
            return Figure{peak_value * random.pick({0.6, 0.8, 0.95, 1.2}), "bench", ""};
        };
        device.ceilings["memory.bandwidth"] = ceiling(bandwidth);
        device.ceilings["matrix.bf16"] = ceiling(peak);
        device.ceilings["vector.fp32"] = ceiling(peak / 4.0);
    }
    if (random.maybe()) device.power = Figure{random.whole(50, 1000), "test", ""};
    return device;
}

inline predict::Workload random_workload(Random& random) {
    predict::Workload workload;
    workload.batch = random.scale(1.0, 300.0);
    workload.batch = std::floor(workload.batch);
    workload.prompt = random.whole(1, 3000);
    workload.cached = random.maybe() ? random.whole(0, 2000) : 0.0;
    workload.context = random.maybe() ? random.whole(1, 20000) : 0.0;
    workload.generate = random.whole(1, 20);
    workload.chunk = random.whole(1, 512);
    workload.stages = {predict::StageKind::prefill, predict::StageKind::decode, predict::StageKind::mixed};
    return workload;
}

inline predict::Scenario random_scenario(Random& random) {
    predict::Scenario scenario;
    scenario.lowered = random_lowered(random, random_architecture(random));
    scenario.device = random_device(random);
    scenario.workload = random_workload(random);
    return scenario;
}

}  // namespace roofline::testing

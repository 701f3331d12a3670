#include <algorithm>

#include <fmt/format.h>

#include "roofline/render/chart/roofline.hpp"

namespace roofline::render::chart {
namespace {

/// What language models compute in; others are drawn where something uses them.
bool of_interest(Engine engine, DType type) {
    if (engine == Engine::vector) return type == DType::fp32;
    return type == DType::bf16 || type == DType::fp16 || type == DType::fp8 || type == DType::int8 ||
           type == DType::fp4;
}

}  // namespace

std::string ComputeRoof::name() const {
    std::vector<std::string_view> names;
    for (const DType type : types) names.push_back(roofline::name(type));
    return fmt::format("{}{}", fmt::join(names, ", "), engine == Engine::vector ? " vector" : "");
}

std::vector<ComputeRoof> compute_roofs(const Account& account) {
    const Roofs limit = limit_roofs(account.device);
    const Roofs attainable = attainable_roofs(account.device);
    std::vector<ComputeRoof> roofs;
    for (const Engine engine : {Engine::matrix, Engine::vector}) {
        for (const DType type : all_dtypes) {
            const double cost = limit.flop_cost(engine, type);
            if (!(cost > 0.0)) continue;
            double flops = 0.0;
            for (const AccountStage& stage : account.stages) {
                for (const Record& record : stage.records) {
                    if (record.work.engine == engine && record.work.type == type) flops += record.work.flops.value;
                }
            }
            if (flops == 0.0 && !of_interest(engine, type)) continue;
            ComputeRoof roof{engine, {type}, 1.0 / cost, 1.0 / attainable.flop_cost(engine, type), flops > 0.0, flops};
            const auto same = std::find_if(roofs.begin(), roofs.end(), [&](const ComputeRoof& other) {
                return other.engine == engine && other.limit == roof.limit &&
                       (other.attainable == roof.attainable || !other.used || !roof.used);
            });
            if (same == roofs.end()) {
                roofs.push_back(std::move(roof));
                continue;
            }
            // Of equal peaks the one that is used says how much of it was measured.
            if (roof.used && !same->used) same->attainable = roof.attainable;
            if (!roof.used && !same->used) same->attainable = std::max(same->attainable, roof.attainable);
            same->types.push_back(type);
            same->used = same->used || roof.used;
            same->flops += flops;
        }
    }
    std::stable_sort(roofs.begin(), roofs.end(),
                     [](const ComputeRoof& a, const ComputeRoof& b) { return a.limit > b.limit; });
    return roofs;
}

const ComputeRoof* main_roof(const std::vector<ComputeRoof>& roofs) {
    const ComputeRoof* best = nullptr;
    for (const ComputeRoof& roof : roofs) {
        if (roof.used && (best == nullptr || roof.flops > best->flops)) best = &roof;
    }
    if (best != nullptr) return best;
    for (const ComputeRoof& roof : roofs) {
        if (std::find(roof.types.begin(), roof.types.end(), DType::bf16) != roof.types.end()) return &roof;
    }
    return roofs.empty() ? nullptr : &roofs.front();
}

}  // namespace roofline::render::chart

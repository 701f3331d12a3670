#include "roofline/render/chart/ceilings.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "roofline/render/numbers.hpp"

namespace roofline::render::chart {
namespace {

/// What language models compute in; others are drawn where something uses them.
bool of_interest(Engine engine, DType type) {
    if (engine == Engine::vector) return type == DType::fp32;
    return type == DType::bf16 || type == DType::fp16 || type == DType::fp8 || type == DType::int8 ||
           type == DType::fp4;
}

std::vector<Slope> slopes_of(const Device& device, const std::vector<Level>& levels) {
    const Roofs limit = limit_roofs(device);
    const Roofs attainable = attainable_roofs(device);
    std::vector<Slope> slopes;
    for (const Level level : all_levels) {
        if (std::find(levels.begin(), levels.end(), level) == levels.end() && level != Level::memory) continue;
        const double cost = attainable.seconds_per_byte[index(level)];
        if (!(cost > 0.0)) continue;
        const double datasheet = limit.seconds_per_byte[index(level)];
        slopes.push_back({level, datasheet > 0.0 ? 1.0 / datasheet : 1.0 / cost, 1.0 / cost});
    }
    return slopes;
}

}  // namespace

std::string ComputeRoof::name() const {
    std::vector<std::string_view> names;
    for (const DType type : types) names.push_back(roofline::name(type));
    return fmt::format("{}{}", fmt::join(names, ", "), engine == Engine::vector ? " vector" : "");
}

std::string ComputeRoof::spelt(double rate) const {
    const bool integers =
        std::all_of(types.begin(), types.end(), [](DType type) { return peak_unit(type) == peak_unit(DType::int8); });
    return with_unit(rate, peak_unit(integers ? DType::int8 : DType::bf16));
}

bool Ceiling::bold(const ComputeRoof& roof) const {
    double all = 0.0;
    for (const ComputeRoof& other : roofs) all += other.flops;
    return &roof == main || roof.flops > 0.02 * all;
}

namespace {
constexpr double noticed = 0.02;  // of a stage's time; a norm that is on the wrong side is no reason to leave it open
}

Ridges ridges_of(const Ceiling& ceiling, const Device& device, std::span<const Spot> spots) {
    if (ceiling.main == nullptr || !(ceiling.memory() > 0.0)) return {};
    Ridges ridges{ceiling.main->limit / ceiling.memory(), ceiling.main->limit / ceiling.memory()};
    for (const ComputeRoof& roof : ceiling.roofs) {
        if (!ceiling.bold(roof)) continue;
        ridges.lowest = std::min(ridges.lowest, roof.limit / ceiling.memory());
        ridges.highest = std::max(ridges.highest, roof.limit / ceiling.memory());
    }
    const Roofs limit = limit_roofs(device);
    for (const Spot& spot : spots) {
        if (spot.share < noticed) continue;
        const double cost = limit.flop_cost(spot.record->work.engine, spot.record->work.type);
        if (!(cost > 0.0)) continue;
        const double own = 1.0 / cost / ceiling.memory();
        if (own <= spot.intensity && spot.intensity < ridges.lowest) ridges.lowest = own;
        if (own > spot.intensity && spot.intensity >= ridges.highest) ridges.highest = own;
    }
    return ridges;
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

bool same_machine(const Device& a, const Device& b) {
    const Roofs one = attainable_roofs(a);
    const Roofs two = attainable_roofs(b);
    return a.name == b.name && one.seconds_per_flop == two.seconds_per_flop &&
           one.seconds_per_byte == two.seconds_per_byte;
}

std::vector<Ceiling> ceilings_of(std::span<const Account> accounts, const std::vector<Level>& levels) {
    std::vector<Ceiling> ceilings;
    for (std::size_t i = 0; i < accounts.size(); ++i) {
        const auto known = std::find_if(ceilings.begin(), ceilings.end(), [&](const Ceiling& ceiling) {
            return same_machine(accounts[ceiling.account].device, accounts[i].device);
        });
        if (known != ceilings.end()) {
            // What another report uses of the same machine is used.
            for (const ComputeRoof& roof : compute_roofs(accounts[i])) {
                if (!roof.used) continue;
                const auto drawn = std::find_if(
                    known->roofs.begin(), known->roofs.end(),
                    [&](const ComputeRoof& other) { return other.engine == roof.engine && other.limit == roof.limit; });
                if (drawn == known->roofs.end()) {
                    known->roofs.push_back(roof);
                    continue;
                }
                drawn->used = true;
                drawn->flops += roof.flops;
            }
            continue;
        }
        ceilings.push_back({i, compute_roofs(accounts[i]), slopes_of(accounts[i].device, levels), nullptr});
    }
    for (Ceiling& ceiling : ceilings) {
        ceiling.main = main_roof(ceiling.roofs);
        if (ceilings.size() == 1 || ceiling.main == nullptr) continue;
        // With several machines in a picture, one roof and one slope of each are enough to compare.
        const ComputeRoof kept = *ceiling.main;
        ceiling.roofs = {kept};
        ceiling.main = &ceiling.roofs.front();
        if (ceiling.slopes.size() > 1) ceiling.slopes.resize(1);
    }
    return ceilings;
}

}  // namespace roofline::render::chart

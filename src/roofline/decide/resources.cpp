#include "roofline/decide/resources.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "roofline/core/collective.hpp"
#include "roofline/core/sources.hpp"

namespace roofline::decide {
namespace {

using predict::Calibration;
using predict::Constant;
using predict::Fitted;
using predict::KernelClass;

/// Constants of kernel classes that are time lost whatever the work: between kernels, and inside each.
constexpr std::array<std::string_view, 7> of_launches = {"per_step",      "per_launch", "graph_launch", "plain_launch",
                                                         "single_launch", "launch",     "host"};
constexpr std::array<std::string_view, 5> of_start_up = {"startup", "ramp", "combine", "merge", "quantise"};

bool is_collective(const KernelClass& kernel_class) {
    return std::any_of(all_collectives.begin(), all_collectives.end(),
                       [&](Collective collective) { return name(collective) == kernel_class.name; });
}

bool is_lost_time(const KernelClass& kernel_class, const Constant& constant, ResourceKind kind) {
    if (constant.unit != "us") return false;
    if (is_collective(kernel_class)) return kind == ResourceKind::link_latency;
    const auto among = [&](const auto& names) {
        return std::find(names.begin(), names.end(), constant.name) != names.end();
    };
    return (kind == ResourceKind::launch && among(of_launches)) ||
           (kind == ResourceKind::start_up && among(of_start_up));
}

/// The same calibration with such constants divided. A class that was never fitted is there with its start values.
std::shared_ptr<const Calibration> with_less_lost_time(const std::shared_ptr<const Calibration>& known,
                                                       ResourceKind kind, double factor) {
    auto changed = std::make_shared<Calibration>();
    for (const KernelClass* kernel_class : predict::kernel_classes()) {
        std::vector<Fitted> fits = known ? known->fits(*kernel_class) : std::vector<Fitted>{};
        if (fits.empty()) {
            Fitted start;
            start.kernel_class = kernel_class;
            for (std::size_t i = 0; i < kernel_class->constants.size(); ++i)
                start.constants[i] = kernel_class->constants[i].start;
            fits.push_back(start);
        }
        for (Fitted& fitted : fits) {
            for (std::size_t i = 0; i < kernel_class->constants.size(); ++i) {
                if (is_lost_time(*kernel_class, kernel_class->constants[i], kind)) fitted.constants[i] /= factor;
            }
            changed->add(std::move(fitted));
        }
    }
    return changed;
}

/// A measured ceiling moves with the figure it is a part of, as under --set.
void scale_figure(std::optional<Figure>& figure, Device& device, const std::string& ceiling, double factor) {
    if (figure) figure->value *= factor;
    if (const auto found = device.ceilings.find(ceiling); found != device.ceilings.end()) found->second.value *= factor;
}

std::string title_of(Level level, const MemoryLevel& entry, bool bandwidth) {
    std::string what;
    switch (level) {
        case Level::memory:
            what = "memory";
            break;
        case Level::cache:
            what = "cache";
            break;
        case Level::host:
            what = "host link";
            break;
        case Level::peer:
            what = "link to peers";
            break;
        case Level::network:
            what = "network";
            break;
    }
    if (!entry.technology.empty()) what += " (" + entry.technology + ")";
    return what + (bandwidth ? " bandwidth" : " capacity");
}

}  // namespace

std::vector<Resource> resources_of(const Candidate& candidate, std::span<const DType> types) {
    const Device& device = candidate.setup.device;
    std::vector<Resource> result;
    const auto amount_of = [](const std::optional<Figure>& figure) {
        return figure ? std::optional(figure->value) : std::nullopt;
    };
    for (const DType type : types) {
        const auto& matrix = device.rate(Engine::matrix, type);
        result.push_back({.kind = ResourceKind::compute,
                          .name = "compute." + std::string(name(type)),
                          .title = "compute in " + std::string(name(type)),
                          .type = type,
                          .amount = amount_of(matrix ? matrix : device.rate(Engine::vector, type))});
    }
    result.push_back(
        {.kind = ResourceKind::compute, .name = "compute", .title = "all compute", .type = {}, .amount = {}});
    for (const Level level : all_levels) {
        const auto& entry = device.level(level);
        if (!entry) continue;
        const std::string where(name(level));
        // What nobody publishes may have been measured: a cache's bandwidth mostly is. One that is assumed is nothing
        // to ask for more of.
        const auto ceiling = device.ceilings.find(where + ".bandwidth");
        if (entry->bandwidth || (ceiling != device.ceilings.end() && !is_assumed(device, ceiling->second))) {
            result.push_back({.kind = ResourceKind::bandwidth,
                              .name = where + ".bandwidth",
                              .title = title_of(level, *entry, true),
                              .type = {},
                              .level = level,
                              .amount = entry->bandwidth ? entry->bandwidth->value : ceiling->second.value});
        }
        if (entry->capacity && (level == Level::memory || level == Level::cache)) {
            result.push_back({.kind = ResourceKind::capacity,
                              .name = where + ".capacity",
                              .title = title_of(level, *entry, false),
                              .type = {},
                              .level = level,
                              .amount = amount_of(entry->capacity)});
        }
    }
    result.push_back(
        {.kind = ResourceKind::launch, .name = "launch", .title = "launch latency (halved)", .type = {}, .amount = {}});
    result.push_back({.kind = ResourceKind::start_up,
                      .name = "start_up",
                      .title = "start-up of kernels (halved)",
                      .type = {},
                      .amount = {}});
    if (candidate.setup.deployment().replica_devices() > 1.0) {
        result.push_back({.kind = ResourceKind::link_latency,
                          .name = "link_latency",
                          .title = "latency of collectives (halved)",
                          .type = {},
                          .amount = {}});
    }
    return result;
}

void scale(Candidate& candidate, const Resource& resource, double factor) {
    predict::Setup& setup = candidate.setup;
    Device& device = setup.device;
    switch (resource.kind) {
        case ResourceKind::compute:
            for (const Engine engine : {Engine::matrix, Engine::vector}) {
                for (const DType type : all_dtypes) {
                    if (resource.type && *resource.type != type) continue;
                    scale_figure(device.rates[index(engine)][index(type)], device,
                                 std::string(name(engine)) + "." + std::string(name(type)), factor);
                }
            }
            break;
        case ResourceKind::bandwidth:
        case ResourceKind::capacity: {
            auto& entry = device.levels[index(resource.level)];
            if (!entry) break;
            const bool bandwidth = resource.kind == ResourceKind::bandwidth;
            scale_figure(bandwidth ? entry->bandwidth : entry->capacity, device,
                         bandwidth ? std::string(name(resource.level)) + ".bandwidth" : "", factor);
            break;
        }
        case ResourceKind::launch:
        case ResourceKind::start_up:
        case ResourceKind::link_latency:
            setup.execution.calibration = with_less_lost_time(setup.execution.calibration, resource.kind, factor);
            break;
    }
}

}  // namespace roofline::decide

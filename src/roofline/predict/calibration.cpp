#include "roofline/predict/calibration.hpp"

#include <algorithm>
#include <limits>

namespace roofline::predict {
namespace {

// Of a class nobody has timed: what kernels of one class were seen to differ by between engines.
constexpr double assumed_low = 0.7;
constexpr double assumed_high = 1.6;
// Constants of another number type, another engine's kernels or another vendor's devices: the range grows by this
// factor on both sides.
constexpr double widened = 1.15;

bool covers(const Fitted& fitted, const Device& device) {
    switch (fitted.scope) {
        case Scope::device:
            return fitted.of == device.name;
        case Scope::generation:
            return !device.generation.empty() && fitted.of == device.generation;
        case Scope::everything:
            return true;
    }
    return false;
}

/// "trtllm/hopper" is one make of trtllm's kernels; "sglang/hopper" would be the same make under another caller.
std::string_view make_of(std::string_view stack) {
    const std::size_t slash = stack.find('/');
    return slash == std::string_view::npos ? std::string_view() : stack.substr(slash + 1);
}

/// Measured on devices of other vendors alone. A file that does not say so is taken for the device's own.
bool foreign(const Fitted& fitted, const Device& device) {
    return fitted.scope == Scope::everything && !fitted.vendors.empty() &&
           std::find(fitted.vendors.begin(), fitted.vendors.end(), device.vendor) == fitted.vendors.end();
}

// Distances between software: the place among those asked for, then the same make of kernels, then anything else.
constexpr std::size_t same_make = 32;
constexpr std::size_t other_stack = 63;

std::size_t distance_of_stacks(std::string_view fitted, std::span<const std::string> wanted) {
    if (fitted.empty()) return same_make - 1;  // one library for all: as good as any that was asked for
    std::size_t nearest = other_stack;
    for (std::size_t i = 0; i < wanted.size() && i < same_make; ++i) {
        const std::string_view name = wanted[i];
        const bool named = fitted == name || (fitted.starts_with(name) && fitted.substr(name.size()).starts_with('/'));
        if (named) return i;
        if (!make_of(name).empty() && make_of(name) == make_of(fitted)) nearest = std::min(nearest, same_make + i / 2);
    }
    return nearest;
}

/// A label of constants in its parts. "mxfp4/bf16": weights in one format, multiplied in another. "bf16/fp8, wide
/// heads": queries multiplied in one type, keys and values in another, by kernels that do the same work in another way.
struct Label {
    std::string_view plain;    // without what follows the comma
    std::string_view weights;  // before the stroke
    std::string_view computed;
    const Format* format;  // of the weights; nullptr: none has this name

    explicit Label(std::string_view type)
        : plain(type.substr(0, type.find(','))),
          weights(plain.substr(0, plain.find('/'))),
          computed(plain.size() > weights.size() ? plain.substr(weights.size() + 1) : std::string_view()),
          format(find_format(weights)) {}

    /// Narrow weights that are multiplied in 16 bits: what counts is how they are unpacked, not that some engine could
    /// multiply them as they are.
    bool unpacked() const {
        if (format == nullptr || format->element_bits >= 16.0) return false;
        return format->weight_only ? computed.empty() || in_16_bits() : in_16_bits();
    }
    bool in_16_bits() const { return computed == "bf16" || computed == "fp16"; }
    /// What weight-only formats are by themselves needs no saying: "int4/bf16" is "int4".
    std::string_view known_as() const { return unpacked() && format->weight_only ? weights : plain; }
};

/// Types that the same kernels do in the same way: 4-bit weights are unpacked and multiplied in 16 bits, whatever their
/// scales look like. Unpacking 8 bits costs little: such a product is one of 16 bits with fewer bytes.
std::vector<std::string_view> near_types(std::string_view type) {
    const Label label(type);
    if (!label.unpacked()) return {};
    if (bits(label.format->value) > 4) return {"bf16"};
    std::vector<std::string_view> near;
    for (const std::string_view other : {"int4", "mxfp4/bf16"}) {
        if (other != label.known_as()) near.push_back(other);
    }
    return near;
}

std::string source_of(const Fitted& fitted, std::string_view type, bool other_type) {
    std::string text = fitted.scope == Scope::everything ? "all devices" : fitted.of;
    if (fitted.scope != Scope::device) text += ", transferred";
    if (other_type) text += ", " + (fitted.type.empty() ? "all types" : fitted.type) + " for " + std::string(type);
    return text;
}

}  // namespace

std::string_view name(Scope scope) {
    constexpr std::array<std::string_view, 3> names = {"device", "generation", "everything"};
    return names[static_cast<std::size_t>(scope)];
}

std::vector<std::string_view> related_types(std::string_view type) {
    std::vector<std::string_view> chain = {type};
    const auto then = [&](const std::vector<std::string_view>& others) {
        for (const std::string_view other : others) {
            if (std::find(chain.begin(), chain.end(), other) == chain.end()) chain.push_back(other);
        }
    };
    const Label label(type);
    then({label.known_as(), label.plain});
    then(near_types(type));
    const Format* format = label.format;
    if (format == nullptr || label.unpacked()) {
        // Nothing of an engine that multiplies them as they are.
    } else if (format->value == DType::fp4 && label.computed == "fp8") {
        then({"mxfp4/fp8", "fp8_block", "fp8"});
    } else {
        then({label.weights});
        const bool narrow = label.computed.empty() && !format->weight_only;
        if (format->value == DType::int4) then({"int4"});
        if (narrow && format->value == DType::fp4) then({"nvfp4", "mxfp4", "mxfp4/fp8", "fp8_block", "fp8"});
        if (narrow && (format->value == DType::fp8 || format->value == DType::int8)) then({"fp8", "fp8_block", "int8"});
    }
    then({"bf16", "fp16"});
    return chain;
}

const std::vector<Fitted>& Calibration::fits(const KernelClass& kernel_class) const {
    static const std::vector<Fitted> none;
    const auto found = fits_.find(&kernel_class);
    return found != fits_.end() ? found->second : none;
}

std::vector<Fitted> Calibration::all() const {
    std::vector<Fitted> result;
    for (const KernelClass* known : kernel_classes()) {
        const std::vector<Fitted>& some = fits(*known);
        result.insert(result.end(), some.begin(), some.end());
    }
    return result;
}

Choice Calibration::choose(const KernelClass& kernel_class, std::string_view type, std::span<const std::string> stacks,
                           const Device& device) const {
    const std::string_view own_type = type.find(',') == std::string_view::npos ? Label(type).known_as() : type;
    const std::vector<std::string_view> types = related_types(own_type);
    const std::vector<std::string_view> near = near_types(own_type);
    // Each way of being further off costs more than any number of the lesser ones: the type, then another vendor's
    // devices, then kernels of another make, then a type that is done in the same way, then another device. Kernels
    // differ more between engines than between devices, once figures are fractions of the datasheet. Among the stacks
    // that were asked for, the device decides.
    const Fitted* best = nullptr;
    std::size_t best_distance = std::numeric_limits<std::size_t>::max();
    std::size_t best_type = 0;
    bool best_stack = false;
    for (const Fitted& fitted : fits(kernel_class)) {
        if (!covers(fitted, device)) continue;
        // Without a type: fitted to all types of one engine at once, or, without a stack either, to the whole class,
        // which is the last resort.
        const bool whole_class = fitted.type.empty() && fitted.stack.empty() && !type.empty();
        const auto type_place = std::find(types.begin(), types.end(), fitted.type);
        if (type_place == types.end() && !fitted.type.empty()) continue;
        const std::size_t stack_distance = distance_of_stacks(fitted.stack, stacks);
        const std::size_t type_distance = whole_class           ? types.size()
                                          : fitted.type.empty() ? 0
                                                                : static_cast<std::size_t>(type_place - types.begin());
        const bool nearly = fitted.type != own_type && std::find(near.begin(), near.end(), fitted.type) != near.end();
        const std::size_t strangeness = stack_distance < same_make ? 0 : stack_distance < other_stack ? 1 : 2;
        std::size_t distance = nearly ? 0 : type_distance;
        distance = distance * 2 + (foreign(fitted, device) ? 1 : 0);
        distance = distance * 3 + strangeness;
        distance = distance * 2 + (nearly ? 1 : 0);
        distance = distance * 3 + static_cast<std::size_t>(fitted.scope);
        distance = distance * (other_stack + 1) + stack_distance;
        if (distance < best_distance) {
            best_distance = distance;
            best = &fitted;
            best_type = type_distance;
            best_stack = stack_distance < same_make;
        }
    }
    Choice choice;
    choice.kernel_class = &kernel_class;
    if (best == nullptr) {
        for (std::size_t i = 0; i < kernel_class.constants.size(); ++i)
            choice.constants[i] = kernel_class.constants[i].start;
        choice.low = assumed_low;
        choice.high = assumed_high;
        choice.source = "assumed";
        return choice;
    }
    choice.constants = best->constants;
    const double margin = (best_type > 0 ? widened : 1.0) * (best_stack || best->stack.empty() ? 1.0 : widened) *
                          (foreign(*best, device) ? widened : 1.0);
    choice.low = best->low / margin;
    choice.high = best->high * margin;
    if (stacks.empty() || best->stack != stacks.front()) {
        choice.authors_low = best->authors_low;
        choice.authors_high = best->authors_high;
    }
    choice.source = source_of(*best, type, best_type > 0);
    choice.own = best->scope == Scope::device;
    choice.distance = best_distance;
    return choice;
}

}  // namespace roofline::predict

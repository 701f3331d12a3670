#include "roofline/analyze/lists.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "roofline/analyze/effort.hpp"

namespace roofline::analyze {
namespace {

using Sizes = std::vector<std::int64_t>;
using Votes = std::map<std::string, double>;

/// What hands a gradient to its parameter: one call for each parameter in a backward pass.
bool hands_over_gradient(const std::string& name) {
    return name == "torch::autograd::AccumulateGrad";
}

bool of_an_optimizer(const std::string& name) {
    return name.find("_foreach_") != std::string::npos || name.find("::_fused_") != std::string::npos;
}

void vote(const std::map<Sizes, Votes>& seen, const Argument& list, Votes& votes) {
    for (const Tensor& tensor : list.tensors) {
        const auto found = seen.find(tensor.dims);
        if (tensor.dims.empty() || found == seen.end()) continue;
        double all = 0.0;
        for (const auto& [type, count] : found->second) all += count;
        for (const auto& [type, count] : found->second) votes[type] += elements(tensor) * count / all;
    }
}

std::string winner(const Votes& votes) {
    std::string best;
    double most = 0.0;
    for (const auto& [type, count] : votes) {
        if (count <= most) continue;
        most = count;
        best = type;
    }
    return best;
}

/// The smallest period of a sequence that shows it whole at least twice; all of it where there is none.
std::size_t period(const std::vector<std::uint32_t>& sequence) {
    std::vector<std::size_t> matched(sequence.size(), 0);  // by place: the longest begin that also ends there
    for (std::size_t i = 1; i < sequence.size(); ++i) {
        std::size_t length = matched[i - 1];
        while (length > 0 && sequence[i] != sequence[length]) length = matched[length - 1];
        matched[i] = length + (sequence[i] == sequence[length] ? 1 : 0);
    }
    if (sequence.empty()) return 0;
    const std::size_t found = sequence.size() - matched.back();
    return 2 * found <= sequence.size() ? found : sequence.size();
}

/// Parameters by type: what one backward pass made gradients for.
Votes parameters_of(const Timeline& timeline) {
    std::vector<bool> hands(timeline.signatures.size());
    bool any = false;
    for (std::size_t i = 0; i < hands.size(); ++i) {
        hands[i] = hands_over_gradient(timeline.signatures[i].name);
        any = any || hands[i];
    }
    Votes parameters;
    if (!any) return parameters;
    std::vector<std::pair<std::int64_t, std::uint32_t>> order;
    for (std::uint32_t i = 0; i < timeline.operations.size(); ++i) {
        spool_room::breathe(i);
        const Operation& operation = timeline.operations[i];
        if (hands[operation.signature]) order.emplace_back(operation.begin, operation.signature);
    }
    std::sort(order.begin(), order.end());
    std::vector<std::uint32_t> sequence;
    for (const auto& [begin, signature] : order) sequence.push_back(signature);
    const std::size_t pass = period(sequence);
    for (std::size_t i = 0; i < pass; ++i) {
        for (const Argument& argument : timeline.signatures[sequence[i]].arguments) {
            for (const Tensor& tensor : argument.tensors) parameters[argument.type] += elements(tensor);
        }
    }
    return parameters;
}

/// Counts of steps are lists too: one number a parameter, to which one is added.
bool counts_steps(const Signature& signature) {
    return signature.name.find("_foreach_add") != std::string::npos && signature.arguments.size() >= 2 &&
           signature.arguments[1].type == "Scalar" && signature.arguments[1].value == "1";
}

void fill_empty_lists(Timeline& timeline) {
    const Votes parameters = parameters_of(timeline);
    if (parameters.empty()) return;
    const std::string type = winner(parameters);
    double all = 0.0;
    for (const auto& [name, count] : parameters) all += count;
    bool told = false;
    for (Signature& signature : timeline.signatures) {
        if (!of_an_optimizer(signature.name)) continue;
        for (Argument& argument : signature.arguments) {
            if (argument.type != "TensorList" || argument.is_list) continue;
            // One call for each type of parameter, so each has its share.
            constexpr double most = 1e15;  // whatever a hostile file says
            const double share = std::min(all / static_cast<double>(parameters.size()), most);
            const double numbers = counts_steps(signature) ? 1.0 : share;
            argument.is_list = true;
            argument.type = type;
            argument.tensors.assign(1, {{static_cast<std::int64_t>(numbers)}, {}});
            told = true;
        }
    }
    if (!told) return;
    timeline.notes.push_back(
        fmt::format("lists of more than 30 tensors come without shapes: those of the optimizer are taken to hold the "
                    "{:.4g} million "
                    "parameters that a backward pass made gradients for",
                    all / 1e6));
}

}  // namespace

void tell_lists(Timeline& timeline) {
    std::map<Sizes, Votes> seen;
    std::map<Sizes, Votes> gradients;
    for (const Signature& signature : timeline.signatures) {
        auto& table = hands_over_gradient(signature.name) ? gradients : seen;
        for (const Argument& argument : signature.arguments) {
            if (argument.is_list || argument.tensors.size() != 1 || bytes_of_type(argument.type) == 0.0) continue;
            table[argument.tensors[0].dims][argument.type] += 1.0;
        }
    }
    for (Signature& signature : timeline.signatures) {
        for (Argument& argument : signature.arguments) {
            if (!argument.is_list || bytes_of_type(argument.type) > 0.0) continue;
            Votes votes;
            if (of_an_optimizer(signature.name)) vote(gradients, argument, votes);
            if (votes.empty()) vote(seen, argument, votes);
            if (const std::string type = winner(votes); !type.empty()) argument.type = type;
        }
    }
    fill_empty_lists(timeline);
}

}  // namespace roofline::analyze

#include "roofline/serving/mix.hpp"

#include <algorithm>
#include <cmath>

#include "roofline/core/sort.hpp"

namespace roofline::serving {
namespace {

/// Two neighbouring Fibonacci numbers: i and i x 144 mod 233 cover the square of two probabilities evenly, and each of
/// the two runs through the same 233 quantiles.
struct Lattice {
    int points = 233;
    int turn = 144;
};
constexpr Lattice coarse_lattice = {};
constexpr Lattice fine_lattice = {610, 377};

constexpr std::size_t most_shares = 1024;  // of a trace

std::vector<double> quantiles(const Lengths& lengths, int points) {
    std::vector<double> result;
    result.reserve(static_cast<std::size_t>(points));
    for (int i = 0; i < points; ++i) {
        result.push_back(lengths.mean_between(static_cast<double>(i) / points, (i + 1.0) / points));
    }
    return result;
}

}  // namespace

Request Mix::cut(Request request) const {
    if (longest_context <= 0.0 || request.prompt + request.output <= longest_context) return request;
    request.prompt = std::max(1.0, std::min(request.prompt, longest_context - 1.0));
    request.output = std::max(1.0, longest_context - request.prompt);
    return request;
}

Request Mix::draw(std::uint64_t number, Random& random) const {
    if (!trace.empty()) return cut(trace[number % trace.size()]);
    const double first = random.uniform();
    const double second = random.uniform();
    return cut({.arrival = 0.0, .prompt = prompt.quantile(first), .output = output.quantile(second)});
}

std::vector<Share> Mix::shares(bool fine) const {
    std::vector<Share> result;
    if (!trace.empty()) {
        // Of a long trace, every n-th request in the order of size, so that all sizes are met.
        std::vector<Request> sorted(trace);
        sort_stably(sorted, [](const Request& a, const Request& b) {
            return a.prompt != b.prompt ? a.prompt < b.prompt : a.output < b.output;
        });
        const std::size_t count = std::min(sorted.size(), most_shares);
        for (std::size_t i = 0; i < count; ++i) {
            const Request request = cut(sorted[(2 * i + 1) * sorted.size() / (2 * count)]);
            result.push_back({request.prompt, request.output, 1.0 / static_cast<double>(count)});
        }
        return result;
    }
    const bool one = prompt.shape == Lengths::Shape::fixed && output.shape == Lengths::Shape::fixed;
    if (one) {
        const Request request = cut({.arrival = 0.0, .prompt = prompt.quantile(0.5), .output = output.quantile(0.5)});
        return {{request.prompt, request.output, 1.0}};
    }
    const Lattice lattice = fine ? fine_lattice : coarse_lattice;
    const std::vector<double> prompts = quantiles(prompt, lattice.points);
    const std::vector<double> outputs = quantiles(output, lattice.points);
    for (int i = 0; i < lattice.points; ++i) {
        const Request request = cut({.arrival = 0.0,
                                     .prompt = prompts[static_cast<std::size_t>(i)],
                                     .output = outputs[static_cast<std::size_t>(i * lattice.turn % lattice.points)]});
        result.push_back({request.prompt, request.output, 1.0 / lattice.points});
    }
    return result;
}

}  // namespace roofline::serving

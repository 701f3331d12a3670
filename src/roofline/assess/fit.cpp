#include "roofline/assess/fit.hpp"

#include <algorithm>
#include <cmath>

namespace roofline::assess {
namespace {

using predict::max_constants;

// Below this log error rows count by their square, above it by their size: a few odd rows must not bend the rest.
constexpr double straight_from = 0.05;
constexpr double step = 1e-4;  // of the finite differences, in the logarithm of a constant
constexpr int most_rounds = 40;
constexpr double enough = 1e-4;  // a round that lowers the cost by less than this share is the last

using Vector = std::array<double, max_constants>;
using Matrix = std::array<Vector, max_constants>;

/// Pseudo-Huber loss and its weight in the normal equations.
double loss(double error) {
    const double scaled = error / straight_from;
    return straight_from * straight_from * 2.0 * (std::sqrt(1.0 + scaled * scaled) - 1.0);
}
double weight(double error) {
    const double scaled = error / straight_from;
    return 1.0 / std::sqrt(1.0 + scaled * scaled);
}

/// Solves (a + damping * diag(a)) x = b by Cholesky; false if it is not positive definite.
bool solve(const Matrix& a, const Vector& b, std::size_t size, double damping, Vector& x) {
    Matrix l{};
    for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            double sum = a[i][j] * (i == j ? 1.0 + damping : 1.0);
            for (std::size_t k = 0; k < j; ++k) sum -= l[i][k] * l[j][k];
            if (i != j) {
                l[i][j] = sum / l[j][j];
            } else {
                if (sum <= 0.0) return false;
                l[i][i] = std::sqrt(sum);
            }
        }
    }
    Vector y{};
    for (std::size_t i = 0; i < size; ++i) {
        double sum = b[i];
        for (std::size_t k = 0; k < i; ++k) sum -= l[i][k] * y[k];
        y[i] = sum / l[i][i];
    }
    for (std::size_t i = size; i-- > 0;) {
        double sum = y[i];
        for (std::size_t k = i + 1; k < size; ++k) sum -= l[k][i] * x[k];
        x[i] = sum / l[i][i];
    }
    return true;
}

class Fitting {
  public:
    Fitting(const predict::KernelClass& kernel_class, std::span<const Sample> samples, const Constants& prior,
            double pull)
        : constants_(kernel_class.constants), samples_(samples), pull_(pull) {
        for (std::size_t i = 0; i < size(); ++i) prior_[i] = std::log(clamped(i, prior[i]));
        logs_.reserve(samples.size());
        for (const Sample& sample : samples) logs_.push_back(std::log(sample.seconds));
    }

    struct Found {
        Constants constants{};
        double cost = 0.0;
    };

    Found run(const Constants& start) {
        Vector at{};
        // A constant at its bound has no slope there; a little inside it can move again.
        for (std::size_t i = 0; i < size(); ++i) {
            at[i] =
                std::clamp(std::log(start[i]), std::log(constants_[i].low * 1.1), std::log(constants_[i].high * 0.98));
        }
        double cost = measure(at, here_);
        double damping = 1e-2;
        for (int round = 0; round < most_rounds; ++round) {
            Matrix normal{};
            Vector slope{};
            linearise(at, normal, slope);
            const double before = cost;
            for (int attempt = 0; attempt < 8 && cost == before; ++attempt) {
                Vector move{};
                Vector next = at;
                const bool solved = solve(normal, slope, size(), damping, move);
                for (std::size_t i = 0; i < size(); ++i) next[i] = bounded(i, at[i] - std::clamp(move[i], -1.0, 1.0));
                const double next_cost = solved ? measure(next, next_) : cost;
                if (next_cost < cost) {
                    at = next;
                    std::swap(here_, next_);
                    cost = next_cost;
                    damping = std::max(damping * 0.3, 1e-7);
                } else {
                    damping *= 4.0;
                }
            }
            if (before - cost <= enough * before) break;
        }
        return {exponential(at), cost};
    }

  private:
    struct Place {
        std::vector<double> seconds;
        std::vector<double> errors;
    };

    std::size_t size() const { return constants_.size(); }
    double clamped(std::size_t i, double value) const {
        return std::clamp(value, constants_[i].low, constants_[i].high);
    }
    double bounded(std::size_t i, double log_value) const {
        return std::clamp(log_value, std::log(constants_[i].low), std::log(constants_[i].high));
    }
    Constants exponential(const Vector& at) const {
        Constants result{};
        for (std::size_t i = 0; i < size(); ++i) result[i] = clamped(i, std::exp(at[i]));
        return result;
    }

    void predict_all(const Vector& at, std::vector<double>& seconds) const {
        const Constants constants = exponential(at);
        const std::span<const double> used(constants.data(), size());
        seconds.resize(samples_.size());
        for (std::size_t row = 0; row < samples_.size(); ++row)
            seconds[row] = predicted_seconds(samples_[row].calls, used);
    }

    /// The cost at a place; leaves what is predicted there and its log errors.
    double measure(const Vector& at, Place& place) const {
        predict_all(at, place.seconds);
        place.errors.resize(samples_.size());
        double cost = 0.0;
        for (std::size_t row = 0; row < samples_.size(); ++row) {
            place.errors[row] = std::log(place.seconds[row]) - logs_[row];
            cost += samples_[row].weight * loss(place.errors[row]);
        }
        for (std::size_t i = 0; i < size(); ++i) cost += pull_ * pull_ * (at[i] - prior_[i]) * (at[i] - prior_[i]);
        return cost;
    }

    void linearise(const Vector& at, Matrix& normal, Vector& slope) {
        columns_.resize(size());
        for (std::size_t i = 0; i < size(); ++i) {
            Vector moved = at;
            // Inwards at the upper bound, so that the difference is one of the formula and not of the clamp.
            const double h = at[i] + step > std::log(constants_[i].high) ? -step : step;
            moved[i] += h;
            predict_all(moved, columns_[i]);
            // The slope of a logarithm needs no logarithm.
            for (std::size_t row = 0; row < samples_.size(); ++row)
                columns_[i][row] = (columns_[i][row] / here_.seconds[row] - 1.0) / h;
        }
        for (std::size_t row = 0; row < samples_.size(); ++row) {
            const double w = samples_[row].weight * weight(here_.errors[row]);
            for (std::size_t i = 0; i < size(); ++i) {
                const double weighted = w * columns_[i][row];
                slope[i] += weighted * here_.errors[row];
                for (std::size_t j = 0; j <= i; ++j) normal[i][j] += weighted * columns_[j][row];
            }
        }
        for (std::size_t i = 0; i < size(); ++i) {
            slope[i] += pull_ * pull_ * (at[i] - prior_[i]);
            normal[i][i] += pull_ * pull_ + 1e-12;
        }
    }

    std::span<const predict::Constant> constants_;
    std::span<const Sample> samples_;
    double pull_;
    Vector prior_{};
    std::vector<double> logs_;
    Place here_;
    Place next_;
    std::vector<std::vector<double>> columns_;
};

}  // namespace

double predicted_seconds(std::span<const Call> calls, std::span<const double> constants) {
    double sum = 0.0;
    for (const Call& call : calls) {
        sum += call.count * call.kernel_class->seconds(call.kernel, call.machine, constants);
    }
    return sum;
}

Constants start_of(const predict::KernelClass& kernel_class) {
    Constants start{};
    for (std::size_t i = 0; i < kernel_class.constants.size(); ++i) start[i] = kernel_class.constants[i].start;
    return start;
}

Constants fit(const predict::KernelClass& kernel_class, std::span<const Sample> samples, const Constants& prior,
              double pull, Start start) {
    if (samples.empty()) return prior;
    Fitting fitting(kernel_class, samples, prior, pull);
    const auto near = fitting.run(prior);
    if (start == Start::prior) return near.constants;
    const auto fresh = fitting.run(start_of(kernel_class));
    return fresh.cost < near.cost ? fresh.constants : near.constants;
}

}  // namespace roofline::assess

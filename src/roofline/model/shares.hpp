// Dividing heads, widths and experts over devices, with the message for what does not divide.
#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "roofline/core/problem.hpp"
#include "roofline/core/whole.hpp"

namespace roofline::model {

/// Cuts the counts of a shape one after another and remembers the first that does not go evenly.
class Shares {
  public:
    /// `amount` over `ranks`, which must go evenly.
    void even(double& amount, double ranks, std::string_view what) {
        if (ranks >= 1.0 && std::fmod(amount, ranks) == 0.0)
            amount /= ranks;
        else if (!problem_)
            problem_ = Problem{whole(amount) + " " + std::string(what) + " cannot be shared evenly by " + whole(ranks) +
                               " devices"};
    }

    /// The same for what is copied where there is not enough of it: 8 KV heads over 16 devices are one on each.
    void even_or_copied(double& amount, double ranks, std::string_view what) {
        if (ranks > amount && std::fmod(ranks, amount) == 0.0)
            amount = 1.0;
        else
            even(amount, ranks, what);
    }

    /// What was cut, if all of it could be.
    template <class Shape>
    Result<Shape> of(const Shape& cut) const {
        if (problem_) return std::unexpected(*problem_);
        return cut;
    }

    template <class Kind, class Shape>
    Result<std::shared_ptr<const Kind>> block(const Shape& cut) const {
        if (problem_) return std::unexpected(*problem_);
        return std::make_shared<const Kind>(cut);
    }

  private:
    std::optional<Problem> problem_;
};

}  // namespace roofline::model

#include "roofline/serving/limit.hpp"

namespace roofline::serving {

std::string_view name(Limit limit) {
    switch (limit) {
        case Limit::pool:
            return "memory for keys and values";
        case Limit::sequences:
            return "sequences at once";
        case Limit::step_tokens:
            return "tokens of a step";
        case Limit::users:
            return "users";
        case Limit::rate:
            return "arrivals";
    }
    return "";
}

}  // namespace roofline::serving

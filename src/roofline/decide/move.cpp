#include "roofline/decide/move.hpp"

#include <array>

namespace roofline::decide {

#define ROOFLINE_ENTRY(name) extern const Move name##_move;
#include "roofline/decide/moves.inc"
#undef ROOFLINE_ENTRY

std::span<const Move* const> moves() {
    static const auto all = std::to_array<const Move*>({
#define ROOFLINE_ENTRY(name) &name##_move,
#include "roofline/decide/moves.inc"
#undef ROOFLINE_ENTRY
    });
    return all;
}

Variant not_here(std::string name, std::string reason) {
    return {.name = std::move(name), .costs = "", .apply = [reason = std::move(reason)](Candidate&) {
                return Result<std::string>(fail(reason));
            }};
}

std::string_view name(Answers answers) {
    static constexpr std::array<std::string_view, 3> names = {"same", "rounded", "another_model"};
    return names[static_cast<std::size_t>(answers)];
}

std::string_view name(Machines machines) {
    static constexpr std::array<std::string_view, 3> names = {"same", "more", "other"};
    return names[static_cast<std::size_t>(machines)];
}

}  // namespace roofline::decide

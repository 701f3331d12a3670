// What keeps a replica from serving more.
#pragma once

#include <string_view>

namespace roofline::serving {

/// What keeps more requests from being served at once.
enum class Limit { pool, sequences, step_tokens, users, rate };
std::string_view name(Limit limit);

}  // namespace roofline::serving

// A count in words: heads, layers and devices are kept as doubles and read as whole numbers.
#pragma once

#include <string>

namespace roofline {

inline std::string whole(double count) {
    return std::to_string(static_cast<long long>(count));
}

}  // namespace roofline

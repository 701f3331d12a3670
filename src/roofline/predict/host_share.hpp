// F48: which weights may lie in the host's memory. Those of the layers: tables outside them stay where they are used.
#pragma once

#include "roofline/model/operators.hpp"

namespace roofline::predict {

inline bool may_lie_on_host(model::Role role) {
    return role != model::Role::embedding && role != model::Role::head;
}

inline double layer_weight_bytes(const model::Lowered& lowered) {
    double bytes = 0.0;
    for (const model::Operator& op : lowered.operators) {
        if (may_lie_on_host(op.role)) bytes += op.count * op.stored_bytes;
    }
    return bytes;
}

/// Bytes of the weights that are not in the device's memory.
inline double weight_bytes_on_host(const model::Lowered& lowered) {
    return lowered.host_weights > 0.0 ? lowered.host_weights * layer_weight_bytes(lowered) : 0.0;
}

}  // namespace roofline::predict

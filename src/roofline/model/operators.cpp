#include "roofline/model/operators.hpp"

#include <algorithm>
#include <cmath>

namespace roofline::model {

double Cache::bytes(double context) const {
    const double entries = std::min(std::floor(context / reach.ratio), reach.kept());
    return layers * (bytes_per_entry * entries + bytes_per_sequence);
}

ParameterCount count_parameters(const Lowered& lowered) {
    ParameterCount count;
    for (const Operator& op : lowered.operators) {
        count.total += op.count * op.parameters;
        count.stored_bytes += op.count * op.stored_bytes;
        if (op.kind == Kind::gather) {
            count.embedding += op.count * op.parameters;
        } else {
            count.active += op.count * op.active_parameters;
        }
    }
    return count;
}

double cache_bytes(const Lowered& lowered, double context) {
    double sum = 0.0;
    for (const Cache& cache : lowered.caches) sum += cache.bytes(context);
    return sum;
}

double kv_bytes_per_token(const Lowered& lowered) {
    double sum = 0.0;
    for (const Cache& cache : lowered.caches) sum += cache.layers * cache.bytes_per_entry / cache.reach.ratio;
    return sum;
}

double kv_bytes_per_token_beyond_windows(const Lowered& lowered) {
    double sum = 0.0;
    for (const Cache& cache : lowered.caches) {
        if (cache.reach.kept() == Reach::everything) sum += cache.layers * cache.bytes_per_entry / cache.reach.ratio;
    }
    return sum;
}

double state_bytes_per_sequence(const Lowered& lowered) {
    double sum = 0.0;
    for (const Cache& cache : lowered.caches) sum += cache.layers * cache.bytes_per_sequence;
    return sum;
}

}  // namespace roofline::model

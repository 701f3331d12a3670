#include "roofline/model/operators.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace roofline::model {

double Cache::bytes(double context) const {
    const double entries = std::min(std::floor(context / reach.ratio), reach.kept());
    return layers * (bytes_per_entry * entries + bytes_per_sequence);
}

void seat_draft(Lowered& lowered, const Lowered& draft, double draft_weights, double alike) {
    lowered.draft_weights = draft_weights * alike;
    for (Cache cache : draft.caches) {
        cache.name = "draft." + cache.name;
        cache.layers *= alike;
        cache.of_draft = true;
        lowered.caches.push_back(std::move(cache));
    }
}

ParameterCount count_parameters(const Lowered& lowered) {
    ParameterCount count;
    count.stored_bytes = lowered.draft_weights;
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

double active_parameters(const Lowered& lowered, ActiveCounts convention) {
    double sum = 0.0;
    bool tied = false;
    for (const Operator& op : lowered.operators) {
        if (op.role == Role::head && op.parameters < op.active_parameters) tied = true;
    }
    for (const Operator& op : lowered.operators) {
        // A tied table is one table: counted as the head that multiplies with it, not again as the embedding.
        const bool table = op.kind == Kind::gather;
        if (table && (tied || convention != ActiveCounts::everything)) continue;
        if (op.role == Role::head && convention == ActiveCounts::without_embedding_and_head) continue;
        sum += op.count * op.active_parameters;
    }
    return sum;
}

double cache_bytes(const Lowered& lowered, double context) {
    double sum = 0.0;
    for (const Cache& cache : lowered.caches) sum += cache.bytes(context);
    return sum;
}

double draft_cache_bytes(const Lowered& lowered, double context) {
    double sum = 0.0;
    for (const Cache& cache : lowered.caches) sum += cache.of_draft ? cache.bytes(context) : 0.0;
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

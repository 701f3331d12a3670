// Tasks at toy size.
#pragma once

#include "roofline/bench/task.hpp"

namespace roofline::bench::testing {

inline Task product(std::int64_t m, std::int64_t n, std::int64_t k, WeightFormat type) {
    Task task;
    task.name = "product";
    task.kind = TaskKind::product;
    task.m = m;
    task.n = n;
    task.k = k;
    task.weights = type;
    return task;
}

/// Six query heads of 64 over two of keys and values.
inline Task attention(std::int64_t batch, std::int64_t tokens, std::int64_t context, DType kv) {
    Task task;
    task.name = "core";
    task.kind = TaskKind::attention;
    task.prefill = tokens > 1;
    task.batch = batch;
    task.tokens = tokens;
    task.context = context;
    task.query_heads = 6;
    task.kv_heads = 2;
    task.head_dim = 64;
    task.kv = kv;
    return task;
}

}  // namespace roofline::bench::testing

// Attention, decode and prefill, by our own kernels and by cuDNN.
#include <algorithm>
#include <memory>
#include <optional>

#include "roofline/bench/cuda/attention.cuh"
#include "roofline/bench/cuda/cudnn.cuh"
#include "roofline/bench/cuda/foreign.cuh"
#include "roofline/bench/cuda/reference.hpp"
#include "roofline/bench/cuda/tasks.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr float query_amplitude = 4.0f;  // scores then differ enough for the softmax to matter

/// What of a cache belongs to a kv head of a sequence, up to the last key that is seen.
std::vector<std::uint8_t> seen_rows(const void* cache, const AttentionTask& task, int kv_head, int capacity, int width,
                                    int seen) {
    const std::size_t row_bytes = static_cast<std::size_t>(width) * static_cast<std::size_t>(bits(task.cache)) / 8;
    return copied(static_cast<const std::uint8_t*>(cache) +
                      static_cast<std::size_t>(kv_head) * static_cast<std::size_t>(capacity) * row_bytes,
                  static_cast<std::size_t>(seen) * row_bytes);
}

double error_of(const AttentionTask& task, const Attention& attention) {
    const auto key_dim = static_cast<std::size_t>(task.head_dim);
    const auto value_dim = static_cast<std::size_t>(task.value_dim);
    const auto output_values = static_cast<std::size_t>(task.batch) * static_cast<std::size_t>(task.tokens) *
                               static_cast<std::size_t>(task.query_heads) * value_dim;
    const auto output = copied(static_cast<const std::uint16_t*>(attention.output), output_values);
    for (const std::uint16_t value : output) {
        if ((value & 0x7F80) == 0x7F80) return 1e30;
    }
    Difference difference;
    const int queries = task.batch * task.tokens * task.query_heads;
    for (const int query : sample(queries, 6)) {
        const int head = query % task.query_heads;
        const int token = query / task.query_heads % task.tokens;
        const int sequence = query / task.query_heads / task.tokens;
        const int seen = task.context - task.tokens + token + 1;
        const int first = task.window > 0 ? std::max(0, seen - task.window) : 0;
        std::optional<double> sink;
        if (task.sinks) sink = copied(attention.sinks + head, 1).front();
        const auto row = static_cast<std::size_t>(sequence * task.tokens + token);
        const auto raw = copied(static_cast<const std::uint16_t*>(attention.queries) +
                                    row * static_cast<std::size_t>(attention.query_stride) +
                                    static_cast<std::size_t>(head) * key_dim,
                                key_dim);
        std::vector<double> values;
        for (const std::uint16_t value : raw) values.push_back(decode_bf16(value));
        const int kv_head = sequence * task.kv_heads + head / (task.query_heads / task.kv_heads);
        const auto keys = seen_rows(attention.keys, task, kv_head, attention.capacity, task.head_dim, seen);
        std::vector<double> expected;
        if (task.latent) {
            expected = attend(values, {keys, task.head_dim}, {keys, task.head_dim}, task.value_dim, seen, task.cache,
                              first, sink);
        } else {
            const auto own = seen_rows(attention.values, task, kv_head, attention.capacity, task.value_dim, seen);
            expected = attend(values, {keys, task.head_dim}, {own, task.value_dim}, task.value_dim, seen, task.cache,
                              first, sink);
        }
        for (std::size_t i = 0; i < value_dim; ++i) {
            const std::size_t at =
                (row * static_cast<std::size_t>(task.query_heads) + static_cast<std::size_t>(head)) * value_dim + i;
            difference.add(decode_bf16(output[at]), expected[i]);
        }
    }
    return difference.relative();
}

roofline_cuda_shape shape_of(const AttentionTask& task) {
    roofline_cuda_shape shape{};
    shape.kind = "attention";
    shape.weight_dtype = "bf16";
    shape.activation_dtype = "bf16";
    shape.batch = task.batch;
    shape.tokens = task.tokens;
    shape.context = task.context;
    shape.query_heads = task.query_heads;
    shape.kv_heads = task.kv_heads;
    shape.head_dim = task.head_dim;
    shape.kv_dtype = bench::name(task.cache).data();  // ends with a zero
    return shape;
}

}  // namespace

Outcome run(const Clock& clock, const AttentionTask& given, const std::string& backend, const Effort& effort) {
    const roofline_cuda_kernel* foreign = foreign_named(backend);
    if (foreign == nullptr && backend != "own" && backend != "cudnn") throw Failure{backend + " has no attention"};
    AttentionTask task = given;
    if (!task.prefill) task.tokens = 1;
    if (task.value_dim == 0) task.value_dim = task.head_dim;
    task.context = std::max(task.context, task.tokens);
    // Decoding, a token has no keys before its window to pass over.
    if (!task.prefill && task.window > 0) task.context = std::min(task.context, task.window);
    if (task.window >= task.context) task.window = 0;
    if (task.kv_heads < 1 || task.query_heads % task.kv_heads != 0) {
        throw Failure{std::to_string(task.query_heads) + " query heads cannot be shared evenly by " +
                      std::to_string(task.kv_heads) + " kv heads"};
    }
    if (task.latent && task.kv_heads != 1) throw Failure{"a latent cache has one kv head"};
    if (task.value_dim > task.head_dim) throw Failure{"values are not wider than keys"};
    const bool even = !task.latent && task.value_dim == task.head_dim;
    if (foreign != nullptr && !even) throw Failure{"plugins know heads of one width only"};
    if (foreign != nullptr && (task.window > 0 || task.sinks)) {
        throw Failure{"plugins know neither sliding windows nor sinks"};
    }
    if (task.latent && task.sinks) throw Failure{"our latent attention knows no sinks"};
    if (task.cache != Format::bf16 && task.cache != Format::fp8) throw Failure{"attention reads bf16 and fp8 caches"};

    Outcome outcome;
    const double sequences = task.batch;
    const double tokens = task.tokens;
    const int past = task.context - task.tokens;
    const auto pairs_up_to = [&](double seen) {  // of a sequence's first tokens
        const double whole = task.window > 0 ? std::min<double>(seen, task.window) : seen;
        return whole * (whole + 1.0) / 2.0 + (seen - whole) * whole;
    };
    const double pairs = pairs_up_to(task.context) - pairs_up_to(past);
    const double entries = sequences * task.kv_heads * task.context;
    const double key_bytes = entries * task.head_dim * bits(task.cache) / 8.0;
    const double value_bytes = task.latent ? 0.0 : entries * task.value_dim * bits(task.cache) / 8.0;
    const double cache_bytes = key_bytes + value_bytes;
    const int unseen = task.window > 0 ? std::max(0, past + 1 - task.window) : 0;  // keys, by any new token
    const double queries_there = sequences * tokens * task.query_heads;
    const double widths = static_cast<double>(task.head_dim) + task.value_dim;
    outcome.flops = 2.0 * sequences * task.query_heads * widths * pairs;
    outcome.bytes = cache_bytes * (task.context - unseen) / task.context + 2.0 * queries_there * widths;
    outcome.tolerance = task.prefill ? 1e-2 : 6e-3;
    // A prefill finds the keys and values where the kernels before left them; decoding finds them in memory.
    outcome.buffers = task.prefill ? 1 : rotation(static_cast<std::size_t>(cache_bytes));

    const Memory sinks(task.sinks ? static_cast<std::size_t>(task.query_heads) * sizeof(float) : 0);
    Attention attention;
    attention.batch = task.batch;
    attention.query_heads = task.query_heads;
    attention.kv_heads = task.kv_heads;
    attention.head_dim = task.head_dim;
    attention.value_dim = task.value_dim;
    attention.latent = task.latent;
    attention.tokens = task.tokens;
    attention.context = task.context;
    attention.capacity = task.context;
    attention.window = task.window;
    attention.sinks = sinks.at<float>();
    attention.query_stride = task.query_heads * task.head_dim;
    std::vector<DecodeWay> own_ways;
    std::unique_ptr<LibraryAttention> library;
    if (foreign != nullptr) {
        // asked below, when there are operands
    } else if (backend == "cudnn") {
        library = std::make_unique<LibraryAttention>(attention, task.cache);
    } else if (task.prefill) {
        if (!prefill_supported(attention, task.cache)) {
            throw Failure{
                "our prefill attention takes bf16 and heads of 64, 128 (on Hopper 256 too) or 192 with values of 128"};
        }
    } else {
        own_ways = decode_ways(attention, task.cache);
        if (own_ways.empty()) {
            throw Failure{
                "our decode attention takes heads of 64 (bf16), 128 or 256 and up to 16 query heads a kv head, or "
                "latent entries of 512 + 64 (bf16, Hopper)"};
        }
    }

    const auto key_copy = static_cast<std::size_t>(key_bytes);
    const auto value_copy = static_cast<std::size_t>(value_bytes);
    const auto count = static_cast<std::size_t>(outcome.buffers);
    const Memory keys(key_copy * count);
    const Memory values(value_copy * count);
    const Memory queries(static_cast<std::size_t>(queries_there * task.head_dim) * 2);
    const Memory output(static_cast<std::size_t>(queries_there * task.value_dim) * 2);
    const Memory parts(task.prefill ? 0 : part_bytes(attention));
    const Memory tickets(ticket_bytes());
    const auto fill = [&](const Memory& memory, Format format, float amplitude, std::uint32_t seed) {
        fill_random(memory.at(), memory.bytes() * 8 / static_cast<std::size_t>(bits(format)), format, amplitude, seed,
                    clock.stream());
    };
    fill(keys, task.cache, 1.0f, 11);
    if (!task.latent) fill(values, task.cache, 1.0f, 12);
    fill(queries, Format::bf16, query_amplitude, 13);
    if (task.sinks) fill_random(sinks.at<float>(), sinks.bytes() / sizeof(float), -2.0f, 2.0f, 14, clock.stream());
    must(cudaMemsetAsync(tickets.at(), 0, tickets.bytes(), clock.stream()), "tickets");
    attention.queries = queries.at();
    attention.output = output.at();
    attention.parts = parts.at<float>();
    attention.tickets = tickets.at<unsigned>();

    std::vector<Run> ways;
    std::vector<std::string> names;
    const auto with_buffer = [&](Attention one, int buffer) {
        one.keys = keys.at(static_cast<std::size_t>(buffer) * key_copy);
        if (!task.latent) one.values = values.at(static_cast<std::size_t>(buffer) * value_copy);
        return one;
    };
    for (int plan = 0; library != nullptr && plan < library->plans(); ++plan) {
        ways.push_back([&, plan](int buffer) { library->run(with_buffer(attention, buffer), plan, clock.stream()); });
        names.push_back("plan " + std::to_string(plan));
    }
    std::unique_ptr<ForeignRun> prepared;
    if (foreign != nullptr) {
        std::vector<roofline_cuda_operands> copies;
        for (int i = 0; i < outcome.buffers; ++i) {
            const Attention one = with_buffer(attention, i);
            copies.push_back({one.queries, nullptr, nullptr, one.keys, one.values, one.output});
        }
        clock.finish();  // it may look at the operands
        prepared = std::make_unique<ForeignRun>(*foreign, shape_of(task), std::move(copies));
        ways.push_back([&](int buffer) { prepared->launch(buffer, clock.stream()); });
        names.push_back(backend);
    }
    if (task.prefill && library == nullptr && foreign == nullptr) {
        ways.push_back([&](int buffer) { launch_prefill(with_buffer(attention, buffer), true, clock.stream()); });
        names.emplace_back(prefill_name());
    }
    for (const DecodeWay& way : own_ways) {
        ways.push_back([&](int buffer) { launch(way, with_buffer(attention, buffer), true, clock.stream()); });
        names.push_back(way.name);
    }
    std::vector<double> times;
    fastest(clock, ways, outcome.buffers, std::min(effort.seconds, 0.004), &times);
    for (std::size_t i = 0; i < names.size(); ++i) outcome.tried.push_back({names[i], times[i], {}});
    const std::size_t chosen = choose(outcome, effort.check_all, [&](std::size_t i) {
        must(cudaMemsetAsync(output.at(), 0xFF, output.bytes(), clock.stream()), "poison");
        ways[i](outcome.buffers - 1);
        clock.finish();
        return error_of(task, with_buffer(attention, outcome.buffers - 1));
    });
    outcome.timing = clock.captured(ways[chosen], outcome.buffers, effort.seconds);
    return outcome;
}

}  // namespace roofline::cuda::kernels

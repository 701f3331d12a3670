// Operators of layers with a state: a convolution, and the update of the states, which rotate through as many copies as
// the L2 cannot hold.
#include <algorithm>
#include <cmath>

#include "roofline/bench/cuda/reference.hpp"
#include "roofline/bench/cuda/state_reference.hpp"
#include "roofline/bench/cuda/states.cuh"
#include "roofline/bench/cuda/tasks.cuh"

namespace roofline::cuda::kernels {

namespace {

using Values = std::vector<double>;

Values bf16_row(const Memory& memory, std::size_t first, std::size_t count) {
    const auto raw = copied(memory.at<std::uint16_t>() + first, count);
    Values values(count);
    std::ranges::transform(raw, values.begin(), decode_bf16);
    return values;
}

Memory random_bf16(std::size_t values, float amplitude, std::uint32_t seed, const Clock& clock) {
    Memory memory(values * 2);
    fill_random(memory.at(), values, Format::bf16, amplitude, seed, clock.stream());
    return memory;
}

Memory random_floats(std::size_t values, float low, float high, std::uint32_t seed, const Clock& clock) {
    Memory memory(values * sizeof(float));
    fill_random(memory.at<float>(), values, low, high, seed, clock.stream());
    return memory;
}

Values floats_of(const Memory& memory) {
    const auto raw = copied(memory.at<float>(), memory.bytes() / sizeof(float));
    return {raw.begin(), raw.end()};
}

}  // namespace

Outcome run(const Clock& clock, const ConvolutionTask& task, const std::string& backend, const Effort& effort) {
    if (backend != "own") throw Failure{backend + " has no convolution"};
    const auto channels = static_cast<std::size_t>(task.channels);
    const auto taps = static_cast<std::size_t>(task.taps);
    const std::size_t rows = product_of({task.sequences, task.tokens});
    // A prompt begins with nothing before it, a new token behind as many as there are taps.
    const int position = task.tokens > 1 ? 0 : 2 * task.taps - 1;
    const Memory x = random_bf16(rows * channels, 2.0f, 1, clock);
    const Memory to(rows * channels * 2);
    const Memory weights = random_bf16(taps * channels, 1.0f, 2, clock);
    const Memory bias = random_bf16(channels, 1.0f, 3, clock);
    const Memory past = random_bf16(static_cast<std::size_t>(task.sequences) * taps * channels, 2.0f, 4, clock);
    must(cudaMemsetAsync(to.at(), 0xFF, to.bytes(), clock.stream()), "poison");
    const Run convolution = [&](int) {
        convolve(to.at(), x.at(), task.channels,
                 {weights.at(), bias.at(), past.at(), task.taps, task.channels, position}, task.sequences * task.tokens,
                 task.tokens, {clock.stream(), true});
    };
    Outcome outcome;
    outcome.flops = 2.0 * task.taps * static_cast<double>(rows * channels);
    outcome.bytes = 4.0 * static_cast<double>(rows * channels) + static_cast<double>(weights.bytes() + past.bytes());
    outcome.tolerance = 4e-3;
    outcome.variant = "16 bytes a thread";
    convolution(0);
    clock.finish();
    const Values tap_weights = bf16_row(weights, 0, taps * channels);
    const Values biases = bf16_row(bias, 0, channels);
    Difference difference;
    for (const int sequence : sample(task.sequences, 3)) {
        const std::size_t first = product_of({sequence, task.tokens});
        for (const int token : sample(task.tokens, 20)) {
            std::vector<Values> inputs;
            for (int oldness = task.taps - 1; oldness >= 0; --oldness) {
                const int at = token - oldness;
                if (at >= 0) {
                    inputs.push_back(bf16_row(x, (first + static_cast<std::size_t>(at)) * channels, channels));
                } else if (position + at >= 0) {
                    const auto slot = static_cast<std::size_t>(sequence * task.taps + (position + at) % task.taps);
                    inputs.push_back(bf16_row(past, slot * channels, channels));
                } else {
                    inputs.emplace_back(channels, 0.0);
                }
            }
            const Values expected = convolved(inputs, tap_weights, biases);
            const Values found = bf16_row(to, (first + static_cast<std::size_t>(token)) * channels, channels);
            for (std::size_t i = 0; i < channels; ++i) difference.add(found[i], expected[i]);
        }
        // What is kept are the last inputs.
        for (int token = std::max(0, task.tokens - task.taps); token < task.tokens; ++token) {
            const auto slot = static_cast<std::size_t>(sequence * task.taps + (position + token) % task.taps);
            const Values kept = bf16_row(past, slot * channels, channels);
            const Values given = bf16_row(x, (first + static_cast<std::size_t>(token)) * channels, channels);
            for (std::size_t i = 0; i < channels; ++i) difference.add(kept[i], given[i]);
        }
    }
    outcome.error = difference.relative();
    accept(outcome);
    outcome.timing = clock.captured(convolution, 1, effort.seconds);
    return outcome;
}

Outcome run(const Clock& clock, const StatesTask& task, const std::string& backend, const Effort& effort) {
    if (backend != "own") throw Failure{backend + " has no layers with a state"};
    const StateMixerShape& shape = task.shape;
    const std::size_t rows = product_of({task.sequences, task.tokens});
    const auto channels = static_cast<std::size_t>(shape.channels());
    const auto values = static_cast<std::size_t>(shape.values());
    const std::size_t width = channels + static_cast<std::size_t>((shape.delta ? 2 : 1) * shape.heads);
    const std::size_t padded = (width + 7) / 8 * 8;  // rows begin at 16 bytes
    const auto heads = static_cast<std::size_t>(shape.heads);
    const std::size_t of_sequence = values * static_cast<std::size_t>(shape.key_dim);
    const std::size_t numbers = static_cast<std::size_t>(task.sequences) * of_sequence;
    Outcome outcome;
    outcome.buffers = rotation(2 * numbers * sizeof(float));
    const Memory x = random_bf16(rows * padded, 2.0f, 1, clock);
    const Memory to(rows * values * 2);
    const Memory rates = random_floats(heads, 0.05f, 1.0f, 2, clock);
    const Memory skips = random_floats(heads, -1.0f, 1.0f, 3, clock);
    const Memory states = random_floats(numbers * static_cast<std::size_t>(outcome.buffers), -0.5f, 0.5f, 4, clock);
    StateRows each;
    each.rows = x.at();
    each.width = static_cast<int>(padded);
    each.heads_at = static_cast<int>(channels);
    each.rates = rates.at<float>();
    each.skips = skips.at<float>();
    each.to = to.at();
    each.sequences = task.sequences;
    each.tokens = task.tokens;
    each.heads = size_of(shape.heads);
    each.groups = size_of(shape.groups);
    each.key_dim = size_of(shape.key_dim);
    each.value_dim = size_of(shape.value_dim);
    each.delta = shape.delta;
    each.fresh = task.tokens > 1;
    const Memory chunks(chunk_bytes(each));
    each.chunks = chunks.at();
    const auto place = [&](int buffer) { return states.at<float>() + static_cast<std::size_t>(buffer) * numbers; };
    const Run update = [&](int buffer) {
        StateRows own = each;
        own.states = place(buffer);
        run_states(own, {clock.stream(), true});
    };
    const double elements = static_cast<double>(numbers) * task.tokens;
    outcome.flops =
        (shape.delta ? 7.0 : 5.0) * elements + (shape.delta ? 0.0 : 2.0 * static_cast<double>(rows * values));
    outcome.bytes =
        (each.fresh ? 4.0 : 8.0) * static_cast<double>(numbers) + 2.0 * static_cast<double>(rows * (width + values));
    outcome.tolerance = 6e-3;
    outcome.variant = chunks.bytes() > 0 ? "chunks of tokens, a block for some values of a head"
                                         : "a block for some values of a head";
    // Looked at: what comes out, and the states, of some sequences.
    const auto checked = sample(task.sequences, 3);
    std::vector<Values> before;
    for (const int sequence : checked) {
        const auto raw = copied(place(0) + static_cast<std::size_t>(sequence) * of_sequence, of_sequence);
        before.emplace_back(raw.begin(), raw.end());
        if (each.fresh) before.back().assign(of_sequence, 0.0);
    }
    must(cudaMemsetAsync(to.at(), 0xFF, to.bytes(), clock.stream()), "poison");
    update(0);
    clock.finish();
    const Values all_rates = floats_of(rates);
    const Values all_skips = floats_of(skips);
    Difference difference;
    Difference of_states;
    for (std::size_t i = 0; i < checked.size(); ++i) {
        const auto sequence = static_cast<std::size_t>(checked[i]);
        for (std::size_t row = sequence * static_cast<std::size_t>(task.tokens);
             row < (sequence + 1) * static_cast<std::size_t>(task.tokens); ++row) {
            const Values given = bf16_row(x, row * padded, padded);
            const Values expected =
                update_states(shape, given.data(), given.data() + channels, all_rates, all_skips, before[i].data());
            const Values found = bf16_row(to, row * values, values);
            for (std::size_t j = 0; j < values; ++j) difference.add(found[j], expected[j]);
        }
        const auto left = copied(place(0) + sequence * of_sequence, of_sequence);
        for (std::size_t j = 0; j < of_sequence; ++j) of_states.add(static_cast<double>(left[j]), before[i][j]);
    }
    outcome.error = std::max(difference.relative(), of_states.relative());
    accept(outcome);
    outcome.timing = clock.captured(update, outcome.buffers, effort.seconds);
    return outcome;
}

}  // namespace roofline::cuda::kernels

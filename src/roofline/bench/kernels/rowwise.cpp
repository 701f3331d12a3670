#include "roofline/bench/kernels/rowwise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "roofline/bench/kernels/best_of.hpp"
#include "roofline/bench/kernels/exponential.hpp"

namespace roofline::bench {
namespace {

constexpr std::int64_t narrowed_at_once =
    16384;  // numbers: fewer are done by one thread before others have heard of it

/// The largest of `run` numbers by size; never zero. Without its sign a number is ordered as its bits are, and of
/// integers a compiler makes vectors.
inline __attribute__((always_inline)) float largest_of(const float* from, std::int64_t run) {
    std::uint32_t most = std::bit_cast<std::uint32_t>(1e-20F);
    for (std::int64_t i = 0; i < run; ++i) most = std::max(most, std::bit_cast<std::uint32_t>(from[i]) & 0x7FFFFFFFU);
    return std::bit_cast<float>(most);
}

/// To the nearest by way of a number so large that nothing lies between whole ones: a compiler makes vectors of it.
inline __attribute__((always_inline)) std::int32_t nearest(float value) {
    return static_cast<std::int32_t>((value + 12582912.0F) - 12582912.0F);
}

/// Returns the sum of what was written.
inline __attribute__((always_inline)) std::int32_t narrow_run(const float* from, std::int8_t* to, std::int64_t run,
                                                              float& scale) {
    const float largest = largest_of(from, run);
    const float inverse = 127.0F / largest;
    std::int32_t sum = 0;
    for (std::int64_t i = 0; i < run; ++i) {
        const std::int32_t value = nearest(from[i] * inverse);
        to[i] = static_cast<std::int8_t>(value);
        sum += value;
    }
    scale = largest / 127.0F;
    return sum;
}

inline __attribute__((always_inline)) void silu_run(const float* gate, const float* up, float* y, std::int64_t run) {
    for (std::int64_t i = 0; i < run; ++i) y[i] = gate[i] / (1.0F + exponential_of_minus(gate[i])) * up[i];
}

inline __attribute__((always_inline)) void gate_run(const float* gate, const float* value, float* y, std::int64_t run) {
    for (std::int64_t i = 0; i < run; ++i) y[i] = value[i] / (1.0F + exponential_of_minus(gate[i]));
}

inline __attribute__((always_inline)) void gelu_run(const float* x, float* y, std::int64_t run) {
    constexpr float factor = 1.59576912F;  // 2 sqrt(2 / pi)
    for (std::int64_t i = 0; i < run; ++i) {
        const float twice = x[i] * (factor + factor * 0.044715F * x[i] * x[i]);
        y[i] = x[i] / (1.0F + exponential_of_minus(twice));
    }
}

/// In 16 sums, so that none waits for itself: of what `of` makes of each number.
template <class Of>
float sum_of_run(const float* from, std::int64_t run, const Of& of) {
    float sums[16] = {};
    std::int64_t at = 0;
    for (; at + 16 <= run; at += 16) {
        for (int i = 0; i < 16; ++i) sums[i] += of(from[at + i]);
    }
    float sum = 0.0F;
    for (const float one : sums) sum += one;
    for (; at < run; ++at) sum += of(from[at]);
    return sum;
}

/// What is no number is passed over. Several maxima are under way, for one alone waits for itself.
inline __attribute__((always_inline)) float largest_run(const float* from, std::int64_t run) {
    constexpr std::int64_t abreast = 64;
    float most[abreast];
    for (float& one : most) one = -std::numeric_limits<float>::infinity();
    std::int64_t at = 0;
    for (; at + abreast <= run; at += abreast) {
        for (std::int64_t i = 0; i < abreast; ++i) most[i] = from[at + i] > most[i] ? from[at + i] : most[i];
    }
    for (; at < run; ++at) most[0] = from[at] > most[0] ? from[at] : most[0];
    return *std::max_element(most, most + abreast);
}

}  // namespace

void rms_norm(const float* x, const float* gain, float* y, std::int64_t rows, std::int64_t width, Threads& threads) {
    threads.ranges(rows, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row) {
            const float* from = x + row * width;
            const float square = sum_of_run(from, width, [](float value) { return value * value; });
            const float scale = 1.0F / std::sqrt(square / static_cast<float>(width) + 1e-5F);
            for (std::int64_t i = 0; i < width; ++i) y[row * width + i] = from[i] * scale * gain[i];
        }
    });
}

void norm_runs(float* x, std::int64_t rows, std::int64_t pitch, std::int64_t count, std::int64_t width,
               Threads& threads) {
    threads.ranges(rows, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row) {
            for (std::int64_t run = 0; run < count; ++run) {
                float* values = x + row * pitch + run * width;
                float square = 0.0F;
                for (std::int64_t i = 0; i < width; ++i) square += values[i] * values[i];
                const float scale = 1.0F / std::sqrt(square / static_cast<float>(width) + 1e-5F);
                for (std::int64_t i = 0; i < width; ++i) values[i] *= scale;
            }
        }
    });
}

void layer_norm(const float* x, const float* gain, const float* bias, float* y, std::int64_t rows, std::int64_t width,
                Threads& threads) {
    threads.ranges(rows, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row) {
            const float* from = x + row * width;
            const auto count = static_cast<float>(width);
            const float mean = sum_of_run(from, width, [](float value) { return value; }) / count;
            const float square =
                sum_of_run(from, width, [mean](float value) { return (value - mean) * (value - mean); });
            const float scale = 1.0F / std::sqrt(square / count + 1e-5F);
            for (std::int64_t i = 0; i < width; ++i) y[row * width + i] = (from[i] - mean) * scale * gain[i] + bias[i];
        }
    });
}

void add_bias(float* y, const std::vector<float>& bias, std::int64_t rows, Threads& threads) {
    if (bias.empty()) return;
    threads.ranges(rows, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row) {
            float* own = y + row * static_cast<std::int64_t>(bias.size());
            for (std::size_t i = 0; i < bias.size(); ++i) own[i] += bias[i];
        }
    });
}

void add(float* stream, const float* x, std::int64_t rows, std::int64_t width, Threads& threads) {
    threads.ranges(rows * width, 4096, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) stream[i] += x[i];
    });
}

void add_two(float* stream, const float* x, const float* z, std::int64_t rows, std::int64_t width, Threads& threads) {
    threads.ranges(rows * width, 4096, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) stream[i] += x[i] + z[i];
    });
}

void silu_product(const float* gate, const float* up, float* y, std::int64_t run) {
    static const auto best = best_of<silu_run, const float*, const float*, float*, std::int64_t>();
    best(gate, up, y, run);
}

namespace {

/// `run` of two halves of each row of x, strip by strip.
template <class Run>
void by_halves(const float* x, float* y, std::int64_t rows, std::int64_t width, Threads& threads, const Run& run) {
    constexpr std::int64_t strip = 1024;
    const std::int64_t strips = (width + strip - 1) / strip;
    threads.ranges(rows * strips, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t item = first; item < last; ++item) {
            const std::int64_t begin = item % strips * strip;
            const float* half = x + item / strips * 2 * width + begin;
            run(half, half + width, y + item / strips * width + begin, std::min(strip, width - begin));
        }
    });
}

}  // namespace

void silu_multiply(const float* x, float* y, std::int64_t rows, std::int64_t width, Threads& threads) {
    by_halves(x, y, rows, width, threads, silu_product);
}

void open_gates(const float* x, float* y, std::int64_t rows, std::int64_t width, std::int64_t run, Threads& threads) {
    static const auto best = best_of<gate_run, const float*, const float*, float*, std::int64_t>();
    if (run == 1) {
        by_halves(x, y, rows, width, threads,
                  [](const float* values, const float* gates, float* to, std::int64_t count) {
                      best(gates, values, to, count);
                  });
        return;
    }
    const std::int64_t gates = width / run;
    threads.ranges(rows * gates, 16, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t item = first; item < last; ++item) {
            const float* row = x + item / gates * (width + gates);
            const std::int64_t gate = item % gates;
            const float share = 1.0F / (1.0F + std::exp(-row[width + gate]));
            for (std::int64_t i = 0; i < run; ++i) y[item * run + i] = row[gate * run + i] * share;
        }
    });
}

void multiply_rows(const RowsApart& a, const RowsApart& b, float* y, std::int64_t rows, std::int64_t width,
                   Threads& threads) {
    threads.ranges(rows, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row) {
            const float* one = a.at + row * a.pitch;
            const float* other = b.at + row * b.pitch;
            for (std::int64_t i = 0; i < width; ++i) y[row * width + i] = one[i] * other[i];
        }
    });
}

void gelu(const float* x, float* y, std::int64_t rows, std::int64_t width, Threads& threads) {
    static const auto run = best_of<gelu_run, const float*, float*, std::int64_t>();
    threads.ranges(rows * width, 1024,
                   [&](std::int64_t first, std::int64_t last) { run(x + first, y + first, last - first); });
}

void rotary_table(float* table, std::int64_t first, std::int64_t count, std::int64_t head_dim) {
    for (std::int64_t position = 0; position < count; ++position) {
        for (std::int64_t i = 0; i < head_dim / 2; ++i) {
            const double angle = static_cast<double>(first + position) *
                                 std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
            *table++ = static_cast<float>(std::cos(angle));
            *table++ = static_cast<float>(std::sin(angle));
        }
    }
}

void rotary(float* heads, const float* table, const TurnedHeads& shape, Threads& threads) {
    const std::int64_t half = shape.dim / 2;
    threads.ranges(shape.rows, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row) {
            const float* turns = table + row % shape.tokens * shape.dim;
            for (std::int64_t head = 0; head < shape.count; ++head) {
                float* low = heads + row * shape.width + head * shape.apart;
                float* high = low + half;
                for (std::int64_t i = 0; i < half; ++i) {
                    const float a = low[i];
                    const float b = high[i];
                    low[i] = a * turns[2 * i] - b * turns[2 * i + 1];
                    high[i] = b * turns[2 * i] + a * turns[2 * i + 1];
                }
            }
        }
    });
}

void rotary(float* qkv, const float* table, const QkvRows& shape, Threads& threads) {
    rotary(qkv, table,
           {.rows = shape.rows(),
            .tokens = shape.tokens,
            .count = shape.query_heads + shape.kv_heads,
            .dim = shape.head_dim,
            .apart = shape.head_dim,
            .width = shape.width()},
           threads);
}

namespace {

/// To bf16 in runs whose elements lie evenly apart, so that only places of runs have to be found.
template <class Place>
inline __attribute__((always_inline)) void write_runs(const float* from, std::int64_t count, std::int64_t run,
                                                      std::int64_t apart, const Place& place) {
    for (std::int64_t begin = 0; begin < count; begin += run) {
        Bf16* to = place(begin);
        for (std::int64_t i = 0; i < run; ++i) to[i * apart] = to_bf16(from[begin + i]);
    }
}

}  // namespace

void kv_write(const float* qkv, void* keys, void* values, std::int64_t capacity, DType kv, KvLayout layout,
              const QkvRows& shape, Threads& threads) {
    threads.ranges(shape.rows(), 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row) {
            const float* from = qkv + row * shape.width() + shape.query_heads * shape.head_dim;
            const std::int64_t position = shape.position + row % shape.tokens;
            for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
                const std::int64_t entry = (row / shape.tokens * shape.kv_heads + head) * capacity;
                for (const bool value : {false, true}) {
                    if (value && shape.latent) continue;
                    const std::int64_t d = value ? shape.values() : shape.head_dim;
                    const float* source = from + head * d + (value ? shape.kv_heads * shape.head_dim : 0);
                    void* target = value ? values : keys;
                    if (kv == DType::bf16) {
                        auto* to = static_cast<Bf16*>(target) + entry * d;
                        if (layout == KvLayout::rows)
                            write_runs(source, d, d, 1, [&](std::int64_t) { return to + position * d; });
                        else if (value)
                            write_runs(source, d, 16, together(layout),
                                       [&](std::int64_t i) { return to + value_place(layout, position, i, d); });
                        else
                            write_runs(source, d, together(layout), 1,
                                       [&](std::int64_t i) { return to + key_place(layout, position, i, d); });
                    } else {
                        std::memcpy(static_cast<float*>(target) + (entry + position) * d, source,
                                    static_cast<std::size_t>(d) * sizeof(float));
                    }
                }
            }
        }
    });
}

void take_queries(const float* qkv, float* q, const QkvRows& shape, Threads& threads) {
    const std::int64_t width = shape.query_heads * shape.head_dim;
    threads.ranges(shape.rows(), 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row)
            std::copy_n(qkv + row * shape.width(), width, q + row * width);
    });
}

void turn(const float* from, float* to, const Turned& shape, Threads& threads) {
    threads.ranges(shape.a, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
            for (std::int64_t j = 0; j < shape.b; ++j) {
                const float* source = from + (i * shape.b + j) * shape.from_pitch;
                float* target = to + (j * shape.a + i) * shape.to_pitch;
                for (std::int64_t k = 0; k < shape.width; ++k) target[k] = source[k] * shape.scale;
            }
        }
    });
}

void gather(const Bf16* table, const std::int32_t* tokens, float* y, std::int64_t rows, std::int64_t width,
            Threads& threads) {
    threads.ranges(rows, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row) {
            const Bf16* from = table + tokens[row] * width;
            for (std::int64_t i = 0; i < width; ++i) y[row * width + i] = from_bf16(from[i]);
        }
    });
}

void argmax(const float* logits, std::int32_t* best, std::int64_t rows, std::int64_t width, Threads& threads) {
    static const auto largest_of_run = best_of<largest_run, const float*, std::int64_t>();
    constexpr std::int64_t strip = 1024;
    const std::int64_t strips = (width + strip - 1) / strip;
    std::vector<float> largest(static_cast<std::size_t>(rows * strips));
    threads.ranges(rows * strips, 4, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t item = first; item < last; ++item) {
            const std::int64_t begin = item % strips * strip;
            largest[static_cast<std::size_t>(item)] =
                largest_of_run(logits + item / strips * width + begin, std::min(strip, width - begin));
        }
    });
    for (std::int64_t row = 0; row < rows; ++row) {
        const float* from = logits + row * width;
        const float* of_strip = largest.data() + row * strips;
        best[row] = 0;
        if (std::isnan(from[0])) continue;  // nothing is larger, as for std::max_element
        const float most = *std::max_element(of_strip, of_strip + strips);
        const std::int64_t begin = (std::find(of_strip, of_strip + strips, most) - of_strip) * strip;
        best[row] = static_cast<std::int32_t>(std::find(from + begin, from + width, most) - from);
    }
}

void narrow_to_bf16(const float* x, Bf16* y, std::int64_t count, Threads& threads) {
    threads.ranges(count, narrowed_at_once, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) y[i] = to_bf16(x[i]);
    });
}

void narrow_to_int8(const float* x, std::int8_t* y, float* scales, float* sums, std::int64_t count, std::int64_t run,
                    Threads& threads) {
    static const auto narrow_best = best_of<narrow_run, const float*, std::int8_t*, std::int64_t, float&>();
    const std::int64_t grain = std::max<std::int64_t>(1, narrowed_at_once / run);
    threads.ranges(count / run, grain, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t part = first; part < last; ++part) {
            const std::int32_t sum = narrow_best(x + part * run, y + part * run, run, scales[part]);
            if (sums != nullptr) sums[part] = static_cast<float>(sum);
        }
    });
}

void narrow_for_whole_bytes(const float* x, std::int8_t* y, float* scales, float* sums, std::int64_t count, int offset,
                            Threads& threads) {
    constexpr std::int64_t group = 128;
    constexpr float most = 119.0F;  // L may be larger by a sixteenth of it and a half: 126.9
    threads.ranges(count / group, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t part = first; part < last; ++part) {
            const float* from = x + part * group;
            std::int8_t* to = y + part * group;
            const float largest = largest_of(from, group);
            const float inverse = most / largest;
            std::int32_t sum = 0;
            for (std::int64_t run = 0; run < group; run += 32) {
                std::int32_t low[16];
                std::int32_t high[16];
                for (std::int64_t i = 0; i < 16; ++i) high[i] = nearest(from[run + 16 + i] * inverse);
                for (std::int64_t i = 0; i < 16; ++i)
                    low[i] = nearest(from[run + i] * inverse - static_cast<float>(high[i]) * 0.0625F);
                for (std::int64_t i = 0; i < 16; ++i) sum += 16 * low[i] + 17 * high[i];  // 16 (x_l + x_h)
                for (std::int64_t i = 0; i < 16; ++i) to[run + i] = static_cast<std::int8_t>(low[i] + offset);
                for (std::int64_t i = 0; i < 16; ++i) to[run + 16 + i] = static_cast<std::int8_t>(high[i] + offset);
            }
            scales[part] = largest / most / 16.0F;
            sums[part] = static_cast<float>(sum);
        }
    });
}

}  // namespace roofline::bench

// Activations in the type that meets weights of some type, and packed where kernels want that.
#include <algorithm>
#include <memory>

#include "roofline/bench/kernels/rowwise.hpp"
#include "roofline/bench/operands.hpp"

namespace roofline::bench {
namespace {

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

}  // namespace

void Activations::prepare(const float* x, std::span<ProductCall> calls, const ProductKernels& kernels,
                          Threads& threads) {
    if (calls.empty()) return;
    narrow(x, calls, kernels, threads);
    pack(x, calls, kernels, threads);
}

void Activations::narrow(const float* x, std::span<ProductCall> calls, const ProductKernels& kernels,
                         Threads& threads) {
    const std::int64_t k = calls.front().k;
    const WeightFormat weights = calls.front().weights.type;
    const DType type = kernels.type_of_x(weights);
    std::int64_t rows = 0;
    for (const ProductCall& call : calls) rows += call.m;
    const std::int64_t count = rows * k;
    const std::int64_t run = group_of(weights) > 0 ? group_of(weights) : k;
    narrow_.resize(size(type == DType::fp32 ? 0 : count * bits(type) / 8));
    if (type == DType::bf16) {
        narrow_to_bf16(x, reinterpret_cast<Bf16*>(narrow_.data()), count, threads);
    } else if (type == DType::int8) {
        scales_.resize(size(count / run));
        sums_.resize(size(count / run));
        auto* narrow = reinterpret_cast<std::int8_t*>(narrow_.data());
        if (weights == WeightFormat::int4 && kernels.whole_bytes != WholeBytes::no)
            narrow_for_whole_bytes(x, narrow, scales_.data(), sums_.data(), count,
                                   kernels.whole_bytes == WholeBytes::of_unsigned_x ? 128 : 0, threads);
        else
            narrow_to_int8(x, narrow, scales_.data(), sums_.data(), count, run, threads);
    }
    const auto* from = type == DType::fp32 ? reinterpret_cast<const std::byte*>(x) : narrow_.data();
    std::int64_t row = 0;
    for (ProductCall& call : calls) {
        call.x = from + row * k * bits(type) / 8;
        if (type == DType::int8) {
            call.x_scales = scales_.data() + row * (k / run);
            call.x_sums = sums_.data() + row * (k / run);
        }
        row += call.m;
    }
}

void Activations::pack(const float* x, std::span<ProductCall> calls, const ProductKernels& kernels, Threads& threads) {
    const Panels& panels = kernels.panels;
    if (panels.read == nullptr) return;
    const WeightFormat weights = calls.front().weights.type;
    const bool wide = panels.of_wide_x != nullptr && panels.of_wide_x(weights);
    const std::int64_t row_bytes = calls.front().k * bits(wide ? DType::fp32 : kernels.type_of_x(weights)) / 8;
    // Rows of all products follow each other.
    const auto* rows = wide ? reinterpret_cast<const std::byte*>(x) : static_cast<const std::byte*>(calls.front().x);
    panels_ = {0};  // where those of each product begin
    for (const ProductCall& call : calls) {
        const bool read = panels.read(weights, call.m, call.n, call.k);
        panels_.push_back(panels_.back() + (read ? (call.m + panels.rows - 1) / panels.rows : 0));
    }
    if (panels_.back() == 0) return;
    std::vector<std::int64_t> firsts;  // rows of each product
    for (std::int64_t row = 0; const ProductCall& call : calls) {
        firsts.push_back(row);
        row += call.m;
    }
    // Panels begin with a line: what few rows read of them is then half of all lines, not half of each.
    const std::int64_t panel_bytes = panels.rows * row_bytes;  // whole lines, as k is a multiple of 16
    const std::size_t bytes = size(panels_.back() * panel_bytes);
    std::size_t room = bytes + 64;
    packed_.resize(room);
    void* begin = packed_.data();
    auto* to = static_cast<std::byte*>(std::align(64, bytes, begin, room));
    threads.ranges(panels_.back(), 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t panel = first; panel < last; ++panel) {
            const auto next = std::upper_bound(panels_.begin(), panels_.end(), panel);
            const ProductCall& call = calls[size(next - panels_.begin() - 1)];
            const std::int64_t row = (panel - *(next - 1)) * panels.rows;
            panels.pack(rows + (firsts[size(next - panels_.begin() - 1)] + row) * row_bytes,
                        std::min(panels.rows, call.m - row), row_bytes, weights, to + panel * panel_bytes);
        }
    });
    for (std::size_t i = 0; i < calls.size(); ++i) {
        if (panels_[i + 1] > panels_[i]) calls[i].packed = to + panels_[i] * panel_bytes;
    }
    if (weights == WeightFormat::int4 && panels.turn_factors) turn_factors(calls, panels.rows, threads);
}

void Activations::turn_factors(std::span<ProductCall> calls, std::int64_t rows, Threads& threads) {
    const std::int64_t groups = calls.front().k / int4_group;
    const auto columns_of = [&](const ProductCall& call) { return (call.m + rows - 1) / rows * rows; };
    std::int64_t all = 0;
    for (const ProductCall& call : calls) all += columns_of(call);
    turned_.assign(size(2 * groups * all), 0.0F);
    float* turned = turned_.data();
    for (ProductCall& call : calls) {
        const std::int64_t columns = columns_of(call);
        float* scales = turned;
        float* sums = scales + groups * columns;
        threads.ranges(groups, 8, [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t column = 0; column < call.m; ++column) {
                for (std::int64_t group = first; group < last; ++group) {
                    const std::int64_t from = column * groups + group;
                    scales[group * columns + column] = call.x_scales[from];
                    sums[group * columns + column] = call.x_sums[from] * call.x_scales[from];
                }
            }
        });
        call.turned_scales = scales;
        call.turned_sums = sums;
        turned = sums + groups * columns;
    }
}

}  // namespace roofline::bench

// Our variants, those for few rows in slices of 64, and the library's algorithms, under one roof.
#include <algorithm>
#include <iterator>
#include <limits>

#include "roofline/bench/cuda/cublaslt.cuh"
#include "roofline/bench/cuda/launch.cuh"
#include "roofline/bench/cuda/ways.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr int most_rows = 64;

/// What our products need of a device and of a depth.
void need_room_for(Format weights, int k) {
    if ((weights == Format::mxfp4 || weights == Format::nvfp4) && !overlap_possible()) {
        throw Failure{"our products of " + std::string(name(weights)) + " weights need Hopper"};
    }
    if (k % product_granule(weights) == 0) return;
    throw Failure{"our product needs k to be a multiple of " + std::to_string(product_granule(weights)) +
                  ", but k is " + std::to_string(k)};
}

/// How many of `each` it takes for all.
int needed(int all, int each) {
    return (all + each - 1) / each;
}

std::vector<ProductWay> own_ways(Format weights, bool narrow_activations, int m, int n, int k) {
    need_room_for(weights, k);
    // The variants made for the fewest rows that still hold these: wider ones would only waste registers. Up to 8 rows
    // are one column of a tensor instruction, however they are put into it. Those that take rows in panels are worth a
    // try where one is not mostly empty, and where there are not more than eight, if larger ones can be had.
    auto all = product_variants(weights, narrow_activations);
    Product slice;
    slice.m = std::min(m, most_rows);
    slice.n = n;
    slice.k = k;
    int largest = 0;  // panel
    for (const auto& variant : all) largest = std::max(largest, variant.in_panels ? variant.most_rows : 0);
    std::erase_if(all,
                  [&](const ProductVariant& variant) { return variant.takes != nullptr && !variant.takes(slice); });
    const auto possible = all;
    std::erase_if(all, [&](const ProductVariant& variant) {
        if (variant.in_panels) {
            const int turns = needed(n, variant.block_rows) * needed(m, variant.most_rows);
            if (variant.cluster > 1 && turns >= multiprocessors()) return true;  // there is enough for all without
            return 4 * m <= variant.most_rows || 8 * variant.most_rows < std::min(m, 8 * largest);
        }
        if (largest > 0 && m > 2 * most_rows) return true;  // slower by a factor, and it takes long to find out
        return variant.most_rows < slice.m;
    });
    if (all.empty()) {  // rather a panel that is mostly empty than none
        std::ranges::copy_if(possible, std::back_inserter(all), &ProductVariant::in_panels);
    }
    int width = most_rows;
    for (const auto& variant : all) {
        if (!variant.in_panels) width = std::min(width, std::max(variant.most_rows, 8));
    }
    std::vector<ProductWay> ways;
    for (const auto& variant : all) {
        if (variant.most_rows > width && !variant.in_panels) continue;
        ways.push_back({variant.name,
                        [variant, narrow_activations](const Product& whole, bool overlap, cudaStream_t stream) {
                            const std::size_t x_row = static_cast<std::size_t>(whole.k) * (narrow_activations ? 1 : 2);
                            const std::size_t y_row = static_cast<std::size_t>(whole.n) * 2;
                            const int at_once = variant.in_panels ? whole.m : most_rows;
                            for (int row = 0; row < whole.m; row += at_once) {
                                Product part = whole;
                                part.m = std::min(at_once, whole.m - row);
                                if (part.x_scales != nullptr) part.x_scales += row;
                                part.x =
                                    static_cast<const std::uint8_t*>(whole.x) + static_cast<std::size_t>(row) * x_row;
                                part.y = static_cast<std::uint8_t*>(whole.y) + static_cast<std::size_t>(row) * y_row;
                                launch(variant, part, overlap, stream);
                            }
                        },
                        variant.in_panels});
    }
    return ways;
}

std::vector<ProductWay> library_ways(Format weights, bool narrow_activations, bool scaled, int m, int n, int k) {
    const auto library = std::make_shared<LibraryProduct>(weights, narrow_activations, scaled, m, n, k);
    std::vector<ProductWay> ways;
    for (int i = 0; i < library->algorithms(); ++i) {
        ways.push_back(
            {"algorithm " + std::to_string(i),
             [library, i](const Product& product, bool, cudaStream_t stream) { library->run(product, i, stream); }});
    }
    return ways;
}

}  // namespace

std::vector<RoutedVariant> routed_ways(Format weights, bool narrow_activations, RoutedProduct shape, int experts,
                                       int mean, int most) {
    need_room_for(weights, shape.k);
    auto all = routed_variants(weights, narrow_activations);
    int largest = 0;
    int enough = std::numeric_limits<int>::max();
    for (const auto& variant : all) {
        largest = std::max(largest, variant.most_rows);
        if (!variant.in_panels && variant.most_rows >= std::max(most, 8)) enough = std::min(enough, variant.most_rows);
    }
    std::erase_if(all, [&](const RoutedVariant& variant) {
        shape.most_panels = most_panels(shape.m, experts, variant.most_rows);
        return variant.takes != nullptr && !variant.takes(shape);
    });
    const auto possible = all;
    std::erase_if(all, [&](const RoutedVariant& variant) {
        const bool too_wide = variant.in_panels ? 4 * most <= variant.most_rows : variant.most_rows > enough;
        return too_wide || 4 * variant.most_rows < std::min(mean, largest);
    });
    return all.empty() ? possible : all;
}

std::vector<ProductWay> product_ways(const std::string& backend, Format weights, bool narrow_activations, int m, int n,
                                     int k) {
    if (backend == "own") return own_ways(weights, narrow_activations, m, n, k);
    if (backend == "cublaslt") {
        return library_ways(weights, narrow_activations, narrow_activations && weights == Format::fp8_block, m, n, k);
    }
    throw Failure{backend + " has no products"};
}

std::vector<ProductWay> narrowing_ways(const std::string& backend, Format weights, int m, int n, int k) {
    if (!meets_narrow_activations(weights) || !overlap_possible()) return {};
    std::vector<ProductWay> ways;
    if (backend == "own") {
        if (m < least_narrow_activations) return {};
        ways = own_ways(weights, true, m, n, k);
        // Those for few rows know no scales of activations.
        std::erase_if(ways, [](const ProductWay& way) { return !way.in_panels; });
    } else if (weights != Format::int8) {
        ways = library_ways(weights, true, true, m, n, k);
    }
    if (ways.empty()) return {};
    const auto room = std::make_shared<const NarrowRoom>(weights, m, k);
    for (ProductWay& way : ways) {
        way.name += ", narrow activations";
        way.room = room;
        way.run = [room, given = std::move(way.run)](Product product, bool overlap, cudaStream_t stream) {
            if (product.x_scales == nullptr) room->narrow(product, {stream, overlap});
            given(product, overlap, stream);
        };
    }
    return ways;
}

}  // namespace roofline::cuda::kernels

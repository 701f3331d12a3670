// Products with fp8 weights under scales of 128 x 128 and fp8 activations under scales of 128: the variants that are
// tried. (Totals beside the sums leave no room for panels of 256 activations.)
#include "roofline/bench/cuda/product_panels.cuh"

namespace roofline::cuda::kernels {

const std::vector<ProductVariant>& fp8_block_both_products() {
    static const std::vector<ProductVariant> variants = {
        panel_variant<PanelFp8BlockBoth, 4, 32, 1>("panels, 256 x 32"),
        panel_variant<PanelFp8BlockBoth, 4, 32, 1, 2>("panels, 256 x 32, 2 blocks a tile"),
        panel_variant<PanelFp8BlockBoth, 4, 32, 1, 4>("panels, 256 x 32, 4 blocks a tile"),
        panel_variant<PanelFp8BlockBoth, 4, 32, 1, 7>("panels, 256 x 32, 7 blocks a tile"),
        panel_variant<PanelFp8BlockBoth, 2, 64, 1>("panels, 128 x 64"),
        panel_variant<PanelFp8BlockBoth, 2, 64, 1, 2>("panels, 128 x 64, 2 blocks a tile"),
        panel_variant<PanelFp8BlockBoth, 2, 64, 1, 4>("panels, 128 x 64, 4 blocks a tile"),
        panel_variant<PanelFp8BlockBoth, 2, 128, 1>("panels, 128 x 128"),
        panel_variant<PanelFp8BlockBoth, 2, 128, 1, 2>("panels, 128 x 128, 2 blocks a tile"),
        panel_variant<PanelFp8BlockBoth, 2, 128, 1, 3>("panels, 128 x 128, 3 blocks a tile"),
    };
    return variants;
}

const std::vector<RoutedVariant>& fp8_block_both_routed() {
    static const std::vector<RoutedVariant> variants = {
        panel_variant<PanelFp8BlockBoth, 4, 32, 1, 1, RoutedProduct>("panels, 256 x 32"),
        panel_variant<PanelFp8BlockBoth, 2, 64, 1, 1, RoutedProduct>("panels, 128 x 64"),
        panel_variant<PanelFp8BlockBoth, 2, 128, 1, 1, RoutedProduct>("panels, 128 x 128"),
    };
    return variants;
}

}  // namespace roofline::cuda::kernels

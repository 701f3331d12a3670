// Products with int8 weights and int8 activations: the variants that are tried.
#include "roofline/bench/cuda/product_panels.cuh"

namespace roofline::cuda::kernels {

const std::vector<ProductVariant>& int8_both_products() {
    static const std::vector<ProductVariant> variants = {
        panel_variant<PanelInt8Both, 4, 32, 1>("panels, 256 x 32"),
        panel_variant<PanelInt8Both, 4, 32, 1, 2>("panels, 256 x 32, 2 blocks a tile"),
        panel_variant<PanelInt8Both, 4, 32, 1, 4>("panels, 256 x 32, 4 blocks a tile"),
        panel_variant<PanelInt8Both, 4, 32, 1, 7>("panels, 256 x 32, 7 blocks a tile"),
        panel_variant<PanelInt8Both, 4, 64, 1>("panels, 256 x 64"),
        panel_variant<PanelInt8Both, 4, 64, 1, 2>("panels, 256 x 64, 2 blocks a tile"),
        panel_variant<PanelInt8Both, 4, 64, 1, 4>("panels, 256 x 64, 4 blocks a tile"),
        panel_variant<PanelInt8Both, 4, 64, 1, 7>("panels, 256 x 64, 7 blocks a tile"),
        panel_variant<PanelInt8Both, 2, 128, 1>("panels, 128 x 128"),
        panel_variant<PanelInt8Both, 2, 128, 1, 2>("panels, 128 x 128, 2 blocks a tile"),
        panel_variant<PanelInt8Both, 2, 128, 1, 3>("panels, 128 x 128, 3 blocks a tile"),
        panel_variant<PanelInt8Both, 2, 256, 1>("panels, 128 x 256"),
    };
    return variants;
}

const std::vector<RoutedVariant>& int8_both_routed() {
    static const std::vector<RoutedVariant> variants = {
        panel_variant<PanelInt8Both, 4, 32, 1, 1, RoutedProduct>("panels, 256 x 32"),
        panel_variant<PanelInt8Both, 4, 64, 1, 1, RoutedProduct>("panels, 256 x 64"),
        panel_variant<PanelInt8Both, 2, 128, 1, 1, RoutedProduct>("panels, 128 x 128"),
        panel_variant<PanelInt8Both, 2, 256, 1, 1, RoutedProduct>("panels, 128 x 256"),
    };
    return variants;
}

}  // namespace roofline::cuda::kernels

#include "roofline/render/chart/theme.hpp"

#include <array>

namespace roofline::render::chart {

std::string_view style_sheet() {
    return R"(text{font-family:"Helvetica Neue",Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif;font-size:12px;fill:#1b1f24}
.title{font-size:19px;font-weight:bold}.subtitle{font-size:13px;fill:#57606a}.axis-name{fill:#57606a}.small{font-size:11px}.note{font-size:11px;fill:#57606a}
.strong{font-weight:bold}.soft{fill:#57606a}.inverse{fill:#fff}.on-light{fill:#1b1f24}
.paper{fill:#fff}.plot{fill:#fbfcfd}
.grid{stroke:#e3e7eb;stroke-width:1;fill:none}.grid-minor{stroke:#eff2f4;stroke-width:1;fill:none}.axis{stroke:#57606a;stroke-width:1;fill:none}
.halo{stroke:#fff;stroke-width:3.5px;stroke-linejoin:round;paint-order:stroke}
.roof{stroke:#1b1f24;stroke-width:2.2;fill:none;stroke-linejoin:round}.roof-unused{stroke:#8c959f;stroke-width:1.2}.roof-attainable{stroke-dasharray:7 4;stroke-width:1.6}
.ridge{stroke:#57606a;stroke-width:1;stroke-dasharray:2 3;fill:none}.gap{stroke:#57606a;stroke-width:1.2;stroke-dasharray:1 2.5;fill:none}.leader{stroke:#8c959f;stroke-width:.8;fill:none}
.memory-region{fill:#0072b2;fill-opacity:.07}.compute-region{fill:#d55e00;fill-opacity:.07}.memory-word{fill:#005a8c;font-weight:bold}.compute-word{fill:#a84a00;font-weight:bold}
.mark{stroke:#fff;stroke-width:1.2;fill-opacity:.88}.hollow{fill-opacity:.12;stroke-width:2}.whole{fill:none;stroke:#1b1f24;stroke-width:2}.dot{fill:#1b1f24}
.bar{stroke:#fff;stroke-width:1}.mark-line{stroke:#1b1f24;stroke-width:1.6;fill:none}.series{fill:none;stroke-width:2;stroke-linejoin:round}
.dots{fill:none;stroke-width:4.4;stroke-linecap:round;stroke-opacity:.55}.good{fill:#009e73}.bad{fill:#d55e00}.band{fill:#8c959f;fill-opacity:.16}.idle{fill:#8c959f;fill-opacity:.35}
.g-attention{fill:#0072b2}.g-ffn{fill:#d55e00}.g-moe{fill:#b5588f}.g-embedding{fill:#8a7a00}.g-head{fill:#008a64}.g-norm{fill:#e69f00}.g-communication{fill:#3fa5de}.g-other{fill:#6e7781}
.hollow.g-attention{stroke:#0072b2}.hollow.g-ffn{stroke:#d55e00}.hollow.g-moe{stroke:#b5588f}.hollow.g-embedding{stroke:#8a7a00}.hollow.g-head{stroke:#008a64}.hollow.g-norm{stroke:#c78a00}.hollow.g-communication{stroke:#3fa5de}.hollow.g-other{stroke:#6e7781}
.fill.s0{fill:#0072b2}.fill.s1{fill:#d55e00}.fill.s2{fill:#008a64}.fill.s3{fill:#b5588f}.fill.s4{fill:#e69f00}.fill.s5{fill:#3fa5de}.fill.s6{fill:#8a7a00}.fill.s7{fill:#6e7781}
.stroke.s0{stroke:#0072b2}.stroke.s1{stroke:#d55e00}.stroke.s2{stroke:#008a64}.stroke.s3{stroke:#b5588f}.stroke.s4{stroke:#e69f00}.stroke.s5{stroke:#3fa5de}.stroke.s6{stroke:#8a7a00}.stroke.s7{stroke:#6e7781}
@media screen and (prefers-color-scheme:dark){text{fill:#e6edf3}.subtitle,.axis-name,.note,.soft{fill:#9aa4af}.inverse{fill:#0d1117}.paper{fill:#0d1117}.plot{fill:#11161d}
.grid{stroke:#262d36}.grid-minor{stroke:#1a2028}.axis{stroke:#9aa4af}.halo{stroke:#11161d}.roof{stroke:#e6edf3}.roof-unused{stroke:#6e7781}.ridge,.gap{stroke:#9aa4af}.leader{stroke:#6e7781}
.memory-region{fill:#4aa8e0;fill-opacity:.1}.compute-region{fill:#f0803c;fill-opacity:.1}.memory-word{fill:#6dbcf0}.compute-word{fill:#f59a62}
.mark,.bar{stroke:#0d1117}.dots{stroke-opacity:.85}.whole{stroke:#e6edf3}.dot{fill:#e6edf3}.mark-line{stroke:#e6edf3}.good{fill:#2fc79a}.bad{fill:#f0803c}
.g-attention{fill:#4aa8e0}.g-ffn{fill:#f0803c}.g-moe{fill:#e29cc4}.g-embedding{fill:#d3c24a}.g-head{fill:#2fc79a}.g-norm{fill:#f2b632}.g-communication{fill:#8fd3fa}.g-other{fill:#9aa4af}
.hollow.g-attention{stroke:#4aa8e0}.hollow.g-ffn{stroke:#f0803c}.hollow.g-moe{stroke:#e29cc4}.hollow.g-embedding{stroke:#d3c24a}.hollow.g-head{stroke:#2fc79a}.hollow.g-norm{stroke:#f2b632}.hollow.g-communication{stroke:#8fd3fa}.hollow.g-other{stroke:#9aa4af}
.fill.s0{fill:#4aa8e0}.fill.s1{fill:#f0803c}.fill.s2{fill:#2fc79a}.fill.s3{fill:#e29cc4}.fill.s4{fill:#f2b632}.fill.s5{fill:#8fd3fa}.fill.s6{fill:#d3c24a}.fill.s7{fill:#9aa4af}
.stroke.s0{stroke:#4aa8e0}.stroke.s1{stroke:#f0803c}.stroke.s2{stroke:#2fc79a}.stroke.s3{stroke:#e29cc4}.stroke.s4{stroke:#f2b632}.stroke.s5{stroke:#8fd3fa}.stroke.s6{stroke:#d3c24a}.stroke.s7{stroke:#9aa4af}}
)";
}

std::string_view group_class(Group group) {
    static constexpr std::array<std::string_view, group_count> classes = {
        "g-attention", "g-ffn", "g-moe", "g-embedding", "g-head", "g-norm", "g-communication", "g-other"};
    return classes[index(group)];
}

std::string_view words_on(Group group) {
    return group == Group::norm || group == Group::communication ? "on-light" : "inverse";
}

std::string_view series_class(std::size_t number) {
    static constexpr std::array<std::string_view, 8> classes = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"};
    return classes[number % classes.size()];
}

}  // namespace roofline::render::chart

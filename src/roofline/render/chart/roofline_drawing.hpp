// What the parts of a roofline chart share: what is drawn, where, and which places are taken by words.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "roofline/render/chart/ceilings.hpp"
#include "roofline/render/chart/layout.hpp"
#include "roofline/render/chart/marks.hpp"
#include "roofline/render/chart/roofline.hpp"
#include "roofline/render/chart/scale.hpp"
#include "roofline/render/chart/spots.hpp"
#include "roofline/render/chart/svg.hpp"
#include "roofline/render/chart/theme.hpp"

namespace roofline::render::chart {

constexpr std::size_t most_stages = 6;    // of more, only the stages are named
constexpr std::size_t most_accounts = 2;  // likewise

/// Everything that is being drawn.
struct RooflineDrawing {
    std::span<const Account> accounts;
    const RooflineOptions& options;
    std::vector<Ceiling> ceilings;
    Spots found;
    std::vector<Spot> sums;
    Frame frame;
    std::vector<Box> taken;  // by words and legends inside the plot

    /// So many lie over each other that their sums are named and the rest is for the mouse.
    bool crowded() const { return accounts.size() > most_accounts || sums.size() > most_stages; }
    double radius_of(double share) const {
        return crowded() ? 3.0 + 9.0 * std::sqrt(share) : 4.0 + 15.0 * std::sqrt(share);
    }

    bool one_machine() const { return ceilings.size() == 1; }
    /// Of the one machine.
    Ridges ridges() const {
        return ridges_of(ceilings.front(), accounts[ceilings.front().account].device, found.spots);
    }
    std::string roof_class(std::size_t ceiling) const {
        return one_machine() ? "" : fmt::format(" stroke {}", series_class(ceiling));
    }
    std::size_t ceiling_of(std::size_t account) const {
        for (std::size_t i = 0; i < ceilings.size(); ++i) {
            if (same_machine(accounts[ceilings[i].account].device, accounts[account].device)) return i;
        }
        return 0;
    }
    void keep_free(const Box& box) { taken.push_back(box); }
    /// Of words along a slanted line: a chain of small boxes.
    void keep_free(Point from, Point along, double width, double size);
    bool is_free(Point from, Point along, double width, double size) const;
};

/// The machine: its roofs with their names, and the regions below them. Names keep off what is taken.
void draw_regions(Svg& svg, const RooflineDrawing& drawing);
void draw_roof_lines(Svg& svg, const RooflineDrawing& drawing);
void draw_slope_names(Svg& svg, RooflineDrawing& drawing);
void draw_roof_names(Svg& svg, RooflineDrawing& drawing);
void draw_ridges(Svg& svg, RooflineDrawing& drawing);

}  // namespace roofline::render::chart

// What it costs to compute prompts elsewhere: their keys and values travel to where the outputs are written.
#pragma once

#include "roofline/core/quantity.hpp"
#include "roofline/predict/report.hpp"

namespace roofline::decide {

struct Transfer {
    Bytes bytes{};      // of one prompt, that one device is sent
    Seconds seconds{};  // over the link between the two, all devices at once
    Level level = Level::network;
    bool assumed = false;  // the device states no such link
};

/// P5, between two deployments that are alike: over the link within a node where both stand in one, else the network.
Transfer transfer_of(const predict::Scenario& scenario);

}  // namespace roofline::decide

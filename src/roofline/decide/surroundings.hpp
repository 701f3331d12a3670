// What lies around the question: everything a move may reach for that the question itself does not hold. Whoever asks
// loads it; nothing here reads files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "roofline/decide/candidate.hpp"

namespace roofline::decide {

struct OtherDevice {
    Device device;
    predict::Execution execution;
};

/// The same question with one figure changed on the command line.
struct ChangedFigure {
    std::string text;  // "memory.bandwidth=2x"
    predict::Setup setup;
};

struct Surroundings {
    std::vector<OtherDevice> devices;
    std::optional<predict::Execution> engine;  // how a serving engine would run it on the same device
    std::vector<ChangedFigure> figures;
    double most_devices = 8.0;
    double node = 8.0;  // devices in a node
    Speculation speculation;
    std::shared_ptr<const predict::Setup> draft;  // what guesses; empty: nothing is known of it but its cost
    double cached_share = 0.5;                    // of the prompt, where a cache of prefixes is imagined
    std::map<std::string, double> prices;         // money per hour of a device, by its name
};

}  // namespace roofline::decide

// What a model should have done in the steps of a file: the prediction for the same batch, tokens and context on the
// same device. It lends its work to kernels whose shapes the file does not hold, and is what the real times are held
// against.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "roofline/analyze/analysis.hpp"
#include "roofline/analyze/items.hpp"
#include "roofline/analyze/steps.hpp"

namespace roofline::analyze {

/// A predicted step, its records by role: groups of layers ("layers[sliding]") are summed under one name, and so is
/// what order and repetition in a trace do not tell apart (the projections of latent attention, experts and shared
/// ones).
struct Expected {
    std::map<std::string, Record> records;
    Times times;
    double kernels = 1.0;  // of an operator's expected time: its kernels; the rest is what the step adds between them
    Seconds idle{};        // what the step adds in all
    bool known = false;
};

/// Rows that the head of each stage multiplied: all tokens of a prompt, where only the last was asked for. Zero:
/// unknown.
std::vector<double> rows_of_heads(const Items& items, const Steps& steps);

/// One per stage. Sizes the file does not tell are those of the setup's own workload; `head_rows` by stage, or empty.
Result<std::vector<Expected>> expect(const predict::Setup& setup, const Device& device,
                                     const std::vector<Stage>& stages, const std::vector<double>& head_rows);

/// Why a model cannot be what ran: its layers are not those that repeat. Empty: it can.
std::string other_model(const predict::Setup& setup, const Steps& steps);

/// Gives roles the names they have in the model, where a trace without shapes left a choice.
void rename_roles(const std::vector<Expected>& expected, Steps& steps);

/// Gives items without a formula the work that the model says their role has. How much time that explains is returned.
Seconds lend_work(const Timeline& timeline, const std::vector<Expected>& expected, const Steps& steps, Items& items);

/// Expected beside real, by role and for whole steps, the largest difference first; also written into the records.
void join(const std::vector<Expected>& expected, Analysis& analysis);

/// "layers[sliding].attention.core" -> "layers.attention.core"
std::string without_layer_group(const std::string& name);

}  // namespace roofline::analyze

// How far the closed form is from the simulation (S11): random mixes of the tests' plain roofline, and of built-in
// models on built-in devices; saturated, or at shares of capacity. Not a test: nothing is asserted here, and it takes
// minutes.
//
//   roofline_agreement roof|real [FIRST_SEED [COUNT [STAGES ...]]]    saturated: one line a mix, then a table
//   roofline_agreement rate [FIRST_SEED [COUNT [PERCENT ...]]]        at these shares of capacity, one stage
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "roofline/io/calibration_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/predict/setup.hpp"
#include "roofline/serving/deployed.hpp"
#include "roofline/serving/simulation.hpp"
#include "roofline/serving/steady.hpp"
#include "serving/random_case.hpp"

namespace {

using namespace roofline;
using serving::Load;

struct Mixed {
    std::string what;
    std::unique_ptr<serving::Replica> replica;
    serving::Policy policy;
    serving::Mix mix;
};

/// The mix and policy of a random case, on a built-in model: as many devices and stages as the seed says.
std::optional<Mixed> real_case(std::uint64_t seed, int stages) {
    testing::RandomCase plain = testing::random_case(seed, stages);
    serving::Random random(seed, 98);
    const auto pick = [&](auto values) {
        return *(values.begin() + static_cast<std::ptrdiff_t>(random.next() % values.size()));
    };
    const char* model =
        pick(std::initializer_list<const char*>{"llama-3.1-8b", "qwen3-30b-a3b", "llama-3.3-70b", "gemma-2-9b"});
    const char* device = pick(std::initializer_list<const char*>{"h100-sxm", "h200-sxm", "a100-sxm-80gb", "b200-sxm"});
    predict::Setup setup;
    const auto file = io::builtin_model(model);
    const auto found = io::builtin_device(device);
    if (!file || !found) return {};
    setup.architecture = std::make_shared<const model::Architecture>(file->architecture);
    setup.checkpoint = std::make_shared<const model::TypePlan>(file->types);
    setup.device = *found;
    setup.execution.profile = *io::builtin_profile("engine", *found);
    setup.execution.calibration = std::make_shared<const predict::Calibration>(*io::builtin_calibration(*found));
    setup.deployment().tensor = pick(std::initializer_list<double>{1, 2, 4});
    setup.deployment().pipeline = stages;
    const auto scenario = predict::realise(setup);
    if (!scenario) return {};
    auto deployed = std::make_unique<serving::Deployed>(*scenario, serving::Price::expected);
    deployed->max_sequences = plain.replica.max_sequences;
    deployed->max_step_tokens = plain.replica.max_step_tokens;
    if (random.uniform() < 0.5) plain.policy.captured = serving::usual_captured_sizes(512);
    // Half of them with a pool that is the limit.
    const double longest = plain.replica.pool_bytes / plain.replica.token_bytes;
    if (random.uniform() < 0.5)
        deployed->pool_bytes = std::min(deployed->pool_bytes, longest * deployed->sequence_bytes(4096.0) / 4096.0);
    return Mixed{fmt::format("{} {} tp{} ", model, device, setup.deployment().tensor), std::move(deployed),
                 plain.policy, plain.mix};
}

Mixed roof_case(std::uint64_t seed, int stages) {
    const testing::RandomCase plain = testing::random_case(seed, stages);
    return {fmt::format("{}B ", plain.replica.parameters / 1e9), std::make_unique<testing::RoofReplica>(plain.replica),
            plain.policy, plain.mix};
}

std::string describe(const Mixed& the) {
    double prompt = 0.0;
    double output = 0.0;
    double held = 0.0;
    double prompts = 0.0;
    double outputs = 0.0;
    for (const serving::Share& share : the.mix.shares()) {
        prompt += share.weight * share.prompt;
        output += share.weight * share.output;
        prompts += share.weight * share.prompt * share.prompt;
        outputs += share.weight * share.output * share.output;
        held += share.weight * the.replica->sequence_bytes(share.prompt + share.output);
    }
    const auto spread = [](double mean, double square) {
        return std::sqrt(std::max(0.0, square / (mean * mean) - 1.0));
    };
    return fmt::format("{}{:.0f}({:.2f})+{:.0f}({:.2f}) {} pool {:.1f} slots {:.0f} budget {:.0f}{}{}{}", the.what,
                       prompt, spread(prompt, prompts), output, spread(output, outputs),
                       the.policy.admission == serving::Admission::reserving ? "reserving" : "optimistic",
                       the.replica->pool_bytes / held, the.replica->max_sequences, the.replica->max_step_tokens,
                       the.policy.speculation.tokens > 0.0 ? " spec" : "",
                       the.policy.prefix.hit_rate > 0.0 ? " hit" : "", the.policy.captured.empty() ? "" : " graphs");
}

/// Standard deviation of outputs over their mean.
double spread_of_outputs(const serving::Mix& mix) {
    double mean = 0.0;
    double square = 0.0;
    for (const serving::Share& share : mix.shares()) {
        mean += share.weight * share.output;
        square += share.weight * share.output * share.output;
    }
    return std::sqrt(std::max(0.0, square / (mean * mean) - 1.0));
}

/// Requests that are all alike stay as the start has spread them, and a long tail needs many: several starts, each for
/// at least 20 generations of requests, and for up to ten times as many where outputs differ.
std::optional<serving::Flow> mean_of_simulations(const Mixed& the, double running) {
    constexpr int starts = 5;
    const double spread = spread_of_outputs(the.mix);
    const double requests = std::max(2000.0, 20.0 * running) * (1.0 + 9.0 * std::min(1.0, spread * spread));
    serving::Flow mean;
    for (int start = 1; start <= starts; ++start) {
        const auto outcome = serving::simulate(*the.replica, the.policy, the.mix, Load::saturated(),
                                               {.seed = static_cast<std::uint64_t>(start), .requests = requests});
        if (!outcome) return {};
        for (double serving::Flow::* number :
             {&serving::Flow::output_tokens, &serving::Flow::prompt_tokens, &serving::Flow::computed_tokens,
              &serving::Flow::decoding, &serving::Flow::step_seconds, &serving::Flow::preemptions})
            mean.*number += outcome->flow.*number / starts;
    }
    return mean;
}

struct Errors {
    std::vector<double> signed_ones;
    void print(const std::string& name) {
        if (signed_ones.empty()) return;
        const auto by_size = [](double a, double b) { return std::abs(a) < std::abs(b); };
        std::sort(signed_ones.begin(), signed_ones.end(), by_size);
        const auto at = [&](double part) {
            return signed_ones[static_cast<std::size_t>(part * (static_cast<double>(signed_ones.size()) - 1.0))];
        };
        fmt::print("| {} | {} | {:.1f}% | {:.1f}% | {:.1f}% | {:+.1f}% |\n", name, signed_ones.size(),
                   100.0 * std::abs(at(0.5)), 100.0 * std::abs(at(0.9)), 100.0 * std::abs(at(0.99)),
                   100.0 * signed_ones.back());
    }
};

/// Times to the first token and between tokens at a rate, over those of a simulation that is long enough to be steady.
void at_rates(std::uint64_t first, int count, const std::vector<int>& percents) {
    constexpr double requests = 20000.0;
    std::vector<std::pair<int, std::vector<double>>> first_tokens;
    std::vector<std::pair<int, std::vector<double>>> further;
    for (const int percent : percents) {
        first_tokens.push_back({percent, {}});
        further.push_back({percent, {}});
    }
    for (int i = 0; i < count; ++i) {
        const Mixed the = roof_case(first + static_cast<std::uint64_t>(i), 1);
        const auto full = serving::steady(*the.replica, the.policy, the.mix, Load::saturated());
        if (!full) continue;
        const auto crowd = serving::simulate(*the.replica, the.policy, the.mix, Load::saturated(),
                                             {.seed = 7, .requests = std::max(2000.0, 20.0 * full->running)});
        if (!crowd) continue;
        for (std::size_t k = 0; k < percents.size(); ++k) {
            const Load load = Load::rate(percents[k] / 100.0 * full->capacity);
            const auto state = serving::steady(*the.replica, the.policy, the.mix, load);
            const auto outcome =
                serving::simulate(*the.replica, the.policy, the.mix, load, {.seed = 7, .requests = requests});
            if (!state || !outcome) continue;
            fmt::print("{:3}% seed {} [{}] {} | capacity {:+.1f}%", percents[k], first + static_cast<std::uint64_t>(i),
                       name(full->limit), describe(the), 100.0 * (full->capacity / crowd->flow.requests - 1.0));
            if (outcome->overloaded || !outcome->ttft || !outcome->itl) {
                fmt::print(" overloaded\n");
                continue;
            }
            const double ttft = state->ttft / outcome->ttft->mean - 1.0;
            const double itl = outcome->itl->mean > 0.0 ? state->itl / outcome->itl->mean - 1.0 : 0.0;
            fmt::print(" ttft {:+.1f}% ({:.4f}/{:.4f} s, wait {:.4f}/{:.4f}) itl {:+.1f}%\n", 100.0 * ttft, state->ttft,
                       outcome->ttft->mean, state->wait, outcome->wait->mean, 100.0 * itl);
            std::fflush(stdout);
            first_tokens[k].second.push_back(ttft);
            further[k].second.push_back(itl);
        }
    }
    const auto print = [](const char* what, std::vector<std::pair<int, std::vector<double>>>& all) {
        for (auto& [percent, errors] : all) {
            if (errors.empty()) continue;
            std::sort(errors.begin(), errors.end());
            const auto at = [&](double part) {
                return 100.0 * errors[static_cast<std::size_t>(part * (static_cast<double>(errors.size()) - 1.0))];
            };
            fmt::print("{} at {}%: {} mixes, 10% {:+.1f}%  half {:+.1f}%  90% {:+.1f}%\n", what, percent, errors.size(),
                       at(0.1), at(0.5), at(0.9));
        }
    };
    fmt::print("\n");
    print("first token", first_tokens);
    print("between tokens", further);
}

}  // namespace

int main(int argc, char** argv) {
    const bool real = argc > 1 && std::string(argv[1]) == "real";
    const std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000;
    const int count = argc > 3 ? std::atoi(argv[3]) : 200;
    std::vector<int> all_stages;
    for (int i = 4; i < argc; ++i) all_stages.push_back(std::atoi(argv[i]));
    if (argc > 1 && std::string(argv[1]) == "rate") {
        if (all_stages.empty()) all_stages = {20, 50, 80, 90};
        at_rates(first, count, all_stages);
        return 0;
    }
    if (all_stages.empty()) all_stages = {1, 2, 4, 8};
    std::vector<std::pair<std::string, Errors>> table;
    const auto enter = [&](const std::string& name, double error) {
        for (auto& [known, errors] : table)
            if (known == name) return errors.signed_ones.push_back(error);
        table.push_back({name, {{error}}});
    };
    for (const int stages : all_stages) {
        for (int i = 0; i < count; ++i) {
            const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
            std::optional<Mixed> the = real ? real_case(seed, stages) : roof_case(seed, stages);
            if (!the) continue;
            const auto state = serving::steady(*the->replica, the->policy, the->mix, Load::saturated());
            if (!state) continue;  // the longest request does not fit
            const std::optional<serving::Flow> simulated = mean_of_simulations(*the, state->running);
            if (!simulated) continue;
            const serving::Flow& a = state->flow;
            const serving::Flow& b = *simulated;
            const double error = a.output_tokens / b.output_tokens - 1.0;
            const std::string limit(name(state->limit));
            fmt::print(
                "{:+6.1f}% seed {} pp{} [{}] {} | decoding {:.2f}/{:.2f} step {:.3f}/{:.3f} ms computed {:.3f}/{:.3f} "
                "of "
                "fresh, preempted {:.2f}/{:.2f} running {:.1f}\n",
                100.0 * error, seed, stages, limit, describe(*the), a.decoding, b.decoding, 1e3 * a.step_seconds,
                1e3 * b.step_seconds, a.computed_tokens / std::max(a.prompt_tokens, 1e-9),
                b.computed_tokens / std::max(b.prompt_tokens, 1e-9), a.preemptions, b.preemptions, state->running);
            std::fflush(stdout);
            enter(fmt::format("{}{}", stages, real ? ", built-in models" : ""), error);
            enter(fmt::format("{}, {}", stages, limit), error);
            enter(fmt::format("{}, {} ({})", stages, limit,
                              the->policy.admission == serving::Admission::reserving ? "reserving" : "optimistic"),
                  error);
        }
    }
    fmt::print(
        "\n| stages | mixes | half within | 9 of 10 within | 99 of 100 within | worst |\n|---|---|---|---|---|---|\n");
    for (auto& [name, errors] : table) errors.print(name);
}

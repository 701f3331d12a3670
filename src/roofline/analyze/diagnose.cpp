#include "roofline/analyze/diagnose.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <optional>

#include <fmt/format.h>

#include "roofline/analyze/text.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::analyze {
namespace {

/// A finding that could win less than this of a step is not worth a line.
constexpr double worth_saying = 0.02;

class Stage {
  public:
    Stage(const AccountStage& stage, const WhereTimeWent& went, const Analysis& analysis, std::vector<Diagnosis>& found)
        : stage_(stage),
          went_(went),
          analysis_(analysis),
          found_(found),
          wall_(stage.times.measured.value_or(Seconds{})) {}

    void diagnose() {
        if (wall_.value <= 0.0) return;
        launches();
        host();
        communication();
        copies();
        if (!analysis_.device_known) return;
        small_kernels();
        mixers();
        gathered_experts();
        unpacking();
        optimizer();
        attention();
        cache_copies();
        split_projections();
        head();
        odd_widths();
        projected_again();
        weights();
    }

  private:
    double share(Seconds part) const { return part / wall_; }
    std::string of_wall(Seconds part) const { return render::percent(share(part)); }

    void say(std::string words, std::string evidence, std::string move, std::string advice, Seconds saved) {
        if (share(saved) < worth_saying) return;
        Diagnosis diagnosis;
        diagnosis.stage = stage_.name;
        diagnosis.words = std::move(words);
        diagnosis.evidence = std::move(evidence);
        diagnosis.move = std::move(move);
        diagnosis.saved = saved;
        diagnosis.gain = wall_ > saved ? wall_ / (wall_ - saved) : 0.0;
        diagnosis.advice = fmt::format(
            "{}: at most {:.2f}x, {} of {} a step{}", advice, diagnosis.gain, render::time(saved), render::time(wall_),
            diagnosis.move.empty() ? "" : fmt::format(" (move {} of advise)", diagnosis.move));
        found_.push_back(std::move(diagnosis));
    }

    /// Of a step, on average.
    double kernels() const {
        double of_steps = 0.0;
        double steps = 0.0;
        for (const StepTime& step : analysis_.steps) {
            if (step.stage != stage_.name) continue;
            of_steps += step.kernels;
            steps += 1.0;
        }
        if (steps > 0.0) return std::round(of_steps / steps);
        double sum = 0.0;
        for (const StreamTime& stream : analysis_.streams) sum += stream.kernels;
        return sum;
    }

    bool in_graph() const {
        for (const StepTime& step : analysis_.steps) {
            if (step.stage == stage_.name) return step.graph_kernels * 2.0 > step.kernels;
        }
        return false;
    }

    void launches() {
        if (share(went_.idle_launch) < 0.1) return;
        const double count = kernels();
        const Seconds busy = wall_ - went_.idle;
        if (in_graph()) {
            say(fmt::format("{} waits for its graph: {} of the time before and between launches", stage_.name,
                            of_wall(went_.idle_launch)),
                fmt::format("{} of {} a step the device was idle and the host had not asked for what came next",
                            render::time(went_.idle_launch), render::time(wall_)),
                "", "prepare inputs on the device and launch the next graph while this one runs", went_.idle_launch);
            return;
        }
        say(fmt::format("{} is launch-bound: {} of the time passes between {} kernels of {} on average", stage_.name,
                        of_wall(went_.idle_launch), counted(count),
                        render::time(count > 0.0 ? busy / count : Seconds{})),
            fmt::format(
                "the device was idle {} of {} a step and the host had not asked for the next kernel yet in {} of that",
                render::time(went_.idle), render::time(wall_), render::time(went_.idle_launch)),
            "launch", "capture the step in a CUDA graph or let a compiler fuse it", went_.idle_launch);
    }

    void host() {
        if (share(went_.idle_host) < 0.05) return;
        say(fmt::format("{} waits for the host: {} of the time in pauses of more than a millisecond", stage_.name,
                        of_wall(went_.idle_host)),
            fmt::format("{} a step with an idle device while the host did something else: {}, the profiler itself",
                        render::time(went_.idle_host),
                        stage_.name.starts_with("train") ? "loading data, reading back a loss or a norm"
                                                         : "sampling on the host, copies back, tokenising"),
            "", "keep the loop on the device, or prepare the next step while this one runs", went_.idle_host);
    }

    void communication() {
        if (share(went_.communicating) < 0.03) return;
        say(fmt::format("{} waits for other devices: {} of the time in collectives that nothing hides", stage_.name,
                        of_wall(went_.communicating)),
            fmt::format("{} exposed, {} hidden behind kernels", render::time(went_.communicating),
                        render::time(went_.hidden_communication)),
            "overlap", "let communication run beside computing, or cut the model less", went_.communicating);
    }

    void copies() {
        if (share(went_.copying) < 0.03) return;
        say(fmt::format("{} spends {} of the time in copies alone", stage_.name, of_wall(went_.copying)),
            fmt::format("{} a step in which nothing but copies ran", render::time(went_.copying)), "",
            "copy from pinned memory on a stream of its own while kernels run, or keep the data on the device",
            went_.copying);
    }

    struct Sum {
        Seconds time{};
        Seconds attainable{};
        double count = 0.0;
        Bytes memory{};
        Bytes chip{};
        void add(const Record& record) {
            time += record.times.measured.value_or(Seconds{});
            attainable += record.times.attainable;
            count += record.count;
            memory += record.work.at(Level::memory);
            chip += record.work.at(Level::cache);
        }
        Seconds headroom() const { return time > attainable ? time - attainable : Seconds{}; }
    };

    template <class Wanted>
    Sum sum(const Wanted& wanted) const {
        Sum result;
        for (const Record& record : stage_.records) {
            if (record.kind != Kind::idle && record.kind != Kind::unattributed && wanted(record)) result.add(record);
        }
        return result;
    }

    void small_kernels() {
        const auto small = sum([](const Record& record) {
            return record.name.starts_with("layers.") &&
                   (record.kind == Kind::elementwise || record.kind == Kind::norm || record.kind == Kind::copy) &&
                   record.name != "layers.attention.kv_write" && record.name != "layers.attention.expand" &&
                   record.name != "layers.attention.mixer" && !record.name.ends_with(".unpack");
        });
        if (analysis_.layers <= 0.0 || small.count < 4.0 * analysis_.layers) return;
        say(fmt::format("{}: {} goes into {} element-wise kernels, {} in every layer", stage_.name, of_wall(small.time),
                        counted(small.count), counted(small.count / analysis_.layers)),
            fmt::format("they take {} and, reading and writing once what they do, could take {}",
                        render::time(small.time), render::time(small.attainable)),
            "launch",
            "fuse norms, rotary positions, activations and residuals (torch.compile, or an engine's own kernels)",
            small.headroom());
    }

    /// State-space models and linear attention as modules do them without their kernels.
    void mixers() {
        const auto mixer = sum([](const Record& record) { return record.name == "layers.attention.mixer"; });
        if (analysis_.layers <= 0.0 || mixer.count < 8.0 * analysis_.layers) return;
        say(fmt::format("{}: {} goes into {} kernels that mix tokens one operator at a time", stage_.name,
                        of_wall(mixer.time), counted(mixer.count)),
            fmt::format("they move {}; {} of that is what the device needs for so many bytes",
                        render::bytes(mixer.memory + mixer.chip), render::time(mixer.attainable)),
            "launch", "kernels for convolution and scan (causal-conv1d, mamba-ssm, flash-linear-attention)",
            mixer.headroom());
    }

    /// Weights of experts that are picked out of their tensor, one matrix for every row, to be multiplied as one batch.
    void gathered_experts() {
        Sum gathers;
        for (const AccountStage& stage : analysis_.by_operator) {
            if (stage.name != stage_.name) continue;
            for (const Record& record : stage.records) {
                const std::size_t end = record.name.find(']');
                const bool matrices =
                    std::count(record.name.begin(),
                               record.name.begin() + static_cast<std::ptrdiff_t>(end == std::string::npos ? 0 : end),
                               'x') == 3;  // "index [ExAxB"
                if (record.group == Group::moe && record.kind == Kind::gather && matrices &&
                    record.name.starts_with("aten::index ["))
                    gathers.add(record);
            }
        }
        say(fmt::format("{}: the weights of chosen experts are copied before the product", stage_.name),
            fmt::format("{} gathers move {} in {}", counted(gathers.count),
                        render::bytes(gathers.memory + gathers.chip), render::time(gathers.time)),
            "",
            "a grouped product, which reads them where they lie (experts_implementation=\"grouped_mm\", or an engine's "
            "fused experts)",
            gathers.time);
    }

    /// Weights in few bits that are written out whole, step after step, for a product that takes no other.
    void unpacking() {
        const auto unpack = sum([](const Record& record) { return record.name.ends_with(".unpack"); });
        if (unpack.count <= 0.0) return;
        say(fmt::format("{}: packed weights are made whole before each product", stage_.name),
            fmt::format("{} kernels a step take {} and move {}", counted(unpack.count), render::time(unpack.time),
                        render::bytes(unpack.memory + unpack.chip)),
            "", "a product that reads weights as they are packed, or weights kept whole where they fit", unpack.time);
    }

    /// Bytes of the operators of this stage whose names hold one of these words.
    Bytes moved_by(std::initializer_list<const char*> words) const {
        Bytes sum{};
        for (const AccountStage& stage : analysis_.by_operator) {
            if (stage.name != stage_.name) continue;
            for (const Record& record : stage.records) {
                const bool named = std::any_of(words.begin(), words.end(), [&](const char* word) {
                    return record.name.find(word) != std::string::npos;
                });
                if (named) sum += record.work.at(Level::memory) + record.work.at(Level::cache);
            }
        }
        return sum;
    }

    /// Adam operator by operator: each passes over lists as long as the parameters. The quotient reads three and writes
    /// one; all that must be done is to read parameters, gradients and two moments, and to write all but the gradients.
    void optimizer() {
        const auto steps = sum([](const Record& record) { return record.name == "optimizer"; });
        const Bytes list = moved_by({"addcdiv"}) / 4.0;
        const Bytes all = steps.memory + steps.chip;
        const Bytes once = list * 7.0;
        if (list.value <= 0.0 || all < once * 1.5) return;
        say(fmt::format("{}: the optimizer takes {} of the time, operator by operator", stage_.name,
                        of_wall(steps.time)),
            fmt::format("{} passes over lists of {}, where 7 do: parameters, gradients and moments read, all but the "
                        "gradients written",
                        counted(all / list), render::bytes(list)),
            "", "one kernel for all of it (fused=True), or compile its step", steps.time * (1.0 - once / all));
    }

    void attention() {
        const auto core = sum([](const Record& record) { return record.name == "layers.attention.core"; });
        const auto expand = sum([](const Record& record) { return record.name == "layers.attention.expand"; });
        if (expand.time.value > 0.0) {
            say(fmt::format("{}: keys and values are expanded to all heads before the product", stage_.name),
                fmt::format("{} copies a step move {} to write what grouped-query attention would share",
                            counted(expand.count), render::bytes(expand.memory + expand.chip)),
                "attention_kernel", "an attention kernel that knows about groups of heads", expand.time);
        }
        if (core.time.value <= 0.0 || core.attainable / core.time > 0.5) return;
        say(fmt::format("{}: attention runs at {} of what the device can do", stage_.name,
                        render::percent(core.attainable / core.time)),
            fmt::format("{} cores take {} a step; their keys, values and scores need {}", counted(core.count),
                        render::time(core.time), render::time(core.attainable)),
            "attention_kernel",
            stage_.name.starts_with("decode") ? "a kernel that splits the context over the device (flash decoding)"
                                              : "a flash attention kernel for this head size",
            core.headroom());
    }

    void cache_copies() {
        const auto write = sum([](const Record& record) { return record.name == "layers.attention.kv_write"; });
        if (!stage_.name.starts_with("decode") || write.time.value <= 0.0) return;
        Bytes kv{};
        for (const Record& record : stage_.records) {
            if (record.name == "layers.attention.core") kv += record.kv;
        }
        const Bytes moved = write.memory + write.chip;
        if (kv.value <= 0.0 || moved < kv) return;
        say(fmt::format("{}: the cache is copied whole to append one token", stage_.name),
            fmt::format("{} moved a step, for a cache of {}", render::bytes(moved), render::bytes(kv)),
            "attention_kernel", "a cache of fixed size or in pages, written in place", write.time);
    }

    void split_projections() {
        for (const Record& record : stage_.records) {
            if (record.name != "layers.attention.qkv" || record.kind != Kind::gemm || analysis_.layers <= 0.0) continue;
            const double each = record.count / analysis_.layers;
            const Seconds time = record.times.measured.value_or(Seconds{});
            if (each < 2.0 || time.value <= 0.0 || record.times.attainable / time > 0.6) continue;
            say(fmt::format("{}: the projections of attention are {} products a layer, at {} of what the device can do",
                            stage_.name, counted(each), render::percent(record.times.attainable / time)),
                fmt::format("{} of {} each; together they read {}", counted(record.count),
                            render::time(time / record.count), render::bytes(record.work.at(Level::memory))),
                "launch", "one product for queries, keys and values (engines do this)", time - record.times.attainable);
        }
    }

    /// A product whose rows are more than what the step needs of it: what it takes with those alone, at least.
    struct Rows {
        double there = 0.0;
        Seconds time{};
        Seconds needed{};
    };
    std::optional<Rows> rows_of(const char* name, double needed) const {
        const Figure* bandwidth = analysis_.account.device.bandwidth(Level::memory);
        for (const Record& record : stage_.records) {
            if (record.name != name || record.kind != Kind::gemm || record.weights.value <= 0.0) continue;
            // F1: two FLOPs for each weight and row.
            const double numbers = record.weights.value / (bits(record.work.type) / 8.0);
            Rows rows{record.work.flops.value / (2.0 * numbers), record.times.measured.value_or(Seconds{}), {}};
            if (bandwidth == nullptr || needed <= 0.0 || rows.there < 2.0 * needed) continue;
            rows.needed = std::max(rows.time * (needed / rows.there), Seconds(record.weights.value / bandwidth->value));
            if (rows.needed < rows.time) return rows;
        }
        return std::nullopt;
    }

    /// Logits of every prompt token, where only the last of each sequence is needed to go on.
    void head() {
        if (!stage_.name.starts_with("prefill")) return;
        const auto rows = rows_of("head", stage_.batch);
        if (!rows) return;
        say(fmt::format("{}: the head is computed for every prompt token", stage_.name),
            fmt::format("{:.0f} rows of logits, of which {:.0f} choose the next token; {}, {} of the step", rows->there,
                        stage_.batch, render::time(rows->time), of_wall(rows->time)),
            "", "compute logits of the last position only (logits_to_keep=1; engines do)", rows->time - rows->needed);
    }

    /// Tensor cores are fed 16 bytes at a time: rows of a matrix that do not begin there take other, slower kernels.
    /// The width is the last number of an operator's name: "aten::mm [8x1280] [1280x50257]".
    void odd_widths() {
        Sum odd;
        std::string widest;
        for (const AccountStage& stage : analysis_.by_operator) {
            if (stage.name != stage_.name) continue;
            for (const Record& record : stage.records) {
                const std::size_t x = record.name.rfind('x');
                if (record.kind != Kind::gemm || x == std::string::npos || !record.name.ends_with(']')) continue;
                const auto width = std::strtol(record.name.c_str() + x + 1, nullptr, 10);
                const long together = std::lround(128.0 / bits(record.work.type));
                const Seconds time = record.times.measured.value_or(Seconds{});
                if (width < 1024 || width % together == 0 || record.times.attainable > time * 0.5) continue;
                if (odd.count == 0.0)
                    widest =
                        fmt::format("{} is no multiple of {}", render::grouped(static_cast<double>(width)), together);
                odd.add(record);
            }
        }
        if (odd.count == 0.0) return;
        say(fmt::format("{}: a product of odd width runs at {} of what the device can do", stage_.name,
                        render::percent(odd.attainable / odd.time)),
            fmt::format("{}, so its rows do not begin at 16 bytes; {} a step", widest, render::time(odd.time)), "",
            "pad the matrix (a vocabulary: to a multiple of 64)", odd.headroom());
    }

    /// Latent attention as plain modules do it: keys and values of the whole cache are made anew for every token.
    void projected_again() {
        if (!stage_.name.starts_with("decode")) return;
        const auto rows = rows_of("layers.attention.qkv", stage_.batch);
        if (!rows) return;
        say(fmt::format("{}: keys and values of the whole cache are projected again", stage_.name),
            fmt::format("the projections of attention see {:.0f} rows on average, of which {:.0f} are new; {} a step",
                        rows->there, stage_.batch, render::time(rows->time)),
            "attention_kernel",
            "fold the up-projection of keys and values into queries and output (absorbed latent "
            "attention)",
            rows->time - rows->needed);
    }

    /// What remains when nothing is wasted: the weights themselves.
    void weights() {
        if (!stage_.name.starts_with("decode")) return;
        Bytes read{};
        for (const Record& record : stage_.records) read += record.weights;
        const Figure* bandwidth = analysis_.account.device.bandwidth(Level::memory);
        if (bandwidth == nullptr || read.value <= 0.0) return;
        const Seconds time(read.value / bandwidth->value);
        if (share(time) < 0.3) return;
        say(fmt::format("{} is held by its weights: reading them takes {} of the time", stage_.name, of_wall(time)),
            fmt::format("{} a step at {}/s is {}", render::bytes(read), render::bytes(Bytes(bandwidth->value)),
                        render::time(time)),
            "quantise_weights", "weights of half the width (or a larger batch, which shares them)", time * 0.5);
    }

    const AccountStage& stage_;
    const WhereTimeWent& went_;
    const Analysis& analysis_;
    std::vector<Diagnosis>& found_;
    Seconds wall_;
};

}  // namespace

std::vector<Diagnosis> diagnose(const Analysis& analysis) {
    std::vector<Diagnosis> found;
    for (std::size_t i = 0; i < std::min(analysis.account.stages.size(), analysis.time_went.size()); ++i) {
        if (analysis.account.stages[i].name == "outside steps") continue;
        Stage(analysis.account.stages[i], analysis.time_went[i], analysis, found).diagnose();
    }
    // By what they would save of the whole run: a step that repeats counts as often.
    const auto weight = [&](const Diagnosis& diagnosis) {
        for (const AccountStage& stage : analysis.account.stages) {
            if (stage.name == diagnosis.stage) return diagnosis.saved.value * stage.repetitions;
        }
        return diagnosis.saved.value;
    };
    std::stable_sort(found.begin(), found.end(),
                     [&](const Diagnosis& a, const Diagnosis& b) { return weight(a) > weight(b); });
    if (found.size() > 8) found.resize(8);
    return found;
}

}  // namespace roofline::analyze

#include "roofline/predict/remedies.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "roofline/predict/fit.hpp"
#include "roofline/predict/host_share.hpp"

namespace roofline::predict {
namespace {

using Kind = Remedy::Kind;

// Formats people reach for, with the scales they carry: fp8 with one scale a channel, int4 with a 16-bit scale and a
// zero point for 128 weights.
struct WeightFormat {
    std::string_view name;
    double bits;
};
constexpr std::array weight_formats = {WeightFormat{"fp8", 8.0}, WeightFormat{"int4", 4.15625}};
constexpr std::array kv_formats = {WeightFormat{"fp8", 8.0}, WeightFormat{"int4", 4.0}};
constexpr double most_devices = 1024.0;
constexpr double highest_utilisation = 0.98;  // beyond, nothing is left for what no trial run sees

bool is_layer_matrix(const model::Operator& op) {
    switch (op.role) {
        case model::Role::embedding:
        case model::Role::position:
        case model::Role::head:
        case model::Role::norm:
        case model::Role::router:
        case model::Role::mixer_state:
        case model::Role::other:
            return false;
        default:
            return op.kind == roofline::Kind::gemm;
    }
}

/// 131072 -> "131,072"
std::string whole(double value) {
    std::string digits = std::to_string(static_cast<long long>(value));
    for (std::size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, ",");
    return digits;
}

class Search {
  public:
    explicit Search(const FitQuestion& question) : question_(question), now_(answer(question.lowered)) {}

    bool fits(const model::Lowered& lowered, double ranks = 0.0) const { return answer(lowered, ranks).fits; }

    void add(Kind kind, std::string change, double value, bool approximate = false) {
        Remedy remedy;
        remedy.kind = kind;
        remedy.change = std::move(change);
        remedy.value = value;
        remedy.approximate = approximate;
        found_.push_back(std::move(remedy));
    }

    void fewer() {
        if (now_.largest_batch && *now_.largest_batch >= 1.0 && *now_.largest_batch < question_.workload.batch)
            add(Kind::batch, "a batch of " + whole(*now_.largest_batch * question_.shared_by),
                *now_.largest_batch * question_.shared_by);
        if (now_.longest_context && *now_.longest_context >= 1.0)
            add(Kind::context, "a context of " + whole(*now_.longest_context), *now_.longest_context);
    }

    /// An engine's own settings: a larger share of the device, and a trial run with fewer sequences.
    void settings() {
        if (!now_.engine) return;
        std::optional<MemoryOptions> other = question_.options;
        for (double percent = std::ceil(100.0 * now_.engine->utilisation + 0.5); percent <= 100.0 * highest_utilisation;
             percent += 1.0) {
            other->utilisation = percent / 100.0;
            if (!asked(question_.lowered, other).fits) continue;
            const std::string text = "0." + whole(percent);
            add(Kind::utilisation, "a memory utilisation of " + text, *other->utilisation);
            break;
        }
        other = question_.options;
        double sequences = 1.0;
        while (sequences < question_.workload.batch) sequences *= 2.0;
        for (double most = now_.engine->sequences / 2.0; most >= sequences; most /= 2.0) {
            other->sequences = std::floor(most);
            if (!asked(question_.lowered, other).fits) continue;
            add(Kind::sequences, "at most " + whole(*other->sequences) + " sequences at once", *other->sequences);
            break;
        }
    }

    void formats(std::span<const Candidate> candidates) {
        for (const WeightFormat& format : weight_formats) {
            if (given(candidates, Kind::weights)) break;
            const model::Lowered narrow = with_weight_bits(question_.lowered, format.bits);
            const double saved = bytes_of(question_.lowered) - bytes_of(narrow);
            if (saved > 0.0 && fits(narrow))
                add(Kind::weights, "weights in " + std::string(format.name), format.bits, true);
        }
        for (const WeightFormat& format : kv_formats) {
            if (given(candidates, Kind::kv) || question_.kv_bits <= format.bits) continue;
            if (fits(with_kv_bits(question_.lowered, question_.kv_bits, format.bits)))
                add(Kind::kv, "a KV cache in " + std::string(format.name), format.bits);
        }
        bool enough_devices = false;
        for (const Candidate& candidate : candidates) {
            const bool more = candidate.kind == Kind::devices;
            if ((more && enough_devices) || !fits(candidate.lowered, candidate.ranks)) continue;
            add(candidate.kind, candidate.change, candidate.value);
            enough_devices = enough_devices || more;
        }
    }

    void devices(std::span<const Candidate> candidates) {
        if (given(candidates, Kind::devices)) return;
        const double together = question_.options ? question_.options->ranks : 1.0;
        for (double more = 2.0; more * question_.ranks <= most_devices; more *= 2.0) {
            if (!fits(shared_out(question_.lowered, more), more * together)) continue;
            const double all = more * question_.ranks;
            add(Kind::devices, whole(all) + " devices that share every layer", all, true);
            break;
        }
    }

    /// What is missing stays in the host's memory and comes over its link in every step. Of a mixture of experts less
    /// may have to come: this is the most.
    void offload() {
        const double missing = now_.shortfall().value;
        const Figure* link = question_.device.bandwidth(Level::host);
        const auto offer = [&](Kind kind, std::string change, double there) {
            if (there < missing || missing <= 0.0) return;
            add(kind, std::move(change), missing, true);
            found_.back().moved = Bytes(missing);
            if (link != nullptr) found_.back().added = Bytes(missing) / BytesPerSecond(link->value);
        };
        // As --offload-weights and --offload-kv take it: the share of all, in hundredths and enough.
        const auto share = [&](double there, double all) {
            const double hundredths = std::min(std::ceil(100.0 * (there + missing) / all), 100.0);
            const std::string digits = whole(hundredths);
            return hundredths == 100.0 ? std::string("1") : (hundredths < 10.0 ? "0.0" : "0.") + digits;
        };
        const double weights = layer_weight_bytes(question_.lowered);
        const double on_host = weight_bytes_on_host(question_.lowered);
        offer(Kind::offload_weights, "weights on the host (--offload-weights " + share(on_host, weights) + ")",
              weights - on_host);
        const double here = 1.0 - question_.lowered.host_kv;
        const double cache = here > 0.0 ? now_.kv.value / here : 0.0;
        offer(Kind::offload_kv, "KV cache on the host (--offload-kv " + share(cache - now_.kv.value, cache) + ")",
              now_.kv.value);
    }

    std::vector<Remedy> found() && { return std::move(found_); }
    const Fit& now() const { return now_; }

  private:
    static bool given(std::span<const Candidate> candidates, Kind kind) {
        return std::any_of(candidates.begin(), candidates.end(),
                           [&](const Candidate& candidate) { return candidate.kind == kind; });
    }
    static double bytes_of(const model::Lowered& lowered) { return model::count_parameters(lowered).stored_bytes; }

    Fit asked(const model::Lowered& lowered, const std::optional<MemoryOptions>& options) const {
        return fit(lowered, question_.device, question_.workload, question_.longest_known, options);
    }
    Fit answer(const model::Lowered& lowered, double ranks = 0.0) const {
        std::optional<MemoryOptions> options = question_.options;
        if (options && ranks > 0.0) options->ranks = ranks;
        return asked(lowered, options);
    }

    const FitQuestion& question_;
    Fit now_;
    std::vector<Remedy> found_;
};

}  // namespace

std::string_view name(Remedy::Kind kind) {
    static constexpr std::array<std::string_view, 10> names = {
        "weights",     "kv",      "batch",           "context",    "sequences",
        "utilisation", "devices", "offload_weights", "offload_kv", "other"};
    return names[static_cast<std::size_t>(kind)];
}

model::Lowered with_weight_bits(const model::Lowered& lowered, double bits) {
    model::Lowered narrow = lowered;
    for (model::Operator& op : narrow.operators) {
        if (is_layer_matrix(op)) op.stored_bytes = std::min(op.stored_bytes, op.parameters * bits / 8.0);
    }
    return narrow;
}

model::Lowered with_kv_bits(const model::Lowered& lowered, double from, double to) {
    model::Lowered narrow = lowered;
    for (model::Cache& cache : narrow.caches) cache.bytes_per_entry *= to / from;
    return narrow;
}

model::Lowered shared_out(const model::Lowered& lowered, double ranks) {
    model::Lowered part = lowered;
    double kv_heads = 0.0;
    for (model::Operator& op : part.operators) {
        if (op.kind == roofline::Kind::gemm || op.kind == roofline::Kind::gather) {
            op.stored_bytes /= ranks;
            op.parameters /= ranks;
        }
        // Of an expert every rank has a part of the width.
        if (op.role == model::Role::expert_gate_up) op.extent.cols /= ranks;
        if (op.role == model::Role::expert_down) op.extent.inner /= ranks;
        kv_heads = std::max(kv_heads, op.extent.kv_heads);
    }
    for (model::Cache& cache : part.caches) {
        // A latent entry serves all heads, so every rank keeps it whole.
        cache.bytes_per_entry /= std::max(std::min(ranks, kv_heads), 1.0);
        cache.bytes_per_sequence /= ranks;
    }
    part.widest_activation /= ranks;
    part.draft_weights /= ranks;
    return part;
}

std::vector<Remedy> what_would_fit(const FitQuestion& question, std::span<const Candidate> candidates) {
    Search search(question);
    if (search.now().fits) return {};
    search.settings();
    search.formats(candidates);
    search.fewer();
    search.devices(candidates);
    search.offload();
    return std::move(search).found();
}

}  // namespace roofline::predict

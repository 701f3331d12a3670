#include "roofline/analyze/borrow.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "roofline/analyze/counters.hpp"
#include "roofline/analyze/expect.hpp"
#include "roofline/analyze/stages.hpp"

namespace roofline::analyze {
namespace {

/// Share of the kernel time of a step that shapes explain.
double explained(const Items& items, const Step& step) {
    double all = 0.0;
    double known = 0.0;
    for (const std::uint32_t i : step.items) {
        spool_room::breathe(i);
        const Item& item = items.all[i];
        if (item.ran != Ran::kernel) continue;
        all += static_cast<double>(item.time);
        known += item.effort == none ? 0.0 : static_cast<double>(item.time);
    }
    return all > 0.0 ? known / all : 0.0;
}

/// From the step that lends to the one that borrows.
struct Change {
    double batch = 0.0;  // sequences, and so tokens of the borrower
    double tokens = 0.0;
    double queries = 0.0;  // per sequence, of the lender
    double keys = 1.0;     // of the borrower over those of the lender
    double share() const { return batch / tokens; }
};

/// What even routing touches of `experts` when `rows` meet one each.
double touched(double experts, double rows) {
    double missed = 1.0;
    for (double row = 0.0; row < rows && missed > 1e-9; row += 1.0) missed *= 1.0 - 1.0 / experts;
    return experts * (1.0 - missed);
}

/// One call of the lender as the borrower would make it.
Effort changed(const Timeline& timeline, const Item& item, const Effort& from, const std::string& role,
               const Change& change) {
    Effort effort = from;
    if (role == "layers.attention.core") {
        const double factor = change.keys / change.queries;
        // A causal mask took away pairs of the prompt; a single query sees all keys.
        double pairs = 1.0;
        if (from.attention && from.attention->causal && from.attention->queries <= from.attention->keys) {
            const double all = from.attention->queries * from.attention->keys;
            pairs = all / (all - from.attention->queries * (from.attention->queries - 1.0) / 2.0);
        }
        effort.flops *= factor * pairs;
        effort.kv *= change.keys;
        effort.activations *= from.attention ? 1.0 / change.queries : factor;
        return effort;
    }
    if (role == "layers.attention.expand") {
        effort.activations *= change.keys;
        return effort;
    }
    // The head may have seen the last token of each sequence only: as many rows as it has in a decode.
    if (from.product && from.product->rows == change.batch && from.weights > 0.0) return effort;
    effort.flops *= change.share();
    effort.activations *= change.share();
    if (from.looks_up_rows) effort.weights *= change.share();
    const Signature* signature = item.signature == none ? nullptr : &timeline.signatures[item.signature];
    const bool grouped = signature != nullptr && sort_of_operator(signature->name) == Piece::Sort::grouped;
    if (grouped && from.product && signature->arguments.size() > 1 && !signature->arguments[1].tensors.empty()) {
        const auto& dims = signature->arguments[1].tensors[0].dims;
        const double experts = dims.size() == 3 ? static_cast<double>(dims[0]) : 0.0;
        if (experts >= 1.0)
            effort.weights *=
                touched(experts, from.product->rows * change.share()) / touched(experts, from.product->rows);
    }
    return effort;
}

Expected lent_by(const Timeline& timeline, const Items& items, const Steps& steps, const Step& lender,
                 const Change& change) {
    Expected expected;
    std::map<std::string, double> most_flops;
    for (const std::uint32_t i : lender.items) {
        spool_room::breathe(i);
        const Item& item = items.all[i];
        const Effort* from = items.effort(item);
        if (from == nullptr || item.role == none) continue;
        const std::string& role = steps.roles[item.role];
        const Effort effort = changed(timeline, item, *from, role, change);
        Record& record = expected.records[role];
        record.name = role;
        const auto [place, fresh] = most_flops.try_emplace(role, -1.0);
        if (effort.flops > place->second) {
            place->second = effort.flops;
            record.kind = effort.kind;
            record.work.engine = effort.engine;
            record.work.type = effort.type;
        }
        record.work.flops += Flops(effort.flops);
        record.work.at(Level::memory) += Bytes(effort.weights + effort.kv + effort.activations);
        record.work.at(Level::peer) += Bytes(effort.link);
        record.weights += Bytes(effort.weights);
        record.kv += Bytes(effort.kv);
    }
    expected.known = !expected.records.empty();
    return expected;
}

/// The step that can lend: the nearest before the borrower of which most has shapes, a decode rather than a prompt.
const Step* lender_before(const Items& items, const Steps& steps, std::uint32_t borrower) {
    for (const char* kind : {"decode", "prefill"}) {
        for (std::uint32_t i = borrower; i-- > 0;) {
            const Step& step = steps.all[i];
            if (step.kind == kind && step.batch > 0.0 && step.tokens > 0.0 && step.layers > 0.0 &&
                explained(items, step) > 0.5)
                return &step;
        }
    }
    return nullptr;
}

/// Room for more keys than there were tokens, or decodes that all see as many: a cache of fixed size, which is read as
/// it is.
bool fixed_cache(const Steps& steps, const Step& lender, double queries) {
    if (lender.kind == "prefill") return lender.context > queries;
    const std::vector<std::uint32_t>& like = steps.stages[lender.stage].steps;
    return like.size() > 1 && std::all_of(like.begin(), like.end(),
                                          [&](std::uint32_t i) { return steps.all[i].context == lender.context; });
}

/// What a kernel does, by a name that does not change with the number of rows: products of any shape are alike, and
/// PyTorch's element-wise kernels are what their functor is, however they walk through memory.
class KernelNames {
  public:
    explicit KernelNames(const Timeline& timeline) : timeline_(timeline) {}

    struct Kind {
        std::uint32_t number = 0;
        bool works = false;  // multiplies: it carries the work of an operator that took several kernels
        bool tail = false;   // the second kernel of what came before it
    };
    const Kind& of(std::uint32_t name) {
        const auto [place, fresh] = known_.try_emplace(name);
        if (!fresh) return place->second;
        using Sort = Piece::Sort;
        const std::string& text = timeline_.texts[name];
        const Sort sort = sort_of_kernel(text);
        std::string spoken = spoken_by_sort(sort);
        if (spoken.empty()) {
            spoken = spoken_kernel_name(text);
            const std::size_t functor = spoken.find('(');
            if (functor != std::string::npos) spoken.erase(0, functor);
        }
        place->second.number = numbers_.try_emplace(spoken, static_cast<std::uint32_t>(numbers_.size())).first->second;
        place->second.works = spoken == "product" || spoken == "attention";
        place->second.tail = sort == Sort::tail;
        return place->second;
    }

  private:
    /// Kernels whose names follow the sizes they were written for.
    static std::string spoken_by_sort(Piece::Sort sort) {
        switch (sort) {
            case Piece::Sort::product:
            case Piece::Sort::grouped:
            case Piece::Sort::batched:
                return "product";
            case Piece::Sort::attention:
                return "attention";
            case Piece::Sort::softmax:
                return "softmax";
            case Piece::Sort::embedding:
                return "embedding";
            case Piece::Sort::concatenate:
                return "concatenate";
            case Piece::Sort::norm:
                return "norm";
            case Piece::Sort::choose:
                return "choose";
            default:
                return {};
        }
    }

    const Timeline& timeline_;
    std::unordered_map<std::uint32_t, Kind> known_;
    std::map<std::string, std::uint32_t> numbers_;
};

/// The kernels of a step in the order they ran.
struct Sequence {
    std::vector<std::uint32_t> items;  // of each kernel
    std::vector<std::uint32_t> kinds;
    std::vector<bool> carries;  // the work of its item: the first that multiplies, or the first
};

Sequence kernels_of(const Timeline& timeline, const Items& items, const Step& step, KernelNames& names) {
    std::vector<std::uint32_t> order = step.items;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return items.all[a].begin < items.all[b].begin; });
    Sequence sequence;
    for (const std::uint32_t i : order) {
        const Item& item = items.all[i];
        if (item.ran != Ran::kernel || item.last == none) continue;
        const std::size_t first = sequence.items.size();
        std::size_t carrier = first;
        bool works = false;
        for (const std::uint32_t event : items.events(item)) {
            const KernelNames::Kind& kind = names.of(timeline.ran[event].name);
            if (kind.tail) continue;
            if (kind.works && !works) carrier = sequence.items.size();
            works = works || kind.works;
            sequence.items.push_back(i);
            sequence.kinds.push_back(kind.number);
            sequence.carries.push_back(false);
        }
        if (sequence.items.size() > first) sequence.carries[carrier] = true;
    }
    return sequence;
}

/// For each of `b` its partner in `a`, or none: the longest common subsequence. Empty where that would be too much
/// work.
std::vector<std::uint32_t> aligned(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
    constexpr std::size_t most = 6000;
    if (a.size() > most || b.size() > most) return {};
    const std::size_t width = b.size() + 1;
    std::vector<std::uint16_t> length((a.size() + 1) * width, 0);  // of what is left from here on
    for (std::size_t i = a.size(); i-- > 0;) {
        for (std::size_t k = b.size(); k-- > 0;) {
            length[i * width + k] = a[i] == b[k] ? static_cast<std::uint16_t>(length[(i + 1) * width + k + 1] + 1)
                                                 : std::max(length[(i + 1) * width + k], length[i * width + k + 1]);
        }
    }
    std::vector<std::uint32_t> partner(b.size(), none);
    for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
        if (a[i] == b[k]) {
            partner[k++] = static_cast<std::uint32_t>(i++);
        } else if (length[(i + 1) * width + k] >= length[i * width + k + 1]) {
            ++i;
        } else {
            ++k;
        }
    }
    return partner;
}

/// One without a partner is taken as the nearest of its kind, where there is one: a mask or a turn that one of the two
/// steps needs more often.
void find_substitutes(const Sequence& from, const Sequence& to, std::vector<std::uint32_t>& partner) {
    std::map<std::uint32_t, std::vector<std::uint32_t>> places;  // by kind
    for (std::uint32_t i = 0; i < from.kinds.size(); ++i) {
        if (from.carries[i]) places[from.kinds[i]].push_back(i);
    }
    std::uint32_t at = 0;
    for (std::size_t k = 0; k < to.kinds.size(); ++k) {
        if (partner[k] != none) {
            at = partner[k];
            continue;
        }
        const auto found = places.find(to.kinds[k]);
        if (found == places.end()) continue;
        const auto after = std::lower_bound(found->second.begin(), found->second.end(), at);
        if (after == found->second.end() || (after != found->second.begin() && *after - at > at - *(after - 1))) {
            partner[k] = *(after - 1);
        } else {
            partner[k] = *after;
        }
    }
}

/// Kernel by kernel. Nothing where the two did not run the same ones: then less than four fifths of
/// them, or of their time, have a partner.
Seconds lend_kernels(const Timeline& timeline, Items& items, Steps& steps, const Stage& stage, const Step& lender,
                     const Change& change) {
    KernelNames names(timeline);
    const Sequence from = kernels_of(timeline, items, lender, names);
    std::map<std::uint32_t, std::uint32_t> lent;  // efforts, by item of the lender
    Effort nothing;
    nothing.estimated = true;
    const auto empty = static_cast<std::uint32_t>(items.efforts.size());
    std::int64_t time = 0;
    std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>> alignments;  // by kinds: replays are alike
    for (const std::uint32_t number : stage.steps) {
        Step& step = steps.all[number];
        const Sequence to = kernels_of(timeline, items, step, names);
        constexpr std::size_t most_alignments = 16;
        auto known = alignments.find(to.kinds);
        if (known == alignments.end()) {
            if (alignments.size() == most_alignments) continue;
            known = alignments.emplace(to.kinds, aligned(from.kinds, to.kinds)).first;
        }
        const std::vector<std::uint32_t>& partner = known->second;
        std::int64_t all = 0;
        std::int64_t matched = 0;
        std::size_t alike = 0;
        for (std::size_t k = 0; k < to.items.size(); ++k) {
            all += items.all[to.items[k]].time;
            if (partner.empty() || partner[k] == none) continue;
            matched += items.all[to.items[k]].time;
            ++alike;
        }
        if (5 * matched < 4 * all || 5 * alike < 4 * to.items.size() || all == 0)
            return Seconds(static_cast<double>(time) * 1e-9);
        std::vector<std::uint32_t> giver_of = partner;
        find_substitutes(from, to, giver_of);
        if (items.efforts.size() == empty) items.efforts.push_back(nothing);
        step.layers = lender.layers;
        step.experts = lender.experts;
        std::uint32_t role = none;
        for (std::size_t k = 0; k < to.items.size(); ++k) {
            if (giver_of[k] == none || items.all[to.items[k]].effort != none) continue;
            const Item& giver = items.all[from.items[giver_of[k]]];
            if (giver.effort == none) continue;
            std::uint32_t effort = empty;
            if (from.carries[giver_of[k]]) {
                const auto [place, fresh] = lent.try_emplace(from.items[giver_of[k]], none);
                if (fresh) {
                    place->second = static_cast<std::uint32_t>(items.efforts.size());
                    const std::string role_name = giver.role == none ? "" : steps.roles[giver.role];
                    Effort one = changed(timeline, giver, items.efforts[giver.effort], role_name, change);
                    one.estimated = true;
                    items.efforts.push_back(one);
                }
                effort = place->second;
            }
            Item& taker = items.all[to.items[k]];
            taker.effort = effort;
            taker.role = giver.role;
            taker.inferred = true;
            time += taker.time;
        }
        // What only adds up what a product left in pieces belongs to it.
        for (const std::uint32_t i : step.items) {
            Item& item = items.all[i];
            if (item.effort != none && item.role != none) role = item.role;
            if (item.effort != none || item.ran != Ran::kernel || item.last == none || role == none) continue;
            if (!names.of(timeline.ran[items.first_event(item)].name).tail) continue;
            item.effort = empty;
            item.role = role;
            item.inferred = true;
            time += item.time;
        }
    }
    return Seconds(static_cast<double>(time) * 1e-9);
}

}  // namespace

Seconds borrow_from_prompts(const Timeline& timeline, Items& items, Steps& steps) {
    Seconds lent{};
    std::vector<Expected> by_role(steps.stages.size());
    for (std::size_t s = 0; s < steps.stages.size(); ++s) {
        Stage& stage = steps.stages[s];
        if (stage.kind != "decode" || stage.steps.empty()) continue;
        const Step& first = steps.all[stage.steps.front()];
        if (explained(items, first) > 0.5) continue;
        const Step* lender = lender_before(items, steps, stage.steps.front());
        if (lender == nullptr) continue;
        const bool same_layers = first.layers == 0.0 || first.layers == lender->layers;
        Change change;
        change.batch = lender->batch;
        change.tokens = lender->tokens;
        change.queries = std::max(1.0, lender->tokens / lender->batch);
        const bool fixed = fixed_cache(steps, *lender, change.queries);
        double context = 0.0;
        for (std::size_t i = 0; i < stage.steps.size(); ++i)
            context += fixed ? lender->context : lender->context + static_cast<double>(i + 1);
        context /= static_cast<double>(stage.steps.size());
        if (lender->context > 0.0) change.keys = context / lender->context;
        const Seconds kernel_by_kernel = lend_kernels(timeline, items, steps, stage, *lender, change);
        lent += kernel_by_kernel;
        // As many layers, or it is not the model that was read before.
        if (kernel_by_kernel.value == 0.0 && same_layers) by_role[s] = lent_by(timeline, items, steps, *lender, change);
        if (kernel_by_kernel.value == 0.0 && !by_role[s].known) continue;
        for (std::size_t i = 0; i < stage.steps.size(); ++i) {
            Step& step = steps.all[stage.steps[i]];
            step.batch = step.tokens = lender->batch;
            step.context = fixed ? lender->context : lender->context + static_cast<double>(i + 1);
        }
        stage.batch = stage.tokens = lender->batch;
        stage.context = context;
    }
    if (!steps.all.empty()) steps.layers = repeated_layers(steps.all);
    return lent + lend_work(timeline, by_role, steps, items);
}

}  // namespace roofline::analyze

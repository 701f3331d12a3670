#include "roofline/analyze/items.hpp"

#include <algorithm>
#include <unordered_map>

#include "roofline/analyze/json_scan.hpp"
#include "roofline/analyze/likely.hpp"

namespace roofline::analyze {
namespace {

/// The operator that explains a kernel: the innermost with a formula around it. An operator around others that were
/// counted by themselves would count their work twice, so it explains nothing more.
class Explanations {
  public:
    Explanations(const Timeline& timeline, const Items& items)
        : timeline_(timeline), items_(items), covered_(timeline.operations.size(), false) {
        for (const DeviceEvent& event : timeline.ran) {
            if (event.operation == none || event.in_graph || !explains(event.operation)) continue;
            for (std::uint32_t op = timeline.operations[event.operation].parent; op != none && !covered_[op];
                 op = timeline.operations[op].parent)
                covered_[op] = true;
        }
    }

    std::uint32_t find(std::uint32_t operation) const {
        if (explains(operation)) return effort(operation).looks_up_rows ? lookup_around(operation) : operation;
        for (std::uint32_t op = timeline_.operations[operation].parent; op != none;
             op = timeline_.operations[op].parent) {
            if (explains(op) && (!covered_[op] || effort(op).own_kernels)) return op;
            if (covered_[op]) return none;
        }
        return none;
    }

    /// The innermost operator around a kernel that has tensors, where none with a formula is there: one may guess what
    /// it did. One around others that were counted by themselves would count their work twice.
    template <class HasTensors>
    std::uint32_t guess(std::uint32_t operation, const HasTensors& has_tensors) const {
        for (std::uint32_t op = operation; op != none; op = timeline_.operations[op].parent) {
            // It started the kernel itself, whatever else was started within.
            if ((op == operation || !covered_[op]) && has_tensors(timeline_.operations[op].signature)) return op;
            if (covered_[op]) return none;
        }
        return none;
    }

  private:
    const Effort& effort(std::uint32_t op) const {
        return items_.efforts[items_.effort_of[timeline_.operations[op].signature]];
    }
    /// An embedding calls others to pick its rows; it is the one that says what they are.
    std::uint32_t lookup_around(std::uint32_t operation) const {
        std::uint32_t outermost = operation;
        for (std::uint32_t op = timeline_.operations[operation].parent; op != none;
             op = timeline_.operations[op].parent) {
            if (explains(op) && effort(op).looks_up_rows) outermost = op;
        }
        return outermost;
    }
    bool explains(std::uint32_t op) const { return items_.effort_of[timeline_.operations[op].signature] != none; }

    const Timeline& timeline_;
    const Items& items_;
    std::vector<bool> covered_;
};

Item host_item(const Timeline& timeline, const Items& items, std::uint32_t op) {
    const Operation& operation = timeline.operations[op];
    Item item;
    item.signature = operation.signature;
    item.effort = items.effort_of[operation.signature];
    item.begin = item.started = operation.begin;
    item.end = operation.end;
    item.time = operation.end - operation.begin;
    return item;
}

}  // namespace

namespace {

void append_event(Items& items, Item& item, std::uint32_t event) {
    if (item.last == none) {
        items.next[event] = event;
    } else {
        items.next[event] = items.next[item.last];
        items.next[item.last] = event;
    }
    item.last = event;
    ++item.count;
}

/// Efforts of operators without a formula, made when first asked for.
class Guesses {
  public:
    Guesses(const Timeline& timeline, Items& items) : timeline_(timeline), items_(items) {}

    /// Into Items::efforts; none where its tensors say nothing.
    std::uint32_t of(std::uint32_t signature, bool multiplies) {
        const auto [place, fresh] = known_.try_emplace((std::uint64_t{signature} << 1U) | (multiplies ? 1U : 0U), none);
        if (fresh) {
            const auto sort = multiplies ? Piece::Sort::product : Piece::Sort::other;
            if (auto effort = likely_effort(timeline_.signatures[signature], sort)) {
                place->second = static_cast<std::uint32_t>(items_.efforts.size());
                items_.efforts.push_back(std::move(*effort));
            }
        }
        return place->second;
    }
    bool multiplies(std::uint32_t kernel) {
        const auto [place, fresh] = multiplying_.try_emplace(kernel, false);
        if (fresh) {
            const auto sort = sort_of_kernel(timeline_.texts[kernel]);
            place->second = sort == Piece::Sort::product || sort == Piece::Sort::batched;
        }
        return place->second;
    }

  private:
    const Timeline& timeline_;
    Items& items_;
    std::unordered_map<std::uint64_t, std::uint32_t> known_;
    std::unordered_map<std::uint32_t, bool> multiplying_;  // by the name of a kernel
};

}  // namespace

Items collect_items(Timeline& timeline) {
    Items items;
    items.effort_of.assign(timeline.signatures.size(), none);
    for (std::size_t i = 0; i < timeline.signatures.size(); ++i) {
        if (auto effort = effort_of(timeline.signatures[i])) {
            items.effort_of[i] = static_cast<std::uint32_t>(items.efforts.size());
            items.efforts.push_back(std::move(*effort));
        }
    }
    Guesses guesses(timeline, items);
    if (timeline.host_runs_operators) {
        for (std::uint32_t op = 0; op < timeline.operations.size(); ++op) {
            Item item = host_item(timeline, items, op);
            if (item.effort == none) {
                item.effort = guesses.of(item.signature, false);
                item.likely = item.effort != none;
            }
            items.all.push_back(item);
        }
        put_in_order(items.all, [](const Item& a, const Item& b) {
            if (a.begin != b.begin) return a.begin < b.begin;
            return a.end != b.end ? a.end < b.end : a.signature < b.signature;
        });
        timeline.operations = {};
        return items;
    }

    const Explanations explanations(timeline, items);
    items.next.assign(timeline.ran.size(), none);
    Spool<std::uint32_t> item_of_operation(timeline.operations.size(), none);
    items.item_of.assign(timeline.ran.size(), none);
    for (std::uint32_t i = 0; i < timeline.ran.size(); ++i) {
        spool_room::breathe(i);
        const DeviceEvent& event = timeline.ran[i];
        std::uint32_t explained = none;
        if (event.ran == Ran::kernel && event.operation != none && !event.in_graph)
            explained = explanations.find(event.operation);
        bool likely = false;
        if (event.ran == Ran::kernel && event.operation != none && !event.in_graph && explained == none) {
            explained = explanations.guess(
                event.operation, [&](std::uint32_t signature) { return guesses.of(signature, false) != none; });
            likely = explained != none;
        }
        std::uint32_t place = explained == none ? none : item_of_operation[explained];
        if (place == none) {
            place = static_cast<std::uint32_t>(items.all.size());
            if (explained != none) item_of_operation[explained] = place;
            Item item;
            const std::uint32_t around = explained != none ? explained : event.operation;
            if (around != none) item.signature = timeline.operations[around].signature;
            if (explained != none) item.effort = items.effort_of[item.signature];
            if (likely) item.effort = guesses.of(item.signature, false);
            item.likely = likely;
            item.begin = event.begin;
            item.end = event.end();
            item.started = event.call != none ? timeline.calls[event.call].begin : event.begin;
            item.ran = event.ran;
            item.in_graph = event.in_graph;
            items.all.push_back(item);
        }
        Item& item = items.all[place];
        if (likely && guesses.multiplies(event.name)) item.effort = guesses.of(item.signature, true);
        item.end = std::max(item.end, event.end());
        item.time += event.duration;
        append_event(items, item, i);
        items.item_of[i] = place;
    }
    timeline.operations = {};
    return items;
}

std::string item_name(const Timeline& timeline, const Items& items, const Item& item, bool with_shapes) {
    if (item.ran == Ran::kernel && item.signature != none && !item.in_graph) {
        const Signature& signature = timeline.signatures[item.signature];
        return with_shapes ? described(signature) : signature.name;
    }
    if (item.last == none) return "?";
    return readable(timeline.texts[timeline.ran[items.first_event(item)].name]);
}

}  // namespace roofline::analyze

#include "roofline/analyze/items.hpp"

#include <algorithm>

#include "roofline/analyze/json_scan.hpp"

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
        if (explains(operation)) return operation;
        for (std::uint32_t op = timeline_.operations[operation].parent; op != none;
             op = timeline_.operations[op].parent) {
            if (explains(op) && (!covered_[op] || effort(op).own_kernels)) return op;
            if (covered_[op]) return none;
        }
        return none;
    }

  private:
    const Effort& effort(std::uint32_t op) const {
        return items_.efforts[items_.effort_of[timeline_.operations[op].signature]];
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
    if (timeline.host_runs_operators) {
        for (std::uint32_t op = 0; op < timeline.operations.size(); ++op)
            items.all.push_back(host_item(timeline, items, op));
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
        std::uint32_t place = explained == none ? none : item_of_operation[explained];
        if (place == none) {
            place = static_cast<std::uint32_t>(items.all.size());
            if (explained != none) item_of_operation[explained] = place;
            Item item;
            const std::uint32_t around = explained != none ? explained : event.operation;
            if (around != none) item.signature = timeline.operations[around].signature;
            if (explained != none) item.effort = items.effort_of[item.signature];
            item.begin = event.begin;
            item.end = event.end();
            item.started = event.call != none ? timeline.calls[event.call].begin : event.begin;
            item.ran = event.ran;
            item.in_graph = event.in_graph;
            items.all.push_back(item);
        }
        Item& item = items.all[place];
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

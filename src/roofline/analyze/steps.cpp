#include "roofline/analyze/steps.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "roofline/analyze/engine_ranges.hpp"
#include "roofline/analyze/named_ranges.hpp"
#include "roofline/analyze/stages.hpp"

namespace roofline::analyze {
namespace {

bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

class Search {
  public:
    Search(const Timeline& timeline, Items& items) : timeline_(timeline), items_(items) {
        for (std::uint32_t i = 0; i < items.all.size(); ++i) order_.push_back(i);
        put_in_order(order_, [&](std::uint32_t a, std::uint32_t b) {
            const std::int64_t first = items.all[a].started;
            const std::int64_t second = items.all[b].started;
            return first != second ? first < second : a < b;
        });
        for (const Annotation& annotation : timeline.annotations) {
            if (timeline.texts[annotation.name].starts_with("Optimizer.step#"))
                optimizers_.push_back({annotation.begin, annotation.end, {}, {}});
        }
        std::sort(optimizers_.begin(), optimizers_.end(), [](const Range& a, const Range& b) { return a.end < b.end; });
    }

    Steps run() {
        if (!by_annotation() && !by_optimizer() && !by_embedding()) by_graph();
        for (std::uint32_t i = 0; i < steps_.all.size(); ++i) {
            for (const std::uint32_t item : steps_.all[i].items) {
                spool_room::breathe(item);
                items_.all[item].step = i;
            }
        }
        drop_empty();
        for (Step& step : steps_.all) describe(step);
        steps_.layers = repeated_layers(steps_.all);
        tell_graphs();
        set_windows(steps_.all);
        form_stages(steps_);
        if (steps_.all.empty()) roles_of_everything();
        return std::move(steps_);
    }

  private:
    /// Attention alone, without a projection, is no layer.
    void count_layers(const std::vector<std::uint32_t>& members) {
        const double layers = roles_of(members).layers;
        const auto products = std::count_if(members.begin(), members.end(), [&](std::uint32_t i) {
            return items_.all[i].ran == Ran::kernel && piece(i).sort == Piece::Sort::product;
        });
        if (static_cast<double>(products) >= layers) steps_.layers = std::max(steps_.layers, layers);
    }

    /// As if all were one step; in pieces where it is so much that the search itself would take gigabytes.
    void roles_of_everything() {
        constexpr std::size_t most = std::size_t{1} << 21U;
        std::vector<std::uint32_t> members;
        for (const std::uint32_t i : order_) {
            members.push_back(i);
            if (members.size() < most) continue;
            count_layers(members);
            members.clear();
        }
        if (!members.empty()) count_layers(members);
    }

    /// Thousands of items share a signature or a kernel, and with it what they are.
    const Piece& piece(std::uint32_t number) {
        const Item& item = items_.all[number];
        std::uint64_t key = 0;
        if (item.ran == Ran::kernel && (item.signature == none || item.in_graph)) {
            key = item.last == none ? 1 : (std::uint64_t{timeline_.ran[items_.first_event(item)].name} << 3U) | 2U;
        } else if (item.ran == Ran::kernel) {
            key = (std::uint64_t{item.signature} << 3U) | (item.effort == none ? 4U : 5U);
        }
        const auto found = known_.find(key);
        if (found != known_.end()) return found->second;
        return known_.emplace(key, piece_of(timeline_, items_, item)).first->second;
    }

    /// Which table an embedding looks up: told by its size, that of the largest matrix it is given; zero where that is
    /// unknown.
    double table(std::uint32_t number) const {
        const Item& item = items_.all[number];
        if (item.signature == none || item.in_graph) return 0.0;
        double largest = 0.0;
        for (const Argument& argument : timeline_.signatures[item.signature].arguments) {
            for (const Tensor& tensor : argument.tensors) {
                if (tensor.dims.size() == 2) largest = std::max(largest, elements(tensor));
            }
        }
        return largest;
    }

    bool by_annotation() {
        std::vector<Range> ranges = named_ranges(timeline_);
        if (ranges.empty() || items_.all.empty()) return false;
        // Of a training, ranges that leave out what its optimizer did are parts of steps: "forward".
        const bool leaves_out = std::all_of(ranges.begin(), ranges.end(), [&](const Range& range) {
            return range.kind == "step" && std::none_of(optimizers_.begin(), optimizers_.end(), [&](const Range& call) {
                       return call.begin >= range.begin && call.begin < range.end;
                   });
        });
        if (!optimizers_.empty() && leaves_out) return false;
        std::vector<Step> found;
        for (const Range& range : ranges) {
            Step step;
            step.name = range.name;
            step.kind = range.kind == "step" ? "" : range.kind;
            step.host_end = range.end;
            found.push_back(step);
        }
        // A range that holds several passes through the model is no step: then embeddings decide.
        // Several tables are one pass (positions, relative distances): it is the same one that begins the next.
        std::map<std::pair<std::size_t, double>, std::size_t> passes;
        std::size_t range = 0;
        bool products_since = true;
        bool any = false;
        for (const std::uint32_t i : order_) {
            const Item& item = items_.all[i];
            while (range < ranges.size() && ranges[range].end <= item.started) ++range;
            if (range == ranges.size()) break;
            if (item.started < ranges[range].begin) continue;
            if (item.ran != Ran::kernel && item.signature == none) continue;
            found[range].items.push_back(i);
            any = true;
            if (piece(i).sort == Piece::Sort::embedding && products_since) {
                ++passes[{range, table(i)}];
                products_since = false;
            }
            products_since = products_since || piece(i).sort == Piece::Sort::product;
        }
        if (!any || std::any_of(passes.begin(), passes.end(), [](const auto& entry) { return entry.second > 1; }))
            return false;
        steps_.all = std::move(found);
        steps_.found_by = "annotations";
        return true;
    }

    /// Of the calls of optimizers. Several may share a backward pass, one for each kind of parameters: the last counts.
    std::vector<std::int64_t> ends_of_updates() {
        std::vector<std::int64_t> ends;
        for (const Range& call : optimizers_) ends.push_back(call.end);
        std::vector<bool> backward(ends.size(), false);  // since the call before
        for (const std::uint32_t i : order_) {
            const auto place = static_cast<std::size_t>(
                std::lower_bound(ends.begin(), ends.end(), items_.all[i].started) - ends.begin());
            if (place == ends.size()) break;
            if (piece(i).sort == Piece::Sort::backward) backward[place] = true;
        }
        std::vector<std::int64_t> last;
        for (std::size_t i = 0; i < ends.size(); ++i) {
            if (!backward[i] && !last.empty()) last.pop_back();
            last.push_back(ends[i]);
        }
        return last;
    }

    /// What trains says where each of its steps ends: PyTorch names the call of an optimizer by itself.
    bool by_optimizer() {
        std::vector<std::int64_t> ends = ends_of_updates();
        if (ends.empty()) return false;
        std::vector<Step> found(ends.size());
        for (std::size_t i = 0; i < ends.size(); ++i) found[i].host_end = ends[i];
        bool backward = false;
        for (const std::uint32_t i : order_) {
            const auto place = static_cast<std::size_t>(
                std::lower_bound(ends.begin(), ends.end(), items_.all[i].started) - ends.begin());
            if (place == ends.size()) break;
            found[place].items.push_back(i);
            backward = backward || piece(i).sort == Piece::Sort::backward;
        }
        // None may be in the file.
        const auto passes = std::count_if(found.begin(), found.end(), [&](const Step& step) {
            return std::any_of(step.items.begin(), step.items.end(), [&](std::uint32_t i) {
                return items_.all[i].ran == Ran::kernel && piece(i).sort == Piece::Sort::backward;
            });
        });
        if (!backward || static_cast<std::size_t>(passes) < found.size()) return false;
        steps_.all = std::move(found);
        steps_.found_by = "calls of the optimizer";
        return true;
    }

    /// The table whose lookup begins a pass: the largest one is that of the words, beside positions, kinds and
    /// distances. Other ways to pick rows count only where nothing is called an embedding.
    std::optional<double> table_of_words() {
        std::optional<double> largest;
        std::optional<double> first;
        for (const std::uint32_t i : order_) {
            const Item& item = items_.all[i];
            if (item.ran != Ran::kernel || item.signature == none || item.in_graph) continue;
            if (piece(i).sort != Piece::Sort::embedding) continue;
            const double size = table(i);
            if (!first) first = size;
            const bool named = has(timeline_.signatures[item.signature].name, "embedding");
            if (named && (!largest || size > *largest)) largest = size;
        }
        return largest ? largest : first;
    }

    bool by_embedding() {
        std::vector<Step> found;
        std::vector<std::uint32_t> before;
        const std::optional<double> begins = table_of_words();
        bool products_since = true;
        std::uint32_t launch = none;  // of the graph that the last pass began in
        for (const std::uint32_t i : order_) {
            const Item& item = items_.all[i];
            if (piece(i).sort == Piece::Sort::embedding && products_since) {
                // Inside a graph it cannot be told which table it is: the first of each launch.
                const std::uint32_t graph =
                    item.in_graph && item.last != none ? timeline_.ran[items_.first_event(item)].correlation : none;
                if (item.in_graph ? graph == none || graph != launch : !begins || table(i) == *begins) {
                    found.emplace_back();
                    products_since = false;
                    launch = graph;
                }
            }
            products_since = products_since || piece(i).sort == Piece::Sort::product;
            (found.empty() ? before : found.back().items).push_back(i);
        }
        if (found.empty()) return false;
        if (is_encoder(before, found.front())) {
            found.emplace(found.begin());
            found.front().items = std::move(before);
            found.front().kind = "encode";
        }
        steps_.all = std::move(found);
        steps_.found_by = "embeddings";
        return true;
    }

    /// Rows of the first product with a weight.
    double first_rows(const std::vector<std::uint32_t>& members) {
        for (const std::uint32_t i : members) {
            const Effort* effort = items_.effort(items_.all[i]);
            if (effort != nullptr && effort->product && effort->weights > 0.0 && effort->product->inner > 1.0)
                return effort->product->rows;
        }
        return 0.0;
    }

    /// What stands before the first words: layers that see other rows than the pass behind them, or they are the end of
    /// a pass whose begin was not recorded.
    bool is_encoder(const std::vector<std::uint32_t>& before, const Step& first) {
        const double rows = first_rows(before);
        return rows > 1.0 && rows != first_rows(first.items) && roles_of(before).layers > 0.0;
    }

    void by_graph() {
        std::map<std::uint32_t, std::vector<std::uint32_t>> launches;
        for (const std::uint32_t i : order_) {
            const Item& item = items_.all[i];
            if (item.in_graph && item.last != none)
                launches[timeline_.ran[items_.first_event(item)].correlation].push_back(i);
        }
        for (auto& [correlation, members] : launches) {
            if (members.size() < 8) continue;
            Step step;
            step.items = std::move(members);
            steps_.all.push_back(std::move(step));
        }
        std::stable_sort(steps_.all.begin(), steps_.all.end(), [&](const Step& a, const Step& b) {
            return items_.all[a.items.front()].begin < items_.all[b.items.front()].begin;
        });
        if (!steps_.all.empty()) steps_.found_by = "graph launches";
    }

    void drop_empty() {
        std::erase_if(steps_.all, [](const Step& step) { return step.items.empty(); });
        for (std::uint32_t i = 0; i < steps_.all.size(); ++i) {
            for (const std::uint32_t item : steps_.all[i].items) {
                spool_room::breathe(item);
                items_.all[item].step = i;
            }
        }
    }

    std::uint32_t number_of_role(const std::string& name) {
        const auto [place, fresh] = numbers_.try_emplace(name, static_cast<std::uint32_t>(steps_.roles.size()));
        if (fresh) steps_.roles.push_back(name);
        return place->second;
    }

    /// Of one stream after another: what runs beside the model must not stand between its operators.
    Found roles_of(const std::vector<std::uint32_t>& members) {
        std::vector<std::uint32_t> sorted;
        for (const std::uint32_t i : members) {
            if (items_.all[i].ran == Ran::kernel) sorted.push_back(i);
        }
        std::stable_sort(sorted.begin(), sorted.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return items_.all[a].begin < items_.all[b].begin; });
        std::vector<Piece> pieces;
        for (const std::uint32_t i : sorted) pieces.push_back(piece(i));
        Found found = find_roles(pieces, mixers_);
        for (std::size_t k = 0; k < sorted.size(); ++k) {
            std::string& name = found.roles[k].name;
            if (name.empty() && found.trains && k >= found.forward)
                name = role_behind(items_.all[sorted[k]], pieces[k]);
            if (!name.empty()) items_.all[sorted[k]].role = number_of_role(name);
        }
        return found;
    }

    /// Of what follows the forward pass of a training.
    std::string role_behind(const Item& item, const Piece& piece) const {
        const auto after = std::upper_bound(optimizers_.begin(), optimizers_.end(), item.started,
                                            [](std::int64_t time, const Range& range) { return time < range.begin; });
        if (after != optimizers_.begin() && item.started < (after - 1)->end) return "optimizer";
        const std::string name =
            item.signature == none || item.in_graph ? "" : timeline_.signatures[item.signature].name;
        if (has(name, "_foreach_") || has(name, "::_fused_adam") || has(name, "::_fused_sgd")) return "optimizer";
        if (piece.sort == Piece::Sort::product || piece.sort == Piece::Sort::batched ||
            piece.sort == Piece::Sort::grouped)
            return "backward.products";
        if (piece.sort == Piece::Sort::attention || has(name, "attention")) return "backward.attention";
        if (piece.sort == Piece::Sort::collective) return "backward.all_reduce";
        if (has(name, "convolution")) return "backward.convolutions";
        return "backward.other";
    }

    /// Graphs carry no shapes. What follows a prompt and repeats kernel by kernel can only write tokens.
    void tell_graphs() {
        std::vector<std::size_t> in_graphs;  // kernels, by step
        std::map<std::size_t, int> alike;    // steps, by how many
        for (const Step& step : steps_.all) {
            std::size_t count = 0;
            for (const std::uint32_t i : step.items) {
                spool_room::breathe(i);
                count += items_.all[i].in_graph ? 1 : 0;
            }
            in_graphs.push_back(count);
            ++alike[count];
        }
        bool prompt = false;
        for (std::size_t i = 0; i < steps_.all.size(); ++i) {
            Step& step = steps_.all[i];
            prompt = prompt || step.kind == "prefill";
            step.graph = in_graphs[i] * 2 > step.items.size();
            if (prompt && step.graph && alike[in_graphs[i]] > 1 && step.kind == "step") step.kind = "decode";
        }
    }

    void describe(Step& step) {
        const Found found = roles_of(step.items);
        step.layers = found.layers;
        step.experts = found.experts;
        step.begin = items_.all[step.items.front()].begin;
        step.end = step.begin;
        double queries = 0.0;
        double rows = 0.0;
        std::optional<Product> scored;  // of two activations, before a softmax
        bool sees_attention = false;    // as one operator
        for (const std::uint32_t i : step.items) {
            spool_room::breathe(i);
            const Item& item = items_.all[i];
            step.begin = std::min(step.begin, item.begin);
            step.end = std::max(step.end, item.end);
            const Effort* effort = items_.effort(item);
            if (effort == nullptr || reads_elsewhere(item)) continue;
            if (effort->attention) {
                sees_attention = true;
                step.batch = std::max(step.batch, effort->attention->batch);
                queries = std::max(queries, effort->attention->queries);
                step.context = std::max(step.context, effort->attention->keys);
            }
            if (rows == 0.0 && effort->product && effort->weights > 0.0 && effort->product->inner > 1.0)
                rows = effort->product->rows;
            if (effort->product && effort->weights == 0.0) scored = effort->product;
            if (piece(i).sort != Piece::Sort::softmax || sees_attention) continue;
            const bool first = queries == 0.0;
            scores(item, step, queries);
            if (!first) continue;
            if (queries > 0.0 || !scored || rows == 0.0) continue;
            // A softmax that was fused says less: [batch x heads] products of queries with keys stand before it.
            queries = scored->rows;
            step.context = scored->columns;
            step.batch = std::max(1.0, std::floor(rows / queries));
        }
        if (queries == 0.0 && !sees_attention) words_of(step, queries);
        step.tokens = step.batch * queries > 0.0 ? step.batch * queries : rows;
        if (const auto scheduled = scheduled_in(step.name)) {
            take(*scheduled, step);
            return;
        }
        if (step.kind.empty() && found.trains) step.kind = "train";
        if (step.kind.empty() && queries > 0.0) step.kind = queries > 1.0 ? "prefill" : "decode";
        if (step.kind.empty()) step.kind = "step";
        if (step.kind == "decode" && step.batch == 0.0) step.batch = step.tokens;
    }

    /// Layers of an encoder and attention to what it made say nothing about how many words there are.
    bool reads_elsewhere(const Item& item) const {
        if (item.role == none) return false;
        const std::string& role = steps_.roles[item.role];
        return role.starts_with("encoder.") || role.starts_with("layers.cross.");
    }

    /// Without attention, what is looked up in the table of words: [sequences, new words of each].
    void words_of(Step& step, double& queries) {
        for (const std::uint32_t i : step.items) {
            const Item& item = items_.all[i];
            if (item.ran != Ran::kernel || item.signature == none || item.in_graph) continue;
            if (piece(i).sort != Piece::Sort::embedding) continue;
            for (const Argument& argument : timeline_.signatures[item.signature].arguments) {
                const bool whole = argument.type == "long int" || argument.type == "int";
                if (!whole || argument.tensors.size() != 1 || argument.tensors[0].dims.size() != 2) continue;
                step.batch = static_cast<double>(argument.tensors[0].dims[0]);
                queries = static_cast<double>(argument.tensors[0].dims[1]);
                return;
            }
        }
    }

    /// What the engine says of its own step is exact.
    static void take(const Scheduled& scheduled, Step& step) {
        const bool writes = scheduled.writing.requests > 0.0;
        const Scheduled::Part& part = writes ? scheduled.writing : scheduled.reading;
        step.batch = part.requests;
        step.tokens = scheduled.reading.tokens + scheduled.writing.tokens;
        if (part.lengths > 0.0) step.context = part.lengths / part.requests;
        if (writes && scheduled.reading.requests > 0.0) step.chunk = scheduled.reading.tokens;
    }

    /// Attention written out: the softmax sees [batch, heads, queries, keys].
    void scores(const Item& item, Step& step, double& queries) const {
        if (item.signature == none) return;
        const Signature& signature = timeline_.signatures[item.signature];
        if (signature.arguments.empty() || signature.arguments[0].tensors.empty()) return;
        const auto& dims = signature.arguments[0].tensors[0].dims;
        if (dims.size() != 4) return;
        if (queries > 0.0 && (step.batch != static_cast<double>(dims[0]) || queries != static_cast<double>(dims[2])))
            return;
        step.batch = static_cast<double>(dims[0]);
        queries = static_cast<double>(dims[2]);
        step.context = std::max(step.context, static_cast<double>(dims[3]));  // windows see less than the rest
    }

    const Timeline& timeline_;
    Items& items_;
    Steps steps_;
    Spool<std::uint32_t> order_;      // items as the host asked for them
    std::vector<Range> optimizers_;   // calls of them, by end
    std::set<MixerProducts> mixers_;  // of the steps that were looked at
    std::unordered_map<std::uint64_t, Piece> known_;
    std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace

Steps find_steps(const Timeline& timeline, Items& items) {
    return Search(timeline, items).run();
}

}  // namespace roofline::analyze

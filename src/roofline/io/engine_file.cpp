#include "roofline/io/engine_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "roofline/io/embedded.hpp"
#include "roofline/io/fields.hpp"
#include "roofline/io/names.hpp"
#include "roofline/io/tensors.hpp"
#include "roofline/io/units.hpp"

namespace roofline::io {
namespace {

using predict::EngineRules;

void allow(Fields& fields, std::initializer_list<std::string_view> keys) {
    for (const std::string& key : fields.keys()) {
        if (std::find(keys.begin(), keys.end(), key) == keys.end())
            fields.complain(key, "is not a key that belongs here");
    }
}

/// One of a few words, or the first of them and a problem.
template <class Choice, std::size_t count>
Choice choice(Fields& fields, std::string_view key,
              const std::array<std::pair<std::string_view, Choice>, count>& words) {
    const std::string found = fields.text(key);
    for (const auto& [word, value] : words) {
        if (word == found) return value;
    }
    std::string expected;
    for (const auto& [word, value] : words) expected += (expected.empty() ? "" : ", ") + std::string(word);
    fields.complain(key, fmt::format("is \"{}\", expected one of {}", printable(found), expected));
    return words.front().second;
}

class Reader {
  public:
    explicit Reader(EngineRules& rules) : rules_(rules) {}

    void sources(Fields& file) {
        Fields sources = file.child("sources");
        static constexpr std::array kinds = {
            std::pair{std::string_view("vendor"), SourceKind::vendor},
            std::pair{std::string_view("measured"), SourceKind::measured},
            std::pair{std::string_view("derived"), SourceKind::derived},
            std::pair{std::string_view("assumed"), SourceKind::assumed},
        };
        for (const std::string& id : sources.keys()) {
            Fields entry = sources.child(id);
            allow(entry, {"kind", "title", "date"});
            rules_.sources[id] = {choice(entry, "kind", kinds), entry.text("title"), entry.text_or("date", "")};
        }
    }

    Figure figure(Fields& parent, std::string_view key) {
        Fields fields = parent.child(key);
        allow(fields, {"value", "unit", "source", "note"});
        Figure figure;
        double factor = 1.0;
        if (fields.has("unit")) {
            const std::string unit = fields.text("unit");
            const auto known = unit_factor(unit, Dimension::bytes);
            if (!known)
                fields.complain(
                    "unit", fmt::format("is \"{}\", expected {}", printable(unit), expected_units(Dimension::bytes)));
            factor = known.value_or(1.0);
        }
        const Json* value = fields.find("value");
        if (value == nullptr || !value->is_number() || value->get<double>() < 0.0 || value->get<double>() > 1e15) {
            fields.complain("value", "expected a number that is not negative");
        } else {
            figure.value = value->get<double>() * factor;
        }
        figure.source = fields.text("source");
        figure.note = fields.text_or("note", "");
        listed(fields, figure.source);
        return figure;
    }

    void maybe(Fields& parent, std::string_view key, Figure& into) {
        if (parent.has(key)) into = figure(parent, key);
    }

    /// A figure that something is divided by, or a count.
    void whole(Fields& parent, std::string_view key, Figure& into) {
        if (!parent.has(key)) return;
        into = figure(parent, key);
        if (into.value < 1.0 || into.value != std::floor(into.value))
            parent.complain(key, fmt::format("is {}, expected a whole number of at least 1", into.value));
    }

    void fraction(Fields& file) {
        if (!file.has("fraction")) return;
        Fields fields = file.child("fraction");
        allow(fields, {"of", "utilisation", "inside", "reserve"});
        static constexpr std::array words = {
            std::pair{std::string_view("total"), EngineRules::FractionOf::total},
            std::pair{std::string_view("free_before"), EngineRules::FractionOf::free_before},
            std::pair{std::string_view("free_after"), EngineRules::FractionOf::free_after},
        };
        rules_.fraction_of = choice(fields, "of", words);
        rules_.utilisation = figure(fields, "utilisation");
        if (rules_.utilisation.value <= 0.0 || rules_.utilisation.value > 1.0)
            fields.complain("utilisation",
                            fmt::format("is {}, expected more than 0 and at most 1", rules_.utilisation.value));
        for (const std::string& part : fields.texts("inside")) {
            if (part == "activations") {
                rules_.activations_inside = true;
            } else if (part == "graphs") {
                rules_.graphs_inside = true;
            } else {
                fields.complain("inside", fmt::format("has \"{}\", expected activations or graphs", printable(part)));
            }
        }
        if (!fields.has("reserve")) return;
        Fields reserve = fields.child("reserve");
        allow(reserve, {"fixed", "per_token", "per_rank", "per_sequence", "least", "least_above"});
        rules_.reserve = {figure(reserve, "fixed"),    figure(reserve, "per_token"),
                          figure(reserve, "per_rank"), figure(reserve, "per_sequence"),
                          figure(reserve, "least"),    figure(reserve, "least_above")};
    }

    void steps(Fields& file) {
        if (!file.has("steps")) return;
        for (Fields& line : file.children("steps")) {
            allow(line, {"from", "tokens", "sequences", "except"});
            EngineRules::Step step;
            step.from = figure(line, "from");
            whole(line, "tokens", step.tokens);
            whole(line, "sequences", step.sequences);
            step.except = line.texts("except");
            if (!rules_.steps.empty() && rules_.steps.back().from.value <= step.from.value)
                line.complain("from", "is not less than that of the line before");
            rules_.steps.push_back(std::move(step));
        }
        if (!rules_.steps.empty() && rules_.steps.back().from.value > 0.0)
            file.complain("steps", "ends above 0: small devices have no line");
    }

    void cache(Fields& file) {
        Fields fields = file.child("cache");
        allow(fields, {"layout", "prints", "block", "group_slack", "steps_in_flight", "state_blocks", "reserved_blocks",
                       "window_ratio", "state_ratio"});
        static constexpr std::array layouts = {
            std::pair{std::string_view("ideal"), EngineRules::Layout::ideal},
            std::pair{std::string_view("tables"), EngineRules::Layout::tables},
            std::pair{std::string_view("pools"), EngineRules::Layout::pools},
        };
        static constexpr std::array prints = {
            std::pair{std::string_view("full"), EngineRules::Prints::full},
            std::pair{std::string_view("even"), EngineRules::Prints::even},
            std::pair{std::string_view("concurrency"), EngineRules::Prints::concurrency},
        };
        rules_.layout = choice(fields, "layout", layouts);
        if (fields.has("prints")) rules_.prints = choice(fields, "prints", prints);
        whole(fields, "block", rules_.block);
        maybe(fields, "steps_in_flight", rules_.steps_in_flight);
        whole(fields, "state_blocks", rules_.state_blocks);
        maybe(fields, "group_slack", rules_.group_slack);
        maybe(fields, "reserved_blocks", rules_.reserved_blocks);
        if (fields.has("window_ratio")) rules_.window_ratio = figure(fields, "window_ratio");
        if (fields.has("state_ratio")) rules_.state_ratio = figure(fields, "state_ratio");
        for (const auto& [key, ratio] :
             {std::pair{"window_ratio", &rules_.window_ratio}, std::pair{"state_ratio", &rules_.state_ratio}}) {
            if (*ratio && (*ratio)->value <= 0.0) fields.complain(key, "is 0, expected more");
        }
    }

    void overhead(Fields& file) {
        if (file.has("overhead")) {
            Fields fields = file.child("overhead");
            allow(fields, {"context", "runtime", "collectives", "graphs", "expert_padding"});
            maybe(fields, "context", rules_.context);
            maybe(fields, "runtime", rules_.runtime);
            maybe(fields, "collectives", rules_.collectives);
            maybe(fields, "graphs", rules_.graphs);
            whole(fields, "expert_padding", rules_.expert_padding);
        }
        if (file.has("activations")) {
            Fields fields = file.child("activations");
            allow(fields, {"sampler", "streams", "expert_workspace"});
            maybe(fields, "sampler", rules_.sampler);
            maybe(fields, "streams", rules_.streams);
            rules_.expert_workspace = fields.flag("expert_workspace", false);
        }
    }

    void experts(Fields& file) {
        if (!file.has("experts")) return;
        Fields fields = file.child("experts");
        allow(fields, {"exchange", "except", "source", "note"});
        static const std::array ways = {
            std::pair{model::name(model::ExpertExchange::gather), model::ExpertExchange::gather},
            std::pair{model::name(model::ExpertExchange::all_to_all), model::ExpertExchange::all_to_all},
        };
        EngineRules::Exchange exchange;
        exchange.way = choice(fields, "exchange", ways);
        if (fields.has("except")) exchange.except = fields.texts("except");
        exchange.source = fields.text("source");
        exchange.note = fields.text_or("note", "");
        listed(fields, exchange.source);
        rules_.exchange = std::move(exchange);
    }

  private:
    void listed(Fields& fields, const std::string& source) {
        if (!rules_.sources.contains(source))
            fields.complain("source",
                            fmt::format("is \"{}\", which the file's \"sources\" do not list", printable(source)));
    }

    EngineRules& rules_;
};

}  // namespace

Result<EngineRules> read_engine(std::string_view text, std::string_view file) {
    const auto json = parse_json(text, file);
    if (!json) return std::unexpected(json.error());
    std::optional<Problem> problem;
    Fields fields(*json, std::string(file), "", problem);
    const std::string schema = fields.text("schema");
    if (schema != "roofline.engine/1")
        fields.complain("schema", fmt::format("is \"{}\", expected \"roofline.engine/1\"", printable(schema)));
    allow(fields, {"schema", "name", "title", "versions", "reserves", "fraction", "steps", "overhead", "activations",
                   "cache", "experts", "sources"});
    EngineRules rules;
    Reader reader(rules);
    reader.sources(fields);
    rules.name = fields.text("name");
    rules.title = fields.text("title");
    rules.versions = fields.text_or("versions", "");
    rules.reserves = fields.flag("reserves", false);
    reader.fraction(fields);
    reader.steps(fields);
    reader.overhead(fields);
    reader.cache(fields);
    reader.experts(fields);
    if (problem) return std::unexpected(*problem);
    return rules;
}

std::vector<std::string> builtin_engine_names() {
    std::vector<std::string> names;
    for (const EmbeddedFile& file : embedded_engines()) names.emplace_back(file.name);
    return names;
}

Result<EngineRules> builtin_engine(std::string_view name) {
    for (const EmbeddedFile& file : embedded_engines()) {
        if (file.name == name) return read_engine(file.text, fmt::format("{}.json", file.name));
    }
    const std::vector<std::string> known = builtin_engine_names();
    std::string hint = suggestion(name, known);
    if (hint.empty()) hint = fmt::format("; there are {}, or a .json file", fmt::join(known, ", "));
    return fail(fmt::format("no engine is called \"{}\"{}", printable(name), hint));
}

}  // namespace roofline::io

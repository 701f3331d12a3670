#include "roofline/render/chart/time_bars.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "roofline/render/chart/marks.hpp"
#include "roofline/render/chart/spots.hpp"
#include "roofline/render/chart/svg.hpp"
#include "roofline/render/chart/text_width.hpp"
#include "roofline/render/chart/theme.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::render::chart {
namespace {

constexpr double width = 960.0;
constexpr double bar_height = 44.0;
constexpr double row_height = 104.0;

struct Piece {
    const Record* record = nullptr;  // null: time that no operator explains
    double seconds = 0.0;
};

struct Bar {
    const Account* account = nullptr;
    const AccountStage* stage = nullptr;
    std::vector<Piece> pieces;  // by group, large groups first; inside, large operators first
    double seconds = 0.0;
};

double seconds_of(const std::vector<Piece>& pieces) {
    double sum = 0.0;
    for (const Piece& piece : pieces) sum += piece.seconds;
    return sum;
}

Bar bar_of(const Account& account, const AccountStage& stage) {
    Bar bar{&account, &stage, {}, 0.0};
    std::array<double, group_count> groups{};
    for (const Record& record : stage.records) {
        const double seconds = shown_time(record.times).value;
        if (!(seconds > 0.0)) continue;
        groups[index(record.group)] += seconds;
        bar.pieces.push_back({&record, seconds});
    }
    std::stable_sort(bar.pieces.begin(), bar.pieces.end(), [&](const Piece& a, const Piece& b) {
        const Group one = a.record->group;
        const Group two = b.record->group;
        if (one != two) {
            const double first = groups[index(one)];
            const double second = groups[index(two)];
            return first != second ? first > second : index(one) < index(two);
        }
        return a.seconds > b.seconds;
    });
    const double operators = seconds_of(bar.pieces);
    const double whole = shown_time(stage.times).value;
    // A pipeline runs its operators several times a step: then there is no rest to speak of.
    if (whole > operators * 1.005 && whole < operators * 2.0) bar.pieces.push_back({nullptr, whole - operators});
    bar.seconds = seconds_of(bar.pieces);
    return bar;
}

/// What the stage could take, marked above its bar. The limit has its words to the left; attainable is never before it
/// and has them to the right, where there is room. Where the limit has none, both stand on the right.
void draw_times(Svg& svg, const Bar& bar, double left, double right, double top) {
    const double scale = (right - left) / bar.seconds;
    const Times& times = bar.stage->times;
    const auto shown = [&](Seconds time) { return time.value > 0.0 && time.value < bar.seconds; };
    const auto mark = [&](Seconds time) {  // not through the words in the bar
        const double at = left + time.value * scale;
        svg.line({at, top - 7.0}, {at, top + 7.0}, "mark-line");
        svg.line({at, top + bar_height - 7.0}, {at, top + bar_height + 3.0}, "mark-line");
        return at;
    };
    std::string limit = fmt::format("limit {}", render::time(times.limit));
    std::string attainable = fmt::format("attainable {}", render::time(times.attainable));
    if (shown(times.limit)) {
        const double at = mark(times.limit);
        if (at - 4.0 - text_width(limit, small_size) >= left) {
            svg.text({at - 4.0, top - 5.0}, limit, "small soft", Anchor::end);
        } else if (shown(times.attainable)) {
            attainable = limit + ", " + attainable;
        } else {
            svg.text({at + 4.0, top - 5.0}, limit, "small soft");
        }
    }
    if (!shown(times.attainable)) return;
    const double at = mark(times.attainable);
    if (at + 4.0 + text_width(attainable, small_size) <= right) {
        svg.text({at + 4.0, top - 5.0}, attainable, "small soft");
    } else if (times.attainable.value >= times.limit.value + 0.12 * bar.seconds) {  // two names at one place are none
        svg.text({at - 4.0, top - 5.0}, attainable, "small soft", Anchor::end);
    }
}

void draw_bar(Svg& svg, const Bar& bar, double left, double right, double top) {
    const double scale = (right - left) / bar.seconds;
    double x = left;
    double group_from = left;
    for (std::size_t i = 0; i < bar.pieces.size(); ++i) {
        const Piece& piece = bar.pieces[i];
        const double end = x + piece.seconds * scale;
        const std::string name = piece.record != nullptr ? short_name(*piece.record, *bar.stage) : "between operators";
        svg.open(piece.record != nullptr ? "piece" : "piece rest",
                 {{"data-stage", bar.stage->name},
                  {"data-group", piece.record != nullptr ? roofline::name(piece.record->group) : ""},
                  {"data-name", piece.record != nullptr ? piece.record->name : ""}});
        svg.rectangle(
            {x, top, end, top + bar_height},
            fmt::format("bar {}", piece.record != nullptr ? group_class(piece.record->group) : "idle"),
            fmt::format("{}\n{}, {} of {}", piece.record != nullptr ? piece.record->name : name,
                        render::time(Seconds(piece.seconds)), percent(piece.seconds / bar.seconds), bar.stage->name));
        // The last part of a name says most: attention.qkv in a bar of attention.
        const std::string word = name.substr(name.rfind('.') == std::string::npos ? 0 : name.rfind('.') + 1);
        if (text_width(word, small_size) + 8.0 <= end - x) {
            const std::string classes =
                piece.record != nullptr ? fmt::format("small {}", words_on(piece.record->group)) : "small";
            svg.text({(x + end) / 2.0, top + bar_height / 2.0 - 3.0}, word, classes, Anchor::middle);
            svg.text({(x + end) / 2.0, top + bar_height / 2.0 + 12.0}, percent(piece.seconds / bar.seconds), classes,
                     Anchor::middle);
        }
        svg.close();
        x = end;
        const bool last = i + 1 == bar.pieces.size() || piece.record == nullptr ||
                          bar.pieces[i + 1].record == nullptr || bar.pieces[i + 1].record->group != piece.record->group;
        if (!last) continue;
        if (piece.record != nullptr) {
            const std::string group =
                fmt::format("{} {}", roofline::name(piece.record->group), percent((x - group_from) / (right - left)));
            if (text_width(group, small_size, true) + 6.0 <= x - group_from) {
                svg.line({group_from + 2.0, top + bar_height + 5.0}, {x - 2.0, top + bar_height + 5.0}, "axis");
                svg.text({(group_from + x) / 2.0, top + bar_height + 18.0}, group, "small strong", Anchor::middle);
            }
        }
        group_from = x;
    }
    draw_times(svg, bar, left, right, top);
}

}  // namespace

std::string time_bars_chart(std::span<const Account> accounts) {
    std::vector<Bar> bars;
    for (const Account& account : accounts) {
        for (const AccountStage& stage : account.stages) {
            Bar bar = bar_of(account, stage);
            if (bar.seconds > 0.0) bars.push_back(std::move(bar));
        }
    }
    std::array<bool, group_count> seen{};
    for (const Bar& bar : bars) {
        for (const Piece& piece : bar.pieces) {
            if (piece.record != nullptr) seen[index(piece.record->group)] = true;
        }
    }
    std::vector<LegendItem> legend;
    for (std::size_t i = 0; i < group_count; ++i) {
        const auto group = static_cast<Group>(i);
        if (seen[i])
            legend.push_back({LegendItem::Kind::mark, Shape::square, fmt::format("mark {}", group_class(group)),
                              std::string(name(group))});
    }
    const std::string title = "Where the time goes: " + common_title(accounts);
    const std::vector<std::string> lines = {has_measured(accounts)
                                                ? "measured time of each operator; every bar is one stage"
                                                : "expected time of each operator; every bar is one stage"};
    const double height = 118.0 + row_height * static_cast<double>(std::max<std::size_t>(1, bars.size()));
    Svg svg(width, height, title, fmt::format("{} stages as bars cut into operators", bars.size()));
    double top = draw_heading(svg, title, lines);
    top += draw_legend(svg, {24.0, top}, width - 48.0, legend) + 16.0;
    if (bars.empty()) svg.text({width / 2.0, top + 30.0}, "no operator with a time", "soft", Anchor::middle);
    for (const Bar& bar : bars) {
        std::string words = describe_stage(*bar.stage);
        if (accounts.size() > 1) words = bar.account->title + ": " + words;
        words += ": " + render::time(Seconds(bar.seconds));
        svg.text({24.0, top + 8.0}, shortened(words, width - 220.0, text_size, true), "strong");
        draw_bar(svg, bar, 24.0, width - 24.0, top + 30.0);
        top += row_height;
    }
    return svg.finish();
}

}  // namespace roofline::render::chart

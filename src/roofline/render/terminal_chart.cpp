#include "roofline/render/terminal_chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "roofline/render/chart/ceilings.hpp"
#include "roofline/render/chart/scale.hpp"
#include "roofline/render/chart/spots.hpp"
#include "roofline/render/chart/text_width.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::render {
namespace {

using chart::Scale;
using chart::Spot;

constexpr int rows = 18;
constexpr int margin = 7;  // for the numbers of the axis

/// Eight colours of any terminal, told apart by letters as well.
constexpr std::array<int, group_count> colours = {34, 33, 35, 36, 32, 93, 96, 37};

std::string painted(std::string_view text, int colour, bool allowed) {
    return allowed ? fmt::format("\x1b[{}m{}\x1b[0m", colour, text) : std::string(text);
}

std::string braille(unsigned dots) {
    const unsigned code = 0x2800U + dots;  // three bytes of UTF-8
    return {static_cast<char>(0xe0U | (code >> 12U)), static_cast<char>(0x80U | ((code >> 6U) & 0x3fU)),
            static_cast<char>(0x80U | (code & 0x3fU))};
}

/// Cells of a grid, each of two by four dots or one letter.
class Canvas {
  public:
    explicit Canvas(int columns) : columns_(columns), cells_(static_cast<std::size_t>(columns * rows)) {}

    /// In dots, from the upper left corner.
    void dot(int x, int y) {
        if (x < 0 || y < 0 || x >= 2 * columns_ || y >= 4 * rows) return;
        static constexpr std::array<std::array<unsigned, 2>, 4> bits = {
            {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
        cell(x / 2, y / 4).dots |= bits[static_cast<std::size_t>(y % 4)][static_cast<std::size_t>(x % 2)];
    }
    void letter(int x, int y, std::string_view text, int colour) {
        if (x < 0 || y < 0 || x >= columns_ || y >= rows) return;
        cell(x, y).letter = std::string(text);
        cell(x, y).colour = colour;
    }
    bool has_letter(int x, int y) const { return !cells_[static_cast<std::size_t>(y * columns_ + x)].letter.empty(); }
    bool is_free(int x, int y, int length) const {
        if (y < 0 || y >= rows || x < 0 || x + length > columns_) return false;
        for (int i = 0; i < length; ++i) {
            const Cell& found = cells_[static_cast<std::size_t>(y * columns_ + x + i)];
            if (!found.letter.empty() || found.dots != 0) return false;
        }
        return true;
    }
    /// Letter by letter, where all of it is free.
    bool words(int x, int y, const std::string& text) {
        if (!is_free(x, y, static_cast<int>(text.size()))) return false;
        for (std::size_t i = 0; i < text.size(); ++i) letter(x + static_cast<int>(i), y, text.substr(i, 1), 0);
        return true;
    }
    std::string row(int y, bool colour) const {
        std::string text;
        for (int x = 0; x < columns_; ++x) {
            const Cell& found = cells_[static_cast<std::size_t>(y * columns_ + x)];
            if (!found.letter.empty())
                text += found.colour != 0 ? painted(found.letter, found.colour, colour) : found.letter;
            else
                text += found.dots != 0 ? braille(found.dots) : " ";
        }
        while (!text.empty() && text.back() == ' ') text.pop_back();
        return text;
    }

  private:
    struct Cell {
        unsigned dots = 0;
        std::string letter;
        int colour = 0;
    };
    Cell& cell(int x, int y) { return cells_[static_cast<std::size_t>(y * columns_ + x)]; }
    int columns_;
    std::vector<Cell> cells_;
};

struct Axes {
    Scale x;  // in dots
    Scale y;
};

/// A roof that is drawn: every one of a device alone; where there are operators, those that they use.
bool is_shown(const Account& account, const chart::Ceiling& ceiling, const chart::ComputeRoof& roof) {
    return &roof == ceiling.main || account.stages.empty() || roof.used;
}

Axes axes_of(std::span<const Account> accounts, const std::vector<chart::Ceiling>& ceilings,
             const std::vector<Spot>& spots, int columns) {
    double low_x = 1e300;
    double high_x = 0.0;
    double low_y = 1e300;
    double high_y = 0.0;
    for (const Spot& spot : spots) {
        if (spot.share < 0.02) continue;
        low_x = std::min(low_x, spot.intensity);
        high_x = std::max(high_x, spot.intensity);
        low_y = std::min(low_y, spot.rate);
        high_y = std::max(high_y, spot.rate);
    }
    for (const chart::Ceiling& ceiling : ceilings) {
        if (ceiling.main == nullptr) continue;
        for (const chart::ComputeRoof& roof : ceiling.roofs) {
            if (is_shown(accounts[ceiling.account], ceiling, roof)) high_y = std::max(high_y, roof.limit);
        }
        low_y = std::min(low_y, ceiling.main->limit / 1000.0);
        if (!(ceiling.memory() > 0.0)) continue;
        low_x = std::min(low_x, ceiling.main->limit / ceiling.memory() / 300.0);
        high_x = std::max(high_x, ceiling.main->limit / ceiling.memory() * 10.0);
    }
    if (!(high_x > 0.0)) {
        low_x = 1.0;
        high_x = 10.0;
    }
    if (!(high_y > 0.0)) {
        low_y = 1e9;
        high_y = 1e12;
    }
    low_x = std::max(low_x, high_x * 1e-9);
    low_y = std::max(low_y, high_y * 1e-9);
    return {{low_x / 1.5, high_x * 1.5, 0.0, 2.0 * columns - 1.0, true},
            {low_y / 2.0, high_y * 2.5, 4.0 * rows - 1.0, 0.0, true}};
}

char letter_of(std::size_t i) {
    return i < 26 ? static_cast<char>('a' + i) : static_cast<char>('A' + (i - 26));
}

int nearest(double value) {
    return static_cast<int>(std::floor(value + 0.5));
}

/// How a line is drawn: whole, broken (what was measured), or with few dots (what is not used, or is a cache).
enum class Stroke { whole, broken, few };

bool has_dot(Stroke stroke, int dot) {
    return stroke == Stroke::whole || (stroke == Stroke::broken ? dot / 2 % 2 == 0 : dot % 4 == 0);
}

class Roofer {
  public:
    Roofer(Canvas& canvas, const Axes& axes) : canvas_(canvas), axes_(axes) {
        per_dot_ = (axes.y.at(axes.y.high) - axes.y.at(axes.y.low)) /
                   (chart::log10_of(axes.y.high) - chart::log10_of(axes.y.low)) *
                   (chart::log10_of(axes.x.high) - chart::log10_of(axes.x.low)) / (axes.x.to - axes.x.from);
    }

    /// From where a slope of `bandwidth` meets it; from the left edge where there is none.
    void flat(double peak, double bandwidth, Stroke stroke) {
        const int first = bandwidth > 0.0 ? std::max(0, nearest(axes_.x.at(peak / bandwidth))) : 0;
        for (int dot = first; dot <= nearest(axes_.x.to); ++dot) {
            if (has_dot(stroke, dot)) canvas_.dot(dot, nearest(axes_.y.at(peak)));
        }
    }
    /// Up to where it meets a peak.
    void slope(double bandwidth, double peak, Stroke stroke) {
        const double end = axes_.x.at(peak / bandwidth);
        int before = -1;
        for (int dot = 0; dot < end && dot <= nearest(axes_.x.to); ++dot) {
            const int now = nearest(axes_.y.at(peak) + (dot - end) * per_dot_);
            // Steep lines have no holes.
            for (int fill = now; stroke == Stroke::whole && before >= 0 && fill < before - 1; ++fill)
                canvas_.dot(dot, fill + 1);
            if (has_dot(stroke, dot)) canvas_.dot(dot, now);
            before = now;
        }
    }
    void ridge(double peak, double bandwidth) {
        for (int y = nearest(axes_.y.at(peak)); y < 4 * rows; y += 3)
            canvas_.dot(nearest(axes_.x.at(peak / bandwidth)), y);
    }

  private:
    Canvas& canvas_;
    const Axes& axes_;
    double per_dot_ = 0.0;
};

/// Lines nearer than two rows of dots would only thicken each other.
bool apart(double limit, double attainable) {
    return attainable < limit * 0.85;
}

void draw_roofs(Canvas& canvas, std::span<const Account> accounts, const std::vector<chart::Ceiling>& ceilings,
                const Axes& axes) {
    Roofer roofer(canvas, axes);
    for (const chart::Ceiling& ceiling : ceilings) {
        if (ceiling.main == nullptr) continue;
        double highest = 0.0;
        for (const chart::ComputeRoof& roof : ceiling.roofs) {
            if (!is_shown(accounts[ceiling.account], ceiling, roof)) continue;
            highest = std::max(highest, roof.limit);
            roofer.flat(roof.limit, ceiling.memory(), &roof == ceiling.main ? Stroke::whole : Stroke::few);
            if (&roof == ceiling.main && apart(roof.limit, roof.attainable))
                roofer.flat(roof.attainable, ceiling.memory(), Stroke::broken);
        }
        for (const chart::Slope& slope : ceiling.slopes) {
            const bool memory = slope.level == Level::memory;
            if (slope.limit > 0.0) roofer.slope(slope.limit, highest, memory ? Stroke::whole : Stroke::few);
            if (memory && apart(slope.limit, slope.attainable) && slope.attainable > 0.0)
                roofer.slope(slope.attainable, highest, Stroke::broken);
        }
    }
}

/// Last of all: where a word stands, the ridge is interrupted and not the word.
void draw_ridges(Canvas& canvas, const std::vector<chart::Ceiling>& ceilings, const Axes& axes) {
    for (const chart::Ceiling& ceiling : ceilings) {
        if (ceiling.main != nullptr && ceiling.memory() > 0.0)
            Roofer(canvas, axes).ridge(ceiling.main->limit, ceiling.memory());
    }
}

void name_roofs(Canvas& canvas, std::span<const Account> accounts, const std::vector<chart::Ceiling>& ceilings,
                const Axes& axes, int columns) {
    for (const chart::Ceiling& ceiling : ceilings) {
        if (ceiling.main == nullptr) continue;
        const Account& account = accounts[ceiling.account];
        const std::string whose = ceilings.size() > 1 ? account.device.name + " " : "";
        const auto name_roof = [&](const chart::ComputeRoof& roof) {
            const std::string words = whose + roof.name() + " " + roof.spelt(roof.limit);
            // Above it, or where another roof is in the way, below.
            const int row = nearest(axes.y.at(roof.limit)) / 4;
            const auto write = [&](const std::string& text) {
                for (const int beside : {-1, 1, 2}) {
                    if (canvas.words(columns - static_cast<int>(text.size()), row + beside, text)) return true;
                }
                return false;
            };
            if (&roof != ceiling.main || roof.attainable >= roof.limit) {
                write(words);
                return;
            }
            const std::string measured = "measured " + roof.spelt(roof.attainable);
            if (write(words + ", " + measured)) return;
            write(words);
            write(measured);
        };
        name_roof(*ceiling.main);
        for (const chart::ComputeRoof& roof : ceiling.roofs) {
            if (&roof != ceiling.main && is_shown(account, ceiling, roof)) name_roof(roof);
        }
        if (ceiling.memory() > 0.0) {
            const double ridge = ceiling.main->limit / ceiling.memory();
            canvas.words(nearest(axes.x.at(ridge)) / 2 + 1, rows - 1, "ridge " + intensity(FlopsPerByte(ridge)));
        }
        for (const chart::Slope& slope : ceiling.slopes) {
            if (!(slope.limit > 0.0)) continue;
            const bool memory = slope.level == Level::memory;
            std::string words =
                whose + (memory ? "" : std::string(name(slope.level)) + " ") + bytes(Bytes(slope.limit)) + "/s";
            if (memory && slope.attainable < slope.limit)
                words += ", measured " + bytes(Bytes(slope.attainable)) + "/s";
            // Left of the line where nothing else is, else right of it.
            const auto write = [&](bool left) {
                for (const double part : {20.0, 8.0, 50.0, 120.0}) {
                    const double at = ceiling.main->limit / slope.limit / part;
                    if (!axes.x.holds(at) || !axes.y.holds(at * slope.limit)) continue;
                    const int x = nearest(axes.x.at(at)) / 2;
                    const int y = nearest(axes.y.at(at * slope.limit)) / 4;
                    const int long_as = static_cast<int>(words.size());
                    if (canvas.words(left ? std::max(0, x - long_as - 3) : x + 4, left ? y - 1 : y + 1, words))
                        return true;
                }
                return false;
            };
            if (!write(true)) write(false);
        }
    }
}

/// A line of plain text, broken after a comma (or between words) where it is wider than the terminal; what follows
/// stands further in.
std::string wrapped(std::string_view line, std::string_view indent, int columns) {
    const auto room = static_cast<std::size_t>(std::clamp(columns, 40, 200)) - indent.size() - 2;
    std::string text;
    for (std::string_view rest = line; !rest.empty();) {
        const std::size_t most = text.empty() ? room + 2 : room;
        std::size_t end = rest.size();
        if (end > most) {
            const std::size_t comma = rest.rfind(", ", most - 1);
            const bool late = comma != std::string_view::npos && comma > most / 2;
            end = late ? comma + 1 : std::min(rest.rfind(' ', most), most);
        }
        text += fmt::format("{}{}{}\n", text.empty() ? "" : "  ", indent, rest.substr(0, end));
        rest.remove_prefix(end);
        while (rest.starts_with(' ')) rest.remove_prefix(1);
    }
    return text;
}

}  // namespace

std::string terminal_roofline(std::span<const Account> accounts, const TerminalOptions& options) {
    const auto found = chart::spots_of(accounts);
    std::vector<Spot> spots = found.spots;
    std::stable_sort(spots.begin(), spots.end(), [](const Spot& a, const Spot& b) { return a.share > b.share; });
    const int columns = std::clamp(options.columns, 40, 200) - margin - 1;
    const auto ceilings = chart::ceilings_of(accounts, {Level::memory, Level::cache});
    const Axes axes = axes_of(accounts, ceilings, spots, columns);
    Canvas canvas(columns);
    draw_roofs(canvas, accounts, ceilings, axes);

    std::string key;
    std::size_t letters = 0;
    for (const Spot& spot : spots) {
        if (spot.share < 0.02 || letters >= 16 || !axes.x.holds(spot.intensity) || !axes.y.holds(spot.rate)) continue;
        const int x = nearest(axes.x.at(spot.intensity)) / 2;
        const int y = nearest(axes.y.at(spot.rate)) / 4;
        // One that would hide another stands beside it: letters must stay readable.
        int beside = 0;
        const std::string letter(1, letter_of(letters));
        const int colour = colours[index(spot.record->group)];
        static constexpr std::array<int, 9> steps = {0, 1, -1, 2, -2, 3, -3, 4, -4};
        for (const int step : steps) {
            beside = step;
            if (!canvas.has_letter(std::clamp(x + step, 0, columns - 1), y)) break;
        }
        canvas.letter(std::clamp(x + beside, 0, columns - 1), y, letter, colour);
        key += fmt::format(
            "  {} {:<26} {:>7} FLOP/B {:>13}/s {:>6} {}\n", painted(letter, colour, options.colour),
            chart::shortened(spot.of->name + " " + chart::short_name(*spot.record, *spot.of), 176.0, 12.0),
            intensity(FlopsPerByte(spot.intensity)), flops(Flops(spot.rate)), percent(spot.share), name(spot.bound));
        ++letters;
    }
    name_roofs(canvas, accounts, ceilings, axes, columns);
    draw_ridges(canvas, ceilings, axes);

    std::string text;
    for (const Account& account : accounts) {
        if (!options.heading) break;
        text += (account.stages.empty() ? account.device.title : account.title) + "\n";
        for (const AccountStage& stage : account.stages)
            text += wrapped(chart::stage_line(stage), "  ", options.columns);
    }
    text += options.heading ? "\nFLOP/s\n" : "FLOP/s\n";
    std::vector<std::string> numbers(rows);
    for (const auto& tick : chart::log_ticks(axes.y.low, axes.y.high)) {
        if (!tick.label.empty())
            numbers[static_cast<std::size_t>(std::clamp(nearest(axes.y.at(tick.value)) / 4, 0, rows - 1))] = tick.label;
    }
    for (int y = 0; y < rows; ++y)
        text += fmt::format("{:>{}} \u2502{}\n", numbers[static_cast<std::size_t>(y)], margin - 2,
                            canvas.row(y, options.colour));
    std::string line;
    for (int x = 0; x < columns; ++x) line += "\u2500";
    std::string below(static_cast<std::size_t>(columns), ' ');
    for (const auto& tick : chart::log_ticks(axes.x.low, axes.x.high)) {
        const auto at = static_cast<std::size_t>(std::clamp(nearest(axes.x.at(tick.value)) / 2, 0, columns - 1));
        if (!tick.label.empty() && at + tick.label.size() <= below.size())
            below.replace(at, tick.label.size(), tick.label);
    }
    while (!below.empty() && below.back() == ' ') below.pop_back();
    text += fmt::format("{:>{}} \u2514{}\n{:>{}}{}\n", "", margin - 2, line, "", margin, below);
    text += fmt::format("{:>{}}\n", "FLOP per byte of memory traffic", margin + columns);
    if (!key.empty()) text += "\n" + key;
    for (const std::string& note : chart::notes_about(found.unseen)) text += wrapped(note, "  ", options.columns);
    return text;
}

std::string terminal_bars(std::span<const Account> accounts, const TerminalOptions& options) {
    static constexpr std::array<std::string_view, 9> eighths = {"",       "\u258f", "\u258e", "\u258d", "\u258c",
                                                                "\u258b", "\u258a", "\u2589", "\u2588"};
    std::string text;
    for (const Account& account : accounts) {
        for (const AccountStage& stage : account.stages) {
            std::array<double, group_count> groups{};
            double all = 0.0;
            for (const Record& record : stage.records) {
                const double seconds = chart::shown_time(record.times).value;
                groups[index(record.group)] += seconds;
                all += seconds;
            }
            if (!(all > 0.0)) continue;
            if (!text.empty()) text += "\n";
            const std::string title = accounts.size() > 1 ? account.title + ": " : "";
            text += wrapped(title + chart::stage_line(stage), "", options.columns);
            std::array<std::size_t, group_count> order{};
            for (std::size_t i = 0; i < group_count; ++i) order[i] = i;
            std::stable_sort(order.begin(), order.end(),
                             [&](std::size_t a, std::size_t b) { return groups[a] > groups[b]; });
            const double room = std::clamp(options.columns, 40, 200) - 40.0;
            for (const std::size_t i : order) {
                if (!(groups[i] > 0.0)) continue;
                const int parts = static_cast<int>(std::ceil(8.0 * room * groups[i] / all));
                std::string bar;
                for (int full = 0; full < parts / 8; ++full) bar += eighths[8];
                bar += eighths[static_cast<std::size_t>(parts % 8)];
                text += fmt::format("  {:<14} {:>10} {:>6}  {}\n", name(static_cast<Group>(i)),
                                    render::time(Seconds(groups[i])), percent(groups[i] / all),
                                    painted(bar, colours[i], options.colour));
            }
        }
    }
    return text.empty() ? "no operator with a time\n" : text;
}

}  // namespace roofline::render

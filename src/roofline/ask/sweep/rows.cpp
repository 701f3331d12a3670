#include "roofline/ask/sweep/rows.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace roofline::ask {
namespace {

/// One line stays one line, and a cell one cell, whatever a file's name holds.
std::string without_controls(std::string text) {
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    }
    return text;
}

std::string json_text(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string csv_text(const std::string& text) {
    if (text.find_first_of(",\"") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"') quoted += '"';
        quoted += c;
    }
    return quoted + "\"";
}

bool is_number(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return end != text.c_str() && *end == '\0' && std::isfinite(value);
}

/// "8e9", "+8" and "8" are the same number, and databases and JSON agree on one spelling of it only.
std::string plain_number(const std::string& text) {
    if (!is_number(text)) return text;
    const double value = std::strtod(text.c_str(), nullptr);
    return value == std::floor(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                                : fmt::format("{:.15g}", value);
}

/// Writes cells in one of the spellings. An empty value is nothing in CSV and null in JSON.
class Cells {
  public:
    Cells(Spelling spelling, std::string& text) : spelling_(spelling), text_(text) {}

    void begin_row() {
        if (spelling_ == Spelling::jsonl) text_ += '{';
    }
    void name(std::string_view column, bool first = false) {
        switch (spelling_) {
            case Spelling::csv:
                if (!first) text_ += ',';
                return;
            case Spelling::cells:
                if (!first) text_ += cell_separator;
                return;
            case Spelling::jsonl:
                if (!first) text_ += ',';
                text_ += '"';
                text_ += column;
                text_ += "\":";
        }
    }
    void nothing() {
        if (spelling_ == Spelling::jsonl) text_ += "null";
    }
    void word(const std::string& value) {
        if (value.empty()) return nothing();
        const std::string clean = without_controls(value);
        text_ += spelling_ == Spelling::jsonl ? json_text(clean) : spelling_ == Spelling::csv ? csv_text(clean) : clean;
    }
    void flag(bool value) { text_ += value ? "true" : "false"; }
    void whole(double value) {
        if (!std::isfinite(value)) return nothing();
        if (std::abs(value) >= 1e15) {
            fmt::basic_memory_buffer<char, 64> buffer;
            fmt::format_to(std::back_inserter(buffer), "{:.0f}", value);
            return append(buffer);
        }
        const fmt::format_int digits(std::llround(value));
        text_.append(digits.data(), digits.size());
    }
    /// Six digits: more than any of these figures deserves, and half the bytes of all digits.
    void number(double value) {
        if (!std::isfinite(value)) return nothing();
        fmt::basic_memory_buffer<char, 64> buffer;
        fmt::format_to(std::back_inserter(buffer), "{:.6g}", value);
        append(buffer);
    }
    /// A number that is spelt already.
    void spelt(std::string_view value) { text_ += value; }
    /// A word of ours, which nothing in it needs quotes for.
    void own_word(std::string_view value) {
        if (spelling_ == Spelling::jsonl) text_ += '"';
        text_ += value;
        if (spelling_ == Spelling::jsonl) text_ += '"';
    }

  private:
    void append(const fmt::basic_memory_buffer<char, 64>& buffer) { text_.append(buffer.data(), buffer.size()); }

    Spelling spelling_;
    std::string& text_;
};

std::string quoted_column(const std::string& column) {
    return csv_text(without_controls(column));
}

}  // namespace

std::vector<std::string> RowLayout::column_names() const {
    std::vector<std::string> names;
    for (const SetupAxis& axis : grid->setup_axes()) names.push_back(axis.column);
    for (const WorkAxis& axis : grid->work_axes()) {
        if (axis.shown) names.push_back(axis.column);
    }
    for (const MetricColumn& metric : metrics) names.push_back(metric.name);
    return names;
}

std::string RowLayout::header() const {
    if (spelling != Spelling::csv) return "";
    std::string line;
    for (const std::string& name : column_names()) line += (line.empty() ? "" : ",") + quoted_column(name);
    return line + "\n";
}

struct RowWriter::Prepared {
    Prepared(predict::Scenario&& realised, AskedThere&& asked_there)
        : asked(std::move(asked_there)),
          scenario(std::move(realised)),
          replica(scenario),
          times(replica.whole().size()) {
        scenario.price = asked.price;
    }

    AskedThere asked;
    predict::Scenario scenario;
    predict::Replica replica;
    std::vector<predict::OperatorTime> times;
};

/// Text of a segment by what it depends on: in a grid the same steps come again and again, and both pricing and
/// spelling them costs more than looking them up. A slot holds the last one that fell into it.
struct RowWriter::Memo {
    using Key = std::array<double, 6>;
    static constexpr int bits = 12;
    struct Slot {
        Key key{};
        std::string text;
        bool used = false;
    };
    std::vector<Slot> slots = std::vector<Slot>(std::size_t{1} << bits);

    Slot& at(const Key& key) {
        std::uint64_t hash = 0;
        for (const double value : key)
            hash = (std::rotl(hash, 5) ^ std::bit_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15ULL;
        return slots[hash >> (64 - bits)];
    }
    void clear() {
        for (Slot& slot : slots) slot.used = false;
    }
};

RowWriter::RowWriter(const RowLayout& layout) : layout_(layout) {
    for (const MetricColumn& metric : layout.metrics) {
        if (sources_.empty() || sources_.back() != metric.source) {
            sources_.push_back(metric.source);
            columns_.emplace_back();
            const bool repeats = metric.source == Source::prefill || metric.source == Source::mixed ||
                                 metric.source == Source::decode || metric.source == Source::request;
            memos_.push_back(repeats ? std::make_unique<Memo>() : nullptr);
        }
        columns_.back().push_back(&metric);
    }
}

RowWriter::~RowWriter() = default;

void RowWriter::prepare(std::size_t row) {
    const Grid& grid = *layout_.grid;
    const std::size_t setup = row / grid.rows_per_setup();
    if (setup != setup_) {
        setup_ = setup;
        loaded_ = false;
        setup_text_.clear();
        Cells cells(layout_.spelling, setup_text_);
        cells.begin_row();
        const std::vector<std::size_t> values = grid.setup_values(setup);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const SetupAxis& axis = grid.setup_axes()[i];
            cells.name(without_controls(axis.column), i == 0);
            if (axis.numbers) {
                const std::string number = plain_number(axis.values[values[i]]);
                is_number(number) ? cells.spelt(number) : cells.word(number);
            } else {
                cells.word(axis.values[values[i]]);
            }
        }
    }
    grid.fill(row, workload_);
    if (layout_.always_chunked && workload_.chunk == 0.0) workload_.chunk = workload_.prompt;
}

void RowWriter::write_axes(std::string& text) const {
    text += setup_text_;
    Cells cells(layout_.spelling, text);
    bool first = layout_.grid->setup_axes().empty();
    for (const WorkAxis& axis : layout_.grid->work_axes()) {
        if (!axis.shown) continue;
        cells.name(axis.column, first);
        const bool context = axis.field == &predict::Workload::context;
        cells.whole(context ? workload_.decode_context() : workload_.*axis.field);
        first = false;
    }
}

void RowWriter::append_axes(std::size_t row, std::string& text) {
    prepare(row);
    write_axes(text);
    if (!layout_.metrics.empty()) Cells(layout_.spelling, text).name(layout_.metrics.front().name);
}

void RowWriter::append(std::size_t row, std::string& text) {
    prepare(row);
    if (!loaded_) {
        loaded_ = true;
        prepared_.reset();
        problem_.clear();
        for (const auto& memo : memos_) {
            if (memo) memo->clear();
        }
        auto asked = layout_.grid->asked(setup_);
        auto scenario =
            asked ? predict::realise(asked->setup) : Result<predict::Scenario>(std::unexpected(asked.error()));
        if (scenario) {
            prepared_ = std::make_unique<Prepared>(std::move(*scenario), std::move(*asked));
        } else {
            problem_ = scenario.error().text;
        }
    }
    if (prepared_) {
        for (const WorkAxis& axis : layout_.grid->work_axes())
            prepared_->scenario.workload.*axis.field = workload_.*axis.field;
    }
    row_problem_ = problem_;
    write_axes(text);
    for (std::size_t i = 0; i < sources_.size(); ++i) write_segment(i, text);
    if (layout_.spelling == Spelling::jsonl) text += '}';
    text += '\n';
}

/// What is said of a point under load. Nothing is a number that is not there.
struct RowWriter::LoadAnswer {
    serving::Answer answer;
    std::string_view bound;
    bool overloaded = false;

    double number(Field field) const {
        const auto& pools = answer.pools;
        const serving::Steady& steady = answer.expected;
        const serving::Metrics& metrics = answer.metrics;
        const auto p99 = [](const std::optional<serving::Percentiles>& found) { return found ? found->p99 : 0.0; };
        switch (field) {
            case Field::load_requests:
                return metrics.requests_per_second;
            case Field::load_tokens:
                return metrics.output_tokens_per_second;
            case Field::load_device_tokens:
                return metrics.output_tokens_per_second_per_device;
            case Field::load_ttft:
                return pools ? pools->ttft : steady.ttft;
            case Field::load_tpot:
                return pools ? pools->tpot : steady.tpot;
            case Field::load_request:
                return pools ? pools->request : steady.request;
            case Field::load_running:
                return pools ? pools->decode.running : steady.running;
            case Field::load_capacity:
                return pools ? pools->capacity : steady.capacity * answer.replicas;
            case Field::load_ttft_p99:
                return answer.simulated         ? p99(answer.simulated->ttft)
                       : answer.simulated_pools ? p99(answer.simulated_pools->ttft)
                                                : 0.0;
            case Field::load_tpot_p99:
                return answer.simulated         ? p99(answer.simulated->tpot)
                       : answer.simulated_pools ? p99(answer.simulated_pools->tpot)
                                                : 0.0;
            case Field::load_money:
                return metrics.price_per_million_output_tokens.value_or(0.0);
            default:
                return 0.0;
        }
    }
};

/// Empty: nothing comes, it does not fit, or it cannot be served so.
std::optional<RowWriter::LoadAnswer> RowWriter::answer_load() {
    const AskedThere& asked = prepared_->asked;
    const predict::Scenario& scenario = prepared_->scenario;
    if (!asked.traffic || !predict::fit_deployment(scenario, predict::Advice::left_out).fits) return std::nullopt;
    serving::Traffic traffic = *asked.traffic;
    if (!asked.prompts_given) traffic.mix.prompt = serving::Lengths::fixed(workload_.prompt);
    if (!asked.outputs_given) traffic.mix.output = serving::Lengths::fixed(workload_.generate);
    auto answer = serving::answer(scenario, traffic);
    if (!answer) {
        row_problem_ = answer.error().text;  // the last column
        return std::nullopt;
    }
    LoadAnswer result{std::move(*answer), {}, false};
    const auto& pools = result.answer.pools;
    result.overloaded = pools ? pools->overloaded : result.answer.expected.overloaded;
    result.bound = result.overloaded ? "overload" : pools ? name(pools->narrowest) : name(result.answer.expected.limit);
    return result;
}

void RowWriter::write_segment(std::size_t segment, std::string& text) {
    Memo* memo = memos_[segment].get();
    if (memo == nullptr || !prepared_) return compute_segment(segment, text);
    const predict::Workload& w = workload_;
    Memo::Key key{};
    switch (sources_[segment]) {
        case Source::prefill:
            key = {w.batch, w.prompt, w.cached, w.chunk > 0.0 ? 1.0 : 0.0};
            break;
        case Source::decode:
            key = {w.batch, w.decode_context()};
            break;
        case Source::mixed:
            key = {w.batch, w.decode_context(), w.chunk, w.cached};
            break;
        default:
            key = {w.batch, w.prompt, w.cached, w.generate, w.chunk, w.chunk > 0.0 ? w.decode_context() : 0.0};
            break;
    }
    Memo::Slot& slot = memo->at(key);
    if (!slot.used || slot.key != key) {
        slot.text.clear();
        compute_segment(segment, slot.text);
        slot.key = key;
        slot.used = true;
    }
    text += slot.text;
}

void RowWriter::compute_segment(std::size_t segment, std::string& text) {
    Cells cells(layout_.spelling, text);
    const Source source = sources_[segment];
    const auto each = [&](const auto& write) {
        for (const MetricColumn* column : columns_[segment]) {
            cells.name(column->name);
            write(*column);
        }
    };
    if (source == Source::problem) return each([&](const MetricColumn&) { cells.word(row_problem_); });
    if (!prepared_) return each([&](const MetricColumn&) { cells.nothing(); });

    const predict::Scenario& scenario = prepared_->scenario;
    const double devices = scenario.deployment.devices();
    if (source == Source::deployment) return each([&](const MetricColumn&) { cells.whole(devices); });
    if (source == Source::fit) {
        const predict::Fit fit = predict::fit_deployment(scenario, predict::Advice::left_out);
        const auto whole = [&](const std::optional<double>& value) { value ? cells.whole(*value) : cells.nothing(); };
        return each([&](const MetricColumn& column) {
            if (column.field == Field::fits) return cells.flag(fit.fits);
            if (column.field == Field::max_batch) return whole(fit.largest_batch);
            if (column.field == Field::max_context) return whole(fit.longest_context);
            cells.whole(fit.total().value);
        });
    }
    if (source == Source::request) {
        const predict::RequestMetrics metrics = predict::request_metrics(scenario, prepared_->replica);
        return each([&](const MetricColumn& column) {
            const auto money = [&](const std::optional<double>& value) {
                value ? cells.number(*value) : cells.nothing();
            };
            const std::optional<predict::Money>& cost = metrics.money;
            if (column.field == Field::money_output) return money(cost ? cost->output : std::nullopt);
            if (column.field == Field::money_decode) return money(cost ? cost->decode : std::nullopt);
            if (column.field == Field::money_prompt) return money(cost ? cost->prompt : std::nullopt);
            const auto seconds = [&](const Times& times, int which) {
                const Seconds time = which == 0 ? times.limit : which == 1 ? times.attainable : times.expected;
                // A request of one token has no further ones, hence no time between them.
                time.value > 0.0 ? cells.number(time.value) : cells.nothing();
            };
            const int field = static_cast<int>(column.field) - static_cast<int>(Field::ttft_limit);
            seconds(field < 3 ? metrics.ttft : field < 6 ? metrics.tpot : metrics.request, field % 3);
        });
    }

    if (source == Source::load) {
        const std::optional<LoadAnswer> answer = answer_load();
        if (!answer) return each([&](const MetricColumn&) { cells.nothing(); });
        return each([&](const MetricColumn& column) {
            if (column.field == Field::load_bound) return cells.own_word(answer->bound);
            if (column.field == Field::load_overloaded) return cells.flag(answer->overloaded);
            const double value = answer->number(column.field);
            value > 0.0 ? cells.number(value) : cells.nothing();
        });
    }

    using predict::StageKind;
    const StageKind kind = source == Source::prefill ? StageKind::prefill
                           : source == Source::mixed ? StageKind::mixed
                                                     : StageKind::decode;
    const predict::Workload& workload = scenario.workload;
    // A prompt is taken whole or in chunks.
    const bool chunked = workload.chunk > 0.0;
    if ((kind == StageKind::prefill && chunked) || (kind == StageKind::mixed && !chunked))
        return each([&](const MetricColumn&) { cells.nothing(); });
    const predict::StageTime stage = predict::time_stage(scenario, prepared_->replica, kind, prepared_->times);
    const double tokens = kind == StageKind::prefill ? workload.batch * workload.prompt
                          : kind == StageKind::mixed ? workload.chunk + workload.batch
                                                     : workload.batch;
    const double rate = stage.expected > 0.0 ? tokens / stage.expected : 0.0;
    each([&](const MetricColumn& column) {
        switch (column.field) {
            case Field::limit:
                return cells.number(stage.limit);
            case Field::attainable:
                return cells.number(stage.attainable);
            case Field::expected:
                return cells.number(stage.expected);
            case Field::low:
                return cells.number(stage.expected_low);
            case Field::high:
                return cells.number(stage.expected_high);
            case Field::rate:
                return cells.number(rate);
            case Field::device_rate:
                return cells.number(rate / devices);
            case Field::bound:
                return cells.own_word(name(stage.bound));
            case Field::flops:
                return cells.number(stage.flops);
            case Field::bytes:
                return cells.whole(stage.memory_bytes);
            case Field::intensity:
                return cells.number(stage.intensity);
            default:
                return cells.nothing();
        }
    });
}

}  // namespace roofline::ask

#include "roofline/io/account_json.hpp"

#include <fmt/format.h>

#include "roofline/io/device_file.hpp"
#include "roofline/io/times_json.hpp"

namespace roofline::io {
namespace {

Times read_times(Fields fields) {
    Times times;
    times.limit = Seconds(fields.number_or("limit", 0.0));
    times.attainable = Seconds(fields.number_or("attainable", times.limit.value));
    times.expected = Seconds(fields.number_or("expected", times.attainable.value));
    times.expected_low = Seconds(fields.number_or("expected_low", times.expected.value));
    times.expected_high = Seconds(fields.number_or("expected_high", times.expected.value));
    if (fields.has("measured")) times.measured = Seconds(fields.number_or("measured", 0.0));
    return times;
}

constexpr std::array<std::pair<Level, const char*>, level_count> level_keys = {{{Level::memory, "memory"},
                                                                                {Level::cache, "cache"},
                                                                                {Level::peer, "peer"},
                                                                                {Level::network, "network"},
                                                                                {Level::host, "host"}}};

void write_bytes(JsonText& json, const std::array<Bytes, level_count>& bytes, Bytes weights, Bytes kv) {
    json.object("bytes", [&] {
        for (const auto& [level, key] : level_keys) json.add(key, bytes[index(level)].value);
        json.add("weights", weights.value);
        json.add("kv", kv.value);
    });
}

void write_record(JsonText& json, const Record& record, const Account& account, double stage_seconds) {
    const Roofs limit = limit_roofs(account.device);
    const Verdict verdict = judge(record.work, limit);
    const Seconds shown = record.times.measured.value_or(record.times.expected);
    const auto over_shown = [&](double seconds) { return shown.value > 0.0 ? seconds / shown.value : 0.0; };
    json.add("name", record.name);
    if (!record.covers.empty()) json.add("covers", record.covers);
    json.add("kind", name(record.kind));
    json.add("group", name(record.group));
    json.add("count", record.count);
    json.add("engine", name(record.work.engine));
    json.add("dtype", name(record.work.type));
    json.add("flops", record.work.flops.value);
    write_bytes(json, record.work.bytes, record.weights, record.kv);
    json.add("intensity", verdict.intensity.value);
    // What a trace shows is held against the ceilings that its tables hold it against.
    const bool traced = account.verb == "analyze";
    json.add("bound", name(traced ? held_by(record, attainable_roofs(account.device)) : verdict.bound));
    json.add("fraction_of_peak",
             over_shown(record.work.flops.value * limit.flop_cost(record.work.engine, record.work.type)));
    json.add("fraction_of_bandwidth",
             over_shown(record.work.at(Level::memory).value * limit.seconds_per_byte[index(Level::memory)]));
    write_times(json, "time_s", record.times);
    json.add("share", stage_seconds > 0.0 ? shown.value / stage_seconds : 0.0);
    json.add("origin", name(record.origin));
}

void write_stage(JsonText& json, const AccountStage& stage, const Account& account) {
    Flops flops{};
    Bytes weights{};
    Bytes kv{};
    std::array<Bytes, level_count> bytes{};
    for (const Record& record : stage.records) {
        flops += record.work.flops;
        weights += record.weights;
        kv += record.kv;
        for (std::size_t level = 0; level < level_count; ++level) bytes[level] += record.work.bytes[level];
    }
    json.add("stage", stage.name);
    json.add("batch", stage.batch);
    json.add("tokens", stage.tokens);
    json.add("context", stage.context);
    json.add("produced", stage.produced);
    json.add("repetitions", stage.repetitions);
    json.add("flops", flops.value);
    write_bytes(json, bytes, weights, kv);
    json.add("intensity", intensity(flops, bytes[index(Level::memory)]).value);
    write_times(json, "time_s", stage.times);
    json.object("tokens_per_s", [&] {
        json.add("limit", stage.tokens_per_second(stage.times.limit));
        json.add("attainable", stage.tokens_per_second(stage.times.attainable));
        json.add("expected", stage.tokens_per_second(stage.times.expected));
        if (stage.times.measured) json.add("measured", stage.tokens_per_second(*stage.times.measured));
    });
    const double seconds = stage.times.measured.value_or(stage.times.expected).value;
    json.array("records", [&] {
        for (const Record& record : stage.records) json.object([&] { write_record(json, record, account, seconds); });
    });
}

Record read_record(Fields fields) {
    Record record;
    record.name = fields.text("name");
    if (fields.has("covers")) record.covers = fields.texts("covers");
    const std::string kind = fields.text_or("kind", "other");
    const std::string group = fields.text_or("group", "other");
    const std::string origin = fields.text_or("origin", "predicted");
    const std::string type = fields.text_or("dtype", "bf16");
    if (const auto found = find_kind(kind))
        record.kind = *found;
    else
        fields.complain("kind", fmt::format("found \"{}\", expected a kind such as gemm or attention", kind));
    if (const auto found = find_group(group))
        record.group = *found;
    else
        fields.complain("group", fmt::format("found \"{}\", expected a group such as attention or ffn", group));
    if (const auto found = find_origin(origin))
        record.origin = *found;
    else
        fields.complain("origin", fmt::format("found \"{}\", expected predicted, measured or traced", origin));
    if (const auto found = parse_dtype(type))
        record.work.type = *found;
    else
        fields.complain("dtype", fmt::format("found \"{}\", expected a number type such as bf16", type));
    const std::string engine = fields.text_or("engine", "matrix");
    record.work.engine = engine == name(Engine::vector) ? Engine::vector : Engine::matrix;
    record.count = fields.number_or("count", 1.0);
    record.work.flops = Flops(fields.number_or("flops", 0.0));
    if (fields.has("bytes")) {
        Fields bytes = fields.child("bytes");
        for (const auto& [level, key] : level_keys) record.work.at(level) = Bytes(bytes.number_or(key, 0.0));
        record.weights = Bytes(bytes.number_or("weights", 0.0));
        record.kv = Bytes(bytes.number_or("kv", 0.0));
    }
    record.times = read_times(fields.child("time_s"));
    return record;
}

AccountStage read_stage(Fields fields) {
    AccountStage stage;
    stage.name = fields.text("stage");
    stage.batch = fields.number_or("batch", 0.0);
    stage.tokens = fields.number_or("tokens", 0.0);
    stage.context = fields.number_or("context", 0.0);
    // Reports of `predict` do not say it: written tokens of decode, new ones elsewhere.
    stage.produced = fields.number_or("produced", stage.name == "decode" ? stage.batch : stage.tokens);
    stage.repetitions = fields.number_or("repetitions", 1.0);
    stage.times = read_times(fields.child("time_s"));
    for (Fields& record : fields.children("records")) stage.records.push_back(read_record(record));
    return stage;
}

}  // namespace

std::string account_text(const Account& account, const RunInfo& run) {
    JsonText json;
    json.object([&] {
        json.add("schema", "roofline.report/1");
        write_run(json, run);
        json.add("verb", account.verb);
        json.add("title", account.title);
        json.object("device", [&] { write_device(json, account.device); });
        if (!account.model.empty()) json.object("model", [&] { json.add("name", account.model); });
        json.array("stages", [&] {
            for (const AccountStage& stage : account.stages) json.object([&] { write_stage(json, stage, account); });
        });
        json.add("notes", account.notes);
    });
    return std::move(json).finish();
}

OrderedJson account_json(const Account& account, const RunInfo& run) {
    return OrderedJson::parse(account_text(account, run), nullptr, false);
}

Result<Account> read_account(std::string_view text, std::string_view file) {
    const auto json = parse_json(text, file);
    if (!json) return std::unexpected(json.error());
    if (!json->is_object()) {
        return fail(fmt::format("{}: found {}, expected a report (an object with \"schema\")", file, describe(*json)));
    }
    std::optional<Problem> problem;
    Fields fields(*json, std::string(file), "", problem);
    const std::string schema = fields.text_or("schema", "");
    if (schema != "roofline.report/1") {
        return fail(
            fmt::format("{}: schema: found \"{}\", expected \"roofline.report/1\", as `--format json` of "
                        "predict, bench and analyze writes it",
                        file, schema));
    }
    Account account;
    // A trace of a device that nobody knows holds its name and no figures.
    const auto has_figures = [](const Json& device) {
        return device.contains("schema") && !(device.contains("memory") && device.at("memory").empty());
    };
    if (const Json* device = fields.find("device"); device != nullptr && has_figures(*device)) {
        auto read = read_device(device->dump(), file);
        if (!read) return std::unexpected(read.error());
        account.device = std::move(*read);
    } else if (fields.has("device")) {
        Fields named = fields.child("device");
        account.device.name = named.text("name");
        account.device.title = named.text_or("title", "");
    }
    if (fields.has("model")) account.model = fields.child("model").text("name");
    account.verb = fields.text_or("verb", "predict");
    account.title = fields.text_or("title", account.model + " on " + account.device.name);
    for (Fields& stage : fields.children("stages")) account.stages.push_back(read_stage(stage));
    if (fields.has("notes")) account.notes = fields.texts("notes");
    if (problem) return std::unexpected(*problem);
    if (account.stages.empty() && !fields.has("device"))
        return fail(fmt::format("{}: found neither a device nor stages, expected a report with one of them", file));
    return account;
}

}  // namespace roofline::io

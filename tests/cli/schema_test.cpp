// Everything the program writes as JSON follows the schema that is published for it.
#include "cli/schema.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/engine_file.hpp"
#include "roofline/io/report_json.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/predict/report.hpp"
#include "roofline/render/predict_text.hpp"

namespace roofline::cli::testing {
namespace {

using Arguments = std::vector<std::string>;

void expect_valid(const Schema& schema, Arguments arguments, int exit_code = 0) {
    arguments.insert(arguments.end(), {"--format", "json"});
    SCOPED_TRACE(typed(arguments));
    const Answer answer = run(arguments);
    EXPECT_EQ(answer.exit_code, exit_code) << answer.err;
    EXPECT_EQ(answer.err, "");
    const auto found = schema.violations(parsed(answer.out));
    EXPECT_TRUE(found.empty()) << joined(found);
}

// ---- the validator itself ----

Schema schema_of(const std::string& text) {
    return Schema(parsed(text));
}

std::string first(const Schema& schema, const std::string& document) {
    const auto found = schema.violations(parsed(document));
    return found.empty() ? "" : found.front();
}

TEST(JsonSchema, ChecksTypesAndTakesThreePointZeroForAnInteger) {
    const Schema integer = schema_of(R"({"type":"integer"})");
    EXPECT_EQ(first(integer, "3"), "");
    EXPECT_EQ(first(integer, "3.0"), "");
    EXPECT_EQ(first(integer, "3.5"), "$: is 3.5, expected type \"integer\"");
    EXPECT_EQ(first(integer, "\"3\""), "$: is \"3\", expected type \"integer\"");
    const Schema either = schema_of(R"({"type":["number","null"]})");
    EXPECT_EQ(first(either, "null"), "");
    EXPECT_EQ(first(either, "0.5"), "");
    EXPECT_EQ(first(either, "true"), "$: is true, expected type [\"number\",\"null\"]");
    EXPECT_NE(first(schema_of(R"({"type":"object"})"), "[]"), "");
    EXPECT_NE(first(schema_of(R"({"type":"array"})"), "{}"), "");
    EXPECT_NE(first(schema_of(R"({"type":"boolean"})"), "0"), "");
    EXPECT_NE(first(schema_of(R"({"type":"string"})"), "null"), "");
}

TEST(JsonSchema, ChecksKeysThatAreRequiredAndKeysThatAreNotExpected) {
    const Schema schema = schema_of(
        R"({"type":"object","required":["a"],"properties":{"a":{"type":"number"},"b":{}},"additionalProperties":false})");
    EXPECT_EQ(first(schema, R"({"a":1,"b":[]})"), "");
    EXPECT_EQ(first(schema, R"({"b":1})"), "$: a is missing");
    EXPECT_EQ(first(schema, R"({"a":1,"c":1})"), "$.c: is not expected here");
    EXPECT_EQ(first(schema, R"({"a":"1"})"), "$.a: is \"1\", expected type \"number\"");
    const Schema open = schema_of(R"({"type":"object","additionalProperties":{"type":"string"}})");
    EXPECT_EQ(first(open, R"({"any":"text"})"), "");
    EXPECT_EQ(first(open, R"({"any":1})"), "$.any: is 1, expected type \"string\"");
}

TEST(JsonSchema, ChecksItemsEnumsConstantsAndLeastValuesWithTheirPlace) {
    const Schema list = schema_of(R"({"items":{"minimum":0}})");
    EXPECT_EQ(first(list, "[0, 1, 2.5]"), "");
    EXPECT_EQ(first(list, "[0, 1, -2]"), "$[2]: is -2, expected at least 0");
    const Schema choice = schema_of(R"({"properties":{"x":{"enum":["a","b"]},"y":{"const":"v/1"}}})");
    EXPECT_EQ(first(choice, R"({"x":"a","y":"v/1"})"), "");
    EXPECT_EQ(first(choice, R"({"x":"c"})"), "$.x: is \"c\", expected one of [\"a\",\"b\"]");
    EXPECT_EQ(first(choice, R"({"y":"v/2"})"), "$.y: is \"v/2\", expected \"v/1\"");
}

TEST(JsonSchema, FollowsReferencesAndAlternatives) {
    const std::string tree =
        R"({"$ref":"#/$defs/tree","$defs":{"tree":{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]}}}})";
    EXPECT_EQ(first(schema_of(tree), "[[],[null,[null]]]"), "");
    EXPECT_EQ(first(schema_of(tree), "[[],[null,[3]]]"), "$[1]: is none of the allowed alternatives");
    EXPECT_EQ(first(schema_of(R"({"$ref":"#/$defs/lost"})"), "1"),
              "$: the schema refers to #/$defs/lost, which is not there");
    const Schema two(parsed(R"({"items":{"$ref":"other.json"}})"),
                     [](const std::string& name) { return parsed(name == "other.json" ? R"({"type":"null"})" : "1"); });
    EXPECT_EQ(first(two, "[null]"), "");
    EXPECT_EQ(first(two, "[1]"), "$[0]: is 1, expected type \"null\"");
}

TEST(JsonSchema, AKeywordThatIsNotCheckedDoesNotPassForChecked) {
    EXPECT_EQ(first(schema_of(R"({"maxLength":3})"), "1"),
              "$: the schema uses \"maxLength\", which is not checked here");
    EXPECT_EQ(first(schema_of("[]"), "1"), "$: the schema is not an object");
    EXPECT_EQ(first(schema_of("{}"), "{\"a\":"), "$: is not JSON");
}

TEST(JsonSchema, AReportThatWasTamperedWithFails) {
    const Schema schema = Schema::published("report.schema.json");
    const Json report = parsed(run({"predict", "gpt2", "l40s", "--format", "json"}).out);
    ASSERT_TRUE(schema.violations(report).empty()) << joined(schema.violations(report));
    // A trace or a benchmark has no more than a device and stages; a prediction has all of it.
    for (const char* part : {"model", "workload", "deployment", "fit", "metrics", "calibration"})
        EXPECT_TRUE(report.contains(part)) << part;
    const std::pair<const char*, Json> changes[] = {
        {"/schema", "roofline.report/2"},
        {"/stages/0/bound", "luck"},
        {"/stages/0/stage", 1},
        {"/stages/1/time_s/limit", nullptr},
        {"/stages/1/time_s/expected_low", -1e-9},
        {"/stages/1/bytes/memory", "many"},
        {"/stages/0/records/0/kind", "matmul"},
        {"/stages/0/records/0/group", "layer"},
        {"/stages/0/records/0/count", -1},
        {"/stages/0/records/0/dtype", "bf17"},
        {"/stages/0/records/0/speed", 1},
        {"/stages/0/groups/0/share", nullptr},
        {"/deployment/profile", 3},
        {"/calibration/0/share", "most"},
        {"/calibration/0/source", nullptr},
        {"/fit/fits", 1},
        {"/fit/max_batch", -1},
        {"/metrics/ttft_s", 0.5},
        {"/notes", "none"},
        {"/extra", 1},
    };
    for (const auto& [place, value] : changes) {
        Json changed = report;
        changed[Json::json_pointer(place)] = value;
        EXPECT_EQ(schema.violations(changed).size(), 1U) << place << ": " << joined(schema.violations(changed));
    }
    for (const char* part : {"run", "device", "stages", "notes"}) {
        Json changed = report;
        changed.erase(part);
        EXPECT_EQ(schema.violations(changed), std::vector<std::string>{std::string("$: ") + part + " is missing"});
    }
}

// ---- what the program writes ----

TEST(JsonOutput, PredictFollowsTheReportSchemaForEveryKindOfModel) {
    const Schema schema = Schema::published("report.schema.json");
    for (const char* model : {"llama-3.1-8b", "gpt2", "gemma-2-9b", "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3",
                              "gpt-oss-120b", "qwen3.5-397b-a17b", "mamba2-2.7b", "jamba-1.5-large",
                              "qwen3-next-80b-a3b", "nemotron-h-56b", "deepseek-v3.2", "llama-4-scout", "phi-3-mini"}) {
        expect_valid(schema, {"predict", model, "b200-sxm", "--set", "memory.capacity=100TB"});
    }
}

TEST(JsonOutput, PredictFollowsTheReportSchemaForEveryDevice) {
    const Schema schema = Schema::published("report.schema.json");
    std::size_t devices = 0;
    for (const auto& file : std::filesystem::directory_iterator(ROOFLINE_SOURCE_DIR "/data/devices")) {
        if (file.path().extension() != ".json") continue;
        expect_valid(schema, {"predict", "gpt2", file.path().stem().string(), "--set", "memory.capacity=1TB"});
        ++devices;
    }
    EXPECT_GT(devices, 50U);
}

TEST(JsonOutput, PredictFollowsTheReportSchemaForEveryKindOfWork) {
    const Schema schema = Schema::published("report.schema.json");
    const Arguments kinds[] = {
        {"--stage", "prefill"},     {"--stage", "decode", "--batch", "8", "--context", "100000"},
        {"--stage", "mixed"},       {"--chunk", "512", "--batch", "8"},
        {"--generate", "1"},        {"--cached-prefix", "4096"},
        {"--dtype", "fp8"},         {"--weight-dtype", "q4_k_m", "--kv-cache-dtype", "fp8"},
        {"--attention", "unfused"}, {"--set", "memory.bandwidth=2x", "--set", "num_hidden_layers=3"},
        {"--profile", "eager"},     {"--profile", "llama.cpp", "--weight-dtype", "q4_k_m"},
    };
    for (const Arguments& kind : kinds) {
        Arguments arguments = {"predict", "llama-3.1-8b", "h200-sxm"};
        arguments.insert(arguments.end(), kind.begin(), kind.end());
        expect_valid(schema, arguments);
    }
    expect_valid(schema, {"predict", "deepseek-v3", "h100-sxm", "--mla", "expanded", "--set", "memory.capacity=1TB"});
    expect_valid(schema, {"predict", "--params", "8e9", "h100-sxm"});
    expect_valid(schema, {"predict", "--params", "30e9", "--device", "h100-sxm", "--dtype", "fp16"});
}

TEST(JsonOutput, PredictFollowsTheReportSchemaWhenTheModelDoesNotFit) {
    const Schema schema = Schema::published("report.schema.json");
    expect_valid(schema, {"predict", "llama-3.1-405b", "h100-sxm"}, 1);
    const Json report = parsed(run({"predict", "llama-3.1-405b", "h100-sxm", "--format", "json"}).out);
    EXPECT_EQ(report["fit"]["fits"], false);
    EXPECT_EQ(report["fit"]["max_batch"], 0.0);
}

TEST(JsonOutput, PredictHasTheStagesThatWereAskedFor) {
    const auto stages = [](const Arguments& more) {
        Arguments arguments = {"predict", "llama-3.1-8b", "h100-sxm", "--format", "json"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        std::string names;
        const Json report = parsed(run(arguments).out);
        for (const Json& stage : report["stages"])
            names += (names.empty() ? "" : " ") + stage["stage"].get<std::string>();
        return names;
    };
    EXPECT_EQ(stages({}), "prefill decode");
    EXPECT_EQ(stages({"--stage", "prefill"}), "prefill");
    EXPECT_EQ(stages({"--stage", "decode"}), "decode");
    EXPECT_EQ(stages({"--stage", "mixed"}), "mixed");
    EXPECT_EQ(stages({"--chunk", "256"}), "mixed decode");
}

TEST(JsonOutput, ThePartsOfAStageAddUpToTheStage) {
    for (const char* model : {"llama-3.1-8b", "deepseek-v3", "mamba2-2.7b", "gpt-oss-120b"}) {
        const Json report = parsed(run({"predict", model, "h100-sxm", "--batch", "4", "--format", "json"}).out);
        for (const Json& stage : report["stages"]) {
            SCOPED_TRACE(std::string(model) + " " + stage["stage"].get<std::string>());
            double flops = 0.0;
            double bytes = 0.0;
            double attainable = 0.0;
            double share = 0.0;
            for (const Json& record : stage["records"]) {
                flops += record["flops"].get<double>();
                bytes += record["bytes"]["memory"].get<double>();
                attainable += record["time_s"]["attainable"].get<double>();
                share += record["share"].get<double>();
                EXPECT_LE(record["time_s"]["limit"].get<double>(), record["time_s"]["attainable"].get<double>());
            }
            EXPECT_NEAR(flops / stage["flops"].get<double>(), 1.0, 1e-9);
            EXPECT_NEAR(bytes / stage["bytes"]["memory"].get<double>(), 1.0, 1e-9);
            EXPECT_NEAR(attainable / stage["time_s"]["attainable"].get<double>(), 1.0, 1e-9);
            EXPECT_NEAR(share, 1.0, 1e-9);
            EXPECT_LE(stage["time_s"]["limit"].get<double>(), stage["time_s"]["attainable"].get<double>());
        }
    }
}

TEST(JsonOutput, OpFollowsItsSchemaForEveryKindOfOperator) {
    const Schema schema = Schema::published("op.schema.json");
    expect_valid(schema, {"op", "--flops", "1e12", "--bytes", "1e9"});
    expect_valid(schema, {"op", "gemm", "--m", "1", "--n", "4096", "--k", "4096"});
    for (const char* traffic : {"all", "loads", "weights"})
        expect_valid(schema,
                     {"op", "gemm", "--m", "3", "--n", "1", "--k", "2", "--flops", "exact", "--traffic", traffic});
    expect_valid(schema, {"op", "gemm", "--m", "64", "--n", "512", "--k", "512", "--dtype", "fp8", "--device", "a100"});
    expect_valid(schema, {"op", "gemm", "--m", "64", "--n", "512", "--k", "512", "--weight-dtype", "q4_k_m"});
    expect_valid(schema, {"op", "attention", "--kv-len", "4096", "--heads", "32", "--kv-heads", "8"});
    expect_valid(schema, {"op", "attention", "--q-len", "512", "--kv-len", "512", "--heads", "32", "--full",
                          "--unfused", "--kv-cache-dtype", "fp8"});
    expect_valid(schema, {"op", "gemm", "--m", "1", "--n", "1", "--k", "1", "--dtype", "fp64", "--device", "groq-lpu"});
    expect_valid(schema, {"op", "gemm", "--m", "64", "--n", "512", "--k", "512", "--profile", "llama.cpp"});
}

TEST(JsonOutput, OpSaysWhereItsExpectedTimeComesFromOrThatItHasNone) {
    const Json known = parsed(run({"op", "gemm", "--m", "1", "--n", "4096", "--k", "4096", "--format", "json"}).out);
    EXPECT_TRUE(known["calibration"].is_string()) << known.dump();
    EXPECT_LE(known["time_s"]["expected_low"], known["time_s"]["expected"]);
    EXPECT_GE(known["time_s"]["expected_high"], known["time_s"]["expected"]);
    const Json bare = parsed(run({"op", "--flops", "1e12", "--bytes", "1e9", "--format", "json"}).out);
    EXPECT_TRUE(bare["calibration"].is_null()) << "nobody knows which kernel it is";
    EXPECT_EQ(bare["time_s"]["expected"], bare["time_s"]["attainable"]);
}

TEST(JsonOutput, TheSharesOfTheCalibrationAddUpToOneButForTheSmallest) {
    for (const char* device : {"h200-sxm", "h100-sxm", "mi300x", "tpu-v4", "m2-ultra"}) {
        const Json report = parsed(run({"predict", "llama-3.1-8b", device, "--format", "json"}).out);
        double sum = 0.0;
        double before = 1.0;
        for (const Json& part : report["calibration"]) {
            sum += part["share"].get<double>();
            EXPECT_LE(part["share"].get<double>(), before) << device << ": largest first";
            before = part["share"].get<double>();
        }
        EXPECT_GT(sum, 0.95) << device;
        EXPECT_LT(sum, 1.0 + 1e-9) << device;
    }
}

// ---- measured tables and what is made of them ----

// Rows of each kind, some of them refused: kernels in one file, whole models in another.
constexpr const char* some_kernels =
    "gpu,op,dtype,m,n,k,batch,q_len,kv_len,heads,kv_heads,head_dim,time_us,framework,kernel,weather\n"
    "h200-sxm,gemm,bf16,1,4096,4096,,,,,,,13,pytorch,cublas,fine\n"
    "h200-sxm,gemm,fp8,64,4096,4096,,,,,,,12,vllm,,fine\n"
    "l4,gemm,bf16,1,8192,8192,,,,,,,520,pytorch,cublas,rain\n"
    "h200-sxm,attention_decode,bf16,,,,8,1,4096,32,8,128,60,pytorch,cudnn_attention,fine\n"
    "h200-sxm,gemm,bf16,0,4096,4096,,,,,,,13,pytorch,cublas,fine\n"
    "warp-drive,gemm,bf16,1,4096,4096,,,,,,,13,pytorch,cublas,fine\n"
    "h200-sxm,conv3d,,1,4096,4096,,,,,,,13,pytorch,cublas,fine\n";
constexpr const char* some_steps =
    "gpu,model,dtype,execution,attention,stage,batch,tokens,context,time_ms,no_graph_ms\n"
    "h200-sxm,llama-3.1-8b,bf16,graph+fused,cudnn_attention,decode,1,1,1024,4.4,9\n"
    "h200-sxm,llama-3.1-8b,bf16,graph+fused,cudnn_attention,prefill,1,1024,1024,30,31\n"
    "h200-sxm,llama-3.1-8b,bf16,graph+fused,cudnn_attention,warmup,1,1024,1024,30,31\n";

TEST(JsonOutput, ValidateFollowsItsSchemaForEveryKindOfTable) {
    const TemporaryFolder folder;
    const Schema schema = Schema::published("validate.schema.json");
    const std::string kernels = folder.write("kernels.csv", some_kernels);
    const std::string steps = folder.write("steps.csv", some_steps);
    expect_valid(schema, {"validate", "--data", kernels});
    expect_valid(schema, {"validate", "--data", kernels, "--per-row"});
    expect_valid(schema, {"validate", "--data", steps, "--per-row"});
    expect_valid(schema, {"validate", folder.path(), "--per-row"});
    // What other verbs wrote.
    expect_valid(schema,
                 {"validate", ROOFLINE_SOURCE_DIR "/data/measured/bench/h200-sxm_llama-3.1-8b.json", "--per-row"});
    expect_valid(schema, {"validate", ROOFLINE_SOURCE_DIR "/data/measured/ceilings/h200-sxm.json", "--per-row"});
    const std::string nothing =
        folder.write("nothing/none.csv", "gpu,op,dtype,m,n,k,time_us\nh200-sxm,gemm,,1,1,1,0\n");
    expect_valid(schema, {"validate", nothing, "--per-row"}, 1);

    const Json answer = parsed(run({"validate", kernels, steps, "--per-row", "--format", "json"}).out);
    EXPECT_EQ(answer["rows"].size(), 8U);
    EXPECT_EQ(answer["refused"].size(), 4U);
    EXPECT_EQ(answer["notes"].size(), 1U) << "the weather";
    for (const auto& [place, value] : {std::pair{"/schema", Json("roofline.validate/2")},
                                       {"/groups/0/rows", Json(-1)},
                                       {"/groups/0/mape/expected", Json("small")},
                                       {"/groups/0/coverage", Json(-0.5)},
                                       {"/rows/0/time_s/measured", Json(nullptr)},
                                       {"/rows/0/stage", Json("warmup")},
                                       {"/rows/0/line", Json(0)},
                                       {"/refused/0/rows", Json(0)},
                                       {"/notes", Json("none")},
                                       {"/extra", Json(1)}}) {
        Json changed = answer;
        changed[Json::json_pointer(place)] = value;
        EXPECT_EQ(schema.violations(changed).size(), 1U) << place << ": " << joined(schema.violations(changed));
    }
}

TEST(JsonOutput, WhatCalibrateWritesFollowsTheCalibrationSchema) {
    const TemporaryFolder folder;
    std::string table = "gpu,op,dtype,m,n,k,time_us\n";
    for (const int m : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512})
        table += "h200-sxm,gemm,bf16," + std::to_string(m) + ",4096,4096," + std::to_string(15 + m / 4) + "\n";
    const std::string file = folder.path("own.json");
    const Answer answer = run({"calibrate", folder.write("t.csv", table), "-o", file});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    const Json own = parsed(text_of_file(file));
    const auto found = Schema::published("calibration.schema.json").violations(own);
    EXPECT_TRUE(found.empty()) << joined(found);
    EXPECT_GE(own["fits"].size(), 3U) << "the device, its generation, all devices";
}

// ---- reports with an engine named, lists, files ----

/// A report as the program would write it with an engine named.
predict::Scenario scenario_of(std::string_view model, std::string_view device, std::string_view engine, double batch) {
    const auto file = io::builtin_model(model);
    predict::Scenario scenario;
    scenario.model_name = model;
    scenario.model_title = model;
    scenario.kv_type = "bf16";
    scenario.longest_context = file->architecture.longest_context;
    scenario.lowered = model::lower(file->architecture, file->types);
    scenario.device = *io::builtin_device(device);
    scenario.workload.batch = batch;
    scenario.memory.emplace().rules = *io::builtin_engine(engine);
    return scenario;
}

TEST(EngineReports, FollowTheSchemaWhetherItFitsOrNot) {
    const Schema schema = Schema::published("report.schema.json");
    for (const char* engine : {"none", "vllm", "vllm-0.19", "vllm-0.16", "sglang", "trtllm"}) {
        for (const char* model : {"llama-3.1-8b", "gpt-oss-120b", "qwen3-next-80b-a3b", "llama-3.1-405b"}) {
            const predict::Scenario scenario = scenario_of(model, "h100-sxm", engine, 4.0);
            const predict::Report report = predict::predict(scenario);
            const auto json = parsed(io::report_text(scenario, report, {"roofline", "2026-01-01T00:00:00Z"}));
            const auto found = schema.violations(json);
            EXPECT_TRUE(found.empty()) << engine << " " << model << "\n" << joined(found);
            EXPECT_EQ(json["fit"].contains("engine"), std::string(engine) != "none") << engine;
            EXPECT_EQ(json["fit"].contains("remedies"), !json["fit"]["fits"].get<bool>()) << engine << " " << model;
            const std::string text = render::predict_text(scenario, report, {});
            EXPECT_EQ(text.find("  engine   ") != std::string::npos, std::string(engine) != "none") << text;
        }
    }
}

TEST(JsonOutput, TheListsOfDevicesAndModelsFollowTheirSchemas) {
    expect_valid(Schema::published("devices.schema.json"), {"devices"});
    expect_valid(Schema::published("devices.schema.json"), {"devices", "--vendor", "AMD"});
    expect_valid(Schema::published("models.schema.json"), {"models"});
    const Json devices = parsed(run({"devices", "--format", "json"}).out)["devices"];
    EXPECT_GT(devices.size(), 50U);
    const Json models = parsed(run({"models", "--format", "json"}).out)["models"];
    EXPECT_GT(models.size(), 50U);
}

TEST(JsonOutput, OneDeviceAndOneModelFollowTheirSchemas) {
    const Schema device = Schema::published("device.schema.json");
    for (const char* name : {"h100-sxm", "h200-sxm", "tpu-v4", "gb10", "m2-ultra", "xeon-8480", "groq-lpu"})
        expect_valid(device, {"devices", "show", name});
    const Schema model = Schema::published("model_summary.schema.json");
    for (const char* name : {"llama-3.1-8b", "deepseek-v3", "gpt-oss-120b", "mamba2-2.7b", "gpt2"})
        expect_valid(model, {"models", "show", name});
}

TEST(JsonOutput, WhatDevicesShowWritesIsADeviceFileThatPredictsTheSame) {
    const TemporaryFolder folder;
    Json shown = parsed(run({"devices", "show", "h200-sxm", "--format", "json"}).out);
    shown.erase("ridge");  // computed, not a figure
    const std::string file = folder.write("mine.json", shown.dump());
    Json ours = parsed(run({"predict", "gpt2", file, "--format", "json"}).out);
    Json built_in = parsed(run({"predict", "gpt2", "h200-sxm", "--format", "json"}).out);
    ours.erase("run");
    built_in.erase("run");
    EXPECT_EQ(ours, built_in);
}

TEST(JsonOutput, TheSameRunWritesTheSameReport) {
    const Arguments arguments = {"predict", "deepseek-v3", "h200-sxm", "--batch", "32", "--format", "json"};
    Json one = parsed(run(arguments).out);
    Json two = parsed(run(arguments).out);
    EXPECT_EQ(one["run"]["command"], typed(arguments));
    one["run"].erase("time");
    two["run"].erase("time");
    EXPECT_EQ(one, two);
}

TEST(JsonOutput, GoesToTheFileThatWasNamedAndNowhereElse) {
    const TemporaryFolder folder;
    const std::string file = folder.path("report.json");
    const Answer answer = run({"predict", "gpt2", "h100-sxm", "--format", "json", "-o", file});
    EXPECT_EQ(answer.exit_code, 0);
    EXPECT_EQ(answer.out + answer.err, "");
    const auto found = Schema::published("report.schema.json").violations(parsed(text_of_file(file)));
    EXPECT_TRUE(found.empty()) << joined(found);
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
    EXPECT_EQ(files, 1U);
}

}  // namespace
}  // namespace roofline::cli::testing

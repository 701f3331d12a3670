// The CUDA side's requests and answers, with a plugin made of paper.
#include "roofline/bench/cuda_backend.hpp"

#include <map>

#include <gtest/gtest.h>

#include "bench/scenarios.hpp"
#include "roofline/bench/shape.hpp"

namespace roofline::bench {
namespace {

using io::Json;

Task gate_up() {
    Task task;
    task.name = "layers.ffn.gate_up";
    task.kind = TaskKind::product;
    task.m = 1;
    task.n = 28672;
    task.k = 4096;
    return task;
}

Task core() {
    Task task;
    task.name = "layers.attention.core";
    task.kind = TaskKind::attention;
    task.batch = 8;
    task.tokens = 1;
    task.context = 1024;
    task.query_heads = 32;
    task.kv_heads = 8;
    task.head_dim = 128;
    return task;
}

TEST(CudaTasks, AreAskedForAsThePluginReadsThem) {
    std::vector<Json> seen;
    const CudaCall call = [&](const Json& request) -> Result<Json> {
        seen.push_back(request);
        return Json{{"results", Json::array()}};
    };
    CudaPlace place;
    place.device = 1;
    const auto outcomes = run_cuda_tasks(call, place, {gate_up(), core()});
    ASSERT_TRUE(outcomes);
    ASSERT_EQ(seen.size(), 2U);
    for (const Json& request : seen) {
        EXPECT_EQ(request["do"], "bench");
        EXPECT_EQ(request["device"], 1);
        EXPECT_EQ(request["tasks"].size(), 1U);
    }
    EXPECT_EQ(seen[0]["tasks"][0], Json::parse(R"({"name": "layers.ffn.gate_up", "kind": "gemm", "m": 1, "n": 28672,
        "k": 4096, "weight_dtype": "bf16", "activation_dtype": "bf16"})"));
    EXPECT_EQ(seen[1]["tasks"][0],
              Json::parse(R"({"name": "layers.attention.core", "kind": "attention", "stage": "decode",
        "batch": 8, "tokens": 1, "context": 1024, "query_heads": 32, "kv_heads": 8, "head_dim": 128,
        "kv_dtype": "bf16"})"));
    EXPECT_FALSE((*outcomes)[0][0].measured()) << "left out of the answer";
}

TEST(CudaPlugins, AreBackendsOfTasksAndNotOfSteps) {
    std::vector<Json> seen;
    const CudaCall call = [&](const Json& request) -> Result<Json> {
        seen.push_back(request);
        return Json::parse(R"({"results": [], "plugins": [{"name": "plain", "description": "a warp a row"}]})");
    };
    CudaPlace place;
    place.backends = {"own"};
    place.plugins = {"./plain.so"};
    const auto plugins = load_cuda_plugins(call, place);
    ASSERT_TRUE(plugins);
    ASSERT_EQ(plugins->size(), 1U);
    EXPECT_EQ(plugins->front().description, "a warp a row");
    EXPECT_TRUE(seen[0]["tasks"].empty());
    place.plugin_names = {plugins->front().name};
    ASSERT_TRUE(run_cuda_tasks(call, place, {gate_up()}));
    EXPECT_EQ(seen[1]["backends"], Json::parse(R"(["own", "plain"])"));
    EXPECT_EQ(seen[1]["plugins"], Json::parse(R"(["./plain.so"])"));
    const StackShape shape;
    ASSERT_TRUE(run_cuda_step(call, place, shape, {.prefill = false, .batch = 1, .tokens = 1, .context = 1}));
    EXPECT_EQ(seen[2]["backends"], Json::parse(R"(["own"])"));
}

TEST(CudaPlugins, ThatDoNotLoadAreBadInput) {
    CudaPlace place;
    place.plugins = {"./none.so"};
    const auto plugins = load_cuda_plugins(
        [](const Json&) -> Result<Json> { return Json{{"problem", "./none.so: cannot open"}}; }, place);
    ASSERT_FALSE(plugins);
    EXPECT_FALSE(plugins.error().unavailable);
    EXPECT_NE(plugins.error().text.find("./none.so"), std::string::npos);
}

TEST(CudaTasks, StopBetweenTwoTasks) {
    int asked = 0;
    CudaPlace place;
    place.stopped = [&] { return asked == 1; };
    const auto outcomes = run_cuda_tasks(
        [&](const Json&) -> Result<Json> {
            ++asked;
            return Json{{"results", Json::array()}};
        },
        place, {gate_up(), core(), gate_up()});
    ASSERT_TRUE(outcomes);
    EXPECT_EQ(asked, 1);
    ASSERT_EQ(outcomes->size(), 3U);
    EXPECT_TRUE((*outcomes)[1].empty());
    EXPECT_TRUE((*outcomes)[2].empty());
}

TEST(CudaTasks, AWrongKernelAndARefusedOneHaveNoTime) {
    const CudaCall call = [&](const Json&) -> Result<Json> {
        return Json::parse(R"({"results": [
            {"name": "layers.ffn.gate_up", "backend": "own", "time_s": 5.5e-5, "low_s": 5.4e-5, "high_s": 6e-5,
             "flops": 234881024, "bytes": 234881024, "error": 0.001, "tolerance": 0.01, "repetitions": 100, "buffers": 1},
            {"name": "layers.ffn.gate_up", "backend": "cublaslt", "time_s": 1e-9, "error": 0.5, "tolerance": 0.01},
            {"name": "layers.ffn.gate_up", "backend": "cudnn", "problem": "attention only"}]})");
    };
    const auto outcomes = run_cuda_tasks(call, {}, {gate_up()});
    ASSERT_TRUE(outcomes);
    ASSERT_EQ((*outcomes)[0].size(), 3U);
    EXPECT_TRUE((*outcomes)[0][0].measured());
    EXPECT_DOUBLE_EQ((*outcomes)[0][0].timing.median, 5.5e-5);
    EXPECT_FALSE((*outcomes)[0][1].measured());
    EXPECT_EQ((*outcomes)[0][2].problem, "attention only");
}

TEST(CudaTasks, RoutedExpertsAreToldFromOneProductOfAllRows) {
    Task experts = gate_up();
    EXPECT_FALSE(task_json(experts).contains("experts"));
    experts.m = 16;
    experts.experts = 8;
    EXPECT_EQ(task_json(experts)["m"], 16);
    EXPECT_EQ(task_json(experts)["experts"], 8);
    EXPECT_EQ(task_json(experts)["settled"], false);
    experts.settled = true;
    EXPECT_EQ(task_json(experts)["settled"], true);
}

TEST(CudaTasks, WindowsAndSinksAreToldWhereThereAreAny) {
    Task attention = core();
    EXPECT_FALSE(task_json(attention).contains("window"));
    EXPECT_FALSE(task_json(attention).contains("sinks"));
    attention.prefill = true;
    attention.tokens = 1024;
    attention.window = 128;
    attention.sinks = true;
    EXPECT_EQ(task_json(attention)["window"], 128);
    EXPECT_EQ(task_json(attention)["sinks"], true);
}

TEST(CudaTasks, ProductsOfHeadsSayTheirWidths) {
    Task absorption;
    absorption.name = "layers[moe].attention.kv_up";
    absorption.kind = TaskKind::absorption;
    absorption.rows = 5;
    absorption.query_heads = 16;
    absorption.head_dim = 128;
    absorption.value_dim = 192;
    absorption.k = 512;
    absorption.weights = WeightFormat::int8;
    absorption.width = 16 * 192;
    EXPECT_EQ(task_json(absorption), Json::parse(R"({"name": "layers[moe].attention.kv_up", "kind": "absorption",
        "rows": 5, "heads": 16, "head_dim": 128, "value_dim": 192, "k": 512, "weight_dtype": "int8"})"));
}

TEST(CudaTasks, SumsOfThreeSayRowsAndWidth) {
    Task sum;
    sum.name = "layers.ffn.residual";
    sum.kind = TaskKind::add_two;
    sum.rows = 128;
    sum.width = 8192;
    const Json json = task_json(sum);
    EXPECT_EQ(json["kind"], "add_two");
    EXPECT_EQ(json["rows"], 128);
    EXPECT_EQ(json["width"], 8192);
}

TEST(CudaTasks, AnswersThatMakeNoSenseAreOneClearLine) {
    for (const char* text :
         {R"([])", R"({"results": 3})", R"({"results": [{"backend": "own"}]})",
          R"({"results": [{"name": "a", "backend": "own", "time_s": -1}]})",
          R"({"results": [{"name": "a", "backend": "own", "time_s": 2, "low_s": 3, "high_s": 4}]})"}) {
        const auto outcomes =
            run_cuda_tasks([&](const Json&) -> Result<Json> { return Json::parse(text); }, {}, {gate_up()});
        ASSERT_FALSE(outcomes) << text;
        EXPECT_EQ(outcomes.error().text.find('\n'), std::string::npos);
        EXPECT_NE(outcomes.error().text.find("CUDA plugin"), std::string::npos);
    }
    const auto problem =
        run_cuda_tasks([](const Json&) -> Result<Json> { return Json{{"problem", "out of memory"}}; }, {}, {gate_up()});
    ASSERT_FALSE(problem);
    EXPECT_TRUE(problem.error().unavailable);
}

TEST(CudaStep, IsAskedForKindByKindInTheNamesOfTheShapes) {
    Json seen;
    const CudaCall call = [&](const Json& request) -> Result<Json> {
        seen = request;
        return Json::parse(R"({"results": [{"launch": "graph", "time_s": 0.003}]})");
    };
    // DeepSeek V2 Lite: see shape_test.cpp.
    const auto stack = stack_shape(testing::scenario("deepseek-v2-lite", "int8"));
    ASSERT_TRUE(stack) << stack.error().text;
    const auto steps =
        run_cuda_step(call, {}, *stack, {.prefill = true, .batch = 1, .tokens = 64, .context = 64, .expanded = true});
    ASSERT_TRUE(steps);
    EXPECT_EQ(steps->front().layers, 27);
    EXPECT_EQ(seen["expanded"], true);
    const Json& model = seen["model"];
    EXPECT_EQ(model["hidden"], 2048);
    EXPECT_EQ(model["kv_dtype"], "bf16");
    EXPECT_EQ(model["head"],
              Json::parse(R"({"n": 102400, "k": 2048, "dtype": "bf16", "bias": false, "narrow": false})"));
    ASSERT_EQ(model["kinds"].size(), 2U);
    EXPECT_EQ(model["kinds"][0]["count"], 1);
    EXPECT_EQ(model["kinds"][0]["ffn"]["experts"], 0);
    const Json& mixture = model["kinds"][1];
    EXPECT_EQ(mixture["attention"]["rank"], 512);
    EXPECT_EQ(mixture["attention"]["norm"], "none");
    EXPECT_FALSE(mixture["attention"].contains("qkv"));
    EXPECT_FALSE(mixture["attention"].contains("q_down"));
    EXPECT_EQ(mixture["ffn"]["chosen"], 6);
    EXPECT_EQ(mixture["ffn"]["up"],
              Json::parse(R"({"n": 2816, "k": 2048, "dtype": "int8", "bias": false, "narrow": false})"));
}

TEST(CudaStep, AsksForLayersWithAState) {
    Json seen;
    const CudaCall call = [&](const Json& request) -> Result<Json> {
        seen = request;
        return Json::parse(
            R"({"results": [{"launch": "graph", "time_s": 0.004, "attention_s": 0.002, "ffn_s": 3e-8}]})");
    };
    const auto mamba = stack_shape(testing::scenario("mamba2-2.7b"));
    ASSERT_TRUE(mamba) << mamba.error().text;
    const auto alone = run_cuda_step(call, {}, *mamba, StepWork{});
    ASSERT_TRUE(alone);
    EXPECT_EQ(alone->front().attention, 0.002);
    EXPECT_EQ(alone->front().ffn, 0.0);  // it has none: what was timed is nothing
    const auto stack = stack_shape(testing::scenario("qwen3-next-80b-a3b", "bf16"));
    ASSERT_TRUE(stack) << stack.error().text;
    ASSERT_TRUE(run_cuda_step(call, {}, *stack, StepWork{}));
    const Json& kinds = seen["model"]["kinds"];
    ASSERT_EQ(kinds.size(), 2U);
    EXPECT_EQ(kinds[0]["attention"]["query_heads"], 0);
    EXPECT_EQ(kinds[0]["state"], Json::parse(R"({"heads": 32, "delta": true, "groups": 16, "key_dim": 128,
        "value_dim": 128, "taps": 4, "in": {"n": 12352, "k": 2048, "dtype": "bf16", "bias": false, "narrow": false},
        "out": {"n": 2048, "k": 4096, "dtype": "bf16", "bias": false, "narrow": false}})"));
    EXPECT_FALSE(kinds[1].contains("state"));
    EXPECT_EQ(kinds[1]["attention"]["gated"], true);
}

TEST(CudaTasks, OfLayersWithAStateNameTheirSizes) {
    const auto asked = testing::scenario("qwen3-next-80b-a3b", "bf16", 4.0);
    std::map<std::string, Json> sent;
    for (const auto& planned : plan_tasks(asked, predict::predict(asked).stages[1])) {
        if (planned.task) sent[planned.task->name] = task_json(*planned.task);
    }
    EXPECT_EQ(sent["layers[linear].attention.core_recurrent"],
              Json::parse(R"({"name": "layers[linear].attention.core_recurrent", "kind": "delta_rule", "batch": 4,
                  "tokens": 1, "heads": 32, "kv_heads": 16, "head_dim": 128, "value_dim": 128})"));
    EXPECT_EQ(sent["layers[linear].attention.convolution"],
              Json::parse(R"({"name": "layers[linear].attention.convolution", "kind": "convolution", "batch": 4,
                  "tokens": 1, "width": 8192, "taps": 4})"));
    EXPECT_EQ(sent["layers[linear].attention.gated_norm"]["run"], 128);
    EXPECT_EQ(sent["layers[full].attention.gate"]["kind"], "output_gate");
}

TEST(CudaStep, GraphAndEagerAreReadApart) {
    Json seen;
    const CudaCall call = [&](const Json& request) -> Result<Json> {
        seen = request;
        return Json::parse(R"({"results": [
            {"launch": "graph", "time_s": 0.004, "low_s": 0.0039, "high_s": 0.0041, "attention_s": 0.001, "ffn_s": 0.0025,
             "other_s": 0.0005, "tokens_per_s": 250, "kernels": 300, "bytes": 1e10, "layers_distinct": 32},
            {"launch": "eager", "problem": "no"}]})");
    };
    StackShape shape;
    shape.kinds.emplace_back().count = 32;
    shape.kinds.back().ffn.up = {.n = 28672, .k = 4096};
    shape.hidden = 4096;
    const auto steps = run_cuda_step(call, {}, shape, {.prefill = false, .batch = 1, .tokens = 1, .context = 1024});
    ASSERT_TRUE(steps);
    ASSERT_EQ(steps->size(), 2U);
    EXPECT_EQ(seen["do"], "step");
    EXPECT_EQ(seen["model"]["kinds"][0]["count"], 32);
    EXPECT_EQ((*steps)[0].launch, "graph");
    EXPECT_DOUBLE_EQ((*steps)[0].ffn, 0.0025);
    EXPECT_EQ((*steps)[1].problem, "no");
}

}  // namespace
}  // namespace roofline::bench

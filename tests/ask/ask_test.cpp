// Questions as JSON: the answers are those of the rooms inside, the commands ask the same, and what is wrong is said in
// one line.
#include "roofline/ask/ask.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "roofline/core/patience.hpp"

namespace roofline::ask {
namespace {

using ::testing::HasSubstr;
using Json = io::Json;

Json asked(const Json& question, int exit = 0) {
    Memory memory;
    const Answer answered = answer(question.dump(), memory);
    EXPECT_EQ(answered.exit, exit) << answered.text;
    return Json::parse(answered.text, nullptr, false);
}

std::string refusal(const std::string& question) {
    Memory memory;
    const Answer answered = answer(question, memory);
    EXPECT_EQ(answered.exit, 2);
    const Json json = Json::parse(answered.text, nullptr, false);
    return json.contains("error") ? json["error"]["text"].get<std::string>() : "accepted";
}

TEST(Ask, PredictGivesAReportAndTheCommandThatGivesTheSame) {
    const Json report = asked({{"verb", "predict"},
                               {"options",
                                {{"model", "llama-3.1-8b"},
                                 {"device", "h100-sxm"},
                                 {"batch", 8},
                                 {"kv-cache-dtype", "fp8"},
                                 {"set", {"memory.bandwidth=2x"}}}}});
    EXPECT_EQ(report["schema"], "roofline.report/1");
    EXPECT_EQ(report["stages"][1]["batch"], 8.0);
    EXPECT_EQ(report["run"]["command"],
              "roofline predict llama-3.1-8b h100-sxm --batch 8 --kv-cache-dtype fp8 --set memory.bandwidth=2x");
}

TEST(Ask, WhatIsRememberedChangesNoAnswer) {
    Memory shared;
    for (const char* question : {R"({"verb": "predict", "options": {"model": "gpt2", "device": "l40s"}})",
                                 R"({"verb": "predict", "options": {"model": "gpt2", "device": "l40s",
                                     "set": ["memory.bandwidth=2x", "n_layer=3"]}})",
                                 R"({"verb": "predict", "options": {"model": "nobody", "device": "l40s"}})",
                                 R"({"verb": "device", "options": {"device": "l40s"}})", R"({"verb": "models"})",
                                 R"({"verb": "devices"})", R"({"verb": "options"})"}) {
        Memory fresh;
        const Answer alone = answer(question, fresh);
        EXPECT_EQ(answer(question, shared).text, alone.text) << question;
        EXPECT_EQ(answer(question, shared).text, alone.text) << question;
    }
}

TEST(Ask, OtherNamesOfAnOptionMeanTheSame) {
    const Json options = {{"model", "gpt2"}, {"device", "l40s"}};
    Json other = options;
    other["input-len"] = "77";
    EXPECT_EQ(asked({{"verb", "predict"}, {"options", other}})["workload"]["prompt"], 77.0);
}

TEST(Ask, WhatDoesNotFitHasNoAnswerButAReport) {
    const Json report =
        asked({{"verb", "predict"}, {"options", {{"model", "llama-3.1-405b"}, {"device", "rtx-4090"}}}}, 1);
    EXPECT_EQ(report["fit"]["fits"], false);
}

TEST(Ask, AModelMayComeWithTheQuestion) {
    const char* config = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 256, "torch_dtype": "bfloat16"})";
    const Json report = asked({{"verb", "predict"},
                               {"options", {{"model", "mine/config.json"}, {"device", "h100-sxm"}}},
                               {"files", {{"mine/config.json", config}}}});
    EXPECT_EQ(report["model"]["name"], "mine");
    // Embedding 256 x 64, head the same; a layer: q 64 x 64, k and v 32 x 64, o 64 x 64, three of 128 x 64, two norms
    // of 64; a last norm.
    const double layer = 64 * 64 + 2 * 32 * 64 + 64 * 64 + 3 * 128 * 64 + 2 * 64;
    EXPECT_EQ(report["model"]["parameters"], 2 * 256 * 64 + 2 * layer + 64);
}

TEST(Ask, ASweepGivesARowForEachPoint) {
    const Json sweep =
        asked({{"verb", "sweep"},
               {"options", {{"model", "gpt2"}, {"device", "h100-sxm"}, {"batch", "1,2,4"}, {"prompt", "64"}}}});
    ASSERT_EQ(sweep["rows"].size(), 3U);
    EXPECT_EQ(sweep["rows"][2]["batch"], 4);
    EXPECT_GT(sweep["rows"][0]["decode_expected_s"], 0.0);
}

TEST(Ask, AdviceAndPlansAreAnswered) {
    const Json advice = asked({{"verb", "advise"}, {"options", {{"model", "gpt2"}, {"device", "l40s"}}}});
    EXPECT_EQ(advice["schema"], "roofline.advise/1");
    const Json plan = asked(
        {{"verb", "plan"}, {"options", {{"model", "llama-3.1-8b"}, {"devices", "h100-sxm:2"}, {"tpot", "50ms"}}}});
    EXPECT_EQ(plan["plans"].size(), 1U);
}

TEST(Ask, SaysWhatItTakes) {
    const Json options = asked({{"verb", "options"}});
    bool found = false;
    for (const Json& option : options["verbs"]["predict"]) {
        if (option["name"] != "attention") continue;
        found = true;
        EXPECT_EQ(option["choices"], Json({"flash", "unfused"}));
        EXPECT_EQ(option["default"], "flash");
    }
    EXPECT_TRUE(found);
}

TEST(Ask, AReportIsReadBack) {
    Memory memory;
    const Answer report = answer(R"({"verb": "predict", "options": {"model": "gpt2", "device": "l40s"}})", memory);
    const Json account =
        asked({{"verb", "account"}, {"options", {{"report", "r.json"}}}, {"files", {{"r.json", report.text}}}});
    EXPECT_EQ(account["stages"].size(), 2U);
    EXPECT_EQ(account["device"]["name"], "l40s");
}

TEST(Ask, SaysInOneLineWhatIsWrong) {
    EXPECT_THAT(refusal("{"), HasSubstr("question"));
    EXPECT_THAT(refusal("[1]"), HasSubstr("expected an object"));
    EXPECT_THAT(refusal(R"({"verb": "guess"})"), HasSubstr("found \"guess\", expected one of predict"));
    EXPECT_THAT(refusal(R"({"verb": "predict", "options": {"bach": 3}})"), HasSubstr("\"bach\" is not an option"));
    EXPECT_THAT(refusal(R"({"verb": "predict", "options": {"batch": [1]}})"), HasSubstr("options.batch: found a list"));
    EXPECT_THAT(refusal(R"({"verb": "predict", "options": {"attention": "magic"}})"),
                HasSubstr("--attention: found \"magic\", expected flash, unfused"));
    EXPECT_THAT(refusal(R"({"verb": "predict", "options": {"model": "gpt2", "device": "l40s", "simulate": "yes"}})"),
                HasSubstr("expected true or false"));
    EXPECT_THAT(refusal(R"({"verb": "predict", "shell": 1})"), HasSubstr("\"shell\" is not a key"));
    EXPECT_THAT(refusal(R"({"verb": "predict", "binaries": {"a.gguf": {"base64": "!!", "size": 9}}})"),
                HasSubstr("is not base64"));
}

TEST(Ask, NothingOfTheMachineIsReachable) {
    EXPECT_THAT(refusal(R"({"verb": "predict", "options": {"model": "/etc/passwd", "device": "l40s"}})"),
                HasSubstr("/etc/passwd"));
    EXPECT_THAT(
        refusal(R"({"verb": "predict", "options": {"model": "gpt2", "device": "l40s", "calibration": "/etc/passwd"}})"),
        HasSubstr("no such file"));
}

TEST(Ask, AGgufThatIsCutShortSaysHowMuchItNeeds) {
    // "GGUF", version 3, one tensor, one pair of metadata, and then nothing.
    Memory memory;
    const Answer answered = answer(
        R"({"verb": "model", "options": {"model": "a.gguf"}, "binaries": {"a.gguf": {"base64": "R0dVRgMAAAABAAAAAAAAAAEAAAAAAAAA", "size": 1000000}}})",
        memory);
    EXPECT_EQ(answered.exit, 2);
    const Json json = Json::parse(answered.text, nullptr, false);
    ASSERT_TRUE(json["error"].contains("needs")) << answered.text;
    EXPECT_GT(json["error"]["needs"], 24);
}

TEST(Ask, EveryLongAnswerEndsWhenPatienceDoes) {
    const Json model = {{"model", "llama-3.1-8b"}, {"device", "h100-sxm"}};
    Json loaded = model;
    Json swept = model;
    loaded.update({{"concurrency", 8}, {"simulate", true}});
    swept.update({{"batch", "1-200"}});
    const std::pair<const char*, Json> questions[] = {{"predict", loaded},
                                                      {"sweep", swept},
                                                      {"advise", model},
                                                      {"plan", {{"model", "llama-3.1-8b"}, {"devices", "h100-sxm:2"}}}};
    for (const auto& [verb, options] : questions) {
        SCOPED_TRACE(verb);
        const Json question = {{"verb", verb}, {"options", options}};
        int looks = 0;
        {
            const Patience endless([&] { return ++looks < 0; });
            asked(question);
        }
        EXPECT_GT(looks, 10);  // it looks while it works, not only at the end
        int fewer = 0;
        const Patience short_one([&] { return ++fewer > 5; });
        EXPECT_EQ(asked(question, stopped)["error"]["text"], "the answer took longer than it may");
        EXPECT_EQ(fewer, 6);  // and does not look again once it is over
    }
}

}  // namespace
}  // namespace roofline::ask

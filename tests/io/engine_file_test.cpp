#include "roofline/io/engine_file.hpp"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "roofline/io/embedded.hpp"
#include "roofline/io/fields.hpp"

namespace roofline::io {
namespace {

using predict::EngineRules;
using ::testing::Contains;
using ::testing::ElementsAre;

Json smallest() {
    return Json::parse(R"({
        "schema": "roofline.engine/1", "name": "toy", "title": "A toy", "versions": "1 to 2",
        "fraction": {"of": "free_before", "utilisation": {"value": 0.8, "source": "s"}, "inside": ["activations"],
                     "reserve": {"fixed": {"value": 1, "unit": "GiB", "source": "s"},
                                 "per_token": {"value": 2, "unit": "MiB", "source": "s"},
                                 "per_rank": {"value": 3, "unit": "MiB", "source": "s"},
                                 "per_sequence": {"value": 4, "unit": "MiB", "source": "s"},
                                 "least": {"value": 5, "unit": "GiB", "source": "s"},
                                 "least_above": {"value": 60, "unit": "GiB", "source": "s"}}},
        "steps": [{"from": {"value": 70, "unit": "GiB", "source": "s"}, "tokens": {"value": 8192, "source": "s"},
                   "sequences": {"value": 1024, "source": "s"}, "except": ["a100"]},
                  {"from": {"value": 0, "unit": "GiB", "source": "s"}, "tokens": {"value": 2048, "source": "s"},
                   "sequences": {"value": 256, "source": "s"}}],
        "overhead": {"runtime": {"value": 0.25, "unit": "GiB", "source": "m", "note": "as seen"}},
        "activations": {"sampler": {"value": 15, "unit": "B", "source": "m"}, "streams": {"value": 4, "source": "m"},
                        "expert_workspace": true},
        "cache": {"layout": "tables", "prints": "even", "block": {"value": 16, "source": "s"},
                  "window_ratio": {"value": 0.8, "source": "s"}},
        "sources": {"s": {"kind": "vendor", "title": "the code", "date": "2026"},
                    "m": {"kind": "measured", "title": "a log"}}})");
}

std::string problem_after(const std::function<void(Json&)>& change) {
    Json json = smallest();
    change(json);
    const auto rules = read_engine(json.dump(), "toy.json");
    if (rules) return "no problem";
    EXPECT_EQ(rules.error().text.find('\n'), std::string::npos) << rules.error().text;
    return rules.error().text;
}

TEST(EngineFile, EveryKeyArrives) {
    const auto rules = read_engine(smallest().dump(), "toy.json");
    ASSERT_TRUE(rules.has_value()) << rules.error().text;
    EXPECT_EQ(rules->name, "toy");
    EXPECT_EQ(rules->versions, "1 to 2");
    EXPECT_EQ(rules->fraction_of, EngineRules::FractionOf::free_before);
    EXPECT_EQ(rules->utilisation.value, 0.8);
    EXPECT_TRUE(rules->activations_inside);
    EXPECT_FALSE(rules->graphs_inside);
    EXPECT_EQ(rules->reserve->fixed.value, 1073741824.0);
    EXPECT_EQ(rules->reserve->per_token.value, 2097152.0);
    EXPECT_EQ(rules->reserve->per_rank.value, 3.0 * 1048576.0);
    EXPECT_EQ(rules->reserve->per_sequence.value, 4.0 * 1048576.0);
    EXPECT_EQ(rules->reserve->least.value, 5.0 * 1073741824.0);
    EXPECT_EQ(rules->reserve->least_above.value, 60.0 * 1073741824.0);
    ASSERT_EQ(rules->steps.size(), 2U);
    EXPECT_EQ(rules->steps[0].tokens.value, 8192.0);
    EXPECT_THAT(rules->steps[0].except, ElementsAre("a100"));
    EXPECT_EQ(rules->steps[1].sequences.value, 256.0);
    EXPECT_EQ(rules->runtime.value, 0.25 * 1073741824.0);
    EXPECT_EQ(rules->runtime.note, "as seen");
    EXPECT_EQ(rules->sampler.value, 15.0);
    EXPECT_EQ(rules->streams.value, 4.0);
    EXPECT_TRUE(rules->expert_workspace);
    EXPECT_EQ(rules->layout, EngineRules::Layout::tables);
    EXPECT_EQ(rules->prints, EngineRules::Prints::even);
    EXPECT_EQ(rules->block.value, 16.0);
    EXPECT_EQ(rules->window_ratio->value, 0.8);
    EXPECT_FALSE(rules->state_ratio.has_value());
    EXPECT_EQ(rules->sources.at("m").kind, SourceKind::measured);
}

TEST(EngineFile, ProblemsNameThePlaceAndWhatWasExpected) {
    EXPECT_EQ(problem_after([](Json& json) { json["schema"] = "x"; }),
              "toy.json: schema is \"x\", expected \"roofline.engine/1\"");
    EXPECT_EQ(problem_after([](Json& json) { json["fraction"]["of"] = "half"; }),
              "toy.json: fraction.of is \"half\", expected one of total, free_before, free_after");
    EXPECT_EQ(problem_after([](Json& json) { json["fraction"]["utilisation"]["value"] = 1.5; }),
              "toy.json: fraction.utilisation is 1.5, expected more than 0 and at most 1");
    EXPECT_EQ(problem_after([](Json& json) { json["cache"]["block"]["value"] = 0; }),
              "toy.json: cache.block is 0, expected a whole number of at least 1");
    EXPECT_EQ(problem_after([](Json& json) { json["cache"]["block"]["source"] = "nobody"; }),
              "toy.json: cache.block.source is \"nobody\", which the file's \"sources\" do not list");
    EXPECT_EQ(problem_after([](Json& json) { json["overhead"]["runtime"]["unit"] = "apples"; }),
              "toy.json: overhead.runtime.unit is \"apples\", expected B, MB, GB, TB, MiB or GiB");
    EXPECT_EQ(problem_after([](Json& json) { json["overhead"]["runtime"]["value"] = -1; }),
              "toy.json: overhead.runtime.value expected a number that is not negative");
    EXPECT_EQ(problem_after([](Json& json) { json["cache"]["blocks"] = 3; }),
              "toy.json: cache.blocks is not a key that belongs here");
    EXPECT_EQ(problem_after([](Json& json) { json["fraction"]["inside"].push_back("luggage"); }),
              "toy.json: fraction.inside has \"luggage\", expected activations or graphs");
    EXPECT_EQ(problem_after([](Json& json) { json["steps"].erase(1); }),
              "toy.json: steps ends above 0: small devices have no line");
    EXPECT_EQ(problem_after([](Json& json) { json["cache"]["window_ratio"]["value"] = 0; }),
              "toy.json: cache.window_ratio is 0, expected more");
    EXPECT_NE(problem_after([](Json& json) { json.erase("cache"); }), "no problem");
}

TEST(EngineFile, NoiseIsRefusedInOneLine) {
    for (const char* text : {"", "{", "[]", "3", "{\"schema\": \"roofline.engine/1\",}"}) {
        const auto rules = read_engine(text, "toy.json");
        ASSERT_FALSE(rules.has_value()) << text;
        EXPECT_EQ(rules.error().text.find('\n'), std::string::npos);
    }
}

TEST(BuiltinEngines, AreAllReadableAndNamedLikeTheirFiles) {
    for (const char* name : {"none", "vllm", "vllm-0.16", "vllm-0.19", "sglang", "trtllm"})
        EXPECT_THAT(builtin_engine_names(), Contains(name));
    for (const EmbeddedFile& file : embedded_engines()) {
        const auto rules = read_engine(file.text, file.name);
        ASSERT_TRUE(rules.has_value()) << rules.error().text;
        EXPECT_EQ(rules->name, file.name);
        EXPECT_FALSE(rules->title.empty());
        if (rules->name == "none") {
            EXPECT_EQ(rules->layout, EngineRules::Layout::ideal);
        } else {
            EXPECT_NE(rules->layout, EngineRules::Layout::ideal);
            EXPECT_FALSE(rules->steps.empty());
        }
    }
    const auto unknown = builtin_engine("vlm");
    ASSERT_FALSE(unknown.has_value());
    EXPECT_EQ(unknown.error().text, "no engine is called \"vlm\"; did you mean vllm?");
}

TEST(EngineFile, SaysHowTokensReachSpreadExperts) {
    using model::ExpertExchange;
    // As their documents say; TensorRT-LLM sends tokens where NVLink joins several nodes.
    EXPECT_EQ(usual_exchange(*builtin_engine("vllm"), "h100-sxm"), ExpertExchange::gather);
    EXPECT_EQ(usual_exchange(*builtin_engine("sglang"), "h100-sxm"), ExpertExchange::gather);
    EXPECT_EQ(usual_exchange(*builtin_engine("trtllm"), "b200-sxm"), ExpertExchange::gather);
    EXPECT_EQ(usual_exchange(*builtin_engine("trtllm"), "gb200"), ExpertExchange::all_to_all);
    EXPECT_EQ(usual_exchange(*builtin_engine("none"), "h100-sxm"), std::nullopt);
    EXPECT_EQ(problem_after([](Json& json) { json["experts"] = {{"exchange", "carry"}, {"source", "s"}}; }),
              "toy.json: experts.exchange is \"carry\", expected one of gather, all-to-all");
    EXPECT_EQ(problem_after([](Json& json) { json["experts"] = {{"exchange", "gather"}, {"source", "x"}}; }),
              "toy.json: experts.source is \"x\", which the file's \"sources\" do not list");
}

}  // namespace
}  // namespace roofline::io

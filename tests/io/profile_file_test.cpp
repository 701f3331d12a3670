#include "roofline/io/profile_file.hpp"

#include <functional>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "roofline/io/catalog.hpp"
#include "roofline/io/embedded.hpp"
#include "roofline/io/fields.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::io {
namespace {

using predict::Profile;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json smallest() {
    return Json::parse(R"({
        "schema": "roofline.profile/1", "name": "toy", "title": "A toy", "stacks": ["mine", "yours"],
        "kernels": "ggml_cuda", "step": "eager_step", "even_routing": false, "elsewhere": {"Apple": "other"},
        "operators": {"norm": {"launches": 6, "traffic": 5}, "kv_write@decode": {"launches": 2, "cache": 2, "pace": 1.5},
                      "attention.residual": {"traffic": 0.5}}})");
}

Result<Profile> read(const Json& json) {
    return read_profile(json.dump(), "toy.json");
}

std::string problem_after(const std::function<void(Json&)>& change) {
    Json json = smallest();
    change(json);
    const auto profile = read(json);
    if (profile) return "no problem";
    EXPECT_EQ(profile.error().text.find('\n'), std::string::npos) << profile.error().text;
    EXPECT_EQ(profile.error().text.substr(0, 9), "toy.json:") << profile.error().text;
    return profile.error().text;
}

TEST(ProfileFile, ReadsAll) {
    const auto profile = read(smallest());
    ASSERT_TRUE(profile.has_value()) << profile.error().text;
    EXPECT_EQ(profile->name, "toy");
    EXPECT_EQ(profile->title, "A toy");
    EXPECT_THAT(profile->stacks, ElementsAre("mine", "yours"));
    EXPECT_EQ(profile->kernels, "ggml_cuda");
    EXPECT_EQ(profile->step, "eager_step");
    EXPECT_FALSE(profile->even_routing);
    EXPECT_EQ(profile->elsewhere.at("Apple"), "other");
    ASSERT_EQ(profile->rules.size(), 3u);
    const Profile::Rule norm = profile->rule_for("layers.norm", Kind::norm, "decode");
    EXPECT_EQ(norm.launches, 6.0);
    EXPECT_EQ(norm.traffic, 5.0);
    const Profile::Rule write = profile->rule_for("layers.attention.kv_write", Kind::copy, "decode");
    EXPECT_EQ(write.launches, 2.0);
    EXPECT_EQ(write.cache, 2.0);
    EXPECT_EQ(write.pace, 1.5);
    EXPECT_EQ(norm.cache, 0.0);
    EXPECT_EQ(norm.pace, 1.0);
    EXPECT_EQ(profile->rule_for("layers.attention.kv_write", Kind::copy, "prefill").launches, 1.0);
    const Profile::Rule residual = profile->rule_for("layers.attention.residual", Kind::elementwise, "decode");
    EXPECT_EQ(residual.launches, 1.0);
    EXPECT_EQ(residual.traffic, 0.5);
}

TEST(ProfileFile, LeavesOutWhatIsUsual) {
    const auto profile = read(Json::parse(R"({"schema": "roofline.profile/1", "name": "bare", "title": "Bare"})"));
    ASSERT_TRUE(profile.has_value()) << profile.error().text;
    EXPECT_TRUE(profile->stacks.empty());
    EXPECT_TRUE(profile->kernels.empty());
    EXPECT_EQ(profile->step, "graph_step");
    EXPECT_TRUE(profile->even_routing);
    EXPECT_TRUE(profile->rules.empty());
}

TEST(ProfileFile, SaysInOneLineWhatIsWrong) {
    EXPECT_EQ(problem_after([](Json& json) { json["schema"] = "roofline.profile/9"; }),
              "toy.json: schema expected roofline.profile/1");
    EXPECT_EQ(problem_after([](Json& json) { json.erase("name"); }), "toy.json: name is missing");
    EXPECT_EQ(problem_after([](Json& json) { json.erase("title"); }), "toy.json: title is missing");
    EXPECT_EQ(problem_after([](Json& json) { json["stacks"] = "mine"; }),
              "toy.json: stacks is \"mine\", expected a list of strings");
    EXPECT_EQ(problem_after([](Json& json) { json["stacks"][1] = 3; }),
              "toy.json: stacks holds 3, expected only strings");
    EXPECT_EQ(problem_after([](Json& json) { json["kernels"] = "gem"; }), "toy.json: kernels expected a kernel class");
    EXPECT_EQ(problem_after([](Json& json) { json["step"] = "gem"; }), "toy.json: step expected a kernel class");
    EXPECT_EQ(problem_after([](Json& json) { json["even_routing"] = 1; }),
              "toy.json: even_routing is 1, expected true or false");
    EXPECT_EQ(problem_after([](Json& json) { json["operators"] = Json::array(); }),
              "toy.json: operators is a list, expected an object");
    EXPECT_EQ(problem_after([](Json& json) { json["operators"]["norm"] = 2; }),
              "toy.json: operators.norm is 2, expected an object");
    EXPECT_EQ(problem_after([](Json& json) { json["operators"]["norm"]["traffic"] = -0.1; }),
              "toy.json: operators.norm.traffic expected a number that is not negative");
    EXPECT_EQ(problem_after([](Json& json) { json["operators"]["norm"]["launches"] = -1; }),
              "toy.json: operators.norm.launches expected a number that is not negative");
    EXPECT_EQ(problem_after([](Json& json) { json["operators"]["norm"]["launches"] = "two"; }),
              "toy.json: operators.norm.launches is \"two\", expected a number");
    EXPECT_EQ(problem_after([](Json& json) { json["elsewhere"]["Apple"] = 3; }),
              "toy.json: elsewhere.Apple is 3, expected a string");
}

TEST(ProfileFile, KnowsTwoStages) {
    const auto with_operator = [](const std::string& key) {
        return problem_after([&](Json& json) { json["operators"][key] = {{"launches", 2}}; });
    };
    EXPECT_EQ(with_operator("norm@prefill"), "no problem");
    EXPECT_EQ(with_operator("norm@prefil"), "toy.json: operators.norm@prefil expected @prefill or @decode");
    EXPECT_EQ(with_operator("norm@mixed"), "toy.json: operators.norm@mixed expected @prefill or @decode");
    EXPECT_EQ(with_operator("norm@"), "toy.json: operators.norm@ expected @prefill or @decode");
}

TEST(ProfileFile, AStagesOwnLineCountsBesideOneForBoth) {
    Json json = smallest();
    json["operators"] = {{"kv_write", {{"launches", 1.5}}}, {"kv_write@decode", {{"launches", 2}}}};
    const auto profile = read(json);
    ASSERT_TRUE(profile.has_value()) << profile.error().text;
    EXPECT_EQ(profile->rule_for("layers.attention.kv_write", Kind::copy, "decode").launches, 2.0);
    EXPECT_EQ(profile->rule_for("layers.attention.kv_write", Kind::copy, "prefill").launches, 1.5);
}

TEST(ProfileFile, ReportsBrokenJson) {
    for (const char* text : {"", "{", "[]", "3", "{\"schema\": \"roofline.profile/1\",}"}) {
        const auto profile = read_profile(text, "toy.json");
        ASSERT_FALSE(profile.has_value()) << text;
        EXPECT_EQ(profile.error().text.find('\n'), std::string::npos);
    }
}

// ---- what the program carries

TEST(BuiltinProfile, AllLoadAndAreFoundByTheirNames) {
    EXPECT_THAT(builtin_profile_names(), Contains("engine"));
    EXPECT_THAT(builtin_profile_names(), Contains("eager"));
    EXPECT_THAT(builtin_profile_names(), Contains("llama.cpp"));
    for (const EmbeddedFile& file : embedded_profiles()) {
        const auto profile = read_profile(file.text, file.name);
        ASSERT_TRUE(profile.has_value()) << profile.error().text;
        EXPECT_EQ(profile->name, file.name);
        EXPECT_FALSE(profile->title.empty());
        EXPECT_FALSE(profile->stacks.empty()) << file.name;
        const auto found = builtin_profile(file.name);
        ASSERT_TRUE(found.has_value()) << found.error().text;
        EXPECT_EQ(found->name, file.name);
        for (const auto& [vendor, other] : profile->elsewhere)
            EXPECT_TRUE(builtin_profile(other).has_value()) << file.name << " on " << vendor;
    }
}

TEST(BuiltinProfile, NamesOperatorsThatSomeModelHas) {
    // A rule for a misspelt operator would count for nothing, and nobody would notice.
    std::set<std::string> known;
    for (const std::string& name : builtin_model_names()) {
        const auto file = builtin_model(name);
        ASSERT_TRUE(file.has_value()) << file.error().text;
        for (const auto& op : model::lower(file->architecture, file->types).operators) {
            const std::size_t dot = op.name.rfind('.');
            const std::size_t before = dot == std::string::npos || dot == 0 ? dot : op.name.rfind('.', dot - 1);
            known.insert(dot == std::string::npos ? op.name : op.name.substr(dot + 1));
            known.insert(before == std::string::npos ? op.name : op.name.substr(before + 1));
            known.insert(std::string(roofline::name(op.kind)));
            known.insert(std::string(op.style));
        }
    }
    for (const std::string& name : builtin_profile_names()) {
        const auto profile = builtin_profile(name);
        ASSERT_TRUE(profile.has_value()) << profile.error().text;
        for (const Profile::Rule& rule : profile->rules)
            EXPECT_TRUE(known.contains(rule.op)) << name << ": " << rule.op;
    }
}

TEST(BuiltinProfile, AnUnknownNameGetsASuggestion) {
    const auto profile = builtin_profile("engin");
    ASSERT_FALSE(profile.has_value());
    EXPECT_THAT(profile.error().text, HasSubstr("no profile is named engin"));
    EXPECT_THAT(profile.error().text, HasSubstr("engine"));
}

TEST(BuiltinProfile, LlamaCppHasOtherKernelsOnAppleDevices) {
    const auto apple = builtin_device("m4-max");
    const auto nvidia = builtin_device("rtx-4090");
    ASSERT_TRUE(apple && nvidia);
    EXPECT_EQ(builtin_profile("llama.cpp", *apple)->kernels, "ggml_metal");
    EXPECT_EQ(builtin_profile("llama.cpp", *nvidia)->kernels, "ggml_cuda");
    EXPECT_EQ(builtin_profile("engine", *apple)->name, "engine");
}

}  // namespace
}  // namespace roofline::io

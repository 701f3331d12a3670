// Files that are built in, and files of one's own like them: the published schema and the program's own reader agree on
// which are sound.
#include <filesystem>

#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"
#include "roofline/io/engine_file.hpp"

namespace roofline::cli::testing {
namespace {

// Every file of a folder of data follows its schema; returns how many there are.
std::size_t expect_all_valid(const std::string& folder, const Schema& schema) {
    std::size_t files = 0;
    for (const auto& file : std::filesystem::directory_iterator(std::string(ROOFLINE_SOURCE_DIR "/data/") + folder)) {
        if (file.path().extension() != ".json") continue;
        const auto found = schema.violations(parsed(text_of_file(file.path().string())));
        EXPECT_TRUE(found.empty()) << file.path().filename() << "\n" << joined(found);
        ++files;
    }
    return files;
}

TEST(ProfileFiles, EveryBuiltInFileFollowsTheProfileSchemaAndIsNamedAsItIs) {
    EXPECT_GE(expect_all_valid("profiles", Schema::published("profile.schema.json")), 4U);
    for (const auto& file : std::filesystem::directory_iterator(ROOFLINE_SOURCE_DIR "/data/profiles")) {
        const Json profile = parsed(text_of_file(file.path().string()));
        EXPECT_EQ(profile.value("name", ""), file.path().stem().string());
    }
}

TEST(EngineFiles, EveryBuiltInFileFollowsTheEngineSchema) {
    EXPECT_GE(expect_all_valid("engines", Schema::published("engine.schema.json")), 6U);
}

TEST(EngineFiles, AFileThatTheSchemaRefusesIsRefusedByTheReaderToo) {
    const Schema schema = Schema::published("engine.schema.json");
    const Json sound = parsed(text_of_file(ROOFLINE_SOURCE_DIR "/data/engines/sglang.json"));
    const auto readable = [](const Json& engine) { return io::read_engine(engine.dump(), "own.json").has_value(); };
    EXPECT_TRUE(readable(sound));
    for (const auto& [place, value] : {std::pair{"/schema", Json("roofline.engine/9")},
                                       {"/name", Json(3)},
                                       {"/fraction/of", Json("half")},
                                       {"/fraction/inside", Json::array({"luggage"})},
                                       {"/fraction/utilisation/value", Json(-0.5)},
                                       {"/fraction/reserve/fixed", Json(3)},
                                       {"/steps/0/tokens", Json("many")},
                                       {"/steps/0/more", Json(1)},
                                       {"/overhead/context/unit", Json("apples")},
                                       {"/cache/layout", Json("heap")},
                                       {"/cache/prints", Json("nothing")},
                                       {"/cache/block/value", Json("16")},
                                       {"/sources/code/kind", Json("hearsay")}}) {
        Json changed = sound;
        changed[Json::json_pointer(place)] = value;
        EXPECT_FALSE(schema.violations(changed).empty()) << place;
        EXPECT_FALSE(readable(changed)) << place;
    }
    for (const char* part : {"schema", "name", "title", "cache"}) {
        Json changed = sound;
        changed.erase(part);
        EXPECT_FALSE(schema.violations(changed).empty()) << part;
        EXPECT_FALSE(readable(changed)) << part;
    }
}

TEST(ProfileFiles, AFileThatTheSchemaRefusesIsRefusedByTheProgramToo) {
    const TemporaryFolder folder;
    const Schema schema = Schema::published("profile.schema.json");
    const Json sound = parsed(text_of_file(ROOFLINE_SOURCE_DIR "/data/profiles/llama.cpp.json"));
    const auto exit_code = [&](const Json& profile) {
        return run({"predict", "gpt2", "h100-sxm", "--profile", folder.write("own.json", profile.dump())}).exit_code;
    };
    EXPECT_EQ(exit_code(sound), 0);
    for (const auto& [place, value] : {std::pair{"/schema", Json("roofline.profile/9")},
                                       {"/name", Json(3)},
                                       {"/stacks", Json("llama.cpp")},
                                       {"/stacks/0", Json(1)},
                                       {"/kernels", Json("ggml_quantum")},
                                       {"/step", Json("giant_leap")},
                                       {"/even_routing", Json("no")},
                                       {"/elsewhere/Apple", Json(1)},
                                       {"/operators/qkv/launches", Json(-1)},
                                       {"/operators/qkv/launches", Json("many")},
                                       {"/operators/qkv", Json(3)},
                                       {"/operators", Json::array()}}) {
        Json changed = sound;
        changed[Json::json_pointer(place)] = value;
        EXPECT_FALSE(schema.violations(changed).empty()) << place;
        EXPECT_EQ(exit_code(changed), 2) << place;
    }
    for (const char* part : {"schema", "name", "title"}) {
        Json changed = sound;
        changed.erase(part);
        EXPECT_FALSE(schema.violations(changed).empty()) << part;
        EXPECT_EQ(exit_code(changed), 2) << part;
    }
}

TEST(CalibrationFiles, EveryBuiltInFileFollowsTheCalibrationSchema) {
    EXPECT_GE(expect_all_valid("calibrations", Schema::published("calibration.schema.json")), 1U);
}

TEST(CalibrationFiles, AFileThatTheSchemaRefusesIsRefusedByTheProgramToo) {
    const TemporaryFolder folder;
    const Schema schema = Schema::published("calibration.schema.json");
    Json sound = parsed(text_of_file(ROOFLINE_SOURCE_DIR "/data/calibrations/shipped.json"));
    sound["fits"] = Json::array({sound["fits"][0], sound["fits"][1]});
    const auto exit_code = [&](const Json& calibration) {
        return run({"predict", "gpt2", "h100-sxm", "--calibration", folder.write("own.json", calibration.dump())})
            .exit_code;
    };
    ASSERT_TRUE(schema.violations(sound).empty());
    EXPECT_EQ(exit_code(sound), 0);
    for (const auto& [place, value] : {std::pair{"/schema", Json("roofline.calibration/9")},
                                       {"/fits/0/class", Json("magic")},
                                       {"/fits/0/scope", Json("galaxy")},
                                       {"/fits/0/type", Json(16)},
                                       {"/fits/0/rows", Json("many")},
                                       {"/fits/0/range", Json(1)},
                                       {"/fits/0/range/0", Json(-1)},
                                       {"/fits/0/constants", Json::array()},
                                       {"/fits/0/constants/startup", Json("3 us")},
                                       {"/fits/0/constants/startup", Json(-3)},
                                       {"/fits", Json(1)}}) {
        Json changed = sound;
        changed[Json::json_pointer(place)] = value;
        EXPECT_FALSE(schema.violations(changed).empty()) << place;
        EXPECT_EQ(exit_code(changed), 2) << place;
    }
    for (const char* part : {"class", "scope", "range", "constants"}) {
        Json changed = sound;
        changed["fits"][0].erase(part);
        EXPECT_FALSE(schema.violations(changed).empty()) << part;
        EXPECT_EQ(exit_code(changed), 2) << part;
    }
}

TEST(DeviceFiles, EveryBuiltInFileFollowsTheDeviceSchema) {
    const Schema schema = Schema::published("device.schema.json");
    std::size_t files = 0;
    for (const auto& file : std::filesystem::directory_iterator(ROOFLINE_SOURCE_DIR "/data/devices")) {
        if (file.path().extension() != ".json") continue;
        const Json device = parsed(text_of_file(file.path().string()));
        const auto found = schema.violations(device);
        EXPECT_TRUE(found.empty()) << file.path().filename() << "\n" << joined(found);
        EXPECT_EQ(device.value("name", ""), file.path().stem().string());
        EXPECT_FALSE(device.contains("ridge")) << file.path().filename();
        ++files;
    }
    EXPECT_GT(files, 50U);
}

TEST(DeviceFiles, AFileThatTheSchemaRefusesIsRefusedByTheProgramToo) {
    const TemporaryFolder folder;
    const Schema schema = Schema::published("device.schema.json");
    const Json sound = parsed(text_of_file(ROOFLINE_SOURCE_DIR "/data/devices/h100-sxm.json"));
    const std::pair<const char*, Json> changes[] = {
        {"/schema", "roofline.device/9"},
        {"/engines/0/id", "tensor"},
        {"/engines/0/rates/fp7", {{"value", 1}, {"unit", "TFLOP/s"}, {"source", "datasheet"}}},
        {"/engines/0/rates/fp8/unit", "GB/s"},
        {"/engines/0/rates/fp8/value", -1},
        {"/engines/0/rates/fp8/value", "1978.9"},
        {"/memory/0/id", "hbm"},
        {"/memory/0/bandwidth/unit", "parsecs"},
        {"/memory/0/capacity/value", nullptr},
        {"/links/0/id", "host"},
        {"/multiprocessors/unit", "GB"},
        {"/multiprocessors/value", -132},
        {"/multiprocessors/value", 131.5},
        {"/generation", 9},
        {"/sources/datasheet/kind", "rumour"},
        {"/aliases", "h100"},
        {"/aliases/0", 100},
        {"/colour", "green"},
        {"/year", "2022"},
    };
    for (const auto& [place, value] : changes) {
        Json changed = sound;
        changed[Json::json_pointer(place)] = value;
        EXPECT_FALSE(schema.violations(changed).empty()) << place;
        const Answer answer = run({"devices", "show", folder.write("changed.json", changed.dump())});
        EXPECT_EQ(answer.exit_code, 2) << place << "\n" << answer.out;
    }
    for (const char* part : {"schema", "name", "memory", "sources"}) {
        Json changed = sound;
        changed.erase(part);
        EXPECT_FALSE(schema.violations(changed).empty()) << part;
        EXPECT_EQ(run({"devices", "show", folder.write("changed.json", changed.dump())}).exit_code, 2) << part;
    }
}

}  // namespace
}  // namespace roofline::cli::testing

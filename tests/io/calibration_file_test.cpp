#include "roofline/io/calibration_file.hpp"

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "roofline/io/catalog.hpp"
#include "roofline/io/embedded.hpp"
#include "roofline/io/fields.hpp"
#include "roofline/io/profile_file.hpp"

namespace roofline::io {
namespace {

using predict::Calibration;
using predict::Choice;
using predict::Fitted;
using predict::KernelClass;
using predict::Scope;

Json smallest() {
    return Json::parse(R"({
        "schema": "roofline.calibration/1", "made_from": ["rows.csv: 2 rows"],
        "fits": [{"class": "eager_step", "type": "bf16", "stack": "mine", "scope": "device", "of": "toy", "rows": 12,
                  "error": 0.05, "range": [0.9, 1.2], "constants": {"per_step": 120.5, "per_launch": 3.25}}]})");
}

Result<Calibration> read(const Json& json) {
    return read_calibration(json.dump(), "toy.json");
}

/// The problem after one change to a good file; it must be one line that names the file.
std::string problem_after(const std::function<void(Json&)>& change) {
    Json json = smallest();
    change(json);
    const auto calibration = read(json);
    if (calibration) return "no problem";
    EXPECT_EQ(calibration.error().text.find('\n'), std::string::npos) << calibration.error().text;
    EXPECT_EQ(calibration.error().text.substr(0, 9), "toy.json:") << calibration.error().text;
    return calibration.error().text;
}

// ---- reading

TEST(CalibrationFile, ReadsAFit) {
    const auto calibration = read(smallest());
    ASSERT_TRUE(calibration.has_value()) << calibration.error().text;
    ASSERT_EQ(calibration->all().size(), 1u);
    const Fitted fit = calibration->all().front();
    EXPECT_EQ(fit.kernel_class, predict::kernel_class("eager_step"));
    EXPECT_EQ(fit.type, "bf16");
    EXPECT_EQ(fit.stack, "mine");
    EXPECT_EQ(fit.scope, Scope::device);
    EXPECT_EQ(fit.of, "toy");
    EXPECT_EQ(fit.rows, 12.0);
    EXPECT_EQ(fit.error, 0.05);
    EXPECT_EQ(fit.low, 0.9);
    EXPECT_EQ(fit.high, 1.2);
    EXPECT_EQ(fit.constants[0], 120.5);
    EXPECT_EQ(fit.constants[1], 3.25);
}

TEST(CalibrationFile, SaysInOneLineWhatIsWrong) {
    const auto fit = [](Json& json) -> Json& { return json["fits"][0]; };
    EXPECT_EQ(problem_after([](Json& json) { json["schema"] = "roofline.calibration/2"; }),
              "toy.json: schema expected roofline.calibration/1");
    EXPECT_EQ(problem_after([](Json& json) { json.erase("schema"); }), "toy.json: schema is missing");
    EXPECT_EQ(problem_after([](Json& json) { json["fits"] = 3; }), "toy.json: fits is 3, expected a list");
    EXPECT_EQ(problem_after([](Json& json) { json["fits"][0] = 3; }), "toy.json: fits[0] is 3, expected an object");
    EXPECT_EQ(problem_after([&](Json& json) { fit(json)["class"] = "gem"; }),
              "toy.json: fits[0].class expected a kernel class");
    EXPECT_EQ(problem_after([&](Json& json) { fit(json).erase("class"); }), "toy.json: fits[0].class is missing");
    EXPECT_EQ(problem_after([&](Json& json) { fit(json)["scope"] = "galaxy"; }),
              "toy.json: fits[0].scope expected device, generation or everything");
    EXPECT_EQ(problem_after([&](Json& json) { fit(json)["rows"] = "many"; }),
              "toy.json: fits[0].rows is \"many\", expected a number");
    EXPECT_EQ(problem_after([&](Json& json) { fit(json)["type"] = 16; }),
              "toy.json: fits[0].type is 16, expected a string");
}

TEST(CalibrationFile, WantsEveryConstantOfTheClassAboveZero) {
    const auto constants = [](Json& json) -> Json& { return json["fits"][0]["constants"]; };
    EXPECT_EQ(problem_after([&](Json& json) { constants(json).erase("per_launch"); }),
              "toy.json: fits[0].constants.per_launch is missing");
    EXPECT_EQ(problem_after([&](Json& json) { json["fits"][0].erase("constants"); }),
              "toy.json: fits[0].constants is missing");
    EXPECT_EQ(problem_after([&](Json& json) { constants(json)["per_step"] = -1; }),
              "toy.json: fits[0].constants.per_step is -1, expected a number above zero");
    EXPECT_EQ(problem_after([&](Json& json) { constants(json)["per_step"] = 0; }),
              "toy.json: fits[0].constants.per_step is 0, expected a number above zero");
    EXPECT_EQ(problem_after([&](Json& json) { constants(json)["per_step"] = "quick"; }),
              "toy.json: fits[0].constants.per_step is \"quick\", expected a number above zero");
}

TEST(CalibrationFile, WantsARangeFromLowToHigh) {
    const std::string wanted = "toy.json: fits[0].range expected two positive numbers, the smaller one first";
    for (const Json& range : {Json::array({1.2, 0.9}), Json::array({0.9}), Json::array({0.9, 1.0, 1.1}),
                              Json::array({0.0, 1.1}), Json::array({-0.9, 1.1}), Json::array()}) {
        EXPECT_EQ(problem_after([&](Json& json) { json["fits"][0]["range"] = range; }), wanted) << range.dump();
    }
    EXPECT_EQ(problem_after([](Json& json) { json["fits"][0].erase("range"); }), wanted);
    EXPECT_NE(problem_after([](Json& json) { json["fits"][0]["range"] = Json::array({"a", "b"}); }), "no problem");
}

TEST(CalibrationFile, RefusesAuthorsWhoAreNotAroundOne) {
    const std::string wanted = "toy.json: fits[0].authors expected a positive number up to 1 and one from 1";
    for (const Json& authors : {Json::array({1.1, 1.2}), Json::array({0.8, 0.9}), Json::array({0.0, 1.5}),
                                Json::array({0.9}), Json::array({0.9, 1.0, 1.1})})
        EXPECT_EQ(problem_after([&](Json& json) { json["fits"][0]["authors"] = authors; }), wanted) << authors.dump();
    EXPECT_EQ(problem_after([](Json& json) { json["fits"][0]["authors"] = Json::array({0.9, 1.5}); }), "no problem");
}

TEST(CalibrationFile, ReportsBrokenJson) {
    const auto calibration = read_calibration("{\"schema\": ", "toy.json");
    ASSERT_FALSE(calibration.has_value());
    EXPECT_EQ(calibration.error().text, "toy.json: line 1: the file ends in the middle of its JSON");
    EXPECT_FALSE(read_calibration("[]", "toy.json").has_value());
    EXPECT_FALSE(read_calibration("", "toy.json").has_value());
}

// ---- writing

Calibration sample() {
    Calibration calibration;
    double value = 1.0;
    for (const KernelClass* known : predict::kernel_classes()) {
        for (const Scope scope : {Scope::device, Scope::generation, Scope::everything}) {
            Fitted fit;
            fit.kernel_class = known;
            fit.type = "mxfp4/bf16";
            fit.stack = "a \"quoted\" stack\\";
            fit.scope = scope;
            fit.of = scope == Scope::everything ? "" : "toy";
            if (scope == Scope::everything) fit.vendors = {"Intel", "NVIDIA"};
            for (std::size_t i = 0; i < known->constants.size(); ++i) {
                // Somewhere between the bounds, of more digits than are written.
                value = value > 0.5 ? value / 7.654321 : value * 1.7654321;
                const predict::Constant& constant = known->constants[i];
                fit.constants[i] = constant.low + value * (constant.high - constant.low);
            }
            fit.low = 0.8123456;
            fit.high = 1.2345678;
            if (scope == Scope::device) {
                fit.authors_low = 0.9123456;
                fit.authors_high = 1.7654321;
            }
            fit.error = 0.0456789;
            fit.rows = 1234567.0;
            calibration.add(fit);
        }
    }
    return calibration;
}

TEST(CalibrationFile, ReadsWhatItWrites) {
    const Calibration before = sample();
    const auto after = read_calibration(write_calibration(before, {"a.csv: 3 rows", "b.csv"}), "toy.json");
    ASSERT_TRUE(after.has_value()) << after.error().text;
    const std::vector<Fitted> was = before.all();
    const std::vector<Fitted> is = after->all();
    ASSERT_EQ(is.size(), was.size());
    for (std::size_t f = 0; f < was.size(); ++f) {
        EXPECT_EQ(is[f].kernel_class, was[f].kernel_class);
        EXPECT_EQ(is[f].type, was[f].type);
        EXPECT_EQ(is[f].stack, was[f].stack);
        EXPECT_EQ(is[f].scope, was[f].scope);
        EXPECT_EQ(is[f].of, was[f].of);
        EXPECT_EQ(is[f].vendors, was[f].vendors);
        EXPECT_EQ(is[f].rows, was[f].rows);
        EXPECT_NEAR(is[f].error, was[f].error, 0.5e-4);
        EXPECT_NEAR(is[f].low, was[f].low, 0.5e-3);
        EXPECT_NEAR(is[f].high, was[f].high, 0.5e-3);
        EXPECT_NEAR(is[f].authors_low, was[f].authors_low, 0.5e-3);
        EXPECT_NEAR(is[f].authors_high, was[f].authors_high, 0.5e-3);
        for (std::size_t i = 0; i < was[f].kernel_class->constants.size(); ++i)
            EXPECT_NEAR(is[f].constants[i], was[f].constants[i], 5e-5 * was[f].constants[i]);
    }
}

TEST(CalibrationFile, ReadsConstantsInTheOrderOfTheirClass) {
    const KernelClass& gemm = *predict::kernel_class("gemm");
    std::string named = "{";
    std::string listed = "[";
    for (const predict::Constant& constant : gemm.constants) {
        const std::string comma = &constant == &gemm.constants.front() ? "" : ", ";
        named += fmt::format("{}\"{}\": {}", comma, constant.name, constant.start);
        listed += fmt::format("{}{}", comma, constant.start);
    }
    const auto file = [](const std::string& constants) {
        return R"({"schema": "roofline.calibration/1", "fits": [{"class": "gemm", "type": "bf16", "stack": "", )"
               R"("scope": "everything", "of": "", "range": [0.9, 1.1], "constants": )" +
               constants + "}]}";
    };
    const auto by_name = read_calibration(file(named + "}"), "toy.json");
    const auto in_order = read_calibration(file(listed + "]"), "toy.json");
    ASSERT_TRUE(by_name.has_value()) << by_name.error().text;
    ASSERT_TRUE(in_order.has_value()) << in_order.error().text;
    EXPECT_EQ(in_order->all()[0].constants, by_name->all()[0].constants);
    const auto short_of_one = read_calibration(file("[3.0]"), "toy.json");
    ASSERT_FALSE(short_of_one.has_value());
    EXPECT_NE(short_of_one.error().text.find("expected 10 numbers"), std::string::npos) << short_of_one.error().text;
}

TEST(CalibrationFile, WritesTheSameAgain) {
    const std::string once = write_calibration(sample(), {"a.csv"});
    const auto read_back = read_calibration(once, "toy.json");
    ASSERT_TRUE(read_back.has_value()) << read_back.error().text;
    EXPECT_EQ(write_calibration(*read_back, {"a.csv"}), once);
}

TEST(CalibrationFile, WritesALineForEachFit) {
    const std::string text = write_calibration(sample(), {});
    std::size_t lines = 0;
    for (std::size_t at = text.find("{\"class\""); at != std::string::npos; at = text.find("{\"class\"", at + 1)) {
        EXPECT_EQ(text.substr(at - 5, 5), "\n    ");
        ++lines;
    }
    EXPECT_EQ(lines, sample().all().size());
}

TEST(CalibrationFile, WritesAnEmptyCalibrationToo) {
    const auto after = read_calibration(write_calibration({}, {}), "toy.json");
    ASSERT_TRUE(after.has_value()) << after.error().text;
    EXPECT_TRUE(after->all().empty());
}

// ---- what the program carries

TEST(BuiltinCalibration, IsWithinTheBoundsOfItsClasses) {
    const auto calibration = builtin_calibration();
    ASSERT_TRUE(calibration.has_value()) << calibration.error().text;
    EXPECT_FALSE(calibration->all().empty());
    for (const Fitted& fit : calibration->all()) {
        const std::string what = std::string(fit.kernel_class->name) + " " + fit.type + " " + fit.stack + " " + fit.of;
        for (std::size_t i = 0; i < fit.kernel_class->constants.size(); ++i) {
            const predict::Constant& constant = fit.kernel_class->constants[i];
            EXPECT_GE(fit.constants[i], constant.low * (1.0 - 1e-4)) << what << ": " << constant.name;
            EXPECT_LE(fit.constants[i], constant.high * (1.0 + 1e-4)) << what << ": " << constant.name;
        }
        EXPECT_LE(fit.low, 1.0) << what;
        EXPECT_GE(fit.high, 1.0) << what;
        EXPECT_GT(fit.rows, 0.0) << what;
        EXPECT_EQ(fit.of.empty(), fit.scope == Scope::everything) << what;
    }
}

TEST(BuiltinCalibration, NamesDevicesAndGenerationsThatThereAre) {
    std::set<std::string> devices;
    std::set<std::string> generations;
    for (const std::string& name : builtin_device_names()) {
        const auto device = builtin_device(name);
        ASSERT_TRUE(device.has_value()) << device.error().text;
        devices.insert(device->name);
        generations.insert(device->generation);
    }
    const auto calibration = builtin_calibration();
    ASSERT_TRUE(calibration.has_value()) << calibration.error().text;
    for (const Fitted& fit : calibration->all()) {
        if (fit.scope == Scope::device) {
            EXPECT_TRUE(devices.contains(fit.of)) << fit.of;
        }
        if (fit.scope == Scope::generation) {
            EXPECT_TRUE(generations.contains(fit.of)) << fit.of;
        }
    }
}

TEST(BuiltinCalibration, ForADeviceGivesTheSameChoicesAsTheWhole) {
    const auto whole = builtin_calibration();
    ASSERT_TRUE(whole.has_value()) << whole.error().text;
    std::vector<std::vector<std::string>> stacks = {{}};
    for (const std::string& name : builtin_profile_names()) {
        const auto profile = builtin_profile(name);
        ASSERT_TRUE(profile.has_value()) << profile.error().text;
        stacks.push_back(profile->stacks);
    }
    Device unknown;
    unknown.name = "mine";
    std::vector<Device> devices = {unknown};
    for (const std::string& name : builtin_device_names()) devices.push_back(builtin_device(name).value_or(unknown));
    for (const Device& device : devices) {
        const auto part = builtin_calibration(device);
        ASSERT_TRUE(part.has_value()) << part.error().text;
        EXPECT_LT(part->all().size(), whole->all().size()) << device.name;
        for (const KernelClass* known : predict::kernel_classes()) {
            for (const std::string_view type : {"bf16", "fp8", "nvfp4", "norm", "int4", ""}) {
                for (const auto& wanted : stacks) {
                    const Choice a = whole->choose(*known, type, wanted, device);
                    const Choice b = part->choose(*known, type, wanted, device);
                    ASSERT_EQ(a.source, b.source) << device.name << " " << known->name << " " << type;
                    ASSERT_EQ(a.constants, b.constants) << device.name << " " << known->name << " " << type;
                    ASSERT_EQ(a.low, b.low);
                    ASSERT_EQ(a.high, b.high);
                    ASSERT_EQ(a.own, b.own);
                }
            }
        }
    }
}

TEST(BuiltinCalibration, LosesNothingWhenItIsReadAndWritten) {
    for (const EmbeddedFile& file : embedded_calibrations()) {
        const auto calibration = read_calibration(file.text, file.name);
        ASSERT_TRUE(calibration.has_value()) << calibration.error().text;
        const auto before = parse_json(file.text, file.name);
        ASSERT_TRUE(before.has_value());
        const auto made_from = (*before)["made_from"].get<std::vector<std::string>>();
        const auto after = parse_json(write_calibration(*calibration, made_from), file.name);
        ASSERT_TRUE(after.has_value());
        EXPECT_TRUE(*before == *after) << file.name;
    }
}

}  // namespace
}  // namespace roofline::io

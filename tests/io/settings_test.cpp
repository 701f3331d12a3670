#include "roofline/io/settings.hpp"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "roofline/io/catalog.hpp"
#include "roofline/io/device_file.hpp"
#include "roofline/render/numbers.hpp"

namespace roofline::io {
namespace {

// Round figures, so that the expected ones can be worked out in the head. Ceilings are half the bandwidth and 0.6 of
// the bf16 peak.
constexpr std::string_view device_text = R"({
    "schema": "roofline.device/1", "name": "toy",
    "engines": [{"id": "matrix", "rates": {"bf16": {"value": 100, "unit": "TFLOP/s", "source": "s"},
                                           "fp32": {"value": 50, "unit": "TFLOP/s", "source": "s"}}},
                {"id": "vector", "rates": {"fp32": {"value": 10, "unit": "TFLOP/s", "source": "s"}}}],
    "memory": [{"id": "memory", "capacity": {"value": 80, "unit": "GB", "source": "s"},
                "bandwidth": {"value": 2, "unit": "TB/s", "source": "s"}}],
    "ceilings": {"memory.bandwidth": {"value": 1, "unit": "TB/s", "source": "s"},
                 "matrix.bf16": {"value": 60, "unit": "TFLOP/s", "source": "s"}},
    "sources": {"s": {"kind": "vendor", "title": "t"}}})";

Device toy() {
    auto device = read_device(device_text, "toy.json");
    EXPECT_TRUE(device.has_value()) << (device ? "" : device.error().text);
    return device ? *device : Device{};
}

/// Applies a setting; "" or the problem.
template <class Target>
std::string set(std::string_view text, Target& target) {
    const auto setting = parse_setting(text);
    if (!setting) return setting.error().text;
    const auto done = apply(*setting, target);
    return done ? "" : done.error().text;
}

// ---- the text

TEST(ParseSetting, TakesAPathAndAValueOrAFactor) {
    const auto value = parse_setting("memory.bandwidth=4TB/s");
    ASSERT_TRUE(value.has_value());
    EXPECT_EQ(value->path, "memory.bandwidth");
    EXPECT_EQ(value->value, "4TB/s");
    EXPECT_FALSE(value->factor.has_value());
    const auto factor = parse_setting("compute=1.5x");
    ASSERT_TRUE(factor.has_value());
    EXPECT_EQ(factor->factor, 1.5);
}

TEST(ParseSetting, WhatHasNoPathOrNoValueIsRefused) {
    for (const char* text : {"", "=", "memory.bandwidth", "memory.bandwidth=", "=2x"}) {
        const auto setting = parse_setting(text);
        ASSERT_FALSE(setting.has_value()) << text;
        EXPECT_NE(setting.error().text.find("expected PATH=VALUE"), std::string::npos) << setting.error().text;
    }
}

TEST(ParseSetting, AFactorIsAboveZero) {
    for (const char* text : {"compute=0x", "compute=-2x"}) EXPECT_FALSE(parse_setting(text).has_value()) << text;
}

TEST(IsDevicePath, TellsFiguresOfADeviceFromKeysOfAModel) {
    for (const char* path :
         {"memory.bandwidth", "memory.capacity", "cache.capacity", "cache.bandwidth", "host.bandwidth",
          "peer.bandwidth", "compute", "compute.bf16", "matrix.fp8", "vector.fp32", "power", "links.peer.bandwidth"})
        EXPECT_TRUE(is_device_path(path)) << path;
    for (const char* path :
         {"num_hidden_layers", "memory", "memory.latency", "text_config.hidden_size", "power.limit", "", "bandwidth"})
        EXPECT_FALSE(is_device_path(path)) << path;
}

// ---- devices

TEST(SetOnDevice, AFactorMultipliesAndItsCeilingMovesAlong) {
    Device device = toy();
    EXPECT_EQ(set("memory.bandwidth=2x", device), "");
    EXPECT_EQ(device.bandwidth(Level::memory)->value, 4e12);
    EXPECT_EQ(device.ceilings.at("memory.bandwidth").value, 2e12);  // half of it, as before
    EXPECT_EQ(device.ceilings.at("matrix.bf16").value, 60e12);      // nobody touched that
    EXPECT_EQ(device.capacity(Level::memory)->value, 80e9);
}

TEST(SetOnDevice, AValueReplacesAndItsCeilingKeepsItsShare) {
    Device device = toy();
    EXPECT_EQ(set("memory.bandwidth=500GB/s", device), "");
    EXPECT_EQ(device.bandwidth(Level::memory)->value, 500e9);
    EXPECT_DOUBLE_EQ(device.ceilings.at("memory.bandwidth").value, 250e9);
    EXPECT_EQ(set("memory.capacity=141GiB", device), "");
    EXPECT_EQ(device.capacity(Level::memory)->value, 141.0 * 1073741824.0);
}

TEST(SetOnDevice, ComputeMeansEveryRate) {
    Device device = toy();
    EXPECT_EQ(set("compute=2x", device), "");
    EXPECT_EQ(device.rate(Engine::matrix, DType::bf16)->value, 200e12);
    EXPECT_EQ(device.rate(Engine::matrix, DType::fp32)->value, 100e12);
    EXPECT_EQ(device.rate(Engine::vector, DType::fp32)->value, 20e12);
    EXPECT_DOUBLE_EQ(device.ceilings.at("matrix.bf16").value, 120e12);
    EXPECT_FALSE(device.rate(Engine::matrix, DType::fp8).has_value());
}

TEST(SetOnDevice, AnEngineAndATypeMeanThatRateAlone) {
    Device device = toy();
    EXPECT_EQ(set("matrix.fp32=2x", device), "");
    EXPECT_EQ(device.rate(Engine::matrix, DType::fp32)->value, 100e12);
    EXPECT_EQ(device.rate(Engine::vector, DType::fp32)->value, 10e12);
    EXPECT_EQ(set("compute.fp32=2x", device), "");
    EXPECT_EQ(device.rate(Engine::matrix, DType::fp32)->value, 200e12);
    EXPECT_EQ(device.rate(Engine::vector, DType::fp32)->value, 20e12);
}

TEST(SetOnDevice, ATypeTheDeviceLacksCanBeGivenButNotMultiplied) {
    Device device = toy();
    EXPECT_NE(set("compute.fp8=2x", device), "");
    EXPECT_EQ(set("compute.fp8=300TFLOP/s", device), "");
    EXPECT_EQ(device.rate(Engine::matrix, DType::fp8)->value, 300e12);
    EXPECT_FALSE(device.rate(Engine::vector, DType::fp8).has_value());
}

TEST(SetOnDevice, AFigureNobodyPublishedCanBeGivenButNotMultiplied) {
    Device device = toy();
    EXPECT_EQ(set("host.bandwidth=2x", device),
              "--set host.bandwidth=2x: the device has no figure for host.bandwidth to multiply");
    EXPECT_EQ(set("host.bandwidth=64GB/s", device), "");
    EXPECT_EQ(device.bandwidth(Level::host)->value, 64e9);
    EXPECT_NE(set("power=2x", device), "");
    EXPECT_EQ(set("power=1kW", device), "");
    EXPECT_EQ(device.power->value, 1000.0);
}

TEST(SetOnDevice, WhatWasSetSaysSo) {
    Device device = toy();
    EXPECT_EQ(set("memory.bandwidth=2x", device), "");
    const Figure* figure = device.bandwidth(Level::memory);
    ASSERT_TRUE(device.sources.contains(figure->source));
    EXPECT_EQ(device.sources.at(figure->source).kind, SourceKind::assumed);
    EXPECT_NE(figure->note.find("memory.bandwidth=2x"), std::string::npos);
}

TEST(SetOnDevice, WhatTablesPrintCanBeTyped) {
    // 1.979 POP/s: four digits and a prefix, as `devices` prints it, from the smallest unit to the largest.
    for (const double value : {1.5e3, 1.5e6, 1.5e9, 1.5e12, 1.5e15}) {
        Device device = toy();
        if (value < 1e15) {  // more than any memory holds
            EXPECT_EQ(set("memory.capacity=" + render::with_unit(value, "B"), device), "") << value;
            EXPECT_EQ(device.capacity(Level::memory)->value, value);
        }
        EXPECT_EQ(set("memory.bandwidth=" + render::with_unit(value, "B/s"), device), "") << value;
        EXPECT_EQ(device.bandwidth(Level::memory)->value, value);
        if (value < 1e6) continue;  // less than any engine does
        EXPECT_EQ(set("matrix.bf16=" + render::with_unit(value, "FLOP/s"), device), "") << value;
        EXPECT_EQ(device.rate(Engine::matrix, DType::bf16)->value, value);
        ASSERT_EQ(set("matrix.int8=" + render::with_unit(value, "OP/s"), device), "") << value;
        EXPECT_EQ(device.rate(Engine::matrix, DType::int8)->value, value);
    }
    Device device = toy();
    ASSERT_EQ(set("power=700.0 W", device), "");
    EXPECT_EQ(device.power->value, 700.0);
    EXPECT_EQ(set("memory.capacity=80  GiB", device), "");
    EXPECT_EQ(device.capacity(Level::memory)->value, 80.0 * 1024.0 * 1024.0 * 1024.0);
    for (const char* text : {"power=700 ", "power=700 W ", "power= 700W", "power=7 00W"})
        EXPECT_NE(set(text, device), "") << text;
}

TEST(SetOnDevice, NonsenseIsRefusedWithWhatWasExpected) {
    for (const char* text :
         {"memory.bandwidth=fast", "memory.bandwidth=2", "memory.bandwidth=2GB", "memory.bandwidth=2TFLOP/s",
          "memory.bandwidth=-1TB/s", "memory.bandwidth=0TB/s", "memory.bandwidth=nanTB/s", "memory.bandwidth=infx",
          "memory.bandwidth=2xx", "memory.bandwidth=2 x", "memory.bandwidth=1e999TB/s", "memory.bandwidth=0x10"}) {
        Device device = toy();
        const std::string problem = set(text, device);
        EXPECT_NE(problem.find("--set " + std::string(text)), std::string::npos) << text << ": " << problem;
        EXPECT_NE(problem.find("TB/s or GiB/s"), std::string::npos) << text << ": " << problem;
        EXPECT_EQ(device.bandwidth(Level::memory)->value, 2e12) << text;
    }
}

TEST(SetOnDevice, NoSettingMakesAFigureInfinite) {
    for (const char* text : {"memory.bandwidth=1e300TB/s", "memory.bandwidth=1e300x", "compute=1e300x"}) {
        Device device = toy();
        const std::string problem = set(text, device);
        EXPECT_TRUE(std::isfinite(device.bandwidth(Level::memory)->value)) << text;
        EXPECT_TRUE(std::isfinite(device.rate(Engine::matrix, DType::bf16)->value)) << text;
        EXPECT_NE(problem, "") << text;
    }
}

TEST(SetOnDevice, TypesAndFiguresThatDoNotExistAreNamed) {
    Device device = toy();
    EXPECT_NE(set("compute.fp7=2x", device).find("fp7"), std::string::npos);
    EXPECT_NE(set("memory.latency=2x", device).find("memory.latency"), std::string::npos);
    EXPECT_NE(set("vector.bf16=2x", device), "");
}

// ---- models

TEST(SetOnModel, ReplacesOrMultipliesAKeyOfTheConfig) {
    Json config = {{"num_hidden_layers", 32}, {"rope_theta", 10000.0}, {"torch_dtype", "bfloat16"}};
    EXPECT_EQ(set("num_hidden_layers=40", config), "");
    EXPECT_EQ(config["num_hidden_layers"], 40);
    EXPECT_EQ(set("num_hidden_layers=0.5x", config), "");
    EXPECT_EQ(config["num_hidden_layers"], 20);
    EXPECT_TRUE(config["num_hidden_layers"].is_number_integer());
    EXPECT_EQ(set("torch_dtype=float16", config), "");
    EXPECT_EQ(config["torch_dtype"], "float16");
    EXPECT_EQ(set("model.num_hidden_layers=2", config), "");
    EXPECT_EQ(config["num_hidden_layers"], 2);
    EXPECT_EQ(set("config.num_hidden_layers=3", config), "");
    EXPECT_EQ(config["num_hidden_layers"], 3);
}

TEST(SetOnModel, TrueFalseAndListsAreReadAsJson) {
    Json config = {{"tie_word_embeddings", false}, {"layer_types", Json::array()}};
    EXPECT_EQ(set("tie_word_embeddings=true", config), "");
    EXPECT_EQ(config["tie_word_embeddings"], true);
    EXPECT_EQ(set(R"(layer_types=["a","b"])", config), "");
    EXPECT_EQ(config["layer_types"].size(), 2U);
}

TEST(SetOnModel, AKeyOfANestedLanguageModelIsFoundWithoutItsPath) {
    for (const char* nested : {"text_config", "language_config", "llm_config"}) {
        Json config = {{"model_type", "outer"}, {nested, {{"num_hidden_layers", 32}}}};
        EXPECT_EQ(set("num_hidden_layers=2x", config), "") << nested;
        EXPECT_EQ(config[nested]["num_hidden_layers"], 64) << nested;
        EXPECT_EQ(set(std::string(nested) + ".num_hidden_layers=5", config), "") << nested;
        EXPECT_EQ(config[nested]["num_hidden_layers"], 5) << nested;
    }
}

TEST(SetOnModel, AKeyThatBothHaveIsChangedWhereItIsRead) {
    // The language model is read with its own keys first; changing only the outer one would change nothing.
    Json config = {{"tie_word_embeddings", false}, {"text_config", {{"tie_word_embeddings", false}}}};
    EXPECT_EQ(set("tie_word_embeddings=true", config), "");
    EXPECT_EQ(config["text_config"]["tie_word_embeddings"], true);
}

TEST(SetOnModel, UnknownPathsSuggestWhatIsNear) {
    Json config = {{"hidden_size", 4096}, {"num_hidden_layers", 32}};
    EXPECT_EQ(set("hiden_size=1", config),
              "--set hiden_size=1: neither the device nor the model has a figure \"hiden_size\"; did you mean "
              "hidden_size?");
    EXPECT_NE(set("memory.bandwith=2x", config).find("memory.bandwidth"), std::string::npos);
    EXPECT_NE(set("computer=2x", config).find("compute"), std::string::npos);
    EXPECT_EQ(config, (Json{{"hidden_size", 4096}, {"num_hidden_layers", 32}}));
}

TEST(SetOnModel, WhatIsNoNumberCannotBeMultiplied) {
    Json config = {{"torch_dtype", "bfloat16"}};
    EXPECT_EQ(set("torch_dtype=2x", config),
              "--set torch_dtype=2x: torch_dtype is \"bfloat16\", which cannot be multiplied");
}

TEST(SetOnModel, APathThroughSomethingThatIsNoObjectIsRefused) {
    Json config = {{"hidden_size", 4096}};
    EXPECT_NE(set("hidden_size.deeper=1", config), "");
    EXPECT_NE(set("hidden_size.=1", config), "");
    EXPECT_NE(set(".hidden_size=1", config), "");
}

TEST(SetOnModel, ANonsenseValueIsAProblemOfTheConfig) {
    for (const char* text : {"num_key_value_heads=6", "num_hidden_layers=abc", "hidden_size=-1", "vocab_size=1e6x",
                             "num_hidden_layers=null", "num_hidden_layers=0.3x"}) {
        const auto setting = parse_setting(text);
        ASSERT_TRUE(setting.has_value()) << text;
        const auto model = builtin_model("llama-3.1-8b", [&](Json& config) { return apply(*setting, config); });
        ASSERT_FALSE(model.has_value()) << text;
        const std::string key = std::string(text).substr(0, std::string(text).find('='));
        EXPECT_NE(model.error().text.find(key), std::string::npos) << model.error().text;
    }
}

TEST(SetOnModel, TwiceTheLayersAreTwiceTheLayers) {
    const auto setting = parse_setting("num_hidden_layers=2x");
    const auto model = builtin_model("llama-3.1-8b", [&](Json& config) { return apply(*setting, config); });
    ASSERT_TRUE(model.has_value());
    EXPECT_EQ(model->architecture.layers.size(), 64U);
}

}  // namespace
}  // namespace roofline::io

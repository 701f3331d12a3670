// From an answer of the plugin to a device: what is known stays the limit, what was measured becomes a ceiling, and
// what cannot be true is not believed.
#include "roofline/measure/cuda_device.hpp"

#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "places.hpp"
#include "roofline/core/roof.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/device_file.hpp"
#include "roofline/measure/cuda/abi.h"

namespace roofline::measure {
namespace {

using testing::Contains;
using testing::HasSubstr;

io::Json figure_of(const char* name, double value, const char* unit) {
    return {{"name", name},         {"value", value}, {"unit", unit},        {"low", 0.98 * value},
            {"high", 1.25 * value}, {"samples", 9},   {"how", "some kernel"}};
}

io::Json answer_of(const char* gpu) {
    return {{"device",
             {{"index", 0},
              {"name", gpu},
              {"capability", "9.0"},
              {"multiprocessors", 132},
              {"memory_bytes", 150109880320.0},
              {"l2_bytes", 62914560},
              {"driver", "580.1"},
              {"runtime", "13.0"}}},
            {"figures",
             io::Json::array({figure_of("memory.read", 4.5e12, "B/s"), figure_of("memory.copy", 4.2e12, "B/s"),
                              figure_of("cache.read", 9e12, "B/s"), figure_of("matrix.bf16", 8e14, "FLOP/s"),
                              figure_of("matrix.int8", 1.5e15, "OP/s"), figure_of("host.both_ways", 9e10, "B/s"),
                              figure_of("host.to_device", 5.5e10, "B/s"), figure_of("launch.graph", 7e-7, "s")})},
            {"refused", io::Json::array({{{"name", "matrix.fp8"}, {"why", "libcublasLt.so is not here"}}})},
            {"notes", io::Json::array()},
            {"busy", false},
            {"seconds", 30.5}};
}

Measured read(const io::Json& answer) {
    CudaOptions options;
    options.date = "2026-01-02";
    auto measured = read_cuda_answer(answer, options);
    EXPECT_TRUE(measured.has_value()) << (measured ? "" : measured.error().text);
    return measured ? *measured : Measured{};
}

std::string problem_of(const io::Json& answer) {
    const auto measured = read_cuda_answer(answer, {});
    EXPECT_FALSE(measured.has_value());
    return measured ? "" : measured.error().text;
}

const Found& found(const Measured& measured, std::string_view name) {
    for (const Found& one : measured.found) {
        if (one.name == name) return one;
    }
    ADD_FAILURE() << name << " is not there";
    return measured.found.front();
}

TEST(CudaDevice, AKnownGpuKeepsItsNameAndItsDatasheet) {
    const Measured measured = read(answer_of("NVIDIA H200"));
    EXPECT_EQ(measured.device.name, "h200-sxm");  // so that calibrations find it
    EXPECT_DOUBLE_EQ(measured.device.bandwidth(Level::memory)->value, 4.8e12);
    EXPECT_DOUBLE_EQ(measured.device.rate(Engine::matrix, DType::bf16)->value, 989.4e12);
    EXPECT_DOUBLE_EQ(measured.device.capacity(Level::memory)->value, 141e9);
    EXPECT_DOUBLE_EQ(measured.device.usable(Level::memory)->value, 150109880320.0);
}

TEST(CudaDevice, MeasuredFiguresBecomeCeilings) {
    const Device device = read(answer_of("NVIDIA H200")).device;
    EXPECT_DOUBLE_EQ(device.ceilings.at("memory.bandwidth").value, 4.5e12);  // read, not copy
    EXPECT_DOUBLE_EQ(device.ceilings.at("cache.bandwidth").value, 9e12);
    EXPECT_DOUBLE_EQ(device.ceilings.at("host.bandwidth").value, 5.5e10);
    EXPECT_DOUBLE_EQ(device.ceilings.at("matrix.bf16").value, 8e14);
    EXPECT_DOUBLE_EQ(device.ceilings.at("matrix.int8").value, 1.5e15);
    const Source& source = device.sources.at(device.ceilings.at("matrix.bf16").source);
    EXPECT_EQ(source.kind, SourceKind::measured);
    EXPECT_EQ(source.date, "2026-01-02");
    EXPECT_THAT(source.title, HasSubstr("driver 580.1, CUDA 13.0"));
    // seconds per byte: 1 / 4.5e12
    EXPECT_DOUBLE_EQ(attainable_roofs(device).seconds_per_byte[index(Level::memory)], 1.0 / 4.5e12);
    EXPECT_DOUBLE_EQ(limit_roofs(device).seconds_per_byte[index(Level::memory)], 1.0 / 4.8e12);
}

TEST(CudaDevice, WhatWasRefusedKeepsTheCeilingThatIsShipped) {
    const Measured measured = read(answer_of("NVIDIA H200"));
    const Device shipped = io::builtin_device("h200-sxm").value();
    EXPECT_DOUBLE_EQ(measured.device.ceilings.at("matrix.fp8").value, shipped.ceilings.at("matrix.fp8").value);
    EXPECT_EQ(measured.device.ceilings.at("matrix.fp8").source, shipped.ceilings.at("matrix.fp8").source);
    EXPECT_EQ(found(measured, "matrix.fp8").problem, "libcublasLt.so is not here");
}

TEST(CudaDevice, FiguresAreHeldAgainstTheDatasheet) {
    const Measured measured = read(answer_of("NVIDIA H200"));
    EXPECT_DOUBLE_EQ(found(measured, "memory.copy").datasheet.value(), 4.8e12);
    EXPECT_DOUBLE_EQ(found(measured, "matrix.int8").datasheet.value(), 1978.9e12);
    EXPECT_DOUBLE_EQ(found(measured, "host.to_device").datasheet.value(), 64e9);
    EXPECT_DOUBLE_EQ(found(measured, "host.both_ways").datasheet.value(), 128e9);  // 64 each way
    EXPECT_FALSE(found(measured, "launch.graph").datasheet.has_value());
    EXPECT_FALSE(found(measured, "cache.read").datasheet.has_value());  // nobody publishes it
    // (1.25 - 0.98) / 1.25
    EXPECT_NEAR(found(measured, "memory.read").spread, 0.216, 1e-12);
    EXPECT_EQ(found(measured, "memory.read").windows, 9);
    EXPECT_EQ(found(measured, "matrix.int8").unit, Unit::flops_per_second);
    EXPECT_EQ(found(measured, "launch.graph").unit, Unit::seconds);
}

TEST(CudaDevice, AFigureAboveTheDatasheetIsSaidAndNeverBeatsTheLimit) {
    io::Json answer = answer_of("NVIDIA H200");
    answer["figures"][0] = figure_of("memory.read", 5.28e12, "B/s");  // 4.8 + 10%
    const Measured measured = read(answer);
    EXPECT_THAT(measured.notes, Contains(HasSubstr("memory.read is 10% above the datasheet")));
    EXPECT_DOUBLE_EQ(attainable_roofs(measured.device).seconds_per_byte[index(Level::memory)], 1.0 / 4.8e12);
}

TEST(CudaDevice, AnUnknownGpuIsMadeOfWhatWasMeasured) {
    const Measured measured = read(answer_of("NVIDIA Quux 9000"));
    const Device& device = measured.device;
    EXPECT_EQ(device.name, "nvidia-quux-9000");
    EXPECT_EQ(device.title, "NVIDIA Quux 9000");
    EXPECT_EQ(device.kind, "gpu");
    EXPECT_EQ(device.generation, "hopper");
    EXPECT_DOUBLE_EQ(device.bandwidth(Level::memory)->value, 4.5e12);
    EXPECT_DOUBLE_EQ(device.capacity(Level::memory)->value, 150109880320.0);
    EXPECT_DOUBLE_EQ(device.capacity(Level::cache)->value, 62914560.0);
    EXPECT_DOUBLE_EQ(device.rate(Engine::matrix, DType::bf16)->value, 8e14);
    EXPECT_FALSE(device.rate(Engine::matrix, DType::fp8).has_value());
    EXPECT_FALSE(found(measured, "memory.read").datasheet.has_value());
    EXPECT_THAT(measured.notes, Contains(HasSubstr("no built-in device is called")));
}

TEST(CudaDevice, IsReadBackFromItsFile) {
    for (const char* gpu : {"NVIDIA H200", "NVIDIA Quux 9000"}) {
        const Measured measured = read(answer_of(gpu));
        const std::string text = measured_json(measured).dump();
        const auto again = io::read_device(text, "this.json");
        ASSERT_TRUE(again.has_value()) << again.error().text;
        EXPECT_EQ(io::write_device(*again), io::write_device(measured.device));
    }
}

TEST(CudaDevice, TheContextSaysUnderWhichConditions) {
    const Measured measured = read(answer_of("NVIDIA H200"));
    EXPECT_EQ(measured.context.at("device"), "cuda:0");
    EXPECT_EQ(measured.context.at("driver"), "580.1");
    EXPECT_EQ(measured.context.at("seconds"), 30.5);
}

TEST(CudaDevice, ABusyGpuIsSaid) {
    io::Json answer = answer_of("NVIDIA H200");
    answer["busy"] = true;
    const Measured measured = read(answer);
    EXPECT_TRUE(measured.busy);
    EXPECT_THAT(measured.notes, Contains(HasSubstr("in use before")));
}

TEST(CudaDevice, TheSlowestPeerIsTheCeilingOfThePeerLink) {
    io::Json answer = answer_of("NVIDIA H200");
    answer["figures"].push_back(figure_of("peer.copy.1", 3.9e11, "B/s"));
    answer["figures"].push_back(figure_of("peer.copy.2", 3.7e11, "B/s"));
    answer["figures"].push_back(figure_of("peer.copy.3", 3.8e11, "B/s"));
    const Measured measured = read(answer);
    EXPECT_DOUBLE_EQ(measured.device.ceilings.at("peer.bandwidth").value, 3.7e11);
    EXPECT_DOUBLE_EQ(found(measured, "peer.copy.1").datasheet.value(), 450e9);
}

// What a library makes of a link is a figure of its own: only copies say what the link gives.
TEST(CudaDevice, AnAllReduceIsShownAndIsNoCeilingOfALink) {
    io::Json answer = answer_of("NVIDIA H200");
    answer["figures"].push_back(figure_of("peer.copy.1", 3.9e11, "B/s"));
    answer["figures"].push_back(figure_of("peer.all_reduce", 2.1e11, "B/s"));
    const Measured measured = read(answer);
    EXPECT_DOUBLE_EQ(measured.device.ceilings.at("peer.bandwidth").value, 3.9e11);
    EXPECT_DOUBLE_EQ(found(measured, "peer.all_reduce").value, 2.1e11);
}

TEST(CudaDevice, WhatIsSustainedIsShownWithClockAndWattsAndIsNoCeiling) {
    io::Json answer = answer_of("NVIDIA H200");
    io::Json figure = figure_of("memory.read.sustained", 4.4e12, "B/s");
    figure["clock_hz"] = 1.755e9;
    figure["watts"] = 612.4;
    answer["figures"].push_back(figure);
    const Measured measured = read(answer);
    EXPECT_DOUBLE_EQ(measured.device.ceilings.at("memory.bandwidth").value, 4.5e12);  // the burst
    EXPECT_DOUBLE_EQ(found(measured, "memory.read.sustained").datasheet.value(), 4.8e12);
    EXPECT_EQ(found(measured, "memory.read.sustained").note, "at 1755 MHz and 612 W");
}

// A B200's datasheet has 9 PFLOP/s of dense fp4.
TEST(CudaDevice, Fp4IsACeilingWhereTheChipHasIt) {
    io::Json answer = answer_of("NVIDIA B200");
    answer["device"]["capability"] = "10.0";
    answer["figures"].push_back(figure_of("matrix.fp4", 6.5e15, "FLOP/s"));
    const Measured measured = read(answer);
    EXPECT_EQ(measured.device.name, "b200-sxm");
    EXPECT_DOUBLE_EQ(measured.device.ceilings.at("matrix.fp4").value, 6.5e15);
    EXPECT_DOUBLE_EQ(found(measured, "matrix.fp4").datasheet.value(), 9e15);
}

TEST(CudaDevice, AWrongAnswerIsRefusedWithItsPlace) {
    io::Json answer = answer_of("NVIDIA H200");
    answer.erase("device");
    EXPECT_THAT(problem_of(answer), HasSubstr("device"));
    answer = answer_of("NVIDIA H200");
    answer["figures"][3]["value"] = -1.0;
    EXPECT_THAT(problem_of(answer), HasSubstr("figures[3].value"));
    answer = answer_of("NVIDIA H200");
    answer["figures"][1]["unit"] = "furlongs";
    EXPECT_THAT(problem_of(answer), HasSubstr("furlongs"));
    answer = answer_of("NVIDIA H200");
    answer["figures"][1]["low"] = 9e12;
    EXPECT_THAT(problem_of(answer), HasSubstr("not between its low and its high"));
    answer = answer_of("NVIDIA H200");
    answer["figures"][1]["name"] = "memory.read";
    EXPECT_THAT(problem_of(answer), HasSubstr("is there twice"));
    answer = answer_of("NVIDIA H200");
    answer["figures"] = 3;
    EXPECT_THAT(problem_of(answer), HasSubstr("figures"));
    answer = answer_of("NVIDIA H200");
    answer["device"]["multiprocessors"] = "many";
    EXPECT_THAT(problem_of(answer), HasSubstr("multiprocessors"));
}

TEST(CudaDevice, OnlyWhatIsNamedIsAskedFor) {
    using Names = std::vector<std::string>;
    EXPECT_EQ(cuda_figures_named(""), Names{});
    EXPECT_EQ(cuda_figures_named("memory"), Names{"memory"});
    EXPECT_EQ(cuda_figures_named("matrix.bf16"), Names{"matrix.bf16"});
    EXPECT_EQ(cuda_figures_named("l2"), Names{"cache"});
    EXPECT_EQ(cuda_figures_named("fp8"), (Names{"vector.fp8", "matrix.fp8"}));
}

std::string last_request;

const char* remember(const char* request, void (*)(void*, const char*), void*) {
    static std::string text;
    last_request = request;
    text = answer_of("NVIDIA H200").dump();
    return text.c_str();
}

TEST(CudaDevice, TheRequestNamesTheDeviceAndTheProbes) {
    const roofline_cuda_backend backend = {roofline_cuda_version, remember};
    const auto wrapped = CudaBackend::wrap(&backend, "fake.so");
    ASSERT_TRUE(wrapped.has_value());
    CudaOptions options;
    options.index = 3;
    options.quick = true;
    options.only = {"memory"};
    const auto measured = measure_cuda(options, *wrapped);
    ASSERT_TRUE(measured.has_value()) << measured.error().text;
    EXPECT_EQ(io::Json::parse(last_request),
              (io::Json{{"do", "measure"}, {"device", 3}, {"quick", true}, {"only", {"memory"}}}));
    EXPECT_EQ(measured->context.at("device"), "cuda:3");
}

/// What an H200 really answered (data/measured/README.md), whole.
TEST(CudaDevice, ARealAnswerIsRead) {
    std::ifstream file(std::string(ROOFLINE_SOURCE_DIR) + "/tests/measure/data/h200_answer.json");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const auto answer = io::parse_json(text, "h200_answer.json");
    ASSERT_TRUE(answer.has_value()) << answer.error().text;
    const Measured measured = read(*answer);
    EXPECT_EQ(measured.device.name, "h200-sxm");
    EXPECT_EQ(measured.found.size(), answer->at("figures").size() + answer->at("refused").size());
    for (const Found& one : measured.found) EXPECT_EQ(one.problem, "") << one.name;
    for (const char* name : {"memory.bandwidth", "cache.bandwidth", "host.bandwidth", "matrix.fp64", "matrix.tf32",
                             "matrix.fp16", "matrix.bf16", "matrix.fp8", "matrix.int8", "vector.fp64", "vector.fp32"})
        EXPECT_EQ(measured.device.ceilings.at(name).source, "this-machine") << name;
}

TEST(CudaDevice, TheRecordedFileOfAnH200IsADevice) {
    std::ifstream file(std::string(ROOFLINE_SOURCE_DIR) + "/data/measured/ceilings/h200-sxm.json");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const auto device = io::read_device(text, "h200-sxm.json");
    ASSERT_TRUE(device.has_value()) << device.error().text;
    EXPECT_EQ(device->name, "h200-sxm");
    EXPECT_DOUBLE_EQ(device->bandwidth(Level::memory)->value, 4.8e12);
    const Roofs limit = limit_roofs(*device);
    const Roofs attainable = attainable_roofs(*device);
    for (const DType type : all_dtypes)
        EXPECT_LE(limit.flop_cost(Engine::matrix, type), attainable.flop_cost(Engine::matrix, type)) << name(type);
}

}  // namespace
}  // namespace roofline::measure

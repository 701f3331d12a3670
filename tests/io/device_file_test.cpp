#include "roofline/io/device_file.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "roofline/core/roof.hpp"
#include "roofline/core/sources.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/embedded.hpp"
#include "roofline/io/names.hpp"

namespace roofline::io {
namespace {

Json smallest() {
    return Json::parse(R"({
        "schema": "roofline.device/1", "name": "toy", "title": "Toy", "vendor": "Nobody", "year": 2026, "kind": "gpu",
        "generation": "toys-2", "multiprocessors": {"value": 96, "unit": "count", "source": "s", "note": "counted"},
        "matrix_tile": {"value": 128, "unit": "count", "source": "s"},
        "aliases": ["plaything"], "status": "announced",
        "engines": [{"id": "matrix", "rates": {"bf16": {"value": 100, "unit": "TFLOP/s", "source": "s"}}}],
        "memory": [{"id": "memory", "technology": "HBM9", "capacity": {"value": 64, "unit": "GiB", "source": "s"},
                    "bandwidth": {"value": 2.5, "unit": "TB/s", "source": "s", "note": "as said"}},
                   {"id": "cache", "capacity": {"value": 50, "unit": "MB", "source": "s"}}],
        "links": [{"id": "peer", "technology": "string", "topology": "mesh", "links": 6,
                   "bandwidth": {"value": 300, "unit": "GB/s", "source": "s"}}],
        "power": {"value": 0.7, "unit": "kW", "source": "s"},
        "ceilings": {"memory.bandwidth": {"value": 2.1, "unit": "TB/s", "source": "m"},
                     "matrix.bf16": {"value": 80, "unit": "TFLOP/s", "source": "m"}},
        "sources": {"s": {"kind": "vendor", "title": "a sheet", "date": "2026"},
                    "m": {"kind": "measured", "title": "a run"}},
        "notes": ["made up"]})");
}

Result<Device> read(const Json& json) {
    return read_device(json.dump(), "toy.json");
}

/// The problem after one change to a good file; it must be one line.
std::string problem_after(const std::function<void(Json&)>& change) {
    Json json = smallest();
    change(json);
    const auto device = read(json);
    if (device) return "no problem";
    EXPECT_EQ(device.error().text.find('\n'), std::string::npos) << device.error().text;
    return device.error().text;
}

void expect_same(const std::optional<Figure>& a, const std::optional<Figure>& b, const std::string& what) {
    ASSERT_EQ(a.has_value(), b.has_value()) << what;
    if (!a) return;
    EXPECT_EQ(a->value, b->value) << what;  // to the last bit
    EXPECT_EQ(a->source, b->source) << what;
    EXPECT_EQ(a->note, b->note) << what;
}

void expect_same(const Device& a, const Device& b) {
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.title, b.title);
    EXPECT_EQ(a.vendor, b.vendor);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.generation, b.generation);
    EXPECT_EQ(a.status, b.status);
    EXPECT_EQ(a.year, b.year);
    EXPECT_EQ(a.aliases, b.aliases);
    EXPECT_EQ(a.notes, b.notes);
    for (const Engine engine : {Engine::matrix, Engine::vector}) {
        for (const DType type : all_dtypes)
            expect_same(a.rate(engine, type), b.rate(engine, type),
                        std::string(name(engine)) + "." + std::string(name(type)));
    }
    for (const Level level : all_levels) {
        const std::string what(name(level));
        ASSERT_EQ(a.level(level).has_value(), b.level(level).has_value()) << what;
        if (!a.level(level)) continue;
        EXPECT_EQ(a.level(level)->technology, b.level(level)->technology) << what;
        EXPECT_EQ(a.level(level)->topology, b.level(level)->topology) << what;
        EXPECT_EQ(a.level(level)->links, b.level(level)->links) << what;
        expect_same(a.level(level)->capacity, b.level(level)->capacity, what);
        expect_same(a.level(level)->reported, b.level(level)->reported, what + ".reported");
        expect_same(a.level(level)->bandwidth, b.level(level)->bandwidth, what);
    }
    expect_same(a.multiprocessors, b.multiprocessors, "multiprocessors");
    expect_same(a.matrix_tile, b.matrix_tile, "matrix_tile");
    expect_same(a.power, b.power, "power");
    ASSERT_EQ(a.ceilings.size(), b.ceilings.size());
    for (const auto& [path, figure] : a.ceilings) {
        ASSERT_TRUE(b.ceilings.contains(path)) << path;
        expect_same(figure, b.ceilings.at(path), path);
    }
    ASSERT_EQ(a.sources.size(), b.sources.size());
    for (const auto& [id, source] : a.sources) {
        ASSERT_TRUE(b.sources.contains(id)) << id;
        EXPECT_EQ(source.kind, b.sources.at(id).kind) << id;
        EXPECT_EQ(source.title, b.sources.at(id).title) << id;
        EXPECT_EQ(source.date, b.sources.at(id).date) << id;
    }
}

Device builtin(std::string_view name) {
    auto device = builtin_device(name);
    EXPECT_TRUE(device.has_value()) << (device ? "" : device.error().text);
    return device ? *device : Device{};
}

// ---- reading

TEST(DeviceFile, UnitsBecomeBaseUnits) {
    const auto device = read(smallest());
    ASSERT_TRUE(device.has_value()) << device.error().text;
    EXPECT_EQ(device->rate(Engine::matrix, DType::bf16)->value, 100e12);
    EXPECT_EQ(device->capacity(Level::memory)->value, 64.0 * 1073741824.0);
    EXPECT_EQ(device->bandwidth(Level::memory)->value, 2.5e12);
    EXPECT_EQ(device->capacity(Level::cache)->value, 50e6);
    EXPECT_EQ(device->bandwidth(Level::cache), nullptr);
    EXPECT_EQ(device->bandwidth(Level::peer)->value, 300e9);
    EXPECT_EQ(device->level(Level::peer)->links, 6);
    EXPECT_EQ(device->level(Level::peer)->topology, "mesh");
    EXPECT_EQ(device->power->value, 700.0);
    EXPECT_EQ(device->ceilings.at("memory.bandwidth").value, 2.1e12);
    EXPECT_EQ(device->ceilings.at("matrix.bf16").value, 80e12);
    EXPECT_EQ(device->sources.at("m").kind, SourceKind::measured);
    EXPECT_EQ(device->bandwidth(Level::memory)->note, "as said");
    EXPECT_EQ(device->status, "announced");
    EXPECT_EQ(device->generation, "toys-2");
    EXPECT_EQ(device->multiprocessors->value, 96.0);
    EXPECT_EQ(device->multiprocessors->note, "counted");
    EXPECT_EQ(device->matrix_tile->value, 128.0);
}

TEST(DeviceFile, WhatIsNotPublishedIsAbsent) {
    const auto device = read(smallest());
    ASSERT_TRUE(device.has_value());
    EXPECT_FALSE(device->rate(Engine::matrix, DType::fp8).has_value());
    EXPECT_FALSE(device->level(Level::host).has_value());
}

TEST(DeviceFile, GenerationAndCountsMayBeAbsent) {
    Json json = smallest();
    for (const char* key : {"generation", "multiprocessors", "matrix_tile"}) json.erase(key);
    const auto device = read(json);
    ASSERT_TRUE(device.has_value()) << device.error().text;
    EXPECT_EQ(device->generation, "");
    EXPECT_FALSE(device->multiprocessors.has_value());
    EXPECT_FALSE(device->matrix_tile.has_value());
    const OrderedJson written = write_device(*device);
    for (const char* key : {"generation", "multiprocessors", "matrix_tile"}) EXPECT_FALSE(written.contains(key)) << key;
}

TEST(DeviceFile, WrittenAndReadAgainItIsTheSameDevice) {
    const auto first = read(smallest());
    ASSERT_TRUE(first.has_value());
    const auto second = read(write_device(*first));
    ASSERT_TRUE(second.has_value()) << second.error().text;
    expect_same(*first, *second);
}

TEST(DeviceFile, EveryProblemIsOneLineThatNamesThePlace) {
    EXPECT_EQ(problem_after([](Json& j) { j["memory"][0]["bandwidth"]["unit"] = "GB"; }),
              "toy.json: memory[0].bandwidth.unit is \"GB\", expected B/s, MB/s, GB/s, TB/s or GiB/s");
    EXPECT_EQ(problem_after([](Json& j) { j["engines"][0]["rates"]["bf16"]["unit"] = "GB/s"; }),
              "toy.json: engines[0].rates.bf16.unit is \"GB/s\", expected FLOP/s, GFLOP/s, TFLOP/s, PFLOP/s, "
              "OP/s, GOP/s, TOP/s or POP/s");
    EXPECT_EQ(problem_after([](Json& j) { j["memory"][0]["bandwidth"].erase("unit"); }),
              "toy.json: memory[0].bandwidth.unit is missing");
    EXPECT_EQ(problem_after([](Json& j) { j["colour"] = "red"; }), "toy.json: colour is not a key of a device file");
    EXPECT_EQ(problem_after([](Json& j) { j["power"]["source"] = "hearsay"; }),
              "toy.json: power.source is \"hearsay\", which the file's \"sources\" do not list");
    EXPECT_EQ(problem_after([](Json& j) { j["power"].erase("source"); }), "toy.json: power.source is missing");
    EXPECT_EQ(problem_after([](Json& j) { j["memory"][0]["bandwidth"]["value"] = -3; }),
              "toy.json: memory[0].bandwidth.value is -3, expected a number above zero");
    EXPECT_EQ(problem_after([](Json& j) { j["memory"][0]["bandwidth"]["value"] = 0; }),
              "toy.json: memory[0].bandwidth.value is 0, expected a number above zero");
    EXPECT_EQ(problem_after([](Json& j) { j["memory"][0]["bandwidth"]["value"] = "2.5"; }),
              "toy.json: memory[0].bandwidth.value is \"2.5\", expected a number above zero");
    EXPECT_EQ(problem_after([](Json& j) { j["memory"][0].erase("bandwidth"); }),
              "toy.json: memory has no level \"memory\" with a bandwidth");
    EXPECT_EQ(problem_after([](Json& j) { j["memory"].erase(0); }),
              "toy.json: memory has no level \"memory\" with a bandwidth");
    EXPECT_EQ(problem_after([](Json& j) { j["schema"] = "roofline.device/2"; }),
              "toy.json: schema is \"roofline.device/2\", expected \"roofline.device/1\"");
    EXPECT_EQ(problem_after([](Json& j) { j.erase("schema"); }), "toy.json: schema is missing");
    EXPECT_EQ(problem_after([](Json& j) { j["power"] = 700; }), "toy.json: power is 700, expected an object");
    EXPECT_EQ(problem_after([](Json& j) { j["engines"][0]["rates"]["bf16"] = 100; }),
              "toy.json: engines[0].rates.bf16 is 100, expected an object");
    EXPECT_EQ(problem_after([](Json& j) { j["engines"][0]["id"] = "quantum"; }),
              "toy.json: engines[0].id is \"quantum\", expected matrix or vector");
    EXPECT_EQ(problem_after([](Json& j) {
                  j["engines"][0]["rates"]["fp7"] = j["power"];
              }).find("toy.json: engines[0].rates.fp7 is not a number type"),
              0U);
    EXPECT_EQ(problem_after([](Json& j) { j["memory"][1]["id"] = "peer"; }),
              "toy.json: memory[1].id is \"peer\", which is not a level that memory may list");
    EXPECT_EQ(problem_after([](Json& j) { j["links"][0]["id"] = "memory"; }),
              "toy.json: links[0].id is \"memory\", which is not a level that links may list");
    EXPECT_EQ(problem_after([](Json& j) { j["sources"]["s"]["kind"] = "rumour"; }),
              "toy.json: sources.s.kind is \"rumour\", expected vendor, measured, derived or assumed");
    EXPECT_EQ(problem_after([](Json& j) { j.erase("sources"); }), "toy.json: sources is missing");
    EXPECT_EQ(problem_after([](Json& j) { j.erase("name"); }), "toy.json: name is missing");
    EXPECT_EQ(problem_after([](Json& j) { j["year"] = 2026.5; }),
              "toy.json: year is 2026.5, expected a whole number from 0 to 1e+09");
    EXPECT_EQ(problem_after([](Json& j) { j["aliases"] = "plaything"; }),
              "toy.json: aliases is \"plaything\", expected a list of strings");
}

TEST(DeviceFile, CountsAreWholeAndAboveZero) {
    EXPECT_EQ(problem_after([](Json& j) { j["multiprocessors"]["unit"] = "GB"; }),
              "toy.json: multiprocessors.unit is \"GB\", expected count");
    EXPECT_EQ(problem_after([](Json& j) { j["multiprocessors"]["value"] = -132; }),
              "toy.json: multiprocessors.value is -132, expected a whole number from 1 to 1e+09");
    EXPECT_EQ(problem_after([](Json& j) { j["multiprocessors"]["value"] = 0; }),
              "toy.json: multiprocessors.value is 0, expected a whole number from 1 to 1e+09");
    EXPECT_EQ(problem_after([](Json& j) { j["matrix_tile"]["value"] = 127.5; }),
              "toy.json: matrix_tile.value is 127.5, expected a whole number from 1 to 1e+09");
    EXPECT_EQ(problem_after([](Json& j) { j["matrix_tile"].erase("source"); }),
              "toy.json: matrix_tile.source is missing");
    EXPECT_EQ(problem_after([](Json& j) { j["multiprocessors"] = 132; }),
              "toy.json: multiprocessors is 132, expected an object");
}

TEST(DeviceFile, AGenerationHasOneSpelling) {
    EXPECT_EQ(problem_after([](Json& j) { j["generation"] = "Hopper"; }),
              "toy.json: generation is \"Hopper\", expected lower-case letters, digits and dashes");
    EXPECT_EQ(problem_after([](Json& j) { j["generation"] = "rdna 3.5"; }),
              "toy.json: generation is \"rdna 3.5\", expected lower-case letters, digits and dashes");
}

TEST(DeviceFile, AMeasuredCeilingIsOfSomethingThatExists) {
    const auto with = [](const char* path, const char* unit) {
        return problem_after([&](Json& j) { j["ceilings"][path] = {{"value", 1}, {"unit", unit}, {"source", "m"}}; });
    };
    EXPECT_EQ(with("peer.bandwidth", "GB/s"), "no problem");
    EXPECT_EQ(with("vector.fp32", "TFLOP/s"), "no problem");
    EXPECT_NE(with("matrix.fp7", "TFLOP/s").find("toy.json: ceilings.matrix.fp7"), std::string::npos);
    EXPECT_NE(with("matrix.bf16", "GB/s").find("toy.json: ceilings.matrix.bf16.unit"), std::string::npos);
    EXPECT_NE(with("banana.bandwidth", "GB/s"), "no problem") << "no level is called banana";
}

TEST(DeviceFile, ProblemsStayOnOneLineWhateverAKeyHolds) {
    EXPECT_NE(problem_after([](Json& j) { j["two\nlines"] = 1; }), "no problem");
    EXPECT_NE(problem_after([](Json& j) { j["schema"] = "two\nlines"; }), "no problem");
}

TEST(DeviceFile, BytesThatAreNoJsonAreAProblem) {
    for (const char* text : {"", "{", "[]", "null", "7", "{\"schema\": 1}", "\xff\xfe"})
        EXPECT_FALSE(read_device(text, "toy.json").has_value()) << text;
}

// ---- the devices the program carries

TEST(BuiltinDevices, EveryOneLoadsUnderTheNameOfItsFile) {
    ASSERT_GE(embedded_devices().size(), 80U);
    for (const EmbeddedFile& file : embedded_devices()) {
        SCOPED_TRACE(file.name);
        const auto device = read_device(file.text, file.name);
        ASSERT_TRUE(device.has_value()) << device.error().text;
        EXPECT_EQ(device->name, file.name);
        EXPECT_FALSE(device->title.empty());
        EXPECT_FALSE(device->vendor.empty());
        EXPECT_GT(device->year, 2010);
    }
}

TEST(BuiltinDevices, EveryOneIsTheSameAfterWritingAndReading) {
    for (const EmbeddedFile& file : embedded_devices()) {
        SCOPED_TRACE(file.name);
        const auto first = read_device(file.text, file.name);
        ASSERT_TRUE(first.has_value()) << first.error().text;
        const auto second = read_device(write_device(*first).dump(), file.name);
        ASSERT_TRUE(second.has_value()) << second.error().text;
        expect_same(*first, *second);
    }
}

TEST(BuiltinDevices, NoTwoAnswerToTheSameName) {
    std::map<std::string, std::string> owner;
    for (const EmbeddedFile& file : embedded_devices()) {
        const Device device = builtin(file.name);
        std::vector<std::string> names = device.aliases;
        names.push_back(device.name);
        for (const std::string& name : names) {
            const auto [place, fresh] = owner.try_emplace(normalised(name), device.name);
            EXPECT_TRUE(fresh || place->second == device.name)
                << name << " is " << place->second << " and " << device.name;
        }
    }
}

TEST(BuiltinDevices, AreFoundByTheNamesDriversAndPeopleUse) {
    EXPECT_EQ(builtin("NVIDIA H100 80GB HBM3").name, "h100-sxm");
    EXPECT_EQ(builtin("H100_SXM").name, "h100-sxm");
    EXPECT_EQ(builtin("TPU v4").name, "tpu-v4");
    const auto missing = builtin_device("h100-sxn");
    ASSERT_FALSE(missing.has_value());
    EXPECT_NE(missing.error().text.find("did you mean h100-sxm"), std::string::npos) << missing.error().text;
    const auto near = builtin_device("h101");
    ASSERT_FALSE(near.has_value());
    EXPECT_NE(near.error().text.find("h100-sxm"), std::string::npos) << near.error().text;
}

TEST(BuiltinDevices, RidgesAreThoseOfTheDatasheets) {
    // 989.4 TFLOP/s over 3.35 TB/s, 312 over 2.039, 275 over 1.2
    EXPECT_NEAR(ridge(builtin("h100-sxm"), DType::fp16)->value, 295.3, 0.05);
    EXPECT_NEAR(ridge(builtin("a100-sxm-80gb"), DType::fp16)->value, 153.0, 0.05);
    EXPECT_NEAR(ridge(builtin("tpu-v4"), DType::bf16)->value, 229.2, 0.05);
}

TEST(BuiltinDevices, TensorRatesAreDenseNotSparse) {
    // Datasheets print, with sparsity: H100 and H200 1979 (16 bit) and 3958 (8 bit) TFLOP/s; an HGX B200 of eight 36,
    // 72 and 144 PFLOP/s in 16, 8 and 4 bits. Half of each is dense.
    for (const char* name : {"h100-sxm", "h200-sxm"}) {
        SCOPED_TRACE(name);
        EXPECT_NEAR(builtin(name).rate(Engine::matrix, DType::fp16)->value, 989.5e12, 0.5e12);
        EXPECT_NEAR(builtin(name).rate(Engine::matrix, DType::bf16)->value, 989.5e12, 0.5e12);
        EXPECT_NEAR(builtin(name).rate(Engine::matrix, DType::fp8)->value, 1979e12, 0.5e12);
    }
    EXPECT_NEAR(builtin("b200-sxm").rate(Engine::matrix, DType::bf16)->value, 2250e12, 1e12);
    EXPECT_NEAR(builtin("b200-sxm").rate(Engine::matrix, DType::fp8)->value, 4500e12, 1e12);
    EXPECT_NEAR(builtin("b200-sxm").rate(Engine::matrix, DType::fp4)->value, 9000e12, 1e12);
}

TEST(BuiltinDevices, LinksArePerDirection) {
    // PCIe 5.0: 32 GT/s on 16 lanes is 64 GB/s each way. NVLink 4: 18 links of 25 GB/s each way, sold as 900 GB/s.
    EXPECT_EQ(builtin("h100-sxm").bandwidth(Level::host)->value, 64e9);
    EXPECT_EQ(builtin("h100-sxm").bandwidth(Level::peer)->value, 450e9);
    for (const EmbeddedFile& file : embedded_devices()) {
        const Device device = builtin(file.name);
        const std::map<std::string, double> per_direction = {
            {"PCIe 3.0 x16", 16e9}, {"PCIe 4.0 x16", 32e9}, {"PCIe 5.0 x16", 64e9}, {"PCIe 6.0 x16", 128e9},
            {"NVLink 2", 150e9},    {"NVLink 3", 300e9},    {"NVLink 4", 450e9},    {"NVLink 5", 900e9}};
        for (const Level level : {Level::host, Level::peer}) {
            if (!device.level(level) || device.bandwidth(level) == nullptr) continue;
            const auto known = per_direction.find(device.level(level)->technology);
            if (known == per_direction.end()) continue;
            EXPECT_EQ(device.bandwidth(level)->value, known->second) << file.name;
        }
    }
}

TEST(BuiltinDevices, EveryOneNamesItsGeneration) {
    // Calibration is shared by vendor and generation, so a misspelt one would quietly stand alone. A new generation is
    // added here on purpose.
    const std::map<std::string, std::vector<std::string>> known = {
        {"NVIDIA",
         {"volta", "turing", "ampere", "ampere-consumer", "ampere-jetson", "ada", "hopper", "blackwell",
          "blackwell-rtx", "blackwell-jetson", "rubin"}},
        {"AMD", {"cdna2", "cdna3", "cdna4", "cdna5", "rdna3", "rdna3-5", "rdna4"}},
        {"Intel", {"battlemage", "xe-hpc", "gaudi2", "gaudi3", "sapphire-rapids", "emerald-rapids", "granite-rapids"}},
        {"Apple", {"apple-m1", "apple-m2", "apple-m3", "apple-m4", "apple-m5"}},
        {"Google", {"tpu-v3", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7"}},
        {"AWS", {"neuroncore-v2", "neuroncore-v3", "neuroncore-v4"}},
        {"Huawei", {"ascend-950"}},
        {"Cerebras", {"wse-3"}},
        {"Groq", {"lpu-v1"}},
        {"SambaNova", {"sn40"}}};
    for (const EmbeddedFile& file : embedded_devices()) {
        SCOPED_TRACE(file.name);
        const Device device = builtin(file.name);
        const auto vendor = known.find(device.vendor);
        ASSERT_NE(vendor, known.end()) << device.vendor;
        EXPECT_EQ(std::ranges::count(vendor->second, device.generation), 1) << device.generation;
    }
}

TEST(BuiltinDevices, EveryNvidiaDeviceHasItsMultiprocessors) {
    for (const EmbeddedFile& file : embedded_devices()) {
        const Device device = builtin(file.name);
        if (device.vendor != "NVIDIA" || device.kind != "gpu") continue;
        ASSERT_TRUE(device.multiprocessors.has_value()) << file.name;
        EXPECT_GE(device.multiprocessors->value, 8.0) << file.name;
        EXPECT_LE(device.multiprocessors->value, 256.0) << file.name;
    }
    EXPECT_EQ(builtin("a100-sxm-80gb").multiprocessors->value, 108.0);
    EXPECT_EQ(builtin("h100-sxm").multiprocessors->value, 132.0);
    EXPECT_EQ(builtin("h100-pcie").multiprocessors->value, 114.0);
    EXPECT_EQ(builtin("b200-sxm").multiprocessors->value, 148.0);
    EXPECT_EQ(builtin("mi300x").multiprocessors->value, 304.0);
}

TEST(BuiltinDevices, MultiprocessorsFitTheVectorRate) {
    // NVIDIA since Ampere's second half: 128 multiply-adds a clock and multiprocessor, so that rate over count is a
    // clock frequency. A count of the whole die, or of two dies, would show here.
    for (const EmbeddedFile& file : embedded_devices()) {
        const Device device = builtin(file.name);
        const auto& rate = device.rate(Engine::vector, DType::fp32);
        if (device.vendor != "NVIDIA" || !rate || !device.multiprocessors || device.year < 2020) continue;
        const bool half = device.generation == "ampere";  // A100 and A30: 64
        const double clock = rate->value / (device.multiprocessors->value * (half ? 128.0 : 256.0));
        EXPECT_GT(clock, 0.9e9) << file.name;
        EXPECT_LT(clock, 2.7e9) << file.name;
    }
}

TEST(BuiltinDevices, ATileIsGivenWhereAFewLargeArraysCompute) {
    EXPECT_EQ(builtin("tpu-v5e").matrix_tile->value, 128.0);
    EXPECT_EQ(builtin("tpu-v6e").matrix_tile->value, 256.0);
    EXPECT_EQ(builtin("tpu-v7").matrix_tile->value, 256.0);
    for (const EmbeddedFile& file : embedded_devices()) {
        const Device device = builtin(file.name);
        EXPECT_FALSE(device.matrix_tile && device.multiprocessors) << file.name;
        EXPECT_EQ(device.matrix_tile.has_value(), device.vendor == "Google" || device.vendor == "AWS") << file.name;
    }
}

TEST(BuiltinDevices, OfOneChipHaveOneCacheAndSayWhereItWasMeasured) {
    // Otherwise a residual add, which stays in the L2, would be slower on the one that was measured.
    const auto h200 = builtin_device("h200-sxm");
    ASSERT_TRUE(h200);
    for (const char* name : {"h100-sxm", "gh200", "gh200-144gb"}) {
        const auto device = builtin_device(name);
        ASSERT_TRUE(device) << name;
        EXPECT_EQ(device->multiprocessors->value, h200->multiprocessors->value) << name;
        const Figure& cache = device->ceilings.at("cache.bandwidth");
        EXPECT_EQ(cache.value, h200->ceilings.at("cache.bandwidth").value) << name;
        EXPECT_TRUE(is_assumed(*device, cache)) << name;
        EXPECT_FALSE(has_measured_ceilings(*device)) << name;
    }
    EXPECT_TRUE(has_measured_ceilings(*h200));
}

TEST(BuiltinDevices, NarrowerNumbersAreNeverSlowerOnTheSameEngine) {
    // A rate given with sparsity for one type and without for another would show here as a wrong ratio.
    for (const EmbeddedFile& file : embedded_devices()) {
        const Device device = builtin(file.name);
        const auto& wide = device.rate(Engine::matrix, DType::bf16);
        const auto& narrow = device.rate(Engine::matrix, DType::fp8);
        if (!wide || !narrow) continue;
        EXPECT_GE(narrow->value, 0.99 * wide->value) << file.name;
        EXPECT_LE(narrow->value, 4.5 * wide->value) << file.name;  // Rubin's 17.5 to 4 PFLOP/s is the steepest
    }
}

}  // namespace
}  // namespace roofline::io

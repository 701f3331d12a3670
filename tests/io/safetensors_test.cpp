#include "roofline/io/safetensors.hpp"

#include <random>

#include <gtest/gtest.h>

namespace roofline::io {
namespace {

std::vector<std::byte> file_of(std::string_view header, std::size_t data) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < 8; ++i) {
        bytes.push_back(static_cast<std::byte>(header.size() >> (8 * i) & 0xff));
    }
    for (char c : header) {
        bytes.push_back(static_cast<std::byte>(c));
    }
    bytes.resize(bytes.size() + data);
    return bytes;
}

std::string problem_of(const HeaderResult<std::vector<StoredTensor>>& result) {
    if (result) {
        return "";
    }
    const auto* problem = std::get_if<Problem>(&result.error());
    return problem != nullptr ? problem->text : "need more";
}

std::string problem_of(std::string_view header, std::size_t data) {
    auto bytes = file_of(header, data);
    return problem_of(read_safetensors(bytes, bytes.size(), "m.safetensors"));
}

// 2 x 3 BF16 = 12 bytes, 4 FP8 = 4 bytes, 6 F4 = 3 bytes, an empty tensor: 19 bytes of data.
constexpr std::string_view sound = R"({"__metadata__":{"format":"pt"},)"
                                   R"("a.weight":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
                                   R"("b.weight":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[12,16]},)"
                                   R"("c.weight":{"dtype":"F4","shape":[6],"data_offsets":[16,19]},)"
                                   R"("d":{"dtype":"F32","shape":[0,7],"data_offsets":[19,19]}}   )";
constexpr std::size_t sound_data = 19;

TEST(Safetensors, ReadsTypesShapesAndBytes) {
    auto bytes = file_of(sound, sound_data);
    auto tensors = read_safetensors(bytes, bytes.size(), "m.safetensors");
    ASSERT_TRUE(tensors) << problem_of(tensors);
    ASSERT_EQ(tensors->size(), 4U);
    EXPECT_EQ((*tensors)[0].name, "a.weight");
    EXPECT_EQ((*tensors)[0].type, "BF16");
    EXPECT_EQ((*tensors)[0].shape, (std::vector<std::uint64_t>{2, 3}));
    EXPECT_EQ((*tensors)[0].elements, 6U);
    EXPECT_EQ((*tensors)[0].bytes, 12U);
    EXPECT_EQ((*tensors)[2].bytes, 3U);
    EXPECT_EQ((*tensors)[3].elements, 0U);
}

TEST(Safetensors, EveryPrefixAsksForMore) {
    auto bytes = file_of(sound, sound_data);
    for (std::size_t length = 0; length < 8 + sound.size(); ++length) {
        auto result = read_safetensors(std::span(bytes).first(length), bytes.size(), "m.safetensors");
        ASSERT_FALSE(result);
        ASSERT_NE(std::get_if<NeedMore>(&result.error()), nullptr);
        EXPECT_EQ(std::get<NeedMore>(result.error()).bytes, length < 8 ? 8 : 8 + sound.size());
    }
    EXPECT_TRUE(read_safetensors(std::span(bytes).first(8 + sound.size()), bytes.size(), "m.safetensors"));
}

TEST(Safetensors, EveryTruncatedFileIsAProblem) {
    auto bytes = file_of(sound, sound_data);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        auto result = read_safetensors(std::span(bytes).first(length), length, "m.safetensors");
        EXPECT_NE(problem_of(result).find("truncated"), std::string::npos) << problem_of(result);
    }
}

TEST(Safetensors, WrongHeadersAreRefusedWithTheReason) {
    const std::pair<std::string_view, std::string_view> cases[] = {
        {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "needs 8 bytes"},
        {R"({"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})", "unknown dtype \"F99\""},
        {R"({"a":{"dtype":"F32","shape":[1]}})", "a: data_offsets is missing"},
        {R"({"a":{"shape":[1],"data_offsets":[0,4]}})", "a: dtype is missing"},
        {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "the number -1"},
        {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", "the number 1.5"},
        {R"({"a":{"dtype":"F32","shape":"x","data_offsets":[0,4]}})", ""},
        {R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", "a number"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", "3 numbers"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "data_offsets 4 to 0"},
        {R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", "whole number of bytes"},
        {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}})",
         "twice"},
        {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})", "starts at 1"},
        {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "hold 3 bytes, but the file has 4"},
        {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
         "starts at 2"},
        {R"({"a":{"dtype":"U8","shape":[18446744073709551615,2],"data_offsets":[0,4]}})", "more elements"},
        {R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", "more than 16"},
        {R"({"a":[[[[[[]]]]]]})", "an array"},
        {R"({"a":{"b":{}}})", "an object"},
        {R"({"a":)", "not valid JSON"},
        {R"([])", "not a safetensors file"},
        {"", "not a safetensors file"},
    };
    for (const auto& [header, reason] : cases) {
        std::string problem = problem_of(header, 4);
        EXPECT_NE(problem, "") << header;
        EXPECT_NE(problem.find(reason), std::string::npos) << header << " / " << problem;
    }
}

TEST(Safetensors, AnEndlessHeaderIsRefusedAtOnce) {
    std::vector<std::byte> bytes(64, std::byte{0xff});
    EXPECT_NE(problem_of(read_safetensors(bytes, bytes.size(), "m")).find("at most 100000000"), std::string::npos);
}

TEST(Safetensors, OpenBracketsDoNotPileUp) {
    std::string header = R"({"a":)" + std::string(1'000'000, '[');
    EXPECT_NE(problem_of(header, 0), "");
}

TEST(Safetensors, FlippedBytesNeverCrash) {
    const auto good = file_of(sound, sound_data);
    std::mt19937 random(7);
    std::size_t refused = 0;
    for (int i = 0; i < 20000; ++i) {
        auto bytes = good;
        for (auto flips = 1 + random() % 3; flips > 0; --flips) {
            bytes[random() % (8 + sound.size())] = static_cast<std::byte>(random() & 0xff);
        }
        refused += read_safetensors(bytes, bytes.size(), "m") ? 0 : 1;
    }
    EXPECT_GT(refused, 5000U);
}

TEST(SafetensorsIndex, GivesTheDistinctFiles) {
    auto files = read_safetensors_index(
        R"({"metadata":{"total_size":5,"more":[{}]},"weight_map":{"a":"m-2.safetensors","b":"m-1.safetensors",)"
        R"("c":"m-2.safetensors"}})",
        "i.json");
    // Objects inside lists are more than an index ever has.
    EXPECT_FALSE(files);
    files = read_safetensors_index(
        R"({"metadata":{"total_size":5},"weight_map":{"a":"m-2.safetensors","b":"m-1.safetensors",)"
        R"("c":"m-2.safetensors"}})",
        "i.json");
    ASSERT_TRUE(files) << files.error().text;
    EXPECT_EQ(*files, (std::vector<std::string>{"m-1.safetensors", "m-2.safetensors"}));
}

TEST(SafetensorsIndex, PathsAreRefused) {
    for (std::string_view name : {"../m.safetensors", "/etc/m.safetensors", "a\\\\m.safetensors", "C:m.safetensors",
                                  ".m.safetensors", "passwd", "", "m\\u0000.safetensors"}) {
        std::string text = R"({"weight_map":{"a":")" + std::string(name) + R"("}})";
        auto files = read_safetensors_index(text, "i.json");
        ASSERT_FALSE(files) << name;
        EXPECT_NE(files.error().text.find("i.json: "), std::string::npos);
    }
}

TEST(SafetensorsIndex, OtherDocumentsAreRefused) {
    for (std::string_view text : {"", "{}", "[]", "7", "null", R"({"weight_map":7})", R"({"weight_map":{}})",
                                  R"({"weight_map":"x.safetensors"})", R"({"weight_map":{"a":{"b":"c"}}})",
                                  R"({"weight_map":{"a":3}})", R"({"weight_map":["a.safetensors"]})", "{"}) {
        EXPECT_FALSE(read_safetensors_index(text, "i.json")) << text;
    }
}

}  // namespace
}  // namespace roofline::io

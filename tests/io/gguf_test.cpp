#include "roofline/io/gguf.hpp"

#include <random>

#include <gtest/gtest.h>

#include "gguf_writer.hpp"

namespace roofline::io {
namespace {

using testing::GgufWriter;
using testing::problem_of;
using testing::read;
using testing::tiny_llama;

constexpr std::uint64_t huge = std::uint64_t{1} << 60;

std::vector<std::byte> counts_only(std::uint64_t tensors, std::uint64_t pairs) {
    std::vector<std::byte> bytes;
    for (char c : std::string_view("GGUF")) {
        bytes.push_back(static_cast<std::byte>(c));
    }
    GgufWriter::put(bytes, 3, 4);
    GgufWriter::put(bytes, tensors, 8);
    GgufWriter::put(bytes, pairs, 8);
    return bytes;
}

TEST(Gguf, ReadsATinyLlama) {
    auto gguf = read(tiny_llama().file());
    ASSERT_TRUE(gguf) << problem_of(gguf);
    EXPECT_EQ(gguf->version, 3U);
    EXPECT_EQ(gguf->string_at("general.architecture"), "llama");
    EXPECT_EQ(gguf->unsigned_at("llama.block_count"), 2U);
    EXPECT_EQ(gguf->bool_at("tokenizer.ggml.add_bos_token"), true);
    EXPECT_EQ(gguf->number_at("llama.rope.freq_base"), 10000.0);
    EXPECT_EQ(gguf->count_at("tokenizer.ggml.tokens"), 3U);
    EXPECT_EQ(gguf->tensors.size(), 1U + 2 * 9 + 2);
    EXPECT_EQ(gguf->header_bytes, tiny_llama().header().size());
    EXPECT_EQ(gguf->data_offset % 32, 0U);
}

TEST(Gguf, VersionTwoHasTheSameLayout) {
    GgufWriter writer = tiny_llama();
    writer.version = 2;
    EXPECT_TRUE(read(writer.file()));
}

TEST(Gguf, BytesOfTensorsFollowTheirBlocks) {
    auto gguf = read(tiny_llama().file());
    ASSERT_TRUE(gguf);
    // Q4_K: 256 weights in 144 bytes. 256 x 320 weights are 320 blocks.
    EXPECT_EQ(gguf->tensor("token_embd.weight")->bytes, 320U * 144);
    // Q6_K: 256 weights in 210 bytes. 512 x 256 weights are 512 blocks.
    EXPECT_EQ(gguf->tensor("blk.1.ffn_down.weight")->bytes, 512U * 210);
    // F32: 256 weights of 4 bytes.
    EXPECT_EQ(gguf->tensor("output_norm.weight")->bytes, 1024U);
}

TEST(Gguf, GoldenSizesOfRealMatrices) {
    struct Golden {
        std::uint32_t type;
        std::string_view name;
        std::uint64_t bytes;
    };
    // 4096 x 4096 = 16,777,216 weights = 65,536 blocks of 256 = 131,072 of 128 = 262,144 of 64 = 524,288 of 32.
    const Golden golden[] = {
        {0, "F32", 67'108'864},      // 4 bytes each
        {30, "BF16", 33'554'432},    // 2 bytes each
        {2, "Q4_0", 9'437'184},      // 524,288 x 18: 4.5 bits a weight
        {8, "Q8_0", 17'825'792},     // 524,288 x 34: 8.5 bits
        {10, "Q2_K", 5'505'024},     // 65,536 x 84: 2.625 bits
        {11, "Q3_K", 7'208'960},     // 65,536 x 110: 3.4375 bits
        {12, "Q4_K", 9'437'184},     // 65,536 x 144: 4.5 bits
        {13, "Q5_K", 11'534'336},    // 65,536 x 176: 5.5 bits
        {14, "Q6_K", 13'762'560},    // 65,536 x 210: 6.5625 bits
        {16, "IQ2_XXS", 4'325'376},  // 65,536 x 66: 2.0625 bits
        {19, "IQ1_S", 3'276'800},    // 65,536 x 50: 1.5625 bits
        {23, "IQ4_XS", 8'912'896},   // 65,536 x 136: 4.25 bits
        {34, "TQ1_0", 3'538'944},    // 65,536 x 54: 1.6875 bits
        {39, "MXFP4", 8'912'896},    // 524,288 x 17: 4.25 bits
        {40, "NVFP4", 9'437'184},    // 262,144 x 36: 4.5 bits
        {41, "Q1_0", 2'359'296},     // 131,072 x 18: 1.125 bits
        {42, "Q2_0", 4'718'592},     // 262,144 x 18: 2.25 bits
    };
    for (const Golden& row : golden) {
        GgufWriter writer;
        writer.tensor("w", row.type, {4096, 4096});
        auto gguf = read_gguf(writer.header(), writer.file_size(), "x.gguf");
        ASSERT_TRUE(gguf) << problem_of(gguf);
        EXPECT_EQ(gguf->tensors[0].type, row.name);
        EXPECT_EQ(gguf->tensors[0].bytes, row.bytes) << row.name;
        EXPECT_EQ(gguf->tensors[0].elements, 16'777'216U);
    }
}

TEST(Gguf, ShapesComeSlowestDimensionFirst) {
    auto gguf = read(tiny_llama().file());
    ASSERT_TRUE(gguf);
    EXPECT_EQ(gguf->tensor("token_embd.weight")->shape, (std::vector<std::uint64_t>{320, 256}));
}

TEST(Gguf, EveryKindOfValueIsRead) {
    GgufWriter writer;
    writer.scalar("u8", 0, 0xff, 1)
        .scalar("i8", 1, 0xff, 1)
        .scalar("u16", 2, 0xffff, 2)
        .scalar("i16", 3, 0xfffe, 2)
        .scalar("i32", 5, 0xfffffffd, 4)
        .scalar("u64", 10, ~std::uint64_t{0}, 8)
        .scalar("i64", 11, 7, 8)
        .scalar("f64", 12, std::bit_cast<std::uint64_t>(0.25), 8)
        .u32s("list", {1, 2, 3})
        .flags("flags", {true, false});
    auto gguf = read(writer.file());
    ASSERT_TRUE(gguf) << problem_of(gguf);
    EXPECT_EQ(gguf->unsigned_at("u8"), 255U);
    EXPECT_EQ(gguf->number_at("i8"), -1.0);
    EXPECT_FALSE(gguf->unsigned_at("i8"));
    EXPECT_EQ(gguf->unsigned_at("u16"), 65535U);
    EXPECT_EQ(gguf->number_at("i16"), -2.0);
    EXPECT_EQ(gguf->number_at("i32"), -3.0);
    EXPECT_EQ(gguf->unsigned_at("u64"), ~std::uint64_t{0});
    EXPECT_EQ(gguf->unsigned_at("i64"), 7U);
    EXPECT_EQ(gguf->number_at("f64"), 0.25);
    auto list = gguf->numbers_at("list");
    ASSERT_TRUE(list);
    EXPECT_EQ(std::vector<double>(list->begin(), list->end()), (std::vector<double>{1, 2, 3}));
    EXPECT_EQ(gguf->numbers_at("flags")->front(), 1.0);
    EXPECT_FALSE(gguf->string_at("u8"));
    EXPECT_FALSE(gguf->number_at("list"));
    EXPECT_FALSE(gguf->unsigned_at("absent"));
}

TEST(Gguf, LongArraysKeepOnlyTheirCount) {
    GgufWriter writer;
    writer.u32s("kept", std::vector<std::uint32_t>(65536, 1)).u32s("counted", std::vector<std::uint32_t>(65537, 1));
    auto gguf = read(writer.file());
    ASSERT_TRUE(gguf);
    EXPECT_EQ(gguf->numbers_at("kept")->size(), 65536U);
    EXPECT_FALSE(gguf->numbers_at("counted"));
    EXPECT_EQ(gguf->count_at("counted"), 65537U);
}

TEST(Gguf, TruncatedHeaderNamesTheByte) {
    auto bytes = tiny_llama().file();
    bytes.resize(10);
    EXPECT_EQ(problem_of(read(bytes)), "x.gguf: truncated: the header needs byte 16 but the file ends at 10");
}

TEST(Gguf, MissingDataNamesTheTensor) {
    GgufWriter writer;
    writer.tensor("w", 12, {256, 2});  // 288 bytes, behind a header of 24 + 9 + 4 + 16 + 4 + 8 = 65, aligned 96
    auto bytes = writer.file();
    bytes.resize(300);
    EXPECT_EQ(problem_of(read(bytes)),
              "x.gguf: truncated: tensor w needs 288 bytes from byte 96 on, up to byte 384, but the file ends at 300");
}

TEST(Gguf, EveryPrefixAsksForMoreAndArrivesInFewRounds) {
    auto bytes = tiny_llama().file();
    std::size_t header = tiny_llama().header().size();
    for (std::size_t length = 0; length < header; ++length) {
        auto result = read_gguf(std::span(bytes).first(length), bytes.size(), "x.gguf");
        ASSERT_FALSE(result);
        const auto* more = std::get_if<NeedMore>(&result.error());
        ASSERT_NE(more, nullptr) << problem_of(result);
        EXPECT_GT(more->bytes, length);
        EXPECT_LE(more->bytes, bytes.size());
    }
    std::size_t length = 0;
    int rounds = 0;
    for (;; ++rounds) {
        auto result = read_gguf(std::span(bytes).first(length), bytes.size(), "x.gguf");
        if (result) {
            break;
        }
        ASSERT_NE(std::get_if<NeedMore>(&result.error()), nullptr);
        length = static_cast<std::size_t>(std::get<NeedMore>(result.error()).bytes);
    }
    EXPECT_LT(rounds, 16);
    EXPECT_TRUE(read_gguf(std::span(bytes).first(header), bytes.size(), "x.gguf"));
}

TEST(Gguf, EveryTruncatedFileIsAProblem) {
    auto bytes = tiny_llama().file();
    std::size_t header = tiny_llama().header().size();
    for (std::size_t length = 0; length < bytes.size(); length += length < header + 64 ? 1 : 997) {
        auto cut = std::vector(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
        auto result = read(cut);
        // Only the padding behind the last tensor's bytes may be missing: 320 x 210 is a multiple of 32, so none.
        EXPECT_NE(problem_of(result), "") << length;
        EXPECT_NE(problem_of(result), "need more") << length;
    }
}

TEST(Gguf, FlippedBytesNeverCrash) {
    const auto sound = tiny_llama().file();
    const std::size_t header = tiny_llama().header().size();
    std::mt19937 random(20240229);
    std::size_t refused = 0;
    for (int i = 0; i < 20000; ++i) {
        auto bytes = std::vector(sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(header));
        for (auto flips = 1 + random() % 4; flips > 0; --flips) {
            bytes[random() % header] = static_cast<std::byte>(random() & 0xff);
        }
        refused += read_gguf(bytes, sound.size(), "x.gguf") ? 0 : 1;
    }
    EXPECT_GT(refused, 5000U);
    EXPECT_LT(refused, 20000U);
}

TEST(Gguf, HostileCountsAreRefusedBeforeAnythingIsAllocated) {
    EXPECT_EQ(problem_of(read(counts_only(huge, 0))),
              "x.gguf: 1152921504606846976 tensors do not fit in a file of 24 bytes");
    EXPECT_EQ(problem_of(read(counts_only(0, huge))),
              "x.gguf: 1152921504606846976 metadata pairs do not fit in a file of 24 bytes");
    EXPECT_NE(problem_of(read(counts_only(~std::uint64_t{0}, ~std::uint64_t{0}))), "");
    // Even where the file is said to be that large, nothing is reserved for what the prefix does not hold.
    EXPECT_EQ(problem_of(read_gguf(counts_only(std::uint64_t{1} << 40, 0), huge, "x.gguf")), "need more");
}

TEST(Gguf, HostileLengthsAreRefused) {
    auto bytes = counts_only(0, 1);
    GgufWriter::put(bytes, std::uint64_t{1} << 40, 8);
    bytes.resize(200);
    EXPECT_EQ(problem_of(read(bytes)),
              "x.gguf: truncated: the header needs byte 1099511627808 but the file ends at 200");
    bytes = counts_only(0, 1);
    GgufWriter::put(bytes, ~std::uint64_t{0}, 8);
    bytes.resize(200);
    EXPECT_EQ(problem_of(read(bytes)),
              "x.gguf: at byte 32: a length of 18446744073709551615 is not possible in a file of 200 bytes");

    GgufWriter array;
    array.begin_array("a", 12, huge);
    EXPECT_NE(problem_of(read(array.file())).find("an array of 1152921504606846976 elements"), std::string::npos);
    GgufWriter strings;
    strings.begin_array("a", 8, huge);
    EXPECT_NE(problem_of(read(strings.file())).find("an array of 1152921504606846976 elements"), std::string::npos);
}

TEST(Gguf, ShapesThatOverflowAreRefused) {
    GgufWriter elements;
    elements.tensor_at("w", 0, {huge, 256}, 0);
    EXPECT_EQ(problem_of(read(elements.file())), "x.gguf: tensor w has more elements than 64 bits can count");
    GgufWriter bytes;
    bytes.tensor_at("w", 0, {std::uint64_t{1} << 62, 2}, 0);
    EXPECT_EQ(problem_of(read(bytes.file())), "x.gguf: tensor w has more bytes than 64 bits can count");
    GgufWriter offset;
    offset.tensor_at("w", 0, {8}, ~std::uint64_t{31});
    EXPECT_NE(problem_of(read(offset.file())).find("impossible offset"), std::string::npos);
}

TEST(Gguf, WrongTablesAreRefusedWithTheReason) {
    struct Case {
        std::string_view part;
        GgufWriter writer;
    };
    std::vector<Case> cases(9);
    cases[0] = {"5 dimensions", {}};
    cases[0].writer.tensor_at("w", 0, {1, 1, 1, 1, 1}, 0);
    cases[1] = {"size 0", {}};
    cases[1].writer.tensor_at("w", 0, {4, 0}, 0);
    cases[2] = {"unknown type 99", {}};
    cases[2].writer.tensor_at("w", 99, {4}, 0);
    cases[3] = {"withdrawn", {}};
    cases[3].writer.tensor_at("w", 4, {32}, 0);
    cases[4] = {"blocks of 256", {}};
    cases[4].writer.tensor_at("w", 12, {128, 2}, 0);
    cases[5] = {"not a multiple of the alignment", {}};
    cases[5].writer.tensor_at("w", 0, {4}, 8);
    cases[6] = {"tensor w is there twice", {}};
    cases[6].writer.tensor("w", 0, {8}).tensor("w", 0, {8});
    cases[7] = {"expected a power of two", {}};
    cases[7].writer.u32("general.alignment", 48);
    cases[8] = {"metadata a is there twice", {}};
    cases[8].writer.u32("a", 1).u32("a", 1);
    for (const Case& item : cases) {
        EXPECT_NE(problem_of(read(item.writer.file())).find(item.part), std::string::npos)
            << item.part << " / " << problem_of(read(item.writer.file()));
    }

    GgufWriter overlapping;
    overlapping.tensor("a", 0, {64}).tensor("b", 0, {64});
    overlapping.tensor_at("c", 0, {8}, 32);
    EXPECT_NE(problem_of(read(overlapping.file())).find("tensors a and c overlap"), std::string::npos);
}

TEST(Gguf, OtherFilesAreToldApart) {
    GgufWriter writer;
    writer.version = 1;
    EXPECT_EQ(problem_of(read(writer.file())), "x.gguf: GGUF version 1 is not supported; convert the model anew");
    writer.version = 0x03000000;
    EXPECT_EQ(problem_of(read(writer.file())), "x.gguf: the file is big-endian, expected little-endian");
    writer.version = 4;
    EXPECT_EQ(problem_of(read(writer.file())), "x.gguf: GGUF version 4 is not known, expected 2 or 3");
    auto bytes = writer.file();
    bytes[0] = std::byte{'P'};
    EXPECT_EQ(problem_of(read(bytes)), "x.gguf: starts with \"PGUF\", expected \"GGUF\": not a GGUF file");
}

TEST(Gguf, LargerAlignmentMovesTheData) {
    GgufWriter writer;
    writer.alignment = 4096;
    writer.u32("general.alignment", 4096).tensor("a", 0, {8}).tensor("b", 0, {8});
    auto gguf = read(writer.file());
    ASSERT_TRUE(gguf) << problem_of(gguf);
    EXPECT_EQ(gguf->data_offset, 4096U);
}

Gguf part(std::uint32_t number, std::uint32_t count, std::uint32_t tensors, std::string_view tensor) {
    GgufWriter writer;
    writer.u32("split.no", number).u32("split.count", count).u32("split.tensors.count", tensors);
    if (number == 0) {
        writer.text("general.architecture", "llama");
    }
    writer.tensor(tensor, 0, {8});
    return read(writer.file()).value_or(Gguf{});
}

TEST(GgufSplits, PartsMergeInTheirOwnOrder) {
    auto whole = merge_splits({part(1, 2, 2, "b"), part(0, 2, 2, "a")}, "m");
    ASSERT_TRUE(whole) << whole.error().text;
    EXPECT_EQ(whole->tensors[0].name, "a");
    EXPECT_EQ(whole->tensors[1].name, "b");
    EXPECT_EQ(whole->string_at("general.architecture"), "llama");
}

TEST(GgufSplits, MissingDoubledAndForeignPartsAreRefused) {
    EXPECT_EQ(merge_splits({part(0, 2, 2, "a")}, "m").error().text, "m: split.count is 2, but 1 files were given");
    EXPECT_EQ(merge_splits({part(0, 2, 2, "a"), part(0, 2, 2, "b")}, "m").error().text,
              "m: two parts have the split.no 0");
    EXPECT_EQ(merge_splits({part(0, 2, 2, "a"), part(1, 2, 2, "a")}, "m").error().text, "m: tensor a is in two parts");
    EXPECT_EQ(merge_splits({part(0, 2, 5, "a"), part(1, 2, 5, "b")}, "m").error().text,
              "m: split.tensors.count is 5, but the parts hold 2 tensors");
    EXPECT_FALSE(merge_splits({part(0, 2, 2, "a"), part(7, 2, 2, "b")}, "m"));
    EXPECT_FALSE(merge_splits({}, "m"));
}

TEST(GgufSplits, SiblingsAreNamedFromAnyOfThem) {
    EXPECT_EQ(split_siblings("m-00002-of-00003.gguf"),
              (std::vector<std::string>{"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"}));
    EXPECT_EQ(split_siblings("m.gguf"), std::vector<std::string>{"m.gguf"});
    EXPECT_EQ(split_siblings("m-00004-of-00003.gguf").size(), 1U);
    EXPECT_EQ(split_siblings("m-0000x-of-00003.gguf").size(), 1U);
    EXPECT_EQ(split_siblings("-00001-of-00003.gguf").size(), 1U);
    EXPECT_EQ(split_siblings("").size(), 1U);
}

}  // namespace
}  // namespace roofline::io

// Files as streams: plain, gzip, zstd; cut off, damaged, and made to grow without end.
//
// data/lines.txt.gz (two members) and data/lines.txt.zst hold "line N of a text that is long enough to be packed", N
// from 0 to 1999; data/zeros.gz and data/zeros.zst hold 4 MiB of zeros. Made with Python's gzip and zstd 1.5.4.
#include "roofline/analyze/input.hpp"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "places.hpp"
#include "roofline/analyze/decompress.hpp"

namespace roofline::analyze {
namespace {

std::string data(const std::string& name) {
    return ROOFLINE_SOURCE_DIR "/tests/analyze/data/" + name;
}

std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string lines() {
    std::string text;
    for (int i = 0; i < 2000; ++i)
        text += "line " + std::to_string(i) + " of a text that is long enough to be packed\n";
    return text;
}

/// Hands out at most `most` bytes a time, as pipes do.
class Dripping final : public ByteSource {
  public:
    Dripping(std::string text, std::size_t most) : text_(std::move(text)), most_(most) {}
    Result<std::size_t> read(std::span<char> room) override {
        const std::size_t count = std::min({room.size(), most_, text_.size() - at_});
        std::copy_n(text_.data() + at_, count, room.data());
        at_ += count;
        return count;
    }

  private:
    std::string text_;
    std::size_t most_;
    std::size_t at_ = 0;
};

Result<Input> unpacked(std::string bytes, std::size_t most = 1U << 20U, GrowthLimit limit = {}) {
    auto plain = decompressed(std::make_unique<Dripping>(std::move(bytes), most), "x", limit);
    if (!plain) return std::unexpected(plain.error());
    return Input("x", std::move(*plain));
}

TEST(Input, ReadsGzipMembersAndZstdAsTheTextTheyHold) {
    for (const char* name : {"lines.txt.gz", "lines.txt.zst"}) {
        SCOPED_TRACE(name);
        auto input = open_input(data(name));
        ASSERT_TRUE(input) << input.error().text;
        EXPECT_EQ(input->path(), "") << "no library can open the packed file by itself";
        const auto text = input->rest();
        ASSERT_TRUE(text) << text.error().text;
        EXPECT_EQ(*text, lines());
        EXPECT_EQ(input->cut_short(), "");
        EXPECT_EQ(input->offset(), lines().size());
    }
}

TEST(Input, ReadsTheSameHoweverSmallThePiecesAre) {
    for (const char* name : {"lines.txt.gz", "lines.txt.zst"}) {
        auto input = unpacked(bytes_of(data(name)), 1);
        ASSERT_TRUE(input);
        const auto head = input->peek(6);
        ASSERT_TRUE(head);
        EXPECT_EQ(*head, "line 0");
        const auto text = input->rest();
        ASSERT_TRUE(text) << text.error().text;
        EXPECT_EQ(*text, lines());
    }
}

TEST(Input, APlainTextShorterThanAnySignatureIsLeftAlone) {
    for (const std::string text : {"", "a", "\x1f", "\x28\xb5", "ab\n"}) {
        auto input = unpacked(text);
        ASSERT_TRUE(input);
        EXPECT_EQ(input->rest().value_or("?"), text);
        EXPECT_EQ(input->cut_short(), "");
    }
}

TEST(Input, AStreamThatWasCutOffGivesWhatThereIsAndSaysSo) {
    for (const char* name : {"lines.txt.gz", "lines.txt.zst"}) {
        SCOPED_TRACE(name);
        const std::string whole = bytes_of(data(name));
        ASSERT_GT(whole.size(), 100U);
        for (const std::size_t kept : {std::size_t{5}, whole.size() / 2, whole.size() - 1}) {
            auto input = unpacked(whole.substr(0, kept));
            ASSERT_TRUE(input);
            const auto text = input->rest();
            ASSERT_TRUE(text) << text.error().text;
            EXPECT_TRUE(lines().starts_with(*text));
            EXPECT_NE(input->cut_short().find("ends in the middle, after " + std::to_string(kept) + " bytes"),
                      std::string::npos)
                << input->cut_short();
        }
    }
}

TEST(Input, DamagedBytesAreAnErrorWithTheirPlace) {
    for (const char* name : {"lines.txt.gz", "lines.txt.zst"}) {
        SCOPED_TRACE(name);
        std::string bytes = bytes_of(data(name));
        for (std::size_t i = bytes.size() / 3; i < bytes.size() / 3 + 40; ++i) bytes[i] = '\x55';
        auto input = unpacked(bytes);
        ASSERT_TRUE(input);
        const auto text = input->rest();
        ASSERT_FALSE(text);
        EXPECT_TRUE(text.error().text.starts_with("x: damaged ")) << text.error().text;
        EXPECT_NE(text.error().text.find("near byte "), std::string::npos) << text.error().text;
    }
}

TEST(Input, SomethingBehindTheLastMemberIsSaidAndNotRead) {
    auto input = unpacked(bytes_of(data("lines.txt.gz")) + "a tail");
    ASSERT_TRUE(input);
    EXPECT_EQ(input->rest().value_or("?"), lines());
    EXPECT_NE(input->cut_short().find("not gzip follows"), std::string::npos) << input->cut_short();
    auto padded = unpacked(bytes_of(data("lines.txt.gz")) + std::string(512, '\0'));
    ASSERT_TRUE(padded);
    EXPECT_EQ(padded->rest().value_or("?"), lines());
    EXPECT_EQ(padded->cut_short(), "") << "zeros fill the block of a tape";
}

TEST(Input, AFileThatGrowsWithoutEndIsRefused) {
    // 4 MiB of zeros take about 4 KB as gzip (1000 to 1) and less as zstd.
    for (const char* name : {"zeros.gz", "zeros.zst"}) {
        SCOPED_TRACE(name);
        auto bomb = unpacked(bytes_of(data(name)), 1U << 20U, {.free_bytes = 1U << 20U, .largest_growth = 250});
        ASSERT_TRUE(bomb);
        const auto text = bomb->rest();
        ASSERT_FALSE(text);
        EXPECT_NE(text.error().text.find("over 250 times as much: refused"), std::string::npos) << text.error().text;
        auto allowed = unpacked(bytes_of(data(name)));
        ASSERT_TRUE(allowed);
        EXPECT_EQ(allowed->rest().value_or("").size(), std::size_t{4} << 20U) << "small files may grow";
    }
}

TEST(Input, AFileThatIsNotThereAndAFolderAreProblems) {
    EXPECT_NE(open_input("/no/such/file").error().text.find("/no/such/file: cannot be opened"), std::string::npos);
    EXPECT_NE(open_input(ROOFLINE_SOURCE_DIR).error().text.find("is a folder"), std::string::npos);
}

}  // namespace
}  // namespace roofline::analyze

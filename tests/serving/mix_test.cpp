#include "roofline/serving/mix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace roofline::serving {
namespace {

using ::testing::HasSubstr;

double mean_of(const Lengths& lengths) {
    double sum = 0.0;
    for (int i = 0; i < 2000; ++i) sum += lengths.quantile((i + 0.5) / 2000);
    return sum / 2000;
}

TEST(Lengths, KeepTheirMeanAndNeverFallBelowOne) {
    EXPECT_EQ(Lengths::fixed(512).quantile(0.99), 512.0);
    EXPECT_NEAR(mean_of(Lengths::uniform(100, 300)), 200.0, 0.5);
    EXPECT_NEAR(mean_of(Lengths::normal(500, 0.2)), 500.0, 0.5);
    EXPECT_NEAR(mean_of(Lengths::lognormal(500, 1.0)), 500.0, 3.0);  // the last of 2,000 cells has a long tail
    EXPECT_EQ(Lengths::normal(2, 1.0).quantile(0.001), 1.0);
    EXPECT_EQ(Lengths::uniform(3, 4).quantile(0.999999), 4.0);
    EXPECT_EQ(Lengths::uniform(3, 4).quantile(0.49), 3.0);
}

TEST(Lengths, MedianAndSpreadOfTheLognormalAreThoseOfItsFormula) {
    // cv 1: variance of the logarithm ln 2 = 0.6931, so the median is 1000 / sqrt(2) = 707.1, and one deviation above
    // it lies 707.1 x exp(0.83255) = 1625.8.
    EXPECT_EQ(Lengths::lognormal(1000, 1.0).quantile(0.5), 707.0);
    EXPECT_EQ(Lengths::lognormal(1000, 1.0).quantile(0.841344746), 1626.0);
}

TEST(Lengths, AreReadAsPeopleWriteThem) {
    EXPECT_EQ(parse_lengths("512", "--prompt")->quantile(0.5), 512.0);
    EXPECT_EQ(parse_lengths("100-200", "--prompt")->quantile(0.999), 200.0);
    EXPECT_EQ(parse_lengths("normal:100,0.5", "--prompt")->shape, Lengths::Shape::normal);
    EXPECT_EQ(parse_lengths("lognormal:100,0.5", "--prompt")->variation, 0.5);
    const auto listed = parse_lengths("4096*1,128*3", "--prompt");
    ASSERT_TRUE(listed);
    EXPECT_EQ(listed->quantile(0.74), 128.0);
    EXPECT_EQ(listed->quantile(0.76), 4096.0);
}

TEST(Lengths, ThatMakeNoSenseAreRefusedInOneLine) {
    for (const char* text : {"", "0", "-5", "5-", "1.5", "200-100", "normal:5", "normal:0,1", "lognormal:5,x", "128*",
                             "128*0", "a*2", "128*1,", "1e3", "999999999999", "12 "}) {
        const auto parsed = parse_lengths(text, "--prompt");
        ASSERT_FALSE(parsed) << text;
        EXPECT_THAT(parsed.error().text, HasSubstr("--prompt: found \"" + std::string(text) + "\"")) << text;
        EXPECT_THAT(parsed.error().text, HasSubstr("expected tokens"));
        EXPECT_EQ(parsed.error().text.find('\n'), std::string::npos);
    }
}

TEST(Mix, SharesHaveTheMeansOfTheDistributionsAndNoCorrelation) {
    Mix mix{.prompt = Lengths::lognormal(1000, 0.6), .output = Lengths::uniform(10, 190), .trace = {}};
    double weight = 0.0;
    double prompt = 0.0;
    double output = 0.0;
    double product = 0.0;
    for (const Share& share : mix.shares()) {
        weight += share.weight;
        prompt += share.weight * share.prompt;
        output += share.weight * share.output;
        product += share.weight * share.prompt * share.output;
    }
    EXPECT_NEAR(weight, 1.0, 1e-12);
    EXPECT_NEAR(prompt, 1000.0, 5.0);
    EXPECT_NEAR(output, 100.0, 0.5);
    EXPECT_NEAR(product / (prompt * output), 1.0, 0.01);
}

TEST(Mix, IsCutToTheLongestContext) {
    Mix mix{.prompt = Lengths::fixed(900), .output = Lengths::fixed(200), .trace = {}, .longest_context = 1000};
    EXPECT_EQ(mix.shares().front().output, 100.0);
    mix.prompt = Lengths::fixed(5000);
    EXPECT_EQ(mix.shares().front().prompt, 999.0);
    EXPECT_EQ(mix.shares().front().output, 1.0);
}

TEST(Trace, IsReadWithHeaderCommentsAndAnyOrder) {
    const auto trace =
        parse_trace("\xEF\xBB\xBF# made by hand\narrival,prompt,output\r\n2.5, 100 ,7\n\n1e-1,3,4\n", "t.csv");
    ASSERT_TRUE(trace);
    ASSERT_EQ(trace->size(), 2U);
    EXPECT_EQ((*trace)[0].arrival, 0.1);
    EXPECT_EQ((*trace)[0].prompt, 3.0);
    EXPECT_EQ((*trace)[1].output, 7.0);
}

TEST(Trace, ThatIsBrokenNamesFileLineFoundAndExpected) {
    const auto text = [](const char* lines) {
        const auto trace = parse_trace(lines, "t.csv");
        return trace ? std::string("accepted") : trace.error().text;
    };
    EXPECT_EQ(text("0,1,1\n1,2\n"),
              "t.csv:2: found 2 values, expected three: arrival in seconds, prompt tokens, output tokens");
    EXPECT_EQ(text("a,b,c\n0,0,5\n"), "t.csv:2: prompt is \"0\", expected whole tokens, 1 to 1e8");
    EXPECT_EQ(text("0,5,1.5\n"), "t.csv:1: output is \"1.5\", expected whole tokens, 1 to 1e8");
    EXPECT_EQ(text("-1,5,1\n"), "t.csv:1: arrival is \"-1\", expected seconds since the start, 0 to 1e9");
    EXPECT_EQ(text("0,5,1\nx,y,z\n"), "t.csv:2: arrival is \"x\", expected seconds since the start, 0 to 1e9");
    EXPECT_EQ(text("# nothing\n"), "t.csv: found no request, expected lines of arrival,prompt,output");
    EXPECT_EQ(text("1e999,5,1\n"), "t.csv:1: arrival is \"1e999\", expected seconds since the start, 0 to 1e9");
}

TEST(Mix, ALongTailIsNotCutOff) {
    // Lognormal with cv 1: the mean of the squares is twice the square of the mean. Middles of 233 parts have 1.92 of
    // it.
    const Mix mix{.prompt = Lengths::lognormal(1000, 1.0), .output = Lengths::fixed(1), .trace = {}};
    double mean = 0.0;
    double square = 0.0;
    for (const Share& share : mix.shares()) {
        mean += share.weight * share.prompt;
        square += share.weight * share.prompt * share.prompt;
    }
    EXPECT_NEAR(mean, 1000.0, 0.5);
    EXPECT_NEAR(square / 1e6, 1.97, 0.01);
}

}  // namespace
}  // namespace roofline::serving

#include "roofline/io/units.hpp"

#include <string>

#include <gtest/gtest.h>

namespace roofline::io {
namespace {

TEST(Units, DecimalPrefixesAreThousandsAndBinaryOnesAreNot) {
    EXPECT_EQ(unit_factor("B", Dimension::bytes), 1.0);
    EXPECT_EQ(unit_factor("KB", Dimension::bytes), 1e3);
    EXPECT_EQ(unit_factor("MB", Dimension::bytes), 1e6);
    EXPECT_EQ(unit_factor("GB", Dimension::bytes), 1e9);
    EXPECT_EQ(unit_factor("TB", Dimension::bytes), 1e12);
    EXPECT_EQ(unit_factor("KiB", Dimension::bytes), 1024.0);
    EXPECT_EQ(unit_factor("MiB", Dimension::bytes), 1024.0 * 1024.0);
    EXPECT_EQ(unit_factor("GiB", Dimension::bytes), 1024.0 * 1024.0 * 1024.0);
    EXPECT_EQ(unit_factor("TiB", Dimension::bytes), 1024.0 * 1024.0 * 1024.0 * 1024.0);
}

TEST(Units, RatesAreDecimal) {
    EXPECT_EQ(unit_factor("GB/s", Dimension::bytes_per_second), 1e9);
    EXPECT_EQ(unit_factor("TB/s", Dimension::bytes_per_second), 1e12);
    EXPECT_EQ(unit_factor("GiB/s", Dimension::bytes_per_second), 1073741824.0);
    EXPECT_EQ(unit_factor("TFLOP/s", Dimension::flops_per_second), 1e12);
    EXPECT_EQ(unit_factor("PFLOP/s", Dimension::flops_per_second), 1e15);
    EXPECT_EQ(unit_factor("GFLOP/s", Dimension::flops_per_second), 1e9);
}

TEST(Units, AnIntegerOperationCountsAsAFlop) {
    EXPECT_EQ(unit_factor("GOP/s", Dimension::flops_per_second), 1e9);  // as `measure` prints int8
    EXPECT_EQ(unit_factor("TOP/s", Dimension::flops_per_second), unit_factor("TFLOP/s", Dimension::flops_per_second));
}

TEST(Units, PowerIsInWatts) {
    EXPECT_EQ(unit_factor("W", Dimension::watts), 1.0);
    EXPECT_EQ(unit_factor("kW", Dimension::watts), 1000.0);
}

TEST(Units, ACountHasOneUnitOfItsOwn) {
    EXPECT_EQ(unit_factor("count", Dimension::count), 1.0);
    EXPECT_EQ(expected_units(Dimension::count), "count");
    EXPECT_FALSE(unit_factor("", Dimension::count).has_value());
    EXPECT_FALSE(unit_factor("B", Dimension::count).has_value());
    EXPECT_FALSE(unit_factor("count", Dimension::bytes).has_value());
}

TEST(Units, AUnitOfAnotherDimensionIsNotAUnit) {
    EXPECT_FALSE(unit_factor("GB", Dimension::bytes_per_second).has_value());
    EXPECT_FALSE(unit_factor("GB/s", Dimension::bytes).has_value());
    EXPECT_FALSE(unit_factor("TFLOP/s", Dimension::bytes_per_second).has_value());
    EXPECT_FALSE(unit_factor("W", Dimension::bytes).has_value());
}

TEST(Units, SpellingCountsBecauseBitsAndBytesDifferByItsCase) {
    EXPECT_FALSE(unit_factor("Gb/s", Dimension::bytes_per_second).has_value());
    EXPECT_FALSE(unit_factor("gb", Dimension::bytes).has_value());
    EXPECT_FALSE(unit_factor("", Dimension::bytes).has_value());
    EXPECT_FALSE(unit_factor("GB ", Dimension::bytes).has_value());
}

TEST(Units, WhatAMessageOffersIsAccepted) {
    for (const Dimension dimension :
         {Dimension::flops_per_second, Dimension::bytes_per_second, Dimension::bytes, Dimension::watts}) {
        std::string offered(expected_units(dimension));
        ASSERT_FALSE(offered.empty());
        // "B, MB or GB" -> its words
        std::string word;
        int units = 0;
        for (const char c : offered + " ") {
            if (c != ' ' && c != ',') {
                word += c;
                continue;
            }
            if (!word.empty() && word != "or") {
                EXPECT_TRUE(unit_factor(word, dimension).has_value()) << word;
                ++units;
            }
            word.clear();
        }
        EXPECT_GE(units, 2);
    }
}

}  // namespace
}  // namespace roofline::io

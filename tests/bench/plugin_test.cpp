// A kernel of one's own, built from the example in docs/kernel.
#include <gtest/gtest.h>

#include "places.hpp"
#include "roofline/bench/kernel_plugin.hpp"

namespace roofline::bench {
namespace {

TEST(Plugin, TheExampleRunsWhatItSaysAndIsRight) {
    auto backend = load_kernel_plugin(SCALAR_KERNEL);
    ASSERT_TRUE(backend) << backend.error().text;
    EXPECT_EQ((*backend)->name(), "scalar");
    const auto threads = std::move(*Threads::start(1));
    Pace pace;
    pace.budget.seconds = 1e-4;
    for (const DType type : {DType::fp32, DType::bf16}) {
        Task task;
        task.name = "product";
        task.kind = TaskKind::product;
        task.m = 2;
        task.n = 12;
        task.k = 64;
        task.weights = type;
        auto operands = make_operands(task, 1 << 12, *threads);
        ASSERT_TRUE(operands);
        const Outcome outcome = run_task(**backend, *operands, *threads, pace);
        EXPECT_EQ(outcome.problem, "") << name(type);
        EXPECT_GT(outcome.timing.calls, 0);
    }
    Task other;
    other.kind = TaskKind::product;
    other.weights = DType::int8;
    EXPECT_TRUE((*backend)->refuses(other));
    other.kind = TaskKind::norm;
    EXPECT_TRUE((*backend)->refuses(other));
}

TEST(Plugin, WhatIsNoPluginIsRefusedByName) {
    const auto missing = load_kernel_plugin("/nowhere/kernel.so");
    ASSERT_FALSE(missing);
    // Once: the loader's own words begin with the name too.
    EXPECT_EQ(missing.error().text.find("/nowhere/kernel.so"), 0U);
    EXPECT_EQ(missing.error().text.find("/nowhere/kernel.so", 1), std::string::npos) << missing.error().text;
    const auto text = load_kernel_plugin(ROOFLINE_SOURCE_DIR "/README.md");
    ASSERT_FALSE(text);
}

}  // namespace
}  // namespace roofline::bench

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
    for (const WeightFormat type : {WeightFormat::fp32, WeightFormat::bf16}) {
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
    other.weights = WeightFormat::nvfp4;
    EXPECT_EQ((*backend)->refuses(other), "plugins on processors are given no nvfp4 weights");
    other.weights = WeightFormat::int8;
    EXPECT_TRUE((*backend)->refuses(other));
    other.kind = TaskKind::norm;
    EXPECT_TRUE((*backend)->refuses(other));
}

TEST(PluginDeathTest, ACrashIsSaidToBeThePlugins) {
    const auto crash = [] {
        auto backend = load_kernel_plugin(CRASHING_KERNEL);
        const auto threads = std::move(*Threads::start(1));
        Task task;
        task.name = "product";
        task.kind = TaskKind::product;
        task.m = 1;
        task.n = 4;
        task.k = 16;
        task.weights = WeightFormat::fp32;
        auto operands = make_operands(task, 0, *threads);
        run_task(**backend, *operands, *threads, {});
    };
    EXPECT_EXIT(crash(), testing::ExitedWithCode(2), "roofline: plugin crashing crashed; nothing was written\n");
}

/// Adds a residual rightly `good` times, then says that it failed; or writes nothing.
class Failing final : public Backend, public Kernel {
  public:
    explicit Failing(int good, bool writes = true) : good_(good), writes_(writes) {}
    std::string name() const override { return "failing"; }
    std::string describe() const override { return "failing"; }
    Result<void> available() override { return {}; }
    std::optional<std::string> refuses(const Task&) const override { return std::nullopt; }
    Result<std::unique_ptr<Kernel>> prepare(Operands& operands, Threads&) override {
        auto kernel = std::make_unique<Failing>(good_, writes_);
        kernel->operands_ = &operands;
        return kernel;
    }
    void run(std::size_t) override {
        ++runs_;
        if (!writes_) return;
        for (std::size_t i = 0; i < operands_->y.size(); ++i) operands_->y[i] = 2.0F * operands_->x[i];
    }
    std::optional<std::string> failure() const override {
        return runs_ > good_ ? std::optional<std::string>("failed: on purpose") : std::nullopt;
    }

  private:
    int good_;
    bool writes_;
    int runs_ = 0;
    Operands* operands_ = nullptr;
};

TEST(Plugin, AKernelThatFailsHasNoTimeWheneverItFails) {
    const auto threads = std::move(*Threads::start(1));
    Pace pace;
    pace.budget.seconds = 1e-4;
    Task task;
    task.name = "residual";
    task.kind = TaskKind::add;
    task.rows = 2;
    task.width = 32;
    for (const int good : {0, 1, 3}) {
        auto operands = make_operands(task, 1 << 12, *threads);
        ASSERT_TRUE(operands);
        Failing failing(good);
        EXPECT_EQ(run_task(failing, *operands, *threads, pace).problem, "failed: on purpose") << good;
    }
    task.kind = TaskKind::norm;
    auto operands = make_operands(task, 1 << 12, *threads);
    ASSERT_TRUE(operands);
    Failing lazy(1000, false);
    EXPECT_EQ(run_task(lazy, *operands, *threads, pace).problem,
              "wrong: some outputs were not written or are no numbers");
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

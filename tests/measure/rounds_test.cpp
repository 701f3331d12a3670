// The harness under a clock that only moves when a trial says so.
#include "roofline/measure/rounds.hpp"

#include <gtest/gtest.h>

namespace roofline::measure {
namespace {

class FakeClock final : public Clock {
  public:
    double seconds() override { return now; }
    double now = 0.0;
};

/// Takes `seconds_a_unit` for each unit and remembers in which order trials ran.
Trial steady(const std::string& name, FakeClock& clock, double seconds_a_unit, std::string* order = nullptr) {
    Trial trial;
    trial.name = name;
    trial.window_s = 0.002;
    trial.work = 10.0;
    trial.run = [&clock, seconds_a_unit, order, name](std::uint64_t units) {
        const double taken = static_cast<double>(units) * seconds_a_unit;
        clock.now += taken;
        if (order != nullptr) *order += name;
        return Window{taken, true};
    };
    return trial;
}

TEST(Rounds, TheRateIsWorkOverTime) {
    FakeClock clock;
    const std::vector<Trial> trials = {steady("a", clock, 1e-6)};
    const auto outcomes = run_rounds(trials, {}, clock);
    ASSERT_EQ(outcomes.size(), 1U);
    EXPECT_NEAR(outcomes[0].result().rate, 1e7, 1.0);  // 10 a unit, a million units a second
    EXPECT_TRUE(outcomes[0].settled);
}

TEST(Rounds, TrialsTakeTurnsWindowByWindow) {
    FakeClock clock;
    std::string order;
    const std::vector<Trial> trials = {steady("a", clock, 0.002, &order), steady("b", clock, 0.002, &order)};
    Rounds rounds;
    rounds.budget_s = 0.021;
    rounds.fewest = 3;
    run_rounds(trials, rounds, clock);
    // The first run of each finds that one unit fills a window; after that one window each in turn.
    EXPECT_TRUE(order.starts_with("aabbabab")) << order;
}

TEST(Rounds, ASettledTrialLeavesAndTheRestGoOn) {
    FakeClock clock;
    int windows = 0;
    Trial rising = steady("rising", clock, 0.002);
    rising.run = [&](std::uint64_t units) {
        ++windows;
        clock.now += 0.002;
        // Every window ten percent faster than the last: never settled.
        double factor = 1.0;
        for (int i = 0; i < windows; ++i) factor *= 1.1;
        return Window{0.002 * static_cast<double>(units) / factor > 0.0015 ? 0.002 : 0.0016, true};
    };
    const std::vector<Trial> trials = {steady("steady", clock, 0.002), rising};
    Rounds rounds;
    rounds.budget_s = 1.0;
    const auto outcomes = run_rounds(trials, rounds, clock);
    EXPECT_TRUE(outcomes[0].settled);
    EXPECT_EQ(outcomes[0].rates.size(), 13U);  // three to agree, ten that gain nothing
}

TEST(Rounds, AllThreadsThatOneOutdoesAreLookedAtAgain) {
    // Something else has the cores of all threads in the first half second; the one thread's is free.
    const auto rate = [](bool paired) {
        FakeClock clock;
        Trial shared = steady("shared", clock, 1e-6);
        shared.run = [&clock](std::uint64_t units) {
            const double taken = static_cast<double>(units) * (clock.now < 0.5 ? 2e-6 : 0.5e-6);
            clock.now += taken;
            return Window{taken, true};
        };
        if (paired) shared.alone = 1;
        const std::vector<Trial> trials = {shared, steady("one thread", clock, 1e-6)};
        Rounds rounds;
        rounds.budget_s = 2.0;
        return run_rounds(trials, rounds, clock)[0].result().rate;
    };
    EXPECT_NEAR(rate(false), 0.5e7, 1.0);
    EXPECT_NEAR(rate(true), 2e7, 1.0);
}

TEST(Rounds, WindowsATenthSlowerThanTheBestAreSlow) {
    Outcome outcome;
    EXPECT_EQ(outcome.slow_windows(), 0U);
    outcome.rates = {100.0, 91.0, 89.0, 40.0};
    outcome.disturbed = {10.0};  // of these it is known why
    EXPECT_EQ(outcome.slow_windows(), 2U);
}

TEST(Rounds, AUnitThatWakesLateIsStillSeenAwake) {
    // Half speed in the first tenth of a second, as wide vector units have it on a busy machine.
    const auto rate = [](double least_s) {
        FakeClock clock;
        Trial sleepy = steady("sleepy", clock, 1e-6);
        sleepy.run = [&clock](std::uint64_t units) {
            const double taken = static_cast<double>(units) * (clock.now < 0.1 ? 2e-6 : 1e-6);
            clock.now += taken;
            return Window{taken, true};
        };
        Rounds rounds;
        rounds.least_s = least_s;
        return run_rounds(std::vector{sleepy}, rounds, clock)[0].result().rate;
    };
    EXPECT_NEAR(rate(0.0), 5e6, 1.0);
    EXPECT_NEAR(rate(0.2), 1e7, 1.0);
}

TEST(Rounds, TheTimeIsKeptButEveryTrialGetsTheFewest) {
    FakeClock clock;
    const std::vector<Trial> trials = {steady("a", clock, 0.002), steady("b", clock, 0.002), steady("c", clock, 0.002)};
    Rounds rounds;
    rounds.budget_s = 0.001;
    rounds.fewest = 4;
    const auto outcomes = run_rounds(trials, rounds, clock);
    for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.rates.size(), 4U);
}

TEST(Rounds, AWrongAnswerEndsATrialAndItsRatesDoNotCount) {
    FakeClock clock;
    int runs = 0;
    Trial trial = steady("wrong", clock, 0.002);
    trial.run = [&](std::uint64_t) {
        clock.now += 0.002;
        return Window{0.002, ++runs < 5};
    };
    const std::vector<Trial> trials = {trial, steady("right", clock, 0.002)};
    const auto outcomes = run_rounds(trials, {}, clock);
    EXPECT_TRUE(outcomes[0].wrong);
    EXPECT_EQ(outcomes[0].result().rate, 0.0);
    EXPECT_EQ(runs, 5);
    EXPECT_GT(outcomes[1].result().rate, 0.0);
}

TEST(Rounds, DisturbedWindowsDoNotCountWhereThereAreOthers) {
    FakeClock clock;
    int runs = 0;
    Trial trial = steady("busy", clock, 0.002);
    trial.run = [&](std::uint64_t units) {
        const bool disturbed = ++runs % 2 == 0;
        const double taken = static_cast<double>(units) * (disturbed ? 0.008 : 0.002);
        clock.now += taken;
        return Window{taken, true, disturbed};
    };
    const auto outcomes = run_rounds(std::vector<Trial>{trial}, {}, clock);
    EXPECT_FALSE(outcomes[0].disturbed.empty());
    EXPECT_DOUBLE_EQ(outcomes[0].result().rate, 10.0 / 0.002);
}

TEST(Rounds, WindowsGetShorterWhereLongOnesAreAlwaysDisturbed) {
    FakeClock clock;
    Trial trial = steady("busy", clock, 0.0001);
    trial.window_s = 0.010;
    trial.run = [&](std::uint64_t units) {
        const double taken = static_cast<double>(units) * 0.0001;
        clock.now += taken;
        return Window{taken, true, taken > 0.003};  // something else runs every three milliseconds
    };
    const auto outcomes = run_rounds(std::vector<Trial>{trial}, {}, clock);
    EXPECT_TRUE(outcomes[0].settled);
    EXPECT_NEAR(outcomes[0].result().rate, 10.0 / 0.0001, 1e-6);
}

TEST(Rounds, AskedToStopTheyStopBetweenWindows) {
    FakeClock clock;
    int runs = 0;
    Trial trial = steady("a", clock, 0.002);
    trial.run = [&](std::uint64_t) {
        ++runs;
        clock.now += 0.002;
        return Window{0.002, true};
    };
    Rounds rounds;
    rounds.stop = [&] { return runs >= 3; };
    run_rounds(std::vector<Trial>{trial}, rounds, clock);
    EXPECT_EQ(runs, 3);
}

TEST(Rounds, AClockThatStandsStillDoesNotHoldThemUp) {
    FakeClock clock;
    Trial trial = steady("a", clock, 0.0);
    Rounds rounds;
    rounds.budget_s = 0.0;
    const auto outcomes = run_rounds(std::vector<Trial>{trial}, rounds, clock);
    EXPECT_TRUE(outcomes[0].rates.empty());
    EXPECT_EQ(outcomes[0].result().rate, 0.0);
}

}  // namespace
}  // namespace roofline::measure

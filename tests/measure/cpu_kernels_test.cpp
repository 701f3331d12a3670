// Every loop at toy size: the right answer, and a wrong one noticed. Speed is nobody's business here.
#include "roofline/measure/cpu_kernels.hpp"

#include <cstring>
#include <memory>
#include <new>

#include <gtest/gtest.h>

#include "roofline/measure/accumulators.hpp"
#include "roofline/measure/cpu_trials.hpp"

namespace roofline::measure {
namespace {

struct Buffer {
    explicit Buffer(std::size_t bytes)
        : data(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{page_bytes}))) {
        fill_pages(data, bytes);
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { ::operator delete(data, std::align_val_t{page_bytes}); }
    std::byte* data;
};

std::string described(const MemoryKernel& kernel) {
    return std::string(kernel.set) + " " + std::string(name(kernel.motion)) + " " + std::to_string(kernel.streams) +
           (kernel.streaming ? " past the caches" : "") + (kernel.asking ? " asking ahead" : "");
}

TEST(CpuKernels, EveryArithmeticLoopOfThisMachineCountsRight) {
    const Kernels kernels = kernels_here();
    ASSERT_FALSE(kernels.flops.empty());
    for (const FlopKernel& kernel : kernels.flops) {
        SCOPED_TRACE(std::string(kernel.set) + " " + std::string(name(kernel.engine)) + "." +
                     std::string(name(kernel.type)));
        for (const std::uint64_t trips : {0U, 1U, 2U, 3U, 17U, 1000U}) EXPECT_TRUE(kernel.run(trips)) << trips;
        EXPECT_GT(kernel.flops, 0.0);
    }
}

TEST(CpuKernels, TheLongestCallIsStillExact) {
    for (const FlopKernel& kernel : kernels_here().flops) EXPECT_TRUE(kernel.run(kernel.longest)) << kernel.set;
}

TEST(CpuKernels, EveryMemoryLoopOfThisMachineMovesWhatItShould) {
    const std::size_t bytes = std::size_t{16} * 3 * page_bytes;
    const Buffer a(bytes);
    const Buffer b(bytes);
    const Buffer c(bytes);
    bool read = false;
    for (const MemoryKernel& kernel : kernels_here().memory) {
        SCOPED_TRACE(described(kernel));
        spoil(a.data, bytes);
        ASSERT_FALSE(written_right(kernel.motion, a.data, bytes));
        const std::uint64_t sum = kernel.run(a.data, b.data, c.data, bytes, 3);
        if (kernel.motion == Motion::read) {
            read = true;
            EXPECT_EQ(sum, expected_sum(kernel, bytes, 3));
            EXPECT_EQ(kernel.run(a.data, b.data, c.data, 16 * page_bytes, 1), expected_sum(kernel, 16 * page_bytes, 1));
        } else {
            EXPECT_TRUE(written_right(kernel.motion, a.data, bytes));
        }
    }
    EXPECT_TRUE(read);
}

TEST(CpuKernels, EveryMotionAndBothThreadCountsHaveALoopHere) {
    for (const Motion motion : {Motion::read, Motion::copy, Motion::triad, Motion::write}) {
        bool any = false;
        for (const MemoryKernel& kernel : kernels_here().memory) any = any || kernel.motion == motion;
        EXPECT_TRUE(any) << name(motion);
    }
}

TEST(CpuKernels, APageSumsUpAsWorkedOutByHand) {
    // Doubles 1 ... 512 as 64-bit words. 2^k ... 2^(k+1)-1 share an exponent: bits (1023 + k) x 2^52 plus the mantissa,
    // (m - 2^k) x 2^(52-k). Sum over m of the mantissas: (0 + 1 + ... + 2^k - 1) x 2^(52-k) = (2^k - 1) x 2^51.
    std::uint64_t sum = 0;
    for (unsigned k = 0; k < 9; ++k) {
        const std::uint64_t count = std::uint64_t{1} << k;
        sum += count * ((1023ULL + k) << 52U) + (count - 1) * (std::uint64_t{1} << 51U);
    }
    sum += (1023ULL + 9) << 52U;  // 512 itself
    EXPECT_EQ(page_sum(), sum);
}

TEST(CpuKernels, AWrongWordIsNoticed) {
    const std::size_t bytes = 2 * page_bytes;
    const Buffer a(bytes);
    EXPECT_TRUE(written_right(Motion::copy, a.data, bytes));  // the pattern itself is what a copy leaves
    const double wrong = 0.5;
    std::memcpy(a.data + 8 * 700, &wrong, sizeof wrong);
    EXPECT_FALSE(written_right(Motion::copy, a.data, bytes));
}

TEST(CpuKernels, ALaneThatIsOneOffIsNoticed) {
    // Lanes grow by 1, -1, 2, -2 a trip: after 10 trips 10, -10, 20, -20.
    float values[] = {10.0F, -10.0F, 20.0F, -20.0F};
    EXPECT_TRUE(counted(values, 4, 4, 1, 10));
    values[2] = 21.0F;
    EXPECT_FALSE(counted(values, 4, 4, 1, 10));
}

TEST(CpuKernels, SmallNumbersAsSixteenBitFloats) {
    EXPECT_EQ(half_bits(1), 0x3C00);
    EXPECT_EQ(half_bits(-2), 0xC000);
    EXPECT_EQ(half_bits(3), 0x4200);
    EXPECT_EQ(half_bits(0), 0);
    EXPECT_EQ(bfloat_bits(1), 0x3F80);
    EXPECT_EQ(bfloat_bits(-2), 0xC000);
    EXPECT_EQ(bfloat_bits(3), 0x4040);
}

// ---- as trials, on threads ----

TEST(CpuTrials, EveryKernelIsRightOnAllThreads) {
    Team team({0, 0});  // two threads, be there one processor or many
    auto field = Field::make(team, 2, 64 * page_bytes);
    ASSERT_TRUE(field) << field.error().text;
    for (const MemoryKernel& kernel : kernels_here().memory) {
        SCOPED_TRACE(described(kernel));
        const Trial resident = resident_trial("resident", team, field->arrays(), kernel, 16 * 3 * page_bytes, 0.001);
        EXPECT_TRUE(resident.run(3).right);
        const Trial walking = walking_trial("walking", team, field->arrays(), kernel, 0.001);
        EXPECT_TRUE(walking.run(1).right);
        EXPECT_TRUE(walking.run(5).right);  // wraps around
    }
    for (const FlopKernel& kernel : kernels_here().flops)
        EXPECT_TRUE(flop_trial("flops", team, 2, kernel).run(100).right) << kernel.set;
    EXPECT_TRUE(clock_trial("clock", team, 2).run(100).right);
}

TEST(CpuTrials, ThreadsMayWalkThroughOneArrayTogether) {
    Team team({0, 0});
    auto field = Field::make(team, 1, 300 * page_bytes);
    ASSERT_TRUE(field) << field.error().text;
    for (const MemoryKernel& kernel : kernels_here().memory) {
        if (kernel.motion != Motion::read) continue;
        const Trial trial = walking_trial("together", team, field->arrays(), kernel, 0.001, 290 * page_bytes, 2);
        EXPECT_TRUE(trial.run(4).right) << described(kernel);
    }
}

TEST(CpuTrials, PartsOfSeveralThreadsAreAnArrayForOne) {
    Team team({0, 0, 0});
    auto field = Field::make(team, 3, 64 * page_bytes);
    ASSERT_TRUE(field) << field.error().text;
    const std::vector<Arrays> parts = field->arrays();
    EXPECT_EQ(parts[1].b, parts[0].b + parts[0].bytes) << "one behind the other";
    EXPECT_EQ(field->joined(2).bytes, 2 * parts[0].bytes);
    EXPECT_EQ(field->joined(9).bytes, 3 * parts[0].bytes) << "no more than there are";
    const std::vector<Arrays> all = {field->joined(3)};
    for (const MemoryKernel& kernel : kernels_here().memory) {
        const Trial trial = walking_trial("joined", team, all, kernel, 0.001);
        EXPECT_TRUE(trial.run(8).right) << described(kernel);
    }
}

TEST(CpuTrials, WorkIsThatOfAllThreads) {
    Team team({0, 0});
    auto field = Field::make(team, 2, 64 * page_bytes);
    ASSERT_TRUE(field) << field.error().text;
    MemoryKernel triad;
    for (const MemoryKernel& kernel : kernels_here().memory) {
        if (kernel.motion == Motion::triad) triad = kernel;
    }
    // 12 pages of working set are 4 of each array; 3 arrays x 4 pages x 2 threads.
    EXPECT_EQ(resident_trial("", team, field->arrays(), triad, 12 * page_bytes, 0.001).work, 24.0 * page_bytes);
}

TEST(CpuTrials, SpoiltMemoryIsAWrongAnswer) {
    Team team({0});
    auto field = Field::make(team, 1, 64 * page_bytes);
    ASSERT_TRUE(field) << field.error().text;
    for (const MemoryKernel& kernel : kernels_here().memory) {
        if (kernel.motion != Motion::read || kernel.streams != 1) continue;
        const Trial trial = resident_trial("", team, field->arrays(), kernel, 16 * page_bytes, 0.001);
        EXPECT_TRUE(trial.run(2).right);
        field->arrays().front().b[100] ^= std::byte{1};
        EXPECT_FALSE(trial.run(2).right) << described(kernel);
        field->arrays().front().b[100] ^= std::byte{1};
    }
}

TEST(Team, EveryThreadRunsOnceAndTogether) {
    Team team({0, 0, 0});
    for (const std::size_t threads : {1U, 2U, 3U}) {
        std::vector<int> runs(3, 0);
        const Ran ran = team.run(threads, [&](std::size_t i) { ++runs[i]; });
        EXPECT_GE(ran.seconds, 0.0);
        for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(runs[i], i < threads ? 1 : 0);
    }
}

}  // namespace
}  // namespace roofline::measure

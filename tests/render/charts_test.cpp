// What must hold for charts whatever they look like.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "render/sample_accounts.hpp"
#include "roofline/render/chart/account_charts.hpp"
#include "roofline/render/chart/ceilings.hpp"
#include "roofline/render/chart/roofline.hpp"
#include "roofline/render/chart/spots.hpp"
#include "roofline/render/chart/text_width.hpp"
#include "roofline/render/chart/timeline.hpp"
#include "roofline/render/numbers.hpp"
#include "roofline/render/page/page.hpp"
#include "roofline/render/terminal_chart.hpp"

namespace roofline::render::chart {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::sample_account;

TEST(Roofs, OfEqualPeaksAreOneAndTheMainOneDoesMostOfTheWork) {
    Account account = sample_account();
    account.device.rates[index(Engine::matrix)][index(DType::fp16)] = Figure{1e15, "", ""};
    const auto roofs = compute_roofs(account);
    const ComputeRoof* main = main_roof(roofs);
    ASSERT_NE(main, nullptr);
    EXPECT_EQ(main->name(), "bf16, fp16");
    EXPECT_DOUBLE_EQ(main->limit, 1e15);
    EXPECT_DOUBLE_EQ(main->attainable, 8e14);
    EXPECT_GT(roofs.front().limit, main->limit);  // fp8 is there too, though nothing uses it
    EXPECT_FALSE(roofs.front().used);
}

TEST(Spots, LieWhereTheirWorkAndTimeSay) {
    const std::vector<Account> accounts = {sample_account()};
    const Spots found = spots_of(accounts);
    // decode gate_up: 7.5e9 FLOP over 7.5e9 B is 1 FLOP/B; 7.5e9 B / 3.6e12 B/s x 1.2 = 2.5 ms; 7.5e9 / 2.5e-3 = 3e12.
    for (const Spot& spot : found.spots) {
        if (spot.of->name != "decode" || spot.record->name != "layers.ffn.gate_up") continue;
        EXPECT_DOUBLE_EQ(spot.intensity, 1.0);
        EXPECT_NEAR(spot.rate, 3e12, 1e3);
        EXPECT_EQ(spot.bound, Bound::memory);
    }
    EXPECT_EQ(found.spots.size(), 12U);  // 14 records
    EXPECT_EQ(found.unseen.without_flops, 1);
    EXPECT_EQ(found.unseen.on_chip, 1);
}

TEST(Spots, OfAMeasuredRecordTakeTheMeasuredTime) {
    std::vector<Account> accounts = {sample_account()};
    Record& record = accounts[0].stages[1].records[3];
    record.times.measured = Seconds(5e-3);
    for (const Spot& spot : spots_of(accounts).spots) {
        if (spot.record != &record) continue;
        EXPECT_DOUBLE_EQ(spot.seconds, 5e-3);
    }
}

Account of_many_batches() {
    Account account = sample_account();
    const AccountStage decode = account.stages[1];
    account.stages.clear();
    for (const char* type : {"bf16", "fp8"}) {
        for (const double batch : {1.0, 8.0, 32.0, 128.0}) {
            AccountStage& stage = account.stages.emplace_back(decode);
            stage.name = std::string("decode ") + type;
            stage.batch = batch;
            for (Record& record : stage.records) record.work.flops = record.work.flops * batch;
        }
    }
    return account;
}

TEST(Stages, OfManyAreNamedByWhatTellsThemApart) {
    const std::vector<Account> accounts = {of_many_batches()};
    const StageNames names = stage_names(accounts);
    EXPECT_EQ(names.own[0][0], "bf16, batch 1");
    EXPECT_EQ(names.own[0][7], "fp8, batch 128");
    EXPECT_EQ(names.common, "decode, context 4,096");
    const std::string svg = roofline_chart(accounts);
    for (const std::string& name : names.own[0]) EXPECT_THAT(svg, HasSubstr(">" + name + "</text>"));
    EXPECT_THAT(svg, HasSubstr("8 stages: decode"));
    // Their operators are for the mouse.
    EXPECT_THAT(svg, Not(HasSubstr(">ffn.gate_up</text>")));
    EXPECT_THAT(svg, HasSubstr("data-name=\"layers.ffn.gate_up\""));
    // Two of one kind in two reports are told apart by the report; one stage alone keeps its name.
    const std::vector<Account> two = {sample_account(), testing::slower_account()};
    EXPECT_EQ(stage_names(two).own[1][1], "decode, sample-half");
    EXPECT_EQ(stage_names(two).common, "batch 1, 1,024 tokens, context 4,096");
    Account one = sample_account();
    one.stages.resize(1);
    EXPECT_EQ(stage_names(std::vector{one}).own[0][0], one.stages[0].name);
    EXPECT_TRUE(stage_names({}).own.empty());
}

TEST(Charts, TellBatchesOfOneStageApartAndSayWhatIntegersAreCountedIn) {
    Account account = sample_account();
    const std::string alone = roofline_chart({&account, 1});
    EXPECT_THAT(alone, HasSubstr(">all of decode<"));
    EXPECT_THAT(alone, HasSubstr(">rate (FLOP/s)<"));
    account.stages.erase(account.stages.begin());
    account.stages.push_back(account.stages.front());
    account.stages.back().batch = 8.0;
    for (Record& record : account.stages.back().records) {
        record.work.flops = record.work.flops * 8.0;
        if (record.work.engine == Engine::matrix) record.work.type = DType::int8;
    }
    const std::string both = roofline_chart({&account, 1});
    EXPECT_THAT(both, HasSubstr(">all of decode, batch 1<"));
    EXPECT_THAT(both, HasSubstr(">all of decode, batch 8<"));
    EXPECT_THAT(both, HasSubstr(">rate (FLOP/s; of integers OP/s)<"));
}

int times_in(std::string_view text, std::string_view words) {
    int times = 0;
    for (std::size_t at = text.find(words); at != std::string_view::npos; at = text.find(words, at + 1)) ++times;
    return times;
}

TEST(Charts, TellNumberTypesApartWhereOperatorsDifferInThem) {
    const Account account = testing::account_in_two_types();
    const std::string svg = roofline_chart({&account, 1});
    for (const char* type : {"bf16", "fp8"}) EXPECT_EQ(times_in(svg, fmt::format(">ffn.gate_up, {}<", type)), 1);
    EXPECT_EQ(times_in(svg, ">ffn.gate_up<"), 0);
    // The head is in bf16 in both: one point, one name.
    EXPECT_EQ(times_in(svg, ">head<"), 2) << "in the legend, and in the picture";
    EXPECT_EQ(times_in(svg, ">head, "), 0);
    // The mouse is told of which stage each is.
    EXPECT_THAT(svg, HasSubstr("layers.ffn.gate_up&#10;sample-8b on sample-1, decode fp8, batch 1"));
    // Beside a step in fp32 its head lies elsewhere, and is in bf16 whatever the step is called.
    Account wide = account;
    wide.stages[0].name = "decode fp32";
    for (AccountStage& stage : wide.stages) {
        for (Record& record : stage.records) record.kind = Kind::gemm;
    }
    for (Record& record : wide.stages[0].records) {
        record.work.type = DType::fp32;
        record.work.at(Level::memory) = record.work.at(Level::memory) * 2.0;
    }
    std::vector<std::string> names;
    for (const Spot& spot : spots_of({&wide, 1}).spots) {
        if (spot.record->group == Group::head || spot.record->name == "layers.ffn.gate_up")
            names.push_back(point_name(spot, wide));
    }
    EXPECT_THAT(names, ::testing::ElementsAre("ffn.gate_up, fp32", "head, fp32", "ffn.gate_up, fp8", "head, bf16"));
    // In one type, and where stages are merely numbered, names stay as they are.
    Account numbered = account;
    numbered.stages[0].name = "decode 1";
    numbered.stages[1].name = "decode 2";
    Account alone = account;
    alone.stages.resize(1);
    for (const Account& other : {numbered, alone, sample_account()}) {
        for (const Spot& spot : spots_of({&other, 1}).spots)
            EXPECT_EQ(point_name(spot, other), short_name(*spot.record, *spot.of));
    }
    // Prompts and decode steps in the same types are other stages, as are other batches.
    Account batches = account;
    batches.stages[1].batch = 8.0;
    for (const Spot& spot : spots_of({&batches, 1}).spots)
        EXPECT_EQ(point_name(spot, batches), short_name(*spot.record, *spot.of));
}

Ridges ridges_in(const Account& account) {
    const auto ceilings = ceilings_of({&account, 1}, {Level::memory});
    const Spots found = spots_of({&account, 1});
    const Ridges ridges = ridges_of(ceilings.front(), account.device, found.spots);
    for (const Spot& spot : found.spots) {
        if (spot.share < 0.02) continue;
        if (spot.intensity < ridges.lowest) {
            EXPECT_EQ(spot.bound, Bound::memory) << spot.record->name;
        }
        if (spot.intensity >= ridges.highest) {
            EXPECT_EQ(spot.bound, Bound::compute) << spot.record->name;
        }
    }
    return ridges;
}

TEST(Charts, CallNothingComputeBoundThatIsMemoryBoundUnderItsOwnRoof) {
    // 1 PFLOP/s in bf16 over 4 TB/s: 250. In one type there is one ridge.
    Account account = sample_account();
    EXPECT_DOUBLE_EQ(ridges_in(account).lowest, 250.0);
    EXPECT_DOUBLE_EQ(ridges_in(account).highest, 250.0);
    const std::string one = roofline_chart({&account, 1});
    EXPECT_THAT(one, HasSubstr(">ridge 250.0<"));
    EXPECT_THAT(one, Not(HasSubstr("depends on")));
    // Twice the rate in fp8: 500. An operator of 400 in fp8 waits for memory, right of the ridge of bf16.
    Record& down = account.stages[0].records[3];
    down.work.type = DType::fp8;
    down.work.flops = Flops(400.0 * down.work.at(Level::memory).value);
    EXPECT_DOUBLE_EQ(ridges_in(account).lowest, 250.0);
    EXPECT_DOUBLE_EQ(ridges_in(account).highest, 500.0);
    const std::string two = roofline_chart({&account, 1});
    EXPECT_THAT(two, HasSubstr(">ridge 250.0 of bf16<"));
    EXPECT_THAT(two, HasSubstr(">ridge 500.0 of fp8<"));
    // A little work on vectors, at 50 TFLOP/s: 12.5. What it has of 100 is held back by compute, left of both.
    Record& norm = account.stages[1].records[6];
    norm.work.engine = Engine::vector;
    norm.work.type = DType::fp32;
    norm.work.flops = Flops(100.0 * norm.work.at(Level::memory).value);
    // One that nobody would look at leaves the picture as it is.
    EXPECT_DOUBLE_EQ(ridges_in(account).lowest, 250.0);
    norm.times.expected = account.stages[1].records[0].times.expected * 100.0;
    EXPECT_DOUBLE_EQ(ridges_in(account).lowest, 12.5);
    EXPECT_DOUBLE_EQ(ridges_in(account).highest, 500.0);
    const std::string three = roofline_chart({&account, 1});
    EXPECT_THAT(three, HasSubstr(">ridge 12.50 of fp32 vector<"));
    EXPECT_THAT(three, HasSubstr(">depends on the type<"));
    // On number lines each stage has its own.
    const Account types = testing::account_in_two_types();
    const std::string lines = find_account_chart("intensity")->draw({&types, 1}, {});
    EXPECT_EQ(times_in(lines, ">ridge 250.0<"), 1);
    EXPECT_EQ(times_in(lines, ">ridges 250.0 and 500.0<"), 1);
    // Nothing is known of a machine without a name.
    EXPECT_EQ(ridges_of(Ceiling{}, Device{}, {}).highest, 0.0);
}

TEST(Charts, NameNoLineThatIsNotDrawn) {
    Account account = sample_account();
    EXPECT_THAT(roofline_chart({&account, 1}), HasSubstr(">limit ("));
    // As `bench` leaves a machine that was never measured.
    account.device.rates = {};
    account.device.levels = {};
    account.device.ceilings.clear();
    const std::string svg = roofline_chart({&account, 1});
    EXPECT_THAT(svg, HasSubstr(">all of decode<"));
    EXPECT_THAT(svg, Not(HasSubstr(">limit (")));
    EXPECT_THAT(svg, Not(HasSubstr(">attainable (")));
}

TEST(Charts, SurviveAnythingAReportCanHold) {
    Account hostile = sample_account();
    hostile.title = "<script>alert(1)</script>\"'&\x01\xff";
    hostile.device.name = "\xff\xfe";
    hostile.stages[0].name = "]]></svg>";
    hostile.stages[1].records[0].name = "</title><script>alert(1)</script>";
    hostile.stages[1].records[1].work.flops = Flops(1e300);
    hostile.stages[1].records[3].times.expected = Seconds(1e-300);
    hostile.notes = {"<img src=x onerror=alert(1)>"};
    Account empty;
    Account bare;  // a device of which nothing is known, with work on it
    bare.stages = hostile.stages;
    for (const std::vector<Account>& accounts :
         {std::vector<Account>{hostile}, std::vector<Account>{empty}, std::vector<Account>{bare},
          std::vector<Account>{}, std::vector<Account>{hostile, empty, bare}}) {
        for (const AccountChart& chart : account_charts()) {
            const std::string svg = chart.draw(accounts, {});
            EXPECT_TRUE(svg.ends_with("</svg>\n")) << chart.name;
            for (const char* bad : {"<script", "nan", "inf ", "inf\"", "inf,"})
                EXPECT_THAT(svg, Not(HasSubstr(bad))) << chart.name;
        }
        const std::string page =
            write_page({.report = accounts_markdown(accounts), .accounts = accounts, .command = "roofline <b>"});
        EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
        EXPECT_THAT(page, Not(HasSubstr("<img")));
        EXPECT_THAT(page, Not(HasSubstr("<b>\"")));
        (void)terminal_roofline(accounts, {});
        (void)terminal_bars(accounts, {});
    }
}

TEST(Page, LoadsNothingFromAnywhere) {
    const std::vector<Account> accounts = {sample_account()};
    std::string page = write_page({.report = accounts_markdown(accounts), .accounts = accounts});
    // The name of a namespace is not an address that is asked.
    for (std::size_t at = page.find("http://www.w3.org/2000/svg"); at != std::string::npos;
         at = page.find("http://www.w3.org/2000/svg"))
        page.erase(at, 26);
    for (const char* bad : {"http:", "https:", "//cdn", "src=", "@import", "url(h"})
        EXPECT_THAT(page, Not(HasSubstr(bad)));
    EXPECT_THAT(page, HasSubstr("<td class=\"words\">layers.ffn.gate_up</td>"));
}

TEST(Terminal, IsNoWiderThanAskedAndPaintsOnlyWhereAllowed) {
    const std::vector<Account> accounts = {sample_account(), testing::slower_account()};
    for (const int columns : {60, 80, 120}) {
        std::string text = terminal_roofline(accounts, {false, columns});
        EXPECT_THAT(text, Not(HasSubstr("\x1b[")));
        const std::size_t from = text.find("FLOP/s\n") + 7;
        for (std::size_t at = from; at < text.size();) {
            const std::size_t end = text.find('\n', at);
            const std::string line = text.substr(at, end - at);
            if (line.empty()) break;  // the key follows
            EXPECT_LE(length_of(line), static_cast<std::size_t>(columns)) << line;
            at = end + 1;
        }
    }
    EXPECT_THAT(terminal_roofline(accounts, {true, 80}), HasSubstr("\x1b["));
}

TEST(Numbers, OperationsOnIntegersAreNoFlops) {
    EXPECT_EQ(with_unit(6.648e11, peak_unit(DType::int8)), "664.8 GOP/s");
    EXPECT_EQ(peak_unit(DType::fp8), "FLOP/s");
    EXPECT_EQ(peak_unit("vector.int8"), "OP/s");
    EXPECT_EQ(peak_unit("matrix.int8 with tile loads"), "OP/s");
    EXPECT_EQ(peak_unit("matrix.int8.sustained"), "OP/s");
    EXPECT_EQ(peak_unit("measured matrix.int4"), "OP/s");
    EXPECT_EQ(peak_unit("matrix.bf16 with tile loads"), "FLOP/s");
    EXPECT_EQ(peak_unit("clock"), "FLOP/s");
    // A roof that both share is one of floating-point operations.
    const ComputeRoof shared{Engine::matrix, {DType::int8, DType::fp8}, 2e15, 2e15};
    EXPECT_EQ(shared.spelt(shared.limit), "2.000 PFLOP/s");
    const ComputeRoof integers{Engine::matrix, {DType::int8, DType::int4}, 2e15, 2e15};
    EXPECT_EQ(integers.spelt(integers.limit), "2.000 POP/s");
}

TEST(Terminal, ADeviceAloneHasAllItsRoofs) {
    Account account;
    account.device = testing::sample_device();
    account.device.levels[index(Level::cache)].emplace().bandwidth = Figure{2e13, "made up", ""};
    const std::string text = terminal_roofline(std::vector{account}, {false, 80, false});
    // 1 PFLOP/s over 4 TB/s is 250.
    for (const char* words :
         {"bf16 1.000 PFLOP/s", "measured 800.0 TFLOP/s", "fp8 2.000 PFLOP/s", "fp32 vector 50.00 TFLOP/s",
          "ridge 250.0", "cache 20.00 TB/s", "4.000 TB/s, measured 3.600 TB/s"})
        EXPECT_THAT(text, HasSubstr(words)) << text;
    EXPECT_THAT(text, ::testing::StartsWith("FLOP/s\n"));  // no heading
    // Operators that use bf16 alone need no other roof.
    EXPECT_THAT(terminal_roofline(std::vector{sample_account()}, {false, 80}), Not(HasSubstr("fp8")));
}

TEST(Timeline, CountsTimeInWhichNothingRuns) {
    // Two that overlap, a hole of 3, and one inside another: 10 + hole 3 + 5 = 18.
    EXPECT_DOUBLE_EQ(idle_time({{"b", Group::ffn, 13.0, 18.0, 0},
                                {"a", Group::ffn, 0.0, 8.0, 0},
                                {"c", Group::ffn, 4.0, 10.0, 1},
                                {"d", Group::ffn, 14.0, 15.0, 1}}),
                     3.0);
    EXPECT_DOUBLE_EQ(idle_time({}), 0.0);
}

TEST(Titles, SayWhatTellsReportsApart) {
    const std::vector<Account> two = {sample_account(), testing::slower_account()};
    EXPECT_EQ(common_title(two), "sample-8b on sample-1 and sample-half");
    EXPECT_EQ(short_title(two, 1), "sample-half");
    const std::vector<Account> same = {sample_account(), sample_account()};
    EXPECT_EQ(short_title(same, 1), "sample-8b on sample-1 (2)");
}

TEST(Names, SayWhichLayersOnlyWhereOthersHaveTheSame) {
    AccountStage stage;
    for (const char* name : {"layers[dense].attention.qkv", "layers[moe].attention.qkv", "layers[moe].ffn.router",
                             "layers.attention.out", "head"})
        stage.records.emplace_back().name = name;
    std::vector<std::string> names;
    for (const Record& record : stage.records) names.push_back(short_name(record, stage));
    EXPECT_EQ(names, (std::vector<std::string>{"attention.qkv, dense", "attention.qkv, moe", "ffn.router",
                                               "attention.out", "head"}));
}

}  // namespace
}  // namespace roofline::render::chart

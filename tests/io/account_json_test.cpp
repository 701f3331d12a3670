// An account is read back as it was written, and a prediction is an account.
#include "roofline/io/account_json.hpp"

#include <gtest/gtest.h>

#include "core/devices.hpp"

namespace roofline::io {
namespace {

Account small_account() {
    Account account;
    account.title = "a trace";
    account.verb = "analyze";
    account.device.name = "plain";
    account.device.title = "A plain device";
    account.device.kind = "gpu";
    account.device.sources["sheet"] = {SourceKind::vendor, "Datasheet", "2026"};
    account.device.rates[index(Engine::matrix)][index(DType::bf16)] = Figure{1e12, "sheet", ""};
    account.device.levels[index(Level::memory)] = MemoryLevel{};
    account.device.levels[index(Level::memory)]->bandwidth = Figure{1e11, "sheet", ""};
    account.model = "small";
    AccountStage& stage = account.stages.emplace_back();
    stage.name = "decode 2";
    stage.batch = 4.0;
    stage.produced = 4.0;
    Record& record = stage.records.emplace_back();
    record.name = "layers.ffn.down";
    record.covers = {"layers.ffn.down", "layers.ffn.add"};
    record.kind = Kind::gemm;
    record.group = Group::ffn;
    record.count = 2.0;
    record.work.flops = Flops(1e9);
    record.work.at(Level::memory) = Bytes(1e9);
    record.weights = Bytes(9e8);
    record.origin = Origin::traced;
    record.times.measured = Seconds(0.02);
    hold_against(account.device, record);
    sum_records(stage);
    account.notes = {"a note"};
    return account;
}

TEST(Account, IsReadBackAsItWasWritten) {
    const Account written = small_account();
    const std::string text = dump(account_json(written, {"roofline analyze x", ""}));
    const auto read = read_account(text, "x.json");
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_EQ(dump(account_json(*read, {"roofline analyze x", ""})), text);
    EXPECT_EQ(read->stages.at(0).records.at(0).covers.size(), 2U);
    EXPECT_EQ(read->stages.at(0).records.at(0).weights.value, 9e8);
}

TEST(Account, RecordIsHeldAgainstTheRoofsOfItsDevice) {
    // 1e9 flops at 1e12 flop/s take 1 ms, 1e9 bytes at 1e11 byte/s take 10 ms: memory-bound.
    const Account account = small_account();
    const Times& times = account.stages[0].records[0].times;
    EXPECT_DOUBLE_EQ(times.limit.value, 0.01);
    EXPECT_DOUBLE_EQ(times.attainable.value, 0.01);
    EXPECT_DOUBLE_EQ(account.stages[0].times.measured->value, 0.02);
}

TEST(Account, SaysWhatIsWrongWithAReport) {
    EXPECT_EQ(read_account("[]", "x.json").error().text,
              "x.json: found a list, expected a report (an object with \"schema\")");
    EXPECT_EQ(read_account(R"({"schema": "roofline.report/1"})", "x.json").error().text,
              "x.json: found neither a device nor stages, expected a report with one of them");
    const auto other = read_account(R"({"schema": "roofline.device/1"})", "x.json");
    ASSERT_FALSE(other);
    EXPECT_NE(other.error().text.find("x.json: schema: found \"roofline.device/1\""), std::string::npos);
    const auto kind =
        read_account(R"({"schema": "roofline.report/1", "device": {"name": "d"}, "stages": [{"stage": "all",
        "time_s": {}, "records": [{"name": "a", "kind": "magic", "time_s": {}}]}]})",
                     "x.json");
    ASSERT_FALSE(kind);
    EXPECT_NE(kind.error().text.find("magic"), std::string::npos);
}

}  // namespace
}  // namespace roofline::io

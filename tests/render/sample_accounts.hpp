// Accounts made up for drawing: a device with round figures, so that where points and roofs must lie can be worked out
// by hand, and operators of every group.
#pragma once

#include <string>
#include <vector>

#include "roofline/core/account.hpp"

namespace roofline::render::chart::testing {

/// 1 PFLOP/s in bf16, 4 TB/s of memory: the ridge is 1e15 / 4e12 = 250. Measured: 800 TFLOP/s and 3.6 TB/s.
inline Device sample_device() {
    Device device;
    device.name = "sample-1";
    device.title = "Sample One";
    device.rates[index(Engine::matrix)][index(DType::bf16)] = Figure{1e15, "made up", ""};
    device.rates[index(Engine::matrix)][index(DType::fp8)] = Figure{2e15, "made up", ""};
    device.rates[index(Engine::vector)][index(DType::fp32)] = Figure{5e13, "made up", ""};
    MemoryLevel memory;
    memory.technology = "HBM9";
    memory.bandwidth = Figure{4e12, "made up", ""};
    device.levels[index(Level::memory)] = memory;
    device.ceilings["memory.bandwidth"] = Figure{3.6e12, "made up", ""};
    device.ceilings["matrix.bf16"] = Figure{8e14, "made up", ""};
    return device;
}

inline Record sample_record(const Device& device, std::string name, Group group, double flops, double bytes,
                            double slower) {
    Record record;
    record.name = std::move(name);
    record.group = group;
    record.count = 32.0;
    record.work.flops = Flops(flops);
    record.work.at(Level::memory) = Bytes(bytes);
    hold_against(device, record);
    record.times.expected = record.times.attainable * slower;
    return record;
}

inline Account sample_account() {
    Account account;
    account.title = "sample-8b on sample-1";
    account.verb = "predict";
    account.model = "sample-8b";
    account.device = sample_device();
    const Device& device = account.device;
    AccountStage prefill;
    prefill.name = "prefill";
    prefill.batch = 1.0;
    prefill.tokens = 1024.0;
    prefill.produced = 1024.0;
    prefill.records = {sample_record(device, "layers.attention.qkv", Group::attention, 1.6e12, 1.6e9, 1.3),
                       sample_record(device, "layers.attention.core", Group::attention, 2.7e11, 1.3e8, 4.0),
                       sample_record(device, "layers.ffn.gate_up", Group::ffn, 7.7e12, 9.6e9, 1.2),
                       sample_record(device, "layers.ffn.down", Group::ffn, 3.8e12, 3.7e9, 1.25),
                       sample_record(device, "layers.ffn.activation", Group::ffn, 2.3e9, 2.8e9, 1.1),
                       sample_record(device, "head", Group::head, 1.05e9, 1.05e9, 1.2)};
    AccountStage decode;
    decode.name = "decode";
    decode.batch = 1.0;
    decode.tokens = 1.0;
    decode.context = 4096.0;
    decode.produced = 1.0;
    decode.records = {sample_record(device, "layers.attention.qkv", Group::attention, 1.6e9, 1.6e9, 1.4),
                      sample_record(device, "layers.attention.core", Group::attention, 2.1e9, 5.3e8, 3.5),
                      sample_record(device, "layers.attention.kv_write", Group::attention, 0.0, 1.3e5, 40.0),
                      sample_record(device, "layers.ffn.gate_up", Group::ffn, 7.5e9, 7.5e9, 1.2),
                      sample_record(device, "layers.ffn.down", Group::ffn, 3.7e9, 3.7e9, 1.3),
                      sample_record(device, "layers.ffn.residual", Group::ffn, 1.3e6, 0.0, 9.0),
                      sample_record(device, "layers.norm", Group::norm, 5.2e5, 2.6e5, 500.0),
                      sample_record(device, "head", Group::head, 1.05e9, 1.05e9, 1.1)};
    sum_records(prefill);
    sum_records(decode);
    account.stages = {prefill, decode};
    return account;
}

/// One decode step with weights in bf16 and in fp8, as `bench --dtype bf16,fp8` reports it: products read half the
/// bytes and multiply at twice the rate, everything else is alike.
inline Account account_in_two_types() {
    Account account = sample_account();
    const AccountStage decode = account.stages[1];
    account.verb = "bench";
    account.stages = {decode, decode};
    account.stages[0].name = "decode bf16";
    AccountStage& narrow = account.stages[1];
    narrow.name = "decode fp8";
    for (Record& record : narrow.records) {
        if (record.name != "layers.attention.qkv" && record.group != Group::ffn) continue;
        record.work.type = DType::fp8;
        record.work.at(Level::memory) = record.work.at(Level::memory) * 0.5;
        hold_against(account.device, record);
        record.times.expected = record.times.attainable * 1.5;
    }
    narrow.times = {};
    sum_records(narrow);
    return account;
}

/// The same work on a machine with half of everything.
inline Account slower_account() {
    Account account = sample_account();
    account.device.name = "sample-half";
    account.device.title = "Sample Half";
    account.title = "sample-8b on sample-half";
    account.device.ceilings.clear();
    account.device.rates[index(Engine::matrix)][index(DType::bf16)] = Figure{5e14, "made up", ""};
    account.device.levels[index(Level::memory)]->bandwidth = Figure{2e12, "made up", ""};
    for (AccountStage& stage : account.stages) {
        for (Record& record : stage.records) {
            hold_against(account.device, record);
            record.times.expected = record.times.attainable * 1.5;
        }
        sum_records(stage);
    }
    return account;
}

}  // namespace roofline::render::chart::testing

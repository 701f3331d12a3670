// Replicas for tests: one whose steps all take the same time, so that answers can be found on paper; a real model on a
// real device; and those of random_case.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "roofline/io/calibration_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/predict/prepared.hpp"
#include "roofline/serving/simulation.hpp"
#include "serving/random_case.hpp"

namespace roofline::testing {

/// Every step takes 10 ms whatever is in it; a token of cache is a byte.
class ConstantReplica : public serving::Replica {
  public:
    ConstantReplica() {
        max_sequences = 4;
        max_step_tokens = 100000;
    }
    serving::StepCost price(std::span<const model::Sequences> step) const override {
        double tokens = 0.0;
        for (const model::Sequences& group : step) tokens += group.count * group.new_tokens;
        return {seconds, seconds / pipeline_stages, tokens, 1.0};
    }
    double sequence_bytes(double context) const override { return context; }

    double seconds = 0.010;
};

enum class Which { limit, attainable, expected };

/// A built-in model on one built-in device, all of whose memory but the weights is the pool.
class PreparedReplica : public serving::Replica {
  public:
    PreparedReplica(std::string_view model, std::string_view device_name, Which which) : which_(which) {
        const auto file = io::builtin_model(model);
        const auto device = io::builtin_device(device_name);
        EXPECT_TRUE(file && device);
        predict::Execution execution;
        execution.profile = *io::builtin_profile("engine", *device);
        execution.calibration = std::make_shared<const predict::Calibration>(*io::builtin_calibration(*device));
        lowered_ = model::lower(file->architecture, file->types);
        prepared_ = std::make_unique<predict::Prepared>(lowered_, *device, execution);
        times_.resize(prepared_->size());
        pool_bytes = 0.9 * device->capacity(Level::memory)->value - model::count_parameters(lowered_).stored_bytes;
    }
    serving::StepCost price(std::span<const model::Sequences> step) const override {
        const predict::StageTime stage = prepared_->evaluate(step, times_);
        const double time = which_ == Which::limit        ? stage.limit
                            : which_ == Which::attainable ? stage.attainable
                                                          : stage.expected;
        return {time, time, stage.flops, stage.memory_bytes};
    }
    double sequence_bytes(double context) const override {
        return model::cache_bytes(lowered_, 16.0 * std::ceil(context / 16.0));
    }

  private:
    model::Lowered lowered_;
    std::unique_ptr<predict::Prepared> prepared_;
    mutable std::vector<predict::OperatorTime> times_;
    Which which_;
};

}  // namespace roofline::testing

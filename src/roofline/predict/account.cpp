#include "roofline/predict/account.hpp"

namespace roofline::predict {

Account account_of(const Scenario& scenario, const Report& report) {
    Account account;
    account.title = scenario.model_name + " on " + scenario.device.name;
    account.verb = "predict";
    account.device = scenario.device;
    account.model = scenario.model_name;
    account.notes = report.notes;
    for (const StageReport& stage : report.stages) {
        AccountStage& part = account.stages.emplace_back();
        part.name = name(stage.kind);
        part.batch = stage.batch;
        part.tokens = stage.tokens;
        part.context = stage.context;
        part.produced = stage.produced();
        part.times = stage.times;
        part.records = stage.records;
        for (std::size_t i = 0; i < part.records.size(); ++i) {
            part.records[i].weights = Bytes(stage.details[i].weight_bytes);
            part.records[i].kv = Bytes(stage.details[i].kv_bytes);
        }
    }
    return account;
}

}  // namespace roofline::predict

#include "roofline/analyze/json.hpp"

#include "roofline/analyze/text.hpp"
#include "roofline/io/account_json.hpp"

namespace roofline::analyze {
namespace {

io::OrderedJson went_json(const std::string& stage, const WhereTimeWent& went) {
    return {{"stage", stage},
            {"wall_s", went.wall.value},
            {"computing_s", went.computing.value},
            {"communicating_s", went.communicating.value},
            {"hidden_communication_s", went.hidden_communication.value},
            {"copying_s", went.copying.value},
            {"idle_s", went.idle.value},
            {"idle_launch_s", went.idle_launch.value},
            {"idle_host_s", went.idle_host.value}};
}

template <class List, class Write>
io::OrderedJson list_json(const List& list, const Write& write) {
    io::OrderedJson json = io::OrderedJson::array();
    for (const auto& entry : list) json.push_back(write(entry));
    return json;
}

}  // namespace

io::OrderedJson analysis_json(const Analysis& analysis, const std::string& by, const io::RunInfo& run) {
    Account account = analysis.account;
    account.stages = cut(analysis, by);
    io::OrderedJson json = io::account_json(account, run);
    io::OrderedJson more = {{"format", analysis.format},
                            {"file", analysis.file},
                            {"partial", analysis.partial},
                            {"device_known", analysis.device_known},
                            {"events", analysis.events},
                            {"bytes_read", analysis.bytes_read},
                            {"layers", analysis.layers},
                            {"kernel_s", analysis.kernel_time.value},
                            {"explained_s", analysis.explained_time.value},
                            {"inferred_s", analysis.inferred_time.value},
                            {"inferred", analysis.inferred}};
    if (analysis.rank) {
        const RankShare& rank = *analysis.rank;
        more["rank"] = {{"number", rank.number < 0.0 ? io::OrderedJson() : io::OrderedJson(rank.number)},
                        {"of", rank.of},
                        {"collectives_s", rank.collectives.value},
                        {"waiting_s", rank.waiting.value},
                        {"slowest", rank.slowest}};
    }
    more["streams"] = list_json(analysis.streams, [](const StreamTime& stream) -> io::OrderedJson {
        return {{"name", stream.name},
                {"wall_s", stream.wall.value},
                {"attributed_s", stream.attributed.value},
                {"unattributed_s", stream.unattributed.value},
                {"idle_s", stream.idle.value},
                {"kernels", stream.kernels}};
    });
    more["time_went"] = io::OrderedJson::array();
    if (analysis.whole.wall.value > 0.0) more["time_went"].push_back(went_json("", analysis.whole));
    for (std::size_t i = 0; i < std::min(analysis.time_went.size(), analysis.account.stages.size()); ++i)
        more["time_went"].push_back(went_json(analysis.account.stages[i].name, analysis.time_went[i]));
    more["steps"] = list_json(analysis.steps, [](const StepTime& step) -> io::OrderedJson {
        return {{"stage", step.stage},
                {"name", step.name},
                {"begin_s", step.begin_s},
                {"wall_s", step.wall.value},
                {"busy_s", step.busy.value},
                {"kernels", step.kernels},
                {"graph_kernels", step.graph_kernels},
                {"batch", step.batch},
                {"tokens", step.tokens},
                {"context", step.context},
                {"layers", step.layers}};
    });
    more["diagnoses"] = list_json(analysis.diagnoses, [](const Diagnosis& diagnosis) -> io::OrderedJson {
        return {{"stage", diagnosis.stage}, {"words", diagnosis.words},   {"evidence", diagnosis.evidence},
                {"move", diagnosis.move},   {"advice", diagnosis.advice}, {"saved_s", diagnosis.saved.value},
                {"gain", diagnosis.gain}};
    });
    more["unattributed"] = list_json(analysis.unattributed, [](const Unexplained& entry) -> io::OrderedJson {
        return {{"name", entry.name}, {"count", entry.count}, {"time_s", entry.time.value}, {"why", entry.why}};
    });
    more["joined"] = list_json(analysis.joined, [](const Joined& row) -> io::OrderedJson {
        return {{"stage", row.stage},
                {"name", row.name},
                {"limit_s", row.limit.value},
                {"expected_s", row.expected.value},
                {"measured_s", row.measured.value}};
    });
    more["memory_notes"] = analysis.memory_notes;
    json["analysis"] = std::move(more);
    return json;
}

}  // namespace roofline::analyze

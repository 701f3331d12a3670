// Which devices, how many, and how to spread a model over them: the question, and its answer.
#pragma once

#include <string>
#include <vector>

#include "roofline/ask/form.hpp"
#include "roofline/ask/library.hpp"
#include "roofline/ask/memory_options.hpp"
#include "roofline/decide/plan.hpp"
#include "roofline/io/report_json.hpp"

namespace roofline::ask {

struct Planned {
    decide::PlanQuestion question;
    decide::Plan plan;
    std::string emitted;  // what starts the best with the engine that was named; empty: none was, or there is no best
};

struct PlanOptions {
    bool has_time = false;  // whoever waits may wait a second: finalists near capacity are simulated
    std::string models;
    std::string devices;
    std::string prices;
    std::string prompt = "1024";
    std::string generate = "128";
    std::string ttft;
    std::string tpot;
    std::string rate;
    std::string cost;
    std::string quantization = "auto";
    std::string kv_dtype = "auto";
    std::string batch = "1024";
    std::string chunks = "512,1024,2048,4096,8192,16384";
    std::string speculate;
    std::string draft;
    MemoryFlags memory;
    std::string goal = "cost";
    std::string emit;
    std::string profile = "engine";
    std::string calibration;
    bool colocated = false;

    void add_to(Form& form);
    /// One for each model named.
    Result<std::vector<Planned>> answer(const Library& library) const;
};

std::string plans_text(const std::vector<Planned>& plans, const io::RunInfo& run);

}  // namespace roofline::ask

// From a plan to the command that starts an engine with it. Each engine is one file in emit/; the folder is the
// registry.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/decide/plan.hpp"

namespace roofline::decide {

/// Which part of a request a server does.
enum class Part { whole, prompts, outputs };

/// One kind of server to start, in the engine's own terms nowhere yet.
struct Server {
    Part part = Part::whole;
    std::string model;
    model::Deployment deployment;  // of one replica
    double replicas = 1.0;
    double sequences = 1.0;  // of a replica at once
    double step_tokens = 0.0;
    double longest = 0.0;  // tokens of the longest request
    std::string weights;   // a format that is not the checkpoint's; empty: as it is
    std::string kv;        // likewise
    double utilisation = 0.9;
    bool experts = false;  // the model has experts
    std::string device;    // where pools are of different kinds: which this one runs on
    double drafted = 0.0;  // tokens guessed ahead of every step
    std::string draft;     // the model that guesses; empty: the checkpoint's own head, or one that is not named

    double sequences_of_a_group() const;
    double nodes() const;
};

std::vector<Server> servers_of(const Deploy& deploy, const PlanQuestion& question, const std::string& model);

/// The text that starts the servers, a command on several lines each, with what flags cannot say in comments.
Result<std::string> emit(std::string_view engine, const std::vector<Server>& servers);
std::vector<std::string> emitters();

/// A command as shells read it, one flag a line.
std::string as_command(const std::vector<std::string>& words);
/// "# prompts: 2 of these" and what must be known before starting it.
std::string heading(const Server& server, double copies);
/// Whether flags alone turn the checkpoint into this format while it is loaded.
bool quantised_while_loading(std::string_view format);

}  // namespace roofline::decide

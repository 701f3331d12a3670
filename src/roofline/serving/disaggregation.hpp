// Prompts computed on one pool of replicas, outputs written on another; keys and values travel over a link between
// them.
#pragma once

#include <string_view>

#include "roofline/serving/simulation.hpp"
#include "roofline/serving/steady.hpp"

namespace roofline::serving {

struct Pool {
    const Replica* replica = nullptr;
    Policy policy;  // its role is set here
    double replicas = 1.0;
};

struct Pools {
    Pool prefill;
    Pool decode;
    double link_bytes_per_second = 0.0;  // out of one prefill replica, on the scale of sequence_bytes; 0: at no cost
};

/// Which of the three gives out first.
enum class Narrowest { prefill, link, decode };
std::string_view name(Narrowest narrowest);

struct Disaggregated {
    Steady prefill;  // one replica
    Steady decode;   // one replica
    Narrowest narrowest = Narrowest::prefill;
    double capacity = 0.0;          // requests per second of the whole
    double prefill_capacity = 0.0;  // of the pool
    double link_capacity = 0.0;     // of all links; infinite at no cost
    double decode_capacity = 0.0;   // of the pool
    double transfer_bytes = 0.0;    // mean of a request
    double transfer_seconds = 0.0;  // mean of a request, without waiting
    double requests_per_second = 0.0;
    double output_tokens_per_second = 0.0;
    double ttft = 0.0;
    double tpot = 0.0;  // the transfer is in it: it stands between the first token and the second
    double request = 0.0;
    bool overloaded = false;
};

/// S12. Saturated: at capacity, where the narrowest pool has no slack and ttft counts from admission. Users and traces
/// are not answered.
Result<Disaggregated> disaggregate(const Pools& pools, const Mix& mix, const Load& load);

struct DisaggregatedOutcome {
    double requests = 0.0;  // measured
    double requests_per_second = 0.0;
    double output_tokens_per_second = 0.0;
    std::optional<Percentiles> ttft;
    std::optional<Percentiles> tpot;
    std::optional<Percentiles> request;
    bool overloaded = false;
};

/// The same by simulation, at a rate: requests are dealt to the replicas in turn, transfers of a replica queue at its
/// link.
Result<DisaggregatedOutcome> simulate(const Pools& pools, const Mix& mix, const Load& load, const Sampling& sampling);

}  // namespace roofline::serving

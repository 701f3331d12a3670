#include "roofline/serving/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <string>

#include "roofline/core/patience.hpp"
#include "roofline/serving/dealing.hpp"
#include "roofline/serving/footprint.hpp"
#include "roofline/serving/live.hpp"
#include "roofline/serving/stages.hpp"
#include "roofline/serving/step_plan.hpp"
#include "roofline/serving/tally.hpp"

namespace roofline::serving {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// A turn takes about a microsecond; a look at the clock should not be felt.
constexpr unsigned turns_between_looks = 64;

class Simulation {
  public:
    Simulation(const Replica& replica, const Policy& policy, const Mix& mix, const Load& load, const Sampling& sampling)
        : replica_(replica),
          policy_(policy),
          mix_(mix),
          load_(load),
          sampling_(sampling),
          tally_(policy, load),
          lengths_(sampling.seed, 1),
          arrivals_(sampling.seed, 2),
          luck_(sampling.seed, 3),
          footprint_(replica, policy),
          free_(footprint_.room()),
          stages_(static_cast<std::size_t>(replica.pipeline_stages)),
          dealing_(stages_.count()),
          each_(policy.speculation.tokens + 1.0) {}

    Result<Outcome> run() {
        begin();
        for (unsigned turn = 0; !done_ && !problem_; ++turn) {
            if (turn % turns_between_looks == 0 && out_of_patience())
                return fail("a simulation took longer than it may");
            if (flying_.size() == stages_.count()) {
                land();
                continue;
            }
            now_ = std::max(now_, stages_.free());
            if (!flying_.empty() && flying_.front().finish <= now_) {
                land();
                continue;
            }
            take_arrivals();
            if (done_) break;
            if (launch()) continue;
            if (!flying_.empty()) {
                land();
            } else if (next_event() < never) {
                now_ = std::max(now_, next_event());
            } else {
                finish();
            }
        }
        if (problem_) return std::unexpected(*problem_);
        return summary();
    }

  private:
    // ---- requests ----

    void begin() {
        if (load_.kind == Load::Kind::users) {
            for (int i = 0; i < load_.value; ++i) arrive(0.0);
        }
        if (load_.kind == Load::Kind::trace) {
            now_ = mix_.trace.empty() ? 0.0 : mix_.trace.front().arrival;
            tally_.open(now_);
            for (const Request& request : mix_.trace) arrive(request.arrival);
        }
        if (load_.kind == Load::Kind::rate) {
            warm_ = std::max(50.0, std::floor(sampling_.requests / 5.0));
            next_arrival_ = interarrival();
        }
    }

    double interarrival() {
        const double mean = 1.0 / load_.value;
        return load_.poisson ? arrivals_.waiting_time(mean) : mean;
    }

    /// A new request at `time`. It stands in line until the host has read it.
    void arrive(double time) {
        Live live;
        live.request = mix_.draw(arrived_, lengths_);
        if (policy_.role == Role::decode && tally_.endless()) {
            // Who wants one token got it where the prompt was computed and never comes here.
            for (int tries = 0; live.request.output < 2.0; ++tries) {
                if (tries == 10000) {
                    problem_ = Problem{"no request writes more than one token: there is nothing to decode"};
                    return;
                }
                live.request = mix_.draw(++arrived_, lengths_);
            }
        }
        live.request.arrival = time;
        if (policy_.role == Role::prefill) live.request.output = 1.0;
        live.eligible = time + policy_.host_seconds_request;
        live.target = live.request.prompt;
        if (policy_.role == Role::decode) {
            // The first token was written where the prompt was computed.
            live.generated = 1.0;
            live.computed = live.target;
            live.first = live.last = time;
        }
        const auto number = static_cast<double>(arrived_);
        live.counted = load_.kind == Load::Kind::trace ||
                       (load_.kind == Load::Kind::rate && number >= warm_ && number < warm_ + sampling_.requests);
        ++arrived_;
        const double whole = footprint_.bytes(live.request.prompt, live.request.prompt + live.request.output + each_);
        if (whole > footprint_.room()) {
            problem_ = Problem{"a request of " + std::to_string(static_cast<long>(live.request.prompt)) + " + " +
                               std::to_string(static_cast<long>(live.request.output)) + " tokens needs " +
                               std::to_string(static_cast<long>(whole)) + " bytes of cache, the pool has " +
                               std::to_string(static_cast<long>(std::max(0.0, footprint_.room())))};
            return;
        }
        if (live.counted) ++counted_open_;
        if (policy_.role == Role::decode && live.request.output <= 1.0) {
            lives_.push_back(live);
            end(lives_.back(), time);
            return;
        }
        if (sampling_.start == Start::spread && tally_.endless() && !full_once_) {
            const double done = std::floor(lengths_.uniform() * live.request.output);
            if (policy_.role != Role::decode) {
                live.generated = std::min(done, live.request.output - 1.0);
                live.target = live.request.prompt + live.generated;
            } else {
                live.generated = std::clamp(done, 1.0, live.request.output - 1.0);
                live.computed = live.target = live.request.prompt + live.generated - 1.0;
            }
            live.guest = true;
            tally_.found_half_way(live);
        }
        lives_.push_back(live);
        waiting_.push_back(static_cast<std::uint32_t>(lives_.size() - 1));
    }

    double next_event() const {
        double next = next_arrival_ < never ? next_arrival_ + policy_.host_seconds_request : never;
        if (!waiting_.empty()) next = std::min(next, std::max(now_, lives_[waiting_.front()].eligible));
        // Somebody waits, is seen and still cannot enter: only the end of another helps, and there is none.
        return !waiting_.empty() && lives_[waiting_.front()].eligible <= now_ ? never : next;
    }

    void take_arrivals() {
        while (!problem_ && !done_ && next_arrival_ + policy_.host_seconds_request <= now_) {
            const auto number = static_cast<double>(arrived_);
            if (number == warm_) {
                tally_.open(next_arrival_);
                queue_at_start_ = queue_length();
            }
            arrive(next_arrival_);
            if (number + 1.0 == warm_ + sampling_.requests) {
                tally_.close(next_arrival_);
                tally_.left_waiting(queue_length());
                const double grown = queue_length() - queue_at_start_;
                if (grown > std::max(10.0, 0.05 * sampling_.requests)) {
                    tally_.overload();
                    finish();
                }
            }
            next_arrival_ += interarrival();
        }
    }

    double queue_length() const { return static_cast<double>(waiting_.size()); }

    // ---- one step ----

    bool launch() {
        plan_.clear();
        Flight flight = spare();
        budget_ = replica_.max_step_tokens;
        preempted_ = false;
        const double most = share_of_a_stage();
        double decodes = 0.0;
        for (std::size_t i = 0; i < running_.size(); ++i) {
            const std::uint32_t id = running_[i];
            Live& live = lives_[id];
            if (live.computed < live.target) {
                compute(id, live, flight);
            } else if (!live.writing && decodes < most) {
                decodes += decode(i, id, live, flight) ? 1.0 : 0.0;
            }
        }
        if (!preempted_) admit(flight, decodes, most);
        if (flight.parts.empty()) {
            spares_.push_back(std::move(flight));
            return false;
        }
        send(std::move(flight));
        return true;
    }

    /// In a pipeline, sequences that write are dealt evenly to the steps under way.
    double share_of_a_stage() const {
        if (stages_.count() == 1) return never;
        double writers = 0.0;
        for (const std::uint32_t id : running_) writers += lives_[id].computed >= lives_[id].target ? 1.0 : 0.0;
        return std::max(1.0, std::ceil(writers / static_cast<double>(stages_.count())));
    }

    void compute(std::uint32_t id, Live& live, Flight& flight) {
        const double tokens = std::min({live.target - live.computed, budget_, dealing_.due()});
        if (tokens <= 0.0) return;
        dealing_.compute(tokens);
        const bool last = live.computed + tokens >= live.target;
        plan_.chunk(1.0, tokens, live.computed, last ? 1.0 : 0.0);
        live.computed += tokens;
        budget_ -= tokens;
        ++live.flights;
        live.writing = last;
        flight.parts.push_back({id, true, last});
    }

    bool decode(std::size_t& place, std::uint32_t id, Live& live, Flight& flight) {
        const double tokens = each_ * policy_.samples;
        if (tokens > budget_) return false;
        if (policy_.admission == Admission::optimistic) {
            const double needed = footprint_.bytes(live.request.prompt, live.computed + each_);
            while (needed - live.held > free_) {
                const std::size_t victim = youngest(place);
                if (victim == running_.size()) return false;
                const bool self = victim == place;
                preempt(victim);
                if (self) {
                    --place;  // the next one has moved here
                    return false;
                }
            }
            hold(live, needed);
        }
        plan_.decode(policy_.samples, live.computed);
        budget_ -= tokens;
        ++live.flights;
        live.writing = true;
        flight.parts.push_back({id, false, true});
        return true;
    }

    void hold(Live& live, double bytes) {
        const double more = bytes - live.held;
        live.held = bytes;
        free_ -= more;
        in_use_ += more;
        tally_.held(in_use_);
    }

    /// The last of the running ones, from `from` on, that no step under way needs.
    std::size_t youngest(std::size_t from) const {
        for (std::size_t i = running_.size(); i-- > from;) {
            if (lives_[running_[i]].flights == 0) return i;
        }
        return running_.size();
    }

    void preempt(std::size_t place) {
        const std::uint32_t id = running_[place];
        Live& live = lives_[id];
        hold(live, 0.0);
        dealing_.leave(std::max(0.0, live.target - live.computed));
        live.computed = 0.0;
        live.target = live.request.prompt + live.generated;
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(place));
        sequences_ -= policy_.samples;
        waiting_.push_front(id);
        preempted_ = true;
        full_once_ = true;
        tally_.preempted();
    }

    void admit(Flight& flight, double& decodes, double most) {
        while (!problem_) {
            if (waiting_.empty() && load_.kind == Load::Kind::saturated) arrive(now_);
            if (problem_ || waiting_.empty()) return;
            const std::uint32_t id = waiting_.front();
            Live& live = lives_[id];
            if (live.eligible > now_ && load_.kind != Load::Kind::saturated) return;
            if (sequences_ + policy_.samples > replica_.max_sequences) {
                full_once_ = true;
                return;
            }
            const bool ready = policy_.role == Role::decode && live.computed > 0.0;
            const double room = budget_ - dealing_.due();
            if (room <= 0.0 || (ready && (decodes >= most || room < each_ * policy_.samples))) return;
            const double context = policy_.admission == Admission::reserving
                                       ? live.request.prompt + live.request.output + policy_.speculation.tokens
                                       : live.target;
            const double needed = footprint_.bytes(live.request.prompt, context);
            const double kept = policy_.admission == Admission::optimistic && !running_.empty() && free_ < never
                                    ? policy_.watermark * replica_.pool_bytes
                                    : 0.0;
            if (needed + kept > free_) {
                full_once_ = true;
                return;
            }
            waiting_.pop_front();
            hold(live, needed);
            if (live.entered < 0.0) {
                live.entered = now_;
                if (load_.kind == Load::Kind::saturated) live.request.arrival = now_ - policy_.host_seconds_request;
            }
            running_.push_back(id);
            sequences_ += policy_.samples;
            if (ready) {
                std::size_t place = running_.size() - 1;
                decodes += decode(place, id, live, flight) ? 1.0 : 0.0;
            } else {
                live.computed = cached_tokens(policy_.prefix, live.request.prompt);
                dealing_.enter(live.target - live.computed, static_cast<double>(running_.size()));
                compute(id, live, flight);
            }
        }
    }

    Flight spare() {
        if (spares_.empty()) return {};
        Flight flight = std::move(spares_.back());
        spares_.pop_back();
        flight.parts.clear();
        return flight;
    }

    /// S8: through the stages of the pipeline one after another, behind the step before.
    void send(Flight flight) {
        flight.cost = plan_.cost(replica_, policy_);
        flight.decoding = plan_.decoding();
        flight.chunk_tokens = plan_.chunk_tokens();
        flight.finish = stages_.pass(flight.cost, now_);
        dealing_.next();
        if (flying_.empty()) tally_.idle(last_finish_, now_);
        tally_.launched(plan_.tokens(policy_), sequences_);
        flying_.push_back(std::move(flight));
    }

    void land() {
        Flight flight = std::move(flying_.front());
        flying_.pop_front();
        const double time = flight.finish;
        now_ = std::max(now_, time);
        last_finish_ = time;
        tally_.landed(flight);
        bool ended = false;
        for (const Flight::Part& part : flight.parts) {
            Live& live = lives_[part.id];
            --live.flights;
            if (!part.writes) continue;
            live.writing = false;
            double tokens = part.chunk ? 1.0 : accepted();
            tokens = std::min(tokens, live.request.output - live.generated);
            write(live, part.chunk, tokens, time);
            if (live.generated >= live.request.output) {
                hold(live, 0.0);
                live.held = -1.0;  // leaves the running set below
                sequences_ -= policy_.samples;
                ended = true;
                end(live, time);
            }
        }
        if (ended) std::erase_if(running_, [&](std::uint32_t id) { return lives_[id].held < 0.0; });
        spares_.push_back(std::move(flight));
        check_end(time);
    }

    double accepted() {
        double tokens = 1.0;
        while (tokens < each_ && luck_.uniform() < policy_.speculation.acceptance) tokens += 1.0;
        return tokens;
    }

    void write(Live& live, bool chunk, double tokens, double time) {
        tally_.wrote(live, tokens, time);
        if (!chunk) live.computed += tokens;
        if (live.generated == 0.0) live.first = time;
        live.generated += tokens;
        live.target = live.computed;
        live.last = time;
    }

    void end(Live& live, double time) {
        tally_.ended(live, time);
        if (live.counted) --counted_open_;
        live.last = time;
        if (load_.kind == Load::Kind::users) arrive(time);
    }

    // ---- the window that is measured ----

    void check_end(double time) {
        if (!tally_.endless()) {
            if (load_.kind == Load::Kind::rate && !tally_.counting() && tally_.closed() && counted_open_ == 0) finish();
            return;
        }
        // Where the token budget is the limit, the set is never full: many have come and gone instead.
        if (static_cast<double>(tally_.finished()) > 2.0 * static_cast<double>(running_.size()) + 20.0)
            full_once_ = true;
        // Warm: the set has been full (or everybody is in it) and twice as many have gone since as it held.
        if (!warm_started_ && (full_once_ || (load_.kind == Load::Kind::users && waiting_.empty()))) {
            warm_started_ = true;
            full_once_ = true;
            warm_ = static_cast<double>(tally_.finished()) + 2.0 * static_cast<double>(running_.size()) + 1.0;
        }
        if (warm_started_ && !tally_.counting() && static_cast<double>(tally_.finished()) >= warm_) tally_.open(time);
        if (tally_.counting() && tally_.requests() >= sampling_.requests) finish();
    }

    void finish() {
        if (!tally_.closed()) tally_.close(last_finish_);
        done_ = true;
    }

    Outcome summary() {
        Outcome outcome = tally_.summary();
        outcome.arrived = static_cast<double>(arrived_);
        outcome.unfinished = static_cast<double>(running_.size() + waiting_.size());
        const double before = policy_.role == Role::decode ? 1.0 : 0.0;
        for (const std::uint32_t id : running_) outcome.tokens_of_unfinished += lives_[id].generated - before;
        for (const std::uint32_t id : waiting_) outcome.tokens_of_unfinished += lives_[id].generated - before;
        outcome.tokens_of_unfinished *= policy_.samples;
        if (load_.kind == Load::Kind::trace) {
            for (const Live& live : lives_) outcome.served.push_back({live.request, live.first, live.last});
        }
        return outcome;
    }

    const Replica& replica_;
    const Policy& policy_;
    const Mix& mix_;
    const Load& load_;
    const Sampling& sampling_;
    Tally tally_;
    Random lengths_;
    Random arrivals_;
    Random luck_;
    Footprint footprint_;
    StepPlan plan_;

    double now_ = 0.0;
    double next_arrival_ = never;
    double free_;
    double sequences_ = 0.0;
    double budget_ = 0.0;
    bool preempted_ = false;
    Stages stages_;
    Dealing dealing_;
    double each_;  // tokens of a decoding sequence in a step

    std::vector<Live> lives_;
    std::deque<std::uint32_t> waiting_;
    std::vector<std::uint32_t> running_;  // in the order of admission
    std::deque<Flight> flying_;
    std::vector<Flight> spares_;
    std::optional<Problem> problem_;
    std::uint64_t arrived_ = 0;
    std::uint64_t counted_open_ = 0;

    bool done_ = false;
    bool full_once_ = false;  // the running set has met its limit
    bool warm_started_ = false;
    double warm_ = 0.0;
    double last_finish_ = 0.0;
    double queue_at_start_ = 0.0;
    double in_use_ = 0.0;
};

}  // namespace

Result<Outcome> simulate(const Replica& replica, const Policy& policy, const Mix& mix, const Load& load,
                         const Sampling& sampling) {
    if (const auto checked = check(replica, policy); !checked) return std::unexpected(checked.error());
    if (load.kind == Load::Kind::trace && mix.trace.empty()) return fail("a trace is asked for, but there is none");
    if ((load.kind == Load::Kind::users || load.kind == Load::Kind::rate) && !(load.value > 0.0 && load.value < 1e9)) {
        return fail(load.kind == Load::Kind::users ? "users: expected more than 0" : "rate: expected more than 0");
    }
    if (!(sampling.requests >= 1.0 && sampling.requests <= 1e8)) return fail("requests: expected 1 to 1e8");
    return Simulation(replica, policy, mix, load, sampling).run();
}

}  // namespace roofline::serving

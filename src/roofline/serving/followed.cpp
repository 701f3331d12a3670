#include "roofline/serving/followed.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>

#include "roofline/serving/dealing.hpp"
#include "roofline/serving/random.hpp"
#include "roofline/serving/stages.hpp"

namespace roofline::serving {
namespace {

// Generations: the time in which all requests inside are replaced once. Crowds of requests that end together grow for
// some twenty.
constexpr double warm_generations = 2.0;
constexpr double followed_generations = 20.0;
constexpr double fewest_steps = 400.0;
constexpr double fewest_requests = 1000.0;  // to end, where they differ
// How requests are spread at the start lasts where they are alike: several starts.
constexpr std::uint64_t starts = 5;
constexpr double settled = 0.005;  // what one more may change
// Steps that are put together, each with as much to look at as there are cohorts in it; those that repeat the ones
// before cost nothing.
constexpr double most_work = 2e5;
constexpr double work_of_a_step = 100.0;
// Crowds take their time to grow where requests are thrown out.
constexpr double more_work = 4.0;
constexpr double rounding = 1e-6;  // of a token
constexpr std::size_t strata = 64;

/// Requests of one kind that were admitted in the same step and have as much behind and before them.
struct Cohort {
    std::uint64_t since = 0;
    double holds = 0.0;  // bytes of the pool, each
    std::uint32_t kind = 0;
    std::uint32_t count = 0;
    std::uint32_t written = 0;  // steps
    std::uint32_t left = 0;     // steps
};

struct Prompt {
    double left = 0.0;      // tokens
    double past = 0.0;      // tokens before those
    Cohort writer;          // what it becomes
    double admitted = 0.0;  // when
    bool again = false;
};

/// Somebody in front of the door: new, or thrown out before.
struct Waiting {
    std::uint32_t kind = 0;
    std::uint32_t written = 0;
    std::uint32_t left = 0;
    bool before = false;  // it has been inside
    bool again = false;   // and had written
};

struct Flight {
    double finish = 0.0;
    std::vector<Cohort> writers;
    std::vector<Prompt> done;  // prompts whose last chunk is in it
};

/// What a step adds to the sums.
struct Sample {
    double writing = 0.0;
    double inside = 0.0;
    double outside = 0.0;
    double end = 0.0;  // of its first stage
    StepCost cost;
    Limit limit = Limit::sequences;
};

class Follower {
  public:
    Follower(const FollowedInput& input, const StepTable& table, Footprint& footprint, std::uint64_t start)
        : input_(input),
          table_(table),
          footprint_(footprint),
          random_(start),
          stages_(input.stages),
          dealing_(input.stages),
          latest_(input.stages + 1) {
        double sum = 0.0;
        for (const FollowedRequest& request : input.requests) {
            below_.push_back(sum += request.weight);
            mean_steps_ += request.weight * request.steps;
            mean_fresh_ += request.weight * request.fresh;
            grows_ = grows_ || request.reserved_bytes <= 0.0;
        }
        fill();
    }

    FollowedFlow run() {
        const double stages = static_cast<double>(input_.stages);
        const double generation = stages * mean_steps_ + std::ceil(mean_fresh_ / input_.budget) + stages - 1.0;
        launch_until(std::max(warm_generations * generation, fewest_steps), 0.0, most_work / 4.0);
        const double began = stages_.free();
        stages_.forget_busy();
        flow_ = {};
        steps_ = prompts_ = again_ = 0.0;
        kept_out_ = {};
        launch_until(std::max(followed_generations * generation, 2.0 * fewest_steps),
                     input_.requests.size() > 1 ? fewest_requests : 0.0, most_work);
        const double seconds = input_.holds_up ? stages_.free() - began : stages_.busy();
        flow_.interval = seconds / steps_;
        if (prompts_ > 0.0) flow_.prompt /= prompts_;
        for (double* sum :
             {&flow_.ended, &flow_.writing, &flow_.inside, &flow_.outside, &flow_.flops, &flow_.memory_bytes})
            *sum /= steps_;
        // Who writes counts over many steps, who ends is few: the same rate, with less noise.
        if (mean_steps_ > 0.0) flow_.ended = (flow_.writing + again_ / steps_) / mean_steps_;
        const double requests = std::max(flow_.ended * steps_, 1e-300);
        flow_.again /= requests;
        flow_.thrown_out /= requests;
        const auto most = std::max_element(kept_out_.begin(), kept_out_.end());
        flow_.limit = static_cast<Limit>(most - kept_out_.begin());
        return flow_;
    }

  private:
    void launch_until(double steps, double requests, double most) {
        const double until = steps_ + steps;
        const double before = work_;
        while ((steps_ < until || flow_.ended < requests) &&
               work_ - before < (flow_.thrown_out > 0.0 ? more_work : 1.0) * most) {
            launch();
            repeat();
        }
    }

    // ---- requests ----

    /// Every 64 of them cover the mix evenly, in any order.
    std::uint32_t draw() {
        if (below_.size() == 1) return 0;
        if (drawn_ % strata == 0) {
            for (std::size_t i = 0; i < strata; ++i) order_[i] = i;
            for (std::size_t i = strata - 1; i > 0; --i) std::swap(order_[i], order_[random_.next() % (i + 1)]);
        }
        const double place = (static_cast<double>(order_[drawn_++ % strata]) + random_.uniform()) / strata;
        const auto found = std::lower_bound(below_.begin(), below_.end() - 1, place * below_.back());
        return static_cast<std::uint32_t>(found - below_.begin());
    }
    /// A mean of steps that is no whole number: the one below or the one above.
    std::uint32_t whole_steps(const FollowedRequest& request) {
        double steps = request.steps;
        if (request.deviation > 0.0) steps += (random_.uniform() - 0.5) * std::sqrt(12.0) * request.deviation;
        const double least = request.steps > 0.0 ? 1.0 : 0.0;
        return static_cast<std::uint32_t>(std::max(least, steps + random_.uniform()));
    }

    double held(std::uint32_t kind, double written) {
        const FollowedRequest& request = input_.requests[kind];
        if (request.reserved_bytes > 0.0) return request.reserved_bytes;
        const double more = written > 0.0 ? (written - 1.0) * input_.tokens_a_step + input_.checked : 0.0;
        return footprint_.bytes(request.prompt, request.prompt + more);
    }
    /// That it needs beyond what it holds, after so many further steps.
    double growth(const Cohort& cohort, double steps) {
        return held(cohort.kind, cohort.written + steps) - cohort.holds;
    }

    /// As in a server that has been running: found at random places of their output.
    void fill() {
        std::vector<double> longer;
        double sum = 0.0;
        for (const FollowedRequest& request : input_.requests)
            longer.push_back(sum += request.weight * (request.steps + 1.0));
        step_ = input_.slots;
        const double most = std::min(static_cast<double>(input_.slots), std::ceil(input_.writing));
        for (std::size_t i = 0; i < static_cast<std::size_t>(most); ++i) {
            const auto found = std::lower_bound(longer.begin(), longer.end() - 1, random_.uniform() * sum);
            const auto kind = static_cast<std::uint32_t>(found - longer.begin());
            const double steps = input_.requests[kind].steps;
            const auto left = static_cast<std::uint32_t>(std::ceil(random_.uniform() * steps));
            if (left == 0) continue;  // its place is taken by a new one
            const auto written = static_cast<std::uint32_t>(std::max(0.0, std::ceil(steps) - left));
            const double holds = held(kind, written);
            if (held_ + holds + input_.kept_bytes > input_.pool_bytes) break;
            held_ += holds;
            free_.push_back({.since = i, .holds = holds, .kind = kind, .count = 1, .written = written, .left = left});
            ++writers_;
            ++inside_;
        }
    }

    static void add(std::vector<Cohort>& to, const Cohort& cohort) {
        if (!to.empty() && to.back().left == cohort.left && to.back().since == cohort.since &&
            to.back().kind == cohort.kind && to.back().written == cohort.written)
            to.back().count += cohort.count;
        else
            to.push_back(cohort);
    }

    // ---- one step ----

    void land(Flight& flight) {
        back_.swap(flight.writers);
        std::size_t staying = 0;
        for (const Cohort& cohort : back_) {
            if (cohort.left > 1) {
                // Copied first, where it moves, and changed in its new place: what has just been written in parts is
                // slow to copy, and what was written as a whole slow to change.
                Cohort& stays = back_[staying++];
                if (&stays != &cohort) stays = cohort;
                ++stays.written;
                --stays.left;
                continue;
            }
            writers_ -= cohort.count;
            end(cohort);
        }
        back_.resize(staying);
        const std::size_t sorted = staying > 0 ? staying - 1 : 0;  // the rest may be older
        for (const Prompt& prompt : flight.done) {
            if (prompt.again) {
                again_ += 1.0;
            } else {
                flow_.prompt += flight.finish - prompt.admitted;
                prompts_ += 1.0;
            }
            if (prompt.writer.left > 0)
                add(back_, prompt.writer);
            else
                end(prompt.writer);
        }
        // A scheduler goes through its requests in the order of their admission: those of one age end up in one step,
        // end together, and so do the prompts of those that follow.
        const auto older = [](const Cohort& a, const Cohort& b) { return a.since < b.since; };
        const auto unsure = back_.begin() + static_cast<std::ptrdiff_t>(sorted);
        if (!std::is_sorted(unsure, back_.end(), older)) std::stable_sort(back_.begin(), back_.end(), older);
        if (free_.empty()) {
            free_.swap(back_);
            return;
        }
        const auto middle = static_cast<std::ptrdiff_t>(free_.size());
        free_.insert(free_.end(), back_.begin(), back_.end());
        std::inplace_merge(free_.begin(), free_.begin() + middle, free_.end(), older);
    }

    void end(const Cohort& cohort) {
        held_ -= cohort.count * cohort.holds;
        inside_ -= cohort.count;
        flow_.ended += cohort.count;
        changed_ = true;
    }

    void launch() {
        changed_ = false;
        double now = stages_.free();
        while (!flying_.empty() && (flying_.size() == input_.stages || flying_.front().finish <= now)) land_first(now);
        Flight flight;
        if (!spares_.empty()) {
            flight = std::move(spares_.back());
            spares_.pop_back();
        }
        compose(flight, now);
        while (nothing_in(flight) && !flying_.empty()) {
            land_first(now);
            compose(flight, now);
        }
        const double looked_at = chunk_tokens_ > 0.0 ? chunk_pairs_ / chunk_tokens_ : 0.0;
        const auto taken = static_cast<double>(taken_);
        const StepCost cost = table_.at(chunk_tokens_, looked_at, taken * input_.samples, keys_ * input_.samples);
        flight.finish = stages_.pass(cost, now);
        dealing_.next();
        quiet_ = changed_ || chunk_tokens_ > 0.0 || !free_.empty() ? 0 : quiet_ + 1;
        work_ += work_of_a_step + static_cast<double>(flight.writers.size());
        latest_[launched_++ % latest_.size()] = {taken, static_cast<double>(inside_), outside_, stages_.free(), cost,
                                                 limit_};
        count(latest(0), 1.0);
        flying_.push_back(std::move(flight));
    }

    void count(const Sample& sample, double times) {
        steps_ += times;
        flow_.writing += times * sample.writing;
        flow_.inside += times * sample.inside;
        flow_.outside += times * sample.outside;
        flow_.flops += times * sample.cost.flops;
        flow_.memory_bytes += times * sample.cost.memory_bytes;
        kept_out_[static_cast<std::size_t>(sample.limit)] += times;
    }

    /// The step so many before the last.
    Sample& latest(std::size_t before) { return latest_[(launched_ - 1 - before) % latest_.size()]; }

    /// Where nobody came, ended or was thrown out for two rounds of the steps under way, and nobody could come: the
    /// same again, until the first of them ends or the pool is full.
    void repeat() {
        constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();
        const std::size_t round = flying_.size();
        if (quiet_ < (input_.stages > 1 ? 2 * round + 1 : 1)) return;
        std::uint32_t least = nobody;
        for (const Flight& flight : flying_)
            for (const Cohort& cohort : flight.writers) least = std::min(least, cohort.left);
        if (least == nobody) return;
        const double rounds = rounds_with_room(least - 2.0);
        if (!(rounds >= 1.0)) return;
        held_ += growth_in(rounds);
        const double seconds =
            round < latest_.size() && quiet_ > round ? latest(0).end - latest(round).end : latest(0).cost.latency;
        for (Flight& flight : flying_) {
            flight.finish += rounds * seconds;
            for (Cohort& cohort : flight.writers) {
                cohort.holds += growth(cohort, 1.0 + rounds);
                cohort.left -= static_cast<std::uint32_t>(rounds);
                cohort.written += static_cast<std::uint32_t>(rounds);
            }
        }
        double busy = 0.0;
        for (std::size_t i = 0; i < round; ++i) {
            count(latest(i), rounds);
            busy += stages_.slowest(latest(i).cost);
        }
        for (Sample& sample : latest_) sample.end += rounds * seconds;
        stages_.skip(rounds * seconds, rounds * busy);
    }

    /// Bytes that the writers under way take beyond what they have.
    double growth_in(double rounds) {
        double sum = 0.0;
        // They hold what they need for the step that they are in.
        for (const Flight& flight : flying_)
            for (const Cohort& cohort : flight.writers) sum += cohort.count * growth(cohort, 1.0 + rounds);
        return sum;
    }

    double rounds_with_room(double most) {
        if (!(most >= 1.0) || held_ + growth_in(most) <= input_.pool_bytes) return most;
        double fits = 0.0;
        while (most - fits > 1.0) {
            const double middle = std::floor((fits + most) / 2.0);
            (held_ + growth_in(middle) <= input_.pool_bytes ? fits : most) = middle;
        }
        return fits;
    }

    void land_first(double& now) {
        now = std::max(now, flying_.front().finish);
        land(flying_.front());
        spares_.push_back(std::move(flying_.front()));
        flying_.pop_front();
    }

    bool nothing_in(const Flight& flight) const { return flight.writers.empty() && chunk_tokens_ <= 0.0; }

    /// Those that write, dealt evenly to the steps under way; then what is due of prompts, the oldest first.
    void compose(Flight& flight, double now) {
        flight.writers.clear();
        flight.done.clear();
        ++step_;
        double budget = input_.budget;
        taken_ = 0;
        keys_ = chunk_tokens_ = chunk_pairs_ = 0.0;
        thrown_out_ = false;
        write(flight);
        budget -= static_cast<double>(taken_) * input_.step_tokens;
        limit_ = Limit::pool;
        if (!thrown_out_) admit(flight, budget, now);
        while (!begun_.empty() && budget > 0.0 && dealing_.due() > 0.0) {
            compute(begun_.front(), budget, flight);
            if (begun_.front().left > 0.0) break;
            begun_.pop_front();
        }
    }

    void write(Flight& flight) {
        const std::size_t stages = input_.stages;
        std::size_t most = std::max<std::size_t>(1, (writers_ + stages - 1) / stages);
        most = std::min(most, static_cast<std::size_t>(input_.budget / input_.step_tokens));
        std::size_t used = 0;
        Cohort part;  // of the last one, where the step has no room for all of it
        // Most of the time of all goes into these loops: their sums stay out of memory.
        double held_now = held_;
        double keys = 0.0;
        std::size_t taken = 0;
        const auto keys_of = [&](const Cohort& cohort) {
            return input_.requests[cohort.kind].prompt + cohort.written * input_.tokens_a_step;
        };
        // Where nobody grows, all that the step has room for need only be counted.
        for (; !grows_ && used < free_.size() && free_[used].count <= most - taken; ++used) {
            taken += free_[used].count;
            keys += free_[used].count * keys_of(free_[used]);
        }
        while (used < free_.size() && taken < most) {
            const double each = growth(free_[used], 1.0);
            auto count = static_cast<std::uint32_t>(std::min<std::size_t>(free_[used].count, most - taken));
            while (count > 0 && each > 0.0 && held_now + count * each > input_.pool_bytes) {
                held_ = held_now;
                throw_out();
                held_now = held_;
                count = used < free_.size() ? std::min(count, free_[used].count) : 0;
            }
            if (count == 0) break;
            Cohort& cohort = free_[used];
            held_now += count * each;
            taken += count;
            keys += count * keys_of(cohort);
            if (count < cohort.count) {
                part = cohort;
                part.count = count;
                part.holds += each;
                cohort.count -= count;
                break;
            }
            cohort.holds += each;
            ++used;
        }
        held_ = held_now;
        taken_ = taken;
        keys_ = keys;
        if (used == free_.size()) {
            flight.writers.swap(free_);
        } else {
            const auto end = free_.begin() + static_cast<std::ptrdiff_t>(used);
            flight.writers.assign(free_.begin(), end);
            free_.erase(free_.begin(), end);
        }
        if (part.count > 0) flight.writers.push_back(part);
    }

    /// The youngest that no step under way needs: in the end the writer itself whose turn it is.
    void throw_out() {
        thrown_out_ = changed_ = true;
        flow_.thrown_out += 1.0;
        outside_ += 1.0;
        --inside_;
        Cohort& last = free_.back();
        if (flying_.empty() && !begun_.empty() && begun_.back().writer.since >= last.since) {
            const Prompt prompt = begun_.back();
            begun_.pop_back();
            dealing_.leave(prompt.left);
            held_ -= prompt.writer.holds;
            const std::uint32_t back = prompt.again ? 1 : 0;
            waiting_.push_front(
                {prompt.writer.kind, prompt.writer.written - back, prompt.writer.left + back, true, prompt.again});
            return;
        }
        held_ -= last.holds;
        waiting_.push_front({last.kind, last.written, last.left, true, true});
        --writers_;
        if (--last.count == 0) free_.pop_back();
    }

    void admit(Flight& flight, double& budget, double now) {
        while (true) {
            limit_ = Limit::sequences;
            if (inside_ >= input_.slots) return;
            limit_ = Limit::step_tokens;
            if (!(budget - dealing_.due() > 0.0)) return;
            if (waiting_.empty()) {
                const std::uint32_t kind = draw();
                waiting_.push_back({.kind = kind, .left = whole_steps(input_.requests[kind])});
            }
            const Waiting& head = waiting_.front();
            const FollowedRequest& request = input_.requests[head.kind];
            const std::uint32_t back = head.again ? 1 : 0;  // its prompt computed again writes a token of its output
            const double needed = held(head.kind, head.written + back);
            limit_ = Limit::pool;
            if (held_ + needed + (inside_ > 0 ? input_.kept_bytes : 0.0) > input_.pool_bytes) return;
            held_ += needed;
            ++inside_;
            outside_ -= head.before ? 1.0 : 0.0;
            changed_ = true;
            const bool elsewhere = request.fresh <= 0.0;
            if (elsewhere && !head.again) {
                // Its prompt was computed elsewhere: it writes at once.
                ++writers_;
                const double holds = held(head.kind, 1.0);
                held_ += holds - needed;
                add(flight.writers, {.since = step_,
                                     .holds = holds,
                                     .kind = head.kind,
                                     .count = 1,
                                     .left = std::max<std::uint32_t>(1, head.left)});
                ++taken_;
                keys_ += request.prompt;
                budget -= input_.step_tokens;
            } else {
                const double before = elsewhere ? request.past : request.fresh;
                const double more = head.again ? 1.0 + head.written * input_.tokens_a_step : 0.0;
                if (head.again) flow_.again += before + more;
                begun_.push_back({before + more,
                                  elsewhere ? 0.0 : request.past,
                                  {.since = step_,
                                   .holds = needed,
                                   .kind = head.kind,
                                   .count = 1,
                                   .written = head.written + back,
                                   .left = head.left - back},
                                  now,
                                  head.again});
                dealing_.enter(before + more, static_cast<double>(inside_));
            }
            waiting_.pop_front();
        }
    }

    void compute(Prompt& prompt, double& budget, Flight& flight) {
        double tokens = std::min({prompt.left, budget, dealing_.due()});
        if (prompt.left - tokens < rounding) tokens = prompt.left;
        dealing_.compute(tokens);
        chunk_pairs_ += tokens * (prompt.past + tokens / 2.0);
        prompt.left -= tokens;
        prompt.past += tokens;
        budget -= tokens;
        chunk_tokens_ += tokens;
        if (prompt.left > 0.0) return;
        flight.done.push_back(prompt);
        if (prompt.writer.left > 0) ++writers_;  // from now on the scheduler counts on it
    }

    const FollowedInput& input_;
    const StepTable& table_;
    Footprint& footprint_;
    Random random_;
    std::array<std::size_t, strata> order_{};
    std::size_t drawn_ = 0;
    std::vector<double> below_;
    double mean_steps_ = 0.0;
    double mean_fresh_ = 0.0;
    bool grows_ = false;  // some request holds more of the pool as it writes
    Stages stages_;
    Dealing dealing_;
    std::deque<Flight> flying_;
    std::vector<Flight> spares_;
    std::vector<Cohort> free_;  // writers that no step under way holds, the oldest first
    std::vector<Cohort> back_;  // room to work in
    std::uint64_t step_ = 0;
    std::deque<Prompt> begun_;     // prompts of which a part is left
    std::deque<Waiting> waiting_;  // in front of the door, those thrown out first
    double held_ = 0.0;            // bytes of the pool
    std::size_t writers_ = 0;
    std::size_t inside_ = 0;
    double outside_ = 0.0;   // that wait
    std::size_t taken_ = 0;  // writers of the step that is put together
    double keys_ = 0.0;      // tokens that they look at
    bool thrown_out_ = false;
    double chunk_tokens_ = 0.0;
    double chunk_pairs_ = 0.0;  // with what they look at
    Limit limit_ = Limit::sequences;
    bool changed_ = false;   // somebody came, ended or was thrown out
    std::size_t quiet_ = 0;  // steps since
    std::size_t launched_ = 0;
    std::vector<Sample> latest_;  // a round of steps and the one before
    double work_ = 0.0;
    double steps_ = 0.0;
    double prompts_ = 0.0;
    double again_ = 0.0;
    std::array<double, 5> kept_out_{};  // steps, by what kept the next one out
    FollowedFlow flow_;
};

}  // namespace

FollowedFlow follow(const FollowedInput& input, const StepTable& table, Footprint& footprint) {
    const auto rate = [](const FollowedFlow& flow) { return flow.ended / flow.interval; };
    FollowedFlow mean = Follower(input, table, footprint, 1).run();
    for (std::uint64_t start = 2; start <= starts; ++start) {
        const double before = rate(mean);
        mean = between(mean, Follower(input, table, footprint, start).run(), 1.0 / static_cast<double>(start));
        if (std::abs(rate(mean) / before - 1.0) < settled) break;
    }
    return mean;
}

FollowedFlow between(const FollowedFlow& a, const FollowedFlow& b, double part) {
    const auto mixed = [part](double x, double y) { return x + part * (y - x); };
    return {.interval = mixed(a.interval, b.interval),
            .ended = mixed(a.ended, b.ended),
            .writing = mixed(a.writing, b.writing),
            .inside = mixed(a.inside, b.inside),
            .outside = mixed(a.outside, b.outside),
            .prompt = mixed(a.prompt, b.prompt),
            .again = mixed(a.again, b.again),
            .thrown_out = mixed(a.thrown_out, b.thrown_out),
            .flops = mixed(a.flops, b.flops),
            .memory_bytes = mixed(a.memory_bytes, b.memory_bytes),
            .limit = a.limit};
}

}  // namespace roofline::serving

#include "roofline/render/plan_text.hpp"

#include <cmath>

#include <fmt/format.h>

#include "roofline/render/numbers.hpp"
#include "roofline/render/table.hpp"

namespace roofline::render {
namespace {

using decide::Deploy;
using decide::Fleet;
using decide::Plan;
using decide::PlanQuestion;

std::string seconds(double value) {
    return std::isfinite(value) ? time(Seconds(value)) : "no end";
}

std::string money(double value, const Plan& plan) {
    return plan.priced_in_money ? fmt::format("{:.2f}", value) : fmt::format("{} device-hours", plain(value));
}

std::string per_hour(double value, const Plan& plan) {
    if (plan.priced_in_money) return fmt::format("{:.2f}", value);
    return fmt::format("{:g} {}", value, value == 1.0 ? "device" : "devices");
}

std::string types_of(const Fleet& fleet) {
    return fmt::format("{}, KV {}", fleet.weight_types, fleet.kv_type);
}

std::string pool_of(const Fleet& fleet) {
    const std::string cut = describe(fleet.layout.deployment);
    return fleet.replicas > 1.0 ? fmt::format("{:.0f} x {}", fleet.replicas, cut) : cut;
}

std::string cut_of(const Deploy& deploy) {
    const char* guessing = deploy.main.layout.speculates ? ", guessing ahead" : "";
    if (!deploy.prefill) return pool_of(deploy.main) + guessing;
    return fmt::format("prefill {} + decode {}{}", pool_of(*deploy.prefill), pool_of(deploy.main), guessing);
}

std::string device_of(const Deploy& deploy, const PlanQuestion& question) {
    const auto name = [&](const Fleet& fleet) { return question.choices.offers[fleet.layout.offer].device.name; };
    if (!deploy.prefill || deploy.prefill->layout.offer == deploy.main.layout.offer)
        return fmt::format("{:.0f} x {}", deploy.devices, name(deploy.main));
    return fmt::format("{:.0f} x {} + {:.0f} x {}", deploy.prefill->devices(), name(*deploy.prefill),
                       deploy.main.devices(), name(deploy.main));
}

std::string step_of(const Deploy& deploy) {
    return deploy.prefill ? fmt::format("{:.0f}", deploy.prefill->step) : fmt::format("{:.0f}", deploy.main.step);
}

double capacity_of(const Deploy& deploy) {
    return deploy.served ? deploy.served->capacity : deploy.performance.capacity;
}
double ttft_of(const Deploy& deploy) {
    return deploy.served ? deploy.served->ttft : deploy.performance.ttft;
}
double tpot_of(const Deploy& deploy) {
    return deploy.served ? deploy.served->tpot : deploy.performance.tpot;
}

std::string held_by(const Deploy& deploy) {
    using decide::Obstacle;
    switch (deploy.obstacle) {
        case Obstacle::kv_capacity:
            return "no larger batch: the KV cache fills the memory";
        case Obstacle::sequences:
            return "no larger batch was tried";
        case Obstacle::ttft_target:
            return "no larger batch: the first token would come later than asked for";
        case Obstacle::tpot_target:
            return "no larger batch: tokens would come slower than asked for";
        case Obstacle::prefill_pool:
            return "the pool for prompts gives out first";
        case Obstacle::decode_pool:
            return "the pool for outputs gives out first";
        case Obstacle::link:
            return "the link between the pools gives out first";
        case Obstacle::aim:
            return "a larger batch would be no better by what is asked for";
    }
    return "";
}

std::string block(const char* title, const Deploy& deploy, const Plan& plan, const PlanQuestion& question) {
    const double output = question.model.workload.generate;
    const decide::Performance& performance = deploy.performance;
    std::string text =
        fmt::format("{}: {}, {}; {}\n", title, device_of(deploy, question), cut_of(deploy), types_of(deploy.main));
    text += fmt::format("  runs      up to {} sequences a replica, steps of {} tokens{}\n", grouped(deploy.main.batch),
                        step_of(deploy), deploy.prefill ? " for prompts" : "");
    if (deploy.main.layout.speculates) {
        const serving::Speculation& guesses = question.choices.speculation;
        text += fmt::format(
            "  guesses   {:.0f} tokens ahead of every step, {} right: {:.2f} tokens a step, as --speculate says\n",
            guesses.tokens, percent(guesses.acceptance), serving::tokens_per_step(guesses).mean);
    }
    const double capacity = capacity_of(deploy);
    text += fmt::format("  serves    {} requests/s, {} output tokens/s ({} a device, {} a user); limit {} requests/s\n",
                        plain(capacity), plain(capacity * output), plain(deploy.merits.per_device),
                        plain(deploy.merits.per_user), plain(performance.capacity_limit));
    const std::string when =
        question.targets.requests ? fmt::format("at {} requests/s", plain(*question.targets.requests)) : "when full";
    std::string running =
        deploy.served ? fmt::format("; {} sequences run on a replica", plain(deploy.served->running)) : "";
    if (deploy.served && deploy.served->simulated > 0.0)
        running += fmt::format("; simulated with {} requests", grouped(deploy.served->simulated));
    if (std::isfinite(ttft_of(deploy))) {
        text += fmt::format("  answers   {}: first token after {}, then one every {}{}\n", when,
                            seconds(ttft_of(deploy)), seconds(tpot_of(deploy)), running);
    } else {
        text += fmt::format(
            "  answers   {}: OVERLOADED, requests queue up without end; who is served gets a token every {}{}\n", when,
            seconds(tpot_of(deploy)), running);
    }
    if (deploy.prefill) {
        text += fmt::format("  hands on  the KV cache of a prompt in {}\n", seconds(performance.transfer));
    }
    const bool overloaded = deploy.served && deploy.served->overloaded;
    const char* sold = !question.targets.requests ? ""
                       : overloaded               ? " of what it can serve"
                                                  : " at the rate asked for";
    text += fmt::format("  costs     {} an hour, {} per million output tokens{}\n",
                        per_hour(deploy.cost_per_hour, plan), money(deploy.merits.cost, plan), sold);
    text += fmt::format(
        "  limited   decoding by {}, prompts by {}{}; {}\n", name(deploy.decode_bound), name(deploy.prefill_bound),
        deploy.prefill ? "" : fmt::format(" ({} of the time)", percent(deploy.prefill_share)), held_by(deploy));
    return text;
}

Table front_table(const Plan& plan, const PlanQuestion& question, const std::vector<std::size_t>& rows) {
    Table table{{{"devices", Align::left},
                 {"deployment", Align::left},
                 {"types", Align::left},
                 {"batch"},
                 {"step"},
                 {"tokens/s/device"},
                 {"tokens/s/user"},
                 {"requests/s"},
                 {"TTFT"},
                 {"TPOT"},
                 {"per hour"},
                 {plan.priced_in_money ? "per million" : "device-h per million"}},
                {}};
    for (const std::size_t row : rows) {
        const Deploy& deploy = plan.front[row];
        table.rows.push_back(
            {device_of(deploy, question), cut_of(deploy), types_of(deploy.main),
             fmt::format("{:.0f}", deploy.main.batch), step_of(deploy), plain(deploy.merits.per_device),
             plain(deploy.merits.per_user), plain(capacity_of(deploy)), seconds(ttft_of(deploy)),
             seconds(tpot_of(deploy)), per_hour(deploy.cost_per_hour, plan),
             plan.priced_in_money ? fmt::format("{:.3f}", deploy.merits.cost) : plain(deploy.merits.cost)});
    }
    return table;
}

std::vector<std::size_t> spread(std::size_t size, std::size_t most) {
    std::vector<std::size_t> rows;
    if (most == 0 || size <= most) {
        for (std::size_t row = 0; row < size; ++row) rows.push_back(row);
        return rows;
    }
    for (std::size_t row = 0; row < most; ++row) rows.push_back(row * (size - 1) / (most - 1));
    return rows;
}

std::string targets_line(const PlanQuestion& question, const Plan& plan) {
    const decide::Targets& targets = question.targets;
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    if (targets.ttft) add("first token within " + seconds(*targets.ttft));
    if (targets.tpot) add("a token every " + seconds(*targets.tpot));
    if (targets.requests) add(plain(*targets.requests) + " requests/s");
    if (targets.cost_per_hour) add("at most " + per_hour(*targets.cost_per_hour, plan) + " an hour");
    return text.empty() ? "none" : text;
}

std::string miss_line(const decide::Miss& miss, const Plan& plan) {
    using decide::Target;
    const auto value = [&](double number) {
        switch (miss.target) {
            case Target::ttft:
            case Target::tpot:
                return seconds(number);
            case Target::requests:
                return plain(number);
            case Target::cost:
                return per_hour(number, plan);
        }
        return std::string();
    };
    if (!std::isfinite(miss.found)) {
        return fmt::format(
            "{}: {} asked for, without end at the nearest candidate: requests come faster than it serves them",
            name(miss.target), value(miss.asked));
    }
    const double by = miss.target == Target::requests ? miss.asked / miss.found : miss.found / miss.asked;
    return fmt::format("{}: {} asked for, {} {}, {} times {}", name(miss.target), value(miss.asked), value(miss.found),
                       miss.alone ? "is the best of all candidates" : "at the nearest candidate", plain(by),
                       miss.target == Target::requests ? "too few" : "too much");
}

std::string code(const std::string& text, PlanForm form) {
    return form == PlanForm::markdown ? "```text\n" + text + "```\n" : text;
}

}  // namespace

std::string plan_text(const Plan& plan, const PlanQuestion& question, PlanForm form, std::size_t most_rows) {
    const bool markdown = form == PlanForm::markdown;
    const predict::Workload& workload = question.model.workload;
    std::string devices;
    for (const decide::Offer& offer : question.choices.offers) {
        devices += fmt::format("{}{:.0f} {}{}", devices.empty() ? "" : ", ", offer.count, offer.device.name,
                               offer.price ? fmt::format(" at {:g}", *offer.price) : "");
    }
    std::string text =
        fmt::format("{}{}\n{}", markdown ? "# Plan for " : "Plan for ", plan.model_title, markdown ? "\n" : "");
    std::string head = fmt::format("  requests  {} prompt tokens, {} output tokens{}\n", grouped(workload.prompt),
                                   grouped(workload.generate), question.mix ? " in the mean" : "");
    head += fmt::format("  targets   {}\n  devices   up to {}\n", targets_line(question, plan), devices);
    const decide::Counts& counts = plan.counts;
    head += fmt::format(
        "  searched  {} candidates: {} impossible, {} do not fit, {} beaten before pricing, {} priced, {} meet the "
        "targets, {} beaten by none\n",
        grouped(counts.candidates), grouped(counts.impossible), grouped(counts.not_fitting),
        grouped(counts.beaten_early), grouped(counts.priced), grouped(counts.meeting),
        grouped(static_cast<double>(plan.front.size())));
    text += code(head, form) + "\n";

    std::string body;
    if (plan.best.empty()) {
        if (counts.priced == 0.0) {
            body += "nothing fits: no candidate holds the weights and one sequence\n";
        } else {
            body += "nothing meets the targets\n";
            for (const decide::Miss& miss : plan.misses) body += "  " + miss_line(miss, plan) + "\n";
            if (plan.closest) body += "\n" + block("nearest", *plan.closest, plan, question);
        }
    } else {
        body += block("best", plan.best.front(), plan, question);
        if (plan.best.size() > 1) body += "\n" + block("runner-up", plan.best[1], plan, question);
    }
    text += code(body, form);

    if (!plan.front.empty()) {
        const auto rows = spread(plan.front.size(), most_rows);
        const std::string title =
            fmt::format("the front{}{}", plan.best.empty() ? ", targets aside" : "",
                        rows.size() < plan.front.size()
                            ? fmt::format(": {} of {} (--all shows them)", rows.size(), plan.front.size())
                            : "");
        const Table table = front_table(plan, question, rows);
        text += markdown ? fmt::format("\n## {}\n\n{}", title, as_markdown(table))
                         : fmt::format("\n{}\n{}", title, as_text(table, "  "));
    }
    if (!plan.notes.empty()) {
        text += markdown ? "\n## notes\n\n" : "\nnotes\n";
        for (const std::string& note : plan.notes) text += fmt::format("{}- {}\n", markdown ? "" : "  ", note);
    }
    return text;
}

std::string plan_csv(const Plan& plan, const PlanQuestion& question) {
    return as_csv(front_table(plan, question, spread(plan.front.size(), 0)));
}

}  // namespace roofline::render

// roofline advise: what should I change, and what would each change really buy?
#include <memory>

#include <fmt/format.h>

#include "roofline/ask/advise_options.hpp"
#include "roofline/cli/form.hpp"
#include "roofline/cli/output.hpp"
#include "roofline/cli/plot_options.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/io/advice_json.hpp"
#include "roofline/render/advise_text.hpp"
#include "roofline/render/chart/decisions.hpp"

namespace roofline::cli {
namespace {

struct Options {
    ask::AdviseOptions question;
    ask::Form form;
    OutputOptions output;
    PlotOptions plot;
};

Result<int> run(const Options& options, const std::string& command) {
    if (auto good = options.plot.check(); !good) return std::unexpected(good.error());
    const auto advice = options.question.answer(this_machine());
    if (!advice) return std::unexpected(advice.error());
    const Shown shown{command,
                      [&] {
                          return Drawing{.title = fmt::format("Advice for {} on {}", advice->scenario.model_name,
                                                              advice->scenario.device.name),
                                         .charts = render::chart::advice_charts(*advice),
                                         .more = render::chart::move_charts(*advice)};
                      },
                      [&] { return render::advise_markdown(*advice); }};
    const std::string& format = options.output.format;
    const std::string text = format == "json"   ? io::advice_text(*advice, {command, now_iso()})
                             : format == "csv"  ? render::advise_csv(*advice)
                             : format == "html" ? shown.page()
                             : format == "md"   ? render::advise_markdown(*advice)
                                                : render::advise_text(*advice);
    if (auto done = options.output.write(text); !done) return std::unexpected(done.error());
    if (auto drawn = options.plot.write(shown); !drawn) return std::unexpected(drawn.error());
    return advice->asked.fit.fits ? done : no_answer;
}

}  // namespace

void advise_verb(Program& program) {
    auto options = std::make_shared<Options>();
    const Verb verb = program.verb("advise", "What should I change, and what would each change really buy?");
    options->question.add_to(options->form);
    add_to(verb, options->form);
    options->output.add_to(verb, {"table", "md", "csv", "json", "html"});
    options->plot.add_to(verb);
    verb.runs([&program, options] { return run(*options, program.command); });
}

}  // namespace roofline::cli

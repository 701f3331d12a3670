// Configs as transformers writes them, one model type each, held against the number of parameters of the model that
// transformers builds from them; and types that are refused, with the field that gives them away. The counts are of
// transformers 5.17 (no weights made, `numel` summed over distinct parameters; of wrappers the language part alone),
// the configs its own without fields about text, training and sampling. Sizes are small or the class's defaults.
#include <cmath>
#include <fstream>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "places.hpp"
#include "roofline/io/hf_config.hpp"
#include "roofline/model/lowering.hpp"

namespace roofline::io {
namespace {

struct Line {
    std::string type;
    Json json;
};

void PrintTo(const Line& line, std::ostream* stream) {
    *stream << line.type;
}

std::vector<Line> lines() {
    std::vector<Line> all;
    std::ifstream file(ROOFLINE_SOURCE_DIR "/tests/io/data/model_types.jsonl");
    for (std::string text; std::getline(file, text);) {
        Json json = Json::parse(text, nullptr, false);
        all.push_back({json.value("type", "?"), std::move(json)});
    }
    return all;
}

class ModelType : public testing::TestWithParam<Line> {};

TEST_P(ModelType, IsCountedAsTransformersCountsItOrRefused) {
    const Json& line = GetParam().json;
    const auto model = read_hf_config(line["config"], "config.json");
    if (line.contains("refused")) {
        ASSERT_FALSE(model.has_value());
        EXPECT_TRUE(model.error().text.starts_with("config.json: " + line["refused"].get<std::string>() + " "))
            << model.error().text;
        return;
    }
    ASSERT_TRUE(model.has_value()) << model.error().text;
    for (const std::string& note : model->architecture.notes)
        EXPECT_EQ(note.find("not known here"), std::string::npos) << note;
    const double parameters = model::count_parameters(model::lower(model->architecture, model->types)).total;
    const double counted = line["parameters"].get<double>();
    // Corrections beside a router are buffers there and no parameters: a few hundred of billions.
    EXPECT_LT(std::fabs(parameters - counted), 1e-4 * counted) << parameters << " for " << counted;
}

std::string test_name(const testing::TestParamInfo<Line>& info) {
    std::string name;
    for (const char c : info.param.type) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    return name + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(All, ModelType, testing::ValuesIn(lines()), test_name);

}  // namespace
}  // namespace roofline::io

#include "roofline/measure/found.hpp"

#include "roofline/io/device_file.hpp"

namespace roofline::measure {

std::string_view spelt(Unit unit) {
    switch (unit) {
        case Unit::flops_per_second:
            return "FLOP/s";
        case Unit::bytes_per_second:
            return "B/s";
        case Unit::bytes:
            return "B";
        case Unit::seconds:
            return "s";
        case Unit::hertz:
            return "Hz";
    }
    return "";
}

io::OrderedJson found_json(const std::vector<Found>& found) {
    io::OrderedJson list = io::OrderedJson::array();
    for (const Found& figure : found) {
        io::OrderedJson entry = {{"name", figure.name}, {"unit", spelt(figure.unit)}};
        if (!figure.problem.empty()) {
            entry["problem"] = figure.problem;
        } else {
            entry["value"] = figure.value;
            entry["spread"] = figure.spread;
            entry["windows"] = figure.windows;
            entry["settled"] = figure.settled;
        }
        if (figure.one_thread) entry["one_thread"] = *figure.one_thread;
        if (figure.datasheet) entry["datasheet"] = *figure.datasheet;
        if (!figure.variant.empty()) entry["variant"] = figure.variant;
        if (!figure.note.empty()) entry["note"] = figure.note;
        list.push_back(entry);
    }
    return list;
}

io::OrderedJson measured_json(const Measured& measured) {
    io::OrderedJson json = io::write_device(measured.device);
    json["context"] = measured.context;
    json["context"]["busy"] = measured.busy;
    json["context"]["figures"] = found_json(measured.found);
    return json;
}

}  // namespace roofline::measure

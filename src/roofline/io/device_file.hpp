// A device as a JSON file: the same format for the built-in devices and for what `measure` writes.
//
//   { "schema": "roofline.device/1", "name", "title", "vendor", "year", "kind", "generation"?,
//     "aliases": [], "status"?,
//     "engines": [ { "id": "matrix" | "vector", "rates": { "fp16": FIGURE, ... } } ],
//     "multiprocessors"?: FIGURE, "matrix_tile"?: FIGURE,                                            unit "count"
//     "memory":  [ { "id": "memory" | "cache" | "host", "technology", "capacity"?: FIGURE, "reported"?: FIGURE,
//                    "bandwidth"?: FIGURE } ],       reported: what the driver lets programs see of the capacity
//     "links":   [ { "id": "peer", "technology", "topology", "links"?, "bandwidth"?: FIGURE } ],    per direction
//     "power"?: FIGURE, "ceilings"?: { "memory.bandwidth": FIGURE, "matrix.bf16": FIGURE },          measured
//     "sources": { ID: { "kind": "vendor" | "measured" | "derived" | "assumed", "title", "date" } }, "notes"?: [] }
//   FIGURE: { "value", "unit", "source": ID, "note"? }
#pragma once

#include <string_view>

#include "roofline/core/device.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/io/fields.hpp"
#include "roofline/io/json_text.hpp"

namespace roofline::io {

Result<Device> read_device(std::string_view text, std::string_view file);

/// Figures in base units, so that reading it back gives the same device to the last bit.
OrderedJson write_device(const Device& device);
/// The same as the keys of an object that is open.
void write_device(JsonText& json, const Device& device);

}  // namespace roofline::io

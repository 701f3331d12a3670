# cmake -DFOLDER=... -DNAMES_FILE=... -DOUTPUT=... -P embed-tables.cmake     (called by Embed.cmake)
cmake_minimum_required(VERSION 3.25)

file(READ "${NAMES_FILE}" names)
list(LENGTH names count)
set(code "// Generated from ${count} files; see cmake/Embed.cmake.\n#include \"roofline/assess/shipped.hpp\"\n\n#include <array>\n
namespace roofline::assess {
namespace {
using namespace std::string_view_literals;
constexpr std::array<ShippedTable, ${count}> tables = {{\n")
foreach(name IN LISTS names)
    file(READ "${FOLDER}/${name}" text)
    string(APPEND code "{\"data/measured/${name}\"sv, R\"rfl(${text})rfl\"sv},\n")
endforeach()
string(APPEND code "}};\n}  // namespace\n
std::span<const ShippedTable> shipped_tables() {\n    return tables;\n}\n
}  // namespace roofline::assess\n")
file(WRITE "${OUTPUT}" "${code}")

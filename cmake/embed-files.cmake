# cmake -DFUNCTION=... -DFOLDER=... -DNAMES_FILE=... -DOUTPUT=... -P embed-files.cmake     (called by Embed.cmake)
cmake_minimum_required(VERSION 3.25)

file(READ "${NAMES_FILE}" names)
list(LENGTH names count)

set(code "// Generated from ${count} files; see cmake/Embed.cmake.\n#include \"roofline/io/embedded.hpp\"\n\n#include <array>\n
namespace roofline::io {
namespace {
using namespace std::string_view_literals;
// With the literal suffix the compiler knows each length at once; counting them would pass its limit on constant loops.
constexpr std::array<EmbeddedFile, ${count}> files = {")
if(count GREATER 0)
    string(APPEND code "{\n")
    foreach(name IN LISTS names)
        file(READ "${FOLDER}/${name}.json" text)
        # Half of a JSON file is indentation. A line break cannot be inside a JSON string, so this changes no value.
        string(REGEX REPLACE "[ \t\r]*\n[ \t\r\n]*" "" text "${text}")
        if(SMALL AND FOLDER MATCHES "/calibrations$")
            # Nothing but constants has a name and a number once rows and errors are gone.
            string(REGEX REPLACE "\"(rows|error)\": [-+.e0-9]+, " "" text "${text}")
            string(REGEX REPLACE "\"[a-z_0-9]+\": ([-+.e0-9]+)" "\\1" text "${text}")
            string(REGEX REPLACE "\"constants\": {([^{}]*)}" "\"constants\": [\\1]" text "${text}")
        endif()
        if(SMALL AND FOLDER MATCHES "/models$")
            # Where a config and a count are from is told of the built-in models by the command line alone.
            string(REGEX REPLACE "\"source\": {[^{}]*}," "" text "${text}")
            string(REGEX REPLACE ",? *\"source\": \"[^\"]*\"" "" text "${text}")
        endif()
        string(FIND "${text}" ")rfl\"" clash)
        if(NOT clash EQUAL -1)
            message(FATAL_ERROR "${FOLDER}/${name}.json contains )rfl\", which ends the literal it is embedded in")
        endif()
        string(APPEND code "{\"${name}\"sv, R\"rfl(${text})rfl\"sv},\n")
    endforeach()
    string(APPEND code "}")
endif()
string(APPEND code "};\n}  // namespace\n
std::span<const EmbeddedFile> ${FUNCTION}() {\n    return files;\n}\n
}  // namespace roofline::io\n")
file(WRITE "${OUTPUT}" "${code}")

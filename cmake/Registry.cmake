# A registry by folder: adding a file is all it takes to add an entry.
#
#   roofline_registry(OUT roofline/cli/verbs.inc FOLDER src/roofline/cli/verbs)
#
# writes <build>/generated/roofline/cli/verbs.inc with one line for each FOLDER/NAME.cpp, sorted by name:
#
#   ROOFLINE_ENTRY(predict)
#
# The includer defines ROOFLINE_ENTRY, includes the file as often as it needs, and undefines it. A dash in a file's
# name becomes an underscore.

set(ROOFLINE_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")

function(roofline_registry)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT;FOLDER" "")
    file(GLOB files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/${arg_FOLDER}"
         "${PROJECT_SOURCE_DIR}/${arg_FOLDER}/*.cpp")
    set(names "")
    foreach(file IN LISTS files)
        string(REGEX REPLACE "\\.cpp$" "" name "${file}")
        string(REPLACE "-" "_" name "${name}")
        if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
            message(FATAL_ERROR "${arg_FOLDER}/${file}: the name must be letters, digits, '-' and '_' only, "
                                "because it becomes part of a function's name")
        endif()
        list(APPEND names "${name}")
    endforeach()
    list(SORT names)
    set(lines "// Generated from the files in ${arg_FOLDER}.\n")
    foreach(name IN LISTS names)
        string(APPEND lines "ROOFLINE_ENTRY(${name})\n")
    endforeach()
    # file(CONFIGURE) leaves an unchanged file alone, so nothing is rebuilt without need.
    file(CONFIGURE OUTPUT "${ROOFLINE_GENERATED_DIR}/${arg_OUT}" CONTENT "${lines}" @ONLY)
endfunction()

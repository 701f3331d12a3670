# Data files inside the binary.
#
#   roofline_embed(TARGET roofline_data FOLDERS devices models [SMALL])
#
# makes a static library that implements roofline::io::embedded_devices() and embedded_models() of
# src/roofline/io/embedded.hpp from data/devices/*.json and data/models/*.json, one source file for each folder.
# SMALL: for who must be small. Of calibrations, numbers that no answer depends on (rows, error) are left out, and the
# constants of a fit stand in the order of their class instead of by name. Of models, where they are from.
# The sources are plain C++ (no assembler, no objcopy), so any compiler and any target can build them.
function(roofline_embed)
    cmake_parse_arguments(PARSE_ARGV 0 arg "SMALL" "TARGET" "FOLDERS")
    set(script "${PROJECT_SOURCE_DIR}/cmake/embed-files.cmake")
    set(sources "")
    foreach(folder IN LISTS arg_FOLDERS)
        set(output "${PROJECT_BINARY_DIR}/generated/embedded_${folder}.cpp")
        set(names_file "${PROJECT_BINARY_DIR}/generated/embedded_${folder}.names")
        file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/data/${folder}/*.json")
        set(names "")
        foreach(file IN LISTS files)
            string(REGEX REPLACE "^.*/(.*)\\.json$" "\\1" name "${file}")
            list(APPEND names "${name}")
        endforeach()
        # By name, not by path: "a-b" comes after "a" although "a-b.json" comes before "a.json".
        list(SORT names)
        # The list is a file so that removing a data file is a change too.
        file(CONFIGURE OUTPUT "${names_file}" CONTENT "${names}" @ONLY)
        add_custom_command(
            OUTPUT "${output}"
            COMMAND "${CMAKE_COMMAND}" "-DFUNCTION=embedded_${folder}" "-DFOLDER=${PROJECT_SOURCE_DIR}/data/${folder}"
                    "-DNAMES_FILE=${names_file}" "-DOUTPUT=${output}" "-DSMALL=${arg_SMALL}" -P "${script}"
            DEPENDS ${files} "${names_file}" "${script}"
            COMMENT "Embedding data/${folder}"
            VERBATIM)
        list(APPEND sources "${output}")
    endforeach()
    add_library(${arg_TARGET} STATIC ${sources})
    target_include_directories(${arg_TARGET} PRIVATE "${PROJECT_SOURCE_DIR}/src")
    target_compile_options(${arg_TARGET} PRIVATE -fno-exceptions)
    target_link_libraries(${arg_TARGET} PRIVATE roofline_options)
endfunction()

# Measured tables, for the rooms that assess predictions; not part of the portable set.
#
#   roofline_embed_tables(TARGET roofline_tables)
#
# implements roofline::assess::shipped_tables() of src/roofline/assess/shipped.hpp from data/measured/*.csv.
function(roofline_embed_tables)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET" "")
    set(script "${PROJECT_SOURCE_DIR}/cmake/embed-tables.cmake")
    set(folder "${PROJECT_SOURCE_DIR}/data/measured")
    set(output "${PROJECT_BINARY_DIR}/generated/embedded_tables.cpp")
    set(names_file "${PROJECT_BINARY_DIR}/generated/embedded_tables.names")
    file(GLOB names CONFIGURE_DEPENDS RELATIVE "${folder}" "${folder}/*.csv")
    list(SORT names)
    file(CONFIGURE OUTPUT "${names_file}" CONTENT "${names}" @ONLY)
    list(TRANSFORM names PREPEND "${folder}/" OUTPUT_VARIABLE files)
    add_custom_command(
        OUTPUT "${output}"
        COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${folder}" "-DNAMES_FILE=${names_file}" "-DOUTPUT=${output}" -P "${script}"
        DEPENDS ${files} "${names_file}" "${script}"
        COMMENT "Embedding data/measured"
        VERBATIM)
    add_library(${arg_TARGET} STATIC "${output}")
    target_include_directories(${arg_TARGET} PRIVATE "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${arg_TARGET} PRIVATE roofline_options)
endfunction()

# The calculator's page inside the binary, where script/web has built it: build/web/page/index.html.gz and the hashes of
# its scripts beside it. Without it the program serves its interface for programs only.
#
#   roofline_embed_page(TARGET roofline_page)
#
# implements roofline::serve::embedded_page() of src/roofline/serve/server.hpp.
function(roofline_embed_page)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET" "")
    set(script "${PROJECT_SOURCE_DIR}/cmake/embed-page.cmake")
    set(output "${PROJECT_BINARY_DIR}/generated/embedded_page.cpp")
    set(folder "${PROJECT_SOURCE_DIR}/build/web/page")
    file(GLOB files CONFIGURE_DEPENDS "${folder}/index.html.gz" "${folder}/script-hashes.txt")
    add_custom_command(
        OUTPUT "${output}"
        COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${folder}" "-DOUTPUT=${output}" -P "${script}"
        DEPENDS ${files} "${script}"
        COMMENT "Embedding the page"
        VERBATIM)
    add_library(${arg_TARGET} STATIC "${output}")
    target_include_directories(${arg_TARGET} PRIVATE "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${arg_TARGET} PRIVATE roofline_options)
endfunction()

# Text files beside the sources of a room, as functions that return them.
#
#   roofline_embed_texts(TARGET roofline_page_files HEADER roofline/render/page/page.hpp NAMESPACE roofline::render
#                        page_style src/roofline/render/page/page.css page_script src/roofline/render/page/page.js)
function(roofline_embed_texts)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET;HEADER;NAMESPACE" "")
    set(script "${PROJECT_SOURCE_DIR}/cmake/embed-texts.cmake")
    set(output "${PROJECT_BINARY_DIR}/generated/${arg_TARGET}.cpp")
    set(pairs ${arg_UNPARSED_ARGUMENTS})
    set(files "")
    list(LENGTH pairs count)
    math(EXPR last "${count} - 1")
    foreach(i RANGE 1 ${last} 2)
        list(GET pairs ${i} file)
        list(APPEND files "${PROJECT_SOURCE_DIR}/${file}")
    endforeach()
    string(REPLACE ";" "," pairs "${pairs}")
    add_custom_command(
        OUTPUT "${output}"
        COMMAND "${CMAKE_COMMAND}" "-DPAIRS=${pairs}" "-DROOT=${PROJECT_SOURCE_DIR}" "-DHEADER=${arg_HEADER}"
                "-DNAMESPACE=${arg_NAMESPACE}" "-DOUTPUT=${output}" -P "${script}"
        DEPENDS ${files} "${script}"
        COMMENT "Embedding ${arg_TARGET}"
        VERBATIM)
    add_library(${arg_TARGET} STATIC "${output}")
    target_include_directories(${arg_TARGET} PRIVATE "${PROJECT_SOURCE_DIR}/src")
    target_compile_options(${arg_TARGET} PRIVATE -fno-exceptions)
    target_link_libraries(${arg_TARGET} PRIVATE roofline_options)
endfunction()

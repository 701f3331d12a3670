# tests/ROOM/*.cpp                    one GoogleTest executable, roofline_tests, for the rooms inside; one each,
#                                     roofline_ROOM_tests, for those outside and for the command line
# tests/must_not_compile/*.cpp        each is a test that passes when the compiler rejects the file
# tests/must_not_compile/control/*.cpp  each must compile: shows that the ones above fail for their own reason

enable_testing()
find_package(GTest QUIET)
if(NOT GTest_FOUND)
    message(STATUS "GoogleTest not found: no roofline_tests")
endif()

# How tests are compiled: all alike, so that slow headers are compiled once for all of them.
function(roofline_compile_as_test NAME)
    target_include_directories(${NAME} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    target_link_libraries(${NAME} PRIVATE
        roofline_assess roofline_render roofline_io roofline_decide roofline_serving roofline_predict roofline_model
        roofline_core roofline_options
        nlohmann_json::nlohmann_json roofline_fmt GTest::gmock GTest::gmock_main GTest::gtest)
    target_include_directories(${NAME} PRIVATE "${ROOFLINE_GENERATED_DIR}")
    if(ROOFLINE_SANITIZE)
        target_compile_definitions(${NAME} PRIVATE ROOFLINE_SANITIZED)
    endif()
    # Optimising tests costs minutes of building and saves no time in running them.
    target_compile_options(${NAME} PRIVATE -O0)
endfunction()

if(GTest_FOUND)
    file(CONFIGURE OUTPUT "${ROOFLINE_GENERATED_DIR}/test_headers.cpp" CONTENT "// Slow headers, for all tests.\n" @ONLY)
    add_library(roofline_test_headers OBJECT "${ROOFLINE_GENERATED_DIR}/test_headers.cpp")
    roofline_compile_as_test(roofline_test_headers)
    target_precompile_headers(roofline_test_headers PRIVATE ${ROOFLINE_SLOW_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
endif()

# The rooms inside in one executable; those outside in one each; the command line, which runs the program, in another.
function(roofline_test_executable NAME)
    add_executable(${NAME} ${ARGN})
    roofline_compile_as_test(${NAME})
    target_precompile_headers(${NAME} REUSE_FROM roofline_test_headers)
    if(ROOFLINE_SANITIZE)
        # A process a test is pleasant to work with; starting a sanitized one takes longer than most tests.
        set(shards 8)
        if(NOT NAME STREQUAL "roofline_tests")
            set(shards 2)
        endif()
        math(EXPR last "${shards} - 1")
        foreach(shard RANGE ${last})
            add_test(NAME "${NAME}.${shard}" COMMAND ${NAME} --gtest_brief=1)
            set_tests_properties("${NAME}.${shard}" PROPERTIES TIMEOUT 1200
                ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}")
        endforeach()
    else()
        gtest_discover_tests(${NAME} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
    endif()
endfunction()

# Where tests find the project and its program. A header, so that only the few that ask depend on the place.
file(CONFIGURE OUTPUT "${ROOFLINE_GENERATED_DIR}/places.hpp" CONTENT [[#pragma once
#define ROOFLINE_SOURCE_DIR "@PROJECT_SOURCE_DIR@"
#define FAKE_CUDA_PLUGIN "@PROJECT_BINARY_DIR@/tests/fake_cuda_plugin.so"
#define SCALAR_KERNEL "@PROJECT_BINARY_DIR@/tests/scalar_kernel.so"
#define CRASHING_KERNEL "@PROJECT_BINARY_DIR@/tests/crashing_kernel.so"
#define ROOFLINE_BINARY "@CMAKE_RUNTIME_OUTPUT_DIRECTORY@/roofline@CMAKE_EXECUTABLE_SUFFIX@"
]] @ONLY)

file(GLOB_RECURSE ROOFLINE_TEST_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*.cpp")
set(ROOFLINE_OUTER_ROOMS render measure bench analyze ask serve)
list(FILTER ROOFLINE_TEST_SOURCES EXCLUDE REGEX "/tests/(must_not_compile|cli|fuzz|render|measure|bench|analyze|ask|serve)/")
file(GLOB_RECURSE ROOFLINE_CLI_TEST_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/cli/*.cpp")
if(GTest_FOUND)
    include(GoogleTest)
    if(ROOFLINE_TEST_SOURCES)
        roofline_test_executable(roofline_tests ${ROOFLINE_TEST_SOURCES})
    endif()
    # What only changes with its room need not be linked with everything else.
    add_custom_target(roofline_outer_tests)
    foreach(room IN LISTS ROOFLINE_OUTER_ROOMS)
        file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${room}/*.cpp")
        if(sources)
            roofline_test_executable(roofline_${room}_tests ${sources})
            target_link_libraries(roofline_${room}_tests PRIVATE roofline_${room})
            add_dependencies(roofline_outer_tests roofline_${room}_tests)
            if(room STREQUAL "serve" AND TARGET roofline_http)
                add_dependencies(roofline_serve_tests roofline_http)
            endif()
        endif()
    endforeach()
    if(TARGET roofline_measure_tests)
        # What stands in for the CUDA plugin and the driver.
        add_library(fake_cuda_plugin MODULE "${PROJECT_SOURCE_DIR}/tests/measure/fake_cuda_plugin.cxx")
        target_include_directories(fake_cuda_plugin PRIVATE "${PROJECT_SOURCE_DIR}/src")
        target_link_libraries(fake_cuda_plugin PRIVATE roofline_options)
        set_target_properties(fake_cuda_plugin PROPERTIES PREFIX "" SUFFIX ".so"
                              LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
        add_dependencies(roofline_measure_tests fake_cuda_plugin)
    endif()
    # The example of a kernel of one's own, built as its reader would build it.
    if(TARGET roofline_bench_tests)
        add_library(roofline_scalar_kernel MODULE docs/kernel/scalar_kernel.cpp)
        target_include_directories(roofline_scalar_kernel PRIVATE include)
        target_link_libraries(roofline_scalar_kernel PRIVATE roofline_options)
        set_target_properties(roofline_scalar_kernel PROPERTIES PREFIX "" SUFFIX ".so" OUTPUT_NAME scalar_kernel
                              LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
        add_dependencies(roofline_bench_tests roofline_scalar_kernel)
        # And one that crashes.
        add_library(roofline_crashing_kernel MODULE "${PROJECT_SOURCE_DIR}/tests/bench/crashing_kernel.cxx")
        target_include_directories(roofline_crashing_kernel PRIVATE include)
        target_link_libraries(roofline_crashing_kernel PRIVATE roofline_options)
        set_target_properties(roofline_crashing_kernel PROPERTIES PREFIX "" SUFFIX ".so" OUTPUT_NAME crashing_kernel
                              LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
        add_dependencies(roofline_bench_tests roofline_crashing_kernel)
    endif()
    if(TARGET roofline AND ROOFLINE_CLI_TEST_SOURCES)
        roofline_test_executable(roofline_cli_tests ${ROOFLINE_CLI_TEST_SOURCES})
        target_link_libraries(roofline_cli_tests PRIVATE roofline_cli ${CMAKE_DL_LIBS})
        add_dependencies(roofline_cli_tests roofline)
        foreach(plugin fake_cuda_plugin roofline_scalar_kernel)
            if(TARGET ${plugin})
                add_dependencies(roofline_cli_tests ${plugin})
            endif()
        endforeach()
    endif()
endif()

# Printed samples in the documents are what the program prints now.
if(TARGET roofline)
    add_test(NAME docs.samples COMMAND "${PROJECT_SOURCE_DIR}/script/docs" --check)
    set_tests_properties(docs.samples PROPERTIES
        ENVIRONMENT "ROOFLINE_BINARY=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/roofline${CMAKE_EXECUTABLE_SUFFIX}")
endif()

# Bugs planted on purpose must turn a test red. Once is enough: not in the sanitizer build.
if(TARGET roofline_tests AND NOT ROOFLINE_SANITIZE)
    add_test(NAME planted.bugs COMMAND "${PROJECT_SOURCE_DIR}/script/planted" "${PROJECT_BINARY_DIR}")
    set_tests_properties(planted.bugs PROPERTIES TIMEOUT 2400 RUN_SERIAL TRUE) # it takes every core itself
endif()

# The command a file is judged by. The compiler alone, without a launcher: a cache has nothing to add here.
function(roofline_compile_test NAME FILE)
    add_test(NAME "${NAME}"
             COMMAND "${CMAKE_CXX_COMPILER}" -std=c++23 -fsyntax-only -I "${PROJECT_SOURCE_DIR}/src" "${FILE}")
endfunction()

file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/must_not_compile/*.cpp")
foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    roofline_compile_test("must_not_compile.${name}" "${file}")
    # A line "// error: TEXT" in the file is a regular expression that the compiler's message must contain, so that a
    # misspelt name or include cannot pass for the error that is meant. Without it any failure will do.
    file(STRINGS "${file}" expected REGEX "^// error: " LIMIT_COUNT 1)
    if(expected)
        string(REGEX REPLACE "^// error: " "" expected "${expected}")
        set_tests_properties("must_not_compile.${name}" PROPERTIES PASS_REGULAR_EXPRESSION "error: [^\n]*${expected}")
    else()
        set_tests_properties("must_not_compile.${name}" PROPERTIES WILL_FAIL TRUE)
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
endforeach()

file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/must_not_compile/control/*.cpp")
foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    roofline_compile_test("must_compile.${name}" "${file}")
endforeach()

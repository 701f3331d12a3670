# bench/*.cpp as roofline_benchmarks, only where Google Benchmark is installed and only when asked for by name.
find_package(benchmark QUIET)
file(GLOB ROOFLINE_BENCH_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*.cpp")
if(benchmark_FOUND AND ROOFLINE_BENCH_SOURCES)
    add_executable(roofline_benchmarks EXCLUDE_FROM_ALL ${ROOFLINE_BENCH_SOURCES})
    target_link_libraries(roofline_benchmarks PRIVATE
        roofline_bench roofline_measure roofline_render roofline_io roofline_decide roofline_serving roofline_predict roofline_model
        roofline_core roofline_options
        nlohmann_json::nlohmann_json roofline_fmt benchmark::benchmark)
    target_compile_definitions(roofline_benchmarks PRIVATE
        "ROOFLINE_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\""
        "ROOFLINE_BINARY=\"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/roofline${CMAKE_EXECUTABLE_SUFFIX}\"")
    if(TARGET roofline)
        add_dependencies(roofline_benchmarks roofline)
    endif()
endif()

# The closed form of serving held against its simulation: a program of its own, for its table and its worst cases.
add_executable(roofline_agreement EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/bench/agreement/main.cpp")
target_include_directories(roofline_agreement PRIVATE "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(roofline_agreement PRIVATE roofline_io roofline_decide roofline_serving roofline_predict
                      roofline_model roofline_core roofline_options nlohmann_json::nlohmann_json roofline_fmt)

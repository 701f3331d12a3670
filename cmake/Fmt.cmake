# roofline_fmt: fmt, compiled once.
#
# As headers alone it is compiled anew in every file that formats a number: that was more than half of all the code a build
# made, and four of six seconds for a short file. The library a distribution ships is no way round it: a program that is
# copied to another machine would miss it, and there is none for WebAssembly.
add_library(roofline_fmt STATIC "${PROJECT_SOURCE_DIR}/cmake/fmt.cpp")
target_include_directories(roofline_fmt SYSTEM PUBLIC
    "$<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>")
target_link_libraries(roofline_fmt PRIVATE roofline_options)
target_compile_options(roofline_fmt PRIVATE -fno-exceptions -w)

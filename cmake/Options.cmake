# Language level, flags and definitions shared by everything we compile.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}") # the binary is build/<preset>/roofline
set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ${ROOFLINE_LTO})
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    message(FATAL_ERROR "roofline needs GCC 12 or newer (found ${CMAKE_CXX_COMPILER_VERSION}); "
                        "name another compiler with CXX=...")
endif()

find_program(ROOFLINE_CCACHE ccache)
mark_as_advanced(ROOFLINE_CCACHE)
if(ROOFLINE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${ROOFLINE_CCACHE}")
endif()

add_library(roofline_options INTERFACE)
target_compile_options(roofline_options INTERFACE
    -ffp-contract=off # a fused multiply-add rounds once where two operations round twice: same numbers everywhere
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion
    $<$<BOOL:${ROOFLINE_WERROR}>:-Werror>)
# These change inline functions of the libraries, so they must be alike in every target, with exceptions or without.
target_compile_definitions(roofline_options INTERFACE JSON_NOEXCEPTION FMT_EXCEPTIONS=0)
target_compile_definitions(roofline_options INTERFACE "ROOFLINE_VERSION=\"${PROJECT_VERSION}\"")

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees overlaps in plain std::string concatenation that are not there (GCC bug 105651).
    target_compile_options(roofline_options INTERFACE -Wno-restrict)
endif()

# The rooms are instrumented (Room.cmake), the tests that drive them are not: that halves the time to build. A null pointer
# needs no check at each use: where it is read, the address sanitizer says so.
set(ROOFLINE_SANITIZE_FLAGS "")
if(ROOFLINE_SANITIZE)
    set(ROOFLINE_SANITIZE_FLAGS -fsanitize=address,undefined -fno-sanitize=null -fno-sanitize-recover=all
                                -fno-omit-frame-pointer)
    add_link_options(-fsanitize=address,undefined)
endif()

include(SlowHeaders)

# A room: everything under src/roofline/NAME as the static library roofline_NAME.
#
#   roofline_room(NAME io DEPENDS core model     rooms whose headers it may include
#                 LINK roofline_fmt ...          libraries from outside
#                 REGISTRIES families            subfolders listed in roofline/NAME/SUBFOLDER.inc (Registry.cmake)
#                 EXCLUDE main.cpp               files that belong to another target
#                 PRECOMPILE                     include the slow headers of libraries, compiled once for all such rooms
#                 EXCEPTIONS)                    compile with exceptions; the portable rooms do without
#
# A room that has no source file (yet, or because it is all headers) becomes an INTERFACE library.
function(roofline_room)
    cmake_parse_arguments(PARSE_ARGV 0 arg "EXCEPTIONS;PRECOMPILE" "NAME" "DEPENDS;LINK;REGISTRIES;EXCLUDE")
    set(target "roofline_${arg_NAME}")
    set(folder "src/roofline/${arg_NAME}")

    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cpp")
    foreach(file IN LISTS arg_EXCLUDE)
        list(REMOVE_ITEM sources "${PROJECT_SOURCE_DIR}/${folder}/${file}")
    endforeach()
    list(TRANSFORM arg_DEPENDS PREPEND "roofline_" OUTPUT_VARIABLE rooms)

    if(sources)
        add_library(${target} STATIC ${sources})
        set(scope PUBLIC)
        target_link_libraries(${target} PRIVATE roofline_options)
        target_compile_options(${target} PRIVATE ${ROOFLINE_SANITIZE_FLAGS})
        if(NOT arg_EXCEPTIONS)
            target_compile_options(${target} PRIVATE -fno-exceptions)
        endif()
        if(arg_PRECOMPILE)
            roofline_reuse_slow_headers(${target} ${arg_EXCEPTIONS})
        endif()
    else()
        add_library(${target} INTERFACE)
        set(scope INTERFACE)
    endif()

    target_include_directories(${target} ${scope} "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${target} ${scope} ${rooms} ${arg_LINK})

    foreach(registry IN LISTS arg_REGISTRIES)
        roofline_registry(OUT "roofline/${arg_NAME}/${registry}.inc" FOLDER "${folder}/${registry}")
        target_include_directories(${target} ${scope} "${ROOFLINE_GENERATED_DIR}")
    endforeach()
endfunction()

# Loops that are timed: optimised in every build, for an unoptimised loop measures the compiler; but not under the
# sanitizers, where nothing is timed and optimising takes longest.
function(roofline_loops)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "FOLDER" "OPTIONS")
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${arg_FOLDER}/*.cpp")
    if(ROOFLINE_SANITIZE)
        list(FILTER arg_OPTIONS EXCLUDE REGEX "^-O")
    endif()
    set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "${arg_OPTIONS}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

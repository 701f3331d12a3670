# A room: everything under src/roofline/NAME as the static library roofline_NAME.
#
#   roofline_room(NAME io DEPENDS core model     rooms whose headers it may include
#                 LINK fmt::fmt-header-only ...  libraries from outside
#                 REGISTRIES families            subfolders listed in roofline/NAME/SUBFOLDER.inc (Registry.cmake)
#                 EXCLUDE main.cpp               files that belong to another target
#                 PRECOMPILE                     compile the slow headers of libraries once for all its files
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
        if(ROOFLINE_SANITIZE)
            target_compile_options(${target} PRIVATE ${ROOFLINE_SANITIZE_FLAGS})
        endif()
        if(arg_PRECOMPILE)
            target_precompile_headers(${target} PRIVATE ${ROOFLINE_SLOW_HEADERS})
        endif()
        if(NOT arg_EXCEPTIONS)
            target_compile_options(${target} PRIVATE -fno-exceptions)
        endif()
    else()
        add_library(${target} INTERFACE)
        set(scope INTERFACE)
    endif()

    target_include_directories(${target} ${scope} "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${target} ${scope} ${rooms} ${arg_LINK})
    if(arg_NAME STREQUAL "io") # and, through it, cli and the tests
        target_compile_definitions(${target} ${scope} "ROOFLINE_VERSION=\"${PROJECT_VERSION}\"")
    endif()

    foreach(registry IN LISTS arg_REGISTRIES)
        roofline_registry(OUT "roofline/${arg_NAME}/${registry}.inc" FOLDER "${folder}/${registry}")
        target_include_directories(${target} ${scope} "${ROOFLINE_GENERATED_DIR}")
    endforeach()
endfunction()

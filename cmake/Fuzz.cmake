# tests/fuzz/NAME_fuzz.cpp     a libFuzzer target, fuzz/NAME, with the seeds in tests/fuzz/corpus/NAME
#
# Readers of traces and tables are compiled once more, by clang with libFuzzer's instrumentation and the sanitizers; the
# rooms below them are linked as they are. Nothing of it is built unless roofline_fuzz is asked for (script/fuzz), and
# there is no such target where clang has no libFuzzer.

find_program(ROOFLINE_FUZZ_CXX NAMES clang++-19 clang++-20 clang++-18) # one that knows C++23, which a plain clang++ need not
mark_as_advanced(ROOFLINE_FUZZ_CXX)

function(roofline_fuzzer_works RESULT)
    if(NOT ROOFLINE_FUZZER_WORKS) # asked again as long as it does not: its library may come later
        set(works OFF)
        if(ROOFLINE_FUZZ_CXX AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT ROOFLINE_SANITIZE)
            set(probe "${PROJECT_BINARY_DIR}/fuzz/probe.cpp")
            file(WRITE "${probe}" "#include <cstddef>\nextern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, std::size_t) { return 0; }\n")
            execute_process(COMMAND "${ROOFLINE_FUZZ_CXX}" -fsanitize=fuzzer,address "${probe}" -o "${probe}.out"
                            RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
            if(failed EQUAL 0)
                set(works ON)
            endif()
        endif()
        set(ROOFLINE_FUZZER_WORKS ${works} CACHE BOOL "clang's libFuzzer can be used" FORCE)
        mark_as_advanced(ROOFLINE_FUZZER_WORKS)
    endif()
    set(${RESULT} ${ROOFLINE_FUZZER_WORKS} PARENT_SCOPE)
endfunction()

function(roofline_fuzz_targets)
    roofline_fuzzer_works(works)
    file(GLOB targets CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp")
    if(NOT works OR NOT targets)
        return()
    endif()
    set(folder "${PROJECT_BINARY_DIR}/fuzz")
    set(flags -std=c++23 -O1 -g1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=null
              -fno-sanitize-recover=undefined -fno-omit-frame-pointer -ffp-contract=off -w
              # libstdc++ 12 offers std::expected only to compilers that claim all of C++20's concepts.
              -D__cpp_concepts=202002L
              -DJSON_NOEXCEPTION -DFMT_EXCEPTIONS=0 "-DROOFLINE_VERSION=\"${PROJECT_VERSION}\""
              -I "${PROJECT_SOURCE_DIR}/src" -I "${PROJECT_SOURCE_DIR}/tests" -I "${ROOFLINE_GENERATED_DIR}")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/roofline/analyze/*.cpp")
    set(objects "")
    foreach(source IN LISTS sources targets)
        file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}" "${source}")
        string(REPLACE "/" "." name "${name}")
        set(object "${folder}/${name}.o")
        add_custom_command(
            OUTPUT "${object}"
            COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} "${ROOFLINE_FUZZ_CXX}" ${flags} -MD -MF "${object}.d" -c "${source}"
                    -o "${object}"
            DEPENDS "${source}" DEPFILE "${object}.d"
            COMMENT "Compiling ${name} for the fuzzer" VERBATIM)
        if(source IN_LIST sources)
            list(APPEND objects "${object}")
        endif()
    endforeach()
    # Twice: rooms refer to one another through what the data library holds.
    set(rooms roofline_render roofline_io roofline_decide roofline_serving roofline_predict roofline_model roofline_core
              roofline_data roofline_fmt)
    set(archives "")
    foreach(room IN LISTS rooms rooms)
        list(APPEND archives "$<TARGET_FILE:${room}>")
    endforeach()
    set(programs "")
    foreach(target IN LISTS targets)
        get_filename_component(name "${target}" NAME_WE)
        string(REGEX REPLACE "_fuzz$" "" name "${name}")
        set(main "${folder}/tests.fuzz.${name}_fuzz.cpp.o")
        add_custom_command(
            OUTPUT "${folder}/${name}"
            COMMAND "${ROOFLINE_FUZZ_CXX}" -fsanitize=fuzzer,address,undefined "${main}" ${objects} ${archives}
                    -ldl -pthread -o "${folder}/${name}"
            DEPENDS "${main}" ${objects} ${rooms}
            COMMENT "Linking the fuzz target ${name}" VERBATIM)
        list(APPEND programs "${folder}/${name}")
    endforeach()
    add_custom_target(roofline_fuzz DEPENDS ${programs})
endfunction()

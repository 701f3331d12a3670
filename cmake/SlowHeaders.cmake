# Headers that take longer to read than most of our files do: compiled once for all rooms that use them, and once for all
# tests (Tests.cmake).
set(ROOFLINE_SLOW_HEADERS <algorithm> <map> <string> <vector> <nlohmann/json.hpp> <fmt/format.h>)

# With exceptions or without: the compiler keeps the two apart.
function(roofline_reuse_slow_headers ROOM EXCEPTIONS)
    set(headers roofline_slow_headers)
    set(options ${ROOFLINE_SANITIZE_FLAGS})
    if(EXCEPTIONS)
        string(APPEND headers _with_exceptions)
    else()
        list(APPEND options -fno-exceptions)
    endif()
    if(NOT TARGET ${headers})
        file(CONFIGURE OUTPUT "${ROOFLINE_GENERATED_DIR}/${headers}.cpp" CONTENT "// Slow headers, for many rooms.\n" @ONLY)
        add_library(${headers} OBJECT "${ROOFLINE_GENERATED_DIR}/${headers}.cpp")
        target_link_libraries(${headers} PRIVATE roofline_options nlohmann_json::nlohmann_json roofline_fmt)
        target_compile_options(${headers} PRIVATE ${options})
        target_precompile_headers(${headers} PRIVATE ${ROOFLINE_SLOW_HEADERS})
    endif()
    target_precompile_headers(${ROOM} REUSE_FROM ${headers})
endfunction()

# roofline_cuda.so, what the program loads where there is a GPU of NVIDIA (src/roofline/measure/cuda/abi.h). Built only
# where nvcc is; elsewhere there is no such target and nothing else changes. script/cuda builds the same file without
# CMake. The files need not be named: measure/cuda/*.cu and bench/cuda/*.cu, but for the latter's standalone.cu.
option(ROOFLINE_CUDA "Build the CUDA plugin where nvcc is found" ON)
set(ROOFLINE_CUDA_TARGETS "-gencode=arch=compute_90a,code=sm_90a;-gencode=arch=compute_80,code=compute_80" CACHE STRING
    "What nvcc compiles for: Hopper, and PTX that the driver compiles for every other chip from Ampere on")
mark_as_advanced(ROOFLINE_CUDA_TARGETS)
find_program(ROOFLINE_NVCC nvcc HINTS "$ENV{CUDA_HOME}/bin" "$ENV{CUDA_PATH}/bin" /usr/local/cuda/bin /opt/cuda/bin)
mark_as_advanced(ROOFLINE_NVCC)

if(ROOFLINE_CUDA AND ROOFLINE_NVCC AND NOT ROOFLINE_SANITIZE)
    file(GLOB cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/roofline/measure/cuda/*.cu"
         "${PROJECT_SOURCE_DIR}/src/roofline/bench/cuda/*.cu")
    list(FILTER cuda_sources EXCLUDE REGEX "/standalone\\.cu$")
    get_target_property(json_folder nlohmann_json::nlohmann_json INTERFACE_INCLUDE_DIRECTORIES)
    # nvcc by itself: enabling the language costs every configuration half a minute, and CMake 3.25 knows no CUDA 13.
    set(flags -std=c++20 -O3 "-I${PROJECT_SOURCE_DIR}/src" "-I${PROJECT_SOURCE_DIR}/include" ${ROOFLINE_CUDA_TARGETS}
        -Xcompiler=-fPIC,-fvisibility=hidden)
    foreach(folder IN LISTS json_folder)
        if(folder AND NOT folder STREQUAL "/usr/include") # named again, it would hide the compiler's own
            list(APPEND flags "-I${folder}")
        endif()
    endforeach()
    set(objects "")
    foreach(source IN LISTS cuda_sources)
        file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}/src/roofline" "${source}")
        string(REPLACE "/" "_" name "${name}")
        set(object "${PROJECT_BINARY_DIR}/cuda/${name}.o")
        add_custom_command(
            OUTPUT "${object}"
            COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/cuda"
            COMMAND "${ROOFLINE_NVCC}" ${flags} -MD -MF "${object}.d" -c "${source}" -o "${object}"
            DEPENDS "${source}"
            DEPFILE "${object}.d"
            COMMENT "Compiling ${name}"
            VERBATIM)
        list(APPEND objects "${object}")
    endforeach()
    set(plugin "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/roofline_cuda.so")
    add_custom_command(
        OUTPUT "${plugin}"
        COMMAND "${ROOFLINE_NVCC}" ${ROOFLINE_CUDA_TARGETS} -shared -cudart static -o "${plugin}" ${objects} -ldl -lpthread
        DEPENDS ${objects}
        COMMENT "Linking roofline_cuda.so"
        VERBATIM)
    # The example of a kernel of one's own, built as its reader would build it.
    set(example "${PROJECT_BINARY_DIR}/cuda/plain_kernel.so")
    add_custom_command(
        OUTPUT "${example}"
        COMMAND "${ROOFLINE_NVCC}" -O3 ${ROOFLINE_CUDA_TARGETS} -shared -Xcompiler -fPIC -I "${PROJECT_SOURCE_DIR}/include"
                "${PROJECT_SOURCE_DIR}/docs/kernel/plain_kernel.cu" -o "${example}"
        DEPENDS "${PROJECT_SOURCE_DIR}/docs/kernel/plain_kernel.cu" "${PROJECT_SOURCE_DIR}/include/roofline_cuda_kernel.h"
        COMMENT "Compiling plain_kernel.cu"
        VERBATIM)
    add_custom_target(roofline_cuda DEPENDS "${plugin}" "${example}")
    # Where there is no GPU, nobody waits for kernels: `ninja roofline_cuda` builds them all the same.
    if(TARGET roofline AND EXISTS /dev/nvidiactl)
        add_dependencies(roofline roofline_cuda)
    endif()
    install(PROGRAMS "${plugin}" DESTINATION lib/roofline OPTIONAL)
endif()

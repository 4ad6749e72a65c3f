# Device code. A kernel's source is compiled twice: by nvcc for the device, and
# by the C++ compiler for the CPU, where tests run it
# (model/cuda/device/kernel.h).
find_program(TXL_NVCC nvcc HINTS ENV CUDACXX PATHS /usr/local/cuda/bin)
if(TXL_NVCC AND EXISTS ${torch_root}/lib/libtorch_cuda.so)
  set(cuda_default ON)
else()
  set(cuda_default OFF)
endif()
option(TXL_CUDA
  "Compile the device code; default: where LibTorch has CUDA and nvcc exists"
  ${cuda_default})
if(TXL_CUDA)
  # Machine code for A100 and H100/H200; the driver compiles the rest from PTX.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    # CMake 3.25 does not know yet that nvcc 12 and later can.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  endif()
  if(CMAKE_VERSION VERSION_LESS 3.25.2)
    # Debian's CMake takes for given what CUDA 13 no longer has.
    add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
  endif()
  find_package(CUDAToolkit REQUIRED)
  # What deploy/device_suite.sh builds: tests and benchmarks that need a device.
  add_custom_target(device_suite)
endif()

# The sources that the C++ compiler gets for kernels a.cu ... and SOURCES d.cc
# ..., in OUT. A source has one language per folder: for kernels these are files
# that include the kernel's. They alone find the emulator's headers, so that a
# host source that reaches model/cuda/device/kernel.h, which nvcc's build could
# not compile, fails in every build.
function(txl_emulated_sources OUT)
  cmake_parse_arguments(ARG "" "" "KERNELS;SOURCES" ${ARGN})
  set(wrappers ${ARG_SOURCES})
  foreach(kernel ${ARG_KERNELS})
    set(wrapper ${CMAKE_CURRENT_BINARY_DIR}/emulated_${kernel}.cc)
    file(CONFIGURE OUTPUT ${wrapper} CONTENT
      "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${kernel}\"\n")
    # Kernels name their parts alike.
    set_source_files_properties(${wrapper} PROPERTIES
      SKIP_UNITY_BUILD_INCLUSION ON)
    list(APPEND wrappers ${wrapper})
  endforeach()
  set_source_files_properties(${wrappers} PROPERTIES
    INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/tests/model/cuda)
  set(${OUT} ${wrappers} PARENT_SCOPE)
endfunction()

# DEPS for the CPU, in OUT: txl_kernels libraries in their emulated kind.
function(txl_emulated_deps OUT)
  foreach(dep ${ARGN})
    if(TARGET ${dep}_emulated)
      list(APPEND deps ${dep}_emulated)
    else()
      list(APPEND deps ${dep})
    endif()
  endforeach()
  set(${OUT} ${deps} PARENT_SCOPE)
endfunction()

# txl_kernels(NAME name SRCS a.cc ... KERNELS b.cu ... CUDA_SRCS c.cu ...
#             EMULATED_SRCS d.cc ... DEPS target ... [PRECOMPILED kind])
# Libraries NAME_emulated, with TXL_TESTS, and NAME, with TXL_CUDA: SRCS and KERNELS in both,
# CUDA_SRCS and EMULATED_SRCS in one. DEPS are of both; another txl_kernels
# library among them is linked in the same kind.
function(txl_kernels)
  cmake_parse_arguments(ARG "" "NAME;PRECOMPILED"
    "SRCS;KERNELS;CUDA_SRCS;EMULATED_SRCS;DEPS" ${ARGN})
  if(TXL_TESTS)
    txl_emulated_sources(emulated
      KERNELS ${ARG_KERNELS} SOURCES ${ARG_EMULATED_SRCS})
    txl_emulated_deps(emulated_deps ${ARG_DEPS})
    txl_library(NAME ${ARG_NAME}_emulated
      SRCS ${ARG_SRCS} ${emulated} DEPS ${emulated_deps}
      PRECOMPILED ${ARG_PRECOMPILED})
  endif()
  if(TXL_CUDA)
    txl_library(NAME ${ARG_NAME}
      SRCS ${ARG_SRCS} ${ARG_CUDA_SRCS} ${ARG_KERNELS}
      DEPS ${ARG_DEPS} CUDA::cudart_static)
  endif()
endfunction()

# txl_kernel_test(NAME name SRCS a_test.cc ... KERNELS b.cu ...
#                 EMULATED_SRCS c_test.cc ... DEPS target ... [LABELS label ...]
#                 [WHOLE] [PRECOMPILED kind])
# A GoogleTest program of kernels, like txl_test, on the emulator; with TXL_CUDA
# also NAME_device, from the same SRCS and KERNELS (kernels that only the test
# has), on a device. The latter has the label "device" alone and fails where
# there is none; `ctest -LE device` leaves it out. EMULATED_SRCS are tests of
# the emulator itself.
function(txl_kernel_test)
  cmake_parse_arguments(ARG "WHOLE" "NAME;PRECOMPILED"
    "SRCS;KERNELS;EMULATED_SRCS;DEPS;LABELS" ${ARGN})
  if(ARG_WHOLE)
    set(whole WHOLE)
  endif()
  txl_emulated_sources(emulated
    KERNELS ${ARG_KERNELS} SOURCES ${ARG_EMULATED_SRCS})
  txl_emulated_deps(emulated_deps ${ARG_DEPS})
  txl_test(NAME ${ARG_NAME} ${whole}
    SRCS ${ARG_SRCS} ${emulated} DEPS ${emulated_deps}
    LABELS ${ARG_LABELS} FAST PRECOMPILED ${ARG_PRECOMPILED})
  if(TXL_CUDA)
    # WHOLE: nothing runs, and so nothing needs a device, before ctest does.
    txl_test(NAME ${ARG_NAME}_device WHOLE LABELS device
      SRCS ${ARG_SRCS} ${ARG_KERNELS}
        ${PROJECT_SOURCE_DIR}/tests/model/cuda/device_needed.cc
      DEPS ${ARG_DEPS})
    target_compile_definitions(${ARG_NAME}_device PRIVATE TXL_DEVICE_TEST)
    add_dependencies(device_suite ${ARG_NAME}_device)
  endif()
endfunction()

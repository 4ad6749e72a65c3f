# Device code. A kernel's source is compiled twice: by nvcc for the device, and
# by the C++ compiler for the CPU, where tests run it
# (model/cuda/device/kernel.h).
if(TXL_CUDA)
  # Machine code for A100 and H100/H200; the driver compiles the rest from PTX.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  find_package(CUDAToolkit REQUIRED)
endif()

# txl_kernels(NAME name SRCS a.cc ... KERNELS b.cu ... CUDA_SRCS c.cu ...
#             EMULATED_SRCS d.cc ... DEPS target ...)
# Libraries NAME_emulated and, with TXL_CUDA, NAME: SRCS and KERNELS in both,
# CUDA_SRCS and EMULATED_SRCS in one. DEPS are of both; another txl_kernels
# library among them is linked in the same kind.
function(txl_kernels)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;KERNELS;CUDA_SRCS;EMULATED_SRCS;DEPS" ${ARGN})
  foreach(kernel ${ARG_KERNELS})
    # A source has one language per folder: the C++ compiler gets a file that
    # includes it.
    set(wrapper ${CMAKE_CURRENT_BINARY_DIR}/emulated_${kernel}.cc)
    file(CONFIGURE OUTPUT ${wrapper} CONTENT
      "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${kernel}\"\n")
    list(APPEND wrappers ${wrapper})
  endforeach()
  foreach(dep ${ARG_DEPS})
    if(TARGET ${dep}_emulated)
      list(APPEND emulated_deps ${dep}_emulated)
    else()
      list(APPEND emulated_deps ${dep})
    endif()
  endforeach()
  txl_library(NAME ${ARG_NAME}_emulated
    SRCS ${ARG_SRCS} ${ARG_EMULATED_SRCS} ${wrappers} DEPS ${emulated_deps})
  if(TXL_CUDA)
    add_library(${ARG_NAME} STATIC
      ${ARG_SRCS} ${ARG_CUDA_SRCS} ${ARG_KERNELS})
    target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS} CUDA::cudart_static)
    target_include_directories(${ARG_NAME} PUBLIC ${PROJECT_SOURCE_DIR})
    target_compile_options(${ARG_NAME} PRIVATE
      $<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror>)
  endif()
endfunction()

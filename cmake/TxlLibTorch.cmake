# LibTorch: from the Python environment that deploy/setup.sh makes, or from
# -DCMAKE_PREFIX_PATH=..., its root or what torch.utils.cmake_prefix_path says.
# Its own CMake package is left alone: that of a LibTorch with CUDA asks for the
# development files of all CUDA libraries, and sets CUDA's flags for everybody.
file(GLOB TXL_SITE_PACKAGES
  ${PROJECT_SOURCE_DIR}/.deps/venv/lib/python3*/site-packages)
foreach(prefix ${CMAKE_PREFIX_PATH})
  list(APPEND torch_roots ${prefix} ${prefix}/../..)
endforeach()
list(APPEND torch_roots ${TXL_SITE_PACKAGES}/torch)
find_path(TXL_TORCH_INCLUDE torch/csrc/api/include/torch/torch.h REQUIRED
  HINTS ${torch_roots} PATH_SUFFIXES include)
cmake_path(GET TXL_TORCH_INCLUDE PARENT_PATH torch_root)
message(STATUS "LibTorch: ${torch_root}")

# Wheels before 2.7 have the C++ ABI of GCC 4, other libraries do not.
set(torch_config ${torch_root}/share/cmake/Torch/TorchConfig.cmake)
if(EXISTS ${torch_config})
  file(STRINGS ${torch_config} old_abi REGEX "_GLIBCXX_USE_CXX11_ABI=0")
  if(old_abi)
    message(FATAL_ERROR "${torch_root}: this LibTorch has the C++ ABI of GCC 4 "
      "and cannot be linked with gRPC and Abseil. Take a wheel of 2.7 or later, "
      "or of an earlier version PyTorch's archive \"cxx11-abi\".")
  endif()
endif()

# It carries an old copy of protobuf: no other package is looked for in it, and
# its headers are searched after the system's.
if(NOT torch_root IN_LIST CMAKE_SYSTEM_PREFIX_PATH)
  list(APPEND CMAKE_IGNORE_PREFIX_PATH ${torch_root})
endif()

add_library(txl_torch INTERFACE)
foreach(dir ${TXL_TORCH_INCLUDE} ${TXL_TORCH_INCLUDE}/torch/csrc/api/include)
  target_compile_options(txl_torch INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter ${dir}>")
endforeach()
# Includes name the operators that they need; all of them take 6 s to read.
target_compile_definitions(txl_torch INTERFACE AT_PER_OPERATOR_HEADERS)
foreach(name torch torch_cpu c10)
  find_library(TXL_LIB_${name} ${name} REQUIRED
    HINTS ${torch_root}/lib NO_DEFAULT_PATH)
endforeach()
# Nothing refers to libtorch.so, which loads what LibTorch has for devices.
target_link_libraries(txl_torch INTERFACE
  "-Wl,--no-as-needed,\"${TXL_LIB_torch}\" -Wl,--as-needed"
  ${TXL_LIB_torch} ${TXL_LIB_torch_cpu} ${TXL_LIB_c10} Threads::Threads)
if(EXISTS ${torch_root}/lib/libtorch_cuda.so)
  # The libraries of CUDA that it needs are found when a program starts.
  target_link_options(txl_torch INTERFACE
    -Wl,--unresolved-symbols=ignore-in-shared-libs)
endif()

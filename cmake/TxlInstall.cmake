# cmake --install build: the client library as the CMake package "txl"
# (component client) and the programs with LibTorch and the shipped model
# (component programs). It installs what is built: not everything has to be.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/txl)
# "client/client.h", "txl/v1/model_service.pb.h", as in the sources.
set(header_dir ${CMAKE_INSTALL_INCLUDEDIR}/txl)

set_target_properties(txl_client PROPERTIES EXPORT_NAME client)
set_target_properties(txl_proto PROPERTIES EXPORT_NAME proto)
install(TARGETS txl_client txl_proto EXPORT txl
  ARCHIVE COMPONENT client
  INCLUDES DESTINATION ${header_dir})
install(FILES ${TXL_CLIENT_HEADERS} DESTINATION ${header_dir}/client
  COMPONENT client)
install(DIRECTORY ${CMAKE_BINARY_DIR}/proto/txl DESTINATION ${header_dir}
  COMPONENT client FILES_MATCHING PATTERN "*.pb.h")
install(EXPORT txl NAMESPACE txl:: DESTINATION ${package_dir}
  FILE txlTargets.cmake COMPONENT client)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/txlConfig.cmake
  DESTINATION ${package_dir} COMPONENT client)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/txlConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/txlConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT client)

# Programs find LibTorch beside them, wherever the installed folder is moved to.
# One with CUDA needs gigabytes of CUDA's libraries and stays where it was found
# when the programs were built.
cmake_path(GET TXL_LIB_torch PARENT_PATH torch_folder)
set(private_dir lib/txl-server)
set(programs txl-server)
if(TXL_CONVERT)
  list(APPEND programs txl-model)
endif()
if(EXISTS ${torch_folder}/libtorch_cuda.so)
  set_target_properties(${programs} PROPERTIES INSTALL_RPATH ${torch_folder})
else()
  set_target_properties(${programs} PROPERTIES
    INSTALL_RPATH "$ORIGIN/../${private_dir}")
  file(GLOB openmp ${torch_folder}/libgomp*.so*)
  install(FILES ${TXL_LIB_torch} ${TXL_LIB_torch_cpu} ${TXL_LIB_c10} ${openmp}
    DESTINATION ${private_dir} COMPONENT programs)
endif()
install(TARGETS ${programs} txl RUNTIME COMPONENT programs)

# txl-server --model shakespeare (server/start_up.h).
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/shakespeare
  DESTINATION ${CMAKE_INSTALL_DATADIR}/txl/models COMPONENT programs)

# Manual pages and completions, which the programs print themselves. For zsh:
# source <(txl --completion zsh).
set(pages)
foreach(program txl ${programs})
  set(page ${CMAKE_BINARY_DIR}/pages/${program})
  add_custom_command(OUTPUT ${page}.1 ${page}.bash ${page}.fish
    COMMAND ${program} --man-page > ${page}.1
    COMMAND ${program} --completion bash > ${page}.bash
    COMMAND ${program} --completion fish > ${page}.fish
    DEPENDS ${program} VERBATIM)
  list(APPEND pages ${page}.1)
  install(FILES ${page}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
    COMPONENT programs)
  install(FILES ${page}.bash RENAME ${program} COMPONENT programs
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${page}.fish COMPONENT programs
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endforeach()
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/pages)
add_custom_target(txl_pages ALL DEPENDS ${pages})

# The API, for clients in other languages.
set(TXL_PROTO_FOLDERS
  ${PROJECT_SOURCE_DIR}/proto/txl ${PROJECT_SOURCE_DIR}/proto/grpc)
install(DIRECTORY ${TXL_PROTO_FOLDERS}
  DESTINATION ${CMAKE_INSTALL_DATADIR}/txl/proto COMPONENT client
  FILES_MATCHING PATTERN "*.proto")

# cpack -G DEB in the build folder, which deploy/package.sh calls: the Debian
# package has the component `programs`, and here what belongs to it alone. With
# the CUDA libraries of LibTorch there is none.
if(EXISTS ${torch_folder}/libtorch_cuda.so)
  return()
endif()
set(service_dir ${CMAKE_BINARY_DIR}/service)

# A file of deploy/systemd for programs in /usr/bin, which find LibTorch and the
# model by themselves.
function(txl_service_file name)
  set(source ${PROJECT_SOURCE_DIR}/deploy/systemd/${name})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(READ ${source} text)
  string(REPLACE "/opt/txl/bin/" "/usr/bin/" text "${text}")
  string(REPLACE "/opt/txl/share/" "/usr/share/doc/txl-server/" text "${text}")
  string(REPLACE "/opt/txl/model" "shakespeare" text "${text}")
  string(REPLACE "Environment=LD_LIBRARY_PATH=/opt/txl/lib\n" "" text "${text}")
  string(REPLACE "deploy/systemd/install.sh puts it into place; " "" text
    "${text}")
  file(WRITE ${service_dir}/${name} "${text}")
endfunction()
txl_service_file(txl-server.service)
txl_service_file(txl-server.env)

function(txl_package_files destination)
  install(FILES ${ARGN} DESTINATION ${destination}
    COMPONENT package EXCLUDE_FROM_ALL)
endfunction()
txl_package_files(lib/systemd/system ${service_dir}/txl-server.service)
txl_package_files(/etc/txl ${service_dir}/txl-server.env)
set(docs ${PROJECT_SOURCE_DIR}/docs)
txl_package_files(share/doc/txl-server ${docs}/deploying.md
  ${docs}/operating.md ${docs}/security.md ${docs}/settings.md ${PROJECT_SOURCE_DIR}/THIRD_PARTY.md
  ${PROJECT_SOURCE_DIR}/deploy/systemd/tls.conf)
install(DIRECTORY ${TXL_PROTO_FOLDERS} DESTINATION share/txl/proto
  COMPONENT package EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.proto")
# LibTorch's licence, and those of what is in it.
file(GLOB licences ${torch_folder}/../../torch-*.dist-info/licenses)
foreach(folder ${licences})
  install(DIRECTORY ${folder}/ DESTINATION share/doc/txl-server/libtorch
    COMPONENT package EXCLUDE_FROM_ALL)
endforeach()

set(CPACK_PACKAGE_NAME txl-server)
set(CPACK_PACKAGE_CONTACT "Maintainers of txl-server <txl-server@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "server for Transformer-XL language models")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
  WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL programs package)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${torch_folder})
# Debian 12's dpkg reads it, and LibTorch is unpacked in seconds.
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(debian ${PROJECT_SOURCE_DIR}/deploy/debian)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${debian}/conffiles ${debian}/postinst
  ${debian}/prerm ${debian}/postrm)
include(CPack)

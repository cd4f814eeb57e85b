# What an installation holds: the libraries with their public headers, a CMake package, and the SQL that
# checks fencing tokens.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/leasehold)

install(TARGETS leasehold_protocol leasehold_wire leasehold_actors leasehold_client
  EXPORT leaseholdTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(part protocol actors tools/client)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${part}/include/leasehold
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/sql/ DESTINATION ${CMAKE_INSTALL_DATADIR}/leasehold/sql
  FILES_MATCHING PATTERN *.sql)
install(EXPORT leaseholdTargets NAMESPACE leasehold:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/leaseholdConfig.cmake.in
  ${PROJECT_BINARY_DIR}/leaseholdConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/leaseholdConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/leaseholdConfig.cmake
  ${PROJECT_BINARY_DIR}/leaseholdConfigVersion.cmake ${PROJECT_SOURCE_DIR}/cmake/FindCAF.cmake
  DESTINATION ${package_dir})

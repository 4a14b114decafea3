# What goes to a prefix. libibverbs.so.1 lies in a folder of its own, so that a system-wide prefix never
# takes the place of the machine's real verbs library behind anybody's back: whoever wants it says so,
# by -L, LD_LIBRARY_PATH or `simverbs run`.
include(CMakePackageConfigHelpers)

set(SIMVERBS_IBVERBS_DIR ${CMAKE_INSTALL_LIBDIR}/simverbs)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/simverbs)

install(DIRECTORY include/simverbs DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(TARGETS simverbs_shared EXPORT simverbs_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS simverbs_rdmacm EXPORT simverbs_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS simverbs_scenario LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS simverbs_ibverbs EXPORT simverbs_targets LIBRARY DESTINATION ${SIMVERBS_IBVERBS_DIR})
install(TARGETS simverbs_devices LIBRARY DESTINATION ${SIMVERBS_IBVERBS_DIR})
if(TARGET simverbs_command)
    install(TARGETS simverbs_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(EXPORT simverbs_targets NAMESPACE simverbs:: DESTINATION ${package_dir})
configure_package_config_file(cmake/simverbs-config.cmake.in
    ${PROJECT_BINARY_DIR}/simverbs-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/simverbs-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/simverbs-config.cmake
              ${PROJECT_BINARY_DIR}/simverbs-config-version.cmake
        DESTINATION ${package_dir})

# Relative to itself, so that the prefix may be chosen at `cmake --install`.
file(RELATIVE_PATH SIMVERBS_PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(package simverbs simverbs-rdmacm)
    configure_file(cmake/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

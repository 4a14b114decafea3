# Rules of installation, by component: `library` (what programs of users load), `devel` (what builds
# them), `command`, `doc`; cmake/package.cmake makes a package of each. libibverbs.so.1 lies in a folder of
# its own, so that a system-wide prefix never takes the place of the machine's real verbs library: whoever
# wants it says so, by -L, LD_LIBRARY_PATH or `simverbs run`.
include(CMakePackageConfigHelpers)

set(SIMVERBS_IBVERBS_DIR ${CMAKE_INSTALL_LIBDIR}/simverbs)
set(SIMVERBS_DATA_DIR ${CMAKE_INSTALL_DATADIR}/simverbs)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/simverbs)

install(DIRECTORY include/simverbs DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT devel
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
foreach(target simverbs_shared simverbs_rdmacm)
    install(TARGETS ${target} EXPORT simverbs_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
            COMPONENT library NAMELINK_COMPONENT devel)
endforeach()
install(TARGETS simverbs_ibverbs EXPORT simverbs_targets LIBRARY DESTINATION ${SIMVERBS_IBVERBS_DIR}
        COMPONENT library NAMELINK_COMPONENT devel)
# Loaded by name, by libsimverbs.so.0 and by the command.
install(TARGETS simverbs_scenario simverbs_devices LIBRARY DESTINATION ${SIMVERBS_IBVERBS_DIR}
        COMPONENT command NAMELINK_SKIP)

if(TARGET simverbs_command)
    install(TARGETS simverbs_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
    install(DIRECTORY tutorials/ DESTINATION ${SIMVERBS_DATA_DIR}/tutorials COMPONENT command
            PATTERN lab EXCLUDE
            PATTERN examples EXCLUDE
            PATTERN CMakeLists.txt EXCLUDE)
    install(DIRECTORY tutorials/examples DESTINATION ${SIMVERBS_DATA_DIR}/tutorials
            COMPONENT command PATTERN __pycache__ EXCLUDE PATTERN steps EXCLUDE)
    install(PROGRAMS tutorials/examples/ci/steps
            DESTINATION ${SIMVERBS_DATA_DIR}/tutorials/examples/ci COMPONENT command)
    install(DIRECTORY scenarios/library scenarios/topologies
            DESTINATION ${SIMVERBS_DATA_DIR}/scenarios COMPONENT command)
endif()
if(TARGET simverbs_command)
    set(completion simverbs/cli/completion)
    install(FILES ${completion}/simverbs.bash COMPONENT command RENAME simverbs
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${completion}/simverbs.zsh COMPONENT command RENAME _simverbs
            DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
    install(FILES ${completion}/simverbs.fish COMPONENT command
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
if(TARGET scenario_schema)
    install(FILES ${PROJECT_BINARY_DIR}/${SIMVERBS_DATA}/scenario.schema.json
            DESTINATION ${SIMVERBS_DATA_DIR} COMPONENT command)
endif()

# Documents keep their places beside each other, so that the links between them work.
file(GLOB_RECURSE documents RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
     cmake/*.md fabric/*.md include/*.md scenarios/*.md simverbs/*.md tests/*.md tests/*.svg tutorials/*.md
     viz/*.md)
foreach(document README.md CHANGELOG.md LICENSE ${documents})
    cmake_path(GET document PARENT_PATH folder)
    install(FILES ${document} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder} COMPONENT doc)
endforeach()

install(EXPORT simverbs_targets NAMESPACE simverbs:: DESTINATION ${package_dir} COMPONENT devel)
configure_package_config_file(cmake/simverbs-config.cmake.in
    ${PROJECT_BINARY_DIR}/simverbs-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/simverbs-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/simverbs-config.cmake
              ${PROJECT_BINARY_DIR}/simverbs-config-version.cmake
        DESTINATION ${package_dir} COMPONENT devel)

# Relative to itself, so that the prefix may be chosen at `cmake --install`.
file(RELATIVE_PATH SIMVERBS_PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(package simverbs simverbs-rdmacm)
    configure_file(cmake/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${package}.pc
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT devel)
endforeach()

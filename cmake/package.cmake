# Packages: `cpack` in a build directory, or `./dev package`. TGZ is the installed tree as one archive that
# works from any folder. DEB makes a Debian package of each component; cmake/debian adds what Debian's
# policy asks for.
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME simverbs)
set(CPACK_PACKAGE_VENDOR "the simverbs authors")
set(CPACK_PACKAGE_CONTACT "simverbs authors <simverbs@simverbs.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_FILE_NAME simverbs-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/debian/version.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian/finish.cmake)
set(CPACK_SIMVERBS_SOURCE_DIR ${PROJECT_SOURCE_DIR})
set(CPACK_SIMVERBS_LIBDIR ${CMAKE_INSTALL_LIBDIR})
set(CPACK_SIMVERBS_SIZEOF_POINTER ${CMAKE_SIZEOF_VOID_P})

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SOURCE simverbs)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
if(CMAKE_CROSSCOMPILING AND CMAKE_LIBRARY_ARCHITECTURE MATCHES "^aarch64-")
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()

# A package: the component, its name and section, then what CPACK_DEBIAN_<COMPONENT>_PACKAGE_* takes. The
# description is the rest: a line, then the long text.
function(simverbs_debian_package component name section)
    cmake_parse_arguments(ARG "" "ARCHITECTURE;MULTIARCH;SUMMARY;DESCRIPTION"
                          "DEPENDS;RECOMMENDS;SUGGESTS;CONTROL" ${ARGN})
    string(TOUPPER ${component} id)
    foreach(relation DEPENDS RECOMMENDS SUGGESTS)
        list(JOIN ARG_${relation} ", " value)
        set(CPACK_DEBIAN_${id}_PACKAGE_${relation} "${value}" PARENT_SCOPE)
    endforeach()
    if(ARG_MULTIARCH)
        string(APPEND section "\nMulti-Arch: ${ARG_MULTIARCH}")  # CPack 3.25 has no variable for it
    endif()
    set(CPACK_DEBIAN_${id}_PACKAGE_NAME ${name} PARENT_SCOPE)
    set(CPACK_DEBIAN_${id}_PACKAGE_SECTION "${section}" PARENT_SCOPE)
    set(CPACK_DEBIAN_${id}_PACKAGE_CONTROL_EXTRA "${ARG_CONTROL}" PARENT_SCOPE)
    set(CPACK_DEBIAN_${id}_DESCRIPTION "${ARG_SUMMARY}\n${ARG_DESCRIPTION}" PARENT_SCOPE)
    if(ARG_ARCHITECTURE)
        set(CPACK_DEBIAN_${id}_PACKAGE_ARCHITECTURE ${ARG_ARCHITECTURE} PARENT_SCOPE)
    endif()
endfunction()

set(about "simverbs is a drop-in libibverbs.so.1 whose RDMA devices are simulated: code
written for verbs runs, is tested and is taught without hardware, a kernel
module or root. Host channel adapters are wired by links and switches and
exchange packets in virtual time, so that the same program, scenario and seed
give the same run.
.")

# @VERSION@ is the version of the package, which version.cmake knows.
simverbs_debian_package(library libsimverbs0 libs MULTIARCH same
    RECOMMENDS "simverbs (= @VERSION@)"
    CONTROL ${PROJECT_SOURCE_DIR}/cmake/debian/triggers
    SUMMARY "verbs of simulated RDMA devices - libraries"
    DESCRIPTION "${about}
This package has the libraries that programs load. Its libibverbs.so.1 lies in
a private folder: the verbs library of the machine stays in use for all
programs that do not ask for this one.")

simverbs_debian_package(devel libsimverbs-dev libdevel MULTIARCH same
    DEPENDS "libsimverbs0 (= @VERSION@)" libibverbs-dev
    RECOMMENDS "simverbs (= @VERSION@)" libgmock-dev libgtest-dev
    SUGGESTS libboost-fiber-dev librdmacm-dev pkg-config "simverbs-doc (= @VERSION@)"
    SUMMARY "verbs of simulated RDMA devices - development files"
    DESCRIPTION "${about}
This package has the headers of the control API, matchers and fixtures for
GoogleTest, and the files by which CMake (find_package) and pkg-config find the
library.")

simverbs_debian_package(command simverbs net
    DEPENDS "libsimverbs0 (= @VERSION@)"
    RECOMMENDS graphviz "libsimverbs-dev (= @VERSION@)" "gcc | c-compiler"
    SUGGESTS ibverbs-utils infiniband-diags perftest python3-pyverbs
             "simverbs-doc (= @VERSION@)" tshark
    SUMMARY "RDMA programs on a simulated fabric, with faults by scenario"
    DESCRIPTION "${about}
This package has the command simverbs, which runs unmodified programs on the
hosts of a simulated fabric, replays scenarios of failures, explains and draws
what happened, and checks exercises. Scenarios, topologies and exercises come
with it.")

simverbs_debian_package(doc simverbs-doc doc ARCHITECTURE all MULTIARCH foreign
    SUMMARY "verbs of simulated RDMA devices - documentation"
    DESCRIPTION "${about}
This package has the documents: how to use simverbs, and how it is made.")

simverbs_debian_package(python python3-simverbs python
    DEPENDS "libsimverbs0 (= @VERSION@)" python3:any
    RECOMMENDS python3-pytest python3-pyverbs "simverbs (= @VERSION@)"
    SUMMARY "verbs of simulated RDMA devices - Python 3"
    DESCRIPTION "${about}
This package has the Python module simverbs and its plugin of pytest.")

# Only components that this build installs. A file of no component would be in no package.
get_cmake_property(installed COMPONENTS)
set(CPACK_COMPONENTS_ALL)
foreach(component IN LISTS installed)
    if(NOT component MATCHES "^(library|devel|command|doc|python)$")
        message(FATAL_ERROR "install(): COMPONENT ${component} belongs to no package: see cmake/package.cmake")
    endif()
    list(APPEND CPACK_COMPONENTS_ALL ${component})
endforeach()
include(CPack)

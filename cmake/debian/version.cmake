# Read by cpack before it packs: the version of Debian packages. As long as CHANGELOG.md calls the version
# not yet released it is 0.1.0~git and the time of the last commit, which sorts before 0.1.0 and after
# what was built from an older commit. SIMVERBS_PACKAGE_VERSION sets another: cpack -D.
set(source ${CPACK_SIMVERBS_SOURCE_DIR})
execute_process(COMMAND git -c safe.directory=* -C ${source} log -1 --format=%ct
    OUTPUT_VARIABLE changed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT changed)  # an archive of the sources
    file(TIMESTAMP ${source}/CHANGELOG.md changed %s UTC)
endif()
# The date of the Debian changelog.
set(ENV{SOURCE_DATE_EPOCH} ${changed})

if(SIMVERBS_PACKAGE_VERSION)
    set(SIMVERBS_UPSTREAM_VERSION ${SIMVERBS_PACKAGE_VERSION})
else()
    set(SIMVERBS_UPSTREAM_VERSION ${CPACK_PACKAGE_VERSION})
    file(STRINGS ${source}/CHANGELOG.md unreleased REGEX "^## ${CPACK_PACKAGE_VERSION} \\(not yet released\\)")
    if(unreleased)
        string(TIMESTAMP at %Y%m%d%H%M%S UTC)
        string(APPEND SIMVERBS_UPSTREAM_VERSION ~git${at})
    endif()
endif()
# The authors' revision sorts before those of a distribution, which begin at 1.
set(CPACK_DEBIAN_PACKAGE_VERSION ${SIMVERBS_UPSTREAM_VERSION}-1~authors)

# Each package has a summary of its own, which CPack would put behind this one.
if(CPACK_GENERATOR STREQUAL "DEB")
    set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
endif()

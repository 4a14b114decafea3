# Read by cpack when a component's files are in place and before they are packed: adds to Debian packages
# what policy asks for and what dpkg's tools find out, which CPack 3.25 has no variables for.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
    return()
endif()
set(here ${CPACK_SIMVERBS_SOURCE_DIR}/cmake/debian)
set(work ${CPACK_TOPLEVEL_DIRECTORY}/debian)  # dpkg's tools look for debian/ where they run
set(version ${CPACK_DEBIAN_PACKAGE_VERSION})
set(library_folder ${CPACK_TEMPORARY_DIRECTORY}/library/usr/${CPACK_SIMVERBS_LIBDIR})
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})

function(run output)
    execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${CPACK_TOPLEVEL_DIRECTORY} OUTPUT_VARIABLE text
                    ERROR_VARIABLE errors RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "${ARGN}: ${status}\n${errors}")
    endif()
    set(${output} "${text}" PARENT_SCOPE)
endfunction()

function(compressed file)
    run(ignored gzip -9nf ${file})
endfunction()

function(write_documents folder package)
    set(documents ${folder}/usr/share/doc/${package})
    file(REMOVE ${documents}/LICENSE)  # says what copyright says
    file(COPY ${here}/copyright DESTINATION ${documents} FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
    configure_file(${CPACK_SIMVERBS_SOURCE_DIR}/CHANGELOG.md ${documents}/changelog COPYONLY)
    string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
    file(WRITE ${documents}/changelog.Debian "simverbs (${version}) unstable; urgency=medium\n\n"
         "  * Built from the sources of simverbs. changelog.gz has what is new.\n\n"
         " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
    compressed(${documents}/changelog)
    compressed(${documents}/changelog.Debian)
    if(EXISTS ${here}/${package}.lintian-overrides)
        configure_file(${here}/${package}.lintian-overrides
                       ${folder}/usr/share/lintian/overrides/${package} COPYONLY)
    endif()
endfunction()

function(compress_manual folder)
    file(GLOB_RECURSE pages ${folder}/usr/share/man/*)
    foreach(page IN LISTS pages)
        compressed(${page})
    endforeach()
endfunction()

# In these packages the loader finds everything without a RUNPATH, which policy does not want.
function(remove_runpaths folder output)
    file(GLOB_RECURSE files ${folder}/usr/bin/* ${folder}/usr/lib/*)
    set(binaries)
    foreach(file IN LISTS files)
        if(IS_SYMLINK ${file})
            continue()
        endif()
        file(READ ${file} magic LIMIT 4 HEX)
        if(magic STREQUAL "7f454c46")  # ELF
            file(RPATH_REMOVE FILE ${file})
            list(APPEND binaries ${file})
        endif()
    endforeach()
    set(${output} ${binaries} PARENT_SCOPE)
endfunction()

# Which version of libsimverbs0 a program needs that uses a function. A function is taken to be as
# new as the package itself until a version has been released.
run(symbols dpkg-gensymbols -q -c0 -plibsimverbs0 -v${SIMVERBS_UPSTREAM_VERSION}
    -I${here}/libsimverbs0.symbols -O${work}/symbols
    -e${library_folder}/libsimverbs.so.0 -e${library_folder}/libsimverbs-rdmacm.so.0)
file(WRITE ${work}/shlibs "libsimverbs 0 libsimverbs0 (>= ${SIMVERBS_UPSTREAM_VERSION})\n"
     "libsimverbs-rdmacm 0 libsimverbs0 (>= ${SIMVERBS_UPSTREAM_VERSION})\n")
file(COPY_FILE ${work}/shlibs ${work}/shlibs.local)
list(APPEND CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${work}/symbols ${work}/shlibs)
file(WRITE ${work}/control "Source: simverbs\n\nPackage: simverbs\nArchitecture: any\n")

foreach(script postinst prerm)
    configure_file(${here}/python3-simverbs.${script} ${work}/python/${script} COPYONLY)
    list(APPEND CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${work}/python/${script})
endforeach()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
    string(TOUPPER ${component} id)
    set(folder ${CPACK_TEMPORARY_DIRECTORY}/${component})
    write_documents(${folder} ${CPACK_DEBIAN_${id}_PACKAGE_NAME})
    compress_manual(${folder})
    foreach(relation DEPENDS RECOMMENDS SUGGESTS)
        string(REPLACE "@VERSION@" "${version}" CPACK_DEBIAN_${id}_PACKAGE_${relation}
               "${CPACK_DEBIAN_${id}_PACKAGE_${relation}}")
    endforeach()
    remove_runpaths(${folder} binaries)
    if(binaries)
        run(needed dpkg-shlibdeps -O -xlibsimverbs0 -l${library_folder} ${binaries})
        string(REGEX REPLACE "^.*Depends=" "" needed "${needed}")
        if(CPACK_DEBIAN_${id}_PACKAGE_DEPENDS)
            string(APPEND needed ", ${CPACK_DEBIAN_${id}_PACKAGE_DEPENDS}")
        endif()
        set(CPACK_DEBIAN_${id}_PACKAGE_DEPENDS "${needed}")
    endif()
endforeach()

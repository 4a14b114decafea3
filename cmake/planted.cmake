# simverbs_planted_library(TARGET SOURCE): a libsimverbs.so.0 with a planted bug, in the folder
# planted/TARGET of the build. SOURCE has the place of a source of the product that is compiled
# alone (simverbs_compile_alone), and is linked before the one in the archive. All else is the
# product. A program that is started with it in LD_PRELOAD has the bug.
function(simverbs_planted_library target source)
    set(abi_dir ${PROJECT_BINARY_DIR}/generated/simverbs/abi)
    add_library(${target} SHARED ${source} $<TARGET_OBJECTS:simverbs_shared>)
    target_link_libraries(${target} PRIVATE simverbs_abi_static simverbs_driver)
    target_link_options(${target} PRIVATE
        LINKER:--version-script=${abi_dir}/libsimverbs.map ${abi_dir}/aliases.ld)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME simverbs SOVERSION 0
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/planted/${target})
    add_dependencies(${target} abi_symbols)
endfunction()

# simverbs_plant(TARGET SOURCE RIGHT WRONG): such a library whose bug is one text of a source of the
# product, RIGHT, replaced by WRONG. RIGHT must stand in it exactly once.
function(simverbs_plant target source right wrong)
    file(READ ${PROJECT_SOURCE_DIR}/${source} text)
    string(REPLACE "${right}" "" without "${text}")
    string(LENGTH "${text}" length)
    string(LENGTH "${without}" length_without)
    string(LENGTH "${right}" expected)
    math(EXPR removed "${length} - ${length_without}")
    if(NOT removed EQUAL expected)
        message(FATAL_ERROR "${source} has '${right}' not once: ${target} needs another place")
    endif()
    string(REPLACE "${right}" "${wrong}" planted "${text}")
    cmake_path(GET source FILENAME name)
    set(file ${PROJECT_BINARY_DIR}/generated/planted/${target}/${name})
    file(CONFIGURE OUTPUT ${file} CONTENT "${planted}" @ONLY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${source})
    simverbs_planted_library(${target} ${file})
endfunction()

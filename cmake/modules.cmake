# One static target a folder, named after its path: simverbs_module(fabric/core event_loop.cpp) makes
# `fabric_core`. tests/house refuses an #include that the arrows of DESIGN section 3 do not have.
add_library(simverbs_options INTERFACE)
target_include_directories(simverbs_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_options(simverbs_options INTERFACE
    -ftls-model=initial-exec  # a few words; a call for each use would cost more than what it guards
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-missing-field-initializers
    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
    # The macro ibv_reg_mr of rdma-core adds values of two enums.
    $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-enum-enum-conversion>
    $<$<BOOL:${SIMVERBS_WERROR}>:-Werror>)

function(simverbs_module path)
    cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
    string(REPLACE "/" "_" target ${path})
    if(ARG_SOURCES)
        add_library(${target} STATIC ${ARG_SOURCES})
        target_link_libraries(${target} PUBLIC simverbs_options ${ARG_DEPENDS})
    else()
        add_library(${target} INTERFACE)
        target_link_libraries(${target} INTERFACE simverbs_options ${ARG_DEPENDS})
    endif()
endfunction()

# Keeps sources of this folder out of unity builds, most of them because another file of the folder
# has the same local names.
function(simverbs_compile_alone)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# What `ctest -L unit` runs, for builds that need no more (sanitizers).
add_custom_target(unit_tests)

# Registers a test program as so many ctests, each of which runs a share of its tests in one process.
function(simverbs_sharded_test name shards labels cost)
    math(EXPR last "${shards} - 1")
    foreach(shard RANGE ${last})
        add_test(NAME ${name}.shard_${shard} COMMAND ${name} --gtest_brief=1)
        set_tests_properties(${name}.shard_${shard} PROPERTIES LABELS "${labels}" COST "${cost}"
            ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}")
    endforeach()
endfunction()

# A GoogleTest program: every test of it is a ctest of its own, so that one run names each failure,
# unless SIMVERBS_TEST_SHARDS says into how many ctests to divide it (a sanitized program needs half
# a second to begin and end). GoogleTest's headers, most of what a compiler reads of a small test,
# are compiled once. COST, in seconds, is for shares that take long under sanitizers: what costs most
# begins first, so that no processor waits for it at the end.
function(simverbs_test name)
    cmake_parse_arguments(ARG "" "COST" "SOURCES;DEPENDS;LABELS" ${ARGN})
    if(NOT TARGET test_headers)
        file(CONFIGURE OUTPUT test_headers.cpp CONTENT "")
        add_executable(test_headers EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/test_headers.cpp)
        target_link_libraries(test_headers PRIVATE simverbs_options GTest::gmock GTest::gtest_main)
        target_precompile_headers(test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
    endif()
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
    target_precompile_headers(${name} REUSE_FROM test_headers)
    if(SIMVERBS_TEST_SHARDS)
        simverbs_sharded_test(${name} ${SIMVERBS_TEST_SHARDS} "${ARG_LABELS}" "0${ARG_COST}")
    else()
        include(GoogleTest)
        gtest_discover_tests(${name} TEST_PREFIX "${name}." PROPERTIES LABELS "${ARG_LABELS}"
                             DISCOVERY_MODE PRE_TEST)
    endif()
    if("unit" IN_LIST ARG_LABELS)
        add_dependencies(unit_tests ${name})
    endif()
endfunction()

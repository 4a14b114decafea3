# Makes everything that depends on the set of exported symbols from symbols.list. A CMake script, because
# CMake is the one interpreter that whoever builds simverbs is certain to have.
#
#   cmake -DLIST=symbols.list -DOUTPUT=<folder> -DOLDEST_LIBC=<version> -P generate.cmake
#
#   trampolines.S       libibverbs.so.1: each symbol@version is one jump into libsimverbs.so.0
#   libibverbs.map      its version script
#   aliases.ld          libsimverbs.so.0: ibv_x = simverbs_abi_ibv_x (an input of the linker)
#   libsimverbs.map     its version script
#   entry_points.hpp    prototypes, with the types of verbs.h: a definition that differs does not compile
#   refusals.inc        one row a symbol that is refused, for refused.cpp
#
# A malformed row is an error that names its line.
cmake_minimum_required(VERSION 3.25)

set(groups verbs provider newer legacy private)
set(answers own refuse-errno refuse-null refuse-minus ignore)
set(private_nodes IBVERBS_PRIVATE_34 IBVERBS_PRIVATE_57 IBVERBS_PRIVATE_59 IBVERBS_PRIVATE_64
                  IBVERBS_PRIVATE_65)
set(banner "Generated from simverbs/abi/symbols/symbols.list. Do not edit.")

set(nodes "")
set(public_nodes "")
set(trampolines "")
set(aliases "")
set(prototypes "")
set(refusals "")
set(label 0)

function(fail line_number message)
    message(FATAL_ERROR "${LIST}:${line_number}: ${message}")
endfunction()

# NODES of a row -> a CMake list of "@@NODE" and "@NODE".
function(expand_nodes spec out)
    if(spec STREQUAL "PRIVATE")
        set(expanded "")
        set(at "@@")
        foreach(node IN LISTS private_nodes)
            list(APPEND expanded "${at}${node}")
            set(at "@")
        endforeach()
    else()
        string(REPLACE "," ";" expanded "${spec}")
    endif()
    set(${out} "${expanded}" PARENT_SCOPE)
endfunction()

# The function of libsimverbs.so.0 that answers a symbol: legacy symbols share their name with today's;
# underscores in front are dropped, since two in a row are reserved in C++.
function(target_of symbol group out)
    string(REGEX REPLACE "^_+" "" symbol "${symbol}")
    if(group STREQUAL "legacy")
        set(${out} "simverbs_abi_legacy_${symbol}" PARENT_SCOPE)
    else()
        set(${out} "simverbs_abi_${symbol}" PARENT_SCOPE)
    endif()
endfunction()

macro(add_node line_number name predecessor)
    if(NOT "${predecessor}" STREQUAL "" AND NOT "${predecessor}" IN_LIST nodes)
        fail(${line_number} "node ${name} follows the unknown node ${predecessor}")
    endif()
    list(APPEND nodes ${name})
    set(predecessor_of_${name} "${predecessor}")
    set(symbols_of_${name} "")
    set(aliases_of_${name} "")
endmacro()

macro(add_symbol line_number symbol spec group answer)
    if(NOT "${group}" IN_LIST groups)
        fail(${line_number} "unknown group '${group}'")
    endif()
    expand_nodes("${spec}" versions)
    target_of(${symbol} ${group} target)
    foreach(version IN LISTS versions)
        string(REGEX MATCH "^@@?" at "${version}")
        string(REGEX REPLACE "^@@?" "" node "${version}")
        if(at STREQUAL "" OR NOT node IN_LIST nodes)
            fail(${line_number} "'${version}' is no node")
        endif()
        string(APPEND symbols_of_${node} "        ${symbol};\n")
        math(EXPR label "${label} + 1")
        if("${answer}" MATCHES "^data:([0-9]+)$")
            string(APPEND trampolines
                   "data simverbs_t${label}, \"${symbol}${version}\", ${CMAKE_MATCH_1}\n")
        elseif("${answer}" IN_LIST answers)
            string(APPEND trampolines
                   "trampoline simverbs_t${label}, \"${symbol}${version}\", ${target}\n")
        else()
            fail(${line_number} "unknown answer '${answer}'")
        endif()
        if("${group}" MATCHES "^(verbs|provider|newer)$" AND at STREQUAL "@@")
            string(APPEND aliases "${symbol} = ${target};\n")
            string(APPEND aliases_of_${node} "        ${symbol};\n")
        endif()
    endforeach()
    if("${answer}" STREQUAL "own" AND "${group}" STREQUAL "verbs")
        string(APPEND prototypes "SIMVERBS_ABI decltype(::${symbol}) ${target};\n")
    elseif("${answer}" MATCHES "^(refuse-(errno|null|minus)|ignore)$")
        string(TOUPPER "${answer}" verdict)
        string(REPLACE "-" "_" verdict "${verdict}")
        string(APPEND refusals "SIMVERBS_${verdict}(${target}, \"${symbol}\")\n")
    endif()
endmacro()

# A function of libc that a program is to find here first. libibverbs.so.1 has it without a version, so that
# it serves references to any version of it, and so that a program that was linked here asks no other
# libibverbs for it. libsimverbs.so.0 has it with the version that programs of today refer to, which is never
# older than the first libc of the architecture.
set(interposed_nodes "")
macro(interpose symbol version)
    set(node "${version}")
    if(node MATCHES "^GLIBC_(.*)" AND CMAKE_MATCH_1 VERSION_LESS OLDEST_LIBC)
        set(node "GLIBC_${OLDEST_LIBC}")
    endif()
    math(EXPR label "${label} + 1")
    string(APPEND trampolines "interposed ${symbol}, simverbs_abi_${symbol}\n")
    string(APPEND aliases "${symbol} = simverbs_abi_${symbol};\n")
    string(APPEND interposed_of_${node} "        ${symbol};\n")
    if(NOT "${node}" IN_LIST interposed_nodes)
        list(APPEND interposed_nodes "${node}")
    endif()
endmacro()

file(STRINGS "${LIST}" lines)
set(line_number 0)
foreach(line IN LISTS lines)
    math(EXPR line_number "${line_number} + 1")
    string(REGEX REPLACE "#.*" "" line "${line}")
    string(REGEX MATCHALL "[^ \t]+" words "${line}")
    list(LENGTH words count)
    if(count EQUAL 0)
        continue()
    endif()
    list(APPEND words "" "")
    list(GET words 0 first)
    list(GET words 1 second)
    list(GET words 2 third)
    list(GET words 3 fourth)
    if(first STREQUAL "interpose" AND count EQUAL 3)
        interpose("${second}" "${third}")
    elseif(first STREQUAL "node" AND count LESS 4)
        add_node(${line_number} "${second}" "${third}")
    elseif(count EQUAL 4)
        add_symbol(${line_number} "${first}" "${second}" "${third}" "${fourth}")
    else()
        fail(${line_number} "expected: symbol NODES GROUP ANSWER")
    endif()
endforeach()

set(verbs_map "/* ${banner} */\n")
set(simverbs_map "/* ${banner} */\nSIMVERBS_0 {\n    global:\n        simverbs_*;\n    local:\n        *;\n};\n")
set(public_predecessor "")
foreach(node IN LISTS nodes)
    string(APPEND verbs_map "${node} {\n    global:\n${symbols_of_${node}}")
    if(node STREQUAL "IBVERBS_1.0")
        string(APPEND verbs_map "    local:\n        simverbs_t*;\n")
    endif()
    string(APPEND verbs_map "} ${predecessor_of_${node}};\n")
    if(NOT "${aliases_of_${node}}" STREQUAL "")
        string(APPEND simverbs_map
               "${node} {\n    global:\n${aliases_of_${node}}} ${predecessor_of_${node}};\n")
    endif()
endforeach()

foreach(node IN LISTS interposed_nodes)
    string(APPEND simverbs_map "${node} {\n    global:\n${interposed_of_${node}}};\n")
endforeach()

# Only what changed is written, so that a comment in the list rebuilds nothing.
function(emit name text)
    set(path "${OUTPUT}/${name}")
    if(EXISTS "${path}")
        file(READ "${path}" before)
    endif()
    if(NOT "${before}" STREQUAL "${text}")
        file(WRITE "${path}" "${text}")
    endif()
endfunction()

emit(trampolines.S "/* ${banner} */\n#include \"simverbs/abi/symbols/trampoline.inc\"\n\n${trampolines}")
emit(libibverbs.map "${verbs_map}")
emit(aliases.ld "/* ${banner} */\n${aliases}")
emit(libsimverbs.map "${simverbs_map}")
emit(refusals.inc "// ${banner}\n${refusals}")
emit(entry_points.hpp "// ${banner}\n#pragma once\n\n#include <infiniband/verbs.h>\n\n\
#include \"simverbs/abi/export.hpp\"\n\n${prototypes}")

# Files that the command reads, in the same place beside it as built and as installed: exercises of
# `simverbs lab`, headers of programs, scenarios and topologies.
if(NOT TARGET simverbs_command)
    return()
endif()
set(SIMVERBS_DATA share/simverbs)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/${SIMVERBS_DATA}/scenarios)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include SYMBOLIC)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/tutorials ${PROJECT_BINARY_DIR}/${SIMVERBS_DATA}/tutorials SYMBOLIC)
foreach(folder library topologies)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/scenarios/${folder}
         ${PROJECT_BINARY_DIR}/${SIMVERBS_DATA}/scenarios/${folder} SYMBOLIC)
endforeach()

# The keys of scenarios, for editors. A build for another processor needs an emulator for it.
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
    set(schema ${PROJECT_BINARY_DIR}/${SIMVERBS_DATA}/scenario.schema.json)
    add_custom_command(OUTPUT ${schema}
        COMMAND simverbs_command scenario --schema > ${schema}
        DEPENDS simverbs_command VERBATIM COMMENT "Schema of scenarios")
    add_custom_target(scenario_schema ALL DEPENDS ${schema})
endif()

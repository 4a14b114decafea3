# Exercises, beside the command as built and as installed: `simverbs lab` finds them, and the headers
# of programs, by the same way from where it lies.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/simverbs)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/tutorials ${PROJECT_BINARY_DIR}/share/simverbs/tutorials SYMBOLIC)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include SYMBOLIC)

install(DIRECTORY tutorials/ DESTINATION ${CMAKE_INSTALL_DATADIR}/simverbs/tutorials
        PATTERN lab EXCLUDE
        PATTERN CMakeLists.txt EXCLUDE)

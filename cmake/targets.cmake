# The names that find_package(simverbs) gives, for projects that have simverbs as a folder of their own
# (FetchContent, add_subdirectory).
add_library(simverbs::ibverbs ALIAS simverbs_ibverbs)
add_library(simverbs::rdmacm ALIAS simverbs_rdmacm)
# The library loads libsimverbs-scenario.so when a test asks why a completion failed. Nothing links
# that file, so that only this target builds it.
add_library(simverbs_with_explanations INTERFACE)
target_link_libraries(simverbs_with_explanations INTERFACE simverbs_shared)
add_dependencies(simverbs_with_explanations simverbs_scenario)
add_library(simverbs::simverbs ALIAS simverbs_with_explanations)

#include "simverbs/abi/control_names.hpp"

#include "simverbs/faults/named.hpp"

namespace simverbs::abi {

fabric::Link* find_link(driver::EmbeddedWorld& world, const char* function, const char* name) {
    return simverbs::find_link(world.simulation(), function, name, last_error());
}

fabric::LinkDirection* find_direction(fabric::Link& link, const char* function,
                                      const char* from_node) {
    return simverbs::find_direction(link, function, from_node, last_error());
}

Hca* find_device(driver::EmbeddedWorld& world, const char* function, const char* node) {
    return simverbs::find_device(world.simulation(), function, node, last_error());
}

simverbs::QueuePair* find_queue_pair(const Hca& hca, const char* function, std::uint32_t qp_num) {
    return simverbs::find_queue_pair(hca, function, qp_num, last_error());
}

}  // namespace simverbs::abi

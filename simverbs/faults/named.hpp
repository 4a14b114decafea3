// Names that people give, turned into what they name, or into words about what there is instead.
#pragma once

#include <cstdint>

#include "fabric/core/outcome.hpp"
#include "fabric/net/link.hpp"

#include "simverbs/faults/fault_environment.hpp"
#include "simverbs/hca/hca.hpp"

namespace simverbs {

// "" for NULL.
inline const char* text_of(const char* name) {
    return name == nullptr ? "" : name;
}

// Never nullptr. `what` says in a failure who asks, and for which of its parameters.
fabric::Outcome<fabric::Link*> find_link(FaultEnvironment& environment, const char* what,
                                         const char* name);
fabric::Outcome<fabric::LinkDirection*> find_direction(fabric::Link& link, const char* what,
                                                       const char* from_node);
fabric::Outcome<Hca*> find_device(FaultEnvironment& environment, const char* what,
                                  const char* node);
fabric::Outcome<QueuePair*> find_queue_pair(const Hca& hca, const char* what, std::uint32_t qp_num);

}  // namespace simverbs

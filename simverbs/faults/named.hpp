// Names that people give, turned into what they name; where there is nothing of that name, `why`
// says what there is.
#pragma once

#include <cstdint>
#include <string>

#include "fabric/net/link.hpp"

#include "simverbs/faults/fault_environment.hpp"
#include "simverbs/hca/hca.hpp"

namespace simverbs {

// "" for NULL.
inline const char* text_of(const char* name) {
    return name == nullptr ? "" : name;
}

// nullptr: there is none. `what` says in `why` who asks, and for which of its parameters.
fabric::Link* find_link(FaultEnvironment& environment, const char* what, const char* name,
                        std::string& why);
fabric::LinkDirection* find_direction(fabric::Link& link, const char* what, const char* from_node,
                                      std::string& why);
Hca* find_device(FaultEnvironment& environment, const char* what, const char* node,
                 std::string& why);
QueuePair* find_queue_pair(const Hca& hca, const char* what, std::uint32_t qp_num,
                           std::string& why);

}  // namespace simverbs

// Names of the control API turned into what they name; an error says what there is.
#pragma once

#include <cstdint>

#include "simverbs/abi/control.hpp"

namespace simverbs::abi {

// nullptr, with the reason kept for simverbs_last_error: there is none. `function` says who asks,
// and for which of its parameters.
fabric::Link* find_link(driver::EmbeddedWorld& world, const char* function, const char* name);
fabric::LinkDirection* find_direction(fabric::Link& link, const char* function,
                                      const char* from_node);
Hca* find_device(driver::EmbeddedWorld& world, const char* function, const char* node);
simverbs::QueuePair* find_queue_pair(const Hca& hca, const char* function, std::uint32_t qp_num);

}  // namespace simverbs::abi

// A REQ or a SIDR_REQ that has arrived, as rdma_cm reads it: the fields that both have. Each takes
// an event of one of these two messages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simverbs/cm/parameters.hpp"
#include "simverbs/rdma_cm/port_space.hpp"
#include "simverbs/rdma_cm/rdma_event.hpp"

namespace simverbs::rdma_cm {

// Returns nullptr for a SIDR_REQ.
const cm::Req* as_req(const cm::CmEvent& request);

std::uint64_t service_id_of(const cm::CmEvent& request);
std::uint16_t pkey_of(const cm::CmEvent& request);
// Returns the private data, with the header of rdma_cm where there is one.
const cm::PrivateData& private_data_of(const cm::CmEvent& request);
// Returns the type of the queue pair that accepts it.
QpType accepting_type(const cm::CmEvent& request);

// Returns the event that reports it, without the first bytes of the private data.
RdmaEvent request_event(const cm::CmEvent& request, std::size_t header_bytes);

}  // namespace simverbs::rdma_cm

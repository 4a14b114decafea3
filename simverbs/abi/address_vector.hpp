// struct ibv_ah_attr and the device's own form of it.
#pragma once

#include <infiniband/verbs.h>

#include "simverbs/driver/channel.hpp"

namespace simverbs::abi {

AddressVector to_address_vector(const ibv_ah_attr& attr);
ibv_ah_attr to_ah_attr(const AddressVector& path);

}  // namespace simverbs::abi

// What a path may say: the values of an address vector (IBA 11.2.2.1).
#pragma once

#include "simverbs/transport/qp_attributes.hpp"

namespace simverbs {

class Hca;

// EINVAL for a value out of range, ENODATA for a GID index whose entry holds nothing.
[[nodiscard]] int check_path(const Hca& hca, const AddressVector& path);

}  // namespace simverbs

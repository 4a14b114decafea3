// Where numbers begin, and in which order keys are given out.
//
// A program that takes one key for another, or forgets that numbers wrap, is found out sooner where
// they are not what it happens to expect.
#pragma once

#include <cstdint>
#include <optional>

namespace simverbs {

struct Numbering {
    std::uint32_t first_psn = 0;  // on the wire, of what the program calls PSN 0; below 2^24
    std::uint32_t first_qpn = 1;  // the low 16 bits of the first number of a context
    std::optional<std::uint64_t> key_seed;  // keys in a random order; none: rising
};

}  // namespace simverbs

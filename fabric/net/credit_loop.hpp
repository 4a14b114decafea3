// Finds out whether frames wait for each other for ever: each for a buffer that the next holds.
#pragma once

#include <string>
#include <vector>

namespace fabric {

class LinkDirection;
class Network;

// The sending ports of one cycle, each waiting for room at the next one's switch, from the one
// that comes first in the network; empty when there is none. Of use when no event is left.
std::vector<const LinkDirection*> find_credit_loop(const Network& network);

// "s0 port 1 > s1 port 1 > s2 port 1 > s0 port 1"
std::string describe(const std::vector<const LinkDirection*>& loop);

}  // namespace fabric

// The way of a directed-route SMP, one node at a time: the rules of IBA 14.2.2.2 and 14.2.2.4
// (C14-9 and C14-13). Changes the hop pointer and the return path, knows no network.
#pragma once

#include <cstdint>

#include "fabric/mad/datagram.hpp"
#include "fabric/net/lid.hpp"

namespace fabric::mad {

struct DirectedStep {
    enum class Kind : std::uint8_t {
        kDiscard,
        kHere,   // for an agent or a client of this node
        kOut,    // by `port`, to the neighbour
        kToLid,  // the directed part ends here: on to `lid`
    };
    Kind kind = Kind::kDiscard;
    std::uint8_t port = 0;
    Lid lid;
};

// At the node that makes a request; `own_port` is the port that its client sits at, 0 on a switch.
// kToLid, without a LID: the directed part begins where the packet is addressed to.
DirectedStep start_route(Datagram& smp, std::uint8_t own_port);

// At a node that it came to by `port`, or on its way back from the agent of this node.
DirectedStep advance_route(Datagram& smp, bool is_switch, std::uint8_t port);

}  // namespace fabric::mad

// The state that a responder keeps of messages with tag headers, on a queue pair whose shared
// receive queue matches tags.
#pragma once

#include <cstdint>
#include <vector>

#include "simverbs/transport/effects.hpp"
#include "simverbs/transport/tag_list.hpp"

namespace simverbs {

// The message under way.
struct TaggedMessage {
    TagOutcome outcome = TagOutcome::kNoTag;
    TagHeader header;
    RendezvousHeader rendezvous;
    TaggedBuffer buffer;     // that it matched
    bool by_device = false;  // a rendezvous that the device carries out
    bool announced = false;  // its match was told by a completion of its own
};

// A rendezvous whose data the device is reading.
struct Rendezvous {
    TaggedBuffer buffer;
    TagHeader header;
    std::uint32_t length = 0;  // bytes
    bool solicited = false;
};

struct TagMatching {
    explicit TagMatching(TagList& list) : tags(list) {}

    TagList& tags;
    TaggedMessage message;
    std::vector<Rendezvous> rendezvous;  // oldest first; READs end in order
};

}  // namespace simverbs

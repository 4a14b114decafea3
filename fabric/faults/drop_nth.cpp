#include "fabric/faults/drop_nth.hpp"

#include "fabric/core/assert.hpp"
#include "fabric/net/node.hpp"

namespace fabric {

DropNth::DropNth(LinkDirection& direction, trace::Bus& bus, std::uint64_t nth, FaultId id)
    : direction_(direction), bus_(bus), nth_(nth), id_(id) {
    SIMVERBS_ASSERT(nth >= 1, "frames are counted from 1");
    direction_.add_filter(*this);
}

DropNth::~DropNth() {
    direction_.remove_filter(*this);
}

Verdict DropNth::inspect(SimTime now, Frame& frame, const LinkDirection& direction) {
    if (++seen_ != nth_) {
        return Verdict::kPass;
    }
    bus_.emit(now, fired(direction, frame, id_, "drop", seen_));
    return Verdict::kDrop;
}

DropAll::DropAll(LinkDirection& direction, trace::Bus& bus, FaultId id)
    : direction_(direction), bus_(bus), id_(id) {
    direction_.add_filter(*this);
}

DropAll::~DropAll() {
    direction_.remove_filter(*this);
}

Verdict DropAll::inspect(SimTime now, Frame& frame, const LinkDirection& direction) {
    bus_.emit(now, fired(direction, frame, id_, "drop", ++dropped_));
    return Verdict::kDrop;
}

}  // namespace fabric

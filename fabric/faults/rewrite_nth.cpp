#include "fabric/faults/rewrite_nth.hpp"

#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/net/node.hpp"

namespace fabric {

RewriteNth::RewriteNth(LinkDirection& direction, trace::Bus& bus, std::uint64_t nth,
                       std::function<void(Frame&)> rewrite, FaultId id)
    : direction_(direction), bus_(bus), nth_(nth), rewrite_(std::move(rewrite)), id_(id) {
    SIMVERBS_ASSERT(nth >= 1, "frames are counted from 1");
    direction_.add_filter(*this);
}

RewriteNth::~RewriteNth() {
    direction_.remove_filter(*this);
}

Verdict RewriteNth::inspect(SimTime now, Frame& frame, const LinkDirection& direction) {
    if (++seen_ == nth_) {
        bus_.emit(now, fired(direction, frame, id_, "rewrite", seen_));
        rewrite_(frame);
    }
    return Verdict::kPass;
}

}  // namespace fabric

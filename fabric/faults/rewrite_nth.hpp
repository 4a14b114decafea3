// A fault that changes the n-th frame of a link direction and lets it go on. What is changed is the
// business of whoever knows the transport.
#pragma once

#include <cstdint>
#include <functional>

#include "fabric/faults/fault_events.hpp"
#include "fabric/net/link.hpp"
#include "fabric/trace/bus.hpp"

namespace fabric {

// In place for as long as it lives.
class RewriteNth final : public LinkFilter {
  public:
    // `nth` counts from 1, from the moment of construction. `rewrite` leaves sizes as they are.
    RewriteNth(LinkDirection& direction, trace::Bus& bus, std::uint64_t nth,
               std::function<void(Frame&)> rewrite, FaultId id = FaultId{});
    ~RewriteNth();
    RewriteNth(const RewriteNth&) = delete;
    RewriteNth& operator=(const RewriteNth&) = delete;

    Verdict inspect(SimTime now, Frame& frame, const LinkDirection& direction) override;

  private:
    LinkDirection& direction_;
    trace::Bus& bus_;
    std::uint64_t nth_;
    std::function<void(Frame&)> rewrite_;
    FaultId id_;
    std::uint64_t seen_ = 0;
};

}  // namespace fabric

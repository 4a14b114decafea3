// A fault that takes the n-th frame of a link direction, or all of them. Counts frames of every
// kind: which frames matter is for a matcher that knows the transport.
#pragma once

#include <cstdint>

#include "fabric/faults/fault_events.hpp"
#include "fabric/net/link.hpp"
#include "fabric/trace/bus.hpp"

namespace fabric {

// In place for as long as it lives.
class DropNth final : public LinkFilter {
  public:
    // `nth` counts from 1, from the moment of construction.
    DropNth(LinkDirection& direction, trace::Bus& bus, std::uint64_t nth, FaultId id = FaultId{});
    ~DropNth();
    DropNth(const DropNth&) = delete;
    DropNth& operator=(const DropNth&) = delete;

    [[nodiscard]] std::uint64_t seen() const { return seen_; }

    Verdict inspect(SimTime now, Frame& frame, const LinkDirection& direction) override;

  private:
    LinkDirection& direction_;
    trace::Bus& bus_;
    std::uint64_t nth_;
    FaultId id_;
    std::uint64_t seen_ = 0;
};

class DropAll final : public LinkFilter {
  public:
    DropAll(LinkDirection& direction, trace::Bus& bus, FaultId id = FaultId{});
    ~DropAll();
    DropAll(const DropAll&) = delete;
    DropAll& operator=(const DropAll&) = delete;

    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

    Verdict inspect(SimTime now, Frame& frame, const LinkDirection& direction) override;

  private:
    LinkDirection& direction_;
    trace::Bus& bus_;
    FaultId id_;
    std::uint64_t dropped_ = 0;
};

}  // namespace fabric

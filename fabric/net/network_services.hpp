// The services that the parts of one network share: virtual time, the trace, and who follows the
// links.
#pragma once

#include <cstdint>

#include "fabric/core/event_loop.hpp"
#include "fabric/net/deferred_arrivals.hpp"
#include "fabric/trace/bus.hpp"

namespace fabric {

class FrameObserver;
class Link;

// Told after the ports of a link have changed: how a subnet manager learns of it.
class LinkObserver {
  public:
    virtual void link_changed(Link& link) = 0;

  protected:
    ~LinkObserver() = default;
};

struct NetworkServices {
    EventLoop& loop;
    trace::Bus& bus;
    DeferredArrivals& deferred;
    LinkObserver* observer = nullptr;           // whoever manages the subnet
    LinkObserver* ethernet_observer = nullptr;  // of links between Ethernet switches
    FrameObserver* frame_observer = nullptr;    // who sees frames; besides wanting their events
    std::uint64_t seed = 0;
};

}  // namespace fabric

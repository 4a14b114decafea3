// How a fault tells the frames that it is meant for: implemented by whoever knows the transport.
#pragma once

#include <cstdint>
#include <string_view>

#include "fabric/net/frame.hpp"

namespace fabric {

// The contents of a frame, for the trace.
struct FrameDescription {
    std::string_view operation;  // "" where the transport has no word for it
    // 1 is the first of its queue pair, 0: nobody knows. Programs draw the first at random.
    std::uint32_t relative_psn = 0;
    std::uint16_t attempt = 0;
    std::uint32_t to_flow = 0;  // destination queue pair
};

class FrameMatcher {
  public:
    FrameMatcher(const FrameMatcher&) = delete;
    FrameMatcher& operator=(const FrameMatcher&) = delete;
    virtual ~FrameMatcher() = default;

    // Asked once for each frame that passes: a matcher may count.
    virtual bool matches(const Frame& frame) = 0;
    [[nodiscard]] virtual FrameDescription describe(const Frame& /*frame*/) const { return {}; }

  protected:
    FrameMatcher() = default;
};

class EveryFrame final : public FrameMatcher {
  public:
    bool matches(const Frame& /*frame*/) override { return true; }
};

}  // namespace fabric

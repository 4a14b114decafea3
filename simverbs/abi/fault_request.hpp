// A struct simverbs_fault turned into what the world understands, or into the sentence that says
// which of its members has no meaning.
#pragma once

#include <cstring>
#include <optional>

#include "simverbs/abi/control.hpp"
#include "simverbs/simverbs.h"
#include "simverbs/world/fault_spec.hpp"

namespace simverbs::abi {

// Of an enumeration that a program filled in, perhaps with what is none of its values.
template <class E>
int number_of(const E& value) {
    int number = 0;
    static_assert(sizeof value == sizeof number);
    std::memcpy(&number, &value, sizeof number);
    return number;
}

class FaultRequest {
  public:
    FaultRequest(driver::EmbeddedWorld& world, const simverbs_fault& asked)
        : world_(world), asked_(asked) {}

    // 0, and spec() holds; or an errno, and simverbs_last_error says why.
    int read();
    [[nodiscard]] const FaultSpec& spec() const { return spec_; }

  private:
    int read_action();
    int read_time();
    int read_count();
    int read_trigger();
    int read_no_match();
    int read_packets();
    int read_opcode(PacketPattern& pattern);
    int read_hosts(const char* member, const char* name, std::vector<fabric::NodeId>& nodes);
    int read_work_request();
    int read_call();
    int read_target();
    int read_target_link(bool one_end);
    int read_target_port();
    int read_target_switch();
    int read_target_device();
    int read_target_queue_pair();
    int read_arguments();
    int read_header_field();
    int read_port_value();
    int read_rate();
    int read_queue(const char* member, int queue, CompletedQueue& into) const;
    [[nodiscard]] FaultSubject subject() const { return row_of(spec_.action).subject; }

    driver::EmbeddedWorld& world_;
    const simverbs_fault& asked_;
    int on_ = SIMVERBS_ON_TIME;
    FaultSpec spec_;
};

}  // namespace simverbs::abi

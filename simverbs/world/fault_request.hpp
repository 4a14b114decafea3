// A struct simverbs_fault turned into what the world understands, or into the sentence that says
// which of its members has no meaning.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "simverbs/simverbs.h"
#include "simverbs/world/fault_board.hpp"
#include "simverbs/world/fault_spec.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs {

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
    // All outlive the request.
    FaultRequest(Simulation& simulation, const FaultBoard& board, const simverbs_fault& asked)
        : simulation_(simulation), board_(board), asked_(asked) {}

    // 0, and spec() holds; or an errno, and why() says what is wrong with which member.
    int read();
    [[nodiscard]] const std::string& why() const { return why_; }
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

    // Keeps the reason; returns `error`.
    template <class... Args>
    int fail(int error, fmt::format_string<Args...> format, Args&&... args) const {
        why_ = fmt::format(format, std::forward<Args>(args)...);
        return error;
    }

    Simulation& simulation_;
    const FaultBoard& board_;
    const simverbs_fault& asked_;
    mutable std::string why_;
    int on_ = SIMVERBS_ON_TIME;
    FaultSpec spec_;
};

}  // namespace simverbs

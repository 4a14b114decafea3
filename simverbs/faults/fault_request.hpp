// A struct simverbs_fault turned into what the world understands, or into the sentence that says
// which of its members has no meaning.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "simverbs/faults/fault_board.hpp"
#include "simverbs/faults/fault_environment.hpp"
#include "simverbs/faults/fault_members.hpp"
#include "simverbs/faults/fault_spec.hpp"
#include "simverbs/simverbs.h"

namespace simverbs {

class FaultRequest {
  public:
    // All outlive the request.
    FaultRequest(FaultEnvironment& environment, const FaultBoard& board,
                 const simverbs_fault& asked)
        : environment_(environment), board_(board), asked_(asked) {}

    // 0, and spec() holds; or an errno, and why() says what is wrong with which member.
    int read();
    [[nodiscard]] const std::string& why() const { return why_; }
    [[nodiscard]] const FaultSpec& spec() const { return spec_; }

  private:
    int read_action();
    int read_time();
    int read_count();
    int read_trigger();
    int read_members();
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
    int read_ranges();
    int read_header_field();
    int read_pkey_index();
    int read_rate();
    int read_queue(const char* member, int queue, CompletedQueue& into) const;

    // Keeps the reason; returns `error`.
    template <class... Args>
    int fail(int error, fmt::format_string<Args...> format, Args&&... args) const {
        why_ = fmt::format(format, std::forward<Args>(args)...);
        return error;
    }

    FaultEnvironment& environment_;
    const FaultBoard& board_;
    const simverbs_fault& asked_;
    mutable std::string why_;
    const FaultActionRow* action_ = nullptr;
    const FaultTriggerRow* trigger_ = nullptr;
    FaultSpec spec_;
};

}  // namespace simverbs

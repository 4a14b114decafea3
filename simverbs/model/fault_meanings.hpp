// A sentence for each action of faults, for documentation that is made from the tables. What an
// action does in detail stands in <simverbs/fault.h>.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "simverbs/model/fault_actions.hpp"

namespace simverbs {

struct FaultMeaningRow {
    simverbs_fault_action action;
    std::string_view text;
};
// clang-format off
inline constexpr auto kFaultMeanings = std::to_array<FaultMeaningRow>({
    {SIMVERBS_FAULT_MARK,              "Changes nothing: other faults can come after it."},
    {SIMVERBS_FAULT_DROP,              "Drops packets."},
    {SIMVERBS_FAULT_CORRUPT,           "Flips bits of packets, which receivers drop: the CRC is wrong."},
    {SIMVERBS_FAULT_REWRITE,           "Changes a header field of packets, and computes the CRC again."},
    {SIMVERBS_FAULT_DUPLICATE,         "Sends packets again, at once or `duration` apart."},
    {SIMVERBS_FAULT_DELAY,             "Sends packets `duration` later; other packets pass them."},
    {SIMVERBS_FAULT_REORDER,           "Sends packets behind the next one of their queue pair, or after `duration`."},
    {SIMVERBS_FAULT_HOLD,              "Keeps packets until `release`, until the fault is removed, or for `duration`."},
    {SIMVERBS_FAULT_LAND_LATE,         "Writes the payload of a SEND or WRITE to memory `duration` after its acknowledgement."},
    {SIMVERBS_FAULT_MARK_CONGESTION,   "Marks packets of RoCE v2 as having met congestion (ECN)."},
    {SIMVERBS_FAULT_NOTIFY_CONGESTION, "Sends a congestion notification packet (CNP) to the sender. RoCE v2."},
    {SIMVERBS_FAULT_NAK,               "Answers requests with a NAK in the responder's name, and does not deliver them."},
    {SIMVERBS_FAULT_RNR_NAK,           "Answers requests with an RNR NAK, whose timer code is `value`, and does not deliver them."},
    {SIMVERBS_FAULT_CM_REJECT,         "Answers a REQ or REP of the communication manager with a REJ, whose reason is `reason`, and does not deliver it."},
    {SIMVERBS_FAULT_RELEASE,           "Sends on what a `hold` keeps."},
    {SIMVERBS_FAULT_LINK_DOWN,         "Takes a link down, for `duration` or for good."},
    {SIMVERBS_FAULT_LINK_UP,           "Brings a link up."},
    {SIMVERBS_FAULT_LINK_FLAP,         "Takes a link down for `duration` and up for `interval`, `times` times."},
    {SIMVERBS_FAULT_LINK_RATE,         "Changes the width and speed of a link."},
    {SIMVERBS_FAULT_PAUSE,             "Stops the transmitter `node` of a link for `duration`."},
    {SIMVERBS_FAULT_PORT_ERROR,        "Fails the physical link of a port, for `duration` or for good."},
    {SIMVERBS_FAULT_LID,               "Changes the LID of a port to `value`. InfiniBand."},
    {SIMVERBS_FAULT_PKEY,              "Changes entry `offset` of the P_Key table of a port to `value`. InfiniBand."},
    {SIMVERBS_FAULT_SM_LID,            "Makes the port at LID `value` the master subnet manager of a port. InfiniBand."},
    {SIMVERBS_FAULT_REREGISTER,        "Asks the clients of a port to register again. InfiniBand."},
    {SIMVERBS_FAULT_SWITCH_DEATH,      "Takes all links of a switch down, for `duration` or for good."},
    {SIMVERBS_FAULT_SM_DEATH,          "Stops the subnet manager: ports that come up stay in INIT."},
    {SIMVERBS_FAULT_HOST_KILL,         "Cuts the power of a host, for `duration` or until `host_restart`."},
    {SIMVERBS_FAULT_HOST_RESTART,      "Restarts a host; what was open there stays dead."},
    {SIMVERBS_FAULT_PROCESS_STOP,      "Stops the programs of a host for `duration`; its devices go on."},
    {SIMVERBS_FAULT_PROCESS_KILL,      "Kills the programs of a host: what they had open is gone."},
    {SIMVERBS_FAULT_DEVICE_FATAL,      "Fails a device for good: IBV_EVENT_DEVICE_FATAL."},
    {SIMVERBS_FAULT_DEVICE_REMOVE,     "Removes a device while it is in use."},
    {SIMVERBS_FAULT_DEVICE_ARRIVE,     "Adds a removed device again, as a fresh one."},
    {SIMVERBS_FAULT_QP_ERROR,          "Moves a queue pair to ERR by an internal error: IBV_EVENT_QP_FATAL."},
    {SIMVERBS_FAULT_RING,              "Makes a work queue unreadable for its device: IBV_EVENT_QP_FATAL."},
    {SIMVERBS_FAULT_SRQ_RING,          "Makes a shared receive queue unreadable for its device: IBV_EVENT_SRQ_ERR."},
    {SIMVERBS_FAULT_CQ_OVERRUN,        "Overruns a completion queue: IBV_EVENT_CQ_ERR."},
    {SIMVERBS_FAULT_MR_INVALIDATE,     "Invalidates the keys of a memory region; it is still to be deregistered."},
    {SIMVERBS_FAULT_COMPLETION,        "Completes work requests with `status`."},
    {SIMVERBS_FAULT_EXECUTION,         "Fails the device as it takes up a send: IBV_WC_FATAL_ERR."},
    {SIMVERBS_FAULT_SYNDROME,          "Fails a send with a syndrome that the driver does not know: IBV_WC_GENERAL_ERR."},
    {SIMVERBS_FAULT_CALL,              "Makes calls fail with `errno`; they do nothing."},
    {SIMVERBS_FAULT_NO_RECEIVE,        "Makes messages find no receive posted: an RNR NAK, or a message that is dropped."},
    {SIMVERBS_FAULT_SYMBOL_ERROR,      "Changes bits of packets on a link, as a bad cable does: the next port counts that and drops them."},
    {SIMVERBS_FAULT_SHORT_POLL,        "Makes polls return `fewer` completions fewer than they would, as if those came just after. Programs in the process of their world."},
    {SIMVERBS_FAULT_COMPLETE_LATE,     "Makes completions visible `duration` later; what comes to the same completion queue meanwhile waits behind them."},
    {SIMVERBS_FAULT_EVENT_LATE,        "Sends events of completion channels `duration` later; completions that come meanwhile have no event of their own."},
});
// clang-format on
static_assert([] {
    for (std::size_t i = 0; i < kFaultMeanings.size(); ++i) {
        if (kFaultMeanings[i].action != kFaultActions[i].action) {
            return false;
        }
    }
    return kFaultMeanings.size() == kFaultActions.size();
}());

}  // namespace simverbs

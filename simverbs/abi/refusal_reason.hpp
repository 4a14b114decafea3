// Says why a call was refused, since an errno alone does not: in simverbs_last_error(), and with
// SIMVERBS_WARN=1 on stderr, each line once a world. A full queue, and the end of a table of GIDs
// or P_Keys, is no mistake: it is not on stderr.
#pragma once

#include <string>

#include <infiniband/verbs.h>

#include "simverbs/abi/objects.hpp"

namespace simverbs::abi {

// "PKEY_INDEX, PORT".
std::string names_of(QpAttrs attributes);

// An ibv_modify_qp() that was refused.
struct RefusedModify {
    QpState from;  // the state it was asked in
    QpAttrs given;
    const QpValues& values;
    const ModifyQpReply& reply;  // says which value the device refused, if it was one
    int error;
    const std::string& refusal;  // in words, what else the device had against it
};
void explain_modify(const Context& context, const QueuePair& qp, const RefusedModify& refused);
// `wr` is the request that was refused.
void explain_send(const Context& context, QueuePair& qp, const ibv_send_wr& wr, const char* verb,
                  int error);
// A batch of ibv_wr_complete().
void explain_batch(const Context& context, QueuePair& qp, int error);
// The queue of a queue pair, a shared receive queue or a work queue that refused a receive.
struct RefusedReceive {
    const char* verb;
    std::uint32_t number;
    WorkQueueShape queue;
    bool in_reset = false;
    bool has_shared_queue = false;  // a queue pair that takes its receives from another queue
};
void explain_receive(const RefusedReceive& refused, const ibv_recv_wr& wr, int error);
// Reasons are said anew in the next world.
void forget_reasons();

}  // namespace simverbs::abi

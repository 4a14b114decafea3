/* Frequent faults of the embedded world in a call each. A part of <simverbs/simverbs.h>, which is
 * what to include; common to all functions is what stands there.
 *
 * Each of them is simverbs_inject() with a structure that it fills. `link` names a link by its ends
 * in either order, "h0-s0" or "s0-h0", with "#2", "#3", ... for further links between the same two;
 * `from_node` is the end that transmits. Unknown: ENOENT. *fault (may be NULL) takes the id, from 1
 * on. Every firing is a trace event, fault_fired, with the id.
 */
#ifndef SIMVERBS_FAULT_CALLS_H
#define SIMVERBS_FAULT_CALLS_H

#include <stdint.h>

#include <simverbs/fault.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Drops the `nth` frame, counted from 1 and from this call, that `from_node` sends over `link`:
 * requests, responses and acknowledgements alike. nth 0: EINVAL. */
int simverbs_drop_nth(const char* link, const char* from_node, uint64_t nth, uint32_t* fault);

/* Drops every frame that `from_node` sends over `link`, until cleared. */
int simverbs_drop_all(const char* link, const char* from_node, uint32_t* fault);

/* Gives the `nth` frame, counted as above, another opcode in its base transport header, and lets it
 * go on: 0x10 (READ response only) for an acknowledgement makes the requester's
 * IBV_WC_BAD_RESP_ERR, for one. EINVAL for nth 0, and for a number that is no opcode. */
int simverbs_rewrite_nth(const char* link, const char* from_node, uint64_t nth, uint8_t opcode,
                         uint32_t* fault);

/* Faults of a device. `node` names its host, "h0"; `qp_num` is that of ibv_qp. No such host, or no
 * such queue pair of it: ENOENT. *fault (may be NULL) takes the id of a fault that waits for a work
 * request; EBUSY where one waits for that queue already. What happens at once has its id in the
 * trace alone, and cannot be taken back. */

/* The device fails as it takes up the next send work request of a queue pair: nothing of it is
 * sent, it completes with IBV_WC_FATAL_ERR, and the queue pair stops as with any error of a send.
 */
int simverbs_fault_execution(const char* node, uint32_t qp_num, uint32_t* fault);

/* The same, reported with a syndrome that the driver does not know: IBV_WC_GENERAL_ERR. */
int simverbs_fault_syndrome(const char* node, uint32_t qp_num, uint32_t* fault);

/* The next work request of that queue completes with `status`, an enum ibv_wc_status from 1 on
 * (else EINVAL): for statuses that no cause leads to here, and to save a test the cause. A send
 * fails as above. A receive fails when a message has filled it, and its queue pair goes to ERR;
 * the peer never gets an acknowledgement. Shared receives count for the queue pair that takes
 * them. */
int simverbs_fault_completion(const char* node, uint32_t qp_num, enum simverbs_queue queue,
                              int status, uint32_t* fault);

/* At once: the device cannot read the ring of that queue. IBV_EVENT_QP_FATAL, and ERR. EINVAL in
 * RESET and in ERR. */
int simverbs_fault_ring(const char* node, uint32_t qp_num, enum simverbs_queue queue);

/* At once: the same for the shared receive queue with that ibv_srq.handle. IBV_EVENT_SRQ_ERR, and
 * IBV_EVENT_QP_FATAL and ERR for each of its queue pairs. */
int simverbs_fault_srq_ring(const char* node, uint32_t srq_handle);

/* At once, and for good: IBV_EVENT_DEVICE_FATAL in every context of the host's device. Nothing
 * completes there any more and its peers hear nothing; verbs that ask the device answer EIO, those
 * that destroy something still work, and posting has no effect. EINVAL when it is dead already. */
int simverbs_fault_device(const char* node);

#ifdef __cplusplus
}
#endif

#endif

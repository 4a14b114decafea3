/* Faults of the embedded world: what goes wrong, when, and to which packet, link, device or call.
 * Include <simverbs/simverbs.h>, which includes this header. Its first comment says what holds for
 * all functions: return values, errors, threads.
 *
 *     struct simverbs_fault fault;
 *     simverbs_fault_init(&fault);
 *     fault.action = SIMVERBS_FAULT_DROP;
 *     fault.match.from = "h0";
 *     fault.match.qp = 1;
 *     fault.match.psn = 3;
 *     fault.match.attempt = 1;
 *     simverbs_inject(&fault, &id);
 *
 * drops the first transmission of the third packet of the first queue pair of h0. A member that is
 * left as simverbs_fault_init() sets it means "any", "the first" or "once". Counts begin at 1; 0
 * selects the default. Strings are copied.
 */
#ifndef SIMVERBS_FAULT_H
#define SIMVERBS_FAULT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Actions. The comment of each names the members of `target` (t.) and `with` (w.) that it reads.
 * Any other member that is set makes simverbs_inject() fail with EINVAL. */
enum simverbs_fault_action {
    SIMVERBS_FAULT_NONE = 0, /* no action: EINVAL */
    /* Fires and changes nothing. Other faults can wait for it with `after`. */
    SIMVERBS_FAULT_MARK,

    /* Actions on packets that match.
     *
     * A responder that misses a packet answers one NAK (PSN sequence error) for the gap, and stays
     * silent until the missing packet has arrived (IBA 9.7.5.2.8). A requester acts on the first
     * such NAK for a PSN and ignores further ones until its ACK timer expires. So a packet that is
     * lost once is sent again at once, if another one follows it. If its retransmission is lost
     * too, the requester waits for the ACK timeout (ibv_qp_attr.timeout) before it sends it again.
     */
    SIMVERBS_FAULT_DROP,
    /* Flips bits of one byte: w.offset counts from the first header byte, w.bits selects the bits
     * (0: all eight). The receiver finds a wrong invariant CRC, counts a port error and drops the
     * packet. */
    SIMVERBS_FAULT_CORRUPT,
    /* Gives header field w.field the value w.value and computes the CRC again. Packets without that
     * field do not match. */
    SIMVERBS_FAULT_REWRITE,
    /* Sends w.times copies after the packet: at once, or one every w.duration_ps. */
    SIMVERBS_FAULT_DUPLICATE,
    /* Sends the packet w.duration_ps later. Other packets overtake it. */
    SIMVERBS_FAULT_DELAY,
    /* Sends the packet behind the next one of its queue pair, or after w.duration_ps if none comes
     * (0: waits without limit). */
    SIMVERBS_FAULT_REORDER,
    /* Keeps the packet until SIMVERBS_FAULT_RELEASE, until simverbs_clear_fault() of this fault, or
     * for w.duration_ps (0: without limit). */
    SIMVERBS_FAULT_HOLD,
    /* Writes the payload of a WRITE or SEND to memory w.duration_ps late: the packet has been
     * acknowledged, and its receive may have completed, before the bytes arrive. */
    SIMVERBS_FAULT_LAND_LATE,
    /* Marks the packet as one that met congestion (ECN). RoCE v2; other packets do not match. */
    SIMVERBS_FAULT_MARK_CONGESTION,
    /* Sends a congestion notification packet to the sender and forwards the packet. RoCE v2. */
    SIMVERBS_FAULT_NOTIFY_CONGESTION,
    /* Drops a request and answers it with a NAK in the responder's name: w.value is an enum
     * simverbs_nak. Requests of services without acknowledgments do not match. */
    SIMVERBS_FAULT_NAK,
    /* Drops a request and answers it with an RNR NAK. w.value is the timer code, 0 to 31, as in
     * ibv_qp_attr.min_rnr_timer. */
    SIMVERBS_FAULT_RNR_NAK,
    /* Drops a REQ or REP of the communication manager and answers it with a REJ in the name of whom
     * it is for: w.value is the reason (IBA 12.6.7.2), 1 to 65535. rdma_cm reports it as the status
     * of RDMA_CM_EVENT_REJECTED. Other packets do not match. */
    SIMVERBS_FAULT_CM_REJECT,

    /* Sends on, in order, the packets that fault t.fault keeps with SIMVERBS_FAULT_HOLD. */
    SIMVERBS_FAULT_RELEASE,

    /* Actions on link t.link. */
    SIMVERBS_FAULT_LINK_DOWN, /* takes it down for w.duration_ps; 0: for good */
    SIMVERBS_FAULT_LINK_UP,
    /* Takes it down for w.duration_ps, then up for w.interval_ps, w.times times. */
    SIMVERBS_FAULT_LINK_FLAP,
    /* Sets w.width and w.speed, as simverbs_port_set_rate() does. */
    SIMVERBS_FAULT_LINK_RATE,
    /* Stops t.node, an end of the link, from transmitting over it for w.duration_ps (not 0). */
    SIMVERBS_FAULT_PAUSE,

    /* Actions on port t.port (0: port 1) of t.node. */
    SIMVERBS_FAULT_PORT_ERROR, /* breaks its physical link for w.duration_ps; 0: for good */
    SIMVERBS_FAULT_LID,        /* sets w.value, as simverbs_port_set_lid() does */
    SIMVERBS_FAULT_PKEY,       /* sets entry w.offset of the P_Key table to w.value */
    SIMVERBS_FAULT_SM_LID,     /* sets w.value, as simverbs_port_set_sm_lid() does */
    SIMVERBS_FAULT_REREGISTER, /* raises IBV_EVENT_CLIENT_REREGISTER */

    /* Actions on node t.node. */
    SIMVERBS_FAULT_SWITCH_DEATH, /* takes all its links down for w.duration_ps; 0: for good */
    /* Stops the subnet manager of the world: ports that come up stay in INIT. Reads no target. */
    SIMVERBS_FAULT_SM_DEATH,
    /* Cuts the power of a host. Its links go down. Its programs end as with
     * SIMVERBS_FAULT_PROCESS_KILL. Its devices send nothing, complete nothing and raise no event.
     * Packets that reach it are dropped, with a reason in the trace, and its peers get
     * IBV_WC_RETRY_EXC_ERR. Programs that are threads of this process cannot be ended: what
     * they have open is dead. Posts and verbs that ask the device fail with EIO, and polls return
     * what had completed before, then -1. Verbs that destroy objects work. simverbs_last_error()
     * names the fault. The host restarts after w.duration_ps; 0: not by itself. */
    SIMVERBS_FAULT_HOST_KILL,
    /* Starts the host again. Its devices can be opened; contexts from before stay dead, and its old
     * queue pairs are unknown. */
    SIMVERBS_FAULT_HOST_RESTART,
    /* Stops the programs of host t.node for w.duration_ps (not 0), as SIGSTOP and SIGCONT would.
     * The device works on: it acknowledges, and it receives into posted buffers. In programs that
     * are threads of this process, each verb on a device of the host, posts and polls included,
     * returns only when the time has passed. A second stop can make the time longer, never shorter.
     * The programs of a host are those that have one of its devices open; without any the trace
     * says fault_missed. */
    SIMVERBS_FAULT_PROCESS_STOP,
    /* Ends the programs of host t.node, as SIGKILL would. Everything they had open goes without an
     * event, the links stay up, and the device can be opened again at once. Programs that are
     * threads of this process keep dead contexts, as after SIMVERBS_FAULT_HOST_KILL. */
    SIMVERBS_FAULT_PROCESS_KILL,

    /* Actions on the device of t.node. */
    SIMVERBS_FAULT_DEVICE_FATAL, /* does what simverbs_fault_device() does */
    /* Fails the device as DEVICE_FATAL does and takes its links down. ibv_get_device_list() no
     * longer lists it. */
    SIMVERBS_FAULT_DEVICE_REMOVE,
    /* Brings a removed device back as a fresh one, whose links come up. */
    SIMVERBS_FAULT_DEVICE_ARRIVE,
    /* Raises an error inside the device on queue pair t.qp or t.qp_num: IBV_EVENT_QP_FATAL, and the
     * state ERR. */
    SIMVERBS_FAULT_QP_ERROR,
    SIMVERBS_FAULT_RING,     /* does what simverbs_fault_ring() does to queue t.queue of t.qp */
    SIMVERBS_FAULT_SRQ_RING, /* simverbs_fault_srq_ring(): t.object is ibv_srq.handle */
    /* Treats completion queue t.object, its ibv_cq.handle, as if it had overrun: IBV_EVENT_CQ_ERR
     * and what follows from it. */
    SIMVERBS_FAULT_CQ_OVERRUN,
    /* Invalidates the keys of the region whose ibv_mr.lkey is t.object. The program still has to
     * call ibv_dereg_mr(). */
    SIMVERBS_FAULT_MR_INVALIDATE,

    /* Actions on work requests that match. */
    SIMVERBS_FAULT_COMPLETION, /* simverbs_fault_completion(): w.value is an enum ibv_wc_status */
    SIMVERBS_FAULT_EXECUTION,  /* simverbs_fault_execution() */
    SIMVERBS_FAULT_SYNDROME,   /* simverbs_fault_syndrome() */

    /* Makes calls that match do nothing and fail with w.value, an errno. */
    SIMVERBS_FAULT_CALL,

    /* Makes a packet find no receive when it arrives, as if none were posted: one that begins a
     * SEND, or that ends a WRITE with immediate data. A responder with acknowledgments answers an
     * RNR NAK with the timer of its queue pair, and the requester sends the request again; the
     * others drop the message. Receives that are posted stay there. Other packets do not match. For
     * a queue that is empty for a while, set match.to, from_ps, until_ps and count. */
    SIMVERBS_FAULT_NO_RECEIVE,

    /* Changes bits of the packet on a link, as a bad cable does. The port at the other end of the
     * link finds it by the packet's variant CRC (IBA 7.8.2), discards the packet and counts a
     * symbol error and a receive error (SymbolErrorCounter, PortRcvErrors). match.link says which
     * link; without it, where the packet begins. Bits that change within a switch are
     * SIMVERBS_FAULT_CORRUPT. */
    SIMVERBS_FAULT_SYMBOL_ERROR,

    /* Makes a poll return w.times completions fewer than it would, or none. The others seem to come
     * just after the poll: the next one returns them, and a queue that is armed sends an event. It
     * is triggered by calls of ibv_poll_cq(), and match.call may be NULL. ibv_start_poll() counts
     * as one call, and ibv_next_poll() then ends early. Polls that would return nothing do not
     * match. Polls ask only in a world of their own process. */
    SIMVERBS_FAULT_SHORT_POLL,

    /* Makes a completion visible w.duration_ps later. It is triggered by work requests and matches
     * when a request of that queue completes with an entry in its completion queue, whatever the
     * status. Entries that come to the same completion queue meanwhile wait behind it. */
    SIMVERBS_FAULT_COMPLETE_LATE,

    /* Sends the event of a completion channel w.duration_ps later. The completion queue stays armed
     * until then, so that completions that come meanwhile have no event of their own. It is
     * triggered by calls of ibv_get_cq_event(), and match.call may be NULL: it matches when a
     * device of match.node is about to send such an event. */
    SIMVERBS_FAULT_EVENT_LATE
};

/* The trigger of a fault. */
enum simverbs_fault_trigger {
    /* Packets for actions on packets and for SIMVERBS_FAULT_MARK; work requests and calls for
     * actions on these; time for every other action. */
    SIMVERBS_ON_DEFAULT = 0,
    SIMVERBS_ON_TIME,         /* at from_ps, or at once */
    SIMVERBS_ON_PACKET,       /* reads the members of match from link to attempt */
    SIMVERBS_ON_WORK_REQUEST, /* reads node, qp or qp_num, and queue of match */
    SIMVERBS_ON_CALL          /* reads node and call of match; fires before the call is executed */
};

enum simverbs_direction { SIMVERBS_EITHER_WAY = 0, SIMVERBS_REQUESTS, SIMVERBS_RESPONSES };

enum simverbs_queue { SIMVERBS_SEND_QUEUE, SIMVERBS_RECEIVE_QUEUE };

enum simverbs_header_field {
    SIMVERBS_HEADER_OPCODE = 1,
    SIMVERBS_HEADER_PSN,
    SIMVERBS_HEADER_DEST_QP,
    SIMVERBS_HEADER_PKEY,
    SIMVERBS_HEADER_QKEY,
    SIMVERBS_HEADER_SYNDROME, /* of the acknowledge header (AETH) */
    SIMVERBS_HEADER_MSN,
    SIMVERBS_HEADER_RKEY,
    SIMVERBS_HEADER_REMOTE_ADDRESS,
    SIMVERBS_HEADER_LENGTH, /* the DMA length in the RDMA header (RETH) */
    SIMVERBS_HEADER_IMMEDIATE,
    SIMVERBS_HEADER_ACK_REQUEST, /* 0 or 1 */
    SIMVERBS_HEADER_SOLICITED    /* 0 or 1 */
};

enum simverbs_nak {
    SIMVERBS_NAK_PSN_SEQUENCE,
    SIMVERBS_NAK_INVALID_REQUEST,
    SIMVERBS_NAK_REMOTE_ACCESS,
    SIMVERBS_NAK_REMOTE_OPERATIONAL
};

#define SIMVERBS_EVERY UINT64_MAX

/* The packets, work requests or calls that trigger a fault. Nodes have their names of the topology,
 * "h0"; links are named by their ends, "h0-s0". NULL and "" match any. */
struct simverbs_fault_match {
    /* Members about packets. With `link`, packets are matched as `transmitter`, an end of the link,
     * sends them over it (NULL: either end). Without it they are matched where they begin: at the
     * port of `from`, or of every host. */
    const char* link;
    const char* transmitter;
    const char* from; /* the host that made the packet */
    const char* to;   /* the host that it is addressed to */
    /* One of:
     * - an opcode of the InfiniBand Architecture Specification: "SEND_ONLY", "RDMA_WRITE_FIRST",
     *   "ACKNOWLEDGE", "CNP" ...;
     * - the beginning of several, up to a "_": "SEND", "RDMA_WRITE", "RDMA_READ_RESPONSE";
     * - a transport service, "RC", "UC", "UD", "XRC", with or without one of these behind it:
     *   "UD_SEND_ONLY";
     * - "MAD", any management datagram;
     * - "CM", any message of the communication manager, or one of them: "CM_REQ", "CM_MRA",
     *   "CM_REJ", "CM_REP", "CM_RTU", "CM_DREQ", "CM_DREP", "CM_SIDR_REQ", "CM_SIDR_REP",
     *   "CM_LAP", "CM_APR". */
    const char* opcode;
    enum simverbs_direction direction;
    /* The requester's queue pair: the sender of a request, the receiver of a response. For work
     * requests, the queue pair that they are posted to. `qp` counts the queue pairs that were
     * created on the device; `qp_num` is an ibv_qp.qp_num. */
    uint32_t qp;
    uint32_t qp_num;
    /* 1 is the first PSN of that queue pair (its sq_psn), 2 the next, up to 2^23. */
    uint32_t psn;
    /* 1 is the first transmission of a PSN, 2 its first retransmission, and so on. For responses it
     * counts how often the PSN was answered. */
    uint32_t attempt;

    /* Members about work requests and calls: the host ... */
    const char* node;
    enum simverbs_queue queue; /* ... the queue, of work requests alone ... */
    /* ... and the verb, "ibv_modify_qp" say. It is one that asks the device, or a post:
     * "ibv_post_send", which ibv_wr_start() counts as, "ibv_post_recv", "ibv_post_srq_recv" or
     * "ibv_post_wq_recv". "ibv_poll_cq" matches polls that would return a completion, and
     * "ibv_get_cq_event" the events of completion channels as they are sent; both never fail. Posts
     * and polls ask only in a world of their own process. The error of simverbs_inject() lists the
     * verbs. */
    const char* call;
};

/* The object that an action changes. Where work requests or calls trigger the fault, `node` and the
 * queue pair are theirs by default. */
struct simverbs_fault_target {
    const char* link;
    const char* node;
    uint8_t port;
    uint32_t qp;
    uint32_t qp_num;
    enum simverbs_queue queue;
    uint32_t object; /* the handle or key that the action asks for */
    uint32_t fault;  /* the id of another fault */
};

/* The arguments of an action. Each action says which of them it reads. */
struct simverbs_fault_arguments {
    int64_t duration_ps;
    int64_t interval_ps;
    uint64_t times; /* 0: 1 */
    uint64_t value;
    uint32_t offset;
    uint8_t bits;
    enum simverbs_header_field field;
    uint32_t width;
    uint32_t speed;
};

struct simverbs_fault {
    size_t size; /* set by simverbs_fault_init(); keeps programs of older headers working */
    enum simverbs_fault_action action;

    enum simverbs_fault_trigger on;
    /* The fault is armed once fault `after` has fired and `after_delay_ps` have passed since. 0: it
     * is armed from the start. */
    uint32_t after;
    int64_t after_delay_ps;
    /* Virtual time since the world was made, in ps. The fault does not fire before `from_ps`, nor
     * at or after `until_ps` (0: no end). The time of a packet is that at which it is queued at the
     * link. It can leave later (`frame_sent.start` in the trace), since a host queues all packets
     * of a message at once. */
    int64_t from_ps;
    int64_t until_ps;
    /* The fault fires on the `nth` match after it is armed, then on the next ones, `count` times in
     * all (0: once; SIMVERBS_EVERY: without end). A fault that is triggered by time fires once. */
    uint64_t nth;
    uint64_t count;
    /* The probability of each firing is chance / chance_of; both 0: certain. With a probability, a
     * `count` of 0 means without end. The draw is a hash of the seed, the fault and the packet's
     * place in its flow, so that nothing else that happens changes it. */
    uint32_t chance;
    uint32_t chance_of;
    /* The delay between trigger and action, in ps. Not for actions on packets, work requests and
     * calls. */
    int64_t delay_ps;

    struct simverbs_fault_match match;
    struct simverbs_fault_target target;
    struct simverbs_fault_arguments with;

    /* The name in the trace, explanations and pictures; NULL: its number and action. */
    const char* name;
};

/* Sets every member to its default. */
void simverbs_fault_init(struct simverbs_fault* fault);

/* Injects a fault, and writes its id to *id unless that is NULL. Ids begin at 1 and are not used
 * twice. Each firing is a trace record, fault_fired, with the id. A firing that finds nothing to
 * act on, a queue pair that is gone say, is a record fault_missed.
 * EINVAL: a member is out of range or does not belong to the action. ENOENT: there is no such node,
 * link, port, queue pair or fault; a counted `qp` may be created later. EOPNOTSUPP: the world lacks
 * what the action needs, a subnet manager say. */
int simverbs_inject(const struct simverbs_fault* fault, uint32_t* id);

/* Removes a fault, whether it has fired or not. Packets that it holds are sent on. Changes that it
 * made to links and devices stay. ENOENT: there is no such id. */
int simverbs_clear_fault(uint32_t id);

/* Removes all faults, in the order of their ids. */
int simverbs_clear_faults(void);

/* Counts how often a fault has fired. ENOENT: there is no such id, or it was removed. */
int simverbs_fault_fired(uint32_t id, uint64_t* count);

/* Counts how often the trigger of a fault has matched while the fault was armed, whether it fired
 * or not. ENOENT: there is no such id, or it was removed. */
int simverbs_fault_matched(uint32_t id, uint64_t* count);

/* Counts the firings of a fault that found nothing to act on (fault_missed), and gives the reason
 * of the last one, "there is no such completion queue" say, or "". `reason` may be NULL; the text
 * stays valid. ENOENT: there is no such id, or it was removed. */
int simverbs_fault_missed(uint32_t id, uint64_t* count, const char** reason);

/* Returns the name of an action in traces: "drop", "link_flap" ... NULL: there is no such action.
 */
const char* simverbs_fault_action_str(enum simverbs_fault_action action);

#ifdef __cplusplus
}
#endif

#endif

/* Faults of the embedded world: what goes wrong, when, and to whom. A part of
 * <simverbs/simverbs.h>, which is what to include; common to all functions is what stands there.
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
 * loses the first transmission of the third packet of the first queue pair of h0. In a structure
 * that simverbs_fault_init() has filled everything means "any", "the first" or "once"; all that is
 * counted is counted from 1, and 0 is the default. Strings are copied.
 */
#ifndef SIMVERBS_FAULT_H
#define SIMVERBS_FAULT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Actions. Behind each: which members of `target` (t.) and `with` (w.) it reads; others are
 * EINVAL. */
enum simverbs_fault_action {
    SIMVERBS_FAULT_NONE = 0, /* no action: EINVAL */
    /* Fires, and changes nothing: something for other faults to come after. */
    SIMVERBS_FAULT_MARK,

    /* To packets that match.
     *
     * A responder that misses a packet answers one NAK (PSN sequence error) for the gap, and stays
     * silent until the missing packet has arrived (IBA 9.7.5.2.8). A requester acts on the first
     * such NAK for a PSN and ignores further ones until its ACK timer expires. So a packet that is
     * lost once is sent again at once, if another one follows it. If its retransmission is lost
     * too, the requester waits for the ACK timeout (ibv_qp_attr.timeout) before it sends it again.
     */
    SIMVERBS_FAULT_DROP,
    /* Bits of a byte flip (w.offset into headers and payload, w.bits; 0: all eight bits). Receivers
     * find the invariant CRC wrong, count an error of the port and drop it. */
    SIMVERBS_FAULT_CORRUPT,
    /* A field of its headers gets another value; the CRC is made anew: w.field, w.value. Packets
     * without that field do not match. */
    SIMVERBS_FAULT_REWRITE,
    /* It is sent w.times more, at once or w.duration_ps apart. */
    SIMVERBS_FAULT_DUPLICATE,
    /* It leaves w.duration_ps later; others pass it. */
    SIMVERBS_FAULT_DELAY,
    /* It leaves behind the next packet of its queue pair, or after w.duration_ps (0: however late).
     */
    SIMVERBS_FAULT_REORDER,
    /* It is kept until SIMVERBS_FAULT_RELEASE, or simverbs_clear_fault() of this fault, or for
     * w.duration_ps (0: no end). */
    SIMVERBS_FAULT_HOLD,
    /* The payload of a WRITE or SEND reaches memory w.duration_ps after the packet was dealt with:
     * acknowledged, and completed. */
    SIMVERBS_FAULT_LAND_LATE,
    /* A mark of congestion. RoCE v2; other packets do not match. */
    SIMVERBS_FAULT_MARK_CONGESTION,
    /* It goes on, and its sender gets a congestion notification packet. RoCE v2. */
    SIMVERBS_FAULT_NOTIFY_CONGESTION,
    /* A request is not delivered, and its sender gets a NAK in the responder's name: w.value, an
     * enum simverbs_nak. Requests that are acknowledged; others do not match. */
    SIMVERBS_FAULT_NAK,
    /* The same with an RNR NAK and the timer code w.value, 0 to 31, as ibv_qp_attr.min_rnr_timer.
     */
    SIMVERBS_FAULT_RNR_NAK,

    /* To packets of another fault: what SIMVERBS_FAULT_HOLD keeps is sent on, in order. t.fault. */
    SIMVERBS_FAULT_RELEASE,

    /* To links: t.link. */
    SIMVERBS_FAULT_LINK_DOWN, /* and up again after w.duration_ps; 0: for good */
    SIMVERBS_FAULT_LINK_UP,
    /* Down for w.duration_ps, up for w.interval_ps, w.times times. */
    SIMVERBS_FAULT_LINK_FLAP,
    /* w.width and w.speed as simverbs_port_set_rate() takes them. */
    SIMVERBS_FAULT_LINK_RATE,
    /* t.node, an end of the link, transmits nothing over it for w.duration_ps (not 0). */
    SIMVERBS_FAULT_PAUSE,

    /* To ports: t.node, t.port (0: 1). */
    SIMVERBS_FAULT_PORT_ERROR, /* its physical link fails for w.duration_ps; 0: for good */
    SIMVERBS_FAULT_LID,        /* w.value, as simverbs_port_set_lid() */
    SIMVERBS_FAULT_PKEY,       /* w.value at index w.offset of the table; others stay */
    SIMVERBS_FAULT_SM_LID,     /* w.value, as simverbs_port_set_sm_lid() */
    SIMVERBS_FAULT_REREGISTER,

    /* To nodes: t.node. */
    SIMVERBS_FAULT_SWITCH_DEATH, /* all its links go down for w.duration_ps; 0: for good */
    /* The subnet manager of the world stops: ports that come up stay in INIT. No target. */
    SIMVERBS_FAULT_SM_DEATH,
    /* The host of a device loses power: its links go down, its programs end as with
     * SIMVERBS_FAULT_PROCESS_KILL, and its devices send nothing, complete nothing and raise no
     * event. Packets that reach it are dropped, with a reason in the trace; its peers run into
     * IBV_WC_RETRY_EXC_ERR. Where its programs are threads of this process, their contexts are
     * dead: verbs that ask the device return EIO, posts return 0 and do nothing, and polls return
     * what had completed before, then 0. With w.duration_ps it restarts after that time; 0: not by
     * itself. */
    SIMVERBS_FAULT_HOST_KILL,
    /* Its devices can be opened again; what was open stays dead, and its queue pairs are unknown.
     */
    SIMVERBS_FAULT_HOST_RESTART,
    /* The programs of a host, t.node, make no progress for w.duration_ps (not 0), as between
     * SIGSTOP and SIGCONT; the device goes on: it acknowledges, and receives into what is posted.
     * Where the programs are threads of this process, each verb on a device of that host, posts and
     * polls too, returns when that time has passed. A second one makes it longer, never shorter.
     * Programs are those that have a device of the host open; there is none: fault_missed. */
    SIMVERBS_FAULT_PROCESS_STOP,
    /* They end, as by SIGKILL: what they had open is gone without an event, and the device can be
     * opened again at once; its links stay as they are. Where the programs are threads of this
     * process, their contexts are dead, as after SIMVERBS_FAULT_HOST_KILL. */
    SIMVERBS_FAULT_PROCESS_KILL,

    /* To devices: t.node. */
    SIMVERBS_FAULT_DEVICE_FATAL, /* as simverbs_fault_device() */
    /* DEVICE_FATAL, links go down, and ibv_get_device_list() does not show it ... */
    SIMVERBS_FAULT_DEVICE_REMOVE,
    /* ... until it is back: a fresh device, whose links come up. */
    SIMVERBS_FAULT_DEVICE_ARRIVE,
    /* An error inside the device on one queue pair: IBV_EVENT_QP_FATAL, and ERR. t.node, and t.qp
     * or t.qp_num. */
    SIMVERBS_FAULT_QP_ERROR,
    SIMVERBS_FAULT_RING,     /* as simverbs_fault_ring(): the same, and t.queue */
    SIMVERBS_FAULT_SRQ_RING, /* as simverbs_fault_srq_ring(): t.node, t.object = ibv_srq.handle */
    /* As if it had overrun: IBV_EVENT_CQ_ERR, and all that follows. t.node, t.object =
     * ibv_cq.handle. */
    SIMVERBS_FAULT_CQ_OVERRUN,
    /* Its keys open nothing any more; ibv_dereg_mr() is still to be called. t.node, t.object =
     * ibv_mr.lkey. */
    SIMVERBS_FAULT_MR_INVALIDATE,

    /* To work requests that match. */
    SIMVERBS_FAULT_COMPLETION, /* as simverbs_fault_completion(): w.value, enum ibv_wc_status */
    SIMVERBS_FAULT_EXECUTION,  /* as simverbs_fault_execution() */
    SIMVERBS_FAULT_SYNDROME,   /* as simverbs_fault_syndrome() */

    /* To calls that match: they do nothing and fail with w.value, an errno. */
    SIMVERBS_FAULT_CALL
};

/* The trigger: what it waits for. */
enum simverbs_fault_trigger {
    /* The subject of its action: packets (SIMVERBS_FAULT_MARK: too), work requests, calls; else
     * time. */
    SIMVERBS_ON_DEFAULT = 0,
    SIMVERBS_ON_TIME,         /* from_ps, or at once */
    SIMVERBS_ON_PACKET,       /* match: link to attempt */
    SIMVERBS_ON_WORK_REQUEST, /* match: node, qp or qp_num, queue */
    SIMVERBS_ON_CALL          /* match: node, call; before it is carried out */
};

enum simverbs_direction { SIMVERBS_EITHER_WAY = 0, SIMVERBS_REQUESTS, SIMVERBS_RESPONSES };

enum simverbs_queue { SIMVERBS_SEND_QUEUE, SIMVERBS_RECEIVE_QUEUE };

enum simverbs_header_field {
    SIMVERBS_HEADER_OPCODE = 1,
    SIMVERBS_HEADER_PSN,
    SIMVERBS_HEADER_DEST_QP,
    SIMVERBS_HEADER_PKEY,
    SIMVERBS_HEADER_QKEY,
    SIMVERBS_HEADER_SYNDROME, /* the byte of the acknowledgement's header */
    SIMVERBS_HEADER_MSN,
    SIMVERBS_HEADER_RKEY,
    SIMVERBS_HEADER_REMOTE_ADDRESS,
    SIMVERBS_HEADER_LENGTH, /* that the first packet of an RDMA operation announces */
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

/* Nodes are named as in the topology, "h0", and links as elsewhere in this API, "h0-s0". NULL or ""
 * is any. */
struct simverbs_fault_match {
    /* Packets. Where they are looked at: on `link`, as `transmitter` (an end of it; NULL: either)
     * sends them; without a link where they begin, at the port of `from`, or of every host. */
    const char* link;
    const char* transmitter;
    const char* from; /* the host that made the packet */
    const char* to;   /* the host that it is addressed to */
    /* A name of the InfiniBand Architecture Specification, "SEND_ONLY", "RDMA_WRITE_FIRST",
     * "ACKNOWLEDGE", "CNP" ...; a kind of them, "SEND", "RDMA_WRITE", "RDMA_READ_RESPONSE" (each
     * name that begins with it and goes on with "_" or ends); "MAD": management datagrams; or among
     * them "CM": messages of communication management, and each of these: "CM_REQ", "CM_MRA",
     * "CM_REJ", "CM_REP", "CM_RTU", "CM_DREQ", "CM_DREP", "CM_SIDR_REQ", "CM_SIDR_REP", "CM_LAP",
     * "CM_APR". */
    const char* opcode;
    enum simverbs_direction direction;
    /* The queue pair whose requests these are, or the responses to them: a packet's sender where it
     * is a request, its receiver where it is a response. The `qp`-th that was created on its
     * device, or the one with that ibv_qp.qp_num. Work requests: the queue pair that they are
     * posted to. */
    uint32_t qp;
    uint32_t qp_num;
    /* 1: the first PSN of that queue pair (its sq_psn), 2: the next ... up to 2^23. */
    uint32_t psn;
    /* 1: the first transmission of a PSN, 2: its first retransmission ... Responses: how often that
     * PSN was answered so far. */
    uint32_t attempt;

    /* Work requests and calls: the host. */
    const char* node;
    enum simverbs_queue queue;
    /* "ibv_modify_qp": a verb that asks the device. simverbs_inject() names them in its error. */
    const char* call;
};

struct simverbs_fault_target {
    const char* link;
    const char* node; /* work requests and calls as triggers: by default their host ... */
    uint8_t port;
    uint32_t qp;
    uint32_t qp_num; /* ... and their queue pair */
    enum simverbs_queue queue;
    uint32_t object;
    uint32_t fault;
};

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
    size_t size; /* simverbs_fault_init() sets it: programs of older headers go on working */
    enum simverbs_fault_action action;

    enum simverbs_fault_trigger on;
    /* Sleeps until that fault has fired, and `after_delay_ps` have passed since. 0: awake. */
    uint32_t after;
    int64_t after_delay_ps;
    /* Virtual time since the world was made: nothing fires before `from_ps`, nor at or after
     * `until_ps` (0: no end). A packet has the time at which it is queued at the link. It may start
     * there later (`frame_sent.start` of the trace): a host queues all packets of a message at
     * once. */
    int64_t from_ps;
    int64_t until_ps;
    /* Fires on the `nth` match after it is armed, then on those that follow, `count` times in all
     * (0: once; SIMVERBS_EVERY: no end). On time it fires once. */
    uint64_t nth;
    uint64_t count;
    /* Each of them with the probability chance / chance_of; both 0: for certain. With a probability
     * a `count` of 0 is no end. The draw is a hash of the seed, the fault and the packet's place in
     * its flow: what else happens does not change it. */
    uint32_t chance;
    uint32_t chance_of;
    /* From what it waits for to what it does; not of actions on packets, work requests and calls.
     */
    int64_t delay_ps;

    struct simverbs_fault_match match;
    struct simverbs_fault_target target;
    struct simverbs_fault_arguments with;

    /* The name in the trace, explanations and pictures; NULL: its number and action. */
    const char* name;
};

void simverbs_fault_init(struct simverbs_fault* fault);

/* Puts a fault in place, from now on; *id (may be NULL) takes its number, from 1 on, never used
 * again. EINVAL: a member has no meaning, or does not go with the action; ENOENT: there is no such
 * node, link, port, queue pair or fault (a `qp` that is counted may be created later);
 * EOPNOTSUPP: the world has nothing of the kind (a subnet manager, say). Every firing is a trace
 * event, fault_fired, with the id. What it could not be done to when its time came (a queue pair
 * that is gone) is traced as fault_missed. */
int simverbs_inject(const struct simverbs_fault* fault, uint32_t* id);

/* Takes a fault back, whether it has fired or not. Packets that it holds go on; what it did to
 * links and devices stays. No such id: ENOENT. */
int simverbs_clear_fault(uint32_t id);

/* Takes all faults back, in the order of their numbers. */
int simverbs_clear_faults(void);

/* How often a fault has fired. No such id, or taken back: ENOENT. */
int simverbs_fault_fired(uint32_t id, uint64_t* count);

/* How often what it waits for has come, whether it fired then or not: packets, work requests or
 * calls that matched while it was armed, its time. No such id, or taken back: ENOENT. */
int simverbs_fault_matched(uint32_t id, uint64_t* count);

/* How many of its firings there was nothing to be done to (fault_missed), and why the last of them
 * had nothing: "there is no such completion queue". *reason (may be NULL) is good for ever; ""
 * where there was none. No such id, or taken back: ENOENT. */
int simverbs_fault_missed(uint32_t id, uint64_t* count, const char** reason);

/* "drop", "link_flap" ...: what the trace calls an action. NULL: no such action. */
const char* simverbs_fault_action_str(enum simverbs_fault_action action);

#ifdef __cplusplus
}
#endif

#endif

/* The control API of simverbs: everything about a simulated fabric that verbs.h has no words for.
 *
 * It acts on the embedded world, the one that lives in this process: a program links
 * libsimverbs (find_package(simverbs), or pkg-config simverbs), uses <infiniband/verbs.h> as on any
 * machine, and reaches for these functions to lose a packet, move time or read a digest. The world
 * is made at its first use from the environment (SIMVERBS_TOPOLOGY, _PERSONALITY, _SEED, ...) and
 * from the simverbs_set_* calls before it, which take precedence.
 *
 * Every int returned is 0 or a positive errno; then simverbs_last_error() says what was wrong,
 * where, and what would have been valid. Common to all that need the world: ENODEV when it cannot
 * be made (an environment variable has no meaning), or when this process is attached to a server's
 * world.
 *
 * All functions may be called from any thread. Calls that change the world take their turn among
 * the actors (simverbs_actor): with several threads they return once every other one waits too.
 */
#ifndef SIMVERBS_SIMVERBS_H
#define SIMVERBS_SIMVERBS_H

#include <stddef.h>
#include <stdint.h>

#include <simverbs/fault.h>
#include <simverbs/fault_calls.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the world ---------------------------------------------------------------------------------
 * Before its first use, that is before the first ibv_get_device_list, ibv_open_device, or any
 * function below that is not a simverbs_set_*: EBUSY afterwards, until simverbs_restart(). */

/* Gives a setting a value, in words: simverbs_set("first_psn", "0xfffff8"). Settings are those of
 * the environment (simverbs(1)) by their names without SIMVERBS_, in lower case: "topology",
 * "personality", "routing", "seed", "first_psn", "first_qpn", "keys", "sm", "schedule", "spin_ms",
 * "host". Another name, a value that the setting does not have, NULL: EINVAL. The functions below
 * do the same for one setting each. */
int simverbs_set(const char* setting, const char* value);

/* "pair" (two hosts, one link), "star:N" (N hosts h0, h1, ... on the switch s0; N from 2), or
 * another generator ("simverbs topology check --help" has them); the same on Ethernet: "eth-pair",
 * "eth-star:N"; "vpi-pair": two links, port 1 of each host on InfiniBand and port 2 on Ethernet. Or
 * the path of a file: .yaml, or text of ibnetdiscover. Default: "star:2". A name that means nothing
 * and a file with a mistake are EINVAL, at once. */
int simverbs_set_topology(const char* topology);

/* The number that all random streams of the world begin with; any value. Default: 1. */
int simverbs_set_seed(uint64_t seed);

/* Whose behaviour where devices differ: "spec" (the InfiniBand Architecture Specification; the
 * default), "connectx6" or "rxe". Unknown: EINVAL. */
int simverbs_set_personality(const char* personality);

/* The PSN 0 of programs is this PSN in packets, so that one which starts at 0 soon wraps past
 * 0xFFFFFF; ibv_query_qp() shows the program's own numbers. Above 0xFFFFFF: EINVAL. Default: 0. */
int simverbs_set_first_psn(uint32_t psn);

/* The low 16 bits of the first queue pair number that a context of the first device gives out: they
 * rise from there, and behind 0xFFFF they begin anew and skip those in use. Numbers and keys of
 * each other device begin 256 higher than those of the device before, so that a program that takes
 * its own for its peer's is found out. Above 0xFFFF: EINVAL. Default: 1. */
int simverbs_set_first_qpn(uint32_t low_bits);

/* The order in which keys of memory are given out; both are used again as late as possible. Random
 * ones are drawn from the seed, and equal for equal seeds. Another number: EINVAL. */
enum simverbs_keys { SIMVERBS_KEYS_SEQUENTIAL, SIMVERBS_KEYS_RANDOM };
int simverbs_set_keys(enum simverbs_keys keys);

/* Ends the world, its faults, traces and time, and forgets what simverbs_set_* said; the next use
 * makes another, from time 0. EBUSY while a device is open. ibv_device pointers of before may be
 * kept; they are the next world's where its devices are the same. Other threads that used the world
 * count as gone; they are actors of the next one, without their names, when they use it. */
int simverbs_restart(void);

/* Closes every device that this process has open, with all objects on it: after a test that failed
 * and left some behind, so that simverbs_restart() can end the world. Pointers to them and to their
 * objects are invalid from here on, as after ibv_close_device(); the memory of the objects stays
 * allocated, as there. How many devices there were. */
unsigned simverbs_close_devices(void);

/* Counts the objects that are left on a device which this program has open: "simverbs0 with 0 queue
 * pairs and 1 completion queue, 1 memory region"; "": there are none, as ibv_close_device() should
 * find it, and none on NULL. The text is good until the thread's next call of this function. */
struct ibv_context;
const char* simverbs_objects_left(struct ibv_context* context);

/* The host that a device is in, as the topology calls it: "h0". Lives as long as the device. NULL
 * of NULL. */
struct ibv_device;
const char* simverbs_device_host(struct ibv_device* device);

/* ---- time ------------------------------------------------------------------------------------ */

/* Virtual time in picoseconds since the world was made: the time of the last event. */
int simverbs_now_ps(int64_t* now);

/* Returns when virtual time has moved by `duration` picoseconds (from 0 on), with all that is due
 * until then; takes no longer on the wall than the events do. Completions wait in their queues.
 * Other actors go on as if the caller polled an empty queue all the while. Negative: EINVAL. */
int simverbs_advance_ps(int64_t duration);

/* For a program that moves time itself, from one thread: runs all events of the next instant where
 * that lies at most `most` picoseconds ahead, then *ran is 1; else nothing moves, and *ran is 0. An
 * empty poll does the same without a limit. Negative: EINVAL; EBUSY where other actors are. */
int simverbs_step_ps(int64_t most, int* ran);

/* For a scheduler of tasks in one thread, as simverbs::Lab has of fibers: on the calling thread a
 * poll that finds nothing calls `wait` instead of moving time, and a blocking verb calls it until
 * there is something. It runs other tasks, and simverbs_step_ps() once all of them wait. NULL: no
 * longer. An exception that it throws comes out of the verb. */
typedef void (*simverbs_wait_hook)(void* argument);
void simverbs_set_wait_hook(simverbs_wait_hook wait, void* argument);

/* For the same, with rdma_cm: whose program the calling thread is when it opens an event channel.
 * The channel's ids are then on the host that `host` names; without a hook, or where it returns
 * NULL, on any host that the process sees. */
typedef const char* (*simverbs_host_hook)(void* argument);
void simverbs_set_host_hook(simverbs_host_hook host, void* argument);

/* ---- actors ---------------------------------------------------------------------------------- */

/* Names the calling thread. What several threads do within one instant is ordered by their names,
 * then, of those without a name, by the order in which they were created. That order is known where
 * the program is linked to the library or it is preloaded; in one that loads it by dlopen(3),
 * threads without a name are ordered as they came, and the run is marked when two of them act at
 * once. 1 to 63 bytes; NULL or "" or longer: EINVAL; a name that another living thread has: EEXIST.
 */
int simverbs_actor(const char* name);

/* Virtual time stands until that many threads, the caller included, have called a verb or a
 * function of this header: for programs whose threads the library does not see being created. 0: it
 * need not stand (the default). */
int simverbs_actors(unsigned count);

/* ---- links and ports -------------------------------------------------------------------------
 * Changes by an operator or a subnet manager, made at once. */

/* Takes a link down (up = 0), with what is in flight on it, or brings it up again; then the subnet
 * manager makes its ports ACTIVE, 1 ms of virtual time later. 0 and no effect where it is so
 * already. */
int simverbs_set_link(const char* link, int up);

/* Changes port `port` (from 1) of host `node` at once, as a subnet manager or administrator does.
 * Contexts of that device get the event that is named. No such host or port: ENOENT. Those of
 * InfiniBand alone answer EOPNOTSUPP for an Ethernet port. */

/* IBV_EVENT_LID_CHANGE; `lid` from 1 to 0xBFFF and no other port's, else EINVAL. Routes lead to the
 * new one: what is still addressed to the old one is lost. InfiniBand. */
int simverbs_port_set_lid(const char* node, uint8_t port, uint16_t lid);

/* IBV_EVENT_PKEY_CHANGE. `count` entries in host byte order, from 1 to what the port has, else
 * EINVAL; further ones that there were become 0, which matches nothing. Queue pairs go on with what
 * is now at their pkey_index. InfiniBand. */
int simverbs_port_set_pkeys(const char* node, uint8_t port, const uint16_t* pkeys, size_t count);

/* IBV_EVENT_GID_CHANGE; `index` names an entry of the table or the first empty one, else EINVAL.
 * InfiniBand. */
int simverbs_port_set_gid(const char* node, uint8_t port, unsigned int index,
                          const uint8_t gid[16]);

/* IBV_EVENT_SM_CHANGE: another master subnet manager, at that LID (1 to 0xBFFF, else EINVAL).
 * InfiniBand. */
int simverbs_port_set_sm_lid(const char* node, uint8_t port, uint16_t lid);

/* IBV_EVENT_CLIENT_REREGISTER. InfiniBand. */
int simverbs_port_reregister(const char* node, uint8_t port);

/* Width and speed of the port's link, at both ends, in the encoding of ibv_port_attr.active_width
 * and active_speed; other numbers: EINVAL. What is under way arrives as it would have. Event
 * IBV_EVENT_DEVICE_SPEED_CHANGE (20) at both ends, but only after simverbs_port_speed_events(1). */
int simverbs_port_set_rate(const char* node, uint8_t port, unsigned int width, unsigned int speed);

/* Sets whether programs are told of changes of speed, from now on. Default: 0, since a program that
 * was compiled before rdma-core 62 does not know that event. */
int simverbs_port_speed_events(int wanted);

/* ---- what happened --------------------------------------------------------------------------- */

/* Writes every event from here on to `path` as JSON Lines (the schema is the first line), until
 * simverbs_trace_close() or the end of the world. EBUSY while one is open, whether by this call or
 * by SIMVERBS_TRACE; or the errno of opening the file. */
int simverbs_trace_open(const char* path);
/* ENOENT when none is open; when something could not be written, why: ENOSPC or EIO, say. */
int simverbs_trace_close(void);

/* Writes every packet that a port of an HCA sends or gets, and every one that is lost, to `path` as
 * Wireshark reads it (pcapng; InfiniBand as ERF records, RoCE in Ethernet), until
 * simverbs_capture_close() or the end of the world. Errors as of simverbs_trace_open(); here the
 * variable is SIMVERBS_PCAP. */
int simverbs_capture_open(const char* path);
/* ENOENT when none is open; when something could not be written, why: ENOSPC or EIO, say. */
int simverbs_capture_close(void);

/* Writes out what is buffered of an open trace and an open capture, so that the files can be read
 * while they are open. 0 where none is open; EIO when something could not be written. */
int simverbs_trace_flush(void);

enum simverbs_field_kind {
    SIMVERBS_FIELD_SIGNED,   /* number, as int64_t */
    SIMVERBS_FIELD_UNSIGNED, /* number */
    SIMVERBS_FIELD_BOOL,     /* number, 0 or 1 */
    SIMVERBS_FIELD_TEXT,     /* text */
    SIMVERBS_FIELD_ENUM,     /* number, and text: the enumerator's name */
};

struct simverbs_field {
    const char* name; /* good as long as the library is loaded */
    enum simverbs_field_kind kind;
    uint64_t number;
    const char* text; /* "" where there is none */
};

struct simverbs_record {
    int64_t time_ps;
    const char* node;     /* "h0" */
    const char* category; /* "completion", "state", "fault", "packet", ...; good like a name */
    const char* name;     /* "fault_fired"; good as long as the library is loaded */
    const struct simverbs_field* fields;
    size_t field_count;
};

/* Calls `callback(record, argument)` for every event from here on; NULL ends that. The record and
 * all it points to last as long as the call. The callback runs with the world held: it must not
 * call verbs or this API, nor throw. One at a time: EBUSY while another one is called. */
typedef void (*simverbs_record_callback)(const struct simverbs_record* record, void* argument);
int simverbs_trace_callback(simverbs_record_callback callback, void* argument);

/* The next world keeps its last `records` events in memory, for simverbs_explain(); 0 (what it is
 * at first): none. EINVAL for more than 100,000,000, a record takes some 600 bytes; EBUSY when the
 * world exists already. */
int simverbs_set_kept_records(size_t records);

/* Why a work request failed, or a queue pair stopped, as far back as records are kept: sentences, a
 * line each, from the first failure of the queue pair `qp_num` of `host` since it was last in RESET
 * to what began it. 0 and NULL: of any. Lines about packets of UC and UD that were lost follow:
 * their sends complete with SUCCESS. "" when nothing of it has failed or was lost. The text is good
 * until the thread's next call of this function. NULL with simverbs_last_error() when no records
 * are kept, or when libsimverbs-scenario.so, which explains, is not in the folder simverbs beside
 * the library (Debian: package simverbs). */
const char* simverbs_explain(const char* host, uint32_t qp_num);

/* The same of the completion that the caller has just polled from that queue. */
struct ibv_cq;
struct ibv_wc;
const char* simverbs_explain_completion(struct ibv_cq* cq, const struct ibv_wc* wc);

/* Describes every queue pair, a line each below its host: its state, its PSNs, its outstanding
 * requests and what it waits for. SIGUSR2 makes a program print the same text on stderr.
 * The text is good until the thread's next call of this function. NULL with simverbs_last_error()
 * where there is no world. */
const char* simverbs_waits(void);

/* A queue pair that has left RESET, and what it waits for, in numbers. */
struct simverbs_queue_pair_report {
    const char* host;
    uint32_t qp_num;
    uint32_t sends_outstanding;
    uint32_t sends_begun;     /* of them, on the wire */
    uint32_t receives_posted; /* a shared receive queue's included */
    int64_t timer_ps;         /* when the timer that it waits for expires; -1: none runs */
    uint32_t rnr_naks;        /* how often its peer had no receive for the oldest request */
    int rnr_retries_left;     /* -1: without limit */
};

/* Calls `see(report, argument)` for each of them, in the order of simverbs_waits(). The report and
 * all it points to last as long as the call, which must not call verbs or this API, nor throw. */
int simverbs_report_queue_pairs(void (*see)(const struct simverbs_queue_pair_report* report,
                                            void* argument),
                                void* argument);

/* The digest by which runs are compared: of calls, completions, states, async events, fault firings
 * and message boundaries so far, with their times. The same program, topology, personality and seed
 * give the same digest. Looking at a run (traces) does not change it. */
int simverbs_run_digest(uint64_t* digest);

/* The same of packets, counted from the first call of this function on. */
int simverbs_packet_digest(uint64_t* digest);

/* *deterministic: 1 when nothing has happened that could differ in another run, else 0, and
 * simverbs_last_error() says what. */
int simverbs_is_deterministic(int* deterministic);

/* Makes the world as the scenario in the file `path` says: its fabric, settings and faults; what
 * the file leaves out is as simverbs_set_*() and the environment have it. The file has no programs
 * of its own. EBUSY when the world exists already; EINVAL with the mistakes of the file, with line
 * and column, for NULL, and when libsimverbs-scenario.so does not lie beside the library. A
 * scenario that the program does not end is judged at simverbs_restart() and at the end of the
 * program, as one of SIMVERBS_SCENARIO: the exit status is 1 when something was not as expected. */
int simverbs_begin_scenario(const char* path);

/* Judges what has happened so far by what the scenario expects, and ends it; the world goes on.
 * *report says what was not as expected, and why: "" where all of it was. The text is good until
 * the thread's next call of this function. ENOENT: none has begun. */
int simverbs_end_scenario(const char** report);

/* With SIMVERBS_WARN=1, a mistake of this name ("no_receive_at_rtr"; the error of another name has
 * them all) is not named in this world while `allowed` is 1; 0: it is named again. Another name:
 * EINVAL. */
int simverbs_allow_misuse(const char* name, int allowed);

/* The reason why the last function of this API, or the last verb, that failed in this thread did:
 * the value that was wrong and what would be valid, or what still uses an object that cannot be
 * destroyed (EBUSY). "" when none has failed. Good until the next failure in this thread. */
const char* simverbs_last_error(void);

#ifdef __cplusplus
}
#endif

#endif

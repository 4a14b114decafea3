/* The control API of simverbs: functions for the simulated fabric that verbs.h does not have.
 *
 * A program links libsimverbs (find_package(simverbs), or pkg-config simverbs) and uses
 * <infiniband/verbs.h> as on any machine. With the functions of this header it drops packets, moves
 * virtual time and reads digests. They act on the embedded world, the one inside this process. The
 * first use of a device makes the world, from environment variables (SIMVERBS_TOPOLOGY,
 * SIMVERBS_PERSONALITY, SIMVERBS_SEED ...) and from earlier simverbs_set_* calls, which take
 * precedence.
 *
 * A function that returns int returns 0 or a positive errno. After an error simverbs_last_error()
 * says what was wrong, where, and what would be valid. Functions that need the world return ENODEV
 * when it cannot be made, because an environment variable has a wrong value say, or when this
 * process uses the world of a server.
 *
 * All functions can be called from any thread. A call that changes the world waits for its turn
 * among the actors, see simverbs_actor(): it returns when every other thread waits as well.
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
 * The simverbs_set_* functions of this section are for the time before the world exists. After the
 * first ibv_get_device_list, ibv_open_device or other function of this header they return EBUSY,
 * until simverbs_restart(). */

/* Sets a setting to a value, both as text: simverbs_set("first_psn", "0xfffff8"). The settings are
 * the environment variables of simverbs(1), in lower case and without SIMVERBS_: "topology",
 * "personality", "routing", "seed", "first_psn", "first_qpn", "keys", "sm", "schedule", "order",
 * "spin_ms", "helper_thread", "host". The functions below set one of them each. EINVAL: an unknown
 * name, a value that is not valid, or NULL. */
int simverbs_set(const char* setting, const char* value);

/* Sets the topology. It is a generator or the path of a file: YAML, or the output of ibnetdiscover.
 * Generators are "pair" (two hosts, one link), "star:N" (hosts h0 to hN-1 on switch s0, N from 2)
 * and others that "simverbs topology check --help" lists; the same on Ethernet, "eth-pair" and
 * "eth-star:N"; and "vpi-pair", two hosts with port 1 on InfiniBand and port 2 on Ethernet. The
 * default is "star:2". EINVAL: an unknown name, or a file with a mistake. */
int simverbs_set_topology(const char* topology);

/* Sets the seed of all random numbers of the world. Any value is valid. The default is 1. */
int simverbs_set_seed(uint64_t seed);

/* Sets the device whose behaviour is simulated where devices differ: "spec" (the InfiniBand
 * Architecture Specification, the default), "connectx6" or "rxe". EINVAL: an unknown name. */
int simverbs_set_personality(const char* personality);

/* Adds `psn` to the PSNs of programs in packets, so that a program which starts at 0 soon wraps
 * past 0xFFFFFF. ibv_query_qp() shows the numbers of the program. The default is 0. EINVAL: above
 * 0xFFFFFF. */
int simverbs_set_first_psn(uint32_t psn);

/* Sets the low 16 bits of the first queue pair number of a context on the first device. Later
 * numbers rise from there; after 0xFFFF they begin again and skip those in use. Numbers and
 * keys of each further device begin 256 higher, so that a program which uses its own number instead
 * of its peer's fails. The default is 1. EINVAL: above 0xFFFF. */
int simverbs_set_first_qpn(uint32_t low_bits);

/* Sets the order of memory keys: rising, or random numbers that depend on the seed alone. Either
 * way a key is used again as late as possible. EINVAL: another number. */
enum simverbs_keys { SIMVERBS_KEYS_SEQUENTIAL, SIMVERBS_KEYS_RANDOM };
int simverbs_set_keys(enum simverbs_keys keys);

/* Ends the world with its faults and traces, and resets what simverbs_set_* has set. The next use
 * of a device makes a new world, whose time begins at 0. ibv_device pointers stay valid: they name
 * the devices of the next world where it has the same ones. Other threads become actors of the next
 * world, without their names, when they use it. EBUSY: a device is open. */
int simverbs_restart(void);

/* Closes every device that this process has open, with all objects on it, and returns how many
 * there were. For tests that failed and left objects behind, so that simverbs_restart() can end the
 * world. Pointers to the devices and their objects are invalid then, as after ibv_close_device();
 * another ibv_close_device() of one is refused with EINVAL. The memory of the objects stays
 * allocated, as it does there. */
unsigned simverbs_close_devices(void);

/* Lists the objects on an open device: "simverbs0 with 0 queue pairs and 1 completion queue, 1
 * memory region". Returns "" for a device without objects, which is how ibv_close_device() should
 * find it, and for NULL. The text is valid until the thread's next call of this function. */
struct ibv_context;
const char* simverbs_objects_left(struct ibv_context* context);

/* Returns the name of the device's host in the topology, "h0". It is valid as long as the device.
 * Returns NULL for NULL. */
struct ibv_device;
const char* simverbs_device_host(struct ibv_device* device);

/* ---- time ------------------------------------------------------------------------------------ */

/* Writes virtual time, in ps since the world was made, to *now. It is the time of the last event.
 */
int simverbs_now_ps(int64_t* now);

/* Advances virtual time by `duration` ps and runs all events that are due until then. It takes as
 * much wall time as the events take. Completions stay in their queues. Other actors run meanwhile
 * as if the caller polled an empty queue. EINVAL: a negative duration. */
int simverbs_advance_ps(int64_t duration);

/* Runs all events of the next instant, if that is at most `most` ps ahead, and sets *ran to 1. Else
 * time does not move, and *ran is 0. For programs that move time from one thread; an empty poll
 * does the same without a limit. EINVAL: a negative `most`. EBUSY: there are other actors. */
int simverbs_step_ps(int64_t most, int* ran);

/* Sets a function of the calling thread that waits in place of the library, for a scheduler of
 * tasks in one thread, as simverbs::Lab is one of fibers. A poll that finds nothing calls `wait`
 * instead of moving time; a blocking verb calls it until there is something. `wait` runs other
 * tasks, and calls simverbs_step_ps() when all of them wait. NULL removes it. Exceptions that it
 * throws pass through the verb. */
typedef void (*simverbs_wait_hook)(void* argument);
void simverbs_set_wait_hook(simverbs_wait_hook wait, void* argument);

/* Sets a function that names the host for which the calling thread opens event channels of rdma_cm.
 * The ids of such a channel are on that host alone. Without the function, or where it returns NULL,
 * they can be on any host that the process sees. */
typedef const char* (*simverbs_host_hook)(void* argument);
void simverbs_set_host_hook(simverbs_host_hook host, void* argument);

/* ---- actors ---------------------------------------------------------------------------------- */

/* Names the calling thread, in 1 to 63 bytes. Actions of several threads in one instant are ordered
 * by these names; threads without one follow in the order of their creation. The library knows that
 * order where it is linked or preloaded. In a program that loads it by dlopen(3), unnamed threads
 * are ordered by their first call, and the run is marked as not deterministic when two of them act
 * in one instant. EINVAL: NULL, "" or a longer name. EEXIST: another living thread has the name. */
int simverbs_actor(const char* name);

/* Holds virtual time until `count` threads, the caller included, have called a verb or a function
 * of this header. For programs whose threads the library does not see being created. 0, the
 * default, does not hold it. */
int simverbs_actors(unsigned count);

/* ---- links and ports -------------------------------------------------------------------------
 * Changes as an operator or a subnet manager makes them. They take effect at once. */

/* Takes a link down (up = 0), which loses the packets in flight, or brings it up. The subnet
 * manager makes the ports of a link that comes up ACTIVE 1 ms of virtual time later. A link that is
 * in that state already stays as it is. */
int simverbs_set_link(const char* link, int up);

/* The following functions change port `port` (from 1) of host `node` and raise an event in all
 * contexts of its device. ENOENT: there is no such host or port. EOPNOTSUPP: the port is an
 * Ethernet port, and the function is for InfiniBand. */

/* Sets the LID, from 1 to 0xBFFF, and raises IBV_EVENT_LID_CHANGE. Routes lead to the new LID;
 * packets to the old one are lost. EINVAL: out of range, or the LID of another port. InfiniBand. */
int simverbs_port_set_lid(const char* node, uint8_t port, uint16_t lid);

/* Sets the first `count` entries of the P_Key table, in host byte order, and raises
 * IBV_EVENT_PKEY_CHANGE. The other entries become 0, which matches nothing. Queue pairs use what
 * their pkey_index names then. EINVAL: a count of 0, or more than the port has. InfiniBand. */
int simverbs_port_set_pkeys(const char* node, uint8_t port, const uint16_t* pkeys, size_t count);

/* Sets a GID and raises IBV_EVENT_GID_CHANGE. EINVAL: `index` is neither an entry of the table nor
 * the first empty one. InfiniBand. */
int simverbs_port_set_gid(const char* node, uint8_t port, unsigned int index,
                          const uint8_t gid[16]);

/* Tells the port that the master subnet manager is at that LID, from 1 to 0xBFFF, and raises
 * IBV_EVENT_SM_CHANGE. EINVAL: out of range. InfiniBand. */
int simverbs_port_set_sm_lid(const char* node, uint8_t port, uint16_t lid);

/* Raises IBV_EVENT_CLIENT_REREGISTER. InfiniBand. */
int simverbs_port_reregister(const char* node, uint8_t port);

/* Sets width and speed of the port's link at both ends, encoded as ibv_port_attr.active_width and
 * active_speed. Packets in flight arrive as before. Raises IBV_EVENT_DEVICE_SPEED_CHANGE (20) at
 * both ends if simverbs_port_speed_events(1) asked for it. EINVAL: other numbers. */
int simverbs_port_set_rate(const char* node, uint8_t port, unsigned int width, unsigned int speed);

/* Turns events about changes of speed on (1) or off (0). The default is 0, since programs that were
 * compiled before rdma-core 62 do not know that event. */
int simverbs_port_speed_events(int wanted);

/* ---- what happened --------------------------------------------------------------------------- */

/* Opens a trace: writes each record from here on to `path` as JSON Lines, the schema in the first
 * line, until simverbs_trace_close() or the end of the world. EBUSY: a trace is open, by this
 * function or by SIMVERBS_TRACE. Other errors are those of open(2). */
int simverbs_trace_open(const char* path);
/* Closes the trace. ENOENT: none is open. ENOSPC, EIO and others: it could not be written whole. */
int simverbs_trace_close(void);

/* Opens a capture: writes each packet that a port of an HCA sends or receives, and each that is
 * lost, to `path` in a format of Wireshark (pcapng; InfiniBand as ERF records, RoCE in Ethernet
 * frames), until simverbs_capture_close() or the end of the world. Errors are those of
 * simverbs_trace_open(); the variable is SIMVERBS_PCAP. */
int simverbs_capture_open(const char* path);
/* Closes the capture. Errors are those of simverbs_trace_close(). */
int simverbs_capture_close(void);

/* Flushes the buffers of an open trace and an open capture, so that the files can be read. Returns
 * 0 where none is open. EIO: something could not be written. */
int simverbs_trace_flush(void);

enum simverbs_field_kind {
    SIMVERBS_FIELD_SIGNED,   /* number, as int64_t */
    SIMVERBS_FIELD_UNSIGNED, /* number */
    SIMVERBS_FIELD_BOOL,     /* number, 0 or 1 */
    SIMVERBS_FIELD_TEXT,     /* text */
    SIMVERBS_FIELD_ENUM,     /* number, and text: the enumerator's name */
};

struct simverbs_field {
    const char* name; /* valid as long as the library is loaded */
    enum simverbs_field_kind kind;
    uint64_t number;
    const char* text; /* "" for numbers */
};

/* A record of a trace: simverbs-trace(5) lists all of them. */
struct simverbs_record {
    int64_t time_ps;
    const char* node;     /* "h0" */
    const char* category; /* "completion", "state", "fault", "packet" ...; valid like a name */
    const char* name;     /* "fault_fired"; valid as long as the library is loaded */
    const struct simverbs_field* fields;
    size_t field_count;
};

/* Calls `callback(record, argument)` for each record from here on; NULL ends that. The record and
 * what it points to, names aside, are valid during the call. The callback must not call verbs or
 * functions of this header, nor throw. EBUSY: another callback is set. */
typedef void (*simverbs_record_callback)(const struct simverbs_record* record, void* argument);
int simverbs_trace_callback(simverbs_record_callback callback, void* argument);

/* Makes the next world keep its last `records` records in memory for simverbs_explain(). The
 * default is 0. A record takes some 600 bytes. EINVAL: more than 100,000,000. EBUSY: the world
 * exists. */
int simverbs_set_kept_records(size_t records);

/* Explains why a work request failed or a queue pair stopped, from the records that are kept. The
 * text has a sentence in each line: from the first failure of queue pair `qp_num` on `host` since
 * it was last in RESET, back to its cause. NULL and 0 ask about any queue pair. Then follow the
 * packets of UC and UD that were lost, although their sends completed with SUCCESS. Returns ""
 * where nothing failed or was lost. The text is valid until the thread's next call of this
 * function. Returns NULL, see simverbs_last_error(), when no records are kept, or when
 * libsimverbs-scenario.so is not in the folder simverbs beside the library (Debian: package
 * simverbs). */
const char* simverbs_explain(const char* host, uint32_t qp_num);

/* Explains the completion that the caller has just polled from `cq`, as simverbs_explain() does. */
struct ibv_cq;
struct ibv_wc;
const char* simverbs_explain_completion(struct ibv_cq* cq, const struct ibv_wc* wc);

/* Describes each queue pair, in a line below its host: state, PSNs, outstanding requests, and what
 * it waits for. A program that gets SIGUSR2 prints the same text on stderr. The text is valid until
 * the thread's next call of this function. Returns NULL, see simverbs_last_error(), without a
 * world. */
const char* simverbs_waits(void);

/* A queue pair that has left RESET, with what simverbs_waits() says as numbers. */
struct simverbs_queue_pair_report {
    const char* host;
    uint32_t qp_num;
    uint32_t sends_outstanding;
    uint32_t sends_begun;     /* outstanding sends of which a packet has left */
    uint32_t receives_posted; /* to it, or to its shared receive queue */
    int64_t timer_ps;         /* virtual time at which its timer expires; -1: no timer runs */
    uint32_t rnr_naks;        /* RNR NAKs for the oldest outstanding request */
    int rnr_retries_left;     /* -1: without limit */
};

/* Calls `see(report, argument)` for each queue pair that has left RESET, in the order of
 * simverbs_waits(). The report and what it points to are valid during the call. `see` must not call
 * verbs or functions of this header, nor throw. */
int simverbs_report_queue_pairs(void (*see)(const struct simverbs_queue_pair_report* report,
                                            void* argument),
                                void* argument);

/* Writes the run digest, a hash of all calls, completions, states, async events, fault firings and
 * message boundaries so far, with their times. The same program, topology, personality and seed
 * give the same digest. Traces and captures do not change it. */
int simverbs_run_digest(uint64_t* digest);

/* Writes a digest of all packets since the first call of this function. */
int simverbs_packet_digest(uint64_t* digest);

/* Sets *deterministic to 1 when nothing has happened that could differ in another run. Else it is
 * 0, and simverbs_last_error() says what has happened. */
int simverbs_is_deterministic(int* deterministic);

/* Makes the world from the scenario in file `path`: its fabric, settings and faults. Settings that
 * the file leaves out are those of simverbs_set_*() and of the environment. The file must not have
 * programs of its own. A scenario that the program does not end is judged at simverbs_restart() or
 * at the end of the program, as one of SIMVERBS_SCENARIO is: the exit status is 1 when an
 * expectation does not hold. EBUSY: the world exists. EINVAL: the file has mistakes, which
 * simverbs_last_error() lists by line and column; `path` is NULL; or libsimverbs-scenario.so is not
 * in the folder simverbs beside the library. */
int simverbs_begin_scenario(const char* path);

/* Compares what has happened with what the scenario expects, and ends the scenario. The world goes
 * on. *report lists the expectations that do not hold, and why, or is "". The text is valid until
 * the thread's next call of this function. ENOENT: no scenario has begun. */
int simverbs_end_scenario(const char** report);

/* Allows a mistake that SIMVERBS_WARN=1 would report, "no_receive_at_rtr" say, in this world (1),
 * or reports it again (0). EINVAL: an unknown name; simverbs_last_error() lists all names. */
int simverbs_allow_misuse(const char* name, int allowed);

/* Returns why the last function of this header, or the last verb, failed in this thread: the value
 * that is wrong and what would be valid, or what still uses an object that cannot be destroyed
 * (EBUSY). Returns "" when none has failed. The text is valid until the next failure in this
 * thread. */
const char* simverbs_last_error(void);

#ifdef __cplusplus
}
#endif

#endif

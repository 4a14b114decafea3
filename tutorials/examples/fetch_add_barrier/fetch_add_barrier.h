/* A barrier for up to eight ranks in one word of some host's memory, by fetch-and-add. Each rank
 * counts its arrivals in a byte of its own, so that it can tell whether an arrival was counted
 * whose answer never came. That host's processor takes no part. Connecting is left to the caller.
 */
#ifndef FETCH_ADD_BARRIER_H
#define FETCH_ADD_BARRIER_H

#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FETCH_ADD_BARRIER_RANKS = 8 };

/* The word: 8 bytes, aligned, 0 at first, in a region with IBV_ACCESS_REMOTE_ATOMIC and
 * IBV_ACCESS_REMOTE_READ. */
struct fetch_add_barrier_place {
    uint64_t address;
    uint32_t rkey;
};

enum fetch_add_barrier_result {
    FETCH_ADD_BARRIER_CLOSED,      /* some rank has not arrived */
    FETCH_ADD_BARRIER_OPEN,        /* all ranks have */
    FETCH_ADD_BARRIER_ARRIVED,     /* this rank's arrival is counted */
    FETCH_ADD_BARRIER_UNREACHABLE, /* the queue pair failed: connect it anew, then call again */
};

/* Members are the functions' own, except qp, which is to be connected, and status. */
struct fetch_add_barrier {
    struct fetch_add_barrier_place place;
    unsigned rank;
    unsigned ranks;
    uint8_t arrivals;          /* of this rank, modulo 256 */
    int is_unsure;             /* an arrival was sent, and its answer has not come */
    enum ibv_wc_status status; /* of the last request */
    struct ibv_pd* pd;
    struct ibv_cq* cq;
    struct ibv_mr* mr; /* of `word` */
    struct ibv_qp* qp;
    uint64_t word; /* as the last request found it */
};

/* Returns 0, or an errno and nothing is left open. The structure stays where it is until
 * fetch_add_barrier_close(). */
int fetch_add_barrier_open(struct fetch_add_barrier* barrier, struct ibv_context* device,
                           struct fetch_add_barrier_place place, unsigned rank, unsigned ranks);
void fetch_add_barrier_close(struct fetch_add_barrier* barrier);

/* Arrives, once for each barrier: ARRIVED, or UNREACHABLE. */
enum fetch_add_barrier_result fetch_add_barrier_arrive(struct fetch_add_barrier* barrier);

/* Looks whether all ranks have arrived as often as this one: OPEN, CLOSED or UNREACHABLE. */
enum fetch_add_barrier_result fetch_add_barrier_look(struct fetch_add_barrier* barrier);

#ifdef __cplusplus
}
#endif

#endif

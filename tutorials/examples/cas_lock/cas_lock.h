/* A lock in the memory of some host, taken and released by compare-and-swap: 0 is free, else the
 * word holds the number of its owner. That host's processor takes no part. Connecting is left to
 * the caller. */
#ifndef CAS_LOCK_H
#define CAS_LOCK_H

#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The word: 8 bytes, aligned, in a region with IBV_ACCESS_REMOTE_ATOMIC. */
struct cas_lock_place {
    uint64_t address;
    uint32_t rkey;
};

enum cas_lock_result {
    CAS_LOCK_OK,
    CAS_LOCK_HELD, /* somebody else has it */
    /* This owner does not have it: it was taken away, and what it protects may have changed. Or an
     * earlier release has succeeded without its answer. */
    CAS_LOCK_LOST,
    CAS_LOCK_UNREACHABLE, /* the queue pair failed: connect it anew, then do the same again */
};

/* Members are the functions' own, except qp, which is to be connected, and status. */
struct cas_lock {
    struct cas_lock_place place;
    uint64_t owner;
    enum ibv_wc_status status; /* of the last atomic */
    struct ibv_pd* pd;
    struct ibv_cq* cq;
    struct ibv_mr* mr; /* of `before` */
    struct ibv_qp* qp;
    uint64_t before; /* what the word held before the last atomic */
};

/* `owner` is not 0, and nobody else's. Returns 0, or an errno and nothing is left open. The
 * structure stays where it is until cas_lock_close(). */
int cas_lock_open(struct cas_lock* lock, struct ibv_context* device, struct cas_lock_place place,
                  uint64_t owner);
void cas_lock_close(struct cas_lock* lock);

/* Takes the lock if it is free, or is this owner's already. With CAS_LOCK_HELD `before` has the
 * owner. */
enum cas_lock_result cas_lock_try(struct cas_lock* lock);

/* Tries up to `tries` times. */
enum cas_lock_result cas_lock_acquire(struct cas_lock* lock, unsigned tries);

/* Releases it, unless another one has it meanwhile. */
enum cas_lock_result cas_lock_release(struct cas_lock* lock);

/* Takes it from an owner that is known to be gone. */
enum cas_lock_result cas_lock_break(struct cas_lock* lock, uint64_t dead_owner);

#ifdef __cplusplus
}
#endif

#endif

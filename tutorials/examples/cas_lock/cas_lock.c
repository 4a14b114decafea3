/* Each function is one compare-and-swap, whose answer is what the word held before. Both ends count
 * bytes alike: the word is in the byte order of hosts. */
#include "cas_lock.h"

#include <errno.h>
#include <string.h>

int cas_lock_open(struct cas_lock* lock, struct ibv_context* device, struct cas_lock_place place,
                  uint64_t owner) {
    memset(lock, 0, sizeof *lock);
    if (owner == 0) {
        return EINVAL;
    }
    lock->place = place;
    lock->owner = owner;
    errno = 0;
    lock->pd = ibv_alloc_pd(device);
    if (lock->pd != NULL) {
        lock->cq = ibv_create_cq(device, 1, NULL, NULL, 0);
    }
    if (lock->cq != NULL) {
        lock->mr = ibv_reg_mr(lock->pd, &lock->before, sizeof lock->before, IBV_ACCESS_LOCAL_WRITE);
    }
    if (lock->mr != NULL) {
        struct ibv_qp_init_attr init = {
            .send_cq = lock->cq,
            .recv_cq = lock->cq,
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        };
        lock->qp = ibv_create_qp(lock->pd, &init);
    }
    if (lock->qp == NULL) {
        int error = errno;
        cas_lock_close(lock);
        return error;
    }
    return 0;
}

void cas_lock_close(struct cas_lock* lock) {
    if (lock->qp != NULL) {
        ibv_destroy_qp(lock->qp);
    }
    if (lock->mr != NULL) {
        ibv_dereg_mr(lock->mr);
    }
    if (lock->cq != NULL) {
        ibv_destroy_cq(lock->cq);
    }
    if (lock->pd != NULL) {
        ibv_dealloc_pd(lock->pd);
    }
    memset(lock, 0, sizeof *lock);
}

/* Replaces `expected` by `desired`. Returns 1 when `before` has the answer. */
static int compare_and_swap(struct cas_lock* lock, uint64_t expected, uint64_t desired) {
    struct ibv_sge piece = {
        .addr = (uintptr_t)&lock->before, .length = sizeof lock->before, .lkey = lock->mr->lkey};
    struct ibv_send_wr request = {
        .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
        .send_flags = IBV_SEND_SIGNALED,
        .sg_list = &piece,
        .num_sge = 1,
        .wr.atomic = {.remote_addr = lock->place.address,
                      .rkey = lock->place.rkey,
                      .compare_add = expected,
                      .swap = desired},
    };
    struct ibv_send_wr* bad = NULL;
    struct ibv_wc completion = {.status = IBV_WC_GENERAL_ERR};
    if (ibv_post_send(lock->qp, &request, &bad) == 0) {
        while (ibv_poll_cq(lock->cq, 1, &completion) == 0) {
        }
    }
    lock->status = completion.status;
    return completion.status == IBV_WC_SUCCESS;
}

enum cas_lock_result cas_lock_try(struct cas_lock* lock) {
    if (!compare_and_swap(lock, 0, lock->owner)) {
        return CAS_LOCK_UNREACHABLE;
    }
    /* An earlier try may have succeeded without its answer. */
    return lock->before == 0 || lock->before == lock->owner ? CAS_LOCK_OK : CAS_LOCK_HELD;
}

enum cas_lock_result cas_lock_acquire(struct cas_lock* lock, unsigned tries) {
    enum cas_lock_result result = CAS_LOCK_HELD;
    for (unsigned i = 0; i < tries && result == CAS_LOCK_HELD; ++i) {
        result = cas_lock_try(lock);
    }
    return result;
}

enum cas_lock_result cas_lock_release(struct cas_lock* lock) {
    if (!compare_and_swap(lock, lock->owner, 0)) {
        return CAS_LOCK_UNREACHABLE;
    }
    return lock->before == lock->owner ? CAS_LOCK_OK : CAS_LOCK_LOST;
}

enum cas_lock_result cas_lock_break(struct cas_lock* lock, uint64_t dead_owner) {
    if (!compare_and_swap(lock, dead_owner, lock->owner)) {
        return CAS_LOCK_UNREACHABLE;
    }
    return lock->before == dead_owner || lock->before == lock->owner ? CAS_LOCK_OK : CAS_LOCK_HELD;
}

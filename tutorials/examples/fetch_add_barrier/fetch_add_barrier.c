/* The word in memory: byte i, from the lowest, counts the arrivals of rank i modulo 256. */
#include "fetch_add_barrier.h"

#include <errno.h>
#include <string.h>

enum { BITS = 8 };

int fetch_add_barrier_open(struct fetch_add_barrier* barrier, struct ibv_context* device,
                           struct fetch_add_barrier_place place, unsigned rank, unsigned ranks) {
    memset(barrier, 0, sizeof *barrier);
    if (rank >= ranks || ranks > FETCH_ADD_BARRIER_RANKS) {
        return EINVAL;
    }
    barrier->place = place;
    barrier->rank = rank;
    barrier->ranks = ranks;
    errno = 0;
    barrier->pd = ibv_alloc_pd(device);
    if (barrier->pd != NULL) {
        barrier->cq = ibv_create_cq(device, 1, NULL, NULL, 0);
    }
    if (barrier->cq != NULL) {
        barrier->mr =
            ibv_reg_mr(barrier->pd, &barrier->word, sizeof barrier->word, IBV_ACCESS_LOCAL_WRITE);
    }
    if (barrier->mr != NULL) {
        struct ibv_qp_init_attr init = {
            .send_cq = barrier->cq,
            .recv_cq = barrier->cq,
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        };
        barrier->qp = ibv_create_qp(barrier->pd, &init);
    }
    if (barrier->qp == NULL) {
        int error = errno;
        fetch_add_barrier_close(barrier);
        return error;
    }
    return 0;
}

void fetch_add_barrier_close(struct fetch_add_barrier* barrier) {
    if (barrier->qp != NULL) {
        ibv_destroy_qp(barrier->qp);
    }
    if (barrier->mr != NULL) {
        ibv_dereg_mr(barrier->mr);
    }
    if (barrier->cq != NULL) {
        ibv_destroy_cq(barrier->cq);
    }
    if (barrier->pd != NULL) {
        ibv_dealloc_pd(barrier->pd);
    }
    memset(barrier, 0, sizeof *barrier);
}

/* Returns 1 when `word` has the answer. */
static int carry_out(struct fetch_add_barrier* barrier, struct ibv_send_wr request) {
    struct ibv_sge piece = {.addr = (uintptr_t)&barrier->word,
                            .length = sizeof barrier->word,
                            .lkey = barrier->mr->lkey};
    request.send_flags = IBV_SEND_SIGNALED;
    request.sg_list = &piece;
    request.num_sge = 1;
    struct ibv_send_wr* bad = NULL;
    struct ibv_wc completion = {.status = IBV_WC_GENERAL_ERR};
    if (ibv_post_send(barrier->qp, &request, &bad) == 0) {
        while (ibv_poll_cq(barrier->cq, 1, &completion) == 0) {
        }
    }
    barrier->status = completion.status;
    return completion.status == IBV_WC_SUCCESS;
}

static int read_word(struct fetch_add_barrier* barrier) {
    struct ibv_send_wr request = {
        .opcode = IBV_WR_RDMA_READ,
        .wr.rdma = {.remote_addr = barrier->place.address, .rkey = barrier->place.rkey},
    };
    return carry_out(barrier, request);
}

static int fetch_and_add(struct fetch_add_barrier* barrier, uint64_t addend) {
    struct ibv_send_wr request = {
        .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
        .wr.atomic = {.remote_addr = barrier->place.address,
                      .rkey = barrier->place.rkey,
                      .compare_add = addend},
    };
    return carry_out(barrier, request);
}

static uint8_t arrivals_of(const struct fetch_add_barrier* barrier, unsigned rank) {
    return (uint8_t)(barrier->word >> (rank * BITS));
}

enum fetch_add_barrier_result fetch_add_barrier_arrive(struct fetch_add_barrier* barrier) {
    uint8_t next = (uint8_t)(barrier->arrivals + 1);
    if (barrier->is_unsure && !read_word(barrier)) {
        return FETCH_ADD_BARRIER_UNREACHABLE;
    }
    if (!barrier->is_unsure || arrivals_of(barrier, barrier->rank) != next) {
        /* From 255 to 0 without a carry into the next rank's byte. */
        uint64_t one = 1ULL << (barrier->rank * BITS);
        barrier->is_unsure = 1;
        if (!fetch_and_add(barrier, next == 0 ? -UINT8_MAX * one : one)) {
            return FETCH_ADD_BARRIER_UNREACHABLE;
        }
    }
    barrier->is_unsure = 0;
    barrier->arrivals = next;
    return FETCH_ADD_BARRIER_ARRIVED;
}

/* A rank may be one barrier ahead, but never two. */
enum fetch_add_barrier_result fetch_add_barrier_look(struct fetch_add_barrier* barrier) {
    if (!read_word(barrier)) {
        return FETCH_ADD_BARRIER_UNREACHABLE;
    }
    for (unsigned rank = 0; rank < barrier->ranks; ++rank) {
        if ((int8_t)(arrivals_of(barrier, rank) - barrier->arrivals) < 0) {
            return FETCH_ADD_BARRIER_CLOSED;
        }
    }
    return FETCH_ADD_BARRIER_OPEN;
}

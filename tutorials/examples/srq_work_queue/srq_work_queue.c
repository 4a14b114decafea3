/* The consumer's half and the producers' half, over SEND and a shared receive queue. */
#include "srq_work_queue.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* ---- the consumer ---------------------------------------------------------------------------- */

static int post_slot(struct work_queue* queue, uint32_t slot) {
    struct ibv_sge piece = {
        .addr = (uintptr_t)(queue->slots + (size_t)slot * WORK_ITEM_BYTES),
        .length = WORK_ITEM_BYTES,
        .lkey = queue->mr->lkey,
    };
    struct ibv_recv_wr request = {.wr_id = slot, .sg_list = &piece, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    return ibv_post_srq_recv(queue->srq, &request, &bad);
}

/* The device raises one event when fewer than low_water receives are left, and none thereafter. */
static int arm_low_water(struct work_queue* queue) {
    struct ibv_srq_attr attr = {.srq_limit = queue->options.low_water};
    return ibv_modify_srq(queue->srq, &attr, IBV_SRQ_LIMIT);
}

static int make_objects(struct work_queue* queue) {
    unsigned slots = queue->options.receives + queue->options.spares;
    queue->slots = calloc(slots, WORK_ITEM_BYTES);
    if (queue->slots == NULL) {
        return ENOMEM;
    }
    queue->pd = ibv_alloc_pd(queue->device);
    if (queue->pd == NULL) {
        return errno;
    }
    queue->cq = ibv_create_cq(queue->device, (int)slots, NULL, NULL, 0);
    if (queue->cq == NULL) {
        return errno;
    }
    queue->mr = ibv_reg_mr(queue->pd, queue->slots, (size_t)slots * WORK_ITEM_BYTES,
                           IBV_ACCESS_LOCAL_WRITE);
    if (queue->mr == NULL) {
        return errno;
    }
    struct ibv_srq_init_attr init = {.attr = {.max_wr = slots, .max_sge = 1}};
    queue->srq = ibv_create_srq(queue->pd, &init);
    if (queue->srq == NULL) {
        return errno;
    }
    for (unsigned slot = 0; slot < queue->options.receives; ++slot) {
        int error = post_slot(queue, slot);
        if (error != 0) {
            return error;
        }
    }
    return queue->options.low_water == 0 ? 0 : arm_low_water(queue);
}

int work_queue_open(struct work_queue* queue, struct ibv_context* device,
                    struct work_queue_options options) {
    memset(queue, 0, sizeof *queue);
    queue->device = device;
    queue->options = options;
    int error = make_objects(queue);
    if (error != 0) {
        work_queue_close(queue);
    }
    return error;
}

void work_queue_close(struct work_queue* queue) {
    if (queue->srq != NULL) {
        ibv_destroy_srq(queue->srq);
    }
    if (queue->mr != NULL) {
        ibv_dereg_mr(queue->mr);
    }
    if (queue->cq != NULL) {
        ibv_destroy_cq(queue->cq);
    }
    if (queue->pd != NULL) {
        ibv_dealloc_pd(queue->pd);
    }
    free(queue->slots);
    memset(queue, 0, sizeof *queue);
}

struct ibv_qp* work_queue_add_producer(struct work_queue* queue) {
    struct ibv_qp_init_attr init = {
        .send_cq = queue->cq,
        .recv_cq = queue->cq,
        .srq = queue->srq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 1, .max_send_sge = 1},
    };
    return ibv_create_qp(queue->pd, &init);
}

static int post_spares(struct work_queue* queue) {
    unsigned slots = queue->options.receives + queue->options.spares;
    unsigned first = queue->options.receives + queue->posted_spares;
    for (uint32_t slot = first; slot < slots; ++slot) {
        int error = post_slot(queue, slot);
        if (error != 0) {
            return error;
        }
        ++queue->posted_spares;
    }
    return 0;
}

/* Returns 1 when ibv_get_async_event() has something, and would not block. */
static int has_event(const struct work_queue* queue) {
    struct pollfd descriptor = {.fd = queue->device->async_fd, .events = POLLIN};
    return poll(&descriptor, 1, 0) == 1;
}

/* Takes the events of the device, among them the one that receives are few. */
static int take_events(struct work_queue* queue) {
    while (has_event(queue)) {
        struct ibv_async_event event;
        if (ibv_get_async_event(queue->device, &event) != 0) {
            return errno;
        }
        int is_low = event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED;
        ibv_ack_async_event(&event);
        int error = is_low ? post_spares(queue) : 0;
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

int work_queue_next(struct work_queue* queue, struct work_item* item) {
    errno = take_events(queue);
    if (errno != 0) {
        return -1;
    }
    struct ibv_wc completion;
    int polled = ibv_poll_cq(queue->cq, 1, &completion);
    if (polled == 0) {
        return 0;
    }
    if (polled < 0 || completion.status != IBV_WC_SUCCESS) {
        errno = EIO;
        return -1;
    }
    item->slot = (uint32_t)completion.wr_id;
    item->data = queue->slots + (size_t)item->slot * WORK_ITEM_BYTES;
    item->bytes = completion.byte_len;
    item->producer = completion.qp_num;
    return 1;
}

int work_queue_done(struct work_queue* queue, const struct work_item* item) {
    return post_slot(queue, item->slot);
}

/* ---- a producer ------------------------------------------------------------------------------ */

int work_producer_open(struct work_producer* producer, struct ibv_context* device) {
    memset(producer, 0, sizeof *producer);
    producer->pd = ibv_alloc_pd(device);
    if (producer->pd != NULL) {
        producer->cq = ibv_create_cq(device, 1, NULL, NULL, 0);
    }
    if (producer->cq != NULL) {
        producer->mr = ibv_reg_mr(producer->pd, producer->item, sizeof producer->item, 0);
    }
    if (producer->mr != NULL) {
        struct ibv_qp_init_attr init = {
            .send_cq = producer->cq,
            .recv_cq = producer->cq,
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        };
        producer->qp = ibv_create_qp(producer->pd, &init);
    }
    if (producer->qp == NULL) {
        int error = errno;
        work_producer_close(producer);
        return error;
    }
    return 0;
}

void work_producer_close(struct work_producer* producer) {
    if (producer->qp != NULL) {
        ibv_destroy_qp(producer->qp);
    }
    if (producer->mr != NULL) {
        ibv_dereg_mr(producer->mr);
    }
    if (producer->cq != NULL) {
        ibv_destroy_cq(producer->cq);
    }
    if (producer->pd != NULL) {
        ibv_dealloc_pd(producer->pd);
    }
    memset(producer, 0, sizeof *producer);
}

enum ibv_wc_status work_producer_submit(struct work_producer* producer, const void* data,
                                        uint32_t bytes) {
    if (bytes > WORK_ITEM_BYTES) {
        return IBV_WC_LOC_LEN_ERR;
    }
    memcpy(producer->item, data, bytes);
    struct ibv_sge piece = {
        .addr = (uintptr_t)producer->item, .length = bytes, .lkey = producer->mr->lkey};
    struct ibv_send_wr request = {
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
        .sg_list = &piece,
        .num_sge = 1,
    };
    struct ibv_send_wr* bad = NULL;
    struct ibv_wc completion = {.status = IBV_WC_GENERAL_ERR};
    if (ibv_post_send(producer->qp, &request, &bad) == 0) {
        while (ibv_poll_cq(producer->cq, 1, &completion) == 0) {
        }
    }
    return completion.status;
}

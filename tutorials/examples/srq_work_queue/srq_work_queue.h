/* A work queue: many producers send items, and one consumer takes them from a shared receive queue.
 * The consumer may keep items while it works on them. When receives become few, the device says so,
 * and the consumer posts spare ones. Connecting is left to the caller. */
#ifndef SRQ_WORK_QUEUE_H
#define SRQ_WORK_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WORK_ITEM_BYTES = 256 };

/* ---- the consumer ---------------------------------------------------------------------------- */

struct work_queue_options {
    unsigned receives;  /* posted from the beginning */
    unsigned spares;    /* posted when fewer than low_water are left */
    unsigned low_water; /* 0: spares stay where they are */
};

struct work_queue {
    struct ibv_context* device;
    struct ibv_pd* pd;
    struct ibv_cq* cq;
    struct ibv_srq* srq;
    struct ibv_mr* mr;
    char* slots; /* WORK_ITEM_BYTES each: receives, then spares */
    struct work_queue_options options;
    unsigned posted_spares;
};

struct work_item {
    const char* data;
    uint32_t bytes;
    uint32_t slot;
    uint32_t producer; /* ibv_qp.qp_num of the consumer's end */
};

/* Returns 0, or an errno and nothing is left open. Async events of the device are the queue's to
 * take. */
int work_queue_open(struct work_queue* queue, struct ibv_context* device,
                    struct work_queue_options options);
/* After the queue pairs of producers are destroyed. */
void work_queue_close(struct work_queue* queue);

/* The consumer's end of a connection: a queue pair that receives from the shared queue, the
 * caller's to connect and to destroy. Items that are not taken by then vanish with it. NULL with
 * errno. */
struct ibv_qp* work_queue_add_producer(struct work_queue* queue);

/* Takes the next item. Returns 1, 0 where there is none, or -1 with errno. */
int work_queue_next(struct work_queue* queue, struct work_item* item);
/* Gives the memory of an item back. Returns 0 or an errno. */
int work_queue_done(struct work_queue* queue, const struct work_item* item);

/* ---- a producer ------------------------------------------------------------------------------ */

struct work_producer {
    struct ibv_pd* pd;
    struct ibv_cq* cq;
    struct ibv_mr* mr;
    struct ibv_qp* qp; /* to be connected with rnr_retry 7: a full queue makes producers wait */
    char item[WORK_ITEM_BYTES];
};

int work_producer_open(struct work_producer* producer, struct ibv_context* device);
void work_producer_close(struct work_producer* producer);

/* Returns when the item is in the consumer's memory, or why it is not. `bytes` is at most
 * WORK_ITEM_BYTES, else IBV_WC_LOC_LEN_ERR. */
enum ibv_wc_status work_producer_submit(struct work_producer* producer, const void* data,
                                        uint32_t bytes);

#ifdef __cplusplus
}
#endif

#endif

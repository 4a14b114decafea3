/* A window of type 2 opens a part of a region to the peer, for as long as the owner likes: bound by
   a work request, used by its own key, and closed again. */
#include "end.h"

enum { kOffset = 1024, kWindowBytes = 512 };

static struct end a, b;

static void write_to_b(uint32_t rkey, uint32_t offset, enum ibv_wc_status expected) {
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
    wr.wr.rdma.remote_addr = (uintptr_t)b.memory + offset;
    wr.wr.rdma.rkey = rkey;
    post_send(&a, &wr, 8);
    wait_for(&a, expected);
}

int main(void) {
    open_end(&a, 0);
    open_end(&b, 1);
    create_qp(&a, IBV_QPT_RC, NULL);
    create_qp(&b, IBV_QPT_RC, NULL);
    connect_ends(&a, &b);

    struct ibv_mw* window = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
    check(window != NULL, "ibv_alloc_mw");
    struct ibv_send_wr bind = {.opcode = IBV_WR_BIND_MW};
    bind.bind_mw.mw = window;
    bind.bind_mw.rkey = ibv_inc_rkey(window->rkey);
    bind.bind_mw.bind_info.mr = b.mr;
    bind.bind_mw.bind_info.addr = (uintptr_t)b.memory + kOffset;
    bind.bind_mw.bind_info.length = kWindowBytes;
    bind.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
    struct ibv_send_wr* bad = NULL;
    check(ibv_post_send(b.qp, &bind, &bad) == 0, "posting BIND_MW");
    check(wait_for(&b, IBV_WC_SUCCESS).opcode == IBV_WC_BIND_MW, "bound");
    const uint32_t rkey = bind.bind_mw.rkey;

    memcpy(a.memory, "through!", 8);
    write_to_b(rkey, kOffset, IBV_WC_SUCCESS);
    check(memcmp(b.memory + kOffset, "through!", 8) == 0, "what was written is there");

    struct ibv_send_wr close = {.opcode = IBV_WR_LOCAL_INV};
    close.invalidate_rkey = rkey;
    check(ibv_post_send(b.qp, &close, &bad) == 0, "posting LOCAL_INV");
    check(wait_for(&b, IBV_WC_SUCCESS).opcode == IBV_WC_LOCAL_INV, "closed");
    memcpy(a.memory, "too late", 8);
    write_to_b(rkey, kOffset, IBV_WC_REM_ACCESS_ERR);
    check(memcmp(b.memory + kOffset, "through!", 8) == 0, "nothing has changed");

    check(ibv_dealloc_mw(window) == 0, "ibv_dealloc_mw");
    struct ibv_async_event event; /* of b's queue pair, which refused the access */
    check(ibv_get_async_event(b.context, &event) == 0, "ibv_get_async_event");
    ibv_ack_async_event(&event);
    close_end(&a);
    close_end(&b);
    puts("a window that opens and closes");
    return EXIT_SUCCESS;
}

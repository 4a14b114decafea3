/* A request's memory is freed when its completion comes. After the first failure the memory of all
 * requests is freed at once, although the others still complete. */
#include "ends.h"

enum { kRequests = 3, kMessageBytes = 1 << 18 };

/* So large that it is mapped by itself, and gone when it is freed. */
struct request {
    int number;
    char message[kMessageBytes];
};

static struct request* requests[kRequests];

static void finish(struct request* request) {
    requests[request->number] = NULL;
    free(request);
}

int main(void) {
    open_ends(kPatient);
    for (int i = 0; i < kRequests; ++i) {
        struct ibv_send_wr wr = request_to(IBV_WR_RDMA_WRITE, &far_end, 0);
        requests[i] = malloc(sizeof **requests);
        check(requests[i] != NULL, "malloc");
        requests[i]->number = i;
        wr.wr_id = (uintptr_t)requests[i];
        post_send(&near_end, &wr, 8);
    }
    int failed = 0;
    for (int i = 0; i < kRequests; ++i) {
        const struct ibv_wc wc = next_of(&near_end);
        struct request* const request = (struct request*)(uintptr_t)wc.wr_id;
        failed = failed || wc.status != IBV_WC_SUCCESS;
#ifdef MENDED
        finish(request);
#else
        if (wc.status == IBV_WC_SUCCESS) {
            finish(request);
            continue;
        }
        for (int j = 0; j < kRequests; ++j) {
            free(requests[j]);
        }
#endif
    }
    close_ends();
    return failed;
}

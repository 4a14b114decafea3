/* A function that fails frees its buffer. Its caller cleans up and frees the buffer again. */
#include "ends.h"

struct session {
    char* buffer;
    struct ibv_mr* mr;
};

static int open_session(struct session* session) {
    session->buffer = malloc(4096);
    check(session->buffer != NULL, "malloc");
    session->mr = ibv_reg_mr(near_end.pd, session->buffer, 4096, IBV_ACCESS_LOCAL_WRITE);
    if (session->mr == NULL) {
        free(session->buffer);
#ifdef MENDED
        session->buffer = NULL;
#endif
        return 1;
    }
    return 0;
}

static void close_session(struct session* session) {
    check(session->mr == NULL || ibv_dereg_mr(session->mr) == 0, "ibv_dereg_mr");
    free(session->buffer);
}

int main(void) {
    struct session session = {0};
    open_ends(kPatient);
    const int failed = open_session(&session);
    if (!failed) {
        post_receive(&far_end, 0, 0, 64);
        send_text("hello");
        next_success(&near_end);
        next_success(&far_end);
    }
    close_session(&session);
    close_ends();
    return failed;
}

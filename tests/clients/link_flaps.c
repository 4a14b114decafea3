/* Preloaded into a program that watches async events: when it asks for its first event, the link of
   its host goes down; for its second, the link comes up; for a third, the program ends well. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

#include <simverbs/simverbs.h>

typedef int (*get_async_event)(struct ibv_context*, struct ibv_async_event*);

static void set_link(int up) {
    if (simverbs_set_link("h0-s0", up) != 0) {
        fprintf(stderr, "link_flaps: %s\n", simverbs_last_error());
        exit(EXIT_FAILURE);
    }
}

int ibv_get_async_event(struct ibv_context* context, struct ibv_async_event* event) {
    static int asked;
    switch (asked++) {
        case 0:
            set_link(0);
            break;
        case 1:
            set_link(1);
            break;
        default:
            exit(EXIT_SUCCESS);
    }
    /* POSIX has dlsym return an object pointer for functions too. */
    union {
        void* object;
        get_async_event function;
    } next = {dlsym(RTLD_NEXT, "ibv_get_async_event")};
    return next.function(context, event);
}

// exchange ADDRESS PORT [client]: two programs that connect by a socket address and exchange tagged
// messages of 1 B to 1 MiB in both directions; every byte is looked at. The server ends after one
// client.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

enum { kMost = 1 << 20, kTag = 7 };

static ucp_worker_h worker;

static void require(ucs_status_t status, const char* what) {
    if (status != UCS_OK) {
        fprintf(stderr, "exchange: %s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

static unsigned char content(size_t size, size_t at, int of_server) {
    return (unsigned char)(size * 7 + at * 13 + at / 251 + (size_t)of_server * 101);
}

// Progresses until the request has ended; `request` is what a ucp_*_nbx() function returned.
static void wait_for(ucs_status_ptr_t request, const char* what) {
    if (request == NULL) {
        return;
    }
    require(UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK, what);
    ucs_status_t status = UCS_INPROGRESS;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(worker);
    }
    ucp_request_free(request);
    require(status, what);
}

static void send_all(ucp_ep_h peer, unsigned char* bytes, size_t size, int is_server) {
    for (size_t i = 0; i < size; ++i) {
        bytes[i] = content(size, i, is_server);
    }
    const ucp_request_param_t plain = {0};
    wait_for(ucp_tag_send_nbx(peer, bytes, size, kTag, &plain), "send");
}

static void receive_all(unsigned char* bytes, size_t size, int of_server) {
    memset(bytes, 0, size);
    const ucp_request_param_t plain = {0};
    wait_for(ucp_tag_recv_nbx(worker, bytes, size, kTag, UINT64_MAX, &plain), "receive");
    for (size_t i = 0; i < size; ++i) {
        if (bytes[i] != content(size, i, of_server)) {
            fprintf(stderr, "exchange: byte %zu of %zu is wrong\n", i, size);
            exit(1);
        }
    }
}

static void exchange(ucp_ep_h peer, int is_server) {
    unsigned char* const bytes = malloc(kMost);
    for (size_t size = 1; size <= kMost; size *= 4) {
        if (is_server) {
            receive_all(bytes, size, 0);
            send_all(peer, bytes, size, 1);
        } else {
            send_all(peer, bytes, size, 0);
            receive_all(bytes, size, 1);
        }
    }
    free(bytes);
}

static void failed(void* gone, ucp_ep_h peer, ucs_status_t status) {
    (void)peer;
    (void)status;
    *(int*)gone = 1;
}

static void take_request(ucp_conn_request_h request, void* place) {
    *(ucp_conn_request_h*)place = request;
}

static ucp_ep_h accept_one(const struct sockaddr_in* at, ucp_listener_h* listener, int* gone) {
    ucp_conn_request_h request = NULL;
    const ucp_listener_params_t listen = {
        .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
        .sockaddr = {(const struct sockaddr*)at, sizeof *at},
        .conn_handler = {take_request, &request},
    };
    require(ucp_listener_create(worker, &listen, listener), "ucp_listener_create");
    puts("listening");
    fflush(stdout);
    while (request == NULL) {
        ucp_worker_progress(worker);
    }
    const ucp_ep_params_t of_peer = {
        .field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .conn_request = request,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {failed, gone},
    };
    ucp_ep_h peer = NULL;
    require(ucp_ep_create(worker, &of_peer, &peer), "ucp_ep_create of a request");
    return peer;
}

static ucp_ep_h connect_to(const struct sockaddr_in* at, int* gone) {
    const ucp_ep_params_t of_peer = {
        .field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
        .sockaddr = {(const struct sockaddr*)at, sizeof *at},
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {failed, gone},
    };
    ucp_ep_h peer = NULL;
    require(ucp_ep_create(worker, &of_peer, &peer), "ucp_ep_create of an address");
    return peer;
}

int main(int argc, char** argv) {
    if (argc < 3) {
        fputs("usage: exchange ADDRESS PORT [client]\n", stderr);
        return 2;
    }
    const int is_server = argc == 3;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtol(argv[2], NULL, 10))};
    if (inet_pton(AF_INET, argv[1], &at.sin_addr) != 1) {
        fprintf(stderr, "exchange: no IPv4 address: %s\n", argv[1]);
        return 2;
    }
    ucp_context_h context = NULL;
    const ucp_params_t wanted = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_TAG};
    require(ucp_init(&wanted, NULL, &context), "ucp_init");
    const ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SINGLE};
    require(ucp_worker_create(context, &single, &worker), "ucp_worker_create");
    ucp_listener_h listener = NULL;
    int gone = 0;
    ucp_ep_h peer = is_server ? accept_one(&at, &listener, &gone) : connect_to(&at, &gone);
    exchange(peer, is_server);
    // The client closes; the server hears of it.
    if (is_server) {
        while (!gone) {
            ucp_worker_progress(worker);
        }
    }
    const ucp_request_param_t close = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags = is_server ? UCP_EP_CLOSE_FLAG_FORCE : 0,
    };
    wait_for(ucp_ep_close_nbx(peer, &close), "ucp_ep_close_nbx");
    if (listener != NULL) {
        ucp_listener_destroy(listener);
    }
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
    puts("every byte as expected");
    return 0;
}

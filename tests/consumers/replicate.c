// A log replicated by librpma, as its users do it: the server gives its memory away by a descriptor
// in the connection's private data, the client writes records there, flushes each, and reads all of
// them back.
//   replicate ADDRESS         the server
//   replicate ADDRESS client  the client
#include <librpma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRecords = 16, kRecordBytes = 4096, kLogBytes = kRecords * kRecordBytes };
static const char kPort[] = "7010";

#define CHECK(call)                                                    \
    do {                                                               \
        const int error_ = (call);                                     \
        if (error_ != 0) {                                             \
            fprintf(stderr, "%s: %s\n", #call, rpma_err_2str(error_)); \
            exit(1);                                                   \
        }                                                              \
    } while (0)

static void expect_event(struct rpma_conn* connection, enum rpma_conn_event wanted) {
    enum rpma_conn_event event;
    CHECK(rpma_conn_next_event(connection, &event));
    if (event != wanted) {
        fprintf(stderr, "expected %s, got %s\n", rpma_utils_conn_event_2str(wanted),
                rpma_utils_conn_event_2str(event));
        exit(1);
    }
}

static struct rpma_peer* make_peer(const char* address, enum rpma_util_ibv_context_type type) {
    struct ibv_context* context;
    struct rpma_peer* peer;
    CHECK(rpma_utils_get_ibv_context(address, type, &context));
    CHECK(rpma_peer_new(context, &peer));
    return peer;
}

static unsigned char byte_of(int record, int at) {
    return (unsigned char)(record * 31 + at * 7 + 1);
}

static bool is_log(const unsigned char* log) {
    for (int i = 0; i < kLogBytes; ++i) {
        if (log[i] != byte_of(i / kRecordBytes, i % kRecordBytes)) {
            fprintf(stderr, "byte %d of the log is wrong\n", i);
            return false;
        }
    }
    return true;
}

static int serve(const char* address) {
    struct rpma_peer* const peer = make_peer(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
    unsigned char* const log = aligned_alloc(kRecordBytes, kLogBytes);
    struct rpma_mr_local* memory;
    CHECK(rpma_mr_reg(
        peer, log, kLogBytes,
        RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
        &memory));
    size_t bytes;
    char descriptor[UINT8_MAX];
    CHECK(rpma_mr_get_descriptor_size(memory, &bytes));
    CHECK(rpma_mr_get_descriptor(memory, descriptor));
    const struct rpma_conn_private_data terms = {descriptor, (uint8_t)bytes};

    struct rpma_ep* listener;
    struct rpma_conn_req* request;
    struct rpma_conn* connection;
    CHECK(rpma_ep_listen(peer, address, kPort, &listener));
    puts("listening");
    fflush(stdout);
    CHECK(rpma_ep_next_conn_req(listener, NULL, &request));
    CHECK(rpma_conn_req_connect(&request, &terms, &connection));
    expect_event(connection, RPMA_CONN_ESTABLISHED);
    expect_event(connection, RPMA_CONN_CLOSED);
    CHECK(rpma_conn_disconnect(connection));
    CHECK(rpma_conn_delete(&connection));
    CHECK(rpma_ep_shutdown(&listener));
    CHECK(rpma_mr_dereg(&memory));
    struct rpma_peer* gone = peer;
    CHECK(rpma_peer_delete(&gone));
    const bool arrived = is_log(log);
    free(log);
    return arrived ? 0 : 1;
}

static struct rpma_conn* connect_to(struct rpma_peer* peer, const char* address) {
    struct rpma_conn_req* request;
    struct rpma_conn* connection;
    CHECK(rpma_conn_req_new(peer, address, kPort, NULL, &request));
    CHECK(rpma_conn_req_connect(&request, NULL, &connection));
    expect_event(connection, RPMA_CONN_ESTABLISHED);
    return connection;
}

static void await_completion(struct rpma_cq* queue) {
    struct ibv_wc completion;
    CHECK(rpma_cq_wait(queue));
    CHECK(rpma_cq_get_wc(queue, 1, &completion, NULL));
    if (completion.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "a request completed with %s\n", ibv_wc_status_str(completion.status));
        exit(1);
    }
}

static int replicate(const char* address) {
    struct rpma_peer* peer = make_peer(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
    unsigned char* const log = aligned_alloc(kRecordBytes, kLogBytes);
    struct rpma_mr_local* memory;
    CHECK(rpma_mr_reg(peer, log, kLogBytes, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST,
                      &memory));
    struct rpma_conn* connection = connect_to(peer, address);
    struct rpma_conn_private_data terms;
    struct rpma_mr_remote* remote;
    struct rpma_cq* queue;
    CHECK(rpma_conn_get_private_data(connection, &terms));
    CHECK(rpma_mr_remote_from_descriptor(terms.ptr, terms.len, &remote));
    CHECK(rpma_conn_get_cq(connection, &queue));
    for (int record = 0; record < kRecords; ++record) {
        const size_t at = (size_t)record * kRecordBytes;
        for (int i = 0; i < kRecordBytes; ++i) {
            log[at + (size_t)i] = byte_of(record, i);
        }
        CHECK(rpma_write(connection, remote, at, memory, at, kRecordBytes,
                         RPMA_F_COMPLETION_ON_ERROR, NULL));
        CHECK(rpma_flush(connection, remote, at, kRecordBytes, RPMA_FLUSH_TYPE_VISIBILITY,
                         RPMA_F_COMPLETION_ALWAYS, NULL));
        await_completion(queue);
    }
    memset(log, 0, kLogBytes);
    CHECK(rpma_read(connection, memory, 0, remote, 0, kLogBytes, RPMA_F_COMPLETION_ALWAYS, NULL));
    await_completion(queue);
    CHECK(rpma_conn_disconnect(connection));
    expect_event(connection, RPMA_CONN_CLOSED);
    CHECK(rpma_mr_remote_delete(&remote));
    CHECK(rpma_conn_delete(&connection));
    CHECK(rpma_mr_dereg(&memory));
    CHECK(rpma_peer_delete(&peer));
    const bool is_whole = is_log(log);
    free(log);
    return is_whole ? 0 : 1;
}

int main(int argc, char** argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: replicate ADDRESS [client]\n");
        return 2;
    }
    const int status = argc > 2 ? replicate(argv[1]) : serve(argv[1]);
    if (status == 0) {
        puts("every record as expected");
    }
    return status;
}

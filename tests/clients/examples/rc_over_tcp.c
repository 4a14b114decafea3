/* A reliable connection between two processes. What each has to know of the other (LID, queue pair,
   address and key of the memory) goes over a TCP connection, which also keeps them in step:

     rc_over_tcp PORT              waits for a client
     rc_over_tcp PORT 127.0.0.1    is the client

   The server sends a greeting; then the client reads the server's memory and writes into it. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "end.h"

enum { kMessage = 64, kText = 256 }; /* where in the server's memory the client reads and writes */

/* In the order of the host: both processes run on it. */
struct introduction {
    uint32_t lid;
    uint32_t qpn;
    uint64_t address;
    uint32_t rkey;
    uint32_t unused;
};

static int listen_for_one(uint16_t port) {
    const int on = 1;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    check(listener >= 0, "socket");
    check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0, "setsockopt");
    check(bind(listener, (struct sockaddr*)&here, sizeof here) == 0, "bind");
    check(listen(listener, 1) == 0, "listen");
    const int peer = accept(listener, NULL, NULL);
    check(peer >= 0, "accept");
    close(listener);
    return peer;
}

static int connect_to(const char* host, uint16_t port) {
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(port)};
    check(inet_pton(AF_INET, host, &there.sin_addr) == 1, "an IPv4 address");
    const int peer = socket(AF_INET, SOCK_STREAM, 0);
    check(peer >= 0 && connect(peer, (struct sockaddr*)&there, sizeof there) == 0, "connect");
    return peer;
}

static void exchange(int peer, const void* ours, void* theirs, size_t bytes) {
    check(write(peer, ours, bytes) == (ssize_t)bytes, "write");
    for (size_t got = 0; got < bytes;) {
        const ssize_t more = read(peer, (char*)theirs + got, bytes - got);
        check(more > 0, "read");
        got += (size_t)more;
    }
}

/* Returns once both are here. */
static void meet(int peer) {
    char ours = 'x';
    char theirs = 0;
    exchange(peer, &ours, &theirs, 1);
}

static void serve(struct end* end, int peer) {
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    snprintf((char*)end->memory, kMessage, "hello from the server");
    snprintf((char*)end->memory + kText, kMessage, "read me");
    meet(peer); /* the client has posted its receive */
    post_send(end, &wr, kMessage);
    wait_for(end, IBV_WC_SUCCESS);
    meet(peer); /* the client has read and written: nothing here tells of that */
    check(strcmp((char*)end->memory + kText, "written") == 0, "what the client wrote");
    puts("server: the client wrote");
}

static void use(struct end* end, int peer, const struct introduction* server) {
    post_receive(end, 1, 0, kMessage);
    meet(peer);
    check(wait_for(end, IBV_WC_SUCCESS).byte_len == kMessage, "the length of the greeting");
    check(strcmp((char*)end->memory, "hello from the server") == 0, "the greeting");
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};
    wr.wr.rdma.remote_addr = server->address + kText;
    wr.wr.rdma.rkey = server->rkey;
    post_send(end, &wr, kMessage);
    wait_for(end, IBV_WC_SUCCESS);
    check(strcmp((char*)end->memory, "read me") == 0, "what was read");
    wr.opcode = IBV_WR_RDMA_WRITE;
    snprintf((char*)end->memory, kMessage, "written");
    post_send(end, &wr, kMessage);
    wait_for(end, IBV_WC_SUCCESS);
    meet(peer);
    puts("client: greeted, read, wrote");
}

int main(int argc, char** argv) {
    check(argc == 2 || argc == 3, "usage: rc_over_tcp PORT [SERVER]");
    const uint16_t port = (uint16_t)strtol(argv[1], NULL, 10);
    const int peer = argc == 3 ? connect_to(argv[2], port) : listen_for_one(port);

    static struct end end;
    open_end(&end, 0);
    create_qp(&end, IBV_QPT_RC, NULL);
    const struct introduction ours = {.lid = end.port.lid,
                                      .qpn = end.qp->qp_num,
                                      .address = (uintptr_t)end.memory,
                                      .rkey = end.mr->rkey};
    struct introduction theirs;
    exchange(peer, &ours, &theirs, sizeof ours);
    const struct end other = {.port = {.lid = (uint16_t)theirs.lid}};
    connect_qp(end.qp, &end, &other, theirs.qpn);

    if (argc == 2) {
        serve(&end, peer);
    } else {
        use(&end, peer, &theirs);
    }
    meet(peer); /* nobody takes down what the other still uses */
    close_end(&end);
    close(peer);
    return EXIT_SUCCESS;
}

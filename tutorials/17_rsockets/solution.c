/* Lesson 17: a program of sockets over RDMA. Each call has an r before its name; a stream stays a
 * stream. */
#include <arpa/inet.h>
#include <rdma/rsocket.h>

#include <simverbs/simverbs.h>

#include "lab.h"

enum { PORT = 7472, MOST = 256 };

/* ---- given ----------------------------------------------------------------------------------- */

/* Host number n of a world has the address 127.77.0.n; h0 serves. */
static struct sockaddr_in address_of_server(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    must(inet_pton(AF_INET, "127.77.0.0", &address.sin_addr) == 1, "inet_pton");
    return address;
}

/* ---- yours ----------------------------------------------------------------------------------- */

/* A socket that listens at the server's address. */
static int listen_for_clients(void) {
    const struct sockaddr_in address = address_of_server();
    const int listener = rsocket(AF_INET, SOCK_STREAM, 0);
    must(listener >= 0, "rsocket");
    must(rbind(listener, (const struct sockaddr*)&address, sizeof address) == 0, "rbind");
    must(rlisten(listener, 4) == 0, "rlisten");
    return listener;
}

/* A socket that is connected to the server. */
static int connect_to_server(void) {
    const struct sockaddr_in address = address_of_server();
    const int client = rsocket(AF_INET, SOCK_STREAM, 0);
    must(client >= 0, "rsocket");
    must(rconnect(client, (const struct sockaddr*)&address, sizeof address) == 0, "rconnect");
    return client;
}

/* Sends all of it: rsend() may take less than it is given. */
static void send_all(int to, const void* bytes, size_t length) {
    for (size_t sent = 0; sent < length;) {
        const ssize_t taken = rsend(to, (const char*)bytes + sent, length - sent, 0);
        must(taken > 0, "rsend");
        sent += (size_t)taken;
    }
}

/* Receives so many bytes, in as many pieces as they come; 0: the stream ended before. */
static int receive_all(int from, void* bytes, size_t length) {
    for (size_t received = 0; received < length;) {
        const ssize_t got = rrecv(from, (char*)bytes + received, length - received, 0);
        must(got >= 0, "rrecv");
        if (got == 0) {
            return 0;
        }
        received += (size_t)got;
    }
    return 1;
}

/* A message in a stream: its length, in network byte order, and its bytes. */
static void send_message(int to, const char* text) {
    const uint32_t length = htonl((uint32_t)strlen(text));
    send_all(to, &length, sizeof length);
    send_all(to, text, strlen(text));
}

/* The next message, as a text; 0: there is none any more. */
static int receive_message(int from, char text[MOST]) {
    uint32_t length = 0;
    if (!receive_all(from, &length, sizeof length)) {
        return 0;
    }
    length = ntohl(length);
    must(length < MOST, "a message that fits");
    must(receive_all(from, text, length), "the rest of a message");
    text[length] = '\0';
    return 1;
}

int main(void) {
    /* rclose() takes nothing of what librdmacm had posted. */
    must(simverbs_allow_misuse("completions_unread", 1) == 0, simverbs_last_error());
    const int listener = listen_for_clients();
    const int client = connect_to_server();
    const int server = raccept(listener, NULL, NULL);
    must(server >= 0, "raccept");

    char text[MOST];
    send_message(client, "one");
    send_message(client, "and two");
    must(receive_message(server, text), "the first message");
    printf("h0 hears: %s\n", text);
    must(receive_message(server, text), "the second message");
    printf("h0 hears: %s\n", text);
    send_message(server, "two messages");
    must(receive_message(client, text), "the answer");
    printf("h1 hears: %s\n", text);

    /* The client has no more to say. */
    must(rshutdown(client, SHUT_WR) == 0, "rshutdown");
    must(!receive_message(server, text), "the end of the stream");
    printf("h0 hears the end\n");
    must(rclose(server) == 0, "rclose");
    must(rclose(client) == 0, "rclose");
    must(rclose(listener) == 0, "rclose");
    return EXIT_SUCCESS;
}

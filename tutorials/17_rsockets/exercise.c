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
    int listener = -1;
    /* YOUR TURN 1: rsocket(AF_INET, SOCK_STREAM, 0), rbind() to `address`, and rlisten(). */
    (void)address;
    return listener;
}

/* A socket that is connected to the server. */
static int connect_to_server(void) {
    const struct sockaddr_in address = address_of_server();
    int client = -1;
    /* YOUR TURN 2: a socket of the same kind, and rconnect() to `address`. */
    (void)address;
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
    /* YOUR TURN 3: rrecv() until there are `length` bytes: it returns how many have come, which may
       be fewer. 0 says that the peer will send no more. */
    (void)from;
    (void)bytes;
    (void)length;
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
    /* YOUR TURN 4: receive_all() the length, ntohl() it, see that it is below MOST, receive_all()
       as many bytes, and end the text with a zero. Return 0 where the length did not come. */
    (void)from;
    (void)receive_all;
    text[0] = '\0';
    return 1;
}

int main(void) {
    /* rclose() takes nothing of what librdmacm had posted. */
    must(simverbs_allow_misuse("completions_unread", 1) == 0, simverbs_last_error());
    const int listener = listen_for_clients();
    const int client = connect_to_server();
    int server = -1;
    /* YOUR TURN 5: take the connection with raccept(). */
    must(server >= 0, "a connection");

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

    /* YOUR TURN 6: the client has no more to say: tell the server with rshutdown(), SHUT_WR, that
     * no more comes. */
    must(!receive_message(server, text), "the end of the stream");
    printf("h0 hears the end\n");
    must(rclose(server) == 0, "rclose");
    must(rclose(client) == 0, "rclose");
    must(rclose(listener) == 0, "rclose");
    return EXIT_SUCCESS;
}

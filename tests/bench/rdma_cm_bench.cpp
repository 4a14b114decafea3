// Connections of rdma_cm with both ends in one thread, by the distribution's librdmacm: from
// rdma_create_id to ESTABLISHED at both ends, then apart again.
//
//     rdma_cm_bench [CONNECTIONS]
//
// Prints the microseconds of wall time and of virtual time that a connection takes to be
// established, and those of wall time with its end.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include <simverbs/simverbs.h>

namespace {

constexpr std::uint16_t kPort = 7471;
constexpr int kTimeoutMs = 2000;

using Clock = std::chrono::steady_clock;

void require(bool holds, const char* what) {
    if (!holds) {
        std::perror(what);
        std::exit(1);
    }
}

sockaddr_in address_of_server(std::uint16_t port) {
    constexpr std::uint32_t kFirstHost = 127U << 24U | 77U << 16U;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(kFirstHost);
    return address;
}

std::int64_t virtual_now() {
    std::int64_t now = 0;
    require(simverbs_now_ps(&now) == 0, "simverbs_now_ps");
    return now;
}

rdma_cm_id* take(rdma_event_channel* channel, rdma_cm_event_type wanted) {
    rdma_cm_event* event = nullptr;
    require(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
    require(event->event == wanted, rdma_event_str(event->event));
    rdma_cm_id* const id = event->id;
    rdma_ack_cm_event(event);
    return id;
}

void make_queue_pair(rdma_cm_id* id) {
    ibv_qp_init_attr init{};
    init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
    init.qp_type = IBV_QPT_RC;
    require(rdma_create_qp(id, nullptr, &init) == 0, "rdma_create_qp");
}

struct Ends {
    rdma_cm_id* client = nullptr;
    rdma_cm_id* server = nullptr;
};

Ends establish(rdma_event_channel* of_client, rdma_event_channel* of_server) {
    Ends ends;
    sockaddr_in address = address_of_server(kPort);
    require(rdma_create_id(of_client, &ends.client, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
    require(rdma_resolve_addr(ends.client, nullptr, reinterpret_cast<sockaddr*>(&address),
                              kTimeoutMs) == 0,
            "rdma_resolve_addr");
    take(of_client, RDMA_CM_EVENT_ADDR_RESOLVED);
    require(rdma_resolve_route(ends.client, kTimeoutMs) == 0, "rdma_resolve_route");
    take(of_client, RDMA_CM_EVENT_ROUTE_RESOLVED);
    make_queue_pair(ends.client);
    rdma_conn_param parameters{};
    parameters.retry_count = parameters.rnr_retry_count = 7;
    require(rdma_connect(ends.client, &parameters) == 0, "rdma_connect");
    ends.server = take(of_server, RDMA_CM_EVENT_CONNECT_REQUEST);
    make_queue_pair(ends.server);
    require(rdma_accept(ends.server, &parameters) == 0, "rdma_accept");
    take(of_client, RDMA_CM_EVENT_ESTABLISHED);
    take(of_server, RDMA_CM_EVENT_ESTABLISHED);
    return ends;
}

void part(const Ends& ends, rdma_event_channel* of_client, rdma_event_channel* of_server) {
    require(rdma_disconnect(ends.client) == 0, "rdma_disconnect");
    take(of_server, RDMA_CM_EVENT_DISCONNECTED);
    require(rdma_disconnect(ends.server) == 0, "rdma_disconnect");
    take(of_client, RDMA_CM_EVENT_DISCONNECTED);
    for (rdma_cm_id* const id : {ends.client, ends.server}) {
        rdma_destroy_qp(id);
        require(rdma_destroy_id(id) == 0, "rdma_destroy_id");
    }
}

}  // namespace

int main(int argument_count, char** arguments) {
    const std::span given(arguments, static_cast<std::size_t>(argument_count));
    const auto connections =
        static_cast<int>(given.size() > 1 ? std::strtol(given[1], nullptr, 10) : 1000);
    require(connections > 0, "CONNECTIONS counts from 1");
    rdma_event_channel* const of_client = rdma_create_event_channel();
    rdma_event_channel* const of_server = rdma_create_event_channel();
    require(of_client != nullptr && of_server != nullptr, "rdma_create_event_channel");
    rdma_cm_id* listener = nullptr;
    sockaddr_in address = address_of_server(kPort);
    require(rdma_create_id(of_server, &listener, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
    require(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&address)) == 0, "rdma_bind_addr");
    require(rdma_listen(listener, 1) == 0, "rdma_listen");
    part(establish(of_client, of_server), of_client, of_server);  // opens devices

    Clock::duration establishing{};
    std::int64_t virtual_ps = 0;
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < connections; ++i) {
        const Clock::time_point started = Clock::now();
        const std::int64_t started_ps = virtual_now();
        const Ends ends = establish(of_client, of_server);
        establishing += Clock::now() - started;
        virtual_ps += virtual_now() - started_ps;
        part(ends, of_client, of_server);
    }
    const Clock::duration whole = Clock::now() - begin;
    constexpr std::int64_t kPsPerUs = 1'000'000;
    const auto each_us = [connections](Clock::duration all) {
        return std::chrono::duration<double, std::micro>(all).count() / connections;
    };
    std::printf("%.1f us to establish (%.3f us of virtual time), %.1f us with the end\n",
                each_us(establishing), static_cast<double>(virtual_ps) / connections / kPsPerUs,
                each_us(whole));
    rdma_destroy_id(listener);
    rdma_destroy_event_channel(of_client);
    rdma_destroy_event_channel(of_server);
    return EXIT_SUCCESS;
}

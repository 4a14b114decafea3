// Endpoints: rdma_create_ep(3) and rdma_get_request(3), with and without a queue pair, by IP
// addresses and by GIDs. The server is in a thread of its own, since their calls wait.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <infiniband/ib.h>

#include "ids.hpp"

namespace rdmacm_test {
namespace {

constexpr std::size_t kRequestData = 56;    // of an IP address
constexpr std::size_t kIbRequestData = 92;  // of a GID: there is no header of rdma_cm

ibv_qp_init_attr attributes() {
    ibv_qp_init_attr init{};
    init.sq_sig_all = 1;
    init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
    return init;
}

rdma_conn_param parameters() {
    rdma_conn_param given{};
    given.responder_resources = given.initiator_depth = 1;
    given.retry_count = given.rnr_retry_count = 7;
    return given;
}

class Endpoints : public testing::TestWithParam<const char*> {
  protected:
    Endpoints() : world({.topology = GetParam()}) {}
    void TearDown() override {
        if (server_.joinable()) {
            server_.join();
        }
    }

    static rdma_addrinfo* find(const char* node, int flags, int family = AF_INET) {
        rdma_addrinfo hints{};
        hints.ai_flags = flags | RAI_NUMERICHOST | RAI_FAMILY;
        hints.ai_family = family;
        hints.ai_port_space = RDMA_PS_TCP;
        rdma_addrinfo* found = nullptr;
        EXPECT_EQ(rdma_getaddrinfo(node, "7471", &hints, &found), 0) << std::strerror(errno);
        return found;
    }
    // An endpoint of host 1 for host 0, or nothing; then errno says why.
    static rdma_cm_id* make_client(ibv_qp_init_attr* init, ibv_pd* domain = nullptr) {
        rdma_addrinfo* const to = find("127.77.0.0", 0);
        rdma_cm_id* id = nullptr;
        EXPECT_EQ(rdma_create_ep(&id, to, domain, init), 0) << std::strerror(errno);
        rdma_freeaddrinfo(to);
        return id;
    }
    // Begins to listen, and has `act` called with the first request in a thread.
    void serve(ibv_qp_init_attr* init, std::function<void(rdma_cm_id*)> act,
               const char* node = "127.77.0.0", int family = AF_INET) {
        std::promise<void> listens;
        server_ = std::thread([this, init, act = std::move(act), node, family, &listens] {
            rdma_addrinfo* const at = find(node, RAI_PASSIVE, family);
            rdma_cm_id* listener = nullptr;
            EXPECT_EQ(rdma_create_ep(&listener, at, nullptr, init), 0) << std::strerror(errno);
            rdma_freeaddrinfo(at);
            EXPECT_EQ(rdma_listen(listener, 1), 0) << std::strerror(errno);
            listens.set_value();
            rdma_cm_id* id = nullptr;
            EXPECT_EQ(rdma_get_request(listener, &id), 0) << std::strerror(errno);
            if (id != nullptr) {
                act(id);
                rdma_destroy_ep(id);
            }
            rdma_destroy_ep(listener);
        });
        listens.get_future().wait();
    }

    simverbs::World world;

  private:
    std::thread server_;
};

TEST_P(Endpoints, HaveNoQueuePairUnlessTheyAreGivenAttributes) {
    rdma_cm_id* const id = make_client(nullptr);
    ASSERT_NE(id, nullptr);
    EXPECT_EQ(id->qp, nullptr);
    EXPECT_EQ(id->route.num_paths, 1);
    EXPECT_STREQ(simverbs_device_host(id->verbs->device), "h1");
    ibv_qp_init_attr init = attributes();
    init.qp_type = IBV_QPT_RC;
    EXPECT_EQ(rdma_create_qp(id, nullptr, &init), 0) << std::strerror(errno);
    rdma_destroy_ep(id);  // with its queue pair
}

TEST_P(Endpoints, HaveAQueuePairOfTheDomainGiven) {
    int count = 0;
    ibv_context** const devices = rdma_get_devices(&count);
    ASSERT_EQ(count, 2);
    const bool first = std::string(simverbs_device_host(devices[0]->device)) == "h1";
    ibv_pd* const domain = ibv_alloc_pd(devices[first ? 0 : 1]);
    ASSERT_NE(domain, nullptr);
    rdma_free_devices(devices);
    ibv_qp_init_attr init = attributes();
    rdma_cm_id* const id = make_client(&init, domain);
    ASSERT_NE(id, nullptr);
    EXPECT_EQ(id->qp->pd, domain);
    EXPECT_EQ(id->qp->qp_type, IBV_QPT_RC);  // of the address, not of the attributes
    EXPECT_GE(init.cap.max_recv_wr, 4U);
    rdma_destroy_ep(id);
    EXPECT_EQ(ibv_dealloc_pd(domain), 0);
}

// rdma_get_request(3): "if the listen request was created with QP attributes, the new id has a QP".
TEST_P(Endpoints, GiveRequestsTheirQueuePair) {
    ibv_qp_init_attr at_server = attributes();
    std::string heard;
    serve(&at_server, [&heard](rdma_cm_id* id) {
        EXPECT_NE(id->qp, nullptr);
        EXPECT_EQ(id->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
        EXPECT_EQ(id->event->param.conn.private_data_len, kRequestData);
        heard = static_cast<const char*>(id->event->param.conn.private_data);
        EXPECT_EQ(rdma_accept(id, nullptr), 0) << std::strerror(errno);
        EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
        EXPECT_EQ(rdma_disconnect(id), 0) << std::strerror(errno);
    });
    ibv_qp_init_attr init = attributes();
    rdma_cm_id* const id = make_client(&init);
    ASSERT_NE(id, nullptr);
    rdma_conn_param given = parameters();
    given.private_data = "hello";
    given.private_data_len = 6;
    EXPECT_EQ(rdma_connect(id, &given), 0) << std::strerror(errno);
    EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_EQ(rdma_disconnect(id), 0) << std::strerror(errno);
    TearDown();
    EXPECT_EQ(heard, "hello");
    rdma_destroy_ep(id);
}

TEST_P(Endpoints, LeaveTheQueuePairOfARequestToTheProgram) {
    serve(nullptr, [](rdma_cm_id* id) {
        EXPECT_EQ(id->qp, nullptr);
        ibv_qp_init_attr init = attributes();
        init.qp_type = IBV_QPT_RC;
        EXPECT_EQ(rdma_create_qp(id, nullptr, &init), 0) << std::strerror(errno);
        std::array<char, 8> answer{"welcome"};
        rdma_conn_param given = parameters();
        given.private_data = answer.data();
        given.private_data_len = answer.size();
        EXPECT_EQ(rdma_accept(id, &given), 0) << std::strerror(errno);
    });
    ibv_qp_init_attr init = attributes();
    rdma_cm_id* const id = make_client(&init);
    ASSERT_NE(id, nullptr);
    rdma_conn_param given = parameters();
    EXPECT_EQ(rdma_connect(id, &given), 0) << std::strerror(errno);
    EXPECT_STREQ(static_cast<const char*>(id->event->param.conn.private_data), "welcome");
    rdma_destroy_ep(id);
}

TEST_P(Endpoints, AreRefusedByARejection) {
    serve(nullptr, [](rdma_cm_id* id) { EXPECT_EQ(rdma_reject(id, nullptr, 0), 0); });
    ibv_qp_init_attr init = attributes();
    rdma_cm_id* const id = make_client(&init);
    ASSERT_NE(id, nullptr);
    rdma_conn_param given = parameters();
    EXPECT_EQ(rdma_connect(id, &given), -1);
    EXPECT_EQ(errno, ECONNREFUSED);
    rdma_destroy_ep(id);
}

// The private data that an address brings (`ai_connect`) goes before the program's own.
TEST_P(Endpoints, ConnectWithTheDataOfTheAddress) {
    std::string heard;
    serve(nullptr, [&heard](rdma_cm_id* id) {
        heard = static_cast<const char*>(id->event->param.conn.private_data);
        EXPECT_EQ(rdma_reject(id, nullptr, 0), 0);
    });
    rdma_addrinfo* const to = find("127.77.0.0", 0);
    to->ai_connect = strdup("from the address");
    to->ai_connect_len = std::strlen("from the address");
    rdma_cm_id* id = nullptr;
    ibv_qp_init_attr init = attributes();
    ASSERT_EQ(rdma_create_ep(&id, to, nullptr, &init), 0) << std::strerror(errno);
    rdma_freeaddrinfo(to);
    rdma_conn_param given = parameters();
    given.private_data = ", hello";
    given.private_data_len = 8;
    EXPECT_EQ(rdma_connect(id, &given), -1);
    TearDown();
    EXPECT_EQ(heard, "from the address, hello");
    rdma_destroy_ep(id);
}

TEST_P(Endpoints, OfAnAddressThatNobodyHasAreNotMade) {
    rdma_addrinfo* const to = find("127.77.0.9", 0);
    rdma_cm_id* id = nullptr;
    const auto begun = simverbs::now();
    EXPECT_EQ(rdma_create_ep(&id, to, nullptr, nullptr), -1);
    EXPECT_EQ(errno, ETIMEDOUT);
    EXPECT_EQ(simverbs::now() - begun, std::chrono::seconds(2));  // librdmacm's own limit
    rdma_freeaddrinfo(to);
}

// "The rdma_cm_id will be set to use synchronous operations": an id on a channel is none.
TEST_P(Endpoints, AreTheOnlyIdsToGetRequestsFrom) {
    rdma_event_channel* const channel = rdma_create_event_channel();
    rdma_cm_id* id = nullptr;
    ASSERT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
    rdma_cm_id* asked = nullptr;
    EXPECT_EQ(rdma_get_request(id, &asked), -1);
    EXPECT_EQ(errno, EINVAL);
    // rdma_migrate_id(3): without a channel an id becomes a synchronous one.
    ASSERT_EQ(rdma_migrate_id(id, nullptr), 0) << std::strerror(errno);
    sockaddr_in to = simverbs::host_address(0, kPort);
    EXPECT_EQ(rdma_resolve_addr(id, nullptr, generic(to), kTimeoutMs), 0);
    EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(rdma_migrate_id(id, nullptr), -1);
    EXPECT_EQ(errno, EINVAL);
    ASSERT_EQ(rdma_migrate_id(id, channel), 0) << std::strerror(errno);
    ASSERT_EQ(rdma_resolve_route(id, kTimeoutMs), 0);
    EXPECT_EQ(simverbs::expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED), id);
    EXPECT_EQ(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, Endpoints, testing::ValuesIn(kBothLinkLayers));

// rdma_getaddrinfo(3): with RAI_FAMILY and AF_IB the name is a GID.
class GidEndpoints : public Endpoints {};

TEST_P(GidEndpoints, ConnectWithoutIpAddresses) {
    ibv_device** const devices = ibv_get_device_list(nullptr);
    ibv_context* const context = ibv_open_device(devices[0]);
    ASSERT_NE(context, nullptr);
    ASSERT_STREQ(simverbs_device_host(devices[0]), "h0");
    ibv_free_device_list(devices);
    ibv_gid gid{};
    ASSERT_EQ(ibv_query_gid(context, 1, 0, &gid), 0);
    EXPECT_EQ(ibv_close_device(context), 0);
    std::array<char, INET6_ADDRSTRLEN> node{};
    ASSERT_NE(inet_ntop(AF_INET6, gid.raw, node.data(), node.size()), nullptr);
    serve(
        nullptr,
        [](rdma_cm_id* id) {
            EXPECT_EQ(rdma_get_local_addr(id)->sa_family, AF_IB);
            EXPECT_EQ(id->event->param.conn.private_data_len, kIbRequestData);
            EXPECT_EQ(rdma_reject(id, nullptr, 0), 0);
        },
        node.data(), AF_IB);
    rdma_addrinfo* const to = find(node.data(), 0, AF_IB);
    ASSERT_NE(to, nullptr);
    EXPECT_EQ(to->ai_family, AF_IB);
    rdma_cm_id* id = nullptr;
    ibv_qp_init_attr init = attributes();
    ASSERT_EQ(rdma_create_ep(&id, to, nullptr, &init), 0) << std::strerror(errno);
    rdma_freeaddrinfo(to);
    EXPECT_EQ(std::memcmp(&id->route.path_rec->dgid, &gid, sizeof gid), 0);
    EXPECT_EQ(rdma_get_dst_port(id), htobe16(kPort));
    rdma_conn_param given = parameters();
    EXPECT_EQ(rdma_connect(id, &given), -1);
    EXPECT_EQ(errno, ECONNREFUSED);
    rdma_destroy_ep(id);
}

INSTANTIATE_TEST_SUITE_P(OnInfiniband, GidEndpoints, testing::Values("star:2"));

}  // namespace
}  // namespace rdmacm_test

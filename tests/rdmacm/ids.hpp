// Ids of two hosts on one event channel and in one thread. What is requested and answered is up to
// the tests, and so is who has a queue pair: without one the number of it is kExternalQpn.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <rdma/rdma_verbs.h>

#include <simverbs/rdmacm_gtest.hpp>

namespace rdmacm_test {

inline constexpr std::uint16_t kPort = 7471;
inline constexpr std::uint32_t kExternalQpn = 0x17;
inline constexpr int kTimeoutMs = 2000;
inline constexpr const char* kBothLinkLayers[] = {"star:2", "eth-star:2"};

// An event after it was acknowledged; the private data is a copy.
struct Event {
    rdma_cm_event_type type{};
    int status = 0;
    rdma_cm_id* id = nullptr;
    rdma_conn_param connection{};
    rdma_ud_param datagram{};
    std::vector<std::uint8_t> private_data;
};

inline sockaddr* generic(sockaddr_in& address) {
    return reinterpret_cast<sockaddr*>(&address);
}

class Ids : public testing::Test {
  protected:
    explicit Ids(const char* topology) : world({.topology = topology}) {}
    // A test that leaves something behind fails, and the next one begins anew all the same.
    ~Ids() override {
        if (simverbs_restart() != 0) {
            ADD_FAILURE() << simverbs_last_error();
            simverbs_close_devices();
        }
    }

    void SetUp() override {
        channel = rdma_create_event_channel();
        ASSERT_NE(channel, nullptr) << std::strerror(errno);
    }
    void TearDown() override {
        simverbs_allow_misuse("completions_unread", 1);
        while (!ids_.empty()) {
            destroy(ids_.back());
        }
        rdma_destroy_event_channel(channel);
    }

    // Each id is destroyed with its queue pair and its shared receive queue at the latest when the
    // test ends; so are those that requests bring.
    rdma_cm_id* make(rdma_port_space space = RDMA_PS_TCP) {
        rdma_cm_id* id = nullptr;
        EXPECT_EQ(rdma_create_id(channel, &id, nullptr, space), 0) << std::strerror(errno);
        ids_.push_back(id);
        return id;
    }
    void destroy(rdma_cm_id* id) {
        if (id->qp != nullptr) {
            rdma_destroy_qp(id);
        }
        if (id->srq != nullptr) {
            rdma_destroy_srq(id);
        }
        EXPECT_EQ(rdma_destroy_id(id), 0) << std::strerror(errno);
        std::erase(ids_, id);
    }

    Event next() {
        rdma_cm_event* event = nullptr;
        if (rdma_get_cm_event(channel, &event) != 0) {
            ADD_FAILURE() << "rdma_get_cm_event: " << std::strerror(errno);
            return {};
        }
        Event taken{.type = event->event, .status = event->status, .id = event->id};
        const bool is_datagram = event->id->qp_type == IBV_QPT_UD;
        const void* data = nullptr;
        std::size_t size = 0;
        if (is_datagram) {
            taken.datagram = event->param.ud;
            data = taken.datagram.private_data;
            size = taken.datagram.private_data_len;
        } else {
            taken.connection = event->param.conn;
            data = taken.connection.private_data;
            size = taken.connection.private_data_len;
        }
        const auto* const bytes = static_cast<const std::uint8_t*>(data);
        taken.private_data.assign(bytes, bytes + size);
        if (taken.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
            ids_.push_back(taken.id);
        }
        rdma_ack_cm_event(event);
        return taken;
    }
    Event next(rdma_cm_event_type wanted) {
        Event taken = next();
        EXPECT_STREQ(rdma_event_str(taken.type), rdma_event_str(wanted))
            << "with status " << taken.status;
        return taken;
    }

    // Listens on host 0.
    rdma_cm_id* listen(rdma_port_space space = RDMA_PS_TCP) {
        rdma_cm_id* const listener = make(space);
        sockaddr_in at = simverbs::host_address(0, kPort);
        EXPECT_EQ(rdma_bind_addr(listener, generic(at)), 0) << std::strerror(errno);
        EXPECT_EQ(rdma_listen(listener, 4), 0) << std::strerror(errno);
        return listener;
    }
    void resolve_address(rdma_cm_id* id) {
        sockaddr_in to = simverbs::host_address(0, kPort);
        ASSERT_EQ(rdma_resolve_addr(id, nullptr, generic(to), kTimeoutMs), 0)
            << std::strerror(errno);
        ASSERT_EQ(next(RDMA_CM_EVENT_ADDR_RESOLVED).id, id);
    }
    // Resolves the way to host 0, from host 1.
    rdma_cm_id* resolve(rdma_port_space space = RDMA_PS_TCP) {
        rdma_cm_id* const id = make(space);
        resolve_address(id);
        EXPECT_EQ(rdma_resolve_route(id, kTimeoutMs), 0) << std::strerror(errno);
        EXPECT_EQ(next(RDMA_CM_EVENT_ROUTE_RESOLVED).id, id);
        return id;
    }

    static rdma_conn_param parameters() {
        rdma_conn_param given{};
        given.responder_resources = given.initiator_depth = 1;
        given.retry_count = given.rnr_retry_count = 7;
        given.qp_num = kExternalQpn;
        return given;
    }
    static rdma_conn_param with_data(const std::vector<std::uint8_t>& data) {
        rdma_conn_param given = parameters();
        given.private_data = data.data();
        given.private_data_len = static_cast<std::uint8_t>(data.size());
        return given;
    }
    // Sends a request by a resolved id, and returns it as the server has it.
    Event request(rdma_cm_id* id, rdma_conn_param given = parameters()) {
        EXPECT_EQ(rdma_connect(id, &given), 0) << std::strerror(errno);
        return next(RDMA_CM_EVENT_CONNECT_REQUEST);
    }

    simverbs::World world;
    rdma_event_channel* channel = nullptr;

  private:
    std::vector<rdma_cm_id*> ids_;
};

// The same for tests that run on each link layer.
class IdsOnBothLinkLayers : public Ids, public testing::WithParamInterface<const char*> {
  protected:
    IdsOnBothLinkLayers() : Ids(GetParam()) {}
    static bool is_ethernet() { return std::strcmp(GetParam(), "eth-star:2") == 0; }
};

}  // namespace rdmacm_test

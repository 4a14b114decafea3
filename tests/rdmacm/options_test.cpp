// The options of rdma_set_option(3), what they change, and which sizes they have. Errors are those
// of ucma_set_option_id() and ucma_set_option_ib() of Linux' ucma.c.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <endian.h>
#include <gtest/gtest.h>

#include <infiniband/sa.h>

#include "ids.hpp"

namespace rdmacm_test {
namespace {

using simverbs::host_address;

class Options : public IdsOnBothLinkLayers {
  protected:
    static int set(rdma_cm_id* id, int name, int flag) {
        return rdma_set_option(id, RDMA_OPTION_ID, name, &flag, sizeof flag);
    }
    static int set_byte(rdma_cm_id* id, int name, std::uint8_t value) {
        return rdma_set_option(id, RDMA_OPTION_ID, name, &value, sizeof value);
    }
    static int bind_any(rdma_cm_id* id, sa_family_t family) {
        sockaddr_storage any{};
        any.ss_family = family;
        const in_port_t port = htons(kPort);
        std::memcpy(reinterpret_cast<char*>(&any) + offsetof(sockaddr_in, sin_port), &port,
                    sizeof port);
        return rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any));
    }
    // A path as RDMA_OPTION_IB_PATH has it (rs_convert_sa_path() of librdmacm's rsocket.c).
    static ibv_path_data pack(const ibv_sa_path_rec& path) {
        constexpr std::uint8_t kExactly = 2 << 6;
        ibv_path_data data{};
        data.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
        data.path.dgid = path.dgid;
        data.path.sgid = path.sgid;
        data.path.dlid = path.dlid;
        data.path.slid = path.slid;
        data.path.flowlabel_hoplimit = htobe32(be32toh(path.flow_label) << 8 | path.hop_limit);
        data.path.tclass = path.traffic_class;
        data.path.reversible_numpath = 0x81;
        data.path.pkey = path.pkey;
        data.path.qosclass_sl = htobe16(path.sl);
        data.path.mtu = static_cast<std::uint8_t>(path.mtu | kExactly);
        data.path.rate = static_cast<std::uint8_t>(path.rate | kExactly);
        data.path.packetlifetime = static_cast<std::uint8_t>(path.packet_life_time | kExactly);
        return data;
    }
    static int set_paths(rdma_cm_id* id, ibv_path_data* first, std::size_t size) {
        return rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, first, size);
    }
};

TEST_P(Options, TypeOfServiceIsTheTrafficClassOnEthernet) {
    listen();
    rdma_cm_id* const client = make();
    ASSERT_EQ(set_byte(client, RDMA_OPTION_ID_TOS, 0x68), 0) << std::strerror(errno);
    ASSERT_NO_FATAL_FAILURE(resolve_address(client));
    ASSERT_EQ(rdma_resolve_route(client, kTimeoutMs), 0);
    next(RDMA_CM_EVENT_ROUTE_RESOLVED);
    // InfiniBand asks for a path of that class of service, which this subnet does not tell apart.
    const int wanted = is_ethernet() ? 0x68 : 0;
    EXPECT_EQ(client->route.path_rec->traffic_class, wanted);
    // The server answers in the same class: it reads it from the request.
    rdma_cm_id* const server = request(client).id;
    for (rdma_cm_id* const id : {client, server}) {
        ibv_qp_attr attributes{};
        int mask = 0;
        if (id == client) {
            rdma_conn_param given = parameters();
            ASSERT_EQ(rdma_accept(server, &given), 0) << std::strerror(errno);
            next(RDMA_CM_EVENT_CONNECT_RESPONSE);
        }
        attributes.qp_state = IBV_QPS_RTR;
        ASSERT_EQ(rdma_init_qp_attr(id, &attributes, &mask), 0) << std::strerror(errno);
        EXPECT_EQ(attributes.ah_attr.grh.traffic_class, wanted);
    }
}

TEST_P(Options, TypeOfServiceOfDatagrams) {
    listen(RDMA_PS_UDP);
    rdma_cm_id* const client = make(RDMA_PS_UDP);
    ASSERT_EQ(set_byte(client, RDMA_OPTION_ID_TOS, 0x68), 0) << std::strerror(errno);
    ASSERT_NO_FATAL_FAILURE(resolve_address(client));
    ASSERT_EQ(rdma_resolve_route(client, kTimeoutMs), 0);
    next(RDMA_CM_EVENT_ROUTE_RESOLVED);
    rdma_cm_id* const server = request(client).id;
    rdma_conn_param given = parameters();
    ASSERT_EQ(rdma_accept(server, &given), 0) << std::strerror(errno);
    const Event event = next(RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_EQ(event.datagram.ah_attr.grh.traffic_class, is_ethernet() ? 0x68 : 0);
}

// The address must be free of other ids when one listens (cma_bind_listen() of cma.c).
TEST_P(Options, ReuseLetsIdsBindToOneAddress) {
    rdma_cm_id* const first = make();
    rdma_cm_id* const second = make();
    rdma_cm_id* const third = make();
    sockaddr_in at = host_address(0, kPort);
    for (rdma_cm_id* const id : {first, second}) {
        ASSERT_EQ(set(id, RDMA_OPTION_ID_REUSEADDR, 1), 0) << std::strerror(errno);
        ASSERT_EQ(rdma_bind_addr(id, generic(at)), 0) << std::strerror(errno);
    }
    EXPECT_EQ(rdma_bind_addr(third, generic(at)), -1);
    EXPECT_EQ(errno, EADDRINUSE);
    EXPECT_EQ(set(first, RDMA_OPTION_ID_REUSEADDR, 0), -1);  // only before it is bound
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(rdma_listen(first, 1), -1);
    EXPECT_EQ(errno, EADDRINUSE);
    destroy(second);
    EXPECT_EQ(rdma_listen(first, 1), 0) << std::strerror(errno);
}

// Without the option [::] is for IPv4, too; the errno is that of cma_check_port() of cma.c.
TEST_P(Options, FamiliesShareAPortWhereIpv6IsAlone) {
    rdma_cm_id* const both = make();
    rdma_cm_id* const ipv4 = make();
    ASSERT_EQ(bind_any(both, AF_INET6), 0) << std::strerror(errno);
    EXPECT_EQ(bind_any(ipv4, AF_INET), -1);
    EXPECT_EQ(errno, EADDRNOTAVAIL);
    destroy(both);
    rdma_cm_id* const ipv6 = make();
    ASSERT_EQ(set(ipv6, RDMA_OPTION_ID_AFONLY, 1), 0) << std::strerror(errno);
    ASSERT_EQ(bind_any(ipv6, AF_INET6), 0) << std::strerror(errno);
    ASSERT_EQ(bind_any(ipv4, AF_INET), 0) << std::strerror(errno);
    ASSERT_EQ(rdma_listen(ipv6, 1), 0) << std::strerror(errno);
    ASSERT_EQ(rdma_listen(ipv4, 1), 0) << std::strerror(errno);
    EXPECT_EQ(request(resolve()).connection.qp_num, kExternalQpn);
}

TEST_P(Options, AckTimeoutIsThatOfTheQueuePair) {
    listen();
    rdma_cm_id* const client = make();
    ASSERT_EQ(set_byte(client, RDMA_OPTION_ID_ACK_TIMEOUT, 9), 0) << std::strerror(errno);
    ASSERT_NO_FATAL_FAILURE(resolve_address(client));
    ASSERT_EQ(rdma_resolve_route(client, kTimeoutMs), 0);
    next(RDMA_CM_EVENT_ROUTE_RESOLVED);
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    ASSERT_EQ(rdma_create_qp(client, nullptr, &init), 0) << std::strerror(errno);
    rdma_cm_id* const server = request(client).id;
    rdma_conn_param given = parameters();
    ASSERT_EQ(rdma_accept(server, &given), 0) << std::strerror(errno);
    next(RDMA_CM_EVENT_ESTABLISHED);
    next(RDMA_CM_EVENT_ESTABLISHED);
    ibv_qp_attr attributes{};
    ASSERT_EQ(ibv_query_qp(client->qp, &attributes, IBV_QP_TIMEOUT, &init), 0);
    EXPECT_EQ(attributes.timeout, 9);
}

TEST_P(Options, AckTimeoutIsNotForDatagrams) {
    EXPECT_EQ(set_byte(make(RDMA_PS_UDP), RDMA_OPTION_ID_ACK_TIMEOUT, 9), -1);
    EXPECT_EQ(errno, EINVAL);
}

TEST_P(Options, AKnownPathNeedsNoResolution) {
    listen();
    rdma_cm_id* const known = resolve();
    rdma_cm_id* const client = make();
    ASSERT_NO_FATAL_FAILURE(resolve_address(client));
    std::array<ibv_path_data, 2> paths{};
    paths[1] = pack(*known->route.path_rec);  // paths without all three flags are passed over
    ASSERT_EQ(set_paths(client, paths.data(), sizeof paths), 0) << std::strerror(errno);
    EXPECT_EQ(next(RDMA_CM_EVENT_ROUTE_RESOLVED).id, client);
    ASSERT_EQ(client->route.num_paths, 1);
    const ibv_sa_path_rec& path = *client->route.path_rec;
    EXPECT_EQ(path.dlid, known->route.path_rec->dlid);
    EXPECT_EQ(std::memcmp(&path.dgid, &known->route.path_rec->dgid, sizeof path.dgid), 0);
    EXPECT_EQ(path.mtu, known->route.path_rec->mtu);
    EXPECT_EQ(path.pkey, known->route.path_rec->pkey);
    EXPECT_EQ(request(client).connection.qp_num, kExternalQpn);
}

TEST_P(Options, APathIsOfAWholeNumberOfRecordsAndOfADevice) {
    rdma_cm_id* const known = resolve();
    rdma_cm_id* const client = make();
    ibv_path_data path = pack(*known->route.path_rec);
    EXPECT_EQ(set_paths(client, &path, sizeof path), -1);  // on no device yet
    EXPECT_EQ(errno, EINVAL);
    ASSERT_NO_FATAL_FAILURE(resolve_address(client));
    EXPECT_EQ(set_paths(client, &path, sizeof path - 1), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(set_paths(client, &path, 0), -1);
    EXPECT_EQ(errno, EINVAL);
    path.flags = IBV_PATH_FLAG_PRIMARY;
    EXPECT_EQ(set_paths(client, &path, sizeof path), -1);
    EXPECT_EQ(errno, EINVAL);
}

TEST_P(Options, HaveTheSizeOfTheirType) {
    rdma_cm_id* const id = make();
    std::array<std::uint8_t, 8> value{};
    const auto is_refused = [&](int name, std::size_t size) {
        errno = 0;
        return rdma_set_option(id, RDMA_OPTION_ID, name, value.data(), size) == -1 &&
               errno == EINVAL;
    };
    for (const int name : {RDMA_OPTION_ID_TOS, RDMA_OPTION_ID_ACK_TIMEOUT}) {
        EXPECT_TRUE(is_refused(name, 0)) << name;
        EXPECT_TRUE(is_refused(name, sizeof(int))) << name;
    }
    for (const int name : {RDMA_OPTION_ID_REUSEADDR, RDMA_OPTION_ID_AFONLY}) {
        EXPECT_TRUE(is_refused(name, 1)) << name;
        EXPECT_TRUE(is_refused(name, 8)) << name;
    }
}

TEST_P(Options, ThatNobodyKnowsAreRefused) {
    rdma_cm_id* const id = make();
    EXPECT_EQ(set(id, RDMA_OPTION_ID_ACK_TIMEOUT + 1, 1), -1);
    EXPECT_EQ(errno, ENOSYS);
    int value = 1;
    EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH + 1, &value, sizeof value),
              -1);
    EXPECT_EQ(errno, ENOSYS);
    EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_IB + 1, 0, &value, sizeof value), -1);
    EXPECT_EQ(errno, ENOSYS);
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, Options, testing::ValuesIn(kBothLinkLayers));

}  // namespace
}  // namespace rdmacm_test

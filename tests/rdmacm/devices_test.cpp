// The devices that librdmacm has open, and the port numbers of an id.
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>

#include <endian.h>
#include <gtest/gtest.h>

#include "ids.hpp"

namespace rdmacm_test {
namespace {

using simverbs::host_address;

class Devices : public Ids {
  protected:
    Devices() : Ids("star:3") {}
};

// rdma_get_devices(3): "a NULL-terminated array of opened RDMA devices", to "allocate resources
// [...] that will be shared across multiple rdma_cm_id's".
TEST_F(Devices, AreThoseOfTheIds) {
    int count = -1;
    ibv_context** const devices = rdma_get_devices(&count);
    ASSERT_NE(devices, nullptr) << std::strerror(errno);
    ASSERT_EQ(count, 3);
    EXPECT_EQ(devices[3], nullptr);
    std::set<std::string> hosts;
    for (int i = 0; i < count; ++i) {
        hosts.insert(simverbs_device_host(devices[i]->device));
        ibv_pd* const domain = ibv_alloc_pd(devices[i]);
        EXPECT_NE(domain, nullptr);
        EXPECT_EQ(ibv_dealloc_pd(domain), 0);
    }
    EXPECT_EQ(hosts, (std::set<std::string>{"h0", "h1", "h2"}));
    rdma_cm_id* const id = make();
    sockaddr_in at = host_address(2, 0);
    ASSERT_EQ(rdma_bind_addr(id, generic(at)), 0);
    EXPECT_TRUE(id->verbs == devices[0] || id->verbs == devices[1] || id->verbs == devices[2]);
    rdma_free_devices(devices);
    // "Devices remain opened while the librdmacm is loaded."
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(id->verbs, id->port_num, &port), 0);
}

TEST_F(Devices, NeedNotBeCounted) {
    ibv_context** const devices = rdma_get_devices(nullptr);
    ASSERT_NE(devices, nullptr) << std::strerror(errno);
    int count = 0;
    while (devices[count] != nullptr) {
        ++count;
    }
    EXPECT_EQ(count, 3);
    rdma_free_devices(devices);
}

// librdmacm keeps the devices of worlds that ended, and says no more of them.
TEST(DevicesOfWorlds, AreThoseOfTheLastOne) {
    for (const int hosts : {2, 4, 3}) {
        const simverbs::World world({.topology = "eth-star:" + std::to_string(hosts)});
        int count = -1;
        ibv_context** const devices = rdma_get_devices(&count);
        ASSERT_NE(devices, nullptr) << std::strerror(errno);
        EXPECT_EQ(count, hosts);
        rdma_free_devices(devices);
    }
}

using PortNumbers = Devices;

// rdma_get_src_port(3), rdma_get_dst_port(3): "16-bit port identifier", in network byte order.
TEST_F(PortNumbers, AreThoseOfBothEnds) {
    rdma_cm_id* const listener = listen();
    EXPECT_EQ(rdma_get_src_port(listener), htobe16(kPort));
    EXPECT_EQ(rdma_get_dst_port(listener), 0);
    rdma_cm_id* const client = resolve();
    EXPECT_EQ(rdma_get_dst_port(client), htobe16(kPort));
    const std::uint16_t own = be16toh(rdma_get_src_port(client));
    EXPECT_GE(own, 32768);  // an ephemeral one
    rdma_cm_id* const server = request(client).id;
    EXPECT_EQ(rdma_get_src_port(server), htobe16(kPort));
    EXPECT_EQ(rdma_get_dst_port(server), htobe16(own));
}

TEST_F(PortNumbers, OfAnIdThatIsNotBoundAreZero) {
    rdma_cm_id* const id = make();
    EXPECT_EQ(rdma_get_src_port(id), 0);
    EXPECT_EQ(rdma_get_dst_port(id), 0);
}

}  // namespace
}  // namespace rdmacm_test

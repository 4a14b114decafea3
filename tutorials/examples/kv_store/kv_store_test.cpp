#include "kv_store.hpp"

#include <chrono>
#include <string>

#include <boost/fiber/all.hpp>

#include <simverbs/connect.hpp>
#include <simverbs/gtest.hpp>
#include <simverbs/lab.hpp>

namespace {

using namespace std::chrono_literals;

// The fixture has a connection of its own; the store makes another one on the same devices.
class KvStore : public simverbs::TwoHosts {};

TEST_F(KvStore, FindsWhatWasPut) {
    kv::Server server(h1.context, 256);
    kv::Client client(h0.context, server.table());
    simverbs::connect(*client.qp(), *server.add_client());
    for (int i = 0; i < 40; ++i) {
        ASSERT_TRUE(server.put("key " + std::to_string(i), std::string(100 * i, 'v')));
    }
    for (int i = 0; i < 40; ++i) {
        const kv::Answer answer = client.get("key " + std::to_string(i));
        ASSERT_EQ(answer.outcome, kv::Outcome::kFound);
        EXPECT_EQ(answer.value, std::string(100 * i, 'v'));
    }
    EXPECT_EQ(client.get("never put").outcome, kv::Outcome::kNotFound);
}

TEST_F(KvStore, RefusesWhatDoesNotFit) {
    kv::Server server(h1.context, 4);
    EXPECT_FALSE(server.put("", "no key"));
    EXPECT_FALSE(server.put("key", std::string(kv::kValueBytes + 1, 'v')));
}

TEST_F(KvStore, ReportsAServerThatIsGoneAndFindsItWhenItIsBack) {
    kv::Server server(h1.context, 64);
    kv::Client client(h0.context, server.table());
    ibv_qp* const server_end = server.add_client();
    simverbs::connect(*client.qp(), *server_end, {.timeout = 8, .retries = 2});
    ASSERT_TRUE(server.put("key", "value"));

    ASSERT_EQ(simverbs_set_link("h1-s0", 0), 0) << simverbs_last_error();
    const kv::Answer lost = client.get("key");
    EXPECT_EQ(lost.outcome, kv::Outcome::kUnreachable);
    EXPECT_EQ(lost.status, IBV_WC_RETRY_EXC_ERR) << simverbs::explain();

    ASSERT_EQ(simverbs_set_link("h1-s0", 1), 0) << simverbs_last_error();
    simverbs::advance(10ms);  // until the subnet manager has brought the port up
    simverbs::connect(*client.qp(), *server_end);
    EXPECT_EQ(client.get("key").value, "value");
}

// A READ of four packets loses the last one. Before the transport reads it again, the server puts
// another value: the READ has the beginning of the old one and the end of the new one.
std::string get_during_a_put(const kv::ClientOptions& options) {
    simverbs::Lab lab({.topology = "star:2"});
    boost::fibers::promise<kv::Table> table;
    boost::fibers::promise<ibv_qp*> client_end;
    boost::fibers::barrier ready(2);
    boost::fibers::barrier done(2);
    std::string value;
    lab.host("h1", [&](ibv_context* device) {
        kv::Server server(device, 64);
        ASSERT_TRUE(server.put("key", std::string(kv::kValueBytes, 'a')));
        table.set_value(server.table());
        simverbs::connect(*client_end.get_future().get(), *server.add_client(),
                          {.mtu = IBV_MTU_1024});
        ready.wait();
        lab.sleep_for(1ms);
        EXPECT_TRUE(server.put("key", std::string(kv::kValueBytes, 'b')));
        done.wait();
    });
    lab.host("h0", [&](ibv_context* device) {
        kv::Client client(device, table.get_future().get(), options);
        client_end.set_value(client.qp());
        ready.wait();
        const simverbs::Fault lost =
            simverbs::drop().from("h1").opcode("RDMA_READ_RESPONSE_LAST").inject();
        value = client.get("key").value;
        EXPECT_THAT(lost, simverbs::Fired(1));
        done.wait();
    });
    lab.run();
    return value;
}

TEST(KvStoreDuringAPut, NeverReturnsHalfOfAValue) {
    const std::string value = get_during_a_put({});
    EXPECT_TRUE(value == std::string(kv::kValueBytes, 'b')) << value;
}

// Fails: this client trusts each READ.
TEST(KvStoreDuringAPut, DISABLED_NeverReturnsHalfOfAValueWithoutVerifying) {
    const std::string value = get_during_a_put({.verify = false});
    EXPECT_EQ(value.find_first_not_of(value.front()), std::string::npos)
        << "the value begins with '" << value.front() << "' and ends with '" << value.back() << "'";
}

}  // namespace

// Clients that ask for so much, or answer so slowly, that nobody else would get a turn, while two
// others exchange data: time goes on for these, and the greedy one is hung up on where no program
// would do what it does.
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/server/hostile_client.hpp"
#include "tests/server/served_world.hpp"

namespace server_test {
namespace {

using namespace std::chrono_literals;
using simverbs::ActorWord;
using simverbs::ClientArea;
using simverbs::CopyWord;
using simverbs::Doorbell;

// Does the same thing again and again until it is destroyed.
class Again {
  public:
    template <class F>
    explicit Again(F what)
        : thread_([this, what] {
              while (!stop_) {
                  what();
              }
          }) {}
    ~Again() {
        stop_ = true;
        thread_.join();
    }
    Again(const Again&) = delete;
    Again& operator=(const Again&) = delete;

  private:
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

void ring(HostileClient& client, const Doorbell& doorbell) {
    ClientArea& area = client.area();
    const std::uint32_t index = area.doorbell_producer.value.load();
    if (index - area.doorbell_consumer.value.load() < ClientArea::kDoorbells) {
        area.doorbells[index % ClientArea::kDoorbells] = doorbell;
        area.doorbell_producer.value.store(index + 1);
    }
}

// Says of itself that it polls, so that nobody waits for it.
void claim_to_poll(HostileClient& client) {
    ClientArea& area = client.area();
    area.actors[0].thread.store(static_cast<std::uint32_t>(getpid()));
    area.actors[0].seen.store(0);
    area.actors[0].state.store(static_cast<std::uint32_t>(ActorWord::kPolling));
    area.actors_made.value.store(1);
}

struct OwnQueuePair {
    explicit OwnQueuePair(HostileClient& client) {
        using namespace simverbs;  // the commands
        HandleReply pd;
        CreateCqReply cq;
        EXPECT_EQ(client.command(OpenContext{}, context), 0);
        EXPECT_EQ(client.command(AllocatePd{context.handle}, pd), 0);
        EXPECT_EQ(client.command(CreateCq{context.handle, 16, 0}, cq), 0);
        RegisterMr registration{context.handle, pd.handle,
                                reinterpret_cast<std::uint64_t>(&memory)};
        registration.length = sizeof memory;
        registration.iova = registration.address;
        registration.access = 0xF;
        EXPECT_EQ(client.command(registration, mr), 0);
        CreateQp create{.context = context.handle,
                        .pd = pd.handle,
                        .send_cq = cq.handle,
                        .receive_cq = cq.handle};
        create.capacity = {16, 16, 1, 1, 0};
        EXPECT_EQ(client.command(create, qp), 0);
        send_ring = client.map(qp.ring.bytes);
    }
    simverbs::HandleReply context;
    simverbs::CreateQpReply qp;
    simverbs::RegisterMrReply mr;
    Mapped send_ring;
    std::uint64_t memory[64] = {};
};

class Greedy : public testing::TestWithParam<const char*> {
  protected:
    std::unique_ptr<HostileClient> attached() {
        auto client = std::make_unique<HostileClient>(world_.socket());
        EXPECT_EQ(client->attach("h2"), 0);
        return client;
    }
    // Others go on meanwhile, as fast as they may.
    void expect_others_exchange() {
        Couple couple(world_, "h0", "h1");
        couple.begin();
        std::this_thread::sleep_for(200ms);
        EXPECT_TRUE(couple.finish());
        EXPECT_TRUE(world_.serves());
    }
    void expect_hung_up_on(const char* why) {
        EXPECT_TRUE(world_.complains_at_last(why)) << world_.complaints();
        EXPECT_NE(world_.complaints().find("process " + std::to_string(getpid()) + " of h2"),
                  std::string::npos)
            << world_.complaints();
        EXPECT_TRUE(world_.is_empty_at_last()) << world_.status();
    }

    ServedWorld world_{"star:3", false, {"--schedule", GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Under, Greedy, testing::Values("free", "canonical"),
                         [](const auto& each) { return std::string(each.param); });

TEST_P(Greedy, ScribblesOverItsDoorbells) {
    const auto client = attached();
    claim_to_poll(*client);
    {
        const Again scribbling([&client] {
            ClientArea& area = client->area();
            area.doorbell_producer.value.store(area.doorbell_consumer.value.load() + (1U << 31));
            sched_yield();
        });
        expect_others_exchange();
        expect_hung_up_on("rang doorbells that mean nothing");
    }
}

TEST_P(Greedy, RingsForQueuePairsThatItHasNot) {
    const auto client = attached();
    claim_to_poll(*client);
    {
        const Again ringing([&client] { ring(*client, {.context = 1, .qpn = 0x010001}); });
        expect_others_exchange();
        expect_hung_up_on("rang doorbells that mean nothing");
    }
}

// A program does what it may, without end: it stays, and the others have their turns.
TEST_P(Greedy, RingsForItsOwnWithoutEnd) {
    const auto client = attached();
    const OwnQueuePair own(*client);
    claim_to_poll(*client);
    Doorbell doorbell{own.context.handle, own.qp.qpn};
    doorbell.queue = simverbs::DoorbellQueue::kReceive;
    const Again ringing([&] {
        ring(*client, doorbell);
        client->area().actors[0].ticket.fetch_add(1);
    });
    expect_others_exchange();
    EXPECT_NE(world_.status().find("process " + std::to_string(getpid())), std::string::npos);
}

TEST_P(Greedy, SendsMessagesThatMeanNothing) {
    const auto client = attached();
    claim_to_poll(*client);
    {
        const Again sending([&client] {
            simverbs::CommandReply reply;
            client->command({.head = {}, .code = {}, .length = 0, .reply_length = 0}, reply);
            simverbs::CommandRequest request;
            request.head.kind = simverbs::RequestKind::kStatus;
            client->command(request, reply);
        });
        expect_others_exchange();
        expect_hung_up_on("sent messages that mean nothing");
    }
}

TEST_P(Greedy, ConnectsWithoutEnd) {
    const Again connecting([this] { const HostileClient client(world_.socket()); });
    const Again connecting_too([this] { const HostileClient client(world_.socket()); });
    expect_others_exchange();
}

// Each doorbell has the server complete thousands of requests, with no time between them.
TEST_P(Greedy, FlushesWithoutEnd) {
    using namespace simverbs;  // the commands
    const auto client = attached();
    HandleReply context;
    HandleReply pd;
    CreateCqReply cq;
    CreateQpReply qp;
    constexpr std::uint32_t kDepth = 8192;
    ASSERT_EQ(client->command(OpenContext{}, context), 0);
    ASSERT_EQ(client->command(AllocatePd{context.handle}, pd), 0);
    ASSERT_EQ(client->command(CreateCq{context.handle, 4 * kDepth, 0}, cq), 0);
    CreateQp create{
        .context = context.handle, .pd = pd.handle, .send_cq = cq.handle, .receive_cq = cq.handle};
    create.capacity = {kDepth, 16, 1, 1, 0};
    ASSERT_EQ(client->command(create, qp), 0);
    ModifyQp modify;
    modify.context = context.handle;
    modify.handle = qp.handle;
    modify.values.state = static_cast<std::uint32_t>(QpState::kErr);
    modify.mask = static_cast<std::uint32_t>(QpAttr::kState);
    ModifyQpReply moved;
    ASSERT_EQ(client->command(modify, moved), 0);
    claim_to_poll(*client);
    Doorbell doorbell{context.handle, qp.qpn};
    const Again ringing([&] {
        doorbell.producer += kDepth;
        ring(*client, doorbell);
        client->area().actors[0].ticket.fetch_add(1);
    });
    expect_others_exchange();
}

// The server may not reach its memory, asks it to copy, and waits for an answer that comes late
// each time.
class SlowCopier : public testing::TestWithParam<std::chrono::milliseconds> {};

INSTANTIATE_TEST_SUITE_P(By, SlowCopier, testing::Values(900ms, 90ms), [](const auto& each) {
    return std::to_string(each.param.count()) + "ms";
});

TEST_P(SlowCopier, IsNotWaitedForWithoutEnd) {
    ServedWorld world("vpi-pair", true);  // tables are of Ethernet ports
    Couple couple(world, "h0", "h1");
    HostileClient client(world.socket());
    ASSERT_EQ(client.attach("h1"), 0);
    const OwnQueuePair own(client);
    {
        const Again copying([&client] {
            simverbs::CopyRequest& request = client.area().copy;
            const auto word = static_cast<CopyWord>(request.state.load());
            if (word != CopyWord::kRead && word != CopyWord::kWrite) {
                std::this_thread::sleep_for(100us);
                return;
            }
            std::this_thread::sleep_for(GetParam());
            request.state.store(static_cast<std::uint32_t>(CopyWord::kDone));
        });
        couple.begin();
        // A table whose entries the server reads in the client's memory, again and again.
        constexpr int kMost = 60;
        int asked = 0;
        for (int error = 0; error >= 0 && asked < kMost; ++asked) {
            simverbs::CreateIndirectionTable table;
            table.context = own.context.handle;
            table.queues = reinterpret_cast<std::uint64_t>(&own.memory);
            simverbs::HandleReply reply;
            error = client.command(table, reply);
        }
        EXPECT_LT(asked, GetParam() > 500ms ? 3 : kMost);
    }
    EXPECT_TRUE(world.complains_at_last("copied its memory too slowly")) << world.complaints();
    EXPECT_TRUE(couple.finish());
    const Ran down = run(SIMVERBS_COMMAND " down --force --world " + world.socket());
    EXPECT_NE(down.text.find("not deterministic"), std::string::npos) << down.text;
    EXPECT_NE(down.text.find("of h1 was hung up on"), std::string::npos) << down.text;
}

}  // namespace
}  // namespace server_test

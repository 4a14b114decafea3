// Clients that garble, flood, lie and hang up, while two others exchange data and notice nothing.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "simverbs/hca/command_list.hpp"

#include "tests/server/hostile_client.hpp"
#include "tests/server/served_world.hpp"

namespace server_test {
namespace {

using simverbs::ActorWord;
using simverbs::ClientArea;
using simverbs::CommandReply;
using simverbs::CommandRequest;
using simverbs::Doorbell;

constexpr std::uint64_t kSeed = 7;

class Hostile : public testing::Test {
  protected:
    void SetUp() override { couple_.begin(); }
    void TearDown() override {
        EXPECT_TRUE(world_.serves());
        EXPECT_TRUE(couple_.finish());
        EXPECT_TRUE(world_.is_empty_at_last()) << world_.status();
        EXPECT_EQ(world_.status().find("queue pairs"), std::string::npos) << world_.status();
    }
    // Attached to the third host.
    std::unique_ptr<HostileClient> attached() {
        auto client = std::make_unique<HostileClient>(world_.socket());
        EXPECT_EQ(client->attach("h2"), 0);
        return client;
    }
    // Rings for queue pair `qpn`, as if requests up to `producer` were there.
    static void ring(HostileClient& client, const Doorbell& doorbell) {
        ClientArea& area = client.area();
        const std::uint32_t index = area.doorbell_producer.value.load();
        area.doorbells[index % ClientArea::kDoorbells] = doorbell;
        area.doorbell_producer.value.store(index + 1);
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = write(client.wake(), &one, sizeof one);
    }

    std::mt19937_64 random_{kSeed};
    ServedWorld world_{"star:3"};
    Couple couple_{world_, "h0", "h1"};
};

TEST_F(Hostile, NonsenseForAGreeting) {
    constexpr int kTries = 500;
    for (int i = 0; i < kTries; ++i) {
        HostileClient client(world_.socket());
        std::vector<std::byte> bytes(1 + random_() % 2000);
        fill(bytes, random_);
        if (random_() % 2 == 0 && bytes.size() >= sizeof(simverbs::RequestHead)) {
            simverbs::RequestHead head;
            head.kind = simverbs::RequestKind{static_cast<std::uint32_t>(random_() % 3)};
            std::memcpy(bytes.data(), &head, sizeof head);
        }
        EXPECT_TRUE(client.send(bytes));
    }
}

TEST_F(Hostile, SilentStrangersDoNotKeepOthersOut) {
    constexpr int kStrangers = 100;
    std::vector<std::unique_ptr<HostileClient>> strangers;
    strangers.reserve(kStrangers);
    for (int i = 0; i < kStrangers; ++i) {
        strangers.push_back(std::make_unique<HostileClient>(world_.socket()));
    }
    attached();
}

TEST_F(Hostile, NonsenseAboutTheFabric) {
    constexpr int kTries = 500;
    constexpr std::uint32_t kActions = 20;
    for (int i = 0; i < kTries; ++i) {
        HostileClient client(world_.socket());
        simverbs::FabricRequest request;
        fill(std::as_writable_bytes(std::span(&request, 1)), random_);
        request.head = simverbs::FabricRequest().head;
        request.action = simverbs::FabricAction{static_cast<std::uint32_t>(random_() % kActions)};
        if (random_() % 2 == 0) {
            const std::string name = random_() % 2 == 0 ? "h2:1" : "h2-s0";
            request.name = {};
            std::copy(name.begin(), name.end(), request.name.begin());
        }
        EXPECT_TRUE(client.send(std::as_bytes(std::span(&request, 1))));
    }
}

TEST_F(Hostile, HostsThatDoNotExist) {
    const std::string unterminated(64, 'h');
    for (const std::string& name : {std::string(), std::string("h9"), unterminated}) {
        EXPECT_EQ(HostileClient(world_.socket()).attach(name), ENOENT);
    }
}

TEST_F(Hostile, CommandsOfNonsense) {
    constexpr int kCommands = 3000;
    constexpr std::size_t kCodes = simverbs::kCommandNames.size() + 2;
    const auto client = attached();
    for (int i = 0; i < kCommands; ++i) {
        CommandRequest request;
        fill(std::as_writable_bytes(std::span(&request, 1)), random_);
        request.head = {};
        request.code = simverbs::CommandCode{static_cast<std::uint32_t>(random_() % kCodes)};
        CommandReply reply;
        ASSERT_GE(client->command(request, reply), 0) << "command " << i;
    }
}

// Right in size, wrong in what they name and count.
template <simverbs::Command C>
void ask_for_nonsense(HostileClient& client, std::mt19937_64& random) {
    C command;
    typename C::Reply reply{};
    const auto bytes = std::as_writable_bytes(std::span(&command, 1));
    fill(bytes, random);
    if (random() % 2 == 0) {
        bytes[0] = std::byte{1};  // the context that exists
        std::fill(bytes.begin() + 1, bytes.begin() + sizeof(std::uint32_t), std::byte{0});
    }
    ASSERT_GE(client.command(command, reply), 0) << to_string(C::kCode);
}

TEST_F(Hostile, CommandsOfTheRightSize) {
    constexpr int kRounds = 200;
    const auto client = attached();
    simverbs::HandleReply context;
    ASSERT_EQ(client->command(simverbs::OpenContext{}, context), 0);
    for (int i = 0; i < kRounds; ++i) {
        simverbs::Commands::map([&]<class C>(std::type_identity<C>) {
            if constexpr (!std::is_same_v<C, simverbs::CloseContext>) {
                ask_for_nonsense<C>(*client, random_);
            }
            return HasFatalFailure();
        });
        ASSERT_FALSE(HasFatalFailure()) << "round " << i;
    }
}

TEST_F(Hostile, HugeCountsAreRefused) {
    using namespace simverbs;  // the commands
    constexpr std::uint32_t kHuge = 0xFFFF'FFFF;
    const auto client = attached();
    HandleReply context;
    HandleReply pd;
    ASSERT_EQ(client->command(OpenContext{}, context), 0);
    ASSERT_EQ(client->command(AllocatePd{context.handle}, pd), 0);
    CreateCqReply cq;
    EXPECT_NE(client->command(CreateCq{context.handle, kHuge, 0}, cq), 0);
    EXPECT_NE(client->command(CreateCq{context.handle, 0, 0}, cq), 0);
    ASSERT_EQ(client->command(CreateCq{context.handle, 16, 0}, cq), 0);
    ResizeCqReply resized;
    EXPECT_NE(client->command(ResizeCq{context.handle, cq.handle, kHuge}, resized), 0);
    CreateQpReply qp;
    CreateQp create{
        .context = context.handle, .pd = pd.handle, .send_cq = cq.handle, .receive_cq = cq.handle};
    create.capacity = {kHuge, kHuge, kHuge, kHuge, kHuge};
    EXPECT_NE(client->command(create, qp), 0);
    RegisterMrReply mr;
    EXPECT_NE(client->command(RegisterMr{context.handle, pd.handle, ~0ULL - 4, ~0ULL, 0, 1}, mr),
              0);
}

TEST_F(Hostile, RepliesThatNobodyReads) {
    constexpr int kCommands = 20'000;
    const auto client = attached();
    CommandRequest request;
    for (int i = 0; i < kCommands; ++i) {
        if (!client->send_command(request)) {
            sched_yield();  // full, or hung up on: both will do
        }
    }
    EXPECT_NE(world_.status(), "");
}

TEST_F(Hostile, HangsUpInTheMiddleOfACommand) {
    constexpr int kTries = 100;
    for (int i = 0; i < kTries; ++i) {
        const auto client = attached();
        CommandRequest request;
        request.length = sizeof(simverbs::OpenContext);
        request.reply_length = sizeof(simverbs::HandleReply);
        EXPECT_TRUE(client->send_command(request));
    }
}

TEST_F(Hostile, DoorbellsOfNonsense) {
    constexpr int kRounds = 200;
    const auto client = attached();
    ClientArea& area = client->area();
    for (int i = 0; i < kRounds; ++i) {
        fill(std::as_writable_bytes(std::span(area.doorbells)), random_);
        area.doorbell_producer.value.store(static_cast<std::uint32_t>(odd_number(random_)));
        area.doorbell_consumer.value.store(static_cast<std::uint32_t>(odd_number(random_)));
        const std::uint64_t one = 1;
        EXPECT_EQ(write(client->wake(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    }
}

TEST_F(Hostile, DoorbellsOfOthersQueuePairs) {
    constexpr int kDoorbells = 2000;
    const auto client = attached();
    simverbs::HandleReply context;
    ASSERT_EQ(client->command(simverbs::OpenContext{}, context), 0);
    constexpr std::uint32_t kFirstOfOthers = 0x010001;  // a context's first queue pair
    for (int i = 0; i < kDoorbells; ++i) {
        Doorbell doorbell;
        doorbell.context = static_cast<std::uint32_t>(random_() % 3);
        doorbell.qpn = kFirstOfOthers + static_cast<std::uint32_t>(random_() % 2);
        doorbell.producer = static_cast<std::uint32_t>(odd_number(random_));
        doorbell.queue = static_cast<simverbs::DoorbellQueue>(random_() % 5);
        ring(*client, doorbell);
    }
}

// The list holds no more than it was made for, whatever stands in the ring.
TEST_F(Hostile, OperationsOnTagsThatMeanNothing) {
    using namespace simverbs;  // the commands
    constexpr int kRounds = 300;
    constexpr std::uint32_t kOperations = 64;
    const auto client = attached();
    HandleReply context;
    HandleReply pd;
    CreateCqReply cq;
    ASSERT_EQ(client->command(OpenContext{}, context), 0);
    ASSERT_EQ(client->command(AllocatePd{context.handle}, pd), 0);
    ASSERT_EQ(client->command(CreateCq{context.handle, 16, 0}, cq), 0);
    CreateSrqReply srq;
    CreateSrq create{
        .context = context.handle, .pd = pd.handle, .type = SrqType::kTag, .cq = cq.handle};
    create.tags = 0xFFFF'FFFF;
    create.operations = kOperations;
    create.requests = 4;
    create.segments = 1;
    EXPECT_EQ(client->command(create, srq), EINVAL);
    create.tags = 8;
    create.operations = 0xFFFF'FFFF;
    EXPECT_EQ(client->command(create, srq), EINVAL);
    create.operations = kOperations;
    ASSERT_EQ(client->command(create, srq), 0);
    const Mapped ring_memory = client->map(srq.ring.bytes);
    ASSERT_NE(ring_memory.base, nullptr);
    Doorbell doorbell{.context = context.handle, .qpn = srq.handle};
    doorbell.queue = DoorbellQueue::kTag;
    for (int i = 0; i < kRounds; ++i) {
        fill(std::span(ring_memory.base, ring_memory.bytes), random_);
        const bool likely = random_() % 2 == 0;
        doorbell.producer = likely ? doorbell.producer + kOperations / 2
                                   : static_cast<std::uint32_t>(odd_number(random_));
        ring(*client, doorbell);
    }
    EXPECT_NE(world_.status(), "");
}

TEST_F(Hostile, ThreadsThatAreNotItsOwn) {
    constexpr int kRounds = 300;
    const auto client = attached();
    ClientArea& area = client->area();
    for (int i = 0; i < kRounds; ++i) {
        for (simverbs::ActorSlot& slot : area.actors) {
            const bool mine = random_() % 2 == 0;
            slot.thread.store(mine ? static_cast<std::uint32_t>(getpid())
                                   : static_cast<std::uint32_t>(odd_number(random_)));
            slot.state.store(static_cast<std::uint32_t>(random_() % 6));
            slot.seen.store(odd_number(random_));
            slot.ticket.store(static_cast<std::uint32_t>(odd_number(random_)));
            slot.released.store(static_cast<std::uint32_t>(odd_number(random_)));
            slot.sleeps.store(static_cast<std::uint32_t>(random_() % 2));
            slot.any_news.store(static_cast<std::uint32_t>(random_() % 2));
        }
        area.actors_made.value.store(static_cast<std::uint32_t>(odd_number(random_)));
        sched_yield();
    }
}

TEST_F(Hostile, WakesWithoutEndAndBlocksTheDescriptor) {
    constexpr int kRounds = 2000;
    const auto client = attached();
    EXPECT_EQ(fcntl(client->wake(), F_SETFL, O_RDWR), 0);  // no longer O_NONBLOCK
    fcntl(client->wake(), F_SETFL, O_RDWR | O_NONBLOCK);
    for (int i = 0; i < kRounds; ++i) {
        std::uint64_t value = 1;
        [[maybe_unused]] ssize_t done = write(client->wake(), &value, sizeof value);
        if (i % 2 == 0) {
            done = read(client->wake(), &value, sizeof value);  // before the server does
        }
    }
    const std::uint64_t full = ~0ULL - 1;
    [[maybe_unused]] const ssize_t written = write(client->wake(), &full, sizeof full);
    fcntl(client->wake(), F_SETFL, O_RDWR);
    EXPECT_NE(world_.status(), "");
}

// Blocks that look like the heads of requests, or like their segments, of keys that exist at times.
void fill_ring(const Mapped& ring, const simverbs::RegisterMrReply& mr, std::uint64_t address,
               std::mt19937_64& random) {
    fill({ring.base, ring.bytes}, random);
    constexpr std::size_t kBlock = sizeof(simverbs::SendWqe);
    for (std::size_t at = 0; at + kBlock <= ring.bytes; at += kBlock) {
        if (random() % 2 == 0) {
            auto* head = reinterpret_cast<simverbs::SendWqe*>(ring.base + at);
            head->opcode = static_cast<std::uint8_t>(random() % 16);
            head->segment_count = static_cast<std::uint16_t>(random() % 6);
            head->rkey = random() % 4 == 0 ? head->rkey : mr.rkey;
            head->remote_address = random() % 4 == 0 ? head->remote_address : address;
        } else {
            auto* segment = reinterpret_cast<simverbs::Segment*>(ring.base + at);
            for (std::size_t i = 0; i < kBlock / sizeof *segment; ++i) {
                segment[i] = {address + random() % 8192,
                              static_cast<std::uint32_t>(random() % 9000),
                              random() % 4 == 0 ? 0 : mr.lkey};
            }
        }
    }
}

void connect_to_itself(HostileClient& client, std::uint32_t context,
                       const simverbs::CreateQpReply& qp) {
    using simverbs::QpAttr;
    simverbs::ModifyQp modify;
    modify.context = context;
    modify.handle = qp.handle;
    simverbs::QpValues& values = modify.values;
    values.port = 1;
    values.access = 0xF;
    values.path_mtu = 3;
    values.dest_qpn = qp.qpn;
    values.max_rd_atomic = values.max_dest_rd_atomic = 4;
    values.timeout = 1;
    values.retry_count = 1;
    values.path.dlid = 3;  // h2
    const auto move = [&](std::uint32_t state, std::initializer_list<QpAttr> attributes) {
        simverbs::ModifyQpReply reply;
        values.state = state;
        modify.mask = static_cast<std::uint32_t>(QpAttr::kState);
        for (const QpAttr attribute : attributes) {
            modify.mask |= static_cast<std::uint32_t>(attribute);
        }
        EXPECT_EQ(client.command(modify, reply), 0) << "to state " << state;
    };
    move(1, {QpAttr::kPkeyIndex, QpAttr::kPort, QpAttr::kAccessFlags});
    move(2, {QpAttr::kAv, QpAttr::kPathMtu, QpAttr::kDestQpn, QpAttr::kRqPsn,
             QpAttr::kMaxDestRdAtomic, QpAttr::kMinRnrTimer});
    move(3, {QpAttr::kTimeout, QpAttr::kRetryCnt, QpAttr::kRnrRetry, QpAttr::kSqPsn,
             QpAttr::kMaxRdAtomic});
}

// Queue pairs that send to themselves, with rings that hold anything.
TEST_F(Hostile, RingsOfNonsense) {
    using namespace simverbs;  // the commands
    constexpr int kRounds = 300;
    const auto client = attached();
    HandleReply context;
    HandleReply pd;
    CreateCqReply cq;
    ASSERT_EQ(client->command(OpenContext{}, context), 0);
    ASSERT_EQ(client->command(AllocatePd{context.handle}, pd), 0);
    ASSERT_EQ(client->command(CreateCq{context.handle, 16, 0}, cq), 0);
    const Mapped completions = client->map(cq.ring.bytes);
    std::vector<std::uint64_t> memory(1024);
    RegisterMrReply mr;
    RegisterMr registration{context.handle, pd.handle, reinterpret_cast<std::uint64_t>(&memory[0])};
    registration.length = memory.size() * sizeof memory[0];
    registration.iova = registration.address;
    registration.access = 0xF;
    ASSERT_EQ(client->command(registration, mr), 0);
    for (int i = 0; i < kRounds; ++i) {
        CreateQpReply qp;
        CreateQp create{.context = context.handle,
                        .pd = pd.handle,
                        .send_cq = cq.handle,
                        .receive_cq = cq.handle};
        create.capacity = {16, 16, 4, 4, 64};
        ASSERT_EQ(client->command(create, qp), 0);
        const Mapped ring_memory = client->map(qp.ring.bytes);
        ASSERT_NE(ring_memory.base, nullptr);
        connect_to_itself(*client, context.handle, qp);
        for (const bool send : {false, true, true}) {
            fill_ring(ring_memory, mr, registration.address, random_);
            fill({completions.base, completions.bytes}, random_);
            Doorbell doorbell{context.handle, qp.qpn, static_cast<std::uint32_t>(random_() % 20)};
            doorbell.queue =
                send ? simverbs::DoorbellQueue::kSend : simverbs::DoorbellQueue::kReceive;
            ring(*client, doorbell);
            QueryQpReply state;  // an answer means that the doorbell was taken
            ASSERT_GE(client->command(QueryQp{context.handle, qp.handle}, state), 0);
        }
        EmptyReply reply;
        EXPECT_EQ(client->command(DestroyQp{context.handle, qp.handle}, reply), 0);
        munmap(ring_memory.base, ring_memory.bytes);
    }
}

}  // namespace
}  // namespace server_test

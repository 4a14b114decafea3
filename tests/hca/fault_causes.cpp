#include "tests/hca/fault_causes.hpp"

namespace simverbs::test {
namespace {

using enum FaultCause;

constexpr std::size_t kBytes = 64;
constexpr std::uint32_t kNoKey = 0xDEAD00;

void become_write(Pair& pair, Exchange& exchange) {
    exchange.request = write_of(pair.a, pair.b, 1, 0, kBytes);
}

void become_read(Pair& pair, Exchange& exchange) {
    exchange.request = read_of(pair.a, pair.b, 1, 0, kBytes);
}

void become_fetch_add(Pair& pair, Exchange& exchange) {
    exchange.request = fetch_add_of(pair.a, pair.b, 1, 0, 1);
}

// `side` is connected anew with another path MTU than its peer has.
void reconnect_with_mtu(Pair& pair, Side& side, Side& peer, std::uint32_t mtu_bytes) {
    PairOptions options = pair.options();
    options.mtu_bytes = mtu_bytes;
    EXPECT_EQ(side.qp.modify_to(QpState::kReset), 0);
    pair.connect(side.qp, peer, peer.qp, options);
}

void connect_to_nobody(Pair& pair, Exchange& exchange) {
    become_write(pair, exchange);
    QueuePairHandle gone = pair.b.make_qp();
    gone.destroy();
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kReset), 0);
    pair.connect(pair.a.qp, pair.b, gone);
}

Packet packet_of(const Pair& pair, MessageKind kind, PacketPosition position) {
    Packet packet;
    packet.opcode = kEncodeOpcode(WireTransport::kRc, kind, position, Trailer::kNone);
    packet.psn = Psn(pair.options().first_psn);
    return packet;
}

// The two requests are lost; what the test sends instead takes their first PSN.
void lose_both_requests(Pair& pair, Exchange& exchange) {
    become_write(pair, exchange);
    pair.drop_nth(pair.a, 1);
    pair.drop_nth(pair.a, 1);  // of those that the first fault leaves
}

// NOLINTNEXTLINE(readability-function-size): a table
const std::vector<FaultScenario>& requester_scenarios() {
    static const std::vector<FaultScenario> kScenarios = {
        {kSuccess, {}, {}, {}},
        {kMessageTooLong,
         {},
         [](Pair& pair, Exchange& exchange) {
             const Region huge = pair.a.register_memory(pair.a.memory.data(), std::size_t{2} << 30);
             exchange.request.segments = {{pair.a.address(), (1U << 30) + 1, huge.lkey}};
         },
         {}},
        {kAtomicNotEightBytes,
         {},
         [](Pair& pair, Exchange& exchange) {
             become_fetch_add(pair, exchange);
             exchange.request.segments = {pair.a.segment(0, 4)};
         },
         {}},
        {kOpcodeNotForService,
         {},
         [](Pair&, Exchange& exchange) { exchange.request.opcode = WrOpcode::kTso; },
         {}},
        {kInitiatorDepthZero,
         [](PairOptions& options) { options.max_rd_atomic = 0; },
         become_read,
         {}},
        {kMalformedSend,
         {},
         [](Pair& pair, Exchange& exchange) {
             exchange.request.segments.assign(5, pair.a.segment(0, 8));
         },
         {}},
        {kGatherKey,
         {},
         [](Pair&, Exchange& exchange) { exchange.request.segments[0].lkey = kNoKey; },
         {}},
        {kGatherRange,
         {},
         [](Pair& pair, Exchange& exchange) {
             exchange.request.segments = {pair.a.segment(Side::kMemoryBytes - 8, 9)};
         },
         {}},
        {kBindRefused,
         {},
         [](Pair&, Exchange& exchange) { exchange.request.opcode = WrOpcode::kBindMw; },
         {}},
        {kLocalInvalidateRefused,
         {},
         [](Pair& pair, Exchange& exchange) {
             exchange.request.opcode = WrOpcode::kLocalInv;
             exchange.request.immediate = pair.a.region.rkey;
         },
         {}},
        {kLandingKey,
         {},
         [](Pair& pair, Exchange& exchange) {
             become_read(pair, exchange);
             exchange.request.segments[0].lkey = kNoKey;
         },
         {}},
        {kLandingRange,
         {},
         [](Pair& pair, Exchange& exchange) {
             become_read(pair, exchange);
             exchange.request.segments = {pair.a.segment(Side::kMemoryBytes - 8, 9)};
         },
         {}},
        {kLandingRight,
         {},
         [](Pair& pair, Exchange& exchange) {
             become_read(pair, exchange);
             exchange.request.segments[0].lkey =
                 pair.a.register_memory(pair.a.memory.data(), kBytes, Access::kRemoteRead).lkey;
         },
         {}},
        {kReadLengthMismatch,
         {},
         [](Pair& pair, Exchange& exchange) {
             exchange.request = read_of(pair.a, pair.b, 1, 0, 2048);
             reconnect_with_mtu(pair, pair.b, pair.a, 512);
         },
         {}},
        {kResponseMismatch,
         {},
         lose_both_requests,
         [](Pair& pair) {
             pair.inject(pair.b, pair.a,
                         packet_of(pair, MessageKind::kReadResponse, PacketPosition::kOnly));
         }},
    };
    return kScenarios;
}

const std::vector<FaultScenario>& silence_scenarios() {
    static const std::vector<FaultScenario> kScenarios = {
        {kPacketsLost,
         {},
         [](Pair& pair, Exchange& exchange) {
             become_write(pair, exchange);
             pair.drop_all(pair.a);
         },
         {}},
        {kPeerNotReady,
         {},
         [](Pair& pair, Exchange& exchange) {
             become_write(pair, exchange);
             exchange.receives.clear();
             EXPECT_EQ(pair.b.qp.modify_to(QpState::kReset), 0);
         },
         {}},
        {kPeerGone, {}, connect_to_nobody, {}},
        {kPkeyMismatch,
         {},
         [](Pair& pair, Exchange& exchange) {
             become_write(pair, exchange);
             pair.b.host.hca().port(1).mutable_attributes().pkeys[0] = 0x8001;
         },
         {}},
        {kSequenceRetriesUsedUp,
         [](PairOptions& options) { options.retry_count = 0; },
         [](Pair& pair, Exchange& exchange) {
             become_write(pair, exchange);
             pair.drop_nth(pair.a, 1);
         },
         {}},
        {kRnrRetriesUsedUp,
         [](PairOptions& options) { options.rnr_retry = 2; },
         [](Pair&, Exchange& exchange) { exchange.receives.clear(); },
         {}},
    };
    return kScenarios;
}

// NOLINTNEXTLINE(readability-function-size): a table
const std::vector<FaultScenario>& refusal_scenarios() {
    static const std::vector<FaultScenario> kScenarios = {
        {kQpLacksRight,
         [](PairOptions& options) { options.qp_rights = Access::kLocalWrite; },
         become_write,
         {}},
        {kAtomicMisaligned,
         {},
         [](Pair& pair, Exchange& exchange) {
             become_fetch_add(pair, exchange);
             exchange.request.remote_address += 4;
         },
         {}},
        {kTooManyReads,
         [](PairOptions& options) { options.max_dest_rd_atomic = 0; },
         become_read,
         {}},
        {kPayloadNotMtu,
         {},
         [](Pair& pair, Exchange& exchange) {
             reconnect_with_mtu(pair, pair.b, pair.a, 512);
             exchange.request = write_of(pair.a, pair.b, 1, 0, 2048);
         },
         {}},
        {kOpcodeOutOfOrder,
         {},
         lose_both_requests,
         [](Pair& pair) {
             pair.inject(pair.a, pair.b,
                         packet_of(pair, MessageKind::kWrite, PacketPosition::kMiddle));
         }},
        {kOpcodeReserved,
         {},
         lose_both_requests,
         [](Pair& pair) {  // of no placement type
             pair.inject(pair.a, pair.b,
                         packet_of(pair, MessageKind::kFlush, PacketPosition::kOnly));
         }},
        {kRemoteKey,
         {},
         [](Pair& pair, Exchange& exchange) {
             become_write(pair, exchange);
             exchange.request.rkey = pair.b.region.lkey;  // the wrong one of the two
         },
         {}},
        {kRemoteRange,
         {},
         [](Pair& pair, Exchange& exchange) {
             become_read(pair, exchange);
             exchange.request.remote_address = pair.b.address(Side::kMemoryBytes - kBytes + 1);
         },
         {}},
        {kRemoteRight,
         {},
         [](Pair& pair, Exchange& exchange) {
             become_fetch_add(pair, exchange);
             exchange.request.rkey =
                 pair.b.register_memory(pair.b.memory.data(), kBytes, Access::kRemoteRead).rkey;
         },
         {}},
        {kRemoteOtherPd,
         {},
         [](Pair& pair, Exchange& exchange) {
             become_write(pair, exchange);
             const std::uint32_t pd = pair.b.host.must(AllocatePd{}).handle;
             exchange.request.rkey =
                 pair.b.register_memory(pair.b.memory.data(), kBytes, kAllRights, pd).rkey;
         },
         {}},
    };
    return kScenarios;
}

const std::vector<FaultScenario>& receive_scenarios() {
    static const std::vector<FaultScenario> kScenarios = {
        {kReceiveTooSmall,
         {},
         [](Pair& pair, Exchange& exchange) {
             exchange.receives[0] = {pair.b.segment(4096, kBytes - 1)};
         },
         {}},
        {kReceiveKey,
         {},
         [](Pair&, Exchange& exchange) { exchange.receives[0][0].lkey = kNoKey; },
         {}},
        {kReceiveRange,
         {},
         [](Pair& pair, Exchange& exchange) {
             exchange.receives[0] = {pair.b.segment(Side::kMemoryBytes - 8, kBytes)};
         },
         {}},
        {kReceiveRight,
         {},
         [](Pair& pair, Exchange& exchange) {
             exchange.receives[0][0].lkey =
                 pair.b.register_memory(pair.b.memory.data(), 8192, Access::kRemoteRead).lkey;
         },
         {}},
        {kMalformedReceive,
         {},
         [](Pair& pair, Exchange& exchange) {
             exchange.receives[0].assign(5, pair.b.segment(4096, kBytes));
         },
         {}},
        {kImmediateWriteRefused,
         {},
         [](Pair& pair, Exchange& exchange) {
             become_write(pair, exchange);
             exchange.request.opcode = WrOpcode::kRdmaWriteWithImm;
             exchange.request.rkey = kNoKey;
         },
         {}},
    };
    return kScenarios;
}

}  // namespace

const std::vector<FaultScenario>& fault_scenarios() {
    static const std::vector<FaultScenario> kAll = [] {
        std::vector<FaultScenario> all;
        for (const auto* part : {&requester_scenarios(), &silence_scenarios(), &refusal_scenarios(),
                                 &receive_scenarios()}) {
            all.insert(all.end(), part->begin(), part->end());
        }
        return all;
    }();
    return kAll;
}

const std::vector<ExcusedCause>& excused_causes() {
    static const std::vector<ExcusedCause> kExcused = {
        {kFlushed, "follows from every other cause; flush_test.cpp"},
        {kCqOverrun, "concerns all queue pairs of a CQ; completion_queue_test.cpp"},
        {kLocalInvalidateOfType1, "needs a window; memory_window_test.cpp"},
        {kRemoteInvalidateRefused, "its data has landed; memory_window_test.cpp"},
        {kRendezvousLeftToSoftware, "needs tags; tests/verbs/tag_rendezvous_test.cpp"},
        {kRendezvousReadFailed, "needs tags; tests/verbs/tag_rendezvous_test.cpp"},
        {kTagNotInList, "needs tags; tests/verbs/tag_operations_test.cpp"},
    };
    return kExcused;
}

Exchange good_exchange(const Pair& pair) {
    return {.request = send_of(pair.a, 1, 0, kBytes),
            .receives = {{pair.b.segment(4096, kBytes)}, {pair.b.segment(8192, kBytes)}}};
}

}  // namespace simverbs::test

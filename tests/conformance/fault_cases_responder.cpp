// Causes that the responder finds, on the request or on its own receive.
#include "tests/conformance/fault_stage.hpp"

namespace conformance {
namespace {

constexpr std::uint32_t kNoKey = 0xBAD;
constexpr unsigned kLocal = IBV_ACCESS_LOCAL_WRITE;
constexpr std::uint8_t kWriteMiddle = 0x07;
constexpr std::uint8_t kFlushOpcode = 0x1C;
const std::string kNoXrc = "Soft-RoCE has no XRC";
const std::string kNoRaw = "Soft-RoCE has no raw packets";

// A request of RC that is refused; Soft-RoCE raises no event of a queue pair.
FaultCase refused(std::string name, FaultCause cause, void (*arrange)(Stage&),
                  const std::string& status, const std::string& event,
                  void (*options)(Connection&) = nullptr) {
    return {.name = std::move(name),
            .cause = cause,
            .service = Service::kRc,
            .spec = {failed(status), stopped(event)},
            .connectx6 = {failed(status), stopped(event)},
            .rxe = {failed(status), stopped("-")},
            .options = options,
            .arrange = arrange};
}

std::vector<FaultCase> invalid_requests() {
    FaultCase misaligned = refused(
        "atomic_misaligned", FaultCause::kAtomicMisaligned,
        [](Stage& stage) { stage.become_fetch_add().wr.wr.atomic.remote_addr += 4; }, "REM_INV_REQ",
        "QP_ACCESS_ERR");
    misaligned.rxe = {kRefused, kUntouched, kFollowing};
    return {
        refused(
            "queue_pair_without_remote_write", FaultCause::kQpLacksRight,
            [](Stage& stage) { stage.become_write(); }, "REM_INV_REQ", "QP_REQ_ERR",
            [](Connection& with) { with.access = kLocal | IBV_ACCESS_REMOTE_READ; }),
        refused(
            "queue_pair_without_remote_read", FaultCause::kQpLacksRight,
            [](Stage& stage) { stage.become_read(); }, "REM_INV_REQ", "QP_REQ_ERR",
            [](Connection& with) { with.access = kLocal | IBV_ACCESS_REMOTE_WRITE; }),
        misaligned,
        refused(
            "more_reads_than_the_peer_takes", FaultCause::kTooManyReads,
            [](Stage& stage) {
                stage.become_read();
                stage.reconnect_peer({.reads = 0});
            },
            "REM_INV_REQ", "QP_ACCESS_ERR"),
        refused(
            "write_to_a_peer_of_another_mtu", FaultCause::kPayloadNotMtu,
            [](Stage& stage) {
                stage.become_write(2048);
                stage.reconnect_peer({.mtu = IBV_MTU_512});
            },
            "REM_INV_REQ", "QP_REQ_ERR"),
        refused(
            "middle_without_a_first", FaultCause::kOpcodeOutOfOrder,
            [](Stage& stage) {
                stage.become_write();
                EXPECT_EQ(simverbs_rewrite_nth("h0-s0", "h0", 1, kWriteMiddle, nullptr), 0);
            },
            "REM_INV_REQ", "QP_REQ_ERR"),
        // A FLUSH of no placement type, or one to a device that has none.
        refused(
            "opcode_reserved", FaultCause::kOpcodeReserved,
            [](Stage& stage) {
                stage.become_write();
                EXPECT_EQ(simverbs_rewrite_nth("h0-s0", "h0", 1, kFlushOpcode, nullptr), 0);
            },
            "REM_INV_REQ", "QP_REQ_ERR"),
    };
}

std::vector<FaultCase> access_errors() {
    const auto access = [](std::string name, FaultCause cause, void (*arrange)(Stage&)) {
        return refused(std::move(name), cause, arrange, "REM_ACCESS", "QP_ACCESS_ERR");
    };
    // The whole range is looked at with the first packet, so that nothing lands.
    const FaultCase reaches_outside =
        access("write_of_packets_past_the_end", FaultCause::kRemoteRange, [](Stage& stage) {
            const std::size_t start = End::kBytes - 1024;
            stage.become_write(3000).wr.wr.rdma.remote_addr = stage.there().address(start);
            stage.message.to_offset = start;
        });
    const auto xrc = [](std::string name, FaultCause cause, void (*arrange)(Stage&),
                        const std::string& status, const std::string& peer) {
        const std::string here = "10 " + status + ", 11 FLUSH, 12 FLUSH; -; ERR; -";
        return FaultCase{.name = std::move(name),
                         .cause = cause,
                         .service = Service::kXrcIni,
                         .spec = {here, peer},
                         .connectx6 = {here, peer},
                         .rxe = never(kNoXrc),
                         .arrange = arrange};
    };
    return {
        access("unknown_rkey", FaultCause::kRemoteKey,
               [](Stage& stage) { stage.become_write().wr.wr.rdma.rkey = kNoKey; }),
        access("deregistered_rkey", FaultCause::kRemoteKey,
               [](Stage& stage) {
                   End& there = stage.there();
                   ibv_mr* mr =
                       ibv_reg_mr(there.pd, there.at(), End::kBytes, verbs_test::kAllAccess);
                   stage.become_read().wr.wr.rdma.rkey = mr->rkey;
                   EXPECT_EQ(ibv_dereg_mr(mr), 0);
               }),
        access("read_past_the_end", FaultCause::kRemoteRange,
               [](Stage& stage) {
                   stage.become_read().wr.wr.rdma.remote_addr =
                       stage.there().address(End::kBytes - 63);
               }),
        reaches_outside,
        access("region_without_remote_write", FaultCause::kRemoteRight,
               [](Stage& stage) {
                   stage.become_write().wr.wr.rdma.rkey =
                       stage.region(stage.there(), kLocal | IBV_ACCESS_REMOTE_READ)->rkey;
               }),
        access("rkey_of_another_pd", FaultCause::kRemoteOtherPd,
               [](Stage& stage) {
                   End& there = stage.there();
                   stage.become_write().wr.wr.rdma.rkey =
                       stage.region(there, verbs_test::kAllAccess, stage.other_pd(there))->rkey;
               }),
        xrc(
            "unknown_rkey_of_xrc", FaultCause::kRemoteKey,
            [](Stage& stage) { stage.become_write().wr.wr.rdma.rkey = kNoKey; }, "REM_ACCESS",
            "-; ERR; QP_ACCESS_ERR"),
        xrc(
            "xrc_queue_that_is_not_there", FaultCause::kXrcSrqInvalid,
            [](Stage& stage) { stage.shared_queue += 5; }, "REM_INV_RD_REQ",
            "-; ERR; QP_ACCESS_ERR"),
        xrc(
            "xrc_receive_too_small", FaultCause::kReceiveTooSmall,
            [](Stage& stage) { stage.receives[0] = {stage.there().range(kInboxAt, 8)}; },
            "REM_INV_REQ", "1 LOC_LEN; ERR; -"),
    };
}

std::vector<FaultCase> bad_receives() {
    const auto bad = [](std::string name, FaultCause cause, void (*arrange)(Stage&),
                        const std::string& requester, const std::string& receive) {
        return FaultCase{.name = std::move(name),
                         .cause = cause,
                         .service = Service::kRc,
                         .spec = {failed(requester), receive_failed(receive)},
                         .connectx6 = {failed(requester), receive_failed(receive)},
                         .rxe = {failed("REM_OP"), receive_failed("LOC_QP_OP")},
                         .arrange = arrange};
    };
    FaultCase immediate = bad(
        "write_with_immediate_refused", FaultCause::kImmediateWriteRefused,
        [](Stage& stage) {
            stage.become_write().wr.wr.rdma.rkey = kNoKey;
            stage.work.wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        },
        "REM_ACCESS", "LOC_ACCESS");
    immediate.rxe = {failed("REM_ACCESS"), receive_failed("REM_ACCESS")};
    // Class J: the data has landed, and nobody is told.
    FaultCase invalidate = bad(
        "invalidation_refused", FaultCause::kRemoteInvalidateRefused,
        [](Stage& stage) {
            stage.work.wr.opcode = IBV_WR_SEND_WITH_INV;
            stage.work.key(stage.there().mr->rkey);
        },
        "RETRY_EXC", "MW_BIND");
    invalidate.spec.landed = invalidate.connectx6.landed = kMessage;
    invalidate.rxe = {"10 OK, 11 RETRY_EXC, 12 FLUSH; 21 FLUSH; ERR; -",
                      receive_failed("REM_INV_REQ"), kMessage};
    return {
        bad(
            "receive_too_small", FaultCause::kReceiveTooSmall,
            [](Stage& stage) {
                stage.receives[0] = {stage.there().range(kInboxAt, 30),
                                     stage.there().range(kInboxAt + 100, 33)};
            },
            "REM_INV_REQ", "LOC_LEN"),
        bad(
            "receive_with_an_unknown_key", FaultCause::kReceiveKey,
            [](Stage& stage) { stage.receives[0][0].lkey = kNoKey; }, "REM_OP", "LOC_PROT"),
        bad(
            "receive_past_the_end", FaultCause::kReceiveRange,
            [](Stage& stage) {
                stage.receives[0] = {stage.there().range(End::kBytes - 8, kMessageBytes)};
            },
            "REM_OP", "LOC_PROT"),
        bad(
            "receive_into_read_only_memory", FaultCause::kReceiveRight,
            [](Stage& stage) { stage.receives[0][0].lkey = stage.region(stage.there(), 0)->lkey; },
            "REM_OP", "LOC_PROT"),
        immediate,
        invalidate,
    };
}

// Whom nobody acknowledges: the sender succeeds.
FaultCase unheard(std::string name, FaultCause cause, Service service, const Outcome& outcome,
                  const Outcome& of_rxe, void (*arrange)(Stage&)) {
    return {.name = std::move(name),
            .cause = cause,
            .service = service,
            .spec = outcome,
            .connectx6 = outcome,
            .rxe = of_rxe,
            .arrange = arrange};
}

const Outcome kKept{kDone, "-; RTS; -", kFollowing};
const Outcome kKeptForTheNext{kDone, "1 OK; RTS; -", kFollowingInFirst};

void unknown_receive_key(Stage& stage) {
    stage.receives[0][0].lkey = kNoKey;
}
// Request 12 fits, with the header of a datagram or of a frame.
void small_receive(Stage& stage) {
    stage.receives[0] = {stage.there().range(kInboxAt, 60)};
}

std::vector<FaultCase> of_connections() {
    using enum FaultCause;
    const Outcome rxe_stops{kDone, receive_failed("LOC_QP_OP")};
    const Outcome stops{kDone, receive_failed("LOC_PROT")};
    const auto uc = [](std::string name, FaultCause cause, const Outcome& outcome,
                       const Outcome& of_rxe, void (*arrange)(Stage&)) {
        return unheard(std::move(name), cause, Service::kUc, outcome, of_rxe, arrange);
    };
    FaultCase right =
        uc("uc_queue_pair_without_remote_write", kUnackedWriteRefused, {kDone, "-; RTS; -"},
           {kDone, "-; RTS; -"}, [](Stage& stage) { stage.become_write(); });
    right.options = [](Connection& with) { with.access = kLocal; };
    return {
        uc("uc_receive_with_an_unknown_key", kUnackedReceiveBad, stops, rxe_stops,
           unknown_receive_key),
        uc("uc_receive_too_small", kUnackedReceiveTooSmall, kKept, rxe_stops, small_receive),
        uc("uc_no_receive", kUnackedNoReceive, kKept, kKept,
           [](Stage& stage) { stage.no_receives(); }),
        uc("uc_packet_missing", kUnackedMessageCut, {kDone, "-; RTS; -", kFirstPacket | kFollowing},
           {kDone, "-; RTS; -", kFirstPacket | kFollowing},
           [](Stage& stage) {
               stage.work.segments = {stage.here().range(kMessageAt, 3000)};
               stage.message.length = 3000;
               stage.drop(2);
           }),
        uc("uc_write_with_an_unknown_key", kUnackedWriteRefused, kKept, kKept,
           [](Stage& stage) { stage.become_write().wr.wr.rdma.rkey = kNoKey; }),
        right,
        uc("uc_invalidation_refused", kUnackedInvalidateRefused,
           {kDone, receive_failed("MW_BIND"), kMessage},
           never("Soft-RoCE sends no SEND_WITH_INV over UC"),
           [](Stage& stage) {
               stage.work.wr.opcode = IBV_WR_SEND_WITH_INV;
               stage.work.key(stage.there().mr->rkey);
           }),
        uc("uc_peer_in_another_partition", kUnackedPkeyMismatch, {kDone, "-; RTS; PKEY_CHANGE"},
           never("Ethernet has one partition"),
           [](Stage&) {
               const std::uint16_t pkey = 0x8001;
               EXPECT_EQ(simverbs_port_set_pkeys("h1", 1, &pkey, 1), 0);
           }),
        uc("uc_peer_in_reset", kUnackedPeerNotReady, {kDone, "-; RESET; -"}, {kDone, "-; RESET; -"},
           [](Stage& stage) {
               stage.no_receives();
               EXPECT_EQ(stage.there().to_state(IBV_QPS_RESET), 0);
           }),
    };
}

std::vector<FaultCase> of_packets() {
    using enum FaultCause;
    const Outcome rxe_stops{kDone, receive_failed("LOC_QP_OP")};
    const Outcome stops{kDone, receive_failed("LOC_PROT")};
    const Outcome lost{kDone, kUntouched};
    const auto ud = [](std::string name, FaultCause cause, const Outcome& outcome,
                       const Outcome& of_rxe, void (*arrange)(Stage&)) {
        return unheard(std::move(name), cause, Service::kUd, outcome, of_rxe, arrange);
    };
    const auto raw = [](std::string name, FaultCause cause, const Outcome& outcome,
                        void (*arrange)(Stage&)) {
        return unheard(std::move(name), cause, Service::kRawPacket, outcome, never(kNoRaw),
                       arrange);
    };
    // The receive is used up, the queue pair stays; Soft-RoCE makes no difference of shared ones.
    FaultCase shared = ud("ud_shared_receive_too_small", kDatagramAboveSrqReceive,
                          {kDone, "1 REM_ABORT, 2 OK; RTS; -", kFollowingInSecond},
                          {kDone, "1 LOC_QP_OP; ERR; -"}, small_receive);
    shared.options = [](Connection& with) { with.shared_receives = 8; };
    return {
        ud("ud_receive_with_an_unknown_key", kUnackedReceiveBad, stops, rxe_stops,
           unknown_receive_key),
        ud("ud_receive_too_small", kUnackedReceiveTooSmall, kKeptForTheNext, rxe_stops,
           small_receive),
        shared,
        ud("ud_no_receive", kUnackedNoReceive, lost, lost,
           [](Stage& stage) { stage.no_receives(); }),
        ud("ud_wrong_qkey", kWrongQkey, kKeptForTheNext, kKeptForTheNext,
           [](Stage& stage) { stage.qkey_of_10 = 0x22222222; }),
        ud("ud_peer_in_another_partition", kUnackedPkeyMismatch, {kDone, "-; RTS; PKEY_CHANGE"},
           never("Ethernet has one partition"),
           [](Stage&) {
               const std::uint16_t pkey = 0x8001;
               EXPECT_EQ(simverbs_port_set_pkeys("h1", 1, &pkey, 1), 0);
           }),
        ud("ud_peer_in_reset", kUnackedPeerNotReady, {kDone, "-; RESET; -"}, {kDone, "-; RESET; -"},
           [](Stage& stage) {
               stage.no_receives();
               EXPECT_EQ(stage.there().to_state(IBV_QPS_RESET), 0);
           }),
        raw("raw_receive_with_an_unknown_key", kUnackedReceiveBad, stops, unknown_receive_key),
        raw("raw_receive_too_small", kUnackedReceiveTooSmall, kKeptForTheNext, small_receive),
        raw("raw_no_receive", kUnackedNoReceive, lost, [](Stage& stage) { stage.no_receives(); }),
    };
}

}  // namespace

std::vector<FaultCase> responder_cases() {
    std::vector<FaultCase> all = invalid_requests();
    for (const auto& part : {access_errors(), bad_receives()}) {
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

std::vector<FaultCase> unacknowledged_cases() {
    std::vector<FaultCase> all = of_connections();
    const std::vector<FaultCase> packets = of_packets();
    all.insert(all.end(), packets.begin(), packets.end());
    return all;
}

}  // namespace conformance

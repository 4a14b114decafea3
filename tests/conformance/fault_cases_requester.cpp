// Causes that the requester finds itself, or hears nothing of.
#include <sys/mman.h>

#include "tests/conformance/fault_stage.hpp"

namespace conformance {
namespace {

constexpr std::uint32_t kNoKey = 0xBAD;
constexpr const char* kIsSent = "1 OK; RTS; -";
constexpr const char* kFollowed = "1 OK; RTS; -";  // request 12 takes receive 1
constexpr const char* kBoth = "1 OK, 2 OK; RTS; -";
constexpr unsigned kLocal = IBV_ACCESS_LOCAL_WRITE;
const std::string kNoXrc = "Soft-RoCE has no XRC";
const std::string kNoRaw = "Soft-RoCE has no raw packets";

// Longer than a message may be; `b` has room for it where it will come that far.
void become_too_long(Stage& stage) {
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(stage.here().context, 1, &port), 0);
    const std::size_t bytes = std::size_t{port.max_msg_sz} + 1;
    const auto map = [&stage, bytes](End& end) {
        void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        EXPECT_NE(pages, MAP_FAILED);
        ibv_mr* mr = ibv_reg_mr(end.pd, pages, bytes, verbs_test::kAllAccess);
        EXPECT_NE(mr, nullptr);
        stage.at_the_end([mr, pages, bytes] {
            EXPECT_EQ(ibv_dereg_mr(mr), 0);
            munmap(pages, bytes);
        });
        return mr;
    };
    ibv_mr* from = map(stage.here());
    ibv_mr* to = map(stage.there());
    const auto start = reinterpret_cast<std::uint64_t>(from->addr);
    stage.become(IBV_WR_RDMA_WRITE)
        .from({start, port.max_msg_sz, from->lkey})
        .from({start + port.max_msg_sz, 1, from->lkey})
        .to(reinterpret_cast<std::uint64_t>(to->addr), to->rkey);
}

void become_longer_than_a_packet(Stage& stage) {
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(stage.here().context, 1, &port), 0);
    const auto bytes = 128U << static_cast<unsigned>(port.active_mtu);
    stage.become(IBV_WR_SEND).from(stage.here().range(kMessageAt, bytes + 1));
}

ibv_ah* address_of_peer(Stage& stage, ibv_pd* pd) {
    ibv_ah_attr to{};
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(stage.there().context, 1, &port), 0);
    to.port_num = 1;
    to.dlid = port.lid;
    if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        to.is_global = 1;
        to.grh.sgid_index = verbs_test::ipv4_gid_index(stage.there().context);
        EXPECT_EQ(ibv_query_gid(stage.there().context, 1, to.grh.sgid_index, &to.grh.dgid), 0);
    }
    ibv_ah* ah = ibv_create_ah(pd, &to);
    EXPECT_NE(ah, nullptr);
    return ah;
}

void unknown_key(Stage& stage) {
    stage.work.segments[0].lkey = kNoKey;
}
void past_the_end(Stage& stage) {
    stage.work.segments[0] = stage.here().range(End::kBytes - 8, 9);
}

std::vector<FaultCase> good_and_flushed() {
    const Outcome good{kDone, kIsSent, kMessage | kFollowing};
    return {
        {"success", FaultCause::kSuccess, Service::kRc, good, good, good},
        {"success_of_xrc", FaultCause::kSuccess, Service::kXrcIni, good, good, never(kNoXrc)},
        {"success_of_uc", FaultCause::kSuccess, Service::kUc, good, good, good},
        {"success_of_ud",
         FaultCause::kSuccess,
         Service::kUd,
         {kDone, kBoth, kMessage | kFollowingInSecond},
         {kDone, kBoth, kMessage | kFollowingInSecond},
         {kDone, kBoth, kMessage | kFollowingInSecond}},
        {"success_of_raw",
         FaultCause::kSuccess,
         Service::kRawPacket,
         {kDone, kBoth, kMessage | kFollowingInSecond},
         {kDone, kBoth, kMessage | kFollowingInSecond},
         never(kNoRaw)},
        {.name = "flushed",
         .cause = FaultCause::kFlushed,
         .service = Service::kRc,
         .spec = {failed("FLUSH"), kUntouched},
         .connectx6 = {failed("FLUSH"), kUntouched},
         .rxe = {failed("FLUSH"), kUntouched},
         .then = [](Stage& stage) { EXPECT_EQ(stage.here().to_state(IBV_QPS_ERR), 0); }},
    };
}

std::vector<FaultCase> lengths() {
    return {
        {.name = "message_too_long",
         .cause = FaultCause::kMessageTooLong,
         .service = Service::kRc,
         .spec = {failed("LOC_LEN"), kUntouched},
         .connectx6 = {failed("LOC_LEN"), kUntouched},
         .rxe = {kDone, kUntouched, kFollowing},  // looks at no length
         .arrange = become_too_long},
        {.name = "datagram_above_the_mtu",
         .cause = FaultCause::kDatagramAboveMtu,
         .service = Service::kUd,
         .spec = {packet_queue_failed("LOC_LEN"), kUntouched},
         .connectx6 = {packet_queue_failed("LOC_LEN"), kUntouched},
         .rxe = {kDone, kFollowed, kFollowingInFirst},  // leaves, and never arrives
         .arrange = become_longer_than_a_packet},
        {.name = "atomic_of_four_bytes",
         .cause = FaultCause::kAtomicNotEightBytes,
         .service = Service::kRc,
         .spec = {failed("LOC_LEN"), kUntouched},
         .connectx6 = {failed("LOC_LEN"), kUntouched},
         .rxe = {kRefused, kUntouched, kFollowing},
         .arrange = [](Stage& stage) { stage.become_fetch_add(4); }},
        {.name = "atomic_of_sixteen_bytes",
         .cause = FaultCause::kAtomicNotEightBytes,
         .service = Service::kRc,
         .spec = {failed("LOC_LEN"), kUntouched},
         .connectx6 = {kDone, kUntouched, kMessage | kFollowing},
         .rxe = {kDone, kUntouched, kMessage | kFollowing},
         .arrange =
             [](Stage& stage) {
                 stage.become_fetch_add(16);
                 stage.message.length = 8;
             }},
    };
}

std::vector<FaultCase> operations() {  // NOLINT(readability-function-size): a list
    return {
        {.name = "address_of_another_pd",
         .cause = FaultCause::kAddressOfOtherPd,
         .service = Service::kUd,
         .spec = {packet_queue_failed("LOC_QP_OP"), kUntouched},
         .connectx6 = {kDone, kBoth, kMessage | kFollowingInSecond},  // does not look
         .rxe = {packet_failed("LOC_QP_OP"), kUntouched},
         .arrange =
             [](Stage& stage) {
                 ibv_ah* ah = address_of_peer(stage, stage.other_pd(stage.here()));
                 stage.at_the_end([ah] { EXPECT_EQ(ibv_destroy_ah(ah), 0); });
                 stage.address_of_10 = ah;
             }},
        {.name = "segmentation_on_rc",
         .cause = FaultCause::kOpcodeNotForService,
         .service = Service::kRc,
         .spec = {failed("LOC_QP_OP"), kUntouched},
         .connectx6 = {failed("LOC_QP_OP"), kUntouched},
         .rxe = {failed("LOC_QP_OP"), kUntouched},
         .arrange = [](Stage& stage) { stage.work.wr.opcode = IBV_WR_TSO; }},
        {.name = "read_on_uc",
         .cause = FaultCause::kOpcodeNotForService,
         .service = Service::kUc,
         .spec = {queue_failed("LOC_QP_OP"), kUntouched},
         .connectx6 = {queue_failed("LOC_QP_OP"), kUntouched},
         .rxe = {failed("LOC_QP_OP"), kUntouched},
         .arrange = [](Stage& stage) { stage.become_read(); }},
        {.name = "initiator_depth_zero",
         .cause = FaultCause::kInitiatorDepthZero,
         .service = Service::kRc,
         .spec = {failed("LOC_QP_OP"), kUntouched},
         .connectx6 = {failed("LOC_QP_OP"), kUntouched},
         .rxe = {"-; -; RTS; -", kUntouched},  // never completes, nor does what is behind it
         .options = [](Connection& with) { with.reads = 0; },
         .arrange = [](Stage& stage) { stage.become_read(); }},
        {.name = "address_that_was_destroyed",
         .cause = FaultCause::kMalformedSend,
         .service = Service::kUd,
         .spec = {packet_queue_failed("LOC_QP_OP"), kUntouched},
         .connectx6 = {packet_queue_failed("LOC_QP_OP"), kUntouched},
         .rxe = {packet_failed("LOC_QP_OP"), kUntouched},
         .arrange =
             [](Stage& stage) {
                 ibv_ah* ah = address_of_peer(stage, stage.here().pd);
                 static ibv_ah copy;
                 copy = *ah;
                 EXPECT_EQ(ibv_destroy_ah(ah), 0);
                 stage.address_of_10 = &copy;
             }},
        {.name = "bind_without_the_right",
         .cause = FaultCause::kBindRefused,
         .service = Service::kRc,
         .spec = {failed("MW_BIND"), kUntouched},
         .connectx6 = {failed("MW_BIND"), kUntouched},
         .rxe = {failed("MW_BIND"), kUntouched},
         .arrange =
             [](Stage& stage) {
                 End& here = stage.here();
                 stage.become(IBV_WR_BIND_MW)
                     .bind(stage.window(here, IBV_MW_TYPE_2),
                           {here.mr, here.address(0), 4096, IBV_ACCESS_REMOTE_WRITE});
             }},
        {.name = "invalidate_a_region",
         .cause = FaultCause::kLocalInvalidateRefused,
         .service = Service::kRc,
         .spec = {failed("MW_BIND"), kUntouched},
         .connectx6 = {failed("MW_BIND"), kUntouched},
         .rxe = {failed("LOC_QP_OP"), kUntouched},
         .arrange =
             [](Stage& stage) { stage.become(IBV_WR_LOCAL_INV).key(stage.here().mr->rkey); }},
        {.name = "invalidate_a_type_1_window",
         .cause = FaultCause::kLocalInvalidateOfType1,
         .service = Service::kRc,
         .spec = {failed("LOC_QP_OP"), kUntouched},
         .connectx6 = {failed("LOC_QP_OP"), kUntouched},
         .rxe = {failed("LOC_QP_OP"), kUntouched},
         .arrange =
             [](Stage& stage) {
                 End& here = stage.here();
                 ibv_mr* mr = stage.region(here, verbs_test::kAllAccess | IBV_ACCESS_MW_BIND);
                 ibv_mw* mw = stage.window(here, IBV_MW_TYPE_1);
                 ibv_mw_bind bind{};
                 bind.send_flags = IBV_SEND_SIGNALED;
                 bind.bind_info = {mr, here.address(0), 4096, IBV_ACCESS_REMOTE_READ};
                 ASSERT_EQ(ibv_bind_mw(here.qp, mw, &bind), 0);
                 EXPECT_EQ(here.wait().status, IBV_WC_SUCCESS);
                 stage.become(IBV_WR_LOCAL_INV).key(mw->rkey);
             }},
    };
}

std::vector<FaultCase> gathering() {  // NOLINT(readability-function-size): a list
    const auto rc = [](std::string name, FaultCause cause, void (*arrange)(Stage&),
                       const std::string& status, const std::string& of_rxe,
                       unsigned landed = kNothing) {
        return FaultCase{.name = std::move(name),
                         .cause = cause,
                         .service = Service::kRc,
                         .spec = {failed(status), kUntouched, landed},
                         .connectx6 = {failed(status), kUntouched, landed},
                         .rxe = {failed(of_rxe), kUntouched, landed},
                         .arrange = arrange};
    };
    return {
        rc("unknown_lkey", FaultCause::kGatherKey, unknown_key, "LOC_PROT", "LOC_QP_OP"),
        rc(
            "deregistered_lkey", FaultCause::kGatherKey,
            [](Stage& stage) {
                ibv_mr* mr = ibv_reg_mr(stage.here().pd, stage.here().at(), 4096, kLocal);
                stage.work.segments[0].lkey = mr->lkey;
                EXPECT_EQ(ibv_dereg_mr(mr), 0);
            },
            "LOC_PROT", "LOC_QP_OP"),
        rc(
            "lkey_of_another_pd", FaultCause::kGatherKey,
            [](Stage& stage) {
                End& here = stage.here();
                stage.work.segments[0].lkey =
                    stage.region(here, kLocal, stage.other_pd(here))->lkey;
            },
            "LOC_PROT", "LOC_QP_OP"),
        rc("gather_past_the_end", FaultCause::kGatherRange, past_the_end, "LOC_PROT", "LOC_PROT"),
        // The key is looked at when the response lands: what follows is on its way by then.
        rc(
            "landing_with_an_unknown_lkey", FaultCause::kLandingKey,
            [](Stage& stage) { stage.become_read().segments[0].lkey = kNoKey; }, "LOC_PROT",
            "LOC_PROT", kFollowing),
        rc(
            "landing_past_the_end", FaultCause::kLandingRange,
            [](Stage& stage) { past_the_end((stage.become_read(), stage)); }, "LOC_PROT",
            "LOC_PROT", kFollowing),
        rc(
            "landing_without_the_right", FaultCause::kLandingRight,
            [](Stage& stage) {
                stage.become_read().segments[0].lkey = stage.region(stage.here(), 0)->lkey;
            },
            "LOC_PROT", "LOC_PROT", kFollowing),
        {.name = "unknown_lkey_of_uc",
         .cause = FaultCause::kGatherKey,
         .service = Service::kUc,
         .spec = {queue_failed("LOC_PROT"), kUntouched},
         .connectx6 = {queue_failed("LOC_PROT"), kUntouched},
         .rxe = {failed("LOC_QP_OP"), kUntouched},
         .arrange = unknown_key},
        {.name = "unknown_lkey_of_ud",
         .cause = FaultCause::kGatherKey,
         .service = Service::kUd,
         .spec = {packet_queue_failed("LOC_PROT"), kUntouched},
         .connectx6 = {packet_queue_failed("LOC_PROT"), kUntouched},
         .rxe = {packet_failed("LOC_QP_OP"), kUntouched},
         .arrange = unknown_key},
        {.name = "unknown_lkey_of_xrc",
         .cause = FaultCause::kGatherKey,
         .service = Service::kXrcIni,
         .spec = {"10 LOC_PROT, 11 FLUSH, 12 FLUSH; -; ERR; -", kUntouched},
         .connectx6 = {"10 LOC_PROT, 11 FLUSH, 12 FLUSH; -; ERR; -", kUntouched},
         .rxe = never(kNoXrc),
         .arrange = unknown_key},
        {.name = "unknown_lkey_of_raw",
         .cause = FaultCause::kGatherKey,
         .service = Service::kRawPacket,
         .spec = {packet_queue_failed("LOC_PROT"), kUntouched},
         .connectx6 = {packet_queue_failed("LOC_PROT"), kUntouched},
         .rxe = never(kNoRaw),
         .arrange = unknown_key},
    };
}

std::vector<FaultCase> responses() {
    return {
        {.name = "read_from_a_peer_of_another_mtu",
         .cause = FaultCause::kReadLengthMismatch,
         .service = Service::kRc,
         .spec = {failed("LOC_LEN"), kUntouched},
         .connectx6 = {failed("LOC_LEN"), kUntouched},
         .rxe = {failed("LOC_LEN"), kUntouched},
         .arrange =
             [](Stage& stage) {
                 stage.become_read(2048);
                 stage.reconnect_peer({.mtu = IBV_MTU_512});
             }},
        {.name = "response_of_another_opcode",
         .cause = FaultCause::kResponseMismatch,
         .service = Service::kRc,
         .spec = {failed("BAD_RESP"), kIsSent, kMessage | kFollowing},
         .connectx6 = {failed("BAD_RESP"), kIsSent, kMessage | kFollowing},
         .rxe = {failed("FATAL"), kIsSent, kMessage | kFollowing},
         .arrange =
             [](Stage&) { EXPECT_EQ(simverbs_rewrite_nth("h1-s0", "h1", 1, 0x10, nullptr), 0); }},
    };
}

}  // namespace

std::vector<FaultCase> requester_cases() {
    std::vector<FaultCase> all = good_and_flushed();
    for (const auto& part : {lengths(), operations(), gathering(), responses()}) {
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

std::vector<FaultCase> silence_cases() {
    const auto gives_up = [](std::string name, FaultCause cause, void (*arrange)(Stage&),
                             void (*options)(Connection&) = nullptr,
                             const std::string& peer = kUntouched) {
        return FaultCase{.name = std::move(name),
                         .cause = cause,
                         .service = Service::kRc,
                         .spec = {failed("RETRY_EXC"), peer},
                         .connectx6 = {failed("RETRY_EXC"), peer},
                         .rxe = {failed("RETRY_EXC"), peer},
                         .options = options,
                         .arrange = arrange};
    };
    FaultCase partition = gives_up(
        "peer_in_another_partition", FaultCause::kPkeyMismatch,
        [](Stage&) {
            const std::uint16_t pkey = 0x8001;
            EXPECT_EQ(simverbs_port_set_pkeys("h1", 1, &pkey, 1), 0);
        },
        nullptr, "-; RTS; PKEY_CHANGE");
    partition.rxe = never("Ethernet has one partition");
    FaultCase waits = gives_up(
        "no_receive", FaultCause::kRnrRetriesUsedUp, [](Stage& stage) { stage.no_receives(); },
        [](Connection& with) { with.rnr_retries = 2; });
    for (Outcome* outcome : {&waits.spec, &waits.connectx6, &waits.rxe}) {
        outcome->a = failed("RNR_RETRY_EXC");
    }
    return {
        gives_up("packets_lost", FaultCause::kPacketsLost,
                 [](Stage& stage) {
                     stage.become_write();
                     EXPECT_EQ(simverbs_drop_all("h0-s0", "h0", nullptr), 0);
                 }),
        gives_up(
            "peer_in_reset", FaultCause::kPeerNotReady,
            [](Stage& stage) {
                stage.become_write();
                stage.no_receives();
                EXPECT_EQ(stage.there().to_state(IBV_QPS_RESET), 0);
            },
            nullptr, "-; RESET; -"),
        gives_up("peer_destroyed", FaultCause::kPeerGone,
                 [](Stage& stage) {
                     stage.become_write();
                     ibv_qp* gone = make_qp(stage.there(), Service::kRc);
                     const std::uint32_t number = gone->qp_num;
                     EXPECT_EQ(ibv_destroy_qp(gone), 0);
                     stage.reconnect_to(number);
                 }),
        partition,
        gives_up(
            "packet_missing_without_retries", FaultCause::kSequenceRetriesUsedUp,
            [](Stage& stage) {
                stage.become_write();
                stage.drop(1);
            },
            [](Connection& with) { with.retries = 0; }),
        waits,
    };
}

}  // namespace conformance

#include "tests/conformance/fault_stage.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

namespace conformance {
namespace {

constexpr std::uint64_t kFirstReceiveHere = 21;
constexpr std::uint32_t kFollowingBytes = 8;
constexpr std::uint32_t kPacketBytes = 1024;
constexpr std::uint32_t kGrhBytes = 40;
constexpr std::int64_t kTenMinutes = 600'000;

std::string word_of(ibv_wc_status status) {
    static const std::map<ibv_wc_status, std::string> kWords = {
        {IBV_WC_SUCCESS, "OK"},
        {IBV_WC_LOC_LEN_ERR, "LOC_LEN"},
        {IBV_WC_LOC_QP_OP_ERR, "LOC_QP_OP"},
        {IBV_WC_LOC_PROT_ERR, "LOC_PROT"},
        {IBV_WC_WR_FLUSH_ERR, "FLUSH"},
        {IBV_WC_MW_BIND_ERR, "MW_BIND"},
        {IBV_WC_BAD_RESP_ERR, "BAD_RESP"},
        {IBV_WC_LOC_ACCESS_ERR, "LOC_ACCESS"},
        {IBV_WC_REM_INV_REQ_ERR, "REM_INV_REQ"},
        {IBV_WC_REM_ACCESS_ERR, "REM_ACCESS"},
        {IBV_WC_REM_OP_ERR, "REM_OP"},
        {IBV_WC_RETRY_EXC_ERR, "RETRY_EXC"},
        {IBV_WC_RNR_RETRY_EXC_ERR, "RNR_RETRY_EXC"},
        {IBV_WC_REM_INV_RD_REQ_ERR, "REM_INV_RD_REQ"},
        {IBV_WC_REM_ABORT_ERR, "REM_ABORT"},
        {IBV_WC_FATAL_ERR, "FATAL"},
        {IBV_WC_GENERAL_ERR, "GENERAL"},
        {IBV_WC_RESP_TIMEOUT_ERR, "RESP_TIMEOUT"},
    };
    const auto found = kWords.find(status);
    return found != kWords.end() ? found->second : ibv_wc_status_str(status);
}

std::string word_of(ibv_event_type event) {
    static const std::map<ibv_event_type, std::string> kWords = {
        {IBV_EVENT_CQ_ERR, "CQ_ERR"},
        {IBV_EVENT_QP_FATAL, "QP_FATAL"},
        {IBV_EVENT_QP_REQ_ERR, "QP_REQ_ERR"},
        {IBV_EVENT_QP_ACCESS_ERR, "QP_ACCESS_ERR"},
        {IBV_EVENT_PKEY_CHANGE, "PKEY_CHANGE"},
        {IBV_EVENT_SRQ_ERR, "SRQ_ERR"},
        {IBV_EVENT_QP_LAST_WQE_REACHED, "LAST_WQE"},
        {IBV_EVENT_DEVICE_FATAL, "DEVICE_FATAL"},
    };
    const auto found = kWords.find(event);
    return found != kWords.end() ? found->second : ibv_event_type_str(event);
}

std::string word_of(ibv_qp_state state) {
    static constexpr const char* kWords[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    return kWords[state];
}

std::vector<std::uint8_t> pattern(std::size_t step, std::size_t first) {
    std::vector<std::uint8_t> bytes(End::kBytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::uint8_t>(i * step + first);
    }
    return bytes;
}

void add(std::string& list, const std::string& word) {
    list += (list.empty() ? "" : ", ") + word;
}
std::string or_none(const std::string& list) {
    return list.empty() ? "-" : list;
}

// As published for ConnectX-5 and 6, 0 where nobody has.
std::uint32_t connectx6_vendor_error(ibv_wc_status status, FaultCause cause) {
    switch (status) {
        case IBV_WC_LOC_PROT_ERR:
            switch (cause) {
                case FaultCause::kGatherRange:
                case FaultCause::kLandingRange:
                case FaultCause::kReceiveRange:
                    return 0x53;
                case FaultCause::kLandingRight:
                case FaultCause::kReceiveRight:
                    return 0x33;
                default:
                    return 0x52;
            }
        case IBV_WC_WR_FLUSH_ERR:
            return 0xF5;
        case IBV_WC_REM_INV_REQ_ERR:
            return 0x8A;
        case IBV_WC_REM_ACCESS_ERR:
            return 0x88;
        case IBV_WC_RETRY_EXC_ERR:
            return 0x81;
        case IBV_WC_RNR_RETRY_EXC_ERR:
            return 0x87;
        default:
            return 0;
    }
}

// The number of the cause; of all that keeps an answer away a requester only knows that none came.
std::uint32_t spec_vendor_error(ibv_wc_status status, FaultCause cause) {
    if (status == IBV_WC_WR_FLUSH_ERR) {
        return 0x01;
    }
    if (status == IBV_WC_RETRY_EXC_ERR && cause != FaultCause::kSequenceRetriesUsedUp) {
        return 0x30;
    }
    return static_cast<std::uint32_t>(cause);
}

}  // namespace

// ---- arrangements

Work& Stage::become(unsigned opcode) {
    work = Work(opcode, 10);
    return work;
}

Work& Stage::become_write(std::uint32_t length) {
    message = {b.get(), kTargetAt, a.get(), kMessageAt, length};
    return become(IBV_WR_RDMA_WRITE)
        .from(a->range(kMessageAt, length))
        .to(b->address(kTargetAt), b->mr->rkey);
}

Work& Stage::become_read(std::uint32_t length) {
    message = {a.get(), kLandingAt, b.get(), kTargetAt, length};
    return become(IBV_WR_RDMA_READ)
        .from(a->range(kLandingAt, length))
        .to(b->address(kTargetAt), b->mr->rkey);
}

Work& Stage::become_fetch_add(std::uint32_t length) {
    message = {a.get(), kLandingAt, b.get(), kTargetAt, length};
    return become(IBV_WR_ATOMIC_FETCH_AND_ADD)
        .from(a->range(kLandingAt, length))
        .atomic(b->address(kTargetAt), b->mr->rkey, 0);
}

void Stage::reconnect_peer(const Connection& with) {
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    ibv_qp_attr attr = init_attr(with);
    ASSERT_EQ(ibv_modify_qp(b->qp, &attr, init_mask(with)), 0);
    attr = rtr_attr(*a, with);
    ASSERT_EQ(ibv_modify_qp(b->qp, &attr, rtr_mask(with)), 0);
    attr = rts_attr(with);
    ASSERT_EQ(ibv_modify_qp(b->qp, &attr, rts_mask(with)), 0);
}

void Stage::reconnect_to(std::uint32_t qpn) {
    const Connection with;
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    ibv_qp_attr attr = init_attr(with);
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, init_mask(with)), 0);
    attr = rtr_attr(*b, with);
    attr.dest_qp_num = qpn;
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, rtr_mask(with)), 0);
    attr = rts_attr(with);
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, rts_mask(with)), 0);
}

void Stage::drop(std::uint64_t nth) {
    ASSERT_EQ(simverbs_drop_nth("h0-s0", "h0", nth, nullptr), 0) << simverbs_last_error();
}

ibv_mr* Stage::region(End& end, unsigned access, ibv_pd* pd) {
    ibv_mr* mr =
        ibv_reg_mr(pd == nullptr ? end.pd : pd, end.at(), End::kBytes, static_cast<int>(access));
    EXPECT_NE(mr, nullptr);
    at_the_end([mr] { EXPECT_EQ(ibv_dereg_mr(mr), 0); });
    return mr;
}

ibv_pd* Stage::other_pd(End& end) {
    ibv_pd* pd = ibv_alloc_pd(end.context);
    EXPECT_NE(pd, nullptr);
    at_the_end([pd] { EXPECT_EQ(ibv_dealloc_pd(pd), 0); });
    return pd;
}

ibv_mw* Stage::window(End& end, ibv_mw_type type) {
    ibv_mw* mw = ibv_alloc_mw(end.pd, type);
    EXPECT_NE(mw, nullptr);
    at_the_end([mw] { EXPECT_EQ(ibv_dealloc_mw(mw), 0); });
    return mw;
}

// ---- the play

void Stage::TearDown() {
    for (auto what = cleanup_.rbegin(); what != cleanup_.rend(); ++what) {
        (*what)();
    }
    ConnectedAs::TearDown();
}

bool Stage::one_by_one() const {
    return service() == Service::kUd || service() == Service::kRawPacket;
}

void Stage::lay_out() {
    static const std::vector<std::uint8_t> kOfA = pattern(7, 1);
    static const std::vector<std::uint8_t> kOfB = pattern(5, 2);
    const std::size_t header = service() == Service::kRawPacket ? kFrameHeader : 0;
    std::copy(kOfA.begin() + static_cast<std::ptrdiff_t>(header), kOfA.end(), a->at(header));
    std::copy(kOfB.begin(), kOfB.end(), b->at());
    if (service() == Service::kRawPacket) {
        std::memcpy(a->at(kFollowingAt), a->at(0), kFrameHeader);  // both are frames to `b`
    }
    const std::size_t into = kInboxAt + (service() == Service::kUd ? kGrhBytes : 0);
    work.from(a->range(kMessageAt, kMessageBytes));
    message = {b.get(), into, a.get(), kMessageAt, kMessageBytes};
    receives = {{b->range(kInboxAt, kInboxBytes)}, {b->range(kInboxAt + kInboxBytes, kInboxBytes)}};
}

void Stage::post_receives() {
    for (std::size_t i = 0; i < receives.size(); ++i) {
        ASSERT_EQ(b->receive(i + 1, receives[i]), 0);
    }
    if (has_receives()) {
        ASSERT_EQ(a->receive(kFirstReceiveHere, {a->range(kLandingAt + 8192, 64)}), 0);
    }
}

void Stage::post_all(std::string& said) {
    address(work);
    if (service() == Service::kUd) {
        work.wr.wr.ud.ah = address_of_10 != nullptr ? address_of_10 : a->ah;
        work.wr.wr.ud.remote_qkey = qkey_of_10;
    }
    if (const int error = post_as_it_is(work); error != 0) {
        said = error == EINVAL ? "EINVAL" : std::strerror(error);
    }
    for (std::uint64_t id = one_by_one() ? 12 : 11; id <= 12; ++id) {
        const std::size_t at = kFollowingAt + (one_by_one() ? 0 : (id - 11) * kFollowingBytes);
        Work behind(one_by_one() ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, id);
        behind.from(a->range(at, service() == Service::kRawPacket ? kFrameHeader + kFollowingBytes
                                                                  : kFollowingBytes));
        behind.to(b->address(kFollowingTargetAt + (id - 11) * kFollowingBytes), b->mr->rkey);
        ASSERT_EQ(post(id == 11 ? behind.unsignaled() : behind), 0);
    }
}

void Stage::look_at_vendor_error(const ibv_wc& wc) {
    if (wc.status == IBV_WC_SUCCESS) {
        return;
    }
    const std::uint32_t expected =
        personality_ == "spec"        ? spec_vendor_error(wc.status, row_->cause)
        : personality_ == "connectx6" ? connectx6_vendor_error(wc.status, row_->cause)
                                      : 0U;
    EXPECT_EQ(wc.vendor_err, expected) << "of " << wc.wr_id;
}

std::string Stage::describe(End& end, bool sends, std::string said) {
    std::string sent = std::move(said);
    std::string received;
    for (const ibv_wc& wc : end.drain()) {
        const bool is_receive = !sends || wc.wr_id >= kFirstReceiveHere;
        add(is_receive ? received : sent, std::to_string(wc.wr_id) + ' ' + word_of(wc.status));
        EXPECT_EQ(wc.qp_num, end.qp->qp_num);
        look_at_vendor_error(wc);
    }
    std::string events;
    for (const ibv_event_type event : end.events()) {
        add(events, word_of(event));
    }
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    const int error = ibv_query_qp(end.qp, &attr, IBV_QP_STATE, &init);
    const std::string state = error == 0 ? word_of(attr.qp_state) : std::strerror(error);
    return (sends ? or_none(sent) + "; " : "") + or_none(received) + "; " + state + "; " +
           or_none(events);
}

void Stage::expect_memory(unsigned landed) {
    const auto memory_of = [this](const End* end) -> std::vector<std::uint8_t>& {
        return end == a.get() ? memory_of_a_ : memory_of_b_;
    };
    const std::vector<std::uint8_t> was_a = memory_of_a_;
    const std::vector<std::uint8_t> was_b = memory_of_b_;
    const auto put = [&](const Bytes& bytes) {
        const auto& from = bytes.from == a.get() ? was_a : was_b;
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(bytes.from_offset), bytes.length,
                    memory_of(bytes.to).begin() + static_cast<std::ptrdiff_t>(bytes.to_offset));
    };
    if ((landed & (kMessage | kFirstPacket)) != 0) {
        Bytes part = message;
        part.length = (landed & kMessage) != 0 ? part.length : std::min(part.length, kPacketBytes);
        put(part);
    }
    if ((landed & kFollowing) != 0) {
        put({b.get(), kFollowingTargetAt, a.get(), kFollowingAt, 2 * kFollowingBytes});
    }
    const bool is_datagram = service() == Service::kUd;
    for (const unsigned second : {0U, 1U}) {
        if ((landed & (second == 0 ? kFollowingInFirst : kFollowingInSecond)) != 0) {
            const std::size_t inbox = kInboxAt + std::size_t{second} * kInboxBytes;
            put({b.get(), inbox + (is_datagram ? kGrhBytes : 0), a.get(), kFollowingAt,
                 kFollowingBytes + (service() == Service::kRawPacket ? kFrameHeader : 0)});
            if (service() == Service::kRawPacket) {  // a short frame is padded with zeros
                const auto frame = memory_of_b_.begin() + static_cast<std::ptrdiff_t>(inbox);
                std::fill(frame + kFrameHeader + kFollowingBytes, frame + kShortestFrame, 0);
            }
        }
        if (is_datagram) {  // the global header is datagram_test's
            const std::size_t inbox = kInboxAt + std::size_t{second} * kInboxBytes;
            std::copy_n(b->at(inbox), kGrhBytes,
                        memory_of_b_.begin() + static_cast<std::ptrdiff_t>(inbox));
        }
    }
    for (End* end : {a.get(), b.get()}) {
        const std::vector<std::uint8_t>& expected = memory_of(end);
        if (std::memcmp(end->at(), expected.data(), End::kBytes) == 0) {
            continue;
        }
        const auto [is, should] = std::mismatch(end->at(), end->at(End::kBytes), expected.begin());
        ADD_FAILURE() << "at " << (end == a.get() ? 'a' : 'b') << " byte " << is - end->at()
                      << " is " << int{*is} << " instead of " << int{*should};
    }
}

void Stage::run(const FaultCase& row, const char* personality) {
    row_ = &row;
    personality_ = personality;
    const Outcome& expected = personality_ == "spec"        ? row.spec
                              : personality_ == "connectx6" ? row.connectx6
                                                            : row.rxe;
    if (expected.a.empty()) {
        GTEST_SKIP() << expected.b;
    }
    Connection with;
    if (row.options != nullptr) {
        row.options(with);
    }
    const bool ethernet = personality_ == "rxe" || row.service == Service::kRawPacket;
    connect_as({personality, row.service, ethernet}, with);
    lay_out();
    if (row.arrange != nullptr) {
        row.arrange(*this);
    }
    post_receives();
    if (row.then != nullptr) {
        row.then(*this);
    }
    ASSERT_FALSE(HasFatalFailure());
    memory_of_a_.assign(a->at(), a->at(End::kBytes));
    memory_of_b_.assign(b->at(), b->at(End::kBytes));
    std::string said;
    post_all(said);
    pass(kTenMinutes);
    EXPECT_EQ(describe(*a, true, said), expected.a);
    EXPECT_EQ(describe(*b, false, {}), expected.b);
    expect_memory(expected.landed);
    if (also) {
        also();
    }
}

}  // namespace conformance

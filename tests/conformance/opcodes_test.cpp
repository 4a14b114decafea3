// Every (personality, service, opcode), by ibv_post_send() and by ibv_wr_*(): what the service has
// works, with all that lands at either side; what it lacks is refused as the
// manuals and the devices have it. The oracle is that of tests/model.
#include "simverbs/model/opcodes.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <arpa/inet.h>

#include "tests/conformance/every_service.hpp"
#include "tests/model/opcode_oracle.hpp"

namespace conformance {
namespace {

using simverbs::WrOpcode;

constexpr std::uint32_t kBytes = 64;
constexpr std::size_t kTarget = 4096;
constexpr std::size_t kInbox = 65536;
constexpr std::size_t kWindow = 131072;
constexpr std::uint32_t kImmediate = 0xCAFE0123;
constexpr std::uint64_t kId = 10;
constexpr unsigned kFlushGlobalRight = 1U << 8;  // newer than Debian 12's header
constexpr unsigned kBindable = verbs_test::kAllAccess | IBV_ACCESS_MW_BIND;

struct Case {
    Subject subject;
    unsigned opcode;
};

std::string name_of_opcode(unsigned opcode) {
    const simverbs::WrOpcodeProperties* known = simverbs::find_wr_opcode(opcode);
    return known != nullptr ? std::string(known->name) : std::to_string(opcode);
}

void PrintTo(const Case& each, std::ostream* out) {  // NOLINT(readability-identifier-naming)
    *out << name_of(each.subject) << ' ' << name_of_opcode(each.opcode);
}

std::vector<Case> every_case() {
    std::vector<Case> all;
    for (const Subject& subject : every_subject()) {
        for (const simverbs::WrOpcodeProperties& row : simverbs::kWrOpcodes) {
            all.push_back({subject, static_cast<unsigned>(row.opcode)});
        }
        for (const unsigned unknown : {12U, 13U, 16U, 99U}) {
            all.push_back({subject, unknown});
        }
    }
    return all;
}

enum class Answer {
    kWorks,
    kInvalid,      // EINVAL, nothing is queued
    kFull,         // ENOMEM: there is no queue
    kCompletes,    // LOC_QP_OP_ERR
    kUnsupported,  // EOPNOTSUPP, when the function is asked for
    kNoWindow,     // works, and finds nothing that it could invalidate
    kOfOtherTests,
};

class Opcodes : public ConnectedAs, public testing::WithParamInterface<Case> {
  protected:
    [[nodiscard]] unsigned opcode() const { return GetParam().opcode; }
    [[nodiscard]] bool as(const char* personality) const {
        return std::string_view(GetParam().subject.personality) == personality;
    }
    [[nodiscard]] bool is(Service wanted) const { return GetParam().subject.service == wanted; }
    // FLUSH and ATOMIC_WRITE are younger than the devices that the other personalities stand for.
    [[nodiscard]] bool is_unknown() const {
        const bool is_new = opcode() == kFlush || opcode() == IBV_WR_ATOMIC_WRITE;
        return simverbs::find_wr_opcode(opcode()) == nullptr || (is_new && !as("spec"));
    }
    [[nodiscard]] bool may_post() const {
        return simverbs::oracle::may_post(static_cast<WrOpcode>(opcode()),
                                          GetParam().subject.service);
    }
    [[nodiscard]] Answer to_post_send() const;
    [[nodiscard]] Answer to_function() const;

    void connect_for(std::uint64_t operations);
    Work good_work();
    void give_a_receive();
    void expect_works();
    void expect_completes_in_error();
    void expect_invalidation_is_refused();
    void expect(Answer answer, const Work& work);

    // The objects of the request, made by good_work().
    ibv_mr* region_ = nullptr;
    ibv_mw* window_ = nullptr;
    std::uint32_t window_key_ = 0;

  private:
    void make_window(End& end);
    void bind_at(End& end);
    ibv_wc_status write_into_window(End& from);
    void expect_window_is_open(bool open);
    void expect_landed();

  protected:
    void TearDown() override {
        if (window_ != nullptr) {
            EXPECT_EQ(ibv_dealloc_mw(window_), 0);
        }
        if (region_ != nullptr) {
            EXPECT_EQ(ibv_dereg_mr(region_), 0);
        }
        ConnectedAs::TearDown();
    }
};

Answer Opcodes::to_post_send() const {
    if (is(Service::kXrcTgt)) {
        return is_unknown() ? Answer::kInvalid : Answer::kFull;
    }
    if (is_unknown()) {
        return as("rxe") ? Answer::kCompletes : Answer::kInvalid;
    }
    if (opcode() == kFlush) {
        return Answer::kInvalid;  // no ibv_send_wr can say what to flush
    }
    if (opcode() == IBV_WR_TSO && may_post()) {
        return Answer::kOfOtherTests;
    }
    if (as("rxe") && is(Service::kUd) && opcode() == IBV_WR_BIND_MW) {
        return Answer::kInvalid;  // local/ud_bind_mw
    }
    const bool rc_only = opcode() == IBV_WR_SEND_WITH_INV || opcode() == IBV_WR_LOCAL_INV;
    if (as("rxe") && is(Service::kUc) && rc_only) {
        return Answer::kCompletes;  // local/uc_send_inv
    }
    if (is(Service::kXrcIni) && opcode() == IBV_WR_SEND_WITH_INV) {
        return Answer::kNoWindow;  // a type 2B window is bound by its QP, and a target cannot bind
    }
    return may_post() ? Answer::kWorks : Answer::kCompletes;
}

Answer Opcodes::to_function() const {
    if (opcode() == IBV_WR_TSO && may_post()) {
        return Answer::kOfOtherTests;
    }
    if (as("rxe") && is(Service::kUc) && opcode() == IBV_WR_LOCAL_INV) {
        return Answer::kUnsupported;  // ex/uc_qp_ex_wr_api
    }
    if (is_unknown() || !may_post()) {
        return Answer::kUnsupported;
    }
    return opcode() == kFlush ? Answer::kWorks : to_post_send();
}

void Opcodes::connect_for(std::uint64_t operations) {
    Connection with;
    if (opcode() == kFlush && as("spec")) {
        with.access |= kFlushGlobalRight;
    }
    connect_as(GetParam().subject, with, operations);
    std::fill_n(a->at(kFrameHeader), kBytes - kFrameHeader, std::uint8_t{0x5A});
    std::fill_n(b->at(kTarget), kBytes, std::uint8_t{0xB5});
    give_a_receive();
}

// For a SEND of kBytes, and the header of a datagram before it.
void Opcodes::give_a_receive() {
    if (!is(Service::kXrcTgt)) {
        ASSERT_EQ(b->receive(1, {b->range(kInbox, 256)}), 0);
    }
}

void Opcodes::make_window(End& end) {
    region_ = ibv_reg_mr(end.pd, end.at(kWindow), 4096, kBindable);
    ASSERT_NE(region_, nullptr);
    window_ = ibv_alloc_mw(end.pd, IBV_MW_TYPE_2);
    ASSERT_NE(window_, nullptr);
    window_key_ = ibv_inc_rkey(window_->rkey);
}

void Opcodes::bind_at(End& end) {
    Work bind(IBV_WR_BIND_MW, 99);
    bind.bind(window_, {region_, end.address(kWindow), 4096, IBV_ACCESS_REMOTE_WRITE});
    ibv_qp_ex* functions = ibv_qp_to_qp_ex(end.qp);
    ASSERT_EQ(functions != nullptr ? post_by_function(functions, bind) : post_to(end.qp, bind), 0);
    EXPECT_EQ(end.wait().status, IBV_WC_SUCCESS);
}

Work Opcodes::good_work() {
    Work work(opcode(), kId);
    switch (opcode()) {
        case IBV_WR_ATOMIC_CMP_AND_SWP:
            b->word(kTarget) = 7;
            work.from(a->range(kTarget, 8)).atomic(b->address(kTarget), b->mr->rkey, 7, 9);
            break;
        case IBV_WR_ATOMIC_FETCH_AND_ADD:
            b->word(kTarget) = 7;
            work.from(a->range(kTarget, 8)).atomic(b->address(kTarget), b->mr->rkey, 2);
            break;
        case IBV_WR_ATOMIC_WRITE:
            a->word(kTarget) = 9;
            work.from(a->range(kTarget, 8)).to(b->address(kTarget), b->mr->rkey);
            break;
        case IBV_WR_RDMA_READ:
            work.from(a->range(kTarget, kBytes)).to(b->address(kTarget), b->mr->rkey);
            break;
        case kFlush:
            if (!as("spec")) {
                work.to(b->address(kTarget), b->mr->rkey);
                break;
            }
            region_ = ibv_reg_mr(b->pd, b->at(kTarget), 4096,
                                 static_cast<int>(verbs_test::kAllAccess | kFlushGlobalRight));
            work.to(b->address(kTarget), region_->rkey);
            break;
        case IBV_WR_BIND_MW:
            make_window(*a);
            work.bind(window_, {region_, a->address(kWindow), 4096, IBV_ACCESS_REMOTE_WRITE});
            break;
        case IBV_WR_LOCAL_INV:
            make_window(*a);
            if (to_post_send() == Answer::kWorks) {
                bind_at(*a);
            }
            work.key(window_key_);
            break;
        case IBV_WR_SEND_WITH_INV:
            make_window(*b);
            if (is(Service::kRc) || is(Service::kUc)) {
                bind_at(*b);
            }
            work.from(a->range(0, kBytes)).key(window_key_);
            break;
        default:
            work.from(a->range(0, kBytes)).to(b->address(kTarget), b->mr->rkey);
            work.wr.imm_data = htonl(kImmediate);
            break;
    }
    return work;
}

ibv_wc_status Opcodes::write_into_window(End& from) {
    std::fill_n(from.at(0), 8, std::uint8_t{0x77});
    Work write(IBV_WR_RDMA_WRITE, 98);
    write.from(from.range(0, 8));
    write.to(reinterpret_cast<std::uint64_t>(region_->addr), window_key_);
    address(write);
    EXPECT_EQ(post_to(from.qp, write), 0);
    return from.wait().status;
}

// Seen by the peer of whoever has bound it. Only a queue pair with both halves can be asked.
void Opcodes::expect_window_is_open(bool open) {
    if (!is(Service::kRc) && !is(Service::kUc)) {
        return;
    }
    End& peer = region_->context == a->context ? *b : *a;
    const bool unacked = is(Service::kUc);
    EXPECT_EQ(write_into_window(peer), open || unacked ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
    pass(1);
    const auto* landed = static_cast<const std::uint8_t*>(region_->addr);
    EXPECT_EQ(*landed, open ? 0x77 : 0);
}

void Opcodes::expect_landed() {
    const std::size_t grh = is(Service::kUd) ? 40 : 0;
    switch (opcode()) {
        case IBV_WR_SEND:
        case IBV_WR_SEND_WITH_IMM:
        case IBV_WR_SEND_WITH_INV: {
            const ibv_wc wc = b->wait();
            EXPECT_EQ(wc.wr_id, 1U);
            EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
            EXPECT_EQ(wc.opcode, IBV_WC_RECV);
            EXPECT_EQ(wc.byte_len, kBytes + grh);
            EXPECT_EQ(std::memcmp(b->at(kInbox + grh), a->at(0), kBytes), 0);
            EXPECT_EQ(*b->at(kInbox + grh + kBytes), 0) << "beyond the message";
            EXPECT_EQ((wc.wc_flags & IBV_WC_WITH_IMM) != 0, opcode() == IBV_WR_SEND_WITH_IMM);
            EXPECT_EQ((wc.wc_flags & IBV_WC_WITH_INV) != 0, opcode() == IBV_WR_SEND_WITH_INV);
            if (opcode() == IBV_WR_SEND_WITH_IMM) {
                EXPECT_EQ(wc.imm_data, htonl(kImmediate));
            }
            if (opcode() == IBV_WR_SEND_WITH_INV) {
                EXPECT_EQ(wc.invalidated_rkey, window_key_);
                expect_window_is_open(false);
            }
            break;
        }
        case IBV_WR_RDMA_WRITE_WITH_IMM: {
            const ibv_wc wc = b->wait();
            EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
            EXPECT_EQ(wc.imm_data, htonl(kImmediate));
            EXPECT_EQ(wc.byte_len, kBytes);
            [[fallthrough]];
        }
        case IBV_WR_RDMA_WRITE:
            EXPECT_EQ(std::memcmp(b->at(kTarget), a->at(0), kBytes), 0);
            EXPECT_EQ(*b->at(kTarget + kBytes), 0) << "beyond the message";
            EXPECT_EQ(*b->at(kInbox), 0) << "the memory of a receive is not the target";
            break;
        case IBV_WR_RDMA_READ:
            EXPECT_EQ(std::memcmp(a->at(kTarget), b->at(kTarget), kBytes), 0);
            EXPECT_EQ(*a->at(kTarget + kBytes), 0) << "beyond the message";
            break;
        case IBV_WR_ATOMIC_CMP_AND_SWP:
        case IBV_WR_ATOMIC_FETCH_AND_ADD:
            EXPECT_EQ(a->word(kTarget), 7U) << "what was there";
            EXPECT_EQ(a->word(kTarget + 8), 0U);
            [[fallthrough]];
        case IBV_WR_ATOMIC_WRITE:
            EXPECT_EQ(b->word(kTarget), 9U);
            break;
        case IBV_WR_BIND_MW:
            expect_window_is_open(true);
            break;
        case IBV_WR_LOCAL_INV:
            expect_window_is_open(false);
            break;
        default:
            break;  // FLUSH changes nothing that one can see
    }
}

void Opcodes::expect_works() {
    const ibv_wc wc = a->wait();
    EXPECT_EQ(wc.wr_id, kId);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    const auto& row = simverbs::properties(static_cast<WrOpcode>(opcode()));
    EXPECT_EQ(static_cast<unsigned>(wc.opcode), static_cast<unsigned>(row.completion));
    EXPECT_EQ(a->state(), IBV_QPS_RTS);
    pass(1);  // what nobody acknowledges may still be on its way
    expect_landed();
}

// The request alone fails, what follows it is flushed; the peer notices nothing.
void Opcodes::expect_completes_in_error() {
    const ibv_wc wc = a->wait();
    EXPECT_EQ(wc.wr_id, kId);
    EXPECT_EQ(wc.status, IBV_WC_LOC_QP_OP_ERR) << ibv_wc_status_str(wc.status);
    const bool has_sqe = is(Service::kUc) || is(Service::kUd) || is(Service::kRawPacket);
    EXPECT_EQ(a->state(), has_sqe && !as("rxe") ? IBV_QPS_SQE : IBV_QPS_ERR);
    EXPECT_TRUE(a->events().empty());
    expect_silence();
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
    EXPECT_TRUE(b->events().empty());
    EXPECT_EQ(*b->at(kInbox), 0);
    EXPECT_EQ(*b->at(kTarget + 8), 0xB5);
}

// The data has landed before the key is looked at (class J): neither ACK nor NAK.
void Opcodes::expect_invalidation_is_refused() {
    EXPECT_EQ(b->wait().status, IBV_WC_MW_BIND_ERR);
    EXPECT_EQ(std::memcmp(b->at(kInbox), a->at(0), kBytes), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
}

void Opcodes::expect(Answer answer, const Work& work) {
    switch (answer) {
        case Answer::kWorks:
            ASSERT_EQ(post(work), 0);
            expect_works();
            break;
        case Answer::kNoWindow:
            ASSERT_EQ(post(work), 0);
            expect_invalidation_is_refused();
            break;
        case Answer::kCompletes:
            ASSERT_EQ(post(work), 0);
            expect_completes_in_error();
            break;
        default:
            EXPECT_EQ(post(work), EINVAL);
            expect_silence();
            EXPECT_EQ(a->state(), IBV_QPS_RTS);
            break;
    }
}

TEST_P(Opcodes, ByPostSend) {
    const Answer expected = to_post_send();
    if (expected == Answer::kOfOtherTests) {
        GTEST_SKIP() << "segmentation: tests/verbs/segmentation_test.cpp";
    }
    if (is(Service::kXrcTgt)) {
        ASSERT_EQ(simverbs_set_personality(GetParam().subject.personality), 0);
        End end(0, {});
        XrcDomain domain(end);
        ibv_qp* target = make_qp(end, Service::kXrcTgt, &domain);
        ASSERT_NE(target, nullptr);
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_INIT;
        attr.port_num = 1;
        ASSERT_EQ(ibv_modify_qp(target, &attr, kInitMask), 0);
        attr.qp_state = IBV_QPS_ERR;  // where any state but those before RTS would do
        ASSERT_EQ(ibv_modify_qp(target, &attr, IBV_QP_STATE), 0);
        EXPECT_EQ(post_to(target, Work(opcode(), kId)),
                  expected == Answer::kFull ? ENOMEM : EINVAL);
        EXPECT_EQ(ibv_destroy_qp(target), 0);
        return;
    }
    connect_for(0);
    expect(expected, good_work());
}

// Opcodes that a function of ibv_qp_ex stands for.
class OpcodeFunctions : public Opcodes {};

TEST_P(OpcodeFunctions, DoTheSame) {
    const Answer expected = to_function();
    const std::uint64_t flag = function_flag(opcode());
    if (expected == Answer::kOfOtherTests) {
        GTEST_SKIP() << "segmentation: tests/verbs/segmentation_test.cpp";
    }
    if (expected == Answer::kUnsupported) {
        ASSERT_EQ(simverbs_set_personality(GetParam().subject.personality), 0);
        ASSERT_EQ(simverbs_set_topology(GetParam().subject.ethernet ? "eth-star:2" : "star:2"), 0);
        End end(0, {});
        std::unique_ptr<XrcDomain> domain;
        if (is(Service::kXrcTgt)) {
            domain = std::make_unique<XrcDomain>(end);
        }
        errno = 0;
        EXPECT_EQ(make_qp(end, GetParam().subject.service, domain.get(), flag), nullptr);
        EXPECT_EQ(errno, EOPNOTSUPP);
        return;
    }
    connect_for(opcode() == IBV_WR_LOCAL_INV ? flag | IBV_QP_EX_WITH_BIND_MW : flag);
    expect(expected, good_work());
}

std::string name_of_case(const testing::TestParamInfo<Case>& row) {
    return name_of(row.param.subject) + '_' + name_of_opcode(row.param.opcode);
}
std::vector<Case> every_case_with_a_function() {
    std::vector<Case> all = every_case();
    std::erase_if(all, [](const Case& each) { return function_flag(each.opcode) == 0; });
    return all;
}
INSTANTIATE_TEST_SUITE_P(Every, Opcodes, testing::ValuesIn(every_case()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Every, OpcodeFunctions, testing::ValuesIn(every_case_with_a_function()),
                         name_of_case);

}  // namespace
}  // namespace conformance

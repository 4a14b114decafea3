// Tag matching: which messages take a tagged buffer, what completes, and how software and device
// keep in step. Operations on the list are in tag_operations_test.cpp, rendezvous in
// tag_rendezvous_test.cpp.
#include "tag_matching.hpp"

#include <cerrno>
#include <random>
#include <utility>

namespace verbs_test {
namespace {

constexpr unsigned kMatchedWithData = IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID;

// ---- messages

TEST_F(TagMatching, AnEagerMessageLandsInTheBufferOfItsTagWithoutTheHeader) {
    connect_tags();
    ASSERT_EQ(add(7, 0xABCDEF0123456789, {b->range(0, 256)}), 0);
    const TagCompletion added = next();
    EXPECT_EQ(added.wr_id, 1007U);
    EXPECT_EQ(added.opcode, IBV_WC_TM_ADD);
    EXPECT_EQ(added.flags, 0U);
    std::memset(a->at(kPayload), 0x42, 100);
    std::memset(b->at(0), 0, 256);
    send_eager(0xABCDEF0123456789, 100, 0x11223344);
    const TagCompletion received = next();
    EXPECT_EQ(received.wr_id, 7U);
    EXPECT_EQ(received.status, IBV_WC_SUCCESS);
    EXPECT_EQ(received.opcode, IBV_WC_TM_RECV);
    EXPECT_EQ(received.flags, kMatchedWithData);
    EXPECT_EQ(received.bytes, 100U);
    EXPECT_EQ(received.tag, 0xABCDEF0123456789U);
    EXPECT_EQ(received.priv, 0x11223344U);
    EXPECT_EQ(received.qp_num, b->qp->qp_num);
    EXPECT_EQ(std::memcmp(b->at(0), a->at(kPayload), 100), 0);
    EXPECT_EQ(*b->at(100), 0);
}

// The match is told before the data is complete (rdma-core mlx5).
TEST_F(TagMatching, AMessageOfSeveralPacketsCompletesTwice) {
    connect_tags();
    ASSERT_EQ(add(7, 5, {b->range(0, 65536)}, kWholeTag, 0), 0);
    for (std::size_t i = 0; i < 50'000; ++i) {
        *a->at(kPayload + i) = static_cast<std::uint8_t>(i * 31 + (i >> 8U));
    }
    send_eager(5, 50'000, 9);
    const TagCompletion matched = next();
    EXPECT_EQ(matched.wr_id, 7U);
    EXPECT_EQ(matched.flags, static_cast<unsigned>(IBV_WC_TM_MATCH));
    EXPECT_EQ(matched.tag, 5U);
    const TagCompletion complete = next();
    EXPECT_EQ(complete.wr_id, 7U);
    EXPECT_EQ(complete.flags, static_cast<unsigned>(IBV_WC_TM_DATA_VALID));
    EXPECT_EQ(complete.bytes, 50'000U);
    EXPECT_EQ(complete.tag, 0U) << "the first one has told it";
    EXPECT_EQ(std::memcmp(b->at(0), a->at(kPayload), 50'000), 0);
}

TEST_F(TagMatching, AnUnexpectedMessageTakesAnOrdinaryReceiveHeaderAndAll) {
    connect_tags();
    ASSERT_EQ(b->receive(11, {b->range(0, 256)}), 0);
    ASSERT_EQ(add(7, 5, {b->range(512, 256)}, kWholeTag, 0), 0);
    std::memset(a->at(kPayload), 0x42, 100);
    send_eager(6, 100, 77);
    const TagCompletion received = next();
    EXPECT_EQ(received.wr_id, 11U);
    EXPECT_EQ(received.opcode, IBV_WC_TM_RECV);
    EXPECT_EQ(received.flags, 0U);
    EXPECT_EQ(received.bytes, 116U);
    EXPECT_EQ(received.tag, 0U) << "it stands in the header";
    EXPECT_EQ(received.priv, 0U);
    ibv_tmh seen{};
    std::memcpy(&seen, b->at(0), sizeof seen);
    EXPECT_EQ(seen.opcode, IBV_TMH_EAGER);
    EXPECT_EQ(be64toh(seen.tag), 6U);
    EXPECT_EQ(std::memcmp(b->at(16), a->at(kPayload), 100), 0);
}

// Whatever has no tag goes by the list, and is none of the messages that software counts.
TEST_F(TagMatching, AMessageWithoutATagTakesAnOrdinaryReceiveAndIsNotCounted) {
    connect_tags();
    std::vector<std::vector<std::uint8_t>> messages;
    for (const std::uint8_t opcode : {int{IBV_TMH_NO_TAG}, int{IBV_TMH_FIN}, 77}) {
        messages.emplace_back(32);
        messages.back()[0] = opcode;
    }
    messages.emplace_back(15);  // too short for a header, like the next two
    messages.emplace_back(0);
    messages.emplace_back(31);
    messages.back()[0] = IBV_TMH_RNDV;
    ASSERT_EQ(add(7, 0, {b->range(512, 256)}, 0, 0), 0) << "matches every tag";
    for (std::size_t i = 0; i < messages.size(); ++i) {
        ASSERT_EQ(b->receive(20 + i, {b->range(0, 256)}), 0);
        send_bytes(messages[i]);
        const TagCompletion received = next();
        EXPECT_EQ(received.wr_id, 20 + i);
        EXPECT_EQ(received.opcode, IBV_WC_TM_NO_TAG);
        EXPECT_EQ(received.bytes, messages[i].size());
    }
    ASSERT_EQ(sync(0), 0);
    EXPECT_EQ(next().flags, 0U) << "none was counted";
}

TEST_F(TagMatching, TheOldestTagThatMatchesIsTaken) {
    connect_tags();
    ASSERT_EQ(add(1, 0x50, {b->range(0, 64)}, 0xF0, 0), 0);
    ASSERT_EQ(add(2, 0x51, {b->range(64, 64)}, kWholeTag, 0), 0);
    ASSERT_EQ(add(3, 0, {b->range(128, 64)}, 0, 0), 0);
    ASSERT_EQ(add(4, 0x51, {b->range(192, 64)}, kWholeTag, 0), 0);
    for (const std::uint64_t expected : {1, 2, 3, 4}) {
        send_eager(0x51, 8);
        EXPECT_EQ(next().wr_id, expected);
    }
}

// A bit of the tag that the mask does not have can never be matched.
TEST_F(TagMatching, ATagWithBitsOutsideItsMaskMatchesNothing) {
    connect_tags();
    ASSERT_EQ(b->receive(11, {b->range(0, 256)}), 0);
    ASSERT_EQ(add(1, 0x151, {b->range(0, 64)}, 0xFF, 0), 0);
    send_eager(0x151, 8);
    EXPECT_EQ(next().wr_id, 11U);
}

TEST_F(TagMatching, AnImmediateComesWithTheData) {
    connect_tags();
    ASSERT_EQ(add(1, 3, {b->range(0, 64)}, kWholeTag, 0), 0);
    const ibv_tmh made = header(IBV_TMH_EAGER, 3);
    std::memcpy(a->at(0), &made, sizeof made);
    ASSERT_EQ(Request(IBV_WR_SEND_WITH_IMM).immediate(0xBEEF).from(a->range(0, 20)).post(*a), 0);
    ibv_poll_cq_attr attr{};
    while (ibv_start_poll(ex, &attr) != 0) {
    }
    EXPECT_EQ(ibv_wc_read_wc_flags(ex), kMatchedWithData | IBV_WC_WITH_IMM);
    EXPECT_EQ(be32toh(ibv_wc_read_imm_data(ex)), 0xBEEFU);
    EXPECT_EQ(ibv_wc_read_byte_len(ex), 4U);
    ibv_end_poll(ex);
}

TEST_F(TagMatching, AWriteWithImmediateTakesAnOrdinaryReceive) {
    connect_tags();
    ASSERT_EQ(add(1, 0, {b->range(0, 64)}, 0, 0), 0);
    ASSERT_EQ(b->receive(11, {b->range(0, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE_WITH_IMM)
                  .immediate(1)
                  .from(a->range(0, 64))
                  .to(b->address(512), b->mr->rkey)
                  .post(*a),
              0);
    const TagCompletion received = next();
    EXPECT_EQ(received.wr_id, 11U);
    EXPECT_EQ(received.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
}

TEST_F(TagMatching, ABufferWithoutMemoryTakesAnEmptyMessage) {
    connect_tags();
    ASSERT_EQ(add(1, 3, {}, kWholeTag, 0), 0);
    send_eager(3, 0);
    const TagCompletion received = next();
    EXPECT_EQ(received.wr_id, 1U);
    EXPECT_EQ(received.bytes, 0U);
}

TEST_F(TagMatching, WithoutAnyBufferTheSenderWaitsForATagOrAReceive) {
    connect_tags();
    send_eager(3, 8);
    pass(1);
    EXPECT_FALSE(poll());
    ASSERT_EQ(add(1, 3, {b->range(0, 64)}, kWholeTag, 0), 0);
    EXPECT_EQ(next().wr_id, 1U);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
}

TEST_F(TagMatching, TwoQueuePairsTakeFromOneList) {
    connect_tags();
    ibv_qp* const first_of_a = a->qp;
    ibv_qp* const first_of_b = b->qp;
    const Connection with;
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = a->cq;
    init.cap = with.cap;
    init.qp_type = IBV_QPT_RC;
    a->qp = ibv_create_qp(a->pd, &init);
    init.send_cq = init.recv_cq = b->cq;
    init.srq = tags;
    b->qp = ibv_create_qp(b->pd, &init);
    ASSERT_NE(a->qp, nullptr);
    ASSERT_NE(b->qp, nullptr);
    bring_up(with);
    for (const std::uint64_t id : {1, 2, 3}) {
        ASSERT_EQ(add(id, 5, {b->range(0, 64)}, kWholeTag, 0), 0);
    }
    const std::array<std::pair<ibv_qp*, ibv_qp*>, 2> pairs = {
        {{a->qp, b->qp}, {first_of_a, first_of_b}}};
    for (std::size_t i = 0; i < 3; ++i) {
        a->qp = pairs[i % 2].first;
        send_eager(5, 8);
        const TagCompletion received = next();
        EXPECT_EQ(received.wr_id, i + 1);
        EXPECT_EQ(received.qp_num, pairs[i % 2].second->qp_num);
    }
    EXPECT_EQ(ibv_destroy_qp(pairs[0].first), 0);
    EXPECT_EQ(ibv_destroy_qp(pairs[0].second), 0);
    a->qp = first_of_a;
    b->qp = first_of_b;
}

// ---- what fails

TEST_F(TagMatching, AMessageThatIsTooLongFailsOnBothSides) {
    connect_tags();
    ASSERT_EQ(add(1, 3, {b->range(0, 64)}, kWholeTag, 0), 0);
    send_eager(3, 65);
    const TagCompletion received = next();
    EXPECT_EQ(received.wr_id, 1U);
    EXPECT_EQ(received.status, IBV_WC_LOC_LEN_ERR);
    EXPECT_EQ(a->wait().status, IBV_WC_REM_INV_REQ_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
}

TEST_F(TagMatching, ABufferWhoseKeyIsWrongFailsWhenAMessageComes) {
    connect_tags();
    ibv_sge buffer = b->range(0, 64);
    buffer.lkey ^= 0x5A5A00;
    ASSERT_EQ(add(1, 3, {buffer}), 0);
    EXPECT_EQ(next().status, IBV_WC_SUCCESS) << "nobody looks at it before";
    send_eager(3, 8);
    EXPECT_EQ(next().status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(a->wait().status, IBV_WC_REM_OP_ERR);
}

// Half of the message has landed.
TEST_F(TagMatching, AMessageThatIsCutOffIsFlushed) {
    connect_tags();
    ASSERT_EQ(add(1, 3, {b->range(0, 1U << 19U)}, kWholeTag, 0), 0);
    send_eager(3, 1U << 19U);
    EXPECT_EQ(next().flags, static_cast<unsigned>(IBV_WC_TM_MATCH));
    ASSERT_EQ(b->to_state(IBV_QPS_ERR), 0);
    const TagCompletion flushed = next();
    EXPECT_EQ(flushed.wr_id, 1U);
    EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(TagMatching, ATagThatAResetQueuePairHadTakenMayBeUsedAgain) {
    TagLimits limits;
    limits.tags = 1;
    connect_tags(limits);
    ASSERT_EQ(add(1, 3, {b->range(0, 1U << 19U)}, kWholeTag, 0), 0);
    send_eager(3, 1U << 19U);
    EXPECT_EQ(next().flags, static_cast<unsigned>(IBV_WC_TM_MATCH));
    ASSERT_EQ(add(2, 3, {b->range(0, 64)}), ENOMEM);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    EXPECT_EQ(add(2, 3, {b->range(0, 64)}, kWholeTag, 0), 0);
}

// ---- in step

TEST_F(TagMatching, ATagIsNotUsedBeforeSoftwareHasSeenWhatWasUnexpected) {
    connect_tags();
    for (const std::uint64_t id : {11, 12}) {
        ASSERT_EQ(b->receive(id, {b->range(0, 256)}), 0);
    }
    send_eager(3, 8);
    EXPECT_EQ(next().wr_id, 11U);
    ASSERT_EQ(add(1, 3, {b->range(512, 64)}), 0) << "as if it had not seen the message yet";
    EXPECT_EQ(next().flags, static_cast<unsigned>(IBV_WC_TM_SYNC_REQ));
    send_eager(3, 8);
    EXPECT_EQ(next().wr_id, 12U);
    ASSERT_EQ(sync(2), 0);
    EXPECT_EQ(next().flags, 0U);
    send_eager(3, 8);
    EXPECT_EQ(next().wr_id, 1U);
}

TEST_F(TagMatching, ATagThatWasThereBeforeStaysInUse) {
    connect_tags();
    ASSERT_EQ(b->receive(11, {b->range(0, 256)}), 0);
    ASSERT_EQ(add(1, 3, {b->range(512, 64)}, kWholeTag, 0), 0);
    send_eager(4, 8);
    EXPECT_EQ(next().wr_id, 11U);
    send_eager(3, 8);
    EXPECT_EQ(next().wr_id, 1U);
}

TEST_F(TagMatching, AnAddMayReportToo) {
    connect_tags();
    ASSERT_EQ(b->receive(11, {b->range(0, 256)}), 0);
    send_eager(3, 8);
    EXPECT_EQ(next().wr_id, 11U);
    ASSERT_EQ(add(1, 3, {b->range(512, 64)}, kWholeTag, IBV_OPS_TM_SYNC, 1), 0);
    send_eager(3, 8);
    EXPECT_EQ(next().wr_id, 1U);
}

// Software cannot have counted a message that it was never given.
TEST_F(TagMatching, AnUnexpectedMessageThatFailsIsNotCounted) {
    connect_tags();
    ASSERT_EQ(b->receive(11, {b->range(0, 16)}), 0);
    send_eager(3, 8);
    EXPECT_EQ(next().status, IBV_WC_LOC_LEN_ERR);
    ASSERT_EQ(sync(0), 0);
    EXPECT_EQ(next().flags, 0U);
}

// ---- against a naive model

struct Model {
    struct Entry {
        std::uint64_t id;
        std::uint64_t tag;
        std::uint64_t mask;
        std::uint32_t handle;
        bool in_use;
    };
    std::vector<Entry> entries;
    std::uint32_t unexpected = 0;
    std::uint32_t reported = 0;

    void refresh() {
        for (Entry& entry : entries) {
            entry.in_use = entry.in_use || unexpected == reported;
        }
    }
    [[nodiscard]] unsigned flags() const {
        return unexpected == reported ? 0U : static_cast<unsigned>(IBV_WC_TM_SYNC_REQ);
    }
    std::optional<std::uint64_t> take(std::uint64_t tag) {
        for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
            if (entry->in_use && (tag & entry->mask) == entry->tag) {
                const std::uint64_t id = entry->id;
                entries.erase(entry);
                return id;
            }
        }
        ++unexpected;
        return std::nullopt;
    }
};

class AgainstAModel : public TagMatching, public testing::WithParamInterface<const char*> {
  protected:
    std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }

    // Draws whether the next operation reports how many messages software has seen, and how many.
    void draw_report() {
        reports_ = below(3) == 0;
        flags_ = IBV_OPS_SIGNALED | (reports_ ? IBV_OPS_TM_SYNC : 0);
        seen_ = below(8) == 0 ? below(1U << 16U) : model.unexpected;
    }
    void add_one();
    void remove_one();
    void sync_once();
    void receive_one(std::uint32_t step);

    Model model;
    std::size_t matched = 0;
    std::size_t waiting = 0;

  private:
    void report() {
        model.reported = reports_ ? seen_ & 0xFFFFU : model.reported;
        model.refresh();
    }

    std::mt19937 random_{20261123};
    std::uint64_t id_ = 0;
    bool reports_ = false;
    int flags_ = 0;
    std::uint32_t seen_ = 0;
};

void AgainstAModel::add_one() {
    constexpr std::array<std::uint64_t, 4> kMasks = {kWholeTag, 0x3, 0x1, 0};
    const std::uint64_t mask = kMasks[below(kMasks.size())];
    const std::uint64_t tag = below(4) & mask;
    const int error = add(++id_, tag, {b->range(0, 64)}, mask, flags_, seen_);
    ASSERT_EQ(error, model.entries.size() < 8 ? 0 : ENOMEM);
    if (error == 0) {
        model.entries.push_back({id_, tag, mask, last_handle, false});
        report();
        const TagCompletion done = next();
        ASSERT_EQ(done.opcode, IBV_WC_TM_ADD);
        ASSERT_EQ(done.flags, model.flags());
    }
}

void AgainstAModel::remove_one() {
    if (model.entries.empty()) {
        return;
    }
    const auto gone =
        model.entries.begin() + below(static_cast<std::uint32_t>(model.entries.size()));
    ASSERT_EQ(remove(gone->handle, flags_, seen_), 0);
    model.entries.erase(gone);
    report();
    const TagCompletion done = next();
    ASSERT_EQ(done.status, IBV_WC_SUCCESS);
    ASSERT_EQ(done.flags, model.flags());
}

void AgainstAModel::sync_once() {
    ASSERT_EQ(sync(seen_, flags_), 0);
    report();
    ASSERT_EQ(next().flags, model.flags());
}

void AgainstAModel::receive_one(std::uint32_t step) {
    const std::uint64_t tag = below(4);
    std::memset(b->at(0), 0xEE, 256);
    ASSERT_EQ(b->receive(100'000, {b->range(128, 64)}), 0);
    a->word(kPayload) = 0x1234'0000U + step;
    const std::uint32_t before = model.unexpected;
    const auto expected = model.take(tag);
    send_eager(tag, 8, step);
    const TagCompletion received = next();
    ASSERT_EQ(received.tag, expected ? tag : 0);
    ASSERT_EQ(received.priv, expected ? step : 0);
    ASSERT_EQ(received.wr_id, expected.value_or(100'000));
    ASSERT_EQ(b->word(expected ? 0 : 128 + 16), a->word(kPayload));
    if (expected) {
        ++matched;
        send_bytes(std::vector<std::uint8_t>(16));  // takes the receive
        ASSERT_EQ(next().opcode, IBV_WC_TM_NO_TAG);
    } else if (!model.entries.empty() && before != model.reported) {
        ++waiting;
    }
}

TEST_P(AgainstAModel, MatchesAndCompletesAlike) {
    ASSERT_EQ(simverbs_set_personality(GetParam()), 0) << simverbs_last_error();
    connect_tags();
    for (std::uint32_t step = 0; step < 3000 && !HasFatalFailure(); ++step) {
        SCOPED_TRACE(step);
        draw_report();
        switch (below(5)) {
            case 0:
                add_one();
                break;
            case 1:
                remove_one();
                break;
            case 2:
                sync_once();
                break;
            default:
                receive_one(step);
        }
    }
    EXPECT_GT(matched, 100U);
    EXPECT_GT(waiting, 20U);
}

INSTANTIATE_TEST_SUITE_P(As, AgainstAModel, testing::Values("spec", "connectx6"),
                         [](const auto& row) { return std::string(row.param); });

}  // namespace
}  // namespace verbs_test

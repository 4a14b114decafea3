// A send that fails while its queue pair drains: the program has asked for SQD, and then memory is
// gone that a message under way is read from. Datagrams and raw packets are read as they are
// posted, before any program could ask.
#include <string_view>

#include <sys/mman.h>

#include "tests/conformance/every_service.hpp"

namespace conformance {
namespace {

std::vector<Subject> connected_senders() {
    std::vector<Subject> all;
    for (const Subject& subject : every_subject()) {
        if (std::string_view(subject.personality) == "spec" &&
            (subject.service == Service::kRc || subject.service == Service::kUc ||
             subject.service == Service::kXrcIni)) {
            all.push_back(subject);
        }
    }
    return all;
}

class Draining : public ConnectedAs, public testing::WithParamInterface<Subject> {};

TEST_P(Draining, EndsWithTheSendThatFails) {
    // Long: without acknowledgments a message is complete when its last packet leaves, and by then
    // the first ones must have been read.
    constexpr std::size_t kBytes = std::size_t{512} * 1024;
    connect_as(GetParam());
    ASSERT_EQ(b->receive(1, {b->range(65536, kBytes)}), 0);
    void* const memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    ibv_mr* const region = ibv_reg_mr(a->pd, memory, kBytes, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(region, nullptr);
    ASSERT_EQ(post(Work(IBV_WR_SEND, 7)
                       .from({reinterpret_cast<std::uint64_t>(memory), kBytes, region->lkey})),
              0);
    ASSERT_EQ(a->to_state(IBV_QPS_SQD), 0);
    ASSERT_EQ(munmap(memory, kBytes), 0);
    const ibv_wc wc = a->wait();
    EXPECT_EQ(wc.wr_id, 7U);
    EXPECT_EQ(wc.status, IBV_WC_LOC_PROT_ERR) << ibv_wc_status_str(wc.status);
    EXPECT_EQ(a->state(), service() == Service::kUc ? IBV_QPS_SQE : IBV_QPS_ERR);
    EXPECT_EQ(ibv_dereg_mr(region), 0);
}

INSTANTIATE_TEST_SUITE_P(Every, Draining, testing::ValuesIn(connected_senders()),
                         [](const auto& row) { return name_of(row.param); });

}  // namespace
}  // namespace conformance

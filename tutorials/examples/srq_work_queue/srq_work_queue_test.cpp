#include "srq_work_queue.h"

#include <chrono>
#include <string>
#include <vector>

#include <boost/fiber/all.hpp>
#include <gtest/gtest.h>

#include <simverbs/connect.hpp>
#include <simverbs/gtest.hpp>
#include <simverbs/lab.hpp>

namespace {

using namespace std::chrono_literals;

constexpr int kProducers = 3;
constexpr int kItems = 20;  // of each producer

struct Record {
    std::vector<ibv_wc_status> statuses;  // of the last item of each producer
    std::vector<std::string> received;
    unsigned posted_spares = 0;
};

// Producers on h1 to h3 submit their items as fast as they can. The consumer, on h0, is stopped for
// 10 ms, and then takes 50 us for each item. A producer whose name is `cut_off` loses its link.
Record produce(const work_queue_options& options, const simverbs::ConnectionOptions& connection,
               const std::string& cut_off = "") {
    simverbs::Lab lab({.topology = "star:4"});
    boost::fibers::barrier all(kProducers + 1);
    work_queue queue{};
    std::vector<ibv_qp*> ends(kProducers);
    int at_work = kProducers;
    Record record{.statuses = std::vector<ibv_wc_status>(kProducers), .received = {}};
    lab.host("h0", [&](ibv_context* device) {
        ASSERT_EQ(work_queue_open(&queue, device, options), 0);
        all.wait();
        all.wait();
        const simverbs::Fault stopped = simverbs::process_stop("h0", 10ms).inject();
        work_item item{};
        for (int found = 0; found == 1 || at_work > 0;) {
            found = work_queue_next(&queue, &item);
            ASSERT_GE(found, 0);
            lab.sleep_for(50us);
            if (found == 1) {
                record.received.emplace_back(item.data, item.bytes);
                ASSERT_EQ(work_queue_done(&queue, &item), 0);
            }
        }
        EXPECT_THAT(stopped, simverbs::Fired(1));
        record.posted_spares = queue.posted_spares;
        for (ibv_qp* const end : ends) {
            ibv_destroy_qp(end);
        }
        work_queue_close(&queue);
    });
    for (int i = 0; i < kProducers; ++i) {
        const std::string host = "h" + std::to_string(i + 1);
        lab.host(host, [&, i, host](ibv_context* device) {
            work_producer producer{};
            ASSERT_EQ(work_producer_open(&producer, device), 0);
            all.wait();
            ends[i] = work_queue_add_producer(&queue);
            simverbs::connect(*producer.qp, *ends[i], connection);
            all.wait();
            for (int n = 0; n < kItems && record.statuses[i] == IBV_WC_SUCCESS; ++n) {
                if (host == cut_off && n == kItems / 2) {
                    simverbs::link_down((host + "-s0").c_str()).inject().leave();
                }
                const std::string item = host + "/" + std::to_string(n);
                record.statuses[i] = work_producer_submit(&producer, item.data(),
                                                          static_cast<std::uint32_t>(item.size()));
            }
            --at_work;
            work_producer_close(&producer);
        });
    }
    lab.run();
    return record;
}

// The items of h1 to h3, so many of each.
std::vector<std::string> items_of(const std::vector<int>& counts) {
    std::vector<std::string> items;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        for (int n = 0; n < counts[i]; ++n) {
            items.push_back("h" + std::to_string(i + 1) + "/" + std::to_string(n));
        }
    }
    return items;
}

constexpr work_queue_options kSmall{.receives = 2, .spares = 0, .low_water = 0};

TEST(SrqWorkQueue, HasEachItemOnceAndGrowsAtItsLowWater) {
    const Record record = produce({.receives = 8, .spares = 64, .low_water = 4}, {});
    EXPECT_EQ(record.posted_spares, 64U);
    EXPECT_THAT(record.statuses, testing::Each(IBV_WC_SUCCESS));
    EXPECT_THAT(record.received,
                testing::UnorderedElementsAreArray(items_of({kItems, kItems, kItems})));
}

TEST(SrqWorkQueue, MakesProducersWaitWhereItIsFull) {
    const Record record = produce(kSmall, {.rnr_retries = 7});
    EXPECT_THAT(record.statuses, testing::Each(IBV_WC_SUCCESS));
    EXPECT_THAT(record.received,
                testing::UnorderedElementsAreArray(items_of({kItems, kItems, kItems})));
}

TEST(SrqWorkQueue, ServesTheOthersWhenAProducerIsCutOff) {
    const Record record = produce(kSmall, {.timeout = 8}, "h2");
    EXPECT_THAT(record.statuses,
                testing::ElementsAre(IBV_WC_SUCCESS, IBV_WC_RETRY_EXC_ERR, IBV_WC_SUCCESS));
    EXPECT_THAT(record.received,
                testing::UnorderedElementsAreArray(items_of({kItems, kItems / 2, kItems})));
}

// Fails: these producers give up after three RNR NAKs.
TEST(SrqWorkQueue, DISABLED_MakesProducersWaitWhereTheyTryThreeTimes) {
    const Record record = produce(kSmall, {.rnr_retries = 3});
    EXPECT_THAT(record.statuses, testing::Each(IBV_WC_SUCCESS));
}

}  // namespace

#include "simverbs/hca/flow_table.hpp"

#include <array>
#include <list>

#include <gmock/gmock.h>

#include "simverbs/hca/queue_pair.hpp"

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::array<std::uint8_t, 6> kMac = {0x02, 0, 0, 0, 0, 1};
constexpr std::array<std::uint8_t, 6> kGroup = {0x01, 0x00, 0x5E, 0, 0, 1};

FrameHeaders frame_to(const std::array<std::uint8_t, 6>& mac) {
    FrameHeaders headers;
    headers.layers = FrameLayers(FrameLayer::kEthernet) | FrameLayer::kIpv4;
    headers.fields.outer.destination_mac = mac;
    headers.fields.outer.ipv4_destination = {127, 77, 0, 1};
    return headers;
}

class FlowTableTest : public testing::Test {
  protected:
    QueuePair* queue_pair() {
        const QueuePairHandle made = pair.a.make_qp();
        return pair.a.host.hca().qps().find(made.qpn());
    }
    FlowRule& add(QueuePair* qp, FlowType type = FlowType::kNormal, std::uint16_t priority = 0) {
        FlowRule rule;
        rule.type = type;
        rule.priority = priority;
        rule.qp = qp;
        if (type == FlowType::kNormal) {
            rule.layers = FrameLayer::kEthernet;
            rule.value.outer.destination_mac = kMac;
            rule.mask.outer.destination_mac.fill(0xFF);
        }
        rules.push_back(rule);
        return rules.back();
    }
    // Who takes it, once all rules are in.
    std::vector<QueuePair*> takers(const FrameHeaders& headers, std::uint8_t port = 1) {
        for (; entered < rules.size(); ++entered) {
            table.add(*std::next(rules.begin(), static_cast<std::ptrdiff_t>(entered)));
        }
        std::vector<QueuePair*> got;
        taken = table.match(port, headers, 64,
                            [&got](const FlowRule& rule) { got.push_back(rule.qp); });
        return got;
    }

    Pair pair;
    std::list<FlowRule> rules;
    std::size_t entered = 0;
    FlowTable table;
    QueuePair* const one = queue_pair();
    QueuePair* const two = queue_pair();
    bool taken = false;
};

TEST_F(FlowTableTest, NobodyTakesWhatNoRuleMatches) {
    add(one);
    EXPECT_THAT(takers(frame_to({2, 0, 0, 0, 0, 2})), IsEmpty());
    EXPECT_FALSE(taken);
    EXPECT_THAT(takers(frame_to(kMac)), ElementsAre(one));
    EXPECT_TRUE(taken);
    EXPECT_THAT(takers(frame_to(kMac), 2), IsEmpty());
}

TEST_F(FlowTableTest, ARuleNeedsItsLayers) {
    add(one).layers = FrameLayers(FrameLayer::kEthernet) | FrameLayer::kUdp;
    EXPECT_THAT(takers(frame_to(kMac)), IsEmpty());
}

TEST_F(FlowTableTest, TheLowestNumberIsTriedFirst) {
    add(one, FlowType::kNormal, 5);
    add(two, FlowType::kNormal, 2).mask.outer.destination_mac = {0xFF};
    EXPECT_THAT(takers(frame_to(kMac)), ElementsAre(two));
}

TEST_F(FlowTableTest, AmongEqualPrioritiesTheOldestWins) {
    add(one).mask.outer.destination_mac = {0xFF};
    add(two);
    EXPECT_THAT(takers(frame_to(kMac)), ElementsAre(one));
}

TEST_F(FlowTableTest, EqualRulesShareAFrame) {
    add(one);
    add(two);
    EXPECT_THAT(takers(frame_to(kMac)), UnorderedElementsAre(one, two));
}

TEST_F(FlowTableTest, ARuleThatDoesNotTrapLetsTheNextBeTried) {
    add(one, FlowType::kNormal, 0).traps = false;
    add(two, FlowType::kNormal, 1);
    EXPECT_THAT(takers(frame_to(kMac)), ElementsAre(one, two));
    EXPECT_TRUE(taken);
}

TEST_F(FlowTableTest, DefaultsTakeWhatIsLeft) {
    add(one, FlowType::kAllDefault);
    add(two);
    EXPECT_THAT(takers(frame_to(kMac)), ElementsAre(two));
    EXPECT_THAT(takers(frame_to({2, 0, 0, 0, 0, 2})), ElementsAre(one));
    EXPECT_THAT(takers(frame_to(kGroup)), ElementsAre(one));
}

TEST_F(FlowTableTest, TheDefaultOfGroupsComesBeforeThatOfAll) {
    add(one, FlowType::kAllDefault);
    add(two, FlowType::kGroupDefault);
    EXPECT_THAT(takers(frame_to(kGroup)), ElementsAre(two));
    EXPECT_THAT(takers(frame_to(kMac)), ElementsAre(one));
}

TEST_F(FlowTableTest, ASnifferGetsACopyAndTakesNothing) {
    add(one, FlowType::kSniffer);
    EXPECT_THAT(takers(frame_to(kMac)), ElementsAre(one));
    EXPECT_FALSE(taken);
    add(two);
    EXPECT_THAT(takers(frame_to(kMac)), ElementsAre(one, two));
}

TEST_F(FlowTableTest, ARuleMayDrop) {
    add(one).drops = true;
    add(two, FlowType::kAllDefault);
    EXPECT_THAT(takers(frame_to(kMac)), IsEmpty());
    EXPECT_TRUE(taken);
}

TEST_F(FlowTableTest, ForgetsWhatIsErased) {
    add(one);
    EXPECT_THAT(takers(frame_to(kMac)), ElementsAre(one));
    EXPECT_TRUE(table.steers_to(*one));
    table.erase(rules.front());
    EXPECT_FALSE(table.steers_to(*one));
    EXPECT_THAT(takers(frame_to(kMac)), IsEmpty());
}

}  // namespace
}  // namespace simverbs::test

#include "fabric/mad/performance_agent.hpp"

#include <gtest/gtest.h>

#include "tests/fabric/mad/managed_fabric.hpp"

namespace fabric {
namespace {

using mad::Datagram;
using mad::Method;
using mad::PerformanceAttribute;
using test::ManagedFabric;
using Counter = PerformanceCounter;

class Performance : public testing::Test {
  protected:
    // The agent alone, without a wire.
    Datagram access(Method method, PerformanceAttribute attribute, std::uint64_t port,
                    std::uint64_t select = 0, const Datagram& values = {}) {
        Datagram request = test::make_datagram(mad::Class::kPerformance, method,
                                               static_cast<std::uint16_t>(attribute));
        std::ranges::copy(values.from(64), request.from(64).begin());
        mad::set(request.from(64), mad::port_counters::kPortSelect, port);
        mad::set(request.from(64), mad::port_counters::kCounterSelect, select);
        Datagram response = request;
        EXPECT_TRUE(agent().process(PortNumber{0}, request, response));
        return response;
    }
    PerformanceAgent& agent() {
        return fabric.managed.find(fabric.network.switch_at(0).id())->performance();
    }
    static std::uint64_t read(const Datagram& datagram, mad::Field field) {
        return mad::get(datagram.from(64), field);
    }
    void flap(std::size_t link, int times) {
        for (int i = 0; i < times; ++i) {
            fabric.network.link(link).set_state(LinkState::kDown);
            fabric.network.link(link).set_state(LinkState::kUp);
        }
    }

    ManagedFabric fabric{"star:3"};
    static constexpr mad::Field kLinkDowned{56, 8};
};

TEST_F(Performance, CountsAndStartsAgainWhenCleared) {
    flap(0, 3);
    EXPECT_EQ(read(access(Method::kGet, PerformanceAttribute::kPortCounters, 1), kLinkDowned), 3U);
    EXPECT_EQ(read(access(Method::kSet, PerformanceAttribute::kPortCounters, 1, 1), kLinkDowned),
              3U)
        << "another counter was selected";
    EXPECT_EQ(
        read(access(Method::kSet, PerformanceAttribute::kPortCounters, 1, 1 << 2), kLinkDowned),
        0U);
    flap(0, 1);
    EXPECT_EQ(read(access(Method::kGet, PerformanceAttribute::kPortCounters, 1), kLinkDowned), 1U);
    EXPECT_EQ(fabric.network.switch_at(0).port(PortNumber{1}).counters().link_downed, 4U);
}

TEST_F(Performance, SticksAtTheLimitOfACounter) {
    Datagram values;
    mad::set(values.from(64), kLinkDowned, 254);
    access(Method::kSet, PerformanceAttribute::kPortCounters, 1, 1 << 2, values);
    flap(0, 5);
    EXPECT_EQ(read(access(Method::kGet, PerformanceAttribute::kPortCounters, 1), kLinkDowned),
              255U);
}

TEST_F(Performance, SumsAllPortsOfASwitch) {
    flap(0, 1);
    flap(2, 2);
    EXPECT_EQ(read(access(Method::kGet, PerformanceAttribute::kPortCounters, 255), kLinkDowned),
              3U);
    access(Method::kSet, PerformanceAttribute::kPortCounters, 255, 0xFFFF);
    EXPECT_EQ(read(access(Method::kGet, PerformanceAttribute::kPortCounters, 3), kLinkDowned), 0U);
}

TEST_F(Performance, KeepsWideCountersApartFromNarrowOnes) {
    agent().set_value(PortNumber{1}, Counter::kXmitData, 7);
    agent().set_value(PortNumber{1}, Counter::kExtendedXmitData, 1ULL << 40);
    access(Method::kSet, PerformanceAttribute::kPortCounters, 1, 0xFFFF);
    EXPECT_EQ(read(access(Method::kGet, PerformanceAttribute::kPortCountersExtended, 1), {64, 64}),
              1ULL << 40);
}

TEST_F(Performance, RefusesWhatItDoesNotHave) {
    EXPECT_EQ(
        access(Method::kGet, PerformanceAttribute::kPortCounters, 9).get(mad::header::kStatus),
        0x1CU);
    EXPECT_EQ(
        access(Method::kGet, static_cast<PerformanceAttribute>(0x10), 1).get(mad::header::kStatus),
        0x0CU);
    EXPECT_EQ(read(access(Method::kGet, PerformanceAttribute::kClassPortInfo, 0),
                   mad::class_port_info::kCapabilityMask) &
                  (mad::port_counters::kAllPortSelect | mad::port_counters::kExtendedWidth),
              0x300U);
}

}  // namespace
}  // namespace fabric

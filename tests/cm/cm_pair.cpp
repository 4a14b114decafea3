#include "tests/cm/cm_pair.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace simverbs::cm::test {

using fabric::EventClass;
using fabric::EventKey;
using fabric::Guid;
using fabric::Lid;
using fabric::NodeId;
using fabric::PortNumber;

void Carrier::carry(int sender, const Address& to, const Datagram& datagram) {
    const int receiver = to.remote.lid == Lid{1} ? 0 : 1;
    const Message message = parse(datagram).value();
    const auto kind = static_cast<CmMessage>(message.index());
    const Fate fate = judge(sender, kind, count(sender, kind));
    sent.push_back({loop_.now(), sender, message});
    for (int i = 0; i < fate.copies; ++i) {
        const auto number = static_cast<std::uint32_t>(in_flight_.size());
        in_flight_.push_back({receiver, datagram, address_of(sender)});
        loop_.schedule({loop_.now() + kWireDelay + fate.delay,
                        EventKey(EventClass::kFrameArrival, NodeId(7), PortNumber(1), number), this,
                        number});
    }
}

int Carrier::count(int sender, CmMessage message) const {
    return static_cast<int>(std::ranges::count_if(sent, [=](const Sent& each) {
        return each.sender == sender && each.message.index() == static_cast<std::size_t>(message);
    }));
}

void Carrier::handle(const fabric::Event& event) {
    const InFlight arriving = in_flight_[event.argument];
    managers_.at(static_cast<std::size_t>(arriving.receiver))
        ->datagram_arrived(arriving.datagram, arriving.from);
}

Side::Side(fabric::EventLoop& loop, Carrier& carrier, int number)
    : loop_(loop),
      carrier_(carrier),
      number_(number),
      cm(loop,
         {.node = NodeId(static_cast<std::uint32_t>(number)),
          .ca_guid = Guid(0xA000 + static_cast<std::uint64_t>(number)),
          .ack_delay = 10,
          .comm_id_operand = number == 0 ? 0x1111'0000U : 0x2222'0000U,
          .transaction_id_high = 5},
         *this, *this) {
    carrier.connect(number, cm);
}

void Side::send(const Address& to, const Datagram& datagram) {
    carrier_.carry(number_, to, datagram);
}

void Side::cm_event(const CmEvent& event) {
    seen.push_back({loop_.now(), event});
    if (event.type == EventType::kReqReceived || event.type == EventType::kSidrReqReceived) {
        id = event.connection;
    }
    if (on_event) {
        on_event(event);
    }
    Connection* const subject = cm.find(event.connection);
    if (!answers || subject == nullptr) {
        return;
    }
    if (event.type == EventType::kReqReceived) {
        EXPECT_EQ(subject->send_rep(reply), 0);
    } else if (event.type == EventType::kRepReceived) {
        EXPECT_EQ(subject->send_rtu({}), 0);
    } else if (event.type == EventType::kDreqReceived) {
        EXPECT_EQ(subject->send_drep({}), 0);
    }
}

std::vector<std::string> Side::events() const {
    std::vector<std::string> names;
    for (const Seen& each : seen) {
        names.emplace_back(to_string(each.event.type));
    }
    return names;
}

const Seen* Side::last(EventType type) const {
    const auto found = std::find_if(seen.rbegin(), seen.rend(),
                                    [type](const Seen& each) { return each.event.type == type; });
    return found == seen.rend() ? nullptr : &*found;
}

Address address_of(int side) {
    return {.port = PortNumber(1),
            .remote = {.lid = Lid(static_cast<std::uint16_t>(side + 1)),
                       .qp = 1,
                       .qkey = fabric::kWellKnownQkey}};
}

// A request is repeated after 2 x 4.096 us x 2^14 + 4.096 us x 2^20 = 4.429185024 s, a reply after
// 4.096 us x 2^20 = 4.294967296 s, and timewait lasts 4.096 us x 2^15 = 134.217728 ms.
ReqParameters request_parameters() {
    return {.primary = {.path = {.local_lid = Lid{1}, .remote_lid = Lid{2}, .subnet_local = true},
                        .packet_life_time = 14,
                        .address = address_of(1)},
            .service_id = kServiceId,
            .qpn = kActiveQpn,
            .starting_psn = 0x123456,
            .path_mtu = 5,
            .pkey = 0xFFFF,
            .responder_resources = 4,
            .initiator_depth = 8,
            .remote_cm_response_timeout = 20,
            .local_cm_response_timeout = 20,
            .retry_count = 7,
            .rnr_retry_count = 6,
            .max_cm_retries = 3};
}

CmPair::CmPair() {
    listener = passive.cm.create().value();
    EXPECT_EQ(passive.cm.listen(listener, kServiceId), 0);
    active.id = active.cm.create().value();
}

void CmPair::connect(const ReqParameters& parameters) {
    ASSERT_EQ(active.connection().send_req(parameters), 0);
    run();
}

}  // namespace simverbs::cm::test

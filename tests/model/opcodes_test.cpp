// Work request opcodes against the matrix of ibv_post_send(3), services against their descriptions.
#include "simverbs/model/opcodes.hpp"

#include <array>
#include <optional>
#include <string_view>

#include <gtest/gtest.h>

#include "simverbs/model/services.hpp"

#include "tests/model/opcode_oracle.hpp"

namespace simverbs {
namespace {

using oracle::kManual;
using oracle::may_post;

TEST(WrOpcodes, AreAllowedWhereTheManualAllowsThem) {
    ASSERT_EQ(kManual.size(), kWrOpcodes.size());
    for (const oracle::OpcodeLine& line : kManual) {
        for (const Service service : oracle::kOpcodeColumns) {
            EXPECT_EQ(properties(line.opcode).services.contains(service),
                      may_post(line.opcode, service))
                << to_string(line.opcode) << " on " << to_string(service);
        }
    }
}

TEST(WrOpcodes, HaveAWireOpcodeOnEachServiceThatAllowsThem) {
    for (const WrOpcodeProperties& row : kWrOpcodes) {
        for (const ServiceProperties& service : kServices) {
            if (!row.services.contains(service.service) || row.message == MessageKind::kNone ||
                service.wire_transport == WireTransport::kNone) {
                continue;
            }
            EXPECT_TRUE(encode_opcode(service.wire_transport, row.message, PacketPosition::kOnly,
                                      row.trailer))
                << row.name << " on " << service.name;
        }
    }
}

TEST(WrOpcodes, AgreeWithWhatTheServiceOffers) {
    for (const WrOpcodeProperties& row : kWrOpcodes) {
        for (const ServiceProperties& service : kServices) {
            if (!row.services.contains(service.service)) {
                continue;
            }
            EXPECT_TRUE(service.has_requester) << row.name << " on " << service.name;
            EXPECT_TRUE(row.message != MessageKind::kWrite || service.writes);
            EXPECT_TRUE(row.message != MessageKind::kRead || service.reads);
            EXPECT_TRUE(!row.atomic || service.atomics);
        }
    }
}

TEST(WrOpcodes, ThatConsumeAReceiveNameItsCompletion) {
    for (const WrOpcodeProperties& row : kWrOpcodes) {
        EXPECT_EQ(row.consumes_receive, row.receive_completion.has_value()) << row.name;
        EXPECT_EQ(row.addresses_remote, !row.remote_right.empty()) << row.name;
        EXPECT_FALSE(row.returns_data && row.may_be_inline) << row.name;
    }
}

TEST(WrOpcodes, AnUnknownValueHasNoRow) {
    for (const std::uint32_t value : {12U, 13U, 16U, 99U}) {
        EXPECT_EQ(find_wr_opcode(value), nullptr);
    }
    EXPECT_EQ(find_wr_opcode(2), &properties(WrOpcode::kSend));
}

TEST(Services, EachHasOneRow) {
    Services seen;
    for (const ServiceProperties& row : kServices) {
        EXPECT_FALSE(seen.intersects(row.service)) << row.name;
        seen = seen | row.service;
        EXPECT_EQ(&properties(row.service), &row);
        EXPECT_EQ(find_service(row.ibv_qp_type), &row);
    }
    EXPECT_EQ(seen, kAllServices);
}

TEST(Services, PropertiesFitTogether) {
    for (const ServiceProperties& row : kServices) {
        EXPECT_TRUE(row.acked || !row.retries) << row.name;
        EXPECT_TRUE(row.acked || !row.reads) << row.name;
        EXPECT_NE(row.connected && row.uses_ah, true) << row.name;
        EXPECT_EQ(row.acked, kAckedServices.contains(row.service)) << row.name;
        EXPECT_EQ(row.connected, kConnectedServices.contains(row.service)) << row.name;
        EXPECT_EQ(peer_of(peer_of(row.service)), row.service);
        EXPECT_TRUE(!row.has_requester || properties(peer_of(row.service)).has_responder)
            << row.name;
        EXPECT_TRUE(!row.has_receive_queue || row.has_responder) << row.name;
    }
}

TEST(Services, WhoReceivesFromWhere) {
    EXPECT_TRUE(properties(Service::kXrcTgt).srq_from_packet);
    EXPECT_FALSE(properties(Service::kUc).may_use_srq);
    EXPECT_TRUE(properties(Service::kUd).receives_grh_space);
    EXPECT_FALSE(properties(Service::kXrcTgt).has_requester);
    EXPECT_FALSE(properties(Service::kXrcIni).has_responder);
}

}  // namespace
}  // namespace simverbs

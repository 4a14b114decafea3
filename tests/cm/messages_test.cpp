#include "simverbs/cm/messages.hpp"

#include <functional>
#include <numeric>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/core/random.hpp"

namespace simverbs::cm {
namespace {

namespace header = fabric::mad::header;

// A field as Linux declares it in ibta_vol1_c12.h: byte of the message behind the MAD header, bit
// of that byte counted from the most significant one, width in bits.
struct Row {
    std::string_view name;
    Message empty;
    std::size_t byte;
    std::size_t bit;
    std::size_t width;
    std::function<void(Message&, std::uint64_t)> set;
};

template <class Type, class Set>
Row row(std::string_view name, std::size_t byte, std::size_t bit, std::size_t width, Set set) {
    return {name,
            Type{},
            byte,
            bit,
            width,
            [set](Message& message, std::uint64_t value) {
                set(std::get<Type>(message), value); }};
}

template <class Number>
void assign(Number& member, std::uint64_t value) {
    member = static_cast<Number>(value);
}
template <class Tag, class Rep>
void assign(fabric::StrongId<Tag, Rep>& member, std::uint64_t value) {
    member = fabric::StrongId<Tag, Rep>(static_cast<Rep>(value));
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type has none
#define NUMBER(type, member, byte, bit, width)     \
    row<type>(#type "." #member, byte, bit, width, \
              [](type& m, std::uint64_t v) { assign(m.member, v); })
// NOLINTEND(bugprone-macro-parentheses)

// clang-format off
std::vector<Row> req_rows() {
    return {
        NUMBER(Req, local_comm_id, 0, 0, 32),            NUMBER(Req, ece.vendor_id, 5, 0, 24),
        NUMBER(Req, service_id, 8, 0, 64),               NUMBER(Req, local_ca_guid, 16, 0, 64),
        NUMBER(Req, local_qkey, 28, 0, 32),              NUMBER(Req, local_qpn, 32, 0, 24),
        NUMBER(Req, responder_resources, 35, 0, 8),      NUMBER(Req, local_eecn, 36, 0, 24),
        NUMBER(Req, initiator_depth, 39, 0, 8),          NUMBER(Req, remote_eecn, 40, 0, 24),
        NUMBER(Req, remote_cm_response_timeout, 43, 0, 5),
        NUMBER(Req, transport_service_type, 43, 5, 2),   NUMBER(Req, end_to_end_flow_control, 43, 7, 1),
        NUMBER(Req, starting_psn, 44, 0, 24),            NUMBER(Req, local_cm_response_timeout, 47, 0, 5),
        NUMBER(Req, retry_count, 47, 5, 3),              NUMBER(Req, pkey, 48, 0, 16),
        NUMBER(Req, path_mtu, 50, 0, 4),                 NUMBER(Req, rdc_exists, 50, 4, 1),
        NUMBER(Req, rnr_retry_count, 50, 5, 3),          NUMBER(Req, max_cm_retries, 51, 0, 4),
        NUMBER(Req, srq, 51, 4, 1),                      NUMBER(Req, extended_transport_type, 51, 5, 3),
        NUMBER(Req, primary.local_lid, 52, 0, 16),       NUMBER(Req, primary.remote_lid, 54, 0, 16),
        NUMBER(Req, primary.flow_label, 88, 0, 20),      NUMBER(Req, primary.packet_rate, 91, 2, 6),
        NUMBER(Req, primary.traffic_class, 92, 0, 8),    NUMBER(Req, primary.hop_limit, 93, 0, 8),
        NUMBER(Req, primary.sl, 94, 0, 4),               NUMBER(Req, primary.subnet_local, 94, 4, 1),
        NUMBER(Req, primary.local_ack_timeout, 95, 0, 5),
        NUMBER(Req, alternate.local_lid, 96, 0, 16),     NUMBER(Req, alternate.remote_lid, 98, 0, 16),
        NUMBER(Req, alternate.flow_label, 132, 0, 20),   NUMBER(Req, alternate.packet_rate, 135, 2, 6),
        NUMBER(Req, alternate.traffic_class, 136, 0, 8), NUMBER(Req, alternate.hop_limit, 137, 0, 8),
        NUMBER(Req, alternate.sl, 138, 0, 4),            NUMBER(Req, alternate.subnet_local, 138, 4, 1),
        NUMBER(Req, alternate.local_ack_timeout, 139, 0, 5),
        NUMBER(Req, sap_supported, 139, 5, 1),
    };
}

std::vector<Row> other_rows() {
    return {
        NUMBER(Mra, local_comm_id, 0, 0, 32),            NUMBER(Mra, remote_comm_id, 4, 0, 32),
        NUMBER(Mra, answers, 8, 0, 2),                   NUMBER(Mra, service_timeout, 9, 0, 5),
        NUMBER(Rej, local_comm_id, 0, 0, 32),            NUMBER(Rej, remote_comm_id, 4, 0, 32),
        NUMBER(Rej, answers, 8, 0, 2),                   NUMBER(Rej, reason, 10, 0, 16),
        NUMBER(Rep, local_comm_id, 0, 0, 32),            NUMBER(Rep, remote_comm_id, 4, 0, 32),
        NUMBER(Rep, local_qkey, 8, 0, 32),               NUMBER(Rep, local_qpn, 12, 0, 24),
        NUMBER(Rep, local_eecn, 16, 0, 24),              NUMBER(Rep, starting_psn, 20, 0, 24),
        NUMBER(Rep, responder_resources, 24, 0, 8),      NUMBER(Rep, initiator_depth, 25, 0, 8),
        NUMBER(Rep, target_ack_delay, 26, 0, 5),         NUMBER(Rep, failover_accepted, 26, 5, 2),
        NUMBER(Rep, end_to_end_flow_control, 26, 7, 1),  NUMBER(Rep, rnr_retry_count, 27, 0, 3),
        NUMBER(Rep, srq, 27, 3, 1),                      NUMBER(Rep, local_ca_guid, 28, 0, 64),
        NUMBER(Rtu, local_comm_id, 0, 0, 32),            NUMBER(Rtu, remote_comm_id, 4, 0, 32),
        NUMBER(Dreq, local_comm_id, 0, 0, 32),           NUMBER(Dreq, remote_comm_id, 4, 0, 32),
        NUMBER(Dreq, remote_qpn, 8, 0, 24),
        NUMBER(Drep, local_comm_id, 0, 0, 32),           NUMBER(Drep, remote_comm_id, 4, 0, 32),
        NUMBER(SidrReq, request_id, 0, 0, 32),           NUMBER(SidrReq, pkey, 4, 0, 16),
        NUMBER(SidrReq, service_id, 8, 0, 64),
        NUMBER(SidrRep, request_id, 0, 0, 32),           NUMBER(SidrRep, status, 4, 0, 8),
        NUMBER(SidrRep, qpn, 8, 0, 24),                  NUMBER(SidrRep, service_id, 12, 0, 64),
        NUMBER(SidrRep, qkey, 20, 0, 32),
        NUMBER(Lap, local_comm_id, 0, 0, 32),            NUMBER(Lap, remote_comm_id, 4, 0, 32),
        NUMBER(Lap, remote_qpn, 12, 0, 24),              NUMBER(Lap, remote_cm_response_timeout, 15, 0, 5),
        NUMBER(Lap, alternate.local_lid, 20, 0, 16),     NUMBER(Lap, alternate.remote_lid, 22, 0, 16),
        NUMBER(Lap, alternate.flow_label, 56, 0, 20),    NUMBER(Lap, alternate.traffic_class, 59, 0, 8),
        NUMBER(Lap, alternate.hop_limit, 60, 0, 8),      NUMBER(Lap, alternate.packet_rate, 61, 2, 6),
        NUMBER(Lap, alternate.sl, 62, 0, 4),             NUMBER(Lap, alternate.subnet_local, 62, 4, 1),
        NUMBER(Lap, alternate.local_ack_timeout, 63, 0, 5),
        NUMBER(Apr, local_comm_id, 0, 0, 32),            NUMBER(Apr, remote_comm_id, 4, 0, 32),
        NUMBER(Apr, status, 9, 0, 8),
    };
}

// A field of whole bytes, and the byte that holds its length, where there is one.
struct BytesRow {
    std::string_view name;
    std::size_t byte;
    std::size_t bytes;
    std::function<Message(const std::vector<std::uint8_t>&)> make;
    int length_byte = -1;  // that holds the length, from its bit `length_shift` on
    unsigned length_shift = 0;
};

template <class Type>
std::function<Message(const std::vector<std::uint8_t>&)> with_data() {
    return [](const std::vector<std::uint8_t>& bytes) {
        Type message;
        message.private_data = bytes;
        return Message(message);
    };
}
template <class Type>
std::function<Message(const std::vector<std::uint8_t>&)> with_info() {
    return [](const std::vector<std::uint8_t>& bytes) {
        Type message;
        message.info = bytes;
        return Message(message);
    };
}
template <class Type, class Choose>
std::function<Message(const std::vector<std::uint8_t>&)> with_gid(Choose choose) {
    return [choose](const std::vector<std::uint8_t>& bytes) {
        Type message;
        std::copy(bytes.begin(), bytes.end(), choose(message).bytes.begin());
        return Message(message);
    };
}

std::vector<BytesRow> bytes_rows() {
    return {
        {"REQ primary local GID", 56, 16, with_gid<Req>([](Req& m) -> auto& { return m.primary.local_gid; })},
        {"REQ primary remote GID", 72, 16, with_gid<Req>([](Req& m) -> auto& { return m.primary.remote_gid; })},
        {"REQ alternate local GID", 100, 16, with_gid<Req>([](Req& m) -> auto& { return m.alternate.local_gid; })},
        {"REQ alternate remote GID", 116, 16, with_gid<Req>([](Req& m) -> auto& { return m.alternate.remote_gid; })},
        {"LAP local GID", 24, 16, with_gid<Lap>([](Lap& m) -> auto& { return m.alternate.local_gid; })},
        {"LAP remote GID", 40, 16, with_gid<Lap>([](Lap& m) -> auto& { return m.alternate.remote_gid; })},
        {"REQ data", 140, 92, with_data<Req>()},       {"MRA data", 10, 222, with_data<Mra>()},
        {"REJ data", 84, 148, with_data<Rej>()},       {"REP data", 36, 196, with_data<Rep>()},
        {"RTU data", 8, 224, with_data<Rtu>()},        {"DREQ data", 12, 220, with_data<Dreq>()},
        {"DREP data", 8, 224, with_data<Drep>()},      {"SIDR_REQ data", 16, 216, with_data<SidrReq>()},
        {"SIDR_REP data", 96, 136, with_data<SidrRep>()},
        {"LAP data", 64, 168, with_data<Lap>()},       {"APR data", 84, 148, with_data<Apr>()},
        {"REJ ARI", 12, 72, with_info<Rej>(), 9, 1},   {"APR info", 12, 72, with_info<Apr>(), 8, 0},
        {"SIDR_REP info", 24, 72, with_info<SidrRep>(), 5, 0},
    };
}
// clang-format on
#undef NUMBER

constexpr std::size_t kMadHeader = 24;

// Whole bytes of a datagram that differ from those of the empty message.
std::vector<std::uint8_t> difference(const Message& message, const Message& empty) {
    const Datagram a = build(message);
    const Datagram b = build(empty);
    std::vector<std::uint8_t> bits(a.bytes.size());
    for (std::size_t i = 0; i < bits.size(); ++i) {
        bits[i] = a.bytes[i] ^ b.bytes[i];
    }
    return bits;
}

void expect_place(const Row& field) {
    Message message = field.empty;
    field.set(message, ~std::uint64_t{0});
    std::vector<std::uint8_t> expected(fabric::mad::kDatagramBytes);
    for (std::size_t i = 0; i < field.width; ++i) {
        const std::size_t bit = (kMadHeader + field.byte) * 8 + field.bit + i;
        expected[bit / 8] |= static_cast<std::uint8_t>(0x80U >> bit % 8);
    }
    EXPECT_EQ(difference(message, field.empty), expected) << field.name;
    // The least significant bit is the last one.
    message = field.empty;
    field.set(message, 1);
    const std::size_t last = (kMadHeader + field.byte) * 8 + field.bit + field.width - 1;
    EXPECT_EQ(difference(message, field.empty)[last / 8], 0x80U >> last % 8) << field.name;
}

TEST(CmMessages, FieldsLieWhereLinuxHasThem) {
    for (const Row& field : req_rows()) {
        expect_place(field);
    }
    for (const Row& field : other_rows()) {
        expect_place(field);
    }
}

TEST(CmMessages, GidsInformationAndPrivateDataLieWhereLinuxHasThem) {
    for (const BytesRow& field : bytes_rows()) {
        std::vector<std::uint8_t> bytes(field.bytes);
        std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
        const Message message = field.make(bytes);
        const Message empty = field.make({});
        std::vector<std::uint8_t> expected(fabric::mad::kDatagramBytes);
        std::copy(bytes.begin(), bytes.end(),
                  expected.begin() + static_cast<std::ptrdiff_t>(kMadHeader + field.byte));
        if (field.length_byte >= 0) {
            expected[kMadHeader + static_cast<std::size_t>(field.length_byte)] =
                static_cast<std::uint8_t>(field.bytes << field.length_shift);
        }
        EXPECT_EQ(difference(message, empty), expected) << field.name;
    }
}

TEST(CmMessages, TheVendorIdOfAnAnswerIsCutIntoReservedBytes) {
    Rep rep;
    rep.ece = {.vendor_id = 0x123456, .options = 0xCAFE'F00D};
    const Datagram built = build(rep);
    EXPECT_EQ(built.bytes[kMadHeader + 15], 0x12);
    EXPECT_EQ(built.bytes[kMadHeader + 19], 0x34);
    EXPECT_EQ(built.bytes[kMadHeader + 23], 0x56);
    EXPECT_EQ(built.modifier(), 0xCAFE'F00DU);
    SidrRep sidr;
    sidr.ece = {.vendor_id = 0x123456, .options = 7};
    const Datagram resolved = build(sidr);
    EXPECT_EQ(resolved.bytes[kMadHeader + 6], 0x12);
    EXPECT_EQ(resolved.bytes[kMadHeader + 7], 0x34);
    EXPECT_EQ(resolved.bytes[kMadHeader + 11], 0x56);
    EXPECT_EQ(resolved.modifier(), 7U);
}

TEST(CmMessages, TheHeaderIsThatOfTheClass) {
    constexpr std::array<std::uint8_t, 24> kHeader = {
        1,    7,    2,    3,    0, 0,    0, 0, 0x11, 0x22, 0x33, 0x44,
        0x55, 0x66, 0x77, 0x88, 0, 0x14, 0, 0, 0,    0,    0,    0};
    Rtu rtu;
    rtu.transaction_id = 0x1122'3344'5566'7788;
    const Datagram built = build(rtu);
    EXPECT_TRUE(std::equal(kHeader.begin(), kHeader.end(), built.bytes.begin()));
}

Datagram noise(fabric::RandomStream& random, std::uint16_t attribute) {
    Datagram datagram;
    for (std::uint8_t& byte : datagram.bytes) {
        byte = static_cast<std::uint8_t>(random.below(256));
    }
    const Datagram good = build(Rtu{});
    std::copy_n(good.bytes.begin(), 4, datagram.bytes.begin());
    datagram.set(header::kAttributeId, attribute);
    return datagram;
}

TEST(CmMessages, WhatIsParsedIsBuiltAgain) {
    fabric::RandomStream random(1, "cm_test", "messages");
    for (int i = 0; i < 1000; ++i) {
        const auto attribute = static_cast<std::uint16_t>(random.between(0x10, 0x1A));
        const std::optional<Message> message = parse(noise(random, attribute));
        ASSERT_TRUE(message);
        EXPECT_EQ(message->index(), attribute - 0x10U);
        const std::optional<Message> again = parse(build(*message));
        ASSERT_TRUE(again);
        EXPECT_EQ(*again, *message);
    }
}

TEST(CmMessages, ALengthBeyondTheRoomIsCut) {
    Datagram built = build(Rej{});
    built.bytes[kMadHeader + 9] = 0xFE;  // 127 bytes
    EXPECT_EQ(std::get<Rej>(parse(built).value()).info.size(), 72U);
    built = build(Apr{});
    built.bytes[kMadHeader + 8] = 0xFF;
    EXPECT_EQ(std::get<Apr>(parse(built).value()).info.size(), 72U);
}

TEST(CmMessages, OtherClassesVersionsMethodsAndAttributesAreNoMessages) {
    const Datagram good = build(Req{});
    ASSERT_TRUE(parse(good));
    for (const auto& [field, value] :
         std::vector<std::pair<fabric::mad::Field, std::uint64_t>>{{header::kBaseVersion, 2},
                                                                   {header::kClass, 3},
                                                                   {header::kClassVersion, 1},
                                                                   {header::kMethod, 0x83},
                                                                   {header::kMethod, 1},
                                                                   {header::kAttributeId, 1},
                                                                   {header::kAttributeId, 0x0F},
                                                                   {header::kAttributeId, 0x1B}}) {
        Datagram other = good;
        other.set(field, value);
        EXPECT_FALSE(parse(other)) << value;
    }
}

TEST(CmMessages, TheTransportOfARequestSaysTheServiceOfItsReceiver) {
    struct Pair {
        Service sender;
        int type;
        int extended;
        Service receiver;
    };
    for (const Pair& pair :
         {Pair{Service::kRc, 0, 0, Service::kRc}, Pair{Service::kUc, 1, 0, Service::kUc},
          Pair{Service::kXrcIni, 3, 1, Service::kXrcTgt}}) {
        Req request;
        set_transport(request, pair.sender);
        EXPECT_EQ(request.transport_service_type, pair.type);
        EXPECT_EQ(request.extended_transport_type, pair.extended);
        EXPECT_EQ(accepted_service(request), pair.receiver);
    }
    Req datagrams;
    datagrams.transport_service_type = 2;
    EXPECT_FALSE(accepted_service(datagrams));
    Req reserved;
    reserved.transport_service_type = 3;
    reserved.extended_transport_type = 2;
    EXPECT_FALSE(accepted_service(reserved));
}

}  // namespace
}  // namespace simverbs::cm

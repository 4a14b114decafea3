#include "simverbs/cm/messages.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <type_traits>

#include "fabric/core/assert.hpp"
#include "fabric/core/strong_id.hpp"

#include "simverbs/cm/message_fields.hpp"

namespace simverbs::cm {
namespace {

namespace header = fabric::mad::header;

enum TransportServiceType : std::uint8_t { kTypeRc = 0, kTypeUc = 1, kTypeExtended = 3 };
constexpr std::uint8_t kExtendedXrc = 1;

template <class Number>
concept Plain = std::integral<Number> || std::is_enum_v<Number>;

// Writes the fields of a message into a datagram.
class Writer {
  public:
    explicit Writer(Datagram& datagram) : datagram_(datagram) {}

    template <Plain Number>
    void number(Field field, const Number& value) {
        put(field, static_cast<std::uint64_t>(value));
    }
    template <class Tag, class Rep>
    void number(Field field, const fabric::StrongId<Tag, Rep>& value) {
        put(field, value.value());
    }
    void gid(std::size_t byte, const fabric::Gid& value) {
        fabric::mad::set_gid(datagram_.bytes, byte, value);
    }
    void data(std::size_t byte, std::size_t room, const PrivateData& value) {
        SIMVERBS_ASSERT(value.size() <= room, "{} bytes in a room of {}", value.size(), room);
        std::copy(value.begin(), value.end(), datagram_.from(byte).begin());
    }
    void info(std::size_t byte, std::size_t room, Field length, const PrivateData& value) {
        data(byte, room, value);
        put(length, value.size());
    }
    void split(std::span<const Field> parts, const std::uint32_t& value) {
        unsigned below = 0;
        for (std::size_t i = parts.size(); i-- > 0;) {
            put(parts[i], value >> below);
            below += parts[i].bits;
        }
    }

  private:
    void put(Field field, std::uint64_t value) {
        const std::uint64_t mask =
            field.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << field.bits) - 1;
        datagram_.set(field, value & mask);
    }

    Datagram& datagram_;
};

// Reads the fields of a message from a datagram.
class Reader {
  public:
    explicit Reader(const Datagram& datagram) : datagram_(datagram) {}

    template <Plain Number>
    void number(Field field, Number& value) const {
        value = static_cast<Number>(datagram_.get(field));
    }
    template <class Tag, class Rep>
    void number(Field field, fabric::StrongId<Tag, Rep>& value) const {
        value = fabric::StrongId<Tag, Rep>(static_cast<Rep>(datagram_.get(field)));
    }
    void gid(std::size_t byte, fabric::Gid& value) const {
        value = fabric::mad::get_gid(datagram_.bytes, byte);
    }
    void data(std::size_t byte, std::size_t room, PrivateData& value) const {
        const fabric::mad::ConstBytes bytes = datagram_.from(byte).first(room);
        value.assign(bytes.begin(), bytes.end());
    }
    // A peer may state a length beyond the end of the field: the field is all there is.
    void info(std::size_t byte, std::size_t room, Field length, PrivateData& value) const {
        data(byte, std::min<std::size_t>(room, datagram_.get(length)), value);
    }
    void split(std::span<const Field> parts, std::uint32_t& value) const {
        value = 0;
        for (const Field& part : parts) {
            value = value << part.bits | static_cast<std::uint32_t>(datagram_.get(part));
        }
    }

  private:
    const Datagram& datagram_;
};

template <class Codec, class AnyPath>
void fields(Codec& codec, const PathFields& at, AnyPath& path) {
    codec.number(at.local_lid, path.local_lid);
    codec.number(at.remote_lid, path.remote_lid);
    codec.gid(at.local_gid, path.local_gid);
    codec.gid(at.remote_gid, path.remote_gid);
    codec.number(at.flow_label, path.flow_label);
    codec.number(at.packet_rate, path.packet_rate);
    codec.number(at.traffic_class, path.traffic_class);
    codec.number(at.hop_limit, path.hop_limit);
    codec.number(at.sl, path.sl);
    codec.number(at.subnet_local, path.subnet_local);
    codec.number(at.local_ack_timeout, path.local_ack_timeout);
}

constexpr std::size_t room_of(CmMessage message) {
    return properties(message).private_bytes;
}
constexpr std::size_t info_room_of(CmMessage message) {
    return properties(message).info_bytes;
}

template <class Codec, class Any>
void comm_ids(Codec& codec, Any& message) {
    codec.number(kLocalCommId, message.local_comm_id);
    codec.number(kRemoteCommId, message.remote_comm_id);
}

template <class Codec, class Any>
requires std::same_as<std::remove_const_t<Any>, Req>
void fields(Codec& codec, Any& message) {
    codec.number(header::kAttributeModifier, message.ece.options);
    codec.number(kLocalCommId, message.local_comm_id);
    codec.number(req::kVendorId, message.ece.vendor_id);
    codec.number(req::kServiceId, message.service_id);
    codec.number(req::kLocalCaGuid, message.local_ca_guid);
    codec.number(req::kLocalQkey, message.local_qkey);
    codec.number(req::kLocalQpn, message.local_qpn);
    codec.number(req::kResponderResources, message.responder_resources);
    codec.number(req::kLocalEecn, message.local_eecn);
    codec.number(req::kInitiatorDepth, message.initiator_depth);
    codec.number(req::kRemoteEecn, message.remote_eecn);
    codec.number(req::kRemoteCmResponseTimeout, message.remote_cm_response_timeout);
    codec.number(req::kTransportServiceType, message.transport_service_type);
    codec.number(req::kEndToEndFlowControl, message.end_to_end_flow_control);
    codec.number(req::kStartingPsn, message.starting_psn);
    codec.number(req::kLocalCmResponseTimeout, message.local_cm_response_timeout);
    codec.number(req::kRetryCount, message.retry_count);
    codec.number(req::kPkey, message.pkey);
    codec.number(req::kPathMtu, message.path_mtu);
    codec.number(req::kRdcExists, message.rdc_exists);
    codec.number(req::kRnrRetryCount, message.rnr_retry_count);
    codec.number(req::kMaxCmRetries, message.max_cm_retries);
    codec.number(req::kSrq, message.srq);
    codec.number(req::kExtendedTransportType, message.extended_transport_type);
    fields(codec, req::kPrimaryPath, message.primary);
    fields(codec, req::kAlternatePath, message.alternate);
    codec.number(req::kSapSupported, message.sap_supported);
    codec.data(req::kPrivateData, room_of(CmMessage::kReq), message.private_data);
}

template <class Codec, class Any>
requires std::same_as<std::remove_const_t<Any>, Mra>
void fields(Codec& codec, Any& message) {
    comm_ids(codec, message);
    codec.number(mra::kMessageMraed, message.answers);
    codec.number(mra::kServiceTimeout, message.service_timeout);
    codec.data(mra::kPrivateData, room_of(CmMessage::kMra), message.private_data);
}

template <class Codec, class Any>
requires std::same_as<std::remove_const_t<Any>, Rej>
void fields(Codec& codec, Any& message) {
    comm_ids(codec, message);
    codec.number(rej::kMessageRejected, message.answers);
    codec.number(rej::kReason, message.reason);
    codec.info(rej::kInfo, info_room_of(CmMessage::kRej), rej::kInfoLength, message.info);
    codec.data(rej::kPrivateData, room_of(CmMessage::kRej), message.private_data);
}

template <class Codec, class Any>
requires std::same_as<std::remove_const_t<Any>, Rep>
void fields(Codec& codec, Any& message) {
    codec.number(header::kAttributeModifier, message.ece.options);
    comm_ids(codec, message);
    codec.split(std::array{rep::kVendorIdHigh, rep::kVendorIdMiddle, rep::kVendorIdLow},
                message.ece.vendor_id);
    codec.number(rep::kLocalQkey, message.local_qkey);
    codec.number(rep::kLocalQpn, message.local_qpn);
    codec.number(rep::kLocalEecn, message.local_eecn);
    codec.number(rep::kStartingPsn, message.starting_psn);
    codec.number(rep::kResponderResources, message.responder_resources);
    codec.number(rep::kInitiatorDepth, message.initiator_depth);
    codec.number(rep::kTargetAckDelay, message.target_ack_delay);
    codec.number(rep::kFailoverAccepted, message.failover_accepted);
    codec.number(rep::kEndToEndFlowControl, message.end_to_end_flow_control);
    codec.number(rep::kRnrRetryCount, message.rnr_retry_count);
    codec.number(rep::kSrq, message.srq);
    codec.number(rep::kLocalCaGuid, message.local_ca_guid);
    codec.data(rep::kPrivateData, room_of(CmMessage::kRep), message.private_data);
}

template <class Codec, class Any>
requires std::same_as<std::remove_const_t<Any>, Rtu>
void fields(Codec& codec, Any& message) {
    comm_ids(codec, message);
    codec.data(rtu::kPrivateData, room_of(CmMessage::kRtu), message.private_data);
}

template <class Codec, class Any>
requires std::same_as<std::remove_const_t<Any>, Dreq>
void fields(Codec& codec, Any& message) {
    comm_ids(codec, message);
    codec.number(dreq::kRemoteQpn, message.remote_qpn);
    codec.data(dreq::kPrivateData, room_of(CmMessage::kDreq), message.private_data);
}

template <class Codec, class Any>
requires std::same_as<std::remove_const_t<Any>, Drep>
void fields(Codec& codec, Any& message) {
    comm_ids(codec, message);
    codec.data(drep::kPrivateData, room_of(CmMessage::kDrep), message.private_data);
}

template <class Codec, class Any>
requires std::same_as<std::remove_const_t<Any>, SidrReq>
void fields(Codec& codec, Any& message) {
    codec.number(sidr_req::kRequestId, message.request_id);
    codec.number(sidr_req::kPkey, message.pkey);
    codec.number(sidr_req::kServiceId, message.service_id);
    codec.data(sidr_req::kPrivateData, room_of(CmMessage::kSidrReq), message.private_data);
}

template <class Codec, class Any>
requires std::same_as<std::remove_const_t<Any>, SidrRep>
void fields(Codec& codec, Any& message) {
    codec.number(header::kAttributeModifier, message.ece.options);
    codec.number(sidr_rep::kRequestId, message.request_id);
    codec.number(sidr_rep::kStatus, message.status);
    codec.split(std::array{sidr_rep::kVendorIdHigh, sidr_rep::kVendorIdLow}, message.ece.vendor_id);
    codec.number(sidr_rep::kQpn, message.qpn);
    codec.number(sidr_rep::kServiceId, message.service_id);
    codec.number(sidr_rep::kQkey, message.qkey);
    codec.info(sidr_rep::kInfo, info_room_of(CmMessage::kSidrRep), sidr_rep::kInfoLength,
               message.info);
    codec.data(sidr_rep::kPrivateData, room_of(CmMessage::kSidrRep), message.private_data);
}

template <class Codec, class Any>
requires std::same_as<std::remove_const_t<Any>, Lap>
void fields(Codec& codec, Any& message) {
    comm_ids(codec, message);
    codec.number(lap::kRemoteQpn, message.remote_qpn);
    codec.number(lap::kRemoteCmResponseTimeout, message.remote_cm_response_timeout);
    fields(codec, lap::kAlternatePath, message.alternate);
    codec.data(lap::kPrivateData, room_of(CmMessage::kLap), message.private_data);
}

template <class Codec, class Any>
requires std::same_as<std::remove_const_t<Any>, Apr>
void fields(Codec& codec, Any& message) {
    comm_ids(codec, message);
    codec.number(apr::kStatus, message.status);
    codec.info(apr::kInfo, info_room_of(CmMessage::kApr), apr::kInfoLength, message.info);
    codec.data(apr::kPrivateData, room_of(CmMessage::kApr), message.private_data);
}

// Returns an empty message of the kind with this index in Message.
template <std::size_t kIndex = 0>
Message empty_message(std::size_t index) {
    if constexpr (kIndex + 1 < std::variant_size_v<Message>) {
        if (index != kIndex) {
            return empty_message<kIndex + 1>(index);
        }
    }
    return Message(std::in_place_index<kIndex>);
}

}  // namespace

Datagram build(const Message& message) {
    Datagram datagram;
    datagram.set(header::kBaseVersion, 1);
    datagram.set(header::kClass, static_cast<std::uint64_t>(fabric::mad::Class::kCommunication));
    datagram.set(header::kClassVersion, kClassVersion);
    datagram.set(header::kMethod, static_cast<std::uint64_t>(fabric::mad::Method::kSend));
    datagram.set(header::kAttributeId,
                 properties(static_cast<CmMessage>(message.index())).attribute_id);
    std::visit(
        [&datagram](const auto& any) {
            Writer writer(datagram);
            writer.number(header::kTransactionId, any.transaction_id);
            fields(writer, any);
        },
        message);
    return datagram;
}

std::optional<Message> parse(const Datagram& datagram) {
    static_assert(std::variant_size_v<Message> == kCmMessages.size());
    const auto row = std::find_if(kCmMessages.begin(), kCmMessages.end(),
                                  [&datagram](const CmMessageProperties& each) {
                                      return each.attribute_id == datagram.attribute();
                                  });
    if (row == kCmMessages.end() || datagram.get(header::kBaseVersion) != 1 ||
        datagram.management_class() != fabric::mad::Class::kCommunication ||
        datagram.get(header::kClassVersion) != kClassVersion ||
        datagram.method() != fabric::mad::Method::kSend) {
        return std::nullopt;
    }
    Message message = empty_message(static_cast<std::size_t>(row->message));
    std::visit(
        [&datagram](auto& any) {
            const Reader reader(datagram);
            reader.number(header::kTransactionId, any.transaction_id);
            fields(reader, any);
        },
        message);
    return message;
}

Rej rejection_of(const Req& refused, RejectReason reason) {
    return {.transaction_id = refused.transaction_id,
            .remote_comm_id = refused.local_comm_id,
            .answers = CmAnswered::kReq,
            .reason = reason};
}

Rej rejection_of(const Rep& refused, RejectReason reason) {
    return {.transaction_id = refused.transaction_id,
            .local_comm_id = refused.remote_comm_id,
            .remote_comm_id = refused.local_comm_id,
            .answers = CmAnswered::kRep,
            .reason = reason};
}

std::optional<Service> accepted_service(const Req& request) {
    switch (request.transport_service_type) {
        case kTypeRc:
            return Service::kRc;
        case kTypeUc:
            return Service::kUc;
        case kTypeExtended:
            return request.extended_transport_type == kExtendedXrc ? std::optional(Service::kXrcTgt)
                                                                   : std::nullopt;
        default:
            return std::nullopt;
    }
}

void set_transport(Req& request, Service service) {
    SIMVERBS_ASSERT(
        service == Service::kRc || service == Service::kUc || service == Service::kXrcIni,
        "a REQ of service {}", to_string(service));
    request.transport_service_type = service == Service::kRc   ? kTypeRc
                                     : service == Service::kUc ? kTypeUc
                                                               : kTypeExtended;
    request.extended_transport_type = service == Service::kXrcIni ? kExtendedXrc : 0;
}

}  // namespace simverbs::cm

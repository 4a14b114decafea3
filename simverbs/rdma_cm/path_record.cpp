#include "simverbs/rdma_cm/path_record.hpp"

#include <algorithm>
#include <bit>

#include "fabric/core/assert.hpp"
#include "fabric/mad/field.hpp"

namespace simverbs::rdma_cm {

using fabric::Gid;
using fabric::Lid;
using fabric::mad::Field;
using fabric::mad::get;
using fabric::mad::set;

namespace {

constexpr Field kServiceId{0, 64};
constexpr std::ptrdiff_t kDgidByte = 8;
constexpr std::ptrdiff_t kSgidByte = 24;
constexpr Field kDlid{320, 16};
constexpr Field kSlid{336, 16};
constexpr Field kRawTraffic{352, 1};
constexpr Field kFlowLabel{356, 20};
constexpr Field kHopLimit{376, 8};
constexpr Field kTrafficClass{384, 8};
constexpr Field kReversible{392, 1};
constexpr Field kNumbPath{393, 7};
constexpr Field kPkey{400, 16};
constexpr Field kQosClass{416, 12};
constexpr Field kSl{428, 4};
constexpr Field kMtuSelector{432, 2};
constexpr Field kMtu{434, 6};
constexpr Field kRateSelector{440, 2};
constexpr Field kRate{442, 6};
constexpr Field kLifeTimeSelector{448, 2};
constexpr Field kLifeTime{450, 6};
constexpr Field kPreference{456, 8};

constexpr std::uint64_t low_bits(std::uint64_t value, Field field) {
    return value & ((std::uint64_t{1} << field.bits) - 1);
}

// Turns a number into the bytes of the wire, whatever the order of this machine.
std::uint16_t big_endian(std::uint16_t value) {
    return std::endian::native == std::endian::little
               ? static_cast<std::uint16_t>(value << 8 | value >> 8)
               : value;
}

}  // namespace

std::array<std::uint8_t, kPathRecordBytes> pack(const PathRecord& record) {
    std::array<std::uint8_t, kPathRecordBytes> bytes{};
    set(bytes, kServiceId, record.service_id);
    std::ranges::copy(record.dgid.bytes, bytes.begin() + kDgidByte);
    std::ranges::copy(record.sgid.bytes, bytes.begin() + kSgidByte);
    const auto put = [&bytes](Field field, std::uint64_t value) {
        set(bytes, field, low_bits(value, field));
    };
    put(kDlid, record.dlid.value());
    put(kSlid, record.slid.value());
    put(kRawTraffic, record.raw_traffic ? 1 : 0);
    put(kFlowLabel, record.flow_label);
    put(kHopLimit, record.hop_limit);
    put(kTrafficClass, record.traffic_class);
    put(kReversible, record.reversible ? 1 : 0);
    put(kNumbPath, record.numb_path);
    put(kPkey, record.pkey);
    put(kQosClass, record.qos_class);
    put(kSl, record.sl);
    put(kMtuSelector, record.mtu_selector);
    put(kMtu, record.mtu);
    put(kRateSelector, record.rate_selector);
    put(kRate, record.rate);
    put(kLifeTimeSelector, record.life_time_selector);
    put(kLifeTime, record.life_time);
    put(kPreference, record.preference);
    return bytes;
}

PathRecord unpack_path_record(std::span<const std::uint8_t> bytes) {
    SIMVERBS_ASSERT(bytes.size() >= kPathRecordBytes, "a path record in {} bytes", bytes.size());
    const auto byte = [bytes](Field field) { return static_cast<std::uint8_t>(get(bytes, field)); };
    const auto word = [bytes](Field field) {
        return static_cast<std::uint16_t>(get(bytes, field));
    };
    PathRecord record{.service_id = get(bytes, kServiceId),
                      .dlid = Lid(word(kDlid)),
                      .slid = Lid(word(kSlid)),
                      .raw_traffic = get(bytes, kRawTraffic) != 0,
                      .flow_label = static_cast<std::uint32_t>(get(bytes, kFlowLabel)),
                      .hop_limit = byte(kHopLimit),
                      .traffic_class = byte(kTrafficClass),
                      .reversible = get(bytes, kReversible) != 0,
                      .numb_path = byte(kNumbPath),
                      .pkey = word(kPkey),
                      .qos_class = word(kQosClass),
                      .sl = byte(kSl),
                      .mtu_selector = byte(kMtuSelector),
                      .mtu = byte(kMtu),
                      .rate_selector = byte(kRateSelector),
                      .rate = byte(kRate),
                      .life_time_selector = byte(kLifeTimeSelector),
                      .life_time = byte(kLifeTime),
                      .preference = byte(kPreference)};
    std::copy_n(bytes.begin() + kDgidByte, record.dgid.bytes.size(), record.dgid.bytes.begin());
    std::copy_n(bytes.begin() + kSgidByte, record.sgid.bytes.size(), record.sgid.bytes.begin());
    return record;
}

ib_user_path_rec to_user(const PathRecord& record) {
    ib_user_path_rec user{};
    std::ranges::copy(record.dgid.bytes, std::begin(user.dgid));
    std::ranges::copy(record.sgid.bytes, std::begin(user.sgid));
    user.dlid = big_endian(record.dlid.value());
    user.slid = big_endian(record.slid.value());
    user.raw_traffic = record.raw_traffic ? 1 : 0;
    user.flow_label =
        static_cast<std::uint32_t>(big_endian(static_cast<std::uint16_t>(record.flow_label)))
            << 16 |
        big_endian(static_cast<std::uint16_t>(record.flow_label >> 16));
    user.reversible = record.reversible ? 1 : 0;
    user.mtu = record.mtu;
    user.pkey = big_endian(record.pkey);
    user.hop_limit = record.hop_limit;
    user.traffic_class = record.traffic_class;
    user.numb_path = record.numb_path;
    user.sl = record.sl;
    user.mtu_selector = record.mtu_selector;
    user.rate_selector = record.rate_selector;
    user.rate = record.rate;
    user.packet_life_time_selector = record.life_time_selector;
    user.packet_life_time = record.life_time;
    user.preference = record.preference;
    return user;
}

cm::Path to_cm_path(const PathRecord& record) {
    const bool is_local = record.hop_limit <= 1;
    return {.local_lid = is_local ? record.slid : fabric::kPermissiveLid,
            .remote_lid = is_local ? record.dlid : fabric::kPermissiveLid,
            .local_gid = record.sgid,
            .remote_gid = record.dgid,
            .flow_label = record.flow_label,
            .packet_rate = record.rate,
            .traffic_class = record.traffic_class,
            .hop_limit = record.hop_limit,
            .sl = record.sl,
            .subnet_local = is_local};
}

PathRecord from_cm_path(const cm::Path& path, const cm::QpParameters& qp,
                        std::uint64_t service_id) {
    return {.service_id = service_id,
            .dgid = path.remote_gid,
            .sgid = path.local_gid,
            .dlid = path.remote_lid,
            .slid = path.local_lid,
            .flow_label = path.flow_label,
            .hop_limit = path.hop_limit,
            .traffic_class = path.traffic_class,
            .reversible = true,
            .pkey = qp.pkey,
            .sl = path.sl,
            .mtu_selector = kSelectExactly,
            .mtu = qp.path_mtu,
            .rate_selector = kSelectExactly,
            .rate = path.packet_rate,
            .life_time_selector = kSelectExactly,
            .life_time = static_cast<std::uint8_t>(path.local_ack_timeout -
                                                   (path.local_ack_timeout > 0 ? 1 : 0))};
}

ib_uverbs_ah_attr to_address_vector(const PathRecord& record, fabric::LinkLayer layer,
                                    fabric::PortNumber port, std::uint8_t sgid_index) {
    const bool is_ethernet = layer == fabric::LinkLayer::kEthernet;
    ib_uverbs_ah_attr vector{};
    vector.dlid = is_ethernet ? std::uint16_t{0} : record.dlid.value();
    vector.sl = record.sl;
    vector.static_rate = is_ethernet ? std::uint8_t{0} : record.rate;
    vector.port_num = static_cast<std::uint8_t>(port.value());
    if (is_ethernet || record.hop_limit > 0) {
        vector.is_global = 1;
        std::ranges::copy(record.dgid.bytes, std::begin(vector.grh.dgid));
        vector.grh.flow_label = record.flow_label;
        vector.grh.sgid_index = sgid_index;
        vector.grh.hop_limit = record.hop_limit;
        vector.grh.traffic_class = record.traffic_class;
    }
    return vector;
}

}  // namespace simverbs::rdma_cm

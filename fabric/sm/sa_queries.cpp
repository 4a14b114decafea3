// The records that follow from what the subnet manager has read and written.
#include <algorithm>

#include "fabric/sm/subnet_administration.hpp"
#include "fabric/sm/sweeping_sm.hpp"

namespace fabric {

using mad::SaAttribute;

namespace {

using Bytes = std::vector<std::uint8_t>;

void place(Bytes& record, std::size_t at, mad::ConstBytes part) {
    std::ranges::copy(part, record.begin() + static_cast<std::ptrdiff_t>(at));
}

// A switch's LID is that of its port 0.
Lid lid_of(const SubnetNode& node, std::size_t port) {
    return node.is_switch() ? node.ports[0].lid() : node.ports[port].lid();
}

}  // namespace

std::vector<SubnetAdministration::Record> SubnetAdministration::records_of(
    SaAttribute attribute) const {
    switch (attribute) {
        case SaAttribute::kClassPortInfo:
            return class_port_info();
        case SaAttribute::kNode:
            return nodes();
        case SaAttribute::kPortInfo:
            return port_infos();
        case SaAttribute::kSwitchInfo:
            return switch_infos();
        case SaAttribute::kLink:
            return links();
        case SaAttribute::kLinearForwardingTable:
            return linear_tables();
        case SaAttribute::kMulticastForwardingTable:
            return multicast_tables();
        case SaAttribute::kPkeyTable:
            return pkey_tables();
        case SaAttribute::kGuidInfo:
            return guid_infos();
        case SaAttribute::kSmInfo:
            return sm_infos();
        case SaAttribute::kInformInfoRecord:
            return inform_infos();
        default:
            return {};
    }
}

std::vector<SubnetAdministration::Record> SubnetAdministration::class_port_info() const {
    constexpr std::uint64_t kHasOptionalRecords = 1U << 9;
    constexpr std::uint64_t kHasMultiPath = 1U << 12;
    constexpr std::uint64_t kHasSendOnlyFullMembers = 1U << 12;  // of CapabilityMask2
    Record record(mad::class_port_info::kBytes);
    mad::set(record, mad::class_port_info::kBaseVersion, 1);
    mad::set(record, mad::class_port_info::kClassVersion, 2);
    mad::set(record, mad::class_port_info::kCapabilityMask, kHasOptionalRecords | kHasMultiPath);
    mad::set(record, mad::class_port_info::kCapabilityMask2, kHasSendOnlyFullMembers);
    mad::set(record, mad::class_port_info::kResponseTime, 16);  // 0.27 s
    return {record};
}

// One a port that has a LID (IBA 15.2.5.2).
std::vector<SubnetAdministration::Record> SubnetAdministration::nodes() const {
    std::vector<Record> records;
    for (const auto& [guid, ref] : subnet().end_ports()) {
        const SubnetNode& node = subnet().nodes.at(ref.node);
        Record& record = records.emplace_back(mad::node_record::kBytes);
        mad::set(record, {0, 16}, node.ports[ref.port].lid().value());
        place(record, mad::node_record::kInfo, node.info);
        place(record, mad::node_record::kDescription, node.description);
        mad::Bytes info = mad::Bytes(record).subspan(mad::node_record::kInfo);
        mad::set(info, mad::node_info::kPortGuid, guid.value());
        mad::set(info, mad::node_info::kLocalPort, ref.port);
    }
    return records;
}

std::vector<SubnetAdministration::Record> SubnetAdministration::port_infos() const {
    std::vector<Record> records;
    for (const auto& [guid, node] : subnet().nodes) {
        for (std::size_t number = 0; number < node.ports.size(); ++number) {
            if (!node.ports[number].is_known) {
                continue;
            }
            Record& record = records.emplace_back(mad::port_info_record::kBytes);
            mad::set(record, mad::port_info_record::kLid, lid_of(node, number).value());
            mad::set(record, mad::port_info_record::kPort, number);
            place(record, mad::port_info_record::kInfo, node.ports[number].info);
        }
    }
    return records;
}

std::vector<SubnetAdministration::Record> SubnetAdministration::switch_infos() const {
    std::vector<Record> records;
    for (const auto& [guid, node] : subnet().nodes) {
        if (node.is_switch()) {
            Record& record = records.emplace_back(mad::switch_info_record::kBytes);
            mad::set(record, {0, 16}, lid_of(node, 0).value());
            place(record, 4, node.switch_info);
        }
    }
    return records;
}

std::vector<SubnetAdministration::Record> SubnetAdministration::links() const {
    std::vector<Record> records;
    for (const auto& [guid, node] : subnet().nodes) {
        for (std::size_t number = 1; number < node.ports.size(); ++number) {
            const SubnetPort& port = node.ports[number];
            if (!port.is_known || !port.peer) {
                continue;
            }
            const SubnetNode& other = subnet().nodes.at(port.peer->node);
            Record& record = records.emplace_back(mad::link_record::kBytes);
            mad::set(record, mad::link_record::kFromLid, lid_of(node, number).value());
            mad::set(record, mad::link_record::kFromPort, number);
            mad::set(record, mad::link_record::kToPort, port.peer->port);
            mad::set(record, mad::link_record::kToLid, lid_of(other, port.peer->port).value());
        }
    }
    return records;
}

std::vector<SubnetAdministration::Record> SubnetAdministration::linear_tables() const {
    constexpr std::size_t kBlock = mad::tables::kRoutesPerBlock;
    std::vector<Record> records;
    for (const auto& [guid, node] : subnet().nodes) {
        for (std::size_t first = 0; first < node.linear_table.size(); first += kBlock) {
            Record& record = records.emplace_back(mad::table_record::kBytes);
            mad::set(record, mad::table_record::kLid, lid_of(node, 0).value());
            mad::set(record, mad::table_record::kBlock, first / kBlock);
            for (std::size_t i = 0; i < kBlock; ++i) {
                record[mad::table_record::kData + i] = first + i < node.linear_table.size()
                                                           ? node.linear_table[first + i]
                                                           : mad::tables::kNoRoute;
            }
        }
    }
    return records;
}

std::vector<SubnetAdministration::Record> SubnetAdministration::multicast_tables() const {
    constexpr std::size_t kBlock = mad::tables::kMasksPerBlock;
    std::map<std::tuple<std::uint16_t, std::size_t, std::size_t>, Record> blocks;
    for (const auto& [guid, node] : subnet().nodes) {
        for (const auto& [group, ports] : node.multicast_table) {
            const auto index = static_cast<std::size_t>(group.value() - kFirstMulticastLid.value());
            for (std::size_t port = 0; port < ports.size(); ++port) {
                if (!ports[port]) {
                    continue;
                }
                const std::uint16_t lid = lid_of(node, 0).value();
                Record& record = blocks[{lid, index / kBlock, port / 16}];
                record.resize(mad::table_record::kBytes);
                mad::set(record, mad::table_record::kLid, lid);
                mad::set(record, mad::table_record::kPosition, port / 16);
                mad::set(record, mad::table_record::kGroupBlock, index / kBlock);
                const mad::Field mask = mad::element(
                    {static_cast<std::uint16_t>(8 * mad::table_record::kData), 16}, index % kBlock);
                mad::set(record, mask, mad::get(record, mask) | 1U << port % 16);
            }
        }
    }
    std::vector<Record> records;
    records.reserve(blocks.size());
    for (auto& [place, record] : blocks) {
        records.push_back(std::move(record));
    }
    return records;
}

std::vector<SubnetAdministration::Record> SubnetAdministration::pkey_tables() const {
    constexpr std::size_t kBlock = mad::tables::kPkeysPerBlock;
    std::vector<Record> records;
    for (const auto& [guid, ref] : subnet().end_ports()) {
        const SubnetPort& port = *subnet().find(ref);
        for (std::size_t first = 0; first < port.pkeys.size(); first += kBlock) {
            Record& record = records.emplace_back(mad::table_record::kBytes);
            mad::set(record, mad::table_record::kLid, port.lid().value());
            mad::set(record, mad::table_record::kBlock, first / kBlock);
            mad::set(record, mad::table_record::kPkeyPort, ref.port);
            for (std::size_t i = first; i < std::min(port.pkeys.size(), first + kBlock); ++i) {
                mad::set(
                    record,
                    mad::element({static_cast<std::uint16_t>(8 * mad::table_record::kData), 16},
                                 i - first),
                    port.pkeys[i]);
            }
        }
    }
    return records;
}

std::vector<SubnetAdministration::Record> SubnetAdministration::guid_infos() const {
    std::vector<Record> records;
    for (const auto& [guid, ref] : subnet().end_ports()) {
        const SubnetPort& port = *subnet().find(ref);
        Record& record = records.emplace_back(mad::table_record::kBytes);
        mad::set(record, mad::table_record::kLid, port.lid().value());
        place(record, mad::table_record::kData, port.guids);
    }
    return records;
}

std::vector<SubnetAdministration::Record> SubnetAdministration::sm_infos() const {
    std::vector<Record> records;
    for (const SweepingSm::KnownSm& each : sm_.known_managers()) {
        Record& record = records.emplace_back(mad::sm_info_record::kBytes);
        mad::set(record, {0, 16}, each.lid.value());
        place(record, mad::sm_info_record::kInfo, mad::ConstBytes(each.info).first(21));
    }
    return records;
}

}  // namespace fabric

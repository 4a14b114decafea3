#include "fabric/sm/subnet_administration.hpp"

#include <algorithm>

#include "fabric/core/assert.hpp"
#include "fabric/sm/sweeping_sm.hpp"

namespace fabric {

using mad::Method;
using mad::SaAttribute;
using mad::Status;

namespace {

// [attribute]: how its records are selected from.
std::span<const mad::Component> components_of(SaAttribute attribute) {
    switch (attribute) {
        case SaAttribute::kNode:
            return mad::node_record::kComponents;
        case SaAttribute::kPortInfo:
            return mad::port_info_record::kComponents;
        case SaAttribute::kSwitchInfo:
            return mad::switch_info_record::kComponents;
        case SaAttribute::kLinearForwardingTable:
            return mad::table_record::kLinear;
        case SaAttribute::kMulticastForwardingTable:
            return mad::table_record::kMulticast;
        case SaAttribute::kSmInfo:
            return mad::sm_info_record::kComponents;
        case SaAttribute::kLink:
            return mad::link_record::kComponents;
        case SaAttribute::kGuidInfo:
            return mad::table_record::kGuids;
        case SaAttribute::kPkeyTable:
            return mad::table_record::kPkeys;
        case SaAttribute::kInformInfoRecord:
            return mad::inform_info::kRecordComponents;
        default:
            return {};
    }
}

}  // namespace

SubnetAdministration::SubnetAdministration(SweepingSm& sm) : sm_(sm) {
    AgentSpec spec{.management_class = static_cast<std::uint8_t>(mad::Class::kSubnAdm),
                   .class_version = 2,
                   .joins_rmpp = true};
    for (const Method method :
         {Method::kGet, Method::kSet, Method::kGetTable, Method::kGetMulti, Method::kDelete}) {
        spec.methods.set(static_cast<std::size_t>(method));
    }
    const std::optional<AgentId> agent = sm.port().register_agent(spec, *this);
    SIMVERBS_ASSERT(agent.has_value(), "another subnet administration sits at this port");
    agent_ = *agent;
}

SubnetAdministration::~SubnetAdministration() {
    sm_.port().unregister_agent(agent_);
}

const Subnet& SubnetAdministration::subnet() const {
    return sm_.subnet();
}

Gid SubnetAdministration::gid_of(Guid port) const {
    return make_gid(sm_.policy().subnet_prefix, port);
}

// A standby leaves queries to its master.
void SubnetAdministration::datagram_received(const ReceivedDatagram& received) {
    if (received.answers || sm_.state() != mad::sm_info::State::kMaster ||
        received.bytes.size() < mad::kDatagramBytes) {
        return;
    }
    const mad::ConstBytes bytes = received.bytes;
    const Query query{
        .attribute = static_cast<SaAttribute>(mad::get(bytes, mad::header::kAttributeId)),
        .method = static_cast<Method>(mad::get(bytes, mad::header::kMethod)),
        .mask = mad::get(bytes, mad::sa::kComponentMask),
        .is_trusted = mad::get(bytes, mad::sa::kSmKey) == kTrustedKey,
        .data = bytes.subspan(mad::sa::kDataOffset),
        .received = received};
    if (query.method == Method::kSet && query.attribute == SaAttribute::kMcMember) {
        join(query);
    } else if (query.method == Method::kDelete && query.attribute == SaAttribute::kMcMember) {
        leave(query);
    } else {
        respond(received, execute(query));
    }
}

SubnetAdministration::Answer SubnetAdministration::execute(const Query& query) {
    switch (query.attribute) {
        case SaAttribute::kPath:
            return paths(query);
        case SaAttribute::kMultiPath:
            return multi_paths(query);
        case SaAttribute::kMcMember:
            return members(query);
        case SaAttribute::kService:
            return services(query);
        case SaAttribute::kInformInfo:
            return inform(query);
        default:
            break;
    }
    const bool is_query = query.method == Method::kGet || query.method == Method::kGetTable;
    const bool is_port_info = query.attribute == SaAttribute::kClassPortInfo;
    if (!is_query || (components_of(query.attribute).empty() && !is_port_info)) {
        return {Status::kBadMethodOrAttribute};
    }
    Answer answer{.records = records_of(query.attribute)};
    std::erase_if(answer.records, [&query](const Record& record) {
        return !mad::selects(query.mask, components_of(query.attribute), query.data, record);
    });
    return answer;
}

// Get has one record or says why not; tables go by RMPP, each record on a limit of eight bytes.
void SubnetAdministration::respond(const ReceivedDatagram& request, const Answer& answer) {
    const auto method = static_cast<Method>(mad::get(request.bytes, mad::header::kMethod));
    const bool is_table = method == Method::kGetTable || method == Method::kGetMulti;
    Status status = answer.status;
    if (status == Status::kOk && !is_table && answer.records.size() != 1) {
        status = answer.records.empty() ? Status::kSaNoRecords : Status::kSaTooManyRecords;
    }
    std::vector<std::uint8_t> message(request.bytes.begin(),
                                      request.bytes.begin() + mad::sa::kDataOffset);
    mad::set(message, mad::header::kMethod,
             method == Method::kSet ? static_cast<std::uint64_t>(Method::kGetResp)
                                    : static_cast<std::uint64_t>(method) | mad::kResponseBit);
    mad::set(message, mad::header::kStatus, static_cast<std::uint64_t>(status));
    std::fill(message.begin() + mad::header::kBytes, message.begin() + mad::rmpp::kHeaderEnd,
              std::uint8_t{0});
    if (status == Status::kOk && !answer.records.empty()) {
        const std::size_t stride = (answer.records.front().size() + 7) / 8 * 8;
        mad::set(message, mad::sa::kAttributeOffset, stride / 8);
        for (const Record& record : answer.records) {
            message.insert(message.end(), record.begin(), record.end());
            message.resize(message.size() + (is_table ? stride - record.size() : 0));
        }
    } else if (status != Status::kOk && !is_table) {
        message.assign(request.bytes.begin(), request.bytes.end());
        mad::set(message, mad::header::kMethod,
                 method == Method::kSet ? static_cast<std::uint64_t>(Method::kGetResp)
                                        : static_cast<std::uint64_t>(method) | mad::kResponseBit);
        mad::set(message, mad::header::kStatus, static_cast<std::uint64_t>(status));
    }
    if (is_table && status == Status::kOk) {
        mad::set(message, mad::rmpp::kVersion, 1);
        mad::set(message, mad::rmpp::kType, mad::rmpp::kData);
        mad::set(message, mad::rmpp::kActive, 1);
    }
    DatagramAddress to = request.from;
    to.qkey = kWellKnownQkey;
    sm_.port().send(agent_, {.bytes = message, .to = to, .timeout = {}, .retries = 3});
}

void SubnetAdministration::subnet_swept(const Subnet& before, const Subnet& now) {
    const auto old_ports = before.end_ports();
    const auto new_ports = now.end_ports();
    for (const auto& [guid, ref] : new_ports) {
        if (!old_ports.contains(guid)) {
            report_gid(64, gid_of(guid));
        }
    }
    bool groups_changed = false;
    for (const auto& [guid, ref] : old_ports) {
        if (new_ports.contains(guid)) {
            continue;
        }
        report_gid(65, gid_of(guid));
        for (auto& [mgid, group] : groups_) {
            groups_changed |= group.members.erase(guid) != 0;
        }
        std::erase_if(subscriptions_, [&, gone = guid](const Subscription& one) {
            const auto owner = before.owner_of(one.subscriber.lid);
            return owner && before.find(*owner)->guid == gone;
        });
    }
    if (groups_changed) {
        std::erase_if(groups_, [](const auto& entry) { return !is_kept(entry.second); });
        publish_groups(nullptr);
    }
}

}  // namespace fabric

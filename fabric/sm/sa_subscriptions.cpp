// Services (IBA 15.2.5.14), and who is told of what happens (13.4.8.3, 13.4.11).
#include <algorithm>

#include "fabric/sm/subnet_administration.hpp"
#include "fabric/sm/sweeping_sm.hpp"

namespace fabric {

using mad::Method;
using mad::Status;
namespace service = mad::service_record;
namespace inform_info = mad::inform_info;

namespace {

constexpr SimDuration kReportTime{200'000'000'000};  // 200 ms
constexpr std::uint32_t kReportRetries = 3;
constexpr std::uint32_t kForEver = 0xFFFF'FFFF;

// Returns true if two records name one service: its id, port and P_Key (IBA 15.2.5.14).
bool is_same_service(mad::ConstBytes a, mad::ConstBytes b) {
    return mad::get(a, service::kId) == mad::get(b, service::kId) &&
           mad::get_gid(a, service::kGid) == mad::get_gid(b, service::kGid) &&
           mad::get(a, service::kPkey) == mad::get(b, service::kPkey);
}

bool concerns(mad::ConstBytes inform, mad::ConstBytes notice) {
    const auto matches = [](std::uint64_t wanted, std::uint64_t all, std::uint64_t value) {
        return wanted == all || wanted == value;
    };
    return mad::get(inform, inform_info::kIsGeneric) == mad::get(notice, mad::notice::kIsGeneric) &&
           matches(mad::get(inform, inform_info::kType), inform_info::kAll,
                   mad::get(notice, mad::notice::kType)) &&
           matches(mad::get(inform, inform_info::kTrapNumber), inform_info::kAll,
                   mad::get(notice, mad::notice::kTrapNumber)) &&
           matches(mad::get(inform, inform_info::kProducerType), inform_info::kAllProducers,
                   mad::get(notice, mad::notice::kProducerType));
}

}  // namespace

// A lease that has run out is found out at the next query: nothing waits for it.
SubnetAdministration::Answer SubnetAdministration::services(const Query& query) {
    const SimTime now = sm_.now();
    std::erase_if(services_, [now](const Service& one) {
        const std::uint64_t lease = mad::get(one.record, service::kLease);
        constexpr std::int64_t kSecond = 1'000'000'000'000;
        return lease != kForEver &&
               now >= one.since + SimDuration(static_cast<std::int64_t>(lease) * kSecond);
    });
    const Record record(query.data.begin(), query.data.begin() + service::kBytes);
    const auto present = std::ranges::find_if(
        services_, [&record](const Service& one) { return is_same_service(one.record, record); });
    switch (query.method) {
        case Method::kSet:
            if (!query.has(0) || !query.has(1)) {
                return {Status::kSaInsufficientComponents};
            }
            if (present != services_.end()) {
                *present = {record, now};
            } else {
                services_.push_back({record, now});
            }
            return {.records = {record}};
        case Method::kDelete:
            if (present == services_.end()) {
                return {Status::kSaNoRecords};
            }
            services_.erase(present);
            return {.records = {record}};
        case Method::kGet:
        case Method::kGetTable: {
            Answer answer;
            for (const Service& one : services_) {
                if (mad::selects(query.mask, service::kComponents, query.data, one.record)) {
                    answer.records.push_back(one.record);
                }
            }
            return answer;
        }
        default:
            return {Status::kBadMethodOrAttribute};
    }
}

SubnetAdministration::Answer SubnetAdministration::inform(const Query& query) {
    if (query.method != Method::kSet) {
        return {Status::kBadMethodOrAttribute};
    }
    Record record(query.data.begin(), query.data.begin() + inform_info::kBytes);
    const bool subscribes = mad::get(record, inform_info::kSubscribe) != 0;
    const DatagramAddress& from = query.received.from;
    // Compares what is subscribed to, and by whom.
    mad::set(record, inform_info::kSubscribe, 1);
    mad::set(record, inform_info::kQpn, from.qp);
    const auto present = std::ranges::find_if(subscriptions_, [&](const Subscription& one) {
        return one.inform_info == record && one.subscriber.lid == from.lid &&
               one.subscriber.qp == from.qp;
    });
    if (subscribes && present == subscriptions_.end()) {
        subscriptions_.push_back({record, from});
    } else if (!subscribes && present == subscriptions_.end()) {
        return {Status::kSaInvalidRequest};
    } else if (!subscribes) {
        subscriptions_.erase(present);
    }
    mad::set(record, inform_info::kSubscribe, subscribes ? 1 : 0);
    return {.records = {record}};
}

std::vector<SubnetAdministration::Record> SubnetAdministration::inform_infos() const {
    std::vector<Record> records;
    for (const Subscription& one : subscriptions_) {
        Record& record = records.emplace_back(inform_info::kRecordBytes);
        if (const auto owner = subnet().owner_of(one.subscriber.lid)) {
            mad::set_gid(record, 0, gid_of(subnet().find(*owner)->guid));
        }
        mad::set(record, {128, 16}, records.size() - 1);
        std::ranges::copy(one.inform_info, record.begin() + inform_info::kRecordInfo);
    }
    return records;
}

void SubnetAdministration::trap_received(mad::ConstBytes trap) {
    std::vector<std::uint8_t> notice(mad::notice::kBytes);
    std::copy_n(trap.begin(), mad::notice::kIssuerGidOffset, notice.begin());
    const Lid issuer(static_cast<std::uint16_t>(mad::get(trap, mad::notice::kIssuerLid)));
    if (const auto owner = subnet().owner_of(issuer)) {
        mad::set_gid(notice, mad::notice::kIssuerGidOffset, gid_of(subnet().find(*owner)->guid));
    }
    report(notice);
}

// IBA 14.4.9: ports and groups that come and go are notices of the subnet manager itself.
void SubnetAdministration::report_gid(std::uint16_t trap, const Gid& gid) {
    std::vector<std::uint8_t> notice(mad::notice::kBytes);
    const PortAttributes& own = sm_.port().port().attributes();
    mad::set(notice, mad::notice::kIsGeneric, 1);
    mad::set(notice, mad::notice::kType, static_cast<std::uint64_t>(mad::notice::Type::kSubnet));
    mad::set(notice, mad::notice::kProducerType, 4);  // class manager
    mad::set(notice, mad::notice::kTrapNumber, trap);
    mad::set(notice, mad::notice::kIssuerLid, own.lid.value());
    mad::set_gid(notice, mad::notice::kGidOffset, gid);
    mad::set_gid(notice, mad::notice::kIssuerGidOffset, gid_of(own.guid));
    report(notice);
}

void SubnetAdministration::report(mad::ConstBytes notice) {
    mad::Datagram datagram;
    datagram.set(mad::header::kBaseVersion, 1);
    datagram.set(mad::header::kClass, static_cast<std::uint64_t>(mad::Class::kSubnAdm));
    datagram.set(mad::header::kClassVersion, 2);
    datagram.set(mad::header::kMethod, static_cast<std::uint64_t>(Method::kReport));
    datagram.set(mad::header::kAttributeId, static_cast<std::uint64_t>(mad::SaAttribute::kNotice));
    std::ranges::copy(notice, datagram.from(mad::sa::kDataOffset).begin());
    for (const Subscription& one : subscriptions_) {
        if (concerns(one.inform_info, notice)) {
            datagram.set(mad::header::kTransactionId, ++last_report_);
            DatagramAddress to = one.subscriber;
            to.qkey = kWellKnownQkey;
            sm_.port().send(agent_, {.bytes = datagram.bytes,
                                     .to = to,
                                     .timeout = kReportTime,
                                     .retries = kReportRetries});
        }
    }
}

}  // namespace fabric

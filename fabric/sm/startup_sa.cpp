#include "fabric/sm/startup_sa.hpp"

#include <algorithm>

#include "fabric/core/rate.hpp"
#include "fabric/core/rate_code.hpp"

namespace fabric {

using mad::Method;
using mad::SaAttribute;
using mad::Status;
namespace record = mad::path_record;

namespace {

constexpr std::uint16_t kFullMember = 0x8000;
constexpr std::uint8_t kDefaultLifetime = 18;  // 4.096 us * 2^18: as OpenSM
constexpr int kMaxHops = 64;

bool has(const mad::Datagram& query, unsigned component) {
    return (query.get(mad::sa::kComponentMask) >> component & 1) != 0;
}

// The first that both have, one of them as a full member (IBA 10.9.3).
std::optional<std::uint16_t> shared_pkey(const Port& a, const Port& b,
                                         std::optional<std::uint16_t> wanted) {
    for (const std::uint16_t one : a.attributes().pkeys) {
        for (const std::uint16_t other : b.attributes().pkeys) {
            const bool same = one != 0 && ((one ^ other) & ~kFullMember) == 0;
            const bool is_wanted = !wanted || ((one ^ *wanted) & ~kFullMember) == 0;
            if (same && is_wanted && ((one | other) & kFullMember) != 0) {
                return one;
            }
        }
    }
    return std::nullopt;
}

struct Capacity {
    Mtu mtu;
    std::uint32_t tenths;  // of Gb/s
};

Capacity capacity_of(const Port& port) {
    const PortAttributes& attributes = port.attributes();
    return {attributes.active_mtu, nominal_rate(attributes.width, attributes.speed)};
}

// Follows the forwarding tables. Nothing: they do not lead there.
std::optional<Capacity> capacity_between(const Port& from, const Port& to) {
    Capacity least = capacity_of(from);
    const Port* leaves = &from;
    for (int hops = 0; &from != &to && hops < kMaxHops; ++hops) {
        const Port* const arrives =
            leaves->state() == PortState::kActive ? leaves->peer() : nullptr;
        if (arrives == nullptr || arrives == &to) {
            return arrives == nullptr ? std::nullopt : std::optional(least);
        }
        const auto* const forwarder = dynamic_cast<const Switch*>(&arrives->node());
        const std::uint16_t out =
            forwarder == nullptr ? Switch::kNoRoute : forwarder->route(to.attributes().lid);
        if (out == Switch::kNoRoute || out == 0) {
            return std::nullopt;
        }
        leaves = &forwarder->port(PortNumber{out});
        const Capacity here = capacity_of(*leaves);
        least = {std::min(least.mtu, here.mtu), std::min(least.tenths, here.tenths)};
    }
    return &from == &to ? std::optional(least) : std::nullopt;
}

}  // namespace

StartupSa::StartupSa(Network& network, ManagementPort& port) : network_(network), port_(port) {
    AgentSpec spec{.management_class = static_cast<std::uint8_t>(mad::Class::kSubnAdm),
                   .class_version = 2,
                   .makes_transaction_ids = true};
    for (const Method method : {Method::kGet, Method::kSet, Method::kDelete}) {
        spec.methods.set(static_cast<std::size_t>(method));
    }
    agent_ = port.register_agent(spec, *this);
}

StartupSa::~StartupSa() {
    if (agent_) {
        port_.unregister_agent(*agent_);
    }
}

void StartupSa::datagram_received(const ReceivedDatagram& received) {
    if (received.answers || received.bytes.size() != mad::kDatagramBytes) {
        return;
    }
    mad::Datagram datagram;
    std::ranges::copy(received.bytes, datagram.bytes.begin());
    const Answer answer = execute(datagram);
    const bool is_set = datagram.method() == Method::kSet;
    const auto asked = static_cast<std::uint64_t>(is_set ? Method::kGet : datagram.method());
    datagram.set(mad::header::kMethod, asked | mad::kResponseBit);
    datagram.set(mad::header::kStatus, static_cast<std::uint64_t>(answer.status));
    if (answer.status == Status::kOk) {
        datagram.set(mad::sa::kAttributeOffset, (answer.record.size() + 7) / 8);
        std::ranges::fill(datagram.from(mad::sa::kDataOffset), std::uint8_t{0});
        std::ranges::copy(answer.record, datagram.from(mad::sa::kDataOffset).begin());
    }
    DatagramAddress to = received.from;
    to.qkey = kWellKnownQkey;
    static_cast<void>(port_.send(*agent_, {.bytes = datagram.bytes, .to = to}));
}

StartupSa::Answer StartupSa::execute(const mad::Datagram& query) {
    const auto attribute = static_cast<SaAttribute>(query.attribute());
    if (attribute == SaAttribute::kPath && query.method() == Method::kGet) {
        return path(query);
    }
    if (attribute == SaAttribute::kMcMember && query.method() == Method::kSet) {
        return join(query);
    }
    if (attribute == SaAttribute::kMcMember && query.method() == Method::kDelete) {
        return leave(query);
    }
    return {Status::kBadMethodOrAttribute};
}

template <class F>
const Port* StartupSa::find_port(F&& is_it) const {
    for (std::size_t i = 0; i < network_.host_count(); ++i) {
        const EndNode& host = network_.host(i);
        for (std::uint16_t number = 1; number <= host.port_count(); ++number) {
            const Port& port = host.port(PortNumber{number});
            if (port.attributes().link_layer == LinkLayer::kInfiniband && is_it(port)) {
                return &port;
            }
        }
    }
    return nullptr;
}

const Port* StartupSa::find_gid(const Gid& gid) const {
    return find_port([&gid](const Port& port) {
        return std::ranges::any_of(port.attributes().gids,
                                   [&gid](const GidEntry& entry) { return entry.gid == gid; });
    });
}

// By GID or by LID; nullptr: nobody has it, or it is not named.
const Port* StartupSa::find_end(const mad::Datagram& query, bool is_source) const {
    const mad::ConstBytes data = query.from(mad::sa::kDataOffset);
    if (has(query, is_source ? record::kHasSgid : record::kHasDgid)) {
        return find_gid(mad::get_gid(data, is_source ? record::kSgid : record::kDgid));
    }
    if (has(query, is_source ? record::kHasSlid : record::kHasDlid)) {
        const Lid lid(
            static_cast<std::uint16_t>(mad::get(data, is_source ? record::kSlid : record::kDlid)));
        return find_port([lid](const Port& port) { return port.attributes().lid == lid; });
    }
    return nullptr;
}

StartupSa::Answer StartupSa::path(const mad::Datagram& query) const {
    const Port* const from = find_end(query, true);
    const Port* const to = find_end(query, false);
    if (from == nullptr || to == nullptr) {
        return {Status::kSaNoRecords};
    }
    const mad::ConstBytes data = query.from(mad::sa::kDataOffset);
    std::optional<std::uint16_t> wanted;
    if (has(query, record::kHasPkey)) {
        wanted = static_cast<std::uint16_t>(mad::get(data, record::kPkey));
    }
    const std::optional<std::uint16_t> pkey = shared_pkey(*from, *to, wanted);
    const std::optional<Capacity> capacity = capacity_between(*from, *to);
    if (!pkey || !capacity) {
        return {Status::kSaNoRecords};
    }
    const auto gid_of = [&](unsigned bit, std::size_t place, const Port& port) {
        return has(query, bit) ? mad::get_gid(data, place) : port.attributes().gids.front().gid;
    };
    const auto exactly = static_cast<std::uint64_t>(mad::Selector::kExactly);
    Answer answer{.record = Record(record::kBytes)};
    const auto put = [&answer](mad::Field field, std::uint64_t value) {
        mad::set(answer.record, field, value);
    };
    mad::set_gid(answer.record, record::kDgid, gid_of(record::kHasDgid, record::kDgid, *to));
    mad::set_gid(answer.record, record::kSgid, gid_of(record::kHasSgid, record::kSgid, *from));
    put(record::kDlid, to->attributes().lid.value());
    put(record::kSlid, from->attributes().lid.value());
    put(record::kReversible, 1);
    put(record::kPkey, *pkey);
    put(record::kMtuSelector, exactly);
    put(record::kMtu, static_cast<std::uint64_t>(capacity->mtu));
    put(record::kRateSelector, exactly);
    put(record::kRate, rate_code_of(capacity->tenths));
    put(record::kLifetimeSelector, exactly);
    put(record::kLifetime, kDefaultLifetime);
    return answer;
}

}  // namespace fabric

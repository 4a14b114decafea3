// Requests to a subnet manager: other managers, and agents with their traps.
#include <algorithm>
#include <utility>

#include "fabric/sm/sm_events.hpp"
#include "fabric/sm/subnet_administration.hpp"
#include "fabric/sm/sweeping_sm.hpp"

namespace fabric {

using mad::Attribute;
using mad::Datagram;
using mad::Method;
using SmState = mad::sm_info::State;

namespace {

Datagram datagram_of(const ReceivedDatagram& received) {
    Datagram datagram;
    std::ranges::copy(received.bytes, datagram.bytes.begin());
    return datagram;
}

}  // namespace

std::array<std::uint8_t, 64> SweepingSm::own_sm_info() const {
    std::array<std::uint8_t, 64> data{};
    mad::set(data, mad::sm_info::kGuid, port_.port().attributes().guid.value());
    mad::set(data, mad::sm_info::kActivityCount, activity_);
    mad::set(data, mad::sm_info::kPriority, policy_.priority);
    mad::set(data, mad::sm_info::kState, static_cast<std::uint64_t>(state_));
    return data;
}

std::vector<SweepingSm::KnownSm> SweepingSm::known_managers() const {
    std::vector<KnownSm> all{{port_.port().attributes().lid, own_sm_info()}};
    for (const OtherSm& other : others_) {
        if (const SubnetPort* const port = subnet_.find(other.port); port != nullptr) {
            all.push_back({port->lid(), other.info});
        }
    }
    return all;
}

void SweepingSm::answer_sm_info(const ReceivedDatagram& request) {
    Datagram answer = datagram_of(request);
    const bool is_set = answer.method() == Method::kSet;
    ++activity_;
    answer.set(mad::header::kMethod, static_cast<std::uint64_t>(Method::kGetResp));
    if (answer.is_directed()) {
        answer.set(mad::smp::kDirection, 1);
    }
    std::ranges::copy(own_sm_info(), answer.smp_data().begin());
    port_.send(request.agent, {.bytes = answer.bytes, .to = request.from});
    if (is_set) {
        control(static_cast<mad::sm_info::Control>(answer.modifier()));
    }
}

// IBA 14.4.1.
void SweepingSm::control(mad::sm_info::Control control) {
    using Control = mad::sm_info::Control;
    switch (control) {
        case Control::kHandover:
            if (state_ != SmState::kStandby) {
                return;
            }
            acknowledge_handover();
            timer_.cancel();
            enter(SmState::kMaster);
            request_sweep(kSweepDelay);
            return;
        case Control::kAcknowledge:
            if (state_ == SmState::kMaster && handed_to_) {
                become_standby(*std::exchange(handed_to_, std::nullopt));
            }
            return;
        case Control::kDisable:
            if (state_ == SmState::kStandby) {
                timer_.cancel();
                enter(SmState::kNotActive);
            }
            return;
        case Control::kStandby:
            if (state_ == SmState::kNotActive) {
                become_standby(master_);
            }
            return;
        case Control::kDiscover:
            if (state_ == SmState::kStandby) {
                timer_.cancel();
                enter(SmState::kDiscovering);
                request_sweep(kSweepDelay);
            }
            return;
    }
}

void SweepingSm::acknowledge_handover() {
    Datagram set;
    set.set(mad::header::kBaseVersion, 1);
    set.set(mad::header::kClass, static_cast<std::uint64_t>(mad::Class::kSubnLid));
    set.set(mad::header::kClassVersion, 1);
    set.set(mad::header::kMethod, static_cast<std::uint64_t>(Method::kSet));
    set.set(mad::header::kAttributeId, static_cast<std::uint64_t>(Attribute::kSmInfo));
    set.set(mad::header::kAttributeModifier,
            static_cast<std::uint64_t>(mad::sm_info::Control::kAcknowledge));
    std::ranges::copy(own_sm_info(), set.smp_data().begin());
    port_.send(agents_.front(), {.bytes = set.bytes,
                                 .to = {.lid = port_.port().attributes().sm_lid},
                                 .timeout = SmpWindow::kAnswerTime,
                                 .retries = SmpWindow::kRetries,
                                 .token = kControlToken});
}

// Repressed whatever it says; then the subscribers are told, and what changed is looked into.
void SweepingSm::trap_received(const ReceivedDatagram& request) {
    if (state_ != SmState::kMaster) {
        return;
    }
    Datagram repress = datagram_of(request);
    const Datagram trap = repress;
    repress.set(mad::header::kMethod, static_cast<std::uint64_t>(Method::kTrapRepress));
    repress.set(mad::smp::kMkey, policy_.m_key);
    port_.send(request.agent, {.bytes = repress.bytes, .to = request.from});
    administration_->trap_received(trap.smp_data());
    const std::uint64_t number = mad::get(trap.smp_data(), mad::notice::kTrapNumber);
    bus_.emit(loop_.now(), TrapReceived{own_node(), request.from.lid, number});
    if (number == static_cast<std::uint64_t>(TrapNumber::kLinkState) ||
        number == static_cast<std::uint64_t>(TrapNumber::kLocalChange)) {
        request_sweep(kSweepDelay);
    }
}

void SweepingSm::read_sm_infos() {
    for (const auto& [guid, ref] : subnet_.end_ports()) {
        const SubnetPort& port = *subnet_.find(ref);
        const std::uint64_t capabilities = port.get(mad::port_info::kCapabilityMask);
        if ((capabilities & mad::port_info::kIsSm) == 0 || guid == port_.port().attributes().guid) {
            continue;
        }
        smps_.get(port.path, Attribute::kSmInfo, 0, [this, at = ref](const Datagram* answer) {
            if (answer != nullptr && answer->get(mad::smp::kStatus) == 0) {
                const mad::ConstBytes data = answer->smp_data();
                OtherSm& other = others_.emplace_back(
                    OtherSm{at,
                            mad::get(data, mad::sm_info::kGuid),
                            static_cast<std::uint8_t>(mad::get(data, mad::sm_info::kPriority)),
                            static_cast<SmState>(mad::get(data, mad::sm_info::kState)),
                            {}});
                std::ranges::copy(data, other.info.begin());
            }
        });
    }
    smps_.then([this] { judge_others(); });
}

// The highest priority, then the lowest GUID (IBA 14.4.1). A master stays one until it hands over.
void SweepingSm::judge_others() {
    const std::uint64_t own = port_.port().attributes().guid.value();
    std::erase_if(others_, [](const OtherSm& sm) { return sm.state == SmState::kNotActive; });
    std::ranges::sort(others_, [](const OtherSm& a, const OtherSm& b) {
        return a.priority != b.priority ? a.priority > b.priority : a.guid < b.guid;
    });
    const auto is_better = [&](const OtherSm& sm) {
        return sm.priority != policy_.priority ? sm.priority > policy_.priority : sm.guid < own;
    };
    for (const OtherSm& other : others_) {
        const bool yields = state_ == SmState::kMaster
                                ? other.state == SmState::kMaster && is_better(other)
                                : other.state == SmState::kMaster || is_better(other);
        if (yields) {
            is_sweeping_ = false;
            become_standby(other.port);
            return;
        }
    }
    better_standby_ = !others_.empty() && is_better(others_.front())
                          ? std::optional(others_.front().port)
                          : std::nullopt;
    manage();
}

void SweepingSm::hand_over() {
    if (!better_standby_ || subnet_.find(*better_standby_) == nullptr) {
        return;
    }
    handed_to_ = std::exchange(better_standby_, std::nullopt);
    smps_.set(subnet_.find(*handed_to_)->path, Attribute::kSmInfo,
              static_cast<std::uint32_t>(mad::sm_info::Control::kHandover), own_sm_info(), nullptr);
}

void SweepingSm::become_standby(const SubnetPortRef& master) {
    enter(SmState::kStandby);
    master_ = master;
    silences_ = 0;
    sweep_again_ = false;
    is_settled_ = true;
    timer_.arm_in(kPollInterval);
}

// By LID once there are any: paths may have changed since.
void SweepingSm::poll_master() {
    const PortAttributes& own = port_.port().attributes();
    const SubnetPort* const master = subnet_.find(master_);
    Datagram poll;
    const bool by_lid = own.lid != kNoLid && own.sm_lid != kNoLid && own.sm_lid != own.lid;
    if (!by_lid && master == nullptr) {
        polled(false);
        return;
    }
    const mad::Class management_class = by_lid ? mad::Class::kSubnLid : mad::Class::kSubnDirected;
    poll.set(mad::header::kBaseVersion, 1);
    poll.set(mad::header::kClass, static_cast<std::uint64_t>(management_class));
    poll.set(mad::header::kClassVersion, 1);
    poll.set(mad::header::kMethod, static_cast<std::uint64_t>(Method::kGet));
    poll.set(mad::header::kTransactionId, kPollToken);
    poll.set(mad::header::kAttributeId, static_cast<std::uint64_t>(Attribute::kSmInfo));
    if (!by_lid) {
        poll.set(mad::smp::kHopCount, master->path.size());
        poll.set(mad::smp::kDrSlid, kPermissiveLid.value());
        poll.set(mad::smp::kDrDlid, kPermissiveLid.value());
        std::ranges::copy(master->path, poll.bytes.begin() + mad::smp::kInitialPath + 1);
    }
    port_.send(agents_.front(), {.bytes = poll.bytes,
                                 .to = {.lid = by_lid ? own.sm_lid : kPermissiveLid},
                                 .timeout = SmpWindow::kAnswerTime,
                                 .retries = 0,
                                 .token = kPollToken});
}

void SweepingSm::polled(bool answered) {
    if (state_ != SmState::kStandby) {
        return;
    }
    silences_ = answered ? 0 : silences_ + 1;
    if (silences_ < kPollRetries) {
        timer_.arm_in(answered ? kPollInterval : SmpWindow::kAnswerTime);
        return;
    }
    enter(SmState::kDiscovering);
    request_sweep(kSweepDelay);
}

}  // namespace fabric

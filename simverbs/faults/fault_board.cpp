#include "simverbs/faults/fault_board.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "simverbs/faults/branch_points.hpp"
#include "simverbs/faults/fault_effects.hpp"
#include "simverbs/faults/fault_records.hpp"
#include "simverbs/faults/host_programs.hpp"
#include "simverbs/hca/addressing.hpp"
#include "simverbs/hca/queue_pair.hpp"

namespace simverbs {

using fabric::FaultId;

bool QueuePairName::fits(const QueuePair& qp) const {
    return (qpn == 0 || qp.qpn() == qpn) && (ordinal == 0 || qp.ordinal() == ordinal);
}

QueuePair* QueuePairName::find(const Hca& hca) const {
    return qpn != 0 ? hca.find_qp(qpn) : hca.find_made(ordinal);
}

std::vector<fabric::LinkDirection*> directions_from_hosts(
    const fabric::Network& network, const std::vector<fabric::NodeId>& hosts) {
    std::vector<fabric::LinkDirection*> directions;
    for (std::size_t i = 0; i < network.host_count(); ++i) {
        const fabric::EndNode& host = network.host(i);
        const bool is_wanted =
            hosts.empty() || std::find(hosts.begin(), hosts.end(), host.id()) != hosts.end();
        for (std::uint16_t n = 1; is_wanted && n <= host.port_count(); ++n) {
            if (auto* out = host.port(fabric::PortNumber{n}).outgoing(); out != nullptr) {
                directions.push_back(out);
            }
        }
    }
    return directions;
}

// A packet that only sets something else off.
class FaultBoard::FrameTrigger final : public fabric::FrameAction {
  public:
    FrameTrigger(FaultBoard& board, FaultId id, std::string_view name)
        : board_(board), id_(id), name_(name) {}
    [[nodiscard]] std::string_view name() const override { return name_; }
    fabric::Verdict act(fabric::Frame& /*frame*/,
                        const fabric::LinkDirection& /*direction*/) override {
        board_.act_later(id_, {});
        return fabric::Verdict::kPass;
    }
    void describe_target(fabric::FaultFired& event) const override {
        simverbs::describe_target(board_.target_of(id_, {}), event);
    }

  private:
    FaultBoard& board_;
    FaultId id_;
    std::string_view name_;
};

// Acts on a packet where the explored program goes on with the fault.
class FaultBoard::BranchAction final : public fabric::FrameAction {
  public:
    BranchAction(FaultBoard& board, std::string fault, std::unique_ptr<FrameAction> effect)
        : board_(board), fault_(std::move(fault)), effect_(std::move(effect)) {}
    [[nodiscard]] std::string_view name() const override { return effect_->name(); }
    [[nodiscard]] bool applies(const fabric::Frame& frame) const override {
        return effect_->applies(frame);
    }
    fabric::Verdict act(fabric::Frame& frame, const fabric::LinkDirection& direction) override {
        return board_.acts_here(fault_) ? effect_->act(frame, direction)
                                        : effect_->pass(frame, direction);
    }
    fabric::Verdict pass(fabric::Frame& frame, const fabric::LinkDirection& direction) override {
        return effect_->pass(frame, direction);
    }
    void describe_target(fabric::FaultFired& event) const override {
        effect_->describe_target(event);
    }
    void release() override { effect_->release(); }

  private:
    FaultBoard& board_;
    std::string fault_;
    std::unique_ptr<FrameAction> effect_;
};

FaultBoard::FaultBoard(FaultEnvironment& environment)
    : environment_(environment), clock_(environment.loop()) {}

FaultBoard::~FaultBoard() {
    environment_.set_device_faults(nullptr);
}

FaultId FaultBoard::inject(const FaultSpec& spec) {
    const FaultId id(++last_id_);
    fabric::OccasionRules rules = spec.when;
    rules.seed = environment_.seed();
    Fault& fault =
        faults_.emplace(id, Fault{id, spec, fabric::Occasion(id, rules), nullptr, {}, {}})
            .first->second;
    waiting_[spec.on.index()].push_back(&fault);
    if (const auto* on = std::get_if<OnPacket>(&spec.on)) {
        fault.frames = std::make_unique<fabric::FrameFault>(
            environment_.bus(), id,
            std::make_unique<PacketMatcher>(on->pattern, static_cast<const PacketEnds&>(*this)),
            rules, make_action(id, spec), on->directions,
            static_cast<fabric::FiringListener*>(this));
    }
    hook_devices();
    if (!spec.name.empty()) {
        environment_.bus().emit(clock_.now(), description_of(id, spec));
    }
    if (spec.after.value() == 0) {
        start(id, fault);
        return id;
    }
    followers_.emplace(spec.after, id);
    fault.occasion.sleep();
    if (fault.frames != nullptr) {
        fault.frames->occasion().sleep();
    }
    if (fired(spec.after).value_or(0) > 0) {
        wake(id);
    }
    return id;
}

std::unique_ptr<fabric::FrameAction> FaultBoard::make_action(FaultId id, const FaultSpec& spec) {
    auto effect = make_effect(id, spec);
    return environment_.branch_points() != nullptr && BranchPoints::are_asked(spec.name)
               ? std::make_unique<BranchAction>(*this, spec.name, std::move(effect))
               : std::move(effect);
}

// Between two events, and between two commands, the program may run.
bool FaultBoard::acts_here(std::string_view name) {
    BranchPoints* const points = environment_.branch_points();
    if (points == nullptr || !BranchPoints::are_asked(name)) {
        return true;
    }
    if (!points->acts_here(name, environment_.loop().events_run() + commands_)) {
        return false;
    }
    if (name.starts_with(kForkingFault)) {
        // Not now, while a link or the device goes through its faults.
        clock_.at(clock_.now(),
                  [this, acting = std::string(name)] { ignore_forking_faults_but(acting); });
    }
    return true;
}

void FaultBoard::ignore_forking_faults_but(std::string_view acting) {
    const auto is_idle = [acting](const Fault* fault) {
        return fault->spec.name.starts_with(kForkingFault) && fault->spec.name != acting;
    };
    const std::vector<Fault*>& of_packets = waiting_for<OnPacket>();
    for (auto fault = of_packets.rbegin(); fault != of_packets.rend(); ++fault) {
        if (is_idle(*fault)) {
            (*fault)->frames->withdraw();
        }
    }
    for (std::vector<Fault*>& waiting : waiting_) {
        std::erase_if(waiting, is_idle);
    }
    hook_devices();
}

std::unique_ptr<fabric::FrameAction> FaultBoard::make_effect(FaultId id, const FaultSpec& spec) {
    const FaultArguments& with = spec.with;
    fabric::PayloadKeeper& keeper = *this;
    const PacketEnds& ends = *this;
    switch (spec.action) {
        case SIMVERBS_FAULT_MARK:
            return std::make_unique<fabric::MarkFrame>();
        case SIMVERBS_FAULT_DROP:
            return std::make_unique<fabric::DropFrame>();
        case SIMVERBS_FAULT_CORRUPT:
            return std::make_unique<CorruptPacket>(with.offset, with.bits);
        case SIMVERBS_FAULT_REWRITE:
            return std::make_unique<RewritePacket>(with.field, with.value);
        case SIMVERBS_FAULT_DUPLICATE:
            return std::make_unique<fabric::DuplicateFrame>(clock_, keeper, with.times,
                                                            with.duration);
        case SIMVERBS_FAULT_DELAY:
            return std::make_unique<fabric::DelayFrame>(clock_, keeper, with.duration);
        case SIMVERBS_FAULT_REORDER:
            return std::make_unique<fabric::ReorderFrame>(clock_, keeper, with.duration);
        case SIMVERBS_FAULT_HOLD:
            return std::make_unique<fabric::HoldFrame>(clock_, keeper, with.duration);
        case SIMVERBS_FAULT_LAND_LATE:
            return std::make_unique<LandLate>(with.duration);
        case SIMVERBS_FAULT_SYMBOL_ERROR:
            return std::make_unique<fabric::SymbolError>();
        case SIMVERBS_FAULT_NO_RECEIVE:
            return std::make_unique<WithholdReceive>();
        case SIMVERBS_FAULT_MARK_CONGESTION:
            return std::make_unique<MarkCongestion>();
        case SIMVERBS_FAULT_NOTIFY_CONGESTION:
            return std::make_unique<NotifyCongestion>(ends);
        case SIMVERBS_FAULT_NAK:
            return std::make_unique<RefusePacket>(ends, AethSyndrome::nak(nak_code(with.value)));
        case SIMVERBS_FAULT_RNR_NAK:
            return std::make_unique<RefusePacket>(
                ends, AethSyndrome::rnr_nak(static_cast<std::uint8_t>(with.value)));
        case SIMVERBS_FAULT_CM_REJECT:
            return std::make_unique<RejectConnection>(ends, static_cast<RejectReason>(with.value));
        default:
            return std::make_unique<FrameTrigger>(*this, id, to_string(spec.action));
    }
}

// On a fault of the consumer's own asking, what is due is done before the call returns.
void FaultBoard::start(FaultId id, Fault& fault) {
    if (!std::holds_alternative<OnTime>(fault.spec.on)) {
        return;
    }
    if (fault.spec.when.from <= clock_.now()) {
        fire_on_time(id);
    } else {
        fire_later(id, fault);
    }
}

void FaultBoard::fire_later(FaultId id, Fault& fault) {
    const fabric::SimTime due = std::max(clock_.now(), fault.spec.when.from);
    fault.appointments.push_back(clock_.at(due, [this, id] { fire_on_time(id); }));
}

void FaultBoard::wake(FaultId id) {
    Fault& fault = faults_.at(id);
    if (fault.spec.after_delay == fabric::SimDuration::zero()) {
        rouse(id);
    } else {
        fault.appointments.push_back(
            clock_.after(fault.spec.after_delay, [this, id] { rouse(id); }));
    }
}

// Perhaps while a frame is being sent: the next one may be hit, but nothing happens to its link.
void FaultBoard::rouse(FaultId id) {
    Fault& fault = faults_.at(id);
    fault.occasion.wake();
    if (fault.frames != nullptr) {
        fault.frames->occasion().wake();
    }
    if (std::holds_alternative<OnTime>(fault.spec.on)) {
        fire_later(id, fault);
    }
}

// Devices ask only while somebody may want something of them.
void FaultBoard::hook_devices() {
    const std::vector<Fault*>& calls = waiting_for<OnCall>();
    const bool wanted = !calls.empty() || !waiting_for<OnWorkRequest>().empty() ||
                        !waiting_for<OnCompletionEvent>().empty();
    environment_.set_device_faults(wanted ? this : nullptr);
    if (HostPrograms* const programs = environment_.programs(); programs != nullptr) {
        const auto waits_for_call = [&calls](auto is_it) {
            return std::ranges::any_of(calls, [is_it](const Fault* fault) {
                return is_it(std::get<OnCall>(fault->spec.on).command);
            });
        };
        programs->ask_when_working(waits_for_call(is_post), waits_for_call([](CommandCode code) {
                                       return code == CommandCode::kPollCq;
                                   }));
    }
}

bool FaultBoard::clear(FaultId id) {
    auto node = faults_.extract(id);
    if (node.empty()) {
        return false;
    }
    Fault& fault = node.mapped();
    for (const auto appointment : fault.appointments) {
        clock_.cancel(appointment);
    }
    if (fault.frames != nullptr) {
        fault.frames->action().release();
    }
    std::erase(waiting_[fault.spec.on.index()], &fault);
    std::erase_if(followers_, [id](const auto& each) { return each.second == id; });
    hook_devices();
    return true;
}

void FaultBoard::clear_all() {
    while (!faults_.empty()) {
        clear(faults_.begin()->first);
    }
}

std::optional<std::uint64_t> FaultBoard::fired(FaultId id) const {
    const fabric::Occasion* const occasion = occasion_of(id);
    return occasion == nullptr ? std::nullopt : std::optional(occasion->fired());
}

std::optional<std::uint64_t> FaultBoard::matched(FaultId id) const {
    const fabric::Occasion* const occasion = occasion_of(id);
    return occasion == nullptr ? std::nullopt : std::optional(occasion->seen());
}

std::optional<FaultBoard::Missed> FaultBoard::missed(FaultId id) const {
    const auto found = faults_.find(id);
    return found == faults_.end() ? std::nullopt : std::optional(found->second.missed);
}

const fabric::Occasion* FaultBoard::occasion_of(FaultId id) const {
    const auto found = faults_.find(id);
    if (found == faults_.end()) {
        return nullptr;
    }
    const Fault& fault = found->second;
    return fault.frames != nullptr ? &fault.frames->occasion() : &fault.occasion;
}

void FaultBoard::fire_on_time(FaultId id) {
    Fault& fault = faults_.at(id);
    if (fault.occasion.arrives(clock_.now(), 0, 0)) {
        fire(id, fault, {}, 1);
    }
}

FaultTarget FaultBoard::target_of(FaultId id, const Site& site) const {
    return simverbs::target_of(faults_.at(id).spec, site.hca, site.qpn, environment_);
}

void FaultBoard::emit(FaultId id, const Fault& fault, const Site& site, std::uint64_t nth) {
    const FaultTarget& named = fault.spec.target;
    fabric::FaultFired event{};
    describe_target(target_of(id, site), event);
    event.node = event.source = place_of(named, site.hca);
    event.port = event.target_port;
    event.fault = id;
    event.action = to_string(fault.spec.action);
    event.nth = nth;
    event.flow = site.qpn != 0 ? site.qpn : named.qp.qpn;
    environment_.bus().emit(clock_.now(), event);
}

void FaultBoard::fire(FaultId id, Fault& fault, const Site& site, std::uint64_t nth) {
    emit(id, fault, site, nth);
    fault_fired(id);
    if (fault.spec.delay == fabric::SimDuration::zero()) {
        act(id, site);
    } else {
        act_later(id, site);
    }
}

// Never within what is going on now: a link does not go down under a frame that is being sent.
void FaultBoard::act_later(FaultId id, const Site& site) {
    Fault& fault = faults_.at(id);
    fault.appointments.push_back(
        clock_.after(fault.spec.delay, [this, id, site] { act(id, site); }));
}

void FaultBoard::act(FaultId id, const Site& site) {
    const FaultSpec spec = faults_.at(id).spec;
    const FaultTarget target = target_of(id, site);
    std::string_view reason;
    if (spec.action == SIMVERBS_FAULT_RELEASE) {
        const auto held = faults_.find(target.fault);
        if (held != faults_.end() && held->second.frames != nullptr) {
            held->second.frames->action().release();
        } else {
            reason = "that fault is gone";
        }
    } else {
        reason = carry_out(spec, target, environment_, clock_);
    }
    if (!reason.empty()) {
        Missed& missed = faults_.at(id).missed;
        missed = {missed.count + 1, reason};
        environment_.bus().emit(clock_.now(), fabric::FaultMissed{place_of(target, site.hca), id,
                                                                  to_string(spec.action), reason});
    }
}

// Those that come after it wake up.
void FaultBoard::fault_fired(FaultId id) {
    if (fired(id) != 1) {
        return;
    }
    const auto [first, last] = followers_.equal_range(id);
    for (auto follower = first; follower != last; ++follower) {
        wake(follower->second);
    }
}

std::optional<PacketEnds::Origin> FaultBoard::origin(fabric::NodeId node, std::uint32_t qpn) const {
    const Hca* hca = environment_.hca_at(node);
    const QueuePair* qp = hca == nullptr ? nullptr : hca->find_qp(qpn);
    if (qp == nullptr) {
        return std::nullopt;
    }
    return Origin{qp->ordinal(), qp->attributes().sq_psn};
}

std::optional<fabric::NodeId> FaultBoard::destination(const fabric::Frame& frame) const {
    const fabric::Network& network = environment_.network();
    for (std::size_t i = 0; i < network.host_count(); ++i) {
        const fabric::EndNode& host = network.host(i);
        for (std::uint16_t number = 1; number <= host.port_count(); ++number) {
            if (is_addressed_to(frame, host.port(fabric::PortNumber{number}))) {
                return host.id();
            }
        }
    }
    return std::nullopt;
}

void FaultBoard::keep_payload(fabric::Frame& frame) {
    environment_.hca(0).keep_payload(frame);
}

}  // namespace simverbs

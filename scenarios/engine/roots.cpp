#include "scenarios/engine/roots.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/core.h>

#include "simverbs/model/fault_actions.hpp"
#include "simverbs/model/fault_consequences.hpp"

namespace scenarios {

namespace {

using simverbs::CompletionFault;
using simverbs::Detector;
using simverbs::FailureKind;
using simverbs::FaultActionRow;
using simverbs::FaultCause;
using simverbs::FaultConsequenceRow;
using simverbs::FaultSubject;

const FaultActionRow* action_of(const Record& fired) {
    return simverbs::find_fault_action(fired.text("action"));
}

// nullptr: it is done to packets, or unknown.
const FaultConsequenceRow* consequences_of(const Record& fired) {
    const FaultActionRow* const action = action_of(fired);
    return action == nullptr ? nullptr : simverbs::find_consequences(action->action);
}

bool begins(const Record& fired, FailureKind kind) {
    const FaultActionRow* const action = action_of(fired);
    return action != nullptr && action->begins.contains(kind);
}

bool is_done_to_packets(const Record& fired) {
    const FaultActionRow* const action = action_of(fired);
    return action != nullptr && action->subject == FaultSubject::kPacket;
}

// They slow a queue pair down and lose nothing.
bool is_congestion(const Record& fired) {
    return fired.text("action") == "mark_congestion" || fired.text("action") == "notify_congestion";
}

bool is_link(const FaultPlace& place) {
    return !place.link.empty();
}

// The record of what the queue pair last completed without an error at an earlier time than `what`.
const Record* last_success(std::span<const Record> records, const Record& what) {
    const Record* last = nullptr;
    for (const Record& record : records) {
        if (record.time_ps >= what.time_ps) {
            break;
        }
        if (record.name == "completion" && record.node == what.node &&
            record.number("qpn") == what.number("qpn") && record.text("status") == "SUCCESS") {
            last = &record;
        }
    }
    return last;
}

}  // namespace

std::string_view reason_of_loss(const Record& lost) {
    return lost.text(lost.name == "frame_dropped" ? "reason" : "fate");
}

const Record* last_progress(std::span<const Record> records, const Record& what) {
    return std::max(last_success(records, what), last_reset(records, what), std::less<>());
}

const Record* find_missed(std::span<const Record> records, const Record& fired) {
    const auto after = static_cast<std::size_t>(&fired - records.data()) + 1;
    const auto later = records.subspan(after);
    const auto next = std::ranges::find_if(later, [&fired](const Record& record) {
        return (record.name == "fault_missed" || record.name == "fault_fired") &&
               record.number("fault") == fired.number("fault");
    });
    return next != later.end() && next->name == "fault_missed" ? &*next : nullptr;
}

// Nodes are described in the order of their numbers.
FaultPlaces::FaultPlaces(std::span<const Record> records) {
    for (const Record& record : records) {
        if (const std::string label(record.text("label")); record.name == "node") {
            if (hosts_.contains(label) && !nodes_.empty() && nodes_.front() == label) {
                nodes_.clear();  // they are told once more
            }
            hosts_[label] = record.text("host");
            nodes_.push_back(label);
            if (record.text("kind") == "switch") {
                switches_.insert(label);
            }
        } else if (record.name == "link" && record.number("peer") < nodes_.size()) {
            links_[std::string(record.text("link"))] = {
                {record.node, record.number("port")},
                {nodes_[record.number("peer")], record.number("peer_port")}};
        } else if (record.name == "fault") {
            described_[record.number("fault")] = &record;
        }
    }
}

FaultPlace FaultPlaces::of(const Record& fired) const {
    const FaultActionRow* const action = action_of(fired);
    const auto found = described_.find(fired.number("fault"));
    if (found != described_.end() && !found->second->text("target").empty()) {
        const Record& described = *found->second;
        return {std::string(described.text("target")), described.node, described.number("port"),
                std::string(described.text("link")), fired.number("target_qpn")};
    }
    FaultPlace place{"", fired.node, fired.number("port"), "", fired.number("flow")};
    const std::uint64_t target = fired.number("target");
    if (action == nullptr || action->subject == FaultSubject::kPacket || target >= nodes_.size()) {
        return place;
    }
    place = {std::string(row_of(action->subject).name), nodes_[target], fired.number("target_port"),
             "", fired.number("target_qpn")};
    if (action->subject == FaultSubject::kLink || action->subject == FaultSubject::kLinkEnd) {
        for (const auto& [name, ends] : links_) {
            const End there{place.node, place.port};
            place.link = ends.first == there || ends.second == there ? name : place.link;
        }
    }
    return place;
}

std::vector<FaultPlaces::End> FaultPlaces::ends_of(const std::string& link) const {
    const auto found = links_.find(link);
    return found == links_.end() ? std::vector<End>()
                                 : std::vector<End>{found->second.first, found->second.second};
}

bool FaultPlaces::is_between_switches(const std::string& link) const {
    const std::vector<End> ends = ends_of(link);
    return !ends.empty() && std::ranges::all_of(ends, [this](const End& end) {
        return switches_.contains(end.first);
    });
}

std::string FaultPlaces::neighbour_of(std::string_view node, std::uint64_t port) const {
    for (const auto& [name, ends] : links_) {
        const auto& [one, other] = ends;
        if (one.first == node && one.second == port) {
            return other.first;
        }
        if (other.first == node && other.second == port) {
            return one.first;
        }
    }
    return {};
}

bool FaultPlaces::is_same_host(std::string_view node, std::string_view other) const {
    const auto one = hosts_.find(node);
    const auto two = hosts_.find(other);
    return node == other || (one != hosts_.end() && two != hosts_.end() && !one->second.empty() &&
                             one->second == two->second);
}

Roots::Roots(std::span<const Record> records, const FaultPlaces& places, const Trail& trail,
             const Record& what, const simverbs::CompletionFault* row)
    : records_(records.first(static_cast<std::size_t>(&what - records.data()))),
      places_(places),
      trail_(trail),
      what_(what),
      row_(row),
      reset_(last_reset(records, what)) {
    if (row == nullptr || row->cause == FaultCause::kSuccess) {
        return;
    }
    if (row->cause == FaultCause::kRnrRetriesUsedUp) {
        find_not_ready();
    } else if (row->detector == Detector::kTimer ||
               row->cause == FaultCause::kSequenceRetriesUsedUp) {
        find_lost();
    } else {
        find_errors();
    }
}

void Roots::add(const Record& fired) {
    const bool is_known = std::ranges::any_of(faults_, [&fired](const Record* each) {
        return each->number("fault") == fired.number("fault");
    });
    if (!is_known) {
        faults_.push_back(&fired);
    }
}

void Roots::add_loss(const Record& lost) {
    const bool is_known = std::ranges::any_of(losses_, [&lost](const Record* each) {
        return each->node == lost.node && reason_of_loss(*each) == reason_of_loss(lost);
    });
    if (!is_known) {
        losses_.push_back(&lost);
    }
}

// The transmissions of the oldest packet tell why the queue pair stopped; others only where those
// came to no harm.
void Roots::find_lost() {
    for (const bool any : {false, true}) {
        for (const Transmission& sent : trail_.transmissions()) {
            if (any || sent.is_oldest) {
                look_at(sent);
            }
        }
        if (!faults_.empty() || !losses_.empty()) {
            return;
        }
    }
    find_slow();
}

void Roots::look_at(const Transmission& sent) {
    const std::string_view reason = sent.lost == nullptr ? "" : reason_of_loss(*sent.lost);
    const bool is_injected = reason == "fault" || reason == "invariant CRC wrong";
    bool was_hit = false;
    for (const Record* const fired : sent.firings) {
        const bool is_cause =
            sent.lost == nullptr || is_injected || fired->text("action") == "rewrite";
        if (is_cause && is_done_to_packets(*fired) && begins(*fired, FailureKind::kTimeout) &&
            !is_congestion(*fired)) {
            add(*fired);
            was_hit = true;
        }
    }
    if (sent.lost == nullptr || was_hit) {
        return;
    }
    if (const Record* const drop = is_injected ? find_drop(*sent.lost) : nullptr) {
        add(*drop);
    } else if (!add_faults_of_loss(*sent.lost) && !(reason == "no_route" && has_outage())) {
        add_loss(*sent.lost);
    }
}

// Routes vanish with the link or the node that another transmission was lost at.
bool Roots::has_outage() const {
    return std::ranges::any_of(faults_, [](const Record* fired) {
        const FaultConsequenceRow* const row = consequences_of(*fired);
        return row != nullptr && row->drops == simverbs::kOutages;
    });
}

// The fault that fired last at the frame which it took.
const Record* Roots::find_drop(const Record& lost) const {
    for (const Record* record = &lost; record != records_.data();) {
        --record;
        if (record->time_ps != lost.time_ps) {
            break;
        }
        if (record->name == "fault_fired" && record->number("flow") == lost.number("flow") &&
            record->node == lost.node) {
            return record;
        }
    }
    return nullptr;
}

// The last change that leads to such a loss; and the death of a subnet manager that would have
// found another way.
bool Roots::add_faults_of_loss(const Record& lost) {
    const Record* change = nullptr;
    const Record* death = nullptr;
    for (const Record& record : records_) {
        if (&record >= &lost) {
            break;
        }
        if (is_firing(record) && explains(record, lost)) {
            (record.text("action") == "sm_death" ? death : change) = &record;
        }
    }
    for (const Record* const fired : {change, death}) {
        if (fired != nullptr) {
            add(*fired);
        }
    }
    return change != nullptr || death != nullptr;
}

bool Roots::is_firing(const Record& record) const {
    return record.name == "fault_fired" && find_missed(records_, record) == nullptr;
}

bool Roots::explains(const Record& fired, const Record& lost) const {
    const FaultConsequenceRow* const row = consequences_of(fired);
    if (row == nullptr || !leads_to_loss(*row, reason_of_loss(lost))) {
        return false;
    }
    const FaultPlace place = places_.of(fired);
    if (row->action == SIMVERBS_FAULT_SM_DEATH) {
        return has_changed(fired, lost);
    }
    if (row->action == SIMVERBS_FAULT_LID || row->action == SIMVERBS_FAULT_PKEY) {
        return trail_.is_end(place.node) || place.node == lost.node;
    }
    return touches(place, lost);
}

// Links and nodes at the place of the loss; where there was no route, those on the way and of the
// two ends.
bool Roots::touches(const FaultPlace& place, const Record& lost) const {
    const bool has_no_route = reason_of_loss(lost) == "no_route";
    if (is_link(place)) {
        const auto ends = places_.ends_of(place.link);
        const FaultPlaces::End there{lost.node, lost.number("port")};
        return ends.empty() || std::ranges::find(ends, there) != ends.end() ||
               (has_no_route && is_on_path(place));
    }
    const std::string neighbour = places_.neighbour_of(lost.node, lost.number("port"));
    return places_.is_same_host(place.node, lost.node) ||
           places_.is_same_host(place.node, neighbour) ||
           ((has_no_route || neighbour.empty()) && is_on_path(place));
}

bool Roots::is_on_path(const FaultPlace& place) const {
    if (is_link(place)) {
        // A frame that was lost early has not come to the port, only to the switch, if at all.
        const bool is_inner = places_.is_between_switches(place.link);
        return std::ranges::any_of(places_.ends_of(place.link), [&](const auto& end) {
            return trail_.passes(end.first, end.second) || trail_.is_end(end.first) ||
                   (is_inner && trail_.passes(end.first));
        });
    }
    return trail_.passes(place.node) || trail_.is_end(place.node);
}

bool Roots::has_changed(const Record& since, const Record& until) const {
    return std::any_of(&since, &until, [](const Record& record) {
        return record.name == "link_state" || record.name == "port_state";
    });
}

// Nothing was lost: what holds frames up makes them come too late.
void Roots::find_slow() {
    if (!came_late()) {
        return;
    }
    const Record* const success = last_success(records_, what_);
    for (const Record& record : records_) {
        if (&record < success || !is_firing(record) || !begins(record, FailureKind::kTimeout)) {
            continue;
        }
        const std::string_view action = record.text("action");
        if ((is_congestion(record) && was_hit(record)) ||
            ((action == "pause" || action == "link_rate") && is_on_path(places_.of(record)))) {
            add(record);
        }
    }
}

// Returns true unless each transmission of the oldest packet arrived before the next one was sent.
bool Roots::came_late() const {
    const Transmission* last = nullptr;
    for (const Transmission& sent : trail_.transmissions()) {
        if (!sent.is_oldest || sent.is_answer) {
            continue;
        }
        if (last != nullptr &&
            (last->arrived == nullptr || last->arrived->time_ps > sent.sent->time_ps)) {
            return true;
        }
        last = &sent;
    }
    return last == nullptr || last->arrived == nullptr;
}

// Injected RNR NAKs, and programs of the peer that were stopped while it had no receive.
void Roots::find_not_ready() {
    const Record* stop = nullptr;
    const auto& sent = trail_.transmissions();
    const std::int64_t begin = sent.empty() ? what_.time_ps : sent.front().sent->time_ps;
    for (const Record& record : records_) {
        const bool is_peer = places_.is_same_host(record.node, trail_.peer());
        if (is_firing(record) && record.text("action") == "process_stop" &&
            places_.is_same_host(places_.of(record).node, trail_.peer())) {
            stop = &record;
        } else if (record.name == "programs" && is_peer && record.text("change") != "stopped" &&
                   record.time_ps < begin) {
            stop = nullptr;
        }
    }
    for (const Transmission& each : sent) {
        for (const Record* const fired : each.firings) {
            if (is_done_to_packets(*fired) && begins(*fired, FailureKind::kNotReady)) {
                add(*fired);
            }
        }
    }
    if (stop != nullptr) {
        add(*stop);
    }
}

// The last firing of each fault that leads to such an error.
void Roots::find_errors() {
    for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
        if (is_firing(*record) && is_error_of(*record)) {
            add(*record);
        }
    }
    std::ranges::reverse(faults_);
}

bool Roots::is_error_of(const Record& fired) const {
    if (is_done_to_packets(fired)) {
        return begins(fired, FailureKind::kError) && was_hit(fired);
    }
    const FaultConsequenceRow* const row = consequences_of(fired);
    if (row == nullptr || !leads_to_error(*row, row_->cause)) {
        return false;
    }
    const FaultPlace place = places_.of(fired);
    const FaultActionRow& action = *action_of(fired);
    if (action.subject == FaultSubject::kWorkRequest ||
        action.subject == FaultSubject::kSendRequest) {
        return &fired > reset_ && fired.node == trail_.node() &&
               fired.number("flow") == trail_.qpn();
    }
    const bool is_here = places_.is_same_host(place.node, trail_.node());
    const bool is_there = row_->detector == Detector::kResponder && what_.name == "completion" &&
                          places_.is_same_host(place.node, trail_.peer());
    const bool is_other_queue_pair =
        action.subject == FaultSubject::kQueuePair || action.subject == FaultSubject::kWorkQueue
            ? (place.qpn != 0 && place.qpn != trail_.qpn()) || &fired < reset_
            : false;
    return (is_here || is_there) && !is_other_queue_pair;
}

// Returns true if it hit a packet of the request; of a responder, which sends none, one that came
// since it last completed something.
bool Roots::was_hit(const Record& fired) const {
    if (trail_.transmissions().empty()) {
        return trail_.is_of_queue_pair(fired) && &fired > last_progress(records_, what_);
    }
    return std::ranges::any_of(trail_.transmissions(), [&fired](const Transmission& sent) {
        return std::ranges::find(sent.firings, &fired) != sent.firings.end();
    });
}

std::string reason_text(const Record& what, const CompletionFault* row, const Roots& roots) {
    if (row == nullptr) {
        return std::string(what.text("cause"));
    }
    const auto is_nak = [](const Record* fired) { return fired->text("action") == "nak"; };
    if (row->cause == FaultCause::kInjectedStatus && std::ranges::any_of(roots.faults(), is_nak)) {
        return "a packet of it was answered by a NAK that a fault made (injected NAK)";
    }
    return fmt::format("{} ({})", row->description, row->name);
}

}  // namespace scenarios

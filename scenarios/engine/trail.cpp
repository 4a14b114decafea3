#include "scenarios/engine/trail.hpp"

#include <algorithm>

#include "simverbs/model/packet_fate.hpp"
#include "simverbs/model/wire_opcodes.hpp"

namespace scenarios {

namespace {

constexpr std::uint64_t kPsns = 1U << 24U;

std::uint64_t psn_of(const Record& record) {
    return record.number("psn");
}

bool is_of(const Record& record, std::string_view name, std::string_view node, std::uint64_t qpn) {
    return record.name == name && record.node == node && record.number("qpn") == qpn;
}

// An acknowledgment, not a NAK; other answers carry data.
bool is_positive(const Record& answer) {
    constexpr std::uint64_t kKind = 0x60;
    return answer.text("opcode") != "ACKNOWLEDGE" || (answer.number("syndrome") & kKind) == 0;
}

const simverbs::WireOpcode& row_of(const Record& packet) {
    return simverbs::kWireOpcodes[packet.number("bth_opcode") & 0xFF];
}

bool is_notification(const Record& packet) {
    return row_of(packet).kind == simverbs::MessageKind::kCongestionNotification;
}

bool is_request(const Record& packet) {
    return !row_of(packet).response() && !is_notification(packet);
}

// No acknowledgment but the answer with its data acknowledges it.
bool waits_for_data(const Record& request) {
    return simverbs::response_to(row_of(request).kind) != simverbs::MessageKind::kAck;
}

}  // namespace

std::int64_t psn_steps(std::uint64_t from, std::uint64_t to) {
    const std::uint64_t steps = (to - from) & (kPsns - 1);
    return steps < kPsns / 2 ? static_cast<std::int64_t>(steps)
                             : static_cast<std::int64_t>(steps) - std::int64_t{kPsns};
}

Trail::Trail(std::span<const Record> records, const Record& what)
    : records_(records.first(static_cast<std::size_t>(&what - records.data()))),
      node_(what.node),
      qpn_(what.number("qpn")) {
    find_requests();
    find_peer();
    find_oldest();
    find_transmissions();
}

const Record* last_reset(std::span<const Record> records, const Record& what) {
    for (const Record* record = &what; record != records.data();) {
        --record;
        if (is_of(*record, "qp_state", what.node, what.number("qpn")) &&
            record->text("to") == "RESET") {
            return record;
        }
    }
    return nullptr;
}

void Trail::find_requests() {
    for (const Record& record : records_) {
        if (is_of(record, "qp_state", node_, qpn_) &&
            (record.text("to") == "RTR" || record.text("to") == "RESET")) {
            requests_.clear();
            has_beginning_ = true;
            first_sent_ = sent_again_ = 0;
        } else if (is_of(record, "queue_pair_connected", node_, qpn_)) {
            peer_qpn_ = record.number("dest_qpn");
            first_psn_ = record.number("sq_psn");
        } else if (is_of(record, "packet_sent", node_, qpn_) && is_request(record)) {
            requests_.push_back(&record);
            peer_qpn_ = record.number("dest_qpn");
            (record.number("retransmission") != 0 ? sent_again_ : first_sent_) += 1;
        }
    }
    if (!requests_.empty() && !first_psn_) {
        first_psn_ = psn_of(*requests_.front());
    }
}

// Two nodes can have queue pairs of one number: the one that frames have reached is meant.
void Trail::find_peer() {
    for (const Record& record : records_) {
        if (is_of(record, "qp_state", node_, qpn_) && record.text("to") == "RESET") {
            path_.clear();  // the next connection may take another one
        }
        const std::uint64_t flow = record.number("flow");
        if ((record.name == "frame_sent" || record.name == "frame_received") && flow != 0 &&
            (flow == qpn_ || flow == peer_qpn_)) {
            path_[record.node].insert(record.number("port"));
        }
    }
    for (const Record& record : records_) {
        if (record.name == "queue_pair" && record.number("qpn") == peer_qpn_ && peer_qpn_ != 0 &&
            (peer_.empty() || passes(record.node))) {
            peer_ = record.node;
        }
    }
}

bool Trail::is_answer(const Record& record) const {
    return is_of(record, "packet_sent", peer_, peer_qpn_) && record.number("dest_qpn") == qpn_ &&
           !is_request(record) && !is_notification(record);
}

// A packet is the oldest one until it is acknowledged. Where a queue pair goes back, it begins
// with the oldest one. An answer that arrives last is the one that it failed at.
void Trail::find_oldest() {
    if (requests_.empty()) {
        return;
    }
    const bool has_frames = !path_.empty();
    oldest_psn_ = psn_of(*requests_.front());
    std::uint64_t last_psn = oldest_psn_;
    std::map<std::uint64_t, const Record*> answers;  // by the number of the frame
    const Record* arrived = nullptr;
    for (const Record& record : records_) {
        if (&record < requests_.front()) {
            continue;
        }
        if (arrived != nullptr && record.name != "packet_discarded") {
            acknowledge(*arrived);
        }
        arrived = nullptr;
        if (is_of(record, "packet_sent", node_, qpn_) && is_request(record)) {
            if (record.number("retransmission") != 0 && psn_steps(last_psn, psn_of(record)) <= 0) {
                oldest_psn_ = psn_of(record);
                is_reading_ = false;
                unanswered_reads_.clear();
            }
            if (waits_for_data(record)) {
                unanswered_reads_.insert(psn_of(record));
            }
            last_psn = psn_of(record);
        } else if (is_answer(record)) {
            answers[record.number("frame")] = &record;
            arrived = has_frames ? nullptr : &record;
        } else if (record.name == "frame_received" && record.node == node_ &&
                   record.number("flow") == peer_qpn_) {
            const auto found = answers.find(record.number("frame"));
            arrived = found == answers.end() ? nullptr : found->second;
        }
    }
}

// An acknowledgment does not skip a READ whose data has not come.
void Trail::acknowledge(const Record& answer) {
    const std::int64_t steps = psn_steps(oldest_psn_, psn_of(answer));
    const std::int64_t sent = psn_steps(psn_of(*requests_.front()), psn_of(answer));
    const bool is_data = answer.text("opcode") != "ACKNOWLEDGE";
    if (!is_positive(answer) || steps < 0 || sent < 0 || (is_data ? steps > 0 : is_reading_)) {
        return;
    }
    if (is_data) {
        const std::string_view opcode = answer.text("opcode");
        is_reading_ = opcode.ends_with("_FIRST") || opcode.ends_with("_MIDDLE");
        unanswered_reads_.erase(oldest_psn_);
        oldest_psn_ = (oldest_psn_ + 1) & (kPsns - 1);
        return;
    }
    std::int64_t skipped = steps + 1;
    for (const std::uint64_t read : unanswered_reads_) {
        const std::int64_t until = psn_steps(oldest_psn_, read);
        skipped = until >= 0 ? std::min(skipped, until) : skipped;
    }
    oldest_psn_ = (oldest_psn_ + static_cast<std::uint64_t>(skipped)) & (kPsns - 1);
}

// The one that carried the oldest packet; where its data is the rest of a READ, the READ.
const Record* Trail::first_transmission() const {
    const Record* before = nullptr;
    for (const Record* const sent : requests_) {
        const std::int64_t steps = psn_steps(oldest_psn_, psn_of(*sent));
        if (steps >= 0) {
            const bool is_rest = steps > 0 || sent->number("retransmission") != 0;
            return is_rest && before != nullptr && waits_for_data(*before) ? before : sent;
        }
        before = sent;
    }
    return before;
}

void Trail::find_transmissions() {
    const Record* const first = first_transmission();
    if (first == nullptr) {
        return;
    }
    for (const Record& record : records_) {
        if (&record < first) {
            continue;
        }
        if (record.name == "packet_sent") {
            note_sent(record, *first);
        } else if (record.name == "frame_received" || record.name == "frame_dropped") {
            note_frame(record);
        } else if (record.name == "packet_discarded") {
            note_discarded(record);
        } else if (record.name == "fault_fired") {
            note_fired(record);
        }
    }
}

void Trail::note_sent(const Record& record, const Record& first) {
    const bool answers = is_answer(record);
    if (!answers && !(is_of(record, "packet_sent", node_, qpn_) && is_request(record))) {
        return;
    }
    const std::int64_t steps = psn_steps(oldest_psn_, psn_of(record));
    if (steps < 0 && &record != &first) {
        return;
    }
    const bool is_oldest =
        steps <= 0 || (answers && record.text("opcode") == "ACKNOWLEDGE" && is_positive(record));
    frames_[{record.number("qpn"), record.number("frame")}] = transmissions_.size();
    transmissions_.push_back({&record, answers, is_oldest});
}

void Trail::note_frame(const Record& record) {
    const auto found = frames_.find({record.number("flow"), record.number("frame")});
    if (found == frames_.end()) {
        return;
    }
    Transmission& sent = transmissions_[found->second];
    if (record.name == "frame_dropped") {
        sent.lost = &record;
    } else if (record.node == (sent.is_answer ? node_ : peer_)) {
        sent.arrived = &record;
    }
}

// Ethernet switches flood: what another station throws away is not lost.
void Trail::note_discarded(const Record& record) {
    const std::uint64_t target = record.number("dest_qpn");
    if ((target != peer_qpn_ && target != qpn_) || record.text("fate") == "for another station" ||
        simverbs::is_consequence(record.text("fate"))) {
        return;
    }
    Transmission* const sent = latest(target == qpn_ && record.node == node_, psn_of(record));
    if (sent != nullptr && sent->lost == nullptr) {
        sent->lost = &record;
    }
}

void Trail::note_fired(const Record& record) {
    if (record.text("operation").empty() || !is_of_queue_pair(record) || !first_psn_) {
        return;
    }
    const std::uint64_t psn = (*first_psn_ + record.number("relative_psn") - 1) & (kPsns - 1);
    Transmission* const sent = latest(record.number("flow") != qpn_, psn);
    if (sent != nullptr) {
        sent->firings.push_back(&record);
    }
}

Transmission* Trail::latest(bool is_answer, std::uint64_t psn) {
    for (auto sent = transmissions_.rbegin(); sent != transmissions_.rend(); ++sent) {
        if (sent->is_answer == is_answer && psn_of(*sent->sent) == psn) {
            return &*sent;
        }
    }
    return nullptr;
}

std::uint64_t Trail::sent_of_request() const {
    std::set<std::uint64_t> psns;
    for (const Transmission& sent : transmissions_) {
        if (!sent.is_answer && psn_steps(oldest_psn_, psn_of(*sent.sent)) >= 0) {
            psns.insert(psn_of(*sent.sent));
        }
    }
    bool is_cut = !requests_.empty() && !row_of(*requests_.back()).ends_message;
    for (auto sent = requests_.rbegin(); is_cut && sent != requests_.rend(); ++sent) {
        psns.insert(psn_of(**sent));
        is_cut = !row_of(**sent).starts_message;
    }
    return psns.size();
}

bool Trail::is_of_queue_pair(const Record& fired) const {
    return fired.number("flow") == qpn_ || fired.number("to_flow") == qpn_;
}

}  // namespace scenarios

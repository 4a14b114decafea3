#include "scenarios/engine/explain.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "fabric/core/counted.hpp"

#include "simverbs/model/completion_faults.hpp"

#include "scenarios/engine/disagreement.hpp"
#include "scenarios/engine/errno_names.hpp"
#include "scenarios/engine/explain_steps.hpp"
#include "scenarios/engine/explain_tag.hpp"
#include "scenarios/engine/fault_text.hpp"
#include "scenarios/engine/lost_messages.hpp"
#include "scenarios/engine/roots.hpp"

namespace scenarios {

namespace {

using simverbs::CompletionFault;
using simverbs::Detector;
using simverbs::FaultCause;

const CompletionFault* row_of(std::string_view cause) {
    const auto found =
        std::ranges::find(simverbs::kCompletionFaults, cause, &CompletionFault::name);
    return found == simverbs::kCompletionFaults.end() ? nullptr : &*found;
}

class Explanation {
  public:
    Explanation(std::span<const Record> records, const RunNames* names)
        : records_(records), names_(names) {}

    std::optional<std::string> of(const Question& question) {
        is_cut_ = question.is_cut;
        const Record* const completion = find_completion(records_, question);
        if (completion == nullptr && question.time_ps) {
            return std::nullopt;
        }
        const Record* const stopped =
            completion == nullptr ? find_stop(records_, question) : nullptr;
        const bool is_failure =
            stopped != nullptr ||
            (completion != nullptr && (question.index || question.completion != nullptr ||
                                       !was_flushed_by_program(*completion)));
        if (!is_failure && (explain_refused_call(question) || explain_management())) {
            return text_;
        }
        if (completion != nullptr) {
            root_.cause = completion->text("cause");
            explain_completion(*completion);
        } else if (stopped != nullptr) {
            root_.cause = stopped->text("cause");
            say("{}: {} went from {} to {}: {}.", time_text(stopped->time_ps),
                queue_pair_of(*stopped), stopped->text("from"), stopped->text("to"),
                reason(*stopped));
            explain_roots(*stopped);
        } else {
            return std::nullopt;
        }
        return text_;
    }

    [[nodiscard]] const Root& root() const { return root_; }

  private:
    template <class... Args>
    void say(fmt::format_string<Args...> format, Args&&... args) {
        text_ += "    " + fmt::format(format, std::forward<Args>(args)...) + "\n";
    }

    // "h0/c (QP 0x10001)", or as pictures have it where the end has no name.
    [[nodiscard]] std::string queue_pair_of(const Record& record) const {
        return end_text(names_, record.node, record.number("qpn"));
    }

    // By its place in its queue, from 0, and by the id that the program gave it.
    [[nodiscard]] std::string request_of(const Record& completion) const {
        const std::uint64_t index = completion.number("index");
        const auto id = names_ == nullptr ? std::nullopt : names_->id_of(completion);
        return id && *id != index ? fmt::format("request {} (id {})", index, *id)
                                  : fmt::format("request {}", index);
    }

    [[nodiscard]] std::string fault_of(const Record& fired) const {
        return fault_name(records_, fired);
    }

    [[nodiscard]] std::string reason(const Record& what) const {
        const CompletionFault* const row = row_of(what.text("cause"));
        return reason_text(what, row, Roots(records_, places_, Trail(records_, what), what, row));
    }

    void explain_completion(const Record& completion) {
        const std::string_view cause = completion.text("cause");
        say("{}: {} of {} completed with {}: {}.", time_text(completion.time_ps),
            request_of(completion), queue_pair_of(completion), completion.text("status"),
            reason(completion));
        if (completion.text("opcode").starts_with("TM_")) {
            text_ += describe_tag(records_, completion);
        }
        text_ += describe_undelivered(records_, completion);
        if (completion.text("status") == "SUCCESS") {
            text_ += describe_retries(Trail(records_, completion));
            explain_roots(completion);
            return;
        }
        if (cause == "flushed") {
            explain_flush(completion);
            return;
        }
        const CompletionFault* const row = row_of(cause);
        if (row != nullptr) {
            explain_row(*row, completion);
        }
        explain_roots(completion);
    }

    // The last change that stopped the queue pair of a flushed request.
    [[nodiscard]] const Record* stop_of(const Record& completion) const {
        const Record* stop = nullptr;
        for (const Record& record : records_) {
            if (record.time_ps <= completion.time_ps && record.name == "qp_state" &&
                record.node == completion.node &&
                record.number("qpn") == completion.number("qpn") &&
                (record.text("to") == "ERR" || record.text("to") == "SQE")) {
                stop = &record;
            }
        }
        return stop;
    }

    [[nodiscard]] bool was_flushed_by_program(const Record& completion) const {
        const Record* const stop = stop_of(completion);
        return completion.text("cause") == "flushed" && stop != nullptr &&
               stop->text("trigger") == "modify";
    }

    // A verb that an injected fault made fail.
    bool explain_refused_call(const Question& question) {
        const Record* fired = nullptr;
        for (const Record& record : records_) {
            if (record.name == "fault_fired" && record.text("action") == "call") {
                fired = &record;
            } else if (fired != nullptr && record.name == "verb" && record.number("errno") != 0 &&
                       record.node == fired->node &&
                       (question.node.empty() || record.node == question.node)) {
                root_ = {"refused call", {"call"}};
                say("{}: ibv_{} of {} answered {}.", time_text(record.time_ps), record.text("verb"),
                    record.node, errno_name(static_cast<int>(record.number("errno"))));
                say_fault(*fired, record, true);
                return true;
            }
        }
        return false;
    }

    // Messages of communication management that faults took, and what rdma_cm said then.
    bool explain_management() {
        const Record* last = nullptr;
        for (const Record& record : records_) {
            if (record.name == "fault_fired" && record.text("operation").starts_with("CM_")) {
                last = &record;
            } else if (record.name == "rdma_cm_event" && record.text("status").starts_with("-")) {
                say("{}: rdma_cm told {}: {}.", time_text(record.time_ps), record.node,
                    record.text("event"));
            }
        }
        if (last == nullptr) {
            text_.clear();
            return false;
        }
        std::set<std::uint64_t> told;
        root_.cause = "communication management";
        for (const Record& record : records_) {
            if (record.name == "fault_fired" && record.text("operation").starts_with("CM_") &&
                told.insert(record.number("fault")).second) {
                root_.actions.emplace(record.text("action"));
                say_fault(record, records_.back(), true);
            }
        }
        return true;
    }

    // Flushed work follows from what stopped the queue pair.
    void explain_flush(const Record& completion) {
        const Record* const stop = stop_of(completion);
        if (stop == nullptr) {
            return;
        }
        if (stop->text("trigger") == "modify") {
            say("{}: the program of {} had moved the queue pair to {} itself.",
                time_text(stop->time_ps), stop->node, stop->text("to"));
            return;
        }
        const Record* const reset = last_reset(records_, *stop);
        for (const Record& record : records_) {
            if (&record > reset && record.name == "completion" && record.node == stop->node &&
                record.number("qpn") == stop->number("qpn") && record.time_ps <= stop->time_ps &&
                record.text("cause") == stop->text("cause")) {
                say("It was outstanding when the queue pair stopped, because:");
                explain_completion(record);
                return;
            }
        }
        say("{}: the queue pair went to {}: {}.", time_text(stop->time_ps), stop->text("to"),
            reason(*stop));
        explain_roots(*stop);
    }

    void explain_row(const CompletionFault& row, const Record& completion) {
        const bool is_responder = row.detector == Detector::kResponder;
        if (row.detector == Detector::kTimer || row.cause == simverbs::FaultCause::kPacketsLost) {
            text_ += describe_retries(Trail(records_, completion));
        } else if (is_responder) {
            say_responder(row, completion);
        } else if (row.detector == Detector::kRequester &&
                   row.wire == simverbs::WireAnswer::kNothing) {
            text_ += describe_sent_before(records_, completion);
        }
        if (row.cause == simverbs::FaultCause::kRnrRetriesUsedUp) {
            text_ += describe_not_ready(records_, completion);
        }
    }

    // The responder that refused it: the last one, since a queue pair can have had other lives.
    void say_responder(const CompletionFault& row, const Record& completion) {
        const Trail trail(records_, completion);
        const Record* refused = nullptr;
        for (const Record& record : records_) {
            const bool is_stop = record.name == "qp_state" && record.text("cause") == row.name &&
                                 record.text("trigger") != "modify" &&
                                 record.time_ps <= completion.time_ps;
            const bool is_peer =
                trail.peer().empty()
                    ? record.node != completion.node
                    : record.node == trail.peer() && record.number("qpn") == trail.peer_qpn();
            if (is_stop && is_peer) {
                refused = &record;
            }
        }
        if (refused != nullptr) {
            say("{}: {} found it{}, answered {}, and {} went to {}.", time_text(refused->time_ps),
                refused->node, arrival_text(trail, *refused), to_string(row.wire),
                queue_pair_of(*refused), refused->text("to"));
            text_ += describe_calls(records_, *refused);
        }
    }

    // ---- what began it

    // Prints the faults and the losses that lead to `what`, and faults that it survived.
    void explain_roots(const Record& what) {
        const CompletionFault* const row = row_of(what.text("cause"));
        const Trail trail(records_, what);
        const Roots roots(records_, places_, trail, what, row);
        for (const Record* const fired : roots.faults()) {
            root_.actions.emplace(fired->text("action"));
            say_fault(*fired, what, true);
        }
        say_survived(trail, roots, what);
        if (row != nullptr && row->cause == FaultCause::kSuccess) {
            return;
        }
        bool has_root = !roots.faults().empty();
        for (const Record* const lost : roots.losses()) {
            say_loss(*lost, trail);
            has_root = true;
        }
        if (!has_root && !say_disagreement(trail, row)) {
            say("{}", is_cut_ ? "No injected fault that leads to it is among the records that were "
                                "kept."
                              : "No fault was injected that leads to it: what the programs asked "
                                "for did.");
        }
    }

    // Faults that hit packets of the queue pair since it last completed something.
    void say_survived(const Trail& trail, const Roots& roots, const Record& what) {
        const Record* const progress = last_progress(records_, what);
        std::set<std::uint64_t> told;
        for (const Record* const fired : roots.faults()) {
            told.insert(fired->number("fault"));
        }
        for (const Record& record : records_) {
            if (&record == &what) {
                break;
            }
            if (record.name == "fault_fired" && &record > progress &&
                trail.is_of_queue_pair(record) && !record.text("operation").empty() &&
                told.insert(record.number("fault")).second) {
                say_fault(record, what, false);
            }
        }
    }

    void say_fault(const Record& fired, const Record& before, bool is_root) {
        std::size_t which = 0;
        std::size_t firings = 0;
        for (const Record& record : records_) {
            if (&record == &before) {
                break;
            }
            if (record.name == "fault_fired" && record.number("fault") == fired.number("fault")) {
                ++firings;
                which = &record == &fired ? firings : which;
            }
        }
        say("{} the injected fault {} fired at {}: {} {}.",
            is_root ? "Root:" : "On the way, and not the reason:", fault_of(fired),
            time_text(fired.time_ps), place_text(fired, places_),
            is_cut_        ? fmt::format("at least {}", fabric::counted(firings, "time"))
            : firings == 1 ? std::string("once")
            : which == 1   ? fmt::format("for the first of {} times", firings)
                           : fmt::format("time {} of {}", which, firings));
    }

    // A packet that went no further without an injected fault, and why.
    void say_loss(const Record& lost, const Trail& trail) {
        const std::string_view reason = reason_of_loss(lost);
        std::string text;
        if (lost.name == "frame_dropped") {
            text = fmt::format("{}: {}", time_text(lost.time_ps), describe_drop(lost));
        } else {
            text = fmt::format("{}: {} discarded a packet for QP {:#x}: {}",
                               time_text(lost.time_ps), lost.node, lost.number("dest_qpn"), reason);
        }
        if (reason == "queue pair not ready" && say_not_in_rtr(lost, text)) {
            return;
        }
        say("Root: {}.", text);
        if (reason == "no such queue pair") {
            say_destroyed(lost);
        } else if (reason == "not from the peer") {
            say_disagreement(trail, row_of(to_string(FaultCause::kPacketsLost)));
        }
    }

    // The queue pair at the other end is silent: explains why it is in that state.
    bool say_not_in_rtr(const Record& lost, const std::string& text) {
        const Record* last = nullptr;
        for (const Record& record : records_) {
            if (&record == &lost) {
                break;
            }
            if (record.name == "qp_state" && record.node == lost.node &&
                record.number("qpn") == lost.number("dest_qpn")) {
                last = &record;
            }
        }
        if (last == nullptr) {
            return false;
        }
        say("{}.", text);
        const std::string time = time_text(last->time_ps);
        if (last->text("trigger") != "modify") {
            say("{}: {} had gone to {}: {}.", time, queue_pair_of(*last), last->text("to"),
                reason(*last));
            explain_roots(*last);
        } else if (last->text("to") == "INIT") {
            say("Root: the program of {} had not yet moved {} from INIT to RTR.", last->node,
                queue_pair_of(*last));
        } else {
            say("Root: {}: the program of {} had moved {} from {} to {}.", time, last->node,
                queue_pair_of(*last), last->text("from"), last->text("to"));
        }
        return true;
    }

    void say_destroyed(const Record& lost) {
        for (const Record& record : records_) {
            if (&record == &lost) {
                break;
            }
            if (record.name == "verb" && record.text("verb") == "destroy_qp" &&
                record.node == lost.node && record.number("handle") == lost.number("dest_qpn") &&
                record.number("errno") == 0) {
                say("{}: {} had called ibv_destroy_qp for it.", time_text(record.time_ps),
                    record.node);
            }
        }
    }

    // Attributes of the two ends that do not fit each other.
    bool say_disagreement(const Trail& trail, const CompletionFault* row) {
        const std::string text =
            row == nullptr ? "" : describe_disagreement(records_, trail, row->cause, names_);
        if (!text.empty()) {
            say("Root: {}.", text);
        }
        return !text.empty();
    }

    std::span<const Record> records_;
    const RunNames* names_;
    FaultPlaces places_{records_};
    std::string text_;
    Root root_;
    bool is_cut_ = false;
};

// Faults that fired when there was nothing to do them to: the last firing of each.
std::string describe_missed_faults(std::span<const Record> records) {
    std::string text;
    std::map<std::uint64_t, const Record*> missed;
    for (const Record& record : records) {
        if (record.name == "fault_missed") {
            missed[record.number("fault")] = &record;
        }
    }
    for (const auto& [fault, record] : missed) {
        text += fmt::format("    {}: the injected fault {} fired and did nothing: {}.\n",
                            time_text(record->time_ps), fault_name(records, *record),
                            record->text("reason"));
    }
    return text;
}

}  // namespace

std::optional<std::string> explain(std::span<const Record> records, const Question& question,
                                   const RunNames* names) {
    const std::optional<std::string> failure = Explanation(records, names).of(question);
    if (!failure && question.time_ps) {
        return std::nullopt;
    }
    const std::string lost = describe_lost_messages(records, question, names);
    if (!failure && lost.empty()) {
        return std::nullopt;
    }
    return failure.value_or("") + lost + describe_missed_faults(records);
}

Root root_of(std::span<const Record> records, const Question& question) {
    Explanation explanation(records, nullptr);
    static_cast<void>(explanation.of(question));
    return explanation.root();
}

}  // namespace scenarios

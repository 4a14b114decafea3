#include "scenarios/engine/explain.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>

#include "fabric/core/counted.hpp"

#include "simverbs/model/completion_faults.hpp"

#include "scenarios/engine/disagreement.hpp"
#include "scenarios/engine/errno_names.hpp"
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
        const Record* const completion = find_completion(records_, question);
        if (completion == nullptr && question.time_ps) {
            return std::nullopt;
        }
        const Record* const stopped =
            completion == nullptr ? find_stop(records_, question) : nullptr;
        const bool is_failure =
            stopped != nullptr ||
            (completion != nullptr && (question.index || !was_flushed_by_program(*completion)));
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
        say_undelivered(completion);
        if (completion.text("status") == "SUCCESS") {
            say_retries(completion);
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

    // The program does not see completions of a queue that had no room for them, or is dead.
    void say_undelivered(const Record& completion) {
        const Record* last = nullptr;  // of the queue, before it died
        for (const Record& record : records_) {
            if (record.node != completion.node || record.number("cq") != completion.number("cq")) {
                continue;
            }
            if (record.name == "completion") {
                last = &record;
            } else if (record.name == "cq_state" && record.text("to") == "DEAD") {
                const bool overran = last == &completion && record.time_ps == last->time_ps;
                if (overran || &record < &completion) {
                    say("The program did not get that completion: at {} completion queue {} of {} "
                        "overran.",
                        time_text(record.time_ps), record.number("cq"), record.node);
                }
                return;
            }
        }
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
        for (const Record& record : records_) {
            if (record.name == "completion" && record.node == stop->node &&
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
            say_retries(completion);
        } else if (is_responder) {
            say_responder(row, completion);
        } else if (row.detector == Detector::kRequester &&
                   row.wire == simverbs::WireAnswer::kNothing) {
            say_sent_before(completion);
        }
        if (row.cause == simverbs::FaultCause::kRnrRetriesUsedUp) {
            say_not_ready(completion);
        }
    }

    void say_responder(const CompletionFault& row, const Record& completion) {
        for (const Record& record : records_) {
            const bool is_stop = record.name == "qp_state" && record.text("cause") == row.name &&
                                 record.text("trigger") != "modify" &&
                                 record.node != completion.node;
            if (is_stop && record.time_ps <= completion.time_ps) {
                say("{}: {} found it{}, answered {}, and {} went to {}.", time_text(record.time_ps),
                    record.node, arrival_text(completion, record), to_string(row.wire),
                    queue_pair_of(record), record.text("to"));
                say_calls(record, record.node);
                return;
            }
        }
    }

    // When the request had come that a responder refused; it answers them in order.
    [[nodiscard]] std::string arrival_text(const Record& completion, const Record& refused) const {
        const Trail trail(records_, completion);
        for (const Transmission& sent : trail.transmissions()) {
            if (!sent.is_answer && sent.is_oldest && sent.arrived != nullptr &&
                sent.arrived->time_ps < refused.time_ps) {
                return fmt::format(" in a request that had arrived at {}",
                                   time_text(sent.arrived->time_ps));
            }
        }
        return {};
    }

    // Prints what the program had done to memory and rights before.
    void say_calls(const Record& before, std::string_view node) {
        constexpr auto kTelling =
            std::to_array<std::string_view>({"dereg_mr", "rereg_mr", "dealloc_mw"});
        for (const Record& record : records_) {
            const bool tells = record.name == "verb" && record.number("errno") == 0 &&
                               record.node == node &&
                               std::ranges::find(kTelling, record.text("verb")) != kTelling.end();
            if (tells && record.time_ps <= before.time_ps && &record < &before) {
                say("{}: {} had called ibv_{}.", time_text(record.time_ps), record.node,
                    record.text("verb"));
            }
        }
    }

    // The requester itself found something wrong, before it sent the request or in the middle.
    void say_sent_before(const Record& completion) {
        const std::uint64_t sent = Trail(records_, completion).sent_of_request();
        if (sent == 0) {
            say("Nothing of it was sent: {} refused it before.", completion.node);
        } else {
            say("{} of it had been sent when {} found that.", fabric::counted(sent, "packet"),
                completion.node);
        }
        say_calls(completion, completion.node);
    }

    void say_retries(const Record& completion) {
        const Trail trail(records_, completion);
        if (trail.sent_again() > 0) {
            say("{} had sent {} on that queue pair, and {} more again.", completion.node,
                fabric::counted(trail.first_sent(), "packet"), trail.sent_again());
        }
    }

    void say_not_ready(const Record& completion) {
        std::uint64_t naks = 0;
        std::string who;
        for (const Record& record : records_) {
            constexpr std::uint64_t kKind = 0x60;
            constexpr std::uint64_t kRnr = 0x20;
            if (record.name == "packet_sent" && record.text("opcode") == "ACKNOWLEDGE" &&
                (record.number("syndrome") & kKind) == kRnr && record.node != completion.node &&
                record.number("dest_qpn") == completion.number("qpn")) {
                ++naks;
                who = record.node;
            }
        }
        say("{} answered {} that it was not ready: it had no receive posted.", who,
            fabric::counted(naks, "time"));
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
            say("No fault was injected that leads to it: what the programs asked for did.");
        }
    }

    // Faults that hit packets of the queue pair since it last completed something.
    void say_survived(const Trail& trail, const Roots& roots, const Record& what) {
        const std::int64_t success = last_success_before(records_, what);
        std::set<std::uint64_t> told;
        for (const Record* const fired : roots.faults()) {
            told.insert(fired->number("fault"));
        }
        for (const Record& record : records_) {
            if (&record == &what) {
                break;
            }
            if (record.name == "fault_fired" && record.time_ps > success &&
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
            firings == 1 ? std::string("once")
            : which == 1 ? fmt::format("for the first of {} times", firings)
                         : fmt::format("time {} of {}", which, firings));
    }

    // A packet that went no further without an injected fault, and why.
    void say_loss(const Record& lost, const Trail& trail) {
        const std::string_view reason = reason_of_loss(lost);
        std::string text;
        if (lost.name == "frame_dropped") {
            const std::uint64_t lid = reason == "no_route" ? lost.number("dlid") : 0;
            text = fmt::format("{}: {} dropped a frame{}: {}", time_text(lost.time_ps), lost.node,
                               lid == 0 ? "" : fmt::format(" for LID {}", lid), reason);
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
};

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
    return failure.value_or("") + lost;
}

Root root_of(std::span<const Record> records, const Question& question) {
    Explanation explanation(records, nullptr);
    static_cast<void>(explanation.of(question));
    return explanation.root();
}

}  // namespace scenarios

#include "scenarios/engine/explain.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "fabric/core/counted.hpp"

#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/fault_actions.hpp"
#include "simverbs/model/packet_fate.hpp"

#include "scenarios/engine/lost_messages.hpp"

namespace scenarios {

namespace {

using simverbs::CompletionFault;
using simverbs::Detector;
using simverbs::FailureKind;
using simverbs::FaultActionRow;
using simverbs::FaultReach;

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
        if (const Record* const completion = find_completion(question)) {
            root_.cause = completion->text("cause");
            explain_completion(*completion);
        } else if (const Record* const stopped = find_stop(question)) {
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

    static bool is_meant(const Record& record, const Question& question) {
        return (!question.qpn || record.number("qpn") == *question.qpn) &&
               (question.node.empty() || record.node == question.node) &&
               (!question.index || record.number("index") == *question.index);
    }

    // The one that is named, else the first that failed of itself, else the first flushed one.
    [[nodiscard]] const Record* find_completion(const Question& question) const {
        const Record* flushed = nullptr;
        for (const Record& record : records_) {
            if (record.name != "completion" || !is_meant(record, question)) {
                continue;
            }
            const std::string_view status = record.text("status");
            if (question.index || (status != "SUCCESS" && status != "WR_FLUSH_ERR")) {
                return &record;
            }
            flushed = flushed == nullptr && status == "WR_FLUSH_ERR" ? &record : flushed;
        }
        return flushed;
    }

    [[nodiscard]] const Record* find_stop(const Question& question) const {
        for (const Record& record : records_) {
            if (record.name == "qp_state" && record.text("trigger") != "modify" &&
                record.text("trigger") != "drained" &&
                (!question.qpn || record.number("qpn") == *question.qpn) &&
                (question.node.empty() || record.node == question.node)) {
                return &record;
            }
        }
        return nullptr;
    }

    // "h0/c (QP 0x10001)", or as pictures have it where the end has no name.
    [[nodiscard]] std::string queue_pair_of(const Record& record) const {
        const std::uint64_t qpn = record.number("qpn");
        const std::string end = names_ == nullptr ? "" : names_->end_of(record.node, qpn);
        return end.empty() ? queue_pair_text(record.node, qpn)
                           : fmt::format("{} (QP {:#x})", end, qpn);
    }

    // By its place in its queue, from 0, and by the id that the program gave it.
    [[nodiscard]] std::string request_of(const Record& completion) const {
        const std::uint64_t index = completion.number("index");
        const auto id = names_ == nullptr ? std::nullopt : names_->id_of(completion);
        return id && *id != index ? fmt::format("request {} (id {})", index, *id)
                                  : fmt::format("request {}", index);
    }

    // By its name; without one by its number.
    [[nodiscard]] std::string fault_of(const Record& fired) const {
        for (const Record& record : records_) {
            if (record.name == "fault" && record.number("fault") == fired.number("fault")) {
                return fmt::format("\"{}\" ({})", record.text("name"), fired.text("action"));
            }
        }
        return fmt::format("{} ({})", fired.number("fault"), fired.text("action"));
    }

    // Why a request failed or a queue pair stopped. A NAK that a fault makes has the cause of
    // statuses that faults ask for.
    [[nodiscard]] std::string reason(const Record& what) const {
        const CompletionFault* const row = row_of(what.text("cause"));
        if (row == nullptr) {
            return std::string(what.text("cause"));
        }
        const auto is_nak = [](const Firings& each) {
            return each.front()->text("action") == "nak";
        };
        if (row->cause == simverbs::FaultCause::kInjectedStatus &&
            std::ranges::any_of(firings_before(what), is_nak)) {
            return "a packet of it was answered by a NAK that a fault made (injected NAK)";
        }
        return fmt::format("{} ({})", row->description, row->name);
    }

    void explain_completion(const Record& completion) {
        const std::string_view cause = completion.text("cause");
        say("{}: {} of {} completed with {}: {}.", time_text(completion.time_ps),
            request_of(completion), queue_pair_of(completion), completion.text("status"),
            reason(completion));
        if (completion.text("opcode").starts_with("TM_")) {
            say_tag(completion);
        }
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

    // The message of a tagged receive: the last that took the tag of that handle, which is the
    // index of its completion; without one, the last that was looked up.
    void say_tag(const Record& completion) {
        const Record* last = nullptr;
        const Record* own = nullptr;
        for (const Record& record : records_) {
            if (record.time_ps > completion.time_ps || record.name != "tag" ||
                record.node != completion.node ||
                record.number("qpn") != completion.number("qpn")) {
                continue;
            }
            last = &record;
            if (record.text("outcome") == "matched" &&
                record.number("handle") == completion.number("index")) {
                own = &record;
            }
        }
        const Record* const found = own != nullptr ? own : last;
        if (found == nullptr) {
            return;
        }
        const std::string_view outcome = found->text("outcome");
        std::string what = "has no tag and took an ordinary receive";
        if (outcome == "matched") {
            what = fmt::format("matched the tag of handle {}", found->number("handle"));
        } else if (outcome == "unexpected") {
            what = "matched no tag of the list and took an ordinary receive";
        } else if (outcome == "not in use") {
            what =
                "took an ordinary receive: the tag that it matches was added before software had "
                "reported all unexpected messages";
        }
        say("{}: a message with tag {:#x} {}.", time_text(found->time_ps), found->number("tag"),
            what);
    }

    // Flushed work follows from what stopped the queue pair.
    void explain_flush(const Record& completion) {
        const Record* stop = nullptr;
        for (const Record& record : records_) {
            if (record.time_ps <= completion.time_ps && record.name == "qp_state" &&
                record.node == completion.node &&
                record.number("qpn") == completion.number("qpn") &&
                (record.text("to") == "ERR" || record.text("to") == "SQE")) {
                stop = &record;
            }
        }
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
            say("Nothing of it was sent: {} refused it before.", completion.node);
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
                say("{}: {} found it when the request arrived, answered {}, and {} went to {}.",
                    time_text(record.time_ps), record.node, to_string(row.wire),
                    queue_pair_of(record), record.text("to"));
                say_calls(record);
                return;
            }
        }
        say_calls(completion);
    }

    // Prints what the programs had done to memory and rights before.
    void say_calls(const Record& before) {
        constexpr auto kTelling =
            std::to_array<std::string_view>({"dereg_mr", "rereg_mr", "dealloc_mw"});
        for (const Record& record : records_) {
            const bool tells = record.name == "verb" && record.number("errno") == 0 &&
                               std::ranges::find(kTelling, record.text("verb")) != kTelling.end();
            if (tells && record.time_ps <= before.time_ps && &record < &before) {
                say("{}: {} had called ibv_{}.", time_text(record.time_ps), record.node,
                    record.text("verb"));
            }
        }
    }

    void say_retries(const Record& completion) {
        std::uint64_t first = 0;
        std::uint64_t again = 0;
        for (const Record& record : records_) {
            if (record.name == "packet_sent" && record.node == completion.node &&
                record.number("qpn") == completion.number("qpn") &&
                record.time_ps <= completion.time_ps) {
                (record.number("retransmission") != 0 ? again : first) += 1;
            }
        }
        if (again > 0) {
            say("{} had sent {} on that queue pair, and {} more again.", completion.node,
                fabric::counted(first, "packet"), again);
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

    // Returns true if faults of that action lead to such a cause; others happened on the way.
    static bool can_begin(std::string_view action, const CompletionFault* row) {
        const FaultActionRow* const fault = simverbs::find_fault_action(action);
        if (fault == nullptr || row == nullptr) {
            return true;
        }
        if (row->cause == simverbs::FaultCause::kRnrRetriesUsedUp) {
            return fault->begins.contains(FailureKind::kNotReady);
        }
        return fault->begins.contains(row->detector == Detector::kTimer ? FailureKind::kTimeout
                                                                        : FailureKind::kError);
    }

    // Returns true if an action affects more than the queue pair of what set it off.
    static bool reaches_all(std::string_view action) {
        const FaultActionRow* const fault = simverbs::find_fault_action(action);
        return fault != nullptr && row_of(fault->subject).reach == FaultReach::kFabric;
    }

    // Packets of the queue pair, in either direction, or something without packets.
    [[nodiscard]] bool concerns(const Record& fault, const Record& what) const {
        if (reaches_all(fault.text("action"))) {
            return true;
        }
        const std::uint64_t qpn = what.number("qpn");
        const std::uint64_t flow = fault.number("flow");
        const std::uint64_t to_flow = fault.number("to_flow");
        return (flow == 0 && to_flow == 0) || flow == qpn || to_flow == qpn;
    }

    // The firings of one fault before a failure, in order.
    using Firings = std::vector<const Record*>;

    [[nodiscard]] std::vector<Firings> firings_before(const Record& what) const {
        std::vector<Firings> faults;
        for (const Record& record : records_) {
            if (record.name != "fault_fired" || record.time_ps > what.time_ps ||
                !concerns(record, what)) {
                continue;
            }
            const auto same = std::ranges::find_if(faults, [&record](const Firings& each) {
                return each.front()->number("fault") == record.number("fault");
            });
            if (same == faults.end()) {
                faults.push_back({&record});
            } else {
                same->push_back(&record);
            }
        }
        return faults;
    }

    // When the queue pair last completed something without an error; -1: it never did.
    [[nodiscard]] std::int64_t last_success_before(const Record& what) const {
        std::int64_t last = -1;
        for (const Record& record : records_) {
            if (record.time_ps >= what.time_ps) {
                break;
            }
            if (record.name == "completion" && record.node == what.node &&
                record.number("qpn") == what.number("qpn") && record.text("status") == "SUCCESS") {
                last = record.time_ps;
            }
        }
        return last;
    }

    // Which of several firings began the failure; earlier ones were recovered: the first that hit
    // the oldest packet among those hit since the last success.
    [[nodiscard]] std::size_t beginning_of(const Firings& firings, std::int64_t success) const {
        const auto psn = [](const Record* firing) { return firing->number("relative_psn"); };
        const auto since = std::ranges::find_if(
            firings, [success](const Record* firing) { return firing->time_ps > success; });
        if (since == firings.end()) {
            return 0;
        }
        if ((*since)->text("operation").empty()) {
            return static_cast<std::size_t>(since - firings.begin());
        }
        const std::uint64_t oldest = psn(*std::ranges::min_element(since, firings.end(), {}, psn));
        return static_cast<std::size_t>(std::ranges::find(firings, oldest, psn) - firings.begin());
    }

    void explain_roots(const Record& what) {
        const CompletionFault* const row = row_of(what.text("cause"));
        root_.cause = what.text("cause");
        bool has_root = false;
        const std::int64_t success = last_success_before(what);
        for (const Firings& firings : firings_before(what)) {
            const std::string action(firings.front()->text("action"));
            const bool is_root = can_begin(action, row);
            has_root = has_root || is_root;
            if (is_root) {
                root_.actions.insert(action);
            }
            say_fault(firings, beginning_of(firings, success), is_root);
        }
        const bool is_lost = row != nullptr && row->detector == Detector::kTimer;
        if (!has_root && !(is_lost && say_lost(what))) {
            say("No fault was injected that leads to it: what the programs asked for did.");
        }
    }

    void say_fault(const Firings& firings, std::size_t which, bool is_root) {
        const Record& fault = *firings[which];
        std::string packet;
        if (!fault.text("operation").empty()) {
            packet = fmt::format(" {}, PSN {} of its queue pair, transmission {},",
                                 fault.text("operation"), fault.number("relative_psn"),
                                 fault.number("attempt"));
        }
        say("{} the injected fault {} fired at {}: at {},{} {}.",
            is_root ? "Root:" : "On the way, and not the reason:", fault_of(fault),
            time_text(fault.time_ps), fault.node, packet,
            firings.size() == 1 ? std::string("once")
            : which == 0        ? fmt::format("for the first of {} times", firings.size())
                                : fmt::format("time {} of {}", which + 1, firings.size()));
    }

    // Frames that went no further without an injected fault.
    bool say_lost(const Record& what) {
        for (const Record& record : records_) {
            if (record.time_ps > what.time_ps) {
                break;
            }
            if (record.name == "packet_discarded" &&
                !simverbs::is_consequence(record.text("fate"))) {
                say("Root: {}: {} discarded a packet for QP {:#x}: {}.", time_text(record.time_ps),
                    record.node, record.number("dest_qpn"), record.text("fate"));
                return true;
            }
            if (record.name == "frame_dropped") {
                say("Root: {}: {} dropped a frame: {}.", time_text(record.time_ps), record.node,
                    record.text("reason"));
                return true;
            }
        }
        return false;
    }

    std::span<const Record> records_;
    const RunNames* names_;
    std::string text_;
    Root root_;
};

}  // namespace

std::optional<std::string> explain(std::span<const Record> records, const Question& question,
                                   const RunNames* names) {
    const std::optional<std::string> failure = Explanation(records, names).of(question);
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

std::string recovered(std::span<const Record> records) {
    std::uint64_t again = 0;
    for (const Record& record : records) {
        again += record.name == "packet_sent" ? record.number("retransmission") : 0;
    }
    return again == 0 ? ""
                      : fmt::format("    {} sent again, and recovered what was lost.\n",
                                    fabric::counted(again, "packet was", "packets were"));
}

}  // namespace scenarios

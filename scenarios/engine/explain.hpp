// Why a completion is what it is: from it back to what began it, in sentences. Works on the records
// of a trace alone, so that it explains any program's.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/core/outcome.hpp"

#include "scenarios/engine/observation.hpp"

namespace scenarios {

// The question to explain; what is left out is any. Without anything: the first failure of the
// trace.
struct Question {
    std::optional<std::uint32_t> qpn{};
    std::optional<std::uint32_t> index{};  // of the work request in its queue, from 0
    std::string node{};
    std::optional<std::int64_t> time_ps{};  // at which it completed
    const Record* completion = nullptr;     // one of the records: this one and no other
    // Failures from before the queue pair last went to RESET are not asked for.
    bool is_of_this_life = false;
    bool is_cut = false;  // there were records before the first one
};

// The names, in a scenario, of what the trace has numbers for.
class RunNames {
  public:
    virtual ~RunNames() = default;
    // "h0/c"; "": it has no name.
    [[nodiscard]] virtual std::string end_of(std::string_view node, std::uint64_t qpn) const = 0;
    // The id of the work request that completed.
    [[nodiscard]] virtual std::optional<std::uint64_t> id_of(const Record& completion) const = 0;
};

// The completion that is meant: the one that is named, else the first that failed of itself, else
// the first flushed one. Of a queue pair or a request that is named, one since the queue pair last
// went to RESET comes before earlier ones. nullptr: there is none.
const Record* find_completion(std::span<const Record> records, const Question& question);

// The first queue pair that is meant and that no program stopped. The same.
const Record* find_stop(std::span<const Record> records, const Question& question);

// "h0/c (QP 0x10001)", or as pictures have it where the end has no name. `names` may be nullptr.
std::string end_text(const RunNames* names, const std::string& node, std::uint64_t qpn);

// A completion that a program has polled, with what it knows of it.
struct PolledCompletion {
    std::string_view node;
    std::uint32_t qpn;
    std::uint32_t cq;
    std::uint64_t unread;  // completions of the same queue pair that are still in the queue
    int status;
};
// nullptr: its record is not there.
const Record* find_polled(std::span<const Record> records, const PolledCompletion& polled);

// Sentences, a line each; nothing: no such completion failed, no such queue pair stopped, and no
// message without acknowledgment was lost.
std::optional<std::string> explain(std::span<const Record> records, const Question& question,
                                   const RunNames* names = nullptr);

// Says what of the question the records do not have, its node, its queue pair or its work request,
// and what they have; "" where they have all of it.
std::string describe_unknown(std::span<const Record> records, const Question& question);

// explain() without words: two runs fail for the same reason where these agree.
struct Root {
    std::string cause;              // of the completion, or of what stopped the queue pair
    std::set<std::string> actions;  // of the injected faults that began it

    bool operator==(const Root&) const = default;
};
Root root_of(std::span<const Record> records, const Question& question = {});

// How much was sent again, and what came of it; "" if nothing was.
std::string recovered(std::span<const Record> records);

// The records of a JSON Lines trace. Nodes are called by their names where the trace has them,
// else by their numbers.
fabric::Outcome<std::vector<Record>> read_trace(const std::string& file);

}  // namespace scenarios

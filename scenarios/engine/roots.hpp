// Finds what began a failure, as far as records show an effect of it: injected faults that hit the
// packets of the failed request or took away the way, the device or the memory that it needed; and
// losses that no fault explains.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simverbs/model/completion_faults.hpp"

#include "scenarios/engine/observation.hpp"
#include "scenarios/engine/trail.hpp"

namespace scenarios {

// The object that a fault is done to.
struct FaultPlace {
    std::string kind{};  // as fault_actions.hpp has it; "": what the trigger matched
    std::string node{};
    std::uint64_t port = 0;
    std::string link{};
    std::uint64_t qpn = 0;
};

class FaultPlaces {
  public:
    explicit FaultPlaces(std::span<const Record> records);

    [[nodiscard]] FaultPlace of(const Record& fired) const;
    using End = std::pair<std::string, std::uint64_t>;  // node, port
    // The two ends of a link; none: it is not known.
    [[nodiscard]] std::vector<End> ends_of(const std::string& link) const;
    // The node at the other end of the link of that port; "": it is not known.
    [[nodiscard]] std::string neighbour_of(std::string_view node, std::uint64_t port) const;
    // Nodes can be several devices of one host.
    [[nodiscard]] bool is_same_host(std::string_view node, std::string_view other) const;

    // Returns true if no end of that link is at a host.
    [[nodiscard]] bool is_between_switches(const std::string& link) const;

  private:
    std::vector<std::string> nodes_;  // by number
    std::set<std::string, std::less<>> switches_;
    std::map<std::uint64_t, const Record*> described_;  // by the number of the fault
    std::map<std::string, std::pair<End, End>, std::less<>> links_;
    std::map<std::string, std::string, std::less<>> hosts_;  // of nodes
};

class Roots {
  public:
    // `row` is the cause of `what`, a failed completion or a stopped queue pair; nullptr: none is
    // known.
    Roots(std::span<const Record> records, const FaultPlaces& places, const Trail& trail,
          const Record& what, const simverbs::CompletionFault* row);

    // A firing of each fault: the one that did it.
    [[nodiscard]] const std::vector<const Record*>& faults() const { return faults_; }
    // Packets that were lost for other reasons: the first one for each place and reason.
    [[nodiscard]] const std::vector<const Record*>& losses() const { return losses_; }

  private:
    void find_lost();
    void find_slow();
    void find_not_ready();
    void find_errors();
    void look_at(const Transmission& sent);
    bool add_faults_of_loss(const Record& lost);
    [[nodiscard]] bool has_outage() const;
    [[nodiscard]] const Record* find_drop(const Record& lost) const;
    [[nodiscard]] bool explains(const Record& fired, const Record& lost) const;
    [[nodiscard]] bool touches(const FaultPlace& place, const Record& lost) const;
    [[nodiscard]] bool is_on_path(const FaultPlace& place) const;
    [[nodiscard]] bool has_changed(const Record& since, const Record& until) const;
    [[nodiscard]] bool came_late() const;
    [[nodiscard]] bool is_error_of(const Record& fired) const;
    [[nodiscard]] bool was_hit(const Record& fired) const;
    // Returns true if it fired and did something.
    [[nodiscard]] bool is_firing(const Record& record) const;
    void add(const Record& fired);
    void add_loss(const Record& lost);

    std::span<const Record> records_;  // before the failure
    const FaultPlaces& places_;
    const Trail& trail_;
    const Record& what_;
    const simverbs::CompletionFault* row_;
    const Record* reset_;  // with which this life of the queue pair began; nullptr: its first one
    std::vector<const Record*> faults_;
    std::vector<const Record*> losses_;
};

// Returns the record of what the queue pair last completed without an error at an earlier time than
// `what`, or with which it went to RESET since; nullptr: there is none.
const Record* last_progress(std::span<const Record> records, const Record& what);

// Returns the record that tells that there was nothing for a fault to be done to when it fired;
// nullptr: there was.
const Record* find_missed(std::span<const Record> records, const Record& fired);

// Why a request failed or a queue pair stopped. A NAK that a fault makes has the cause of statuses
// that faults ask for.
std::string reason_text(const Record& what, const simverbs::CompletionFault* row,
                        const Roots& roots);

// Why a packet went no further.
std::string_view reason_of_loss(const Record& lost);

}  // namespace scenarios

// Lists what could go wrong at a place of a run: faults as a scenario writes them, each with the
// name by which people know it. An order of threads is a choice without a place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/engine/observation.hpp"
#include "scenarios/explore/surroundings.hpp"

namespace scenarios {

// The places that are neither packets nor calls, in Place::call.
inline constexpr std::string_view kSendCompletion = "send completion";
inline constexpr std::string_view kReceiveCompletion = "receive completion";
inline constexpr std::string_view kCompletionEvent = "completion event";

// A packet of a run, as it left the host that made it, a call of a program, a completion, or an
// event of a completion channel.
struct Place {
    // Has no `end` where it belongs to no queue pair; of calls the host alone, of completions both.
    PacketHit packet{};
    // From 1: of all packets of all hosts; of the calls of this verb by the programs of this host;
    // of the completions of this end; of all completion events.
    std::uint64_t nth = 0;
    std::string call{};  // "ibv_reg_mr", "send completion"; "": a packet
    std::string to{};    // the host that the packet is for; "": not known, or several
};

enum class ChoiceGroup : std::uint8_t {
    kPackets,
    kReceives,
    kCalls,
    kLinks,
    kQueuePairs,
    kHosts,
    kPosts,
    kPolls,
    kEvents,
    kOrders
};
inline constexpr std::string_view kChoiceGroupNames[] = {
    "packets", "receives", "calls", "links",  "queue_pairs",
    "hosts",   "posts",    "polls", "events", "orders"};

// Tells whether reliable connections repair what a fault does.
enum class Harm : std::uint8_t {
    kRepaired,  // all requests must still complete with success
    kLasting,   // requests may fail; what was delivered must be right all the same
};

struct Choice {
    std::size_t place = 0;  // index among the places of its run
    ChoiceGroup group{};
    Harm harm{};
    std::string action;  // "drop", "ibv_reg_mr fails"
    std::string name;    // "drop of SEND_ONLY, PSN 1 of h0/c, transmission 1"
    std::string fault;   // one item of `faults`, without its name: "action: drop, when: {...}"
    std::optional<std::uint64_t> order{};  // of kOrders, in place of a fault: its number
};

// Returns the orders of threads with the numbers 1 to `count`.
std::vector<Choice> orders(std::uint64_t count);

// Returns the index of the first place behind the last of `choices`: 0 behind an order of threads.
std::size_t place_behind(const std::vector<Choice>& choices);

// Makes the choices of a run.
class Choices {
  public:
    // `groups`: the ones to take; `host`: faults at this host alone, and of packets that it sends
    // ("": any).
    Choices(const Surroundings& surroundings, std::vector<ChoiceGroup> groups, std::string host);

    // Returns all of a place, in an order that is always the same.
    [[nodiscard]] std::vector<Choice> at(std::size_t index, const Place& place) const;

  private:
    struct Action {
        std::string name;
        std::string of;     // what it is done to, for its name: " of link h0-s0"; "": the packet
        std::string words;  // members besides the trigger: ", link: \"h0-s0\""
        std::string host;   // that it is done to; "": the sender of the packet
        ChoiceGroup group{};
        Harm harm{};
    };

    void add(ChoiceGroup group, Harm harm, std::string name, std::string words = {},
             std::string of = {}, std::string host = {});
    void add_actions(const Surroundings& surroundings);
    [[nodiscard]] bool takes(ChoiceGroup group, const Place& place) const;
    [[nodiscard]] std::vector<Choice> failures_of_call(std::size_t index, const Place& place) const;
    [[nodiscard]] std::vector<Choice> delays_of_completion(std::size_t index,
                                                           const Place& place) const;
    [[nodiscard]] bool applies(const Action& action, const Place& place) const;

    std::vector<ChoiceGroup> groups_;
    std::string host_;
    std::vector<Action> actions_;
};

// "SEND_ONLY, PSN 1 of h0/c, transmission 1"; of calls "ibv_reg_mr 2 of h0"; "receive completion 1
// of h0/1"; "completion event 2 of the run".
std::string place_text(const Place& place);

}  // namespace scenarios

#include "scenarios/engine/fault_text.hpp"

#include <fmt/core.h>

#include "simverbs/model/fault_actions.hpp"

namespace scenarios {

namespace {

using simverbs::FaultSubject;

std::string object_text(FaultSubject subject, const FaultPlace& place) {
    switch (subject) {
        case FaultSubject::kLink:
        case FaultSubject::kLinkEnd:
            return place.link.empty() ? "a link of " + place.node : "link " + place.link;
        case FaultSubject::kPort:
            return fmt::format("port {} of {}", place.port, place.node);
        case FaultSubject::kSwitch:
        case FaultSubject::kHost:
            return place.node;
        case FaultSubject::kSubnetManager:
            return "the subnet manager";
        case FaultSubject::kPrograms:
            return "the programs of " + place.node;
        case FaultSubject::kDevice:
            return "the device of " + place.node;
        case FaultSubject::kQueuePair:
        case FaultSubject::kWorkQueue:
            return place.qpn == 0 ? "a queue pair of " + place.node
                                  : queue_pair_text(place.node, place.qpn);
        case FaultSubject::kSharedReceiveQueue:
        case FaultSubject::kCompletionQueue:
        case FaultSubject::kMemoryRegion:
            return fmt::format("a {} of {}", row_of(subject).name, place.node);
        default:
            return {};
    }
}

}  // namespace

std::string fault_name(std::span<const Record> records, const Record& fired) {
    for (const Record& record : records) {
        if (record.name == "fault" && record.number("fault") == fired.number("fault")) {
            return fmt::format("\"{}\" ({})", record.text("name"), fired.text("action"));
        }
    }
    return fmt::format("{} ({})", fired.number("fault"), fired.text("action"));
}

std::string place_text(const Record& fired, const FaultPlaces& places) {
    std::string packet;
    if (fired.number("relative_psn") == 0 && !fired.text("operation").empty()) {
        packet = fmt::format(" {},", fired.text("operation"));  // of no queue pair
    } else if (!fired.text("operation").empty()) {
        packet =
            fmt::format(" {}, PSN {} of its queue pair, transmission {},", fired.text("operation"),
                        fired.number("relative_psn"), fired.number("attempt"));
    }
    const auto* const action = simverbs::find_fault_action(fired.text("action"));
    const std::string object =
        action == nullptr ? std::string() : object_text(action->subject, places.of(fired));
    if (object.empty()) {
        return fmt::format("at {},{}", fired.node, packet);
    }
    return packet.empty() ? fmt::format("on {},", object)
                          : fmt::format("on {}, set off at {} by{}", object, fired.node, packet);
}

}  // namespace scenarios

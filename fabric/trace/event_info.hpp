// The description of a type of trace event. An event is a plain struct in the layer that raises it:
//
//     struct FrameDropped {
//         static constexpr EventInfo kInfo{"frame_dropped", Category::kPacket};
//         NodeId node;
//         DropReason reason;
//         template <class F> void fields(F&& f) const { f("reason", reason); }
//     };
//
// Field values are integers, bools, strong ids, enums with to_string(), or std::string_view.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "fabric/core/hash.hpp"

namespace fabric::trace {

enum class Category : std::uint8_t {
    kCall,        // a verb and what it returned
    kCompletion,  // a work completion became visible
    kState,       // of a queue pair, a port, a link
    kAsyncEvent,  // reported to a consumer
    kFault,       // an injected fault fired
    kMessage,     // a message begins or ends
    kPacket,      // a frame was sent, received or dropped
    kPort,        // an attribute of a port changed, an event was raised at it
    kObject,      // what a number in other events stands for; moves that no other category tells
    kWarning,     // do not trust this run without reading it
};

constexpr std::string_view to_string(Category category) {
    switch (category) {
        case Category::kCall:
            return "call";
        case Category::kCompletion:
            return "completion";
        case Category::kState:
            return "state";
        case Category::kAsyncEvent:
            return "async_event";
        case Category::kFault:
            return "fault";
        case Category::kMessage:
            return "message";
        case Category::kPacket:
            return "packet";
        case Category::kPort:
            return "port";
        case Category::kObject:
            return "object";
        case Category::kWarning:
            return "warning";
    }
    return "?";
}

class CategorySet {
  public:
    constexpr CategorySet() = default;
    constexpr CategorySet(std::initializer_list<Category> categories) {
        for (const Category category : categories) {
            bits_ |= 1U << static_cast<unsigned>(category);
        }
    }
    static constexpr CategorySet all() {
        CategorySet set;
        set.bits_ = (1U << (static_cast<unsigned>(Category::kWarning) + 1)) - 1;
        return set;
    }

    [[nodiscard]] constexpr bool contains(Category category) const {
        return (bits_ >> static_cast<unsigned>(category) & 1U) != 0;
    }
    [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
    friend constexpr CategorySet operator|(CategorySet a, CategorySet b) {
        a.bits_ |= b.bits_;
        return a;
    }
    friend constexpr bool operator==(CategorySet, CategorySet) = default;

  private:
    std::uint32_t bits_ = 0;
};

// The categories by which runs are compared. Packets are not among them, so that looking at a run
// (which may cut messages into packets) does not change its digest; warnings, port attributes and
// what objects are follow from what is.
inline constexpr CategorySet kRunCategories{Category::kCall,  Category::kCompletion,
                                            Category::kState, Category::kAsyncEvent,
                                            Category::kFault, Category::kMessage};

struct EventInfo {
    std::string_view name;
    Category category;
    std::uint64_t name_hash;

    consteval EventInfo(std::string_view event_name, Category event_category)
        : name(event_name), category(event_category), name_hash(hash_name(event_name)) {}
};

}  // namespace fabric::trace

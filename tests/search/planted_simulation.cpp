// A library whose default personality has a bug: its responder does not look for duplicates, and
// executes what it has executed. Data, in the place where the product looks personalities up by
// name; everything else is the product's own objects.
#include "simverbs/model/personalities.hpp"

namespace simverbs::planted {

constexpr Personality without_duplicate_check() {
    Personality personality = kSpec;
    personality.name = personality.key = "planted";  // of which there is no variant
    for (ResponderCheck& check : personality.responder_order) {
        check = check == ResponderCheck::kDuplicate ? ResponderCheck::kPsn : check;
    }
    return personality;
}

inline constexpr Personality kPlanted = without_duplicate_check();

constexpr const Personality* find_personality(std::string_view name) {
    return name == kSpec.name ? &kPlanted : simverbs::find_personality(name);
}

}  // namespace simverbs::planted

#define find_personality planted::find_personality
// NOLINTNEXTLINE(bugprone-suspicious-include): the same source, with the planted bug
#include "simverbs/world/simulation.cpp"

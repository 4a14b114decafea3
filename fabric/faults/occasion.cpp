#include "fabric/faults/occasion.hpp"

#include "fabric/core/hash.hpp"

namespace fabric {

bool Occasion::arrives(SimTime now, std::uint64_t point, std::uint64_t flow) {
    if (!is_awake_ || now < rules_.from || now >= rules_.until || is_over()) {
        return false;
    }
    if (++seen_ < rules_.nth || !draw(point, flow)) {
        return false;
    }
    ++fired_;
    return true;
}

bool Occasion::draw(std::uint64_t point, std::uint64_t flow) {
    const Ratio& chance = rules_.chance;
    if (chance.numerator >= chance.denominator) {
        return true;
    }
    WordsHash hash;
    hash.add(rules_.seed);
    hash.add(id_.value());
    hash.add(point);
    hash.add(flow);
    hash.add(++draws_[{point, flow}]);
    const detail::Uint128 drawn = hash.draw() >> 32U;
    return drawn * chance.denominator < static_cast<detail::Uint128>(chance.numerator) << 32U;
}

}  // namespace fabric

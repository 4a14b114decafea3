#include "fabric/mad/directed_route.hpp"

namespace fabric::mad {

namespace {

using Kind = DirectedStep::Kind;

struct Hops {
    explicit Hops(Datagram& datagram)
        : smp(datagram),
          pointer(static_cast<std::uint8_t>(datagram.get(smp::kHopPointer))),
          count(static_cast<std::uint8_t>(datagram.get(smp::kHopCount))) {}

    void point_at(std::uint8_t hop) { smp.set(smp::kHopPointer, hop); }
    [[nodiscard]] std::uint8_t& initial(std::uint8_t hop) const {
        return smp.bytes[smp::kInitialPath + hop];
    }
    [[nodiscard]] std::uint8_t& back(std::uint8_t hop) const {
        return smp.bytes[smp::kReturnPath + hop];
    }

    Datagram& smp;
    std::uint8_t pointer;
    std::uint8_t count;
};

// Where the directed part ends: here, or the rest of the way is by LID.
DirectedStep end_of_route(const Datagram& smp, Field lid_field, bool is_switch) {
    const Lid lid(static_cast<std::uint16_t>(smp.get(lid_field)));
    if (lid == kPermissiveLid) {
        return {Kind::kHere};
    }
    return is_switch ? DirectedStep{Kind::kToLid, 0, lid} : DirectedStep{};
}

DirectedStep outbound(Hops hops, bool is_switch, std::uint8_t port) {
    if (hops.count != 0 && hops.pointer == 0) {  // it came by LID, and starts here
        if (!is_switch) {
            return {};
        }
        hops.point_at(1);
        return {Kind::kOut, hops.initial(1)};
    }
    if (hops.pointer < hops.count) {
        if (!is_switch) {
            return {};
        }
        hops.back(hops.pointer) = port;
        const auto next = static_cast<std::uint8_t>(hops.pointer + 1);
        hops.point_at(next);
        return {Kind::kOut, hops.initial(next)};
    }
    if (hops.pointer == hops.count) {
        if (hops.count != 0) {
            hops.back(hops.pointer) = port;
        }
        hops.point_at(static_cast<std::uint8_t>(hops.pointer + 1));
        return end_of_route(hops.smp, smp::kDrDlid, is_switch);
    }
    return {hops.pointer == hops.count + 1 ? Kind::kHere : Kind::kDiscard};
}

DirectedStep homebound(Hops hops, bool is_switch) {
    const auto next = static_cast<std::uint8_t>(hops.pointer - 1);
    if (hops.count != 0 && hops.pointer == hops.count + 1) {
        hops.point_at(next);
        return {Kind::kOut, hops.back(next)};
    }
    if (hops.pointer >= 2 && hops.pointer <= hops.count) {
        if (!is_switch) {
            return {};
        }
        hops.point_at(next);
        return {Kind::kOut, hops.back(next)};
    }
    if (hops.pointer == 1) {
        hops.point_at(next);
        return end_of_route(hops.smp, smp::kDrSlid, is_switch);
    }
    return {hops.pointer == 0 ? Kind::kHere : Kind::kDiscard};
}

}  // namespace

DirectedStep start_route(Datagram& smp, std::uint8_t own_port) {
    Hops hops(smp);
    if (hops.count > smp::kMaxHops) {
        return {};
    }
    if (smp.get(smp::kDrSlid) != kPermissiveLid.value()) {
        return {Kind::kToLid};
    }
    if (hops.count == 0) {
        return hops.pointer == 0 ? outbound(hops, own_port == 0, own_port) : DirectedStep{};
    }
    if (hops.pointer != 0 || (own_port != 0 && hops.initial(1) != own_port)) {
        return {};
    }
    hops.point_at(1);
    return {Kind::kOut, hops.initial(1)};
}

DirectedStep advance_route(Datagram& smp, bool is_switch, std::uint8_t port) {
    const Hops hops(smp);
    if (hops.count > smp::kMaxHops) {
        return {};
    }
    return smp.get(smp::kDirection) == 0 ? outbound(hops, is_switch, port)
                                         : homebound(hops, is_switch);
}

}  // namespace fabric::mad

// Linear forwarding tables of all switches (IBA 14.2.5.10).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/net/lid.hpp"
#include "fabric/sm/routing/graph.hpp"

namespace fabric::routing {

class Tables {
  public:
    static constexpr std::uint16_t kNoRoute = 0xFFFF;  // as Switch::kNoRoute

    Tables(std::size_t switches, std::size_t lids)
        : lids_(lids), ports_(switches * lids, kNoRoute) {}

    // By LID: the port to leave by, 0 for the switch itself.
    [[nodiscard]] std::span<const std::uint16_t> row(SwitchIndex one) const {
        return {ports_.data() + one * lids_, lids_};
    }
    [[nodiscard]] std::uint16_t at(SwitchIndex one, Lid lid) const {
        return ports_[one * lids_ + lid.value()];
    }
    void set(SwitchIndex one, Lid lid, std::uint16_t port) {
        ports_[one * lids_ + lid.value()] = port;
    }

  private:
    std::size_t lids_;
    std::vector<std::uint16_t> ports_;
};

}  // namespace fabric::routing

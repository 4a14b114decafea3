// The faults of a world that a test put in place by hand, by id. Ids count from 1 and are never
// used again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <variant>

#include "fabric/faults/drop_nth.hpp"
#include "fabric/net/network.hpp"

namespace simverbs {

class FaultBoard {
  public:
    // The network outlives the board.
    explicit FaultBoard(fabric::Network& network) : network_(network) {}

    // `nth` counts from 1, from now on.
    fabric::FaultId drop_nth(fabric::LinkDirection& direction, std::uint64_t nth);
    fabric::FaultId drop_all(fabric::LinkDirection& direction);
    // False: there is none of that id.
    bool clear(fabric::FaultId id);

  private:
    using Fault = std::variant<std::unique_ptr<fabric::DropNth>, std::unique_ptr<fabric::DropAll>>;

    fabric::Network& network_;
    std::map<fabric::FaultId, Fault> faults_;
    std::uint32_t last_id_ = 0;
};

}  // namespace simverbs

#include "simverbs/world/fault_board.hpp"

namespace simverbs {

fabric::FaultId FaultBoard::drop_nth(fabric::LinkDirection& direction, std::uint64_t nth) {
    const fabric::FaultId id(++last_id_);
    faults_.emplace(id, std::make_unique<fabric::DropNth>(direction, network_.bus(), nth, id));
    return id;
}

fabric::FaultId FaultBoard::drop_all(fabric::LinkDirection& direction) {
    const fabric::FaultId id(++last_id_);
    faults_.emplace(id, std::make_unique<fabric::DropAll>(direction, network_.bus(), id));
    return id;
}

bool FaultBoard::clear(fabric::FaultId id) {
    return faults_.erase(id) != 0;
}

}  // namespace simverbs

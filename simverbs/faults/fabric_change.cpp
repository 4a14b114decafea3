#include "simverbs/faults/fabric_change.hpp"

namespace simverbs {
namespace {

constexpr std::string_view kDone;

class FabricChanger {
  public:
    explicit FabricChanger(FaultEnvironment& environment) : environment_(environment) {}

    std::string_view operator()(const SetLinkState& change) const {
        change.link.set_state(change.state);
        return kDone;
    }
    std::string_view operator()(const SetNodeLinks& change) const {
        for (std::uint16_t number = 1; number <= change.node.port_count(); ++number) {
            fabric::Link* link = change.node.port(fabric::PortNumber{number}).link();
            if (link != nullptr) {
                link->set_state(change.state);
            }
        }
        return kDone;
    }
    std::string_view operator()(const SetLinkRate& change) const {
        change.link.set_rate(change.width, change.speed);
        return kDone;
    }
    std::string_view operator()(const HoldPort& change) const {
        change.port.mutable_attributes().held = change.state;
        change.port.link()->refresh();
        return kDone;
    }
    std::string_view operator()(const SetLid& change) const {
        return managed([&change](fabric::PortAdministration& administration) {
            return administration.set_lid(change.port, change.lid) ? kDone : "the LID is taken";
        });
    }
    std::string_view operator()(const SetPkeys& change) const {
        return managed([&change](fabric::PortAdministration& administration) {
            administration.set_pkeys(change.port, change.pkeys);
            return kDone;
        });
    }
    std::string_view operator()(const SetGid& change) const {
        return managed([&change](fabric::PortAdministration& administration) {
            return administration.set_gid(change.port, change.index, change.gid)
                       ? kDone
                       : "a subnet manager that sweeps sets GUIDs from index 1 on, under the "
                         "prefix of its subnet";
        });
    }
    std::string_view operator()(const SetSmLid& change) const {
        return managed([&change](fabric::PortAdministration& administration) {
            administration.set_sm_lid(change.port, change.lid);
            return kDone;
        });
    }
    std::string_view operator()(const AskToReregister& change) const {
        return managed([&change](fabric::PortAdministration& administration) {
            administration.ask_to_reregister(change.port);
            return kDone;
        });
    }

  private:
    template <class F>
    std::string_view managed(F&& act) const {
        fabric::PortAdministration* administration = environment_.subnet_manager();
        return administration == nullptr ? "the subnet manager is gone" : act(*administration);
    }

    FaultEnvironment& environment_;
};

}  // namespace

std::string_view apply(const FabricChange& change, FaultEnvironment& environment) {
    return std::visit(FabricChanger(environment), change);
}

}  // namespace simverbs

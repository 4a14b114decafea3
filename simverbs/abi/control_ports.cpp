// The part of the control API that does to links and ports what an operator or a subnet manager
// does.
#include <algorithm>
#include <cerrno>
#include <vector>

#include "simverbs/abi/control.hpp"
#include "simverbs/abi/export.hpp"
#include "simverbs/faults/fabric_change.hpp"
#include "simverbs/faults/link_rates.hpp"
#include "simverbs/faults/named.hpp"
#include "simverbs/simverbs.h"

namespace simverbs::abi {
namespace {

using driver::EmbeddedWorld;

fabric::Port* find_port(EmbeddedWorld& world, const char* function, const char* node,
                        std::uint8_t number) {
    const Hca* hca = node == nullptr ? nullptr : world.simulation().find_hca(node);
    if (hca == nullptr) {
        fail(ENOENT, "{}: there is no host '{}' in topology '{}'", function,
             node == nullptr ? "" : node, world.simulation().options().topology);
        return nullptr;
    }
    if (!hca->has_port(number)) {
        fail(ENOENT, "{}: {} has no port {}; its ports are 1 to {}", function, node, number,
             hca->port_count());
        return nullptr;
    }
    return &hca->port(number);
}

// Calls act(world, port) for a port that a subnet manager has a say in; what it returns is the
// answer.
template <class F>
int at_managed_port(const char* function, const char* node, std::uint8_t number, F&& act) {
    return in_turn([&](EmbeddedWorld& world) {
        fabric::Port* port = find_port(world, function, node, number);
        if (port == nullptr) {
            return ENOENT;
        }
        if (port->attributes().link_layer == fabric::LinkLayer::kEthernet) {
            return fail(EOPNOTSUPP,
                        "{}: port {} of {} is an Ethernet port, which nobody manages; take an "
                        "InfiniBand port",
                        function, number, node);
        }
        if (world.simulation().subnet_manager() == nullptr) {
            return fail(EOPNOTSUPP,
                        "{}: this world has no subnet manager of its own (SIMVERBS_SM=none); ask "
                        "the one that runs in it",
                        function);
        }
        return act(world, *port);
    });
}

}  // namespace

SIMVERBS_ABI int simverbs_set_link(const char* link, int up) {
    return in_turn([=](EmbeddedWorld& world) {
        const auto found =
            find_link(world.simulation(),
                      link == nullptr ? "simverbs_set_link: link" : "simverbs_set_link", link);
        if (!found) {
            return fail(ENOENT, "{}", found.error());
        }
        apply(SetLinkState{**found, up != 0 ? fabric::LinkState::kUp : fabric::LinkState::kDown},
              world.simulation());
        return 0;
    });
}

SIMVERBS_ABI int simverbs_port_set_lid(const char* node, uint8_t port, uint16_t lid) {
    return at_managed_port(
        "simverbs_port_set_lid", node, port, [lid](EmbeddedWorld& world, fabric::Port& found) {
            return apply(SetLid{found, fabric::Lid{lid}}, world.simulation()).empty()
                       ? 0
                       : fail(EINVAL,
                              "simverbs_port_set_lid: {:#x} is another port's, or no unicast LID; "
                              "those are 0x1 to 0xbfff",
                              lid);
        });
}

SIMVERBS_ABI int simverbs_port_set_pkeys(const char* node, uint8_t port, const uint16_t* pkeys,
                                         size_t count) {
    return at_managed_port(
        "simverbs_port_set_pkeys", node, port, [=](EmbeddedWorld& world, fabric::Port& found) {
            const Hca& hca = *world.simulation().find_hca(node);
            const std::size_t most = hca.personality().limits.port.pkey_entries;
            if (pkeys == nullptr) {
                return fail(EINVAL, "simverbs_port_set_pkeys: the table is NULL");
            }
            if (count == 0 || count > most) {
                return fail(EINVAL, "simverbs_port_set_pkeys: {} entries; a table has 1 to {}",
                            count, most);
            }
            apply(SetPkeys{found, {pkeys, pkeys + count}}, world.simulation());
            return 0;
        });
}

SIMVERBS_ABI int simverbs_port_set_gid(const char* node, uint8_t port, unsigned int index,
                                       const uint8_t gid[16]) {
    return at_managed_port(
        "simverbs_port_set_gid", node, port, [=](EmbeddedWorld& world, fabric::Port& found) {
            const Hca& hca = *world.simulation().find_hca(node);
            const std::size_t last = std::min<std::size_t>(
                found.attributes().gids.size(), hca.personality().limits.port.gid_entries - 1U);
            if (gid == nullptr || index > last) {
                return fail(EINVAL, "simverbs_port_set_gid: {}",
                            gid == nullptr
                                ? std::string("no GID")
                                : fmt::format("index {}; entries 0 to {} may be set", index, last));
            }
            fabric::Gid value;
            std::copy_n(gid, value.bytes.size(), value.bytes.begin());
            const std::string_view reason = apply(SetGid{found, index, value}, world.simulation());
            return reason.empty() ? 0 : fail(EOPNOTSUPP, "simverbs_port_set_gid: {}", reason);
        });
}

SIMVERBS_ABI int simverbs_port_set_sm_lid(const char* node, uint8_t port, uint16_t lid) {
    return at_managed_port(
        "simverbs_port_set_sm_lid", node, port, [lid](EmbeddedWorld& world, fabric::Port& found) {
            if (!fabric::is_unicast(fabric::Lid{lid})) {
                return fail(EINVAL,
                            "simverbs_port_set_sm_lid: {:#x} is no unicast LID; those are 0x1 to "
                            "0xbfff",
                            lid);
            }
            apply(SetSmLid{found, fabric::Lid{lid}}, world.simulation());
            return 0;
        });
}

SIMVERBS_ABI int simverbs_port_reregister(const char* node, uint8_t port) {
    return at_managed_port("simverbs_port_reregister", node, port,
                           [](EmbeddedWorld& world, fabric::Port& found) {
                               apply(AskToReregister{found}, world.simulation());
                               return 0;
                           });
}

SIMVERBS_ABI int simverbs_port_set_rate(const char* node, uint8_t port, unsigned int width,
                                        unsigned int speed) {
    const auto rate = link_rate(width, speed);
    if (!rate) {
        return fail(EINVAL, "simverbs_port_set_rate: width {} and speed {}; {}", width, speed,
                    kLinkRatesInWords);
    }
    return in_turn([=](EmbeddedWorld& world) {
        fabric::Port* found = find_port(world, "simverbs_port_set_rate", node, port);
        if (found == nullptr) {
            return ENOENT;
        }
        apply(SetLinkRate{*found->link(), rate->first, rate->second}, world.simulation());
        return 0;
    });
}

SIMVERBS_ABI int simverbs_port_speed_events(int wanted) {
    return in_turn([wanted](EmbeddedWorld& world) {
        world.simulation().tell_speed_changes(wanted != 0);
        return 0;
    });
}

}  // namespace simverbs::abi

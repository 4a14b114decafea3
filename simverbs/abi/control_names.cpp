#include "simverbs/abi/control_names.hpp"

#include <cerrno>
#include <string>

#include <fmt/format.h>

#include "simverbs/hca/queue_pair.hpp"

namespace simverbs::abi {
namespace {

std::string names_of_links(const fabric::Network& network) {
    constexpr std::size_t kMost = 8;
    std::string names;
    for (std::size_t i = 0; i < network.link_count() && i < kMost; ++i) {
        names += (i == 0 ? "" : ", ") + network.link(i).name();
    }
    return network.link_count() > kMost ? names + ", ..." : names;
}

}  // namespace

fabric::Link* find_link(driver::EmbeddedWorld& world, const char* function, const char* name) {
    const fabric::Network& network = world.simulation().network();
    fabric::Link* link = network.find_link(text_of(name));
    if (link == nullptr) {
        fail(ENOENT, "{}: there is no link '{}'; topology '{}' has {}", function, text_of(name),
             world.simulation().options().topology, names_of_links(network));
    }
    return link;
}

fabric::LinkDirection* find_direction(fabric::Link& link, const char* function,
                                      const char* from_node) {
    for (const std::size_t which : {0U, 1U}) {
        fabric::Port& port = link.end(which);
        if (port.node().name() == text_of(from_node)) {
            return &link.direction_from(port);
        }
    }
    fail(ENOENT, "{}: '{}' is no end of link '{}'; its ends are {} and {}", function,
         text_of(from_node), link.name(), link.end(0).node().name(), link.end(1).node().name());
    return nullptr;
}

Hca* find_device(driver::EmbeddedWorld& world, const char* function, const char* node) {
    Hca* hca = world.simulation().find_hca(text_of(node));
    if (hca == nullptr) {
        const fabric::Network& network = world.simulation().network();
        fail(ENOENT, "{}: there is no host '{}'; topology '{}' has {} to {}", function,
             text_of(node), world.simulation().options().topology, network.host(0).name(),
             network.host(network.host_count() - 1).name());
    }
    return hca;
}

simverbs::QueuePair* find_queue_pair(const Hca& hca, const char* function, std::uint32_t qp_num) {
    simverbs::QueuePair* qp = hca.find_qp(qp_num);
    if (qp == nullptr) {
        fail(ENOENT, "{}: {} has no queue pair {:#x}; ibv_qp.qp_num is the number to give",
             function, hca.name(), qp_num);
    }
    return qp;
}

}  // namespace simverbs::abi

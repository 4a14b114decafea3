#include "simverbs/faults/named.hpp"

#include <string>

#include <fmt/format.h>

#include "simverbs/hca/queue_pair.hpp"
#include "simverbs/model/fault_phrases.hpp"

namespace simverbs {
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

fabric::Outcome<fabric::Link*> find_link(FaultEnvironment& environment, const char* what,
                                         const char* name) {
    const fabric::Network& network = environment.network();
    fabric::Link* link = network.find_link(text_of(name));
    if (link == nullptr) {
        const std::string missing = *text_of(name) == '\0'
                                        ? " is missing"
                                        : fmt::format(": there is no link '{}'", text_of(name));
        return fabric::Failure(fmt::format("{}{}; topology '{}' has {}", what, missing,
                                           environment.topology(), names_of_links(network)));
    }
    return link;
}

fabric::Outcome<fabric::LinkDirection*> find_direction(fabric::Link& link, const char* what,
                                                       const char* from_node) {
    for (const std::size_t which : {0U, 1U}) {
        fabric::Port& port = link.end(which);
        if (port.node().name() == text_of(from_node)) {
            return &link.direction_from(port);
        }
    }
    return fabric::Failure(fmt::format("{}: '{}' is no end of link '{}'; its ends are {} and {}",
                                       what, text_of(from_node), link.name(),
                                       link.end(0).node().name(), link.end(1).node().name()));
}

fabric::Outcome<Hca*> find_device(FaultEnvironment& environment, const char* what,
                                  const char* node) {
    Hca* hca = environment.find_hca(text_of(node));
    if (hca == nullptr) {
        const fabric::Network& network = environment.network();
        const std::string missing = *text_of(node) == '\0'
                                        ? " is missing"
                                        : fmt::format(": there is no host '{}'", text_of(node));
        return fabric::Failure(fmt::format("{}{}; topology '{}' has {} to {}", what, missing,
                                           environment.topology(), network.host(0).name(),
                                           network.host(network.host_count() - 1).name()));
    }
    return hca;
}

fabric::Outcome<QueuePair*> find_queue_pair(const Hca& hca, const char* what,
                                            std::uint32_t qp_num) {
    QueuePair* qp = hca.find_qp(qp_num);
    if (qp == nullptr) {
        return fabric::Failure(fmt::format("{}: {} has no queue pair {:#x}{}", what, hca.name(),
                                           qp_num, api_words(FaultPhrase::kQueuePairNumber)));
    }
    return qp;
}

}  // namespace simverbs

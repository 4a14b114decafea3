#include "fabric/net/credit_loop.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "fabric/net/network.hpp"

namespace fabric {

namespace {

// A lane of a direction that waits for credits. The pointer is compared for identity alone; the
// order is that of the search.
struct Place {
    const LinkDirection* direction;
    std::uint8_t lane;

    friend bool operator==(const Place&, const Place&) = default;
};

class LoopSearch {
  public:
    // Places on the way from `start` back to one of them; empty: all ways end.
    std::vector<Place> search(Place start) {
        path_.clear();
        return visit(start) ? path_ : std::vector<Place>{};
    }

  private:
    // Depth first; true when `path_` is a cycle.
    bool visit(Place place) {
        if (const auto again = std::find(path_.begin(), path_.end(), place); again != path_.end()) {
            path_.erase(path_.begin(), again);
            return true;
        }
        if (std::find(done_.begin(), done_.end(), place) != done_.end()) {
            return false;
        }
        path_.push_back(place);
        for (const Place& next : waits_for(place)) {
            if (visit(next)) {
                return true;
            }
        }
        path_.pop_back();
        done_.push_back(place);
        return false;
    }

    // The lanes in which the frames wait that are in the buffer that `place` wants.
    static std::vector<Place> waits_for(Place place) {
        std::vector<Place> found;
        const Port& in = place.direction->to();
        const Node& node = in.node();
        for (std::uint16_t number = 1; number <= node.port_count(); ++number) {
            const LinkDirection* const out = node.port(PortNumber{number}).outgoing();
            for (std::uint8_t lane = 0; out != nullptr && lane < kMaxDataVls; ++lane) {
                bool holds = false;
                out->for_each_waiting(lane, [&holds, &in, place](const Frame& frame) {
                    holds = holds || (frame.ingress == in.number().value() &&
                                      frame.ingress_vl == place.lane);
                });
                if (holds && out->starves(lane)) {
                    found.push_back({out, lane});
                }
            }
        }
        return found;
    }

    std::vector<Place> path_;
    std::vector<Place> done_;
};

}  // namespace

std::vector<const LinkDirection*> find_credit_loop(const Network& network) {
    LoopSearch search;
    for (std::size_t i = 0; i < network.link_count(); ++i) {
        for (const std::size_t end : {0U, 1U}) {
            const LinkDirection& direction = *network.link(i).end(end).outgoing();
            for (std::uint8_t lane = 0; lane < kMaxDataVls; ++lane) {
                if (!direction.starves(lane)) {
                    continue;
                }
                std::vector<const LinkDirection*> loop;
                for (const Place& place : search.search({&direction, lane})) {
                    loop.push_back(place.direction);
                }
                if (!loop.empty()) {
                    const auto first = std::min_element(
                        loop.begin(), loop.end(), [](const auto* a, const auto* b) {
                            return std::pair(a->from().node().id(), a->from().number()) <
                                   std::pair(b->from().node().id(), b->from().number());
                        });
                    std::rotate(loop.begin(), first, loop.end());
                    return loop;
                }
            }
        }
    }
    return {};
}

std::string describe(const std::vector<const LinkDirection*>& loop) {
    std::string text;
    for (std::size_t i = 0; i <= loop.size() && !loop.empty(); ++i) {
        const Port& port = loop[i % loop.size()]->from();
        text += fmt::format("{}{} port {}", i == 0 ? "" : " > ", port.node().name(),
                            port.number().value());
    }
    return text;
}

}  // namespace fabric

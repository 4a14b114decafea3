// The calls of clients while time stands, kept apart until it moves: two processes that call verbs
// at one instant leave the same trace and digest, whichever came first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "fabric/core/hash.hpp"
#include "fabric/core/sim_time.hpp"
#include "fabric/trace/bus.hpp"

#include "simverbs/server/remote_client.hpp"

namespace simverbs {

class CallStreams {
  public:
    explicit CallStreams(fabric::trace::Bus& bus) : bus_(bus) {}

    // While it lives, what is emitted is the client's.
    [[nodiscard]] fabric::trace::Bus::Redirect redirect(const RemoteClient& client) {
        return {bus_, stream_of(client)};
    }

    // By host, then in the order in which its processes came. Clients may be gone by then.
    void merge(fabric::SimTime now) {
        for (auto& [place, stream] : streams_) {
            if (!stream.calls.empty()) {
                bus_.merge(now, stream.name_hash, stream.calls);
            }
        }
    }

  private:
    struct Named {
        std::uint64_t name_hash;
        fabric::trace::Stream calls;
    };

    fabric::trace::Stream& stream_of(const RemoteClient& client) {
        const std::pair place(client.host_index(), client.rank());
        const auto found = streams_.find(place);
        if (found != streams_.end()) {
            return found->second.calls;
        }
        const std::string name = fmt::format("{}/{}", client.host(), client.rank());
        return streams_.emplace(place, Named{fabric::hash_name(name), fabric::trace::Stream(bus_)})
            .first->second.calls;
    }

    fabric::trace::Bus& bus_;
    std::map<std::pair<std::size_t, std::uint32_t>, Named> streams_;
};

}  // namespace simverbs

// The calls of clients while time stands, kept apart until it moves: two processes that call verbs
// at one instant leave the same trace and digest, whichever came first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

    // By host, then by place. Clients may be gone by then.
    void merge(fabric::SimTime now) {
        for (auto& [place, stream] : streams_) {
            if (stream.calls.empty()) {
                continue;
            }
            if (!stream.name_hash) {
                const std::string name =
                    fmt::format("{}/{}", stream.host, processes_[place.first]++);
                stream.name_hash = fabric::hash_name(name);
            }
            bus_.merge(now, *stream.name_hash, stream.calls);
        }
    }

  private:
    // Its name is the host, and how many processes of that host had calls to merge before it had.
    struct OfProcess {
        std::string host;
        fabric::trace::Stream calls;
        std::optional<std::uint64_t> name_hash;
    };

    fabric::trace::Stream& stream_of(const RemoteClient& client) {
        auto found = streams_.find(client.place());
        if (found == streams_.end()) {
            OfProcess stream{client.host(), fabric::trace::Stream(bus_), {}};
            found = streams_.emplace(client.place(), std::move(stream)).first;
        }
        return found->second.calls;
    }

    fabric::trace::Bus& bus_;
    std::map<ClientPlace, OfProcess> streams_;
    std::map<std::size_t, std::uint32_t> processes_;  // named so far, by host
};

}  // namespace simverbs

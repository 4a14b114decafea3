#include "simverbs/abi/buffer_watch.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "fabric/core/hash.hpp"

#include "simverbs/hca/guarded_copy.hpp"

namespace simverbs::abi {
namespace {

// The keys of all contexts of this process. A number that has ended on one device may be alive on
// another.
struct RemoteKeys {
    std::mutex lock;
    std::map<std::uint32_t, std::uint32_t> alive;  // and how often
    std::set<std::uint32_t> dead;
};
RemoteKeys& remote_keys() {
    static RemoteKeys keys;
    return keys;
}

std::string name_of_request(std::uint64_t wr_id) {
    return fmt::format("work request {}", wr_id);
}

std::uint64_t digest_of_bytes(std::span<const std::byte> bytes) {
    fabric::WordsHash hash;
    hash.add(bytes.size());
    std::uint64_t word = 0;
    for (; bytes.size() >= sizeof word; bytes = bytes.subspan(sizeof word)) {
        std::memcpy(&word, bytes.data(), sizeof word);
        hash.add(word);
    }
    word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    hash.add(word);
    return hash.value();
}

}  // namespace

std::optional<std::uint64_t> BufferWatch::digest_of(std::span<const ibv_sge> segments) const {
    std::array<std::byte, 4096> part{};
    std::uint64_t digest = 0;
    for (const ibv_sge& segment : segments) {
        const auto region = regions_.find(segment.lkey);
        if (region == regions_.end()) {
            return std::nullopt;
        }
        const std::uint64_t start = region->second.address + (segment.addr - region->second.iova);
        for (std::uint32_t at = 0; at < segment.length;) {
            const std::size_t bytes = std::min<std::size_t>(part.size(), segment.length - at);
            const auto* from = reinterpret_cast<const std::byte*>(start + at);
            if (GuardedCopy::copy(part.data(), from, bytes) != CopyOutcome::kCopied) {
                return std::nullopt;
            }
            digest = fabric::mix_words(digest, digest_of_bytes(std::span(part).first(bytes)));
            at += static_cast<std::uint32_t>(bytes);
        }
    }
    return digest;
}

void BufferWatch::region_begins(const ibv_mr& mr, std::uint64_t iova) {
    {
        const std::lock_guard guard(lock_);
        regions_[mr.lkey] = {iova, reinterpret_cast<std::uint64_t>(mr.addr)};
        dead_local_keys_.erase(mr.lkey);
    }
    RemoteKeys& keys = remote_keys();
    const std::lock_guard guard(keys.lock);
    ++keys.alive[mr.rkey];
}

std::optional<BufferWatch::Found> BufferWatch::region_ends(const ibv_mr& mr) {
    {
        RemoteKeys& keys = remote_keys();
        const std::lock_guard guard(keys.lock);
        const auto alive = keys.alive.find(mr.rkey);
        if (alive != keys.alive.end() && --alive->second == 0) {
            keys.alive.erase(alive);
        }
        keys.dead.insert(mr.rkey);
    }
    const std::lock_guard guard(lock_);
    regions_.erase(mr.lkey);
    dead_local_keys_.insert(mr.lkey);
    for (const auto& [queue, requests] : requests_) {
        for (const auto& [index, request] : requests) {
            const auto uses = [&mr](const ibv_sge& segment) {
                return segment.lkey == mr.lkey && segment.length > 0;
            };
            if (std::ranges::any_of(request.segments, uses)) {
                return Found{Misuse::kBufferDeregistered, queue.number,
                             name_of_request(request.wr_id)};
            }
        }
    }
    return std::nullopt;
}

void BufferWatch::window_key_begins(std::uint32_t rkey) {
    RemoteKeys& keys = remote_keys();
    const std::lock_guard guard(keys.lock);
    ++keys.alive[rkey];
}

std::optional<Misuse> BufferWatch::posted(const Queue& queue, std::uint32_t index,
                                          std::uint64_t wr_id, std::span<const ibv_sge> segments,
                                          bool takes_bytes) {
    const std::lock_guard guard(lock_);
    Requests& requests = requests_[queue];
    if (queue.kind == CompletedQueue::kShared) {  // which counts anew when it is resized
        index = requests.empty() ? 0 : std::prev(requests.end())->first + 1;
    }
    Request& request = requests[index];
    request = {wr_id, {segments.begin(), segments.end()}, std::nullopt};
    if (takes_bytes) {
        request.digest = digest_of(segments);
    }
    const bool is_receive = queue.kind != CompletedQueue::kSend;
    std::optional<Misuse> mistake;
    for (const ibv_sge& segment : segments) {
        if (segment.length > 0 && dead_local_keys_.contains(segment.lkey)) {
            return Misuse::kKeyAfterDereg;
        }
        if (segment.length == 0 && is_receive) {
            mistake = Misuse::kEmptyReceiveSegment;
        }
    }
    return mistake;
}

bool BufferWatch::is_dead_remote_key(std::uint32_t rkey) const {
    RemoteKeys& keys = remote_keys();
    const std::lock_guard guard(keys.lock);
    return sees_every_key_ && keys.dead.contains(rkey) && !keys.alive.contains(rkey);
}

void BufferWatch::completed(const Cqe& entry) {
    const bool is_shared = entry.queue == CompletedQueue::kShared;
    const Queue queue{entry.queue, is_shared ? entry.freed_to : entry.qpn};
    const std::lock_guard guard(lock_);
    const auto of_queue = requests_.find(queue);
    if (of_queue == requests_.end()) {
        return;
    }
    Requests& requests = of_queue->second;
    for (auto at = requests.begin(); at != requests.end();) {
        const bool is_over = is_shared ? at->second.wr_id == entry.wr_id
                                       : static_cast<std::int32_t>(at->first - entry.freed_to) < 0;
        if (!is_over) {
            ++at;
            continue;
        }
        end(queue, at->second);
        at = requests.erase(at);
        if (is_shared) {
            return;  // the oldest of that name
        }
    }
}

void BufferWatch::end(const Queue& queue, const Request& request) {
    const auto has_region = [this](const ibv_sge& segment) {
        return regions_.contains(segment.lkey);  // else its end was named already
    };
    if (request.digest && !found_ && std::ranges::all_of(request.segments, has_region) &&
        digest_of(request.segments) != request.digest) {
        found_ = Found{Misuse::kBufferChanged, queue.number, name_of_request(request.wr_id)};
    }
}

bool BufferWatch::has_send_before(std::uint32_t qpn, std::uint32_t end) const {
    const std::lock_guard guard(lock_);
    const auto found = requests_.find({CompletedQueue::kSend, qpn});
    return found != requests_.end() && std::ranges::any_of(found->second, [end](const auto& each) {
               return static_cast<std::int32_t>(each.first - end) < 0;
           });
}

std::optional<BufferWatch::Found> BufferWatch::take() {
    const std::lock_guard guard(lock_);
    return std::exchange(found_, std::nullopt);
}

void BufferWatch::forget(const Queue& queue) {
    const std::lock_guard guard(lock_);
    requests_.erase(queue);
}

void BufferWatch::forget_remote_keys() {
    RemoteKeys& keys = remote_keys();
    const std::lock_guard guard(keys.lock);
    keys.alive.clear();
    keys.dead.clear();
}

}  // namespace simverbs::abi

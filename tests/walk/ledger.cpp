#include "tests/walk/ledger.hpp"

#include <algorithm>

#include "tests/walk/failure.hpp"

namespace walk {

std::string to_string(const ibv_wc& wc) {
    return "completion of request " + std::to_string(wc.wr_id & 0xFFFF'FFFF) + " of queue " +
           std::to_string(wc.wr_id >> 32) + ", QP " + std::to_string(wc.qp_num) + ", status " +
           std::to_string(static_cast<int>(wc.status));
}

void Queue::posted(bool signaled) {
    posted_.push_back({next_serial_++, life_, signaled});
}

std::size_t Queue::due() const {
    return static_cast<std::size_t>(std::ranges::count(posted_, true, &Posted::signaled));
}

void Queue::purge() {
    posted_.clear();
    revive();
}

void Queue::completed(const ibv_wc& wc) {
    if (kind_ == QueueKind::kShared || kind_ == QueueKind::kXrcShared) {
        completed_of_shared(wc);
    } else {
        completed_in_turn(wc);
    }
}

void Queue::completed_in_turn(const ibv_wc& wc) {
    const auto serial = static_cast<std::uint32_t>(wc.wr_id);
    const auto refuse = [&wc](const std::string& why) { fail(to_string(wc) + ": " + why); };
    while (!posted_.empty() && posted_.front().serial != serial) {
        const Posted& earlier = posted_.front();
        if (earlier.serial > serial) {
            refuse("it completed before, or was purged");
        }
        if (earlier.signaled) {
            refuse("the signaled request " + std::to_string(earlier.serial) + " has not completed");
        }
        if (earlier.life == failed_life_) {
            refuse("request " + std::to_string(earlier.serial) + " was not flushed");
        }
        posted_.pop_front();
    }
    if (posted_.empty()) {
        refuse("it was never posted, completed before, or was purged");
    }
    if (wc.status == IBV_WC_SUCCESS && !posted_.front().signaled) {
        refuse("it was not signaled and succeeded");
    }
    if (wc.status == IBV_WC_SUCCESS && posted_.front().life == failed_life_) {
        refuse("it succeeded behind one that failed");
    }
    if (wc.status != IBV_WC_SUCCESS) {
        failed_life_ = posted_.front().life;
    }
    posted_.pop_front();
}

void Queue::completed_of_shared(const ibv_wc& wc) {
    const auto serial = static_cast<std::uint32_t>(wc.wr_id);
    const auto found = std::ranges::find(posted_, serial, &Posted::serial);
    if (found == posted_.end()) {
        fail(to_string(wc) + ": it was never posted, or completed before");
    }
    std::uint32_t& last = last_by_qpn_[wc.qp_num];
    if (serial < last) {
        fail(to_string(wc) + ": after request " + std::to_string(last) + " of the same queue pair");
    }
    last = serial;
    posted_.erase(found);
}

Queue& Ledger::open(QueueKind kind) {
    const std::uint32_t number = next_number_++;
    return *queues_.emplace(number, std::make_unique<Queue>(number, kind)).first->second;
}

void Ledger::close(const Queue& queue) {
    queues_.erase(queue.number());
}

bool Ledger::outlives_queue_pairs(std::uint64_t id) const {
    const auto found = queues_.find(static_cast<std::uint32_t>(id >> 32));
    return found != queues_.end() && found->second->kind() == QueueKind::kXrcShared;
}

void Ledger::completed(const ibv_wc& wc) {
    ++completions_;
    if (static_cast<std::size_t>(wc.status) >= kStatuses) {
        fail(to_string(wc) + ": no such status");
    }
    ++by_status_[wc.status];
    const auto found = queues_.find(static_cast<std::uint32_t>(wc.wr_id >> 32));
    if (found == queues_.end()) {
        fail(to_string(wc) + ": of a queue that is gone");
    }
    found->second->completed(wc);
}

}  // namespace walk

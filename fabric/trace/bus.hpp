// The stream of everything that happens. emit() costs one branch when nobody asks for the category,
// a few multiplications when only the run digest does, and formats only for an attached sink.
//
// Streams keep what an actor does while time stands apart from what others do: each fills its own,
// and they are merged at the next step in an order the caller chooses (never that of arrival).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "fabric/core/hash.hpp"
#include "fabric/core/sim_time.hpp"
#include "fabric/trace/event_info.hpp"
#include "fabric/trace/record.hpp"

namespace fabric::trace {

class Bus;

class Sink {
  public:
    virtual void record(const TraceRecord& record) = 0;

  protected:
    ~Sink() = default;
};

// The record of one actor since the last merge: a digest, and records when a sink wants them. It
// has no time of its own: the merge gives it one. Touches nothing shared, so its actor may fill it
// without a lock.
class Stream {
  public:
    explicit Stream(const Bus& bus);

    template <TraceEvent E>
    void emit(const E& event) {
        constexpr Category kCategory = E::kInfo.category;
        if (!interest_.contains(kCategory)) {
            return;
        }
        if constexpr (kRunCategories.contains(kCategory)) {
            detail::mix_event(run_digest_, SimTime{}, event);
            ++run_records_;
        } else if constexpr (kCategory == Category::kPacket) {
            detail::mix_event(packet_digest_, SimTime{}, event);
            ++packet_records_;
        }
        if (sink_interest_.contains(kCategory)) {
            records_.push_back(detail::make_record(event));
        }
    }

    [[nodiscard]] bool empty() const {
        return run_records_ == 0 && packet_records_ == 0 && records_.empty();
    }

  private:
    friend class Bus;

    CategorySet interest_;
    CategorySet sink_interest_;
    Digest run_digest_;
    Digest packet_digest_;
    std::uint64_t run_records_ = 0;
    std::uint64_t packet_records_ = 0;
    std::vector<TraceRecord> records_;
};

class Bus {
  public:
    struct Checkpoint {
        std::uint64_t records;  // in the run digest so far
        SimTime time;
        std::uint64_t digest;
    };
    static constexpr std::uint64_t kCheckpointInterval = 1024;
    static constexpr std::size_t kMaxCheckpoints = 1U << 12;

    Bus() = default;
    Bus(const Bus&) = delete;
    Bus& operator=(const Bus&) = delete;

    // Returns true if anything would look at an event of this category: spares the caller its
    // making.
    [[nodiscard]] bool wants(Category category) const { return interest_.contains(category); }

    template <TraceEvent E>
    void emit(SimTime time, const E& event) {
        if (interest_.contains(E::kInfo.category)) {
            record(time, event);
        }
    }

    // Adds what `stream` holds, as of `time`, and empties it. Nothing happens if it is empty.
    void merge(SimTime time, std::uint64_t actor_name_hash, Stream& stream);

    // While it lives, emit() on the bus goes to `stream`; scopes nest.
    class Redirect {
      public:
        Redirect(Bus& bus, Stream& stream) : bus_(bus), previous_(bus.redirect_) {
            bus.redirect_ = &stream;
        }
        ~Redirect() { bus_.redirect_ = previous_; }
        Redirect(const Redirect&) = delete;
        Redirect& operator=(const Redirect&) = delete;

      private:
        Bus& bus_;
        Stream* previous_;
    };

    // The sink outlives its attachment. Attaching changes no digest.
    void attach(Sink& sink, CategorySet categories);
    void detach(Sink& sink);

    // `told` is called before packet events become wanted: whoever has spared their making may make
    // up for it. An empty function: nobody is told.
    void tell_before_packets(std::function<void()> told) { before_packets_ = std::move(told); }

    // The packet digest is off until asked for: what it holds depends on the capture settings.
    void enable_packet_digest();

    [[nodiscard]] std::uint64_t run_digest() const { return run_digest_.value(); }
    [[nodiscard]] std::uint64_t packet_digest() const { return packet_digest_.value(); }
    [[nodiscard]] std::uint64_t run_records() const { return run_records_; }
    // When the last of them was; 0 before the first.
    [[nodiscard]] SimTime last_run_record() const { return last_run_record_; }

    // The run digest after every 1024 records, or multiple of that once there would be too many.
    [[nodiscard]] const std::vector<Checkpoint>& checkpoints() const { return checkpoints_; }

  private:
    friend class Stream;

    struct Attachment {
        Sink* sink;
        CategorySet categories;
    };

    template <TraceEvent E>
    void record(SimTime time, const E& event) {
        constexpr Category kCategory = E::kInfo.category;
        if (redirect_ != nullptr) {
            redirect_->emit(event);
            return;
        }
        if constexpr (kRunCategories.contains(kCategory)) {
            detail::mix_event(run_digest_, time, event);
            count_run_records(time, 1);
        } else if constexpr (kCategory == Category::kPacket) {
            if (packet_digest_enabled_) {
                detail::mix_event(packet_digest_, time, event);
            }
        }
        if (sink_interest_.contains(kCategory)) {
            offer(time, detail::make_record(event));
        }
    }

    void count_run_records(SimTime time, std::uint64_t count) {
        run_records_ += count;
        last_run_record_ = time;
        if (run_records_ >= next_checkpoint_) [[unlikely]] {
            add_checkpoint(time);
        }
    }
    void add_checkpoint(SimTime time);
    void offer(SimTime time, TraceRecord record);
    void refresh_interest();

    std::function<void()> before_packets_;
    CategorySet interest_ = kRunCategories;
    CategorySet sink_interest_;
    bool packet_digest_enabled_ = false;
    Stream* redirect_ = nullptr;
    Digest run_digest_;
    Digest packet_digest_;
    std::uint64_t run_records_ = 0;
    SimTime last_run_record_{};
    std::uint64_t next_checkpoint_ = kCheckpointInterval;
    std::uint64_t checkpoint_interval_ = kCheckpointInterval;
    std::vector<Checkpoint> checkpoints_;
    std::uint64_t offered_ = 0;
    std::vector<Attachment> attachments_;
};

}  // namespace fabric::trace

#include "fabric/trace/bus.hpp"

#include <utility>

#include "fabric/core/assert.hpp"

namespace fabric::trace {

Stream::Stream(const Bus& bus) : interest_(bus.interest_), sink_interest_(bus.sink_interest_) {}

void Bus::merge(SimTime time, std::uint64_t actor_name_hash, Stream& stream) {
    const auto ps = static_cast<std::uint64_t>(to_picoseconds(time));
    if (stream.run_records_ != 0) {
        run_digest_.mix(ps);
        run_digest_.mix(actor_name_hash);
        run_digest_.mix(stream.run_records_);
        run_digest_.mix(stream.run_digest_.value());
        count_run_records(time, stream.run_records_);
    }
    if (stream.packet_records_ != 0 && packet_digest_enabled_) {
        packet_digest_.mix(ps);
        packet_digest_.mix(actor_name_hash);
        packet_digest_.mix(stream.packet_records_);
        packet_digest_.mix(stream.packet_digest_.value());
    }
    for (TraceRecord& record : stream.records_) {
        offer(time, std::move(record));
    }
    stream.records_.clear();
    stream.run_digest_ = Digest{};
    stream.packet_digest_ = Digest{};
    stream.run_records_ = 0;
    stream.packet_records_ = 0;
    stream.interest_ = interest_;
    stream.sink_interest_ = sink_interest_;
}

void Bus::attach(Sink& sink, CategorySet categories) {
    for (const Attachment& attachment : attachments_) {
        SIMVERBS_ASSERT(attachment.sink != &sink, "a sink is attached twice");
    }
    attachments_.push_back({&sink, categories});
    refresh_interest();
}

void Bus::detach(Sink& sink) {
    std::erase_if(attachments_, [&sink](const Attachment& a) { return a.sink == &sink; });
    refresh_interest();
}

void Bus::enable_packet_digest() {
    packet_digest_enabled_ = true;
    refresh_interest();
}

void Bus::refresh_interest() {
    sink_interest_ = {};
    for (const Attachment& attachment : attachments_) {
        sink_interest_ = sink_interest_ | attachment.categories;
    }
    CategorySet wanted = kRunCategories | sink_interest_;
    if (packet_digest_enabled_) {
        wanted = wanted | CategorySet{Category::kPacket};
    }
    if (wanted.contains(Category::kPacket) && !interest_.contains(Category::kPacket) &&
        before_packets_) {
        before_packets_();
    }
    interest_ = wanted;
}

void Bus::offer(SimTime time, TraceRecord record) {
    record.time = time;
    record.seq = offered_++;
    for (const Attachment& attachment : attachments_) {
        if (attachment.categories.contains(record.category)) {
            attachment.sink->record(record);
        }
    }
}

// When there are too many, every other one goes and the interval doubles.
void Bus::add_checkpoint(SimTime time) {
    checkpoints_.push_back({run_records_, time, run_digest_.value()});
    if (checkpoints_.size() == kMaxCheckpoints) {
        std::size_t kept = 0;
        for (std::size_t i = 1; i < checkpoints_.size(); i += 2) {
            checkpoints_[kept++] = checkpoints_[i];
        }
        checkpoints_.resize(kept);
        checkpoint_interval_ *= 2;
    }
    next_checkpoint_ = (run_records_ / checkpoint_interval_ + 1) * checkpoint_interval_;
}

}  // namespace fabric::trace

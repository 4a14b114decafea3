#include "fabric/mad/rmpp.hpp"

#include <algorithm>
#include <utility>

#include "fabric/core/assert.hpp"

namespace fabric::mad {

namespace {

Class class_of(ConstBytes datagram) {
    return static_cast<Class>(get(datagram, header::kClass));
}

// Returns the answer to a segment: the headers, back to where it came from.
Datagram turned_round(const Datagram& segment, rmpp::Type type) {
    Datagram answer;
    const std::size_t headers = data_offset(segment.management_class());
    std::copy_n(segment.bytes.begin(), headers, answer.bytes.begin());
    answer.set(header::kMethod, segment.get(header::kMethod) ^ kResponseBit);
    answer.set(rmpp::kVersion, 1);
    answer.set(rmpp::kType, type);
    answer.set(rmpp::kFirst, 0);
    answer.set(rmpp::kLast, 0);
    answer.set(rmpp::kActive, 1);
    return answer;
}

}  // namespace

RmppSender::RmppSender(std::span<const std::uint8_t> message)
    : message_(message.begin(), message.end()), header_bytes_(data_offset(class_of(message))) {
    SIMVERBS_ASSERT(has_rmpp_header(class_of(message)) && message.size() >= header_bytes_,
                    "{} bytes are no message of a class with RMPP", message.size());
    const std::size_t room = kDatagramBytes - header_bytes_;
    const std::size_t data = message.size() - header_bytes_;
    segment_count_ = static_cast<std::uint32_t>(std::max<std::size_t>((data + room - 1) / room, 1));
}

// PayloadLength counts what follows the RMPP header, the rest of the class's header included: of
// all segments in the first one, of its own in the last (IBA 13.6.2.3).
Datagram RmppSender::next() {
    SIMVERBS_ASSERT(has_next(), "segment {} of {} is beyond the window", sent_ + 1, segment_count_);
    const std::size_t room = kDatagramBytes - header_bytes_;
    const std::size_t begin = header_bytes_ + room * sent_;
    const std::size_t length = std::min(room, message_.size() - begin);
    const std::size_t class_header = header_bytes_ - rmpp::kHeaderEnd;
    ++sent_;
    Datagram segment;
    std::copy_n(message_.begin(), header_bytes_, segment.bytes.begin());
    std::copy_n(message_.begin() + static_cast<std::ptrdiff_t>(begin), length,
                segment.bytes.begin() + static_cast<std::ptrdiff_t>(header_bytes_));
    const bool is_first = sent_ == 1;
    const bool is_last = sent_ == segment_count_;
    std::uint64_t payload = 0;
    if (is_first) {
        payload = message_.size() - header_bytes_ + segment_count_ * class_header;
    }
    if (is_last) {
        payload = length + class_header;
    }
    segment.set(rmpp::kVersion, 1);
    segment.set(rmpp::kType, rmpp::kData);
    segment.set(rmpp::kActive, 1);
    segment.set(rmpp::kFirst, is_first ? 1 : 0);
    segment.set(rmpp::kLast, is_last ? 1 : 0);
    segment.set(rmpp::kStatus, 0);
    segment.set(rmpp::kSegmentNumber, sent_);
    segment.set(rmpp::kPayloadLength, payload);
    return segment;
}

RmppSender::Answer RmppSender::acknowledged(std::uint32_t segment, std::uint32_t new_window_last) {
    if (new_window_last < segment || segment > segment_count_ || segment > window_last_) {
        return Answer::kRefused;
    }
    if (all_acknowledged() || new_window_last < window_last_ || segment < acknowledged_) {
        return Answer::kStale;
    }
    acknowledged_ = segment;
    sent_ = std::max(sent_, segment);
    window_last_ = new_window_last;
    return Answer::kProgress;
}

RmppReceiver::Verdict RmppReceiver::segment_arrived(const Datagram& segment, SimTime now) {
    last_arrival_ = now;
    const auto number = static_cast<std::uint32_t>(segment.get(rmpp::kSegmentNumber));
    if (complete_ || (number <= in_order_ && number <= acknowledged_)) {
        return Verdict::kAcknowledge;  // ours was lost
    }
    if (number > window_last_ || number > kMaxSegments || !early_.emplace(number, segment).second) {
        return Verdict::kDrop;
    }
    for (auto next = early_.find(in_order_ + 1); next != early_.end();
         next = early_.find(in_order_ + 1)) {
        const Datagram& one = next->second;
        const std::size_t headers = data_offset(one.management_class());
        const ConstBytes bytes(one.bytes);
        ++in_order_;
        std::size_t length = kDatagramBytes;
        if (one.get(rmpp::kLast) != 0) {
            complete_ = true;
            const std::uint64_t payload = one.get(rmpp::kPayloadLength);
            const bool makes_sense = payload <= rmpp::kSegmentBytes;
            length = makes_sense ? std::max(rmpp::kHeaderEnd + payload, headers) : kDatagramBytes;
        }
        const ConstBytes part = bytes.first(length).subspan(in_order_ == 1 ? 0 : headers);
        message_.insert(message_.end(), part.begin(), part.end());
        early_.erase(next);
    }
    if (complete_) {
        acknowledged_ = in_order_;
        early_.clear();
        return Verdict::kComplete;
    }
    if (in_order_ == window_last_) {
        acknowledged_ = in_order_;
        window_last_ += kWindow;
        return Verdict::kAcknowledge;
    }
    return Verdict::kHold;
}

std::vector<std::uint8_t> RmppReceiver::take_message() {
    SIMVERBS_ASSERT(complete_, "a message is taken with {} segments", in_order_);
    return std::move(message_);
}

Datagram make_acknowledgement(const Datagram& segment, const RmppReceiver& receiver) {
    Datagram ack = turned_round(segment, rmpp::kAck);
    ack.set(rmpp::kStatus, 0);
    ack.set(rmpp::kSegmentNumber, receiver.acknowledged());
    ack.set(rmpp::kNewWindowLast, receiver.window_last());
    return ack;
}

Datagram make_abort(const Datagram& segment, rmpp::AbortStatus status) {
    Datagram abort = turned_round(segment, rmpp::kAbort);
    abort.set(rmpp::kStatus, status);
    abort.set(rmpp::kSegmentNumber, 0);
    abort.set(rmpp::kNewWindowLast, 0);
    return abort;
}

}  // namespace fabric::mad

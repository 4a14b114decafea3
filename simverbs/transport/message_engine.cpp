#include "simverbs/transport/message_engine.hpp"

namespace simverbs {

MessageEngine::MessageEngine(const QpAttributes& attributes, const Personality& personality,
                             const WorkQueueShape& send, ReceiveProperties receives, TagList* tags,
                             QpMemory memory, Effects& effects)
    : requester_(attributes, personality, send, memory, effects),
      responder_(attributes, personality, receives, memory, effects) {
    if (tags != nullptr) {
        responder_.match_tags(*tags);
        requester_.admit_device_work();
    }
}

EngineProgress MessageEngine::progress() const {
    return {.next_psn = requester_.next_psn(),
            .expected_psn = responder_.expected_psn(),
            .sends = requester_.outstanding(),
            .started = requester_.started(),
            .first_send = requester_.first_outstanding(),
            .retries_left = requester_.retries_left(),
            .rnr_retries_left = requester_.rnr_retries_left(),
            .rnr_naks = requester_.rnr_naks(),
            .last_srq = responder_.last_srq(),
            .keeps_receive = responder_.keeps_receive()};
}

void MessageEngine::set_rate(RateReaction& rate) {
    requester_.set_rate(rate);
    responder_.set_rate(rate);
}

void MessageEngine::move_memory(QpMemory memory) {
    requester_.move_memory(memory);
    responder_.move_memory(memory);
}

EngineResult MessageEngine::receive(const Packet& packet) {
    return packet.operation().response() ? requester_.receive(packet) : responder_.receive(packet);
}

EngineResult MessageEngine::timer_expired(EngineTimer timer) {
    return timer == EngineTimer::kPacing ? responder_.transmitter_free()
                                         : requester_.timer_expired(timer);
}

}  // namespace simverbs

// The engine of all services that exchange messages: a requester and a responder.
#pragma once

#include "simverbs/transport/engine.hpp"
#include "simverbs/transport/requester.hpp"
#include "simverbs/transport/responder.hpp"

namespace simverbs {

class MessageEngine final : public Engine {
  public:
    // `tags`: of the shared receive queue, nullptr where it has none.
    MessageEngine(const QpAttributes& attributes, const Personality& personality,
                  const WorkQueueShape& send, ReceiveProperties receives, TagList* tags,
                  QpMemory memory, Effects& effects);

    [[nodiscard]] EngineProgress progress() const override;
    [[nodiscard]] bool drained() const override { return requester_.drained(); }
    [[nodiscard]] bool idle() const override {
        return !requester_.has_outstanding() && !responder_.has_answers();
    }

    void start_receiving() override { responder_.start(); }
    void start_sending() override { requester_.start(); }
    void resume_sending() override { requester_.resume(); }
    void post(std::uint32_t producer) override { requester_.post(producer); }
    EngineResult run() override { return requester_.run(); }
    void flush_sends() override { requester_.flush(FaultCause::kFlushed); }
    void flush_receive() override { responder_.flush(); }
    void resize(const WorkQueueShape& shape) override { requester_.resize(shape); }
    void set_rate(RateReaction& rate) override;
    void move_memory(QpMemory memory) override;

    void forget_receive(SrqNumber srq) override { responder_.forget_receive(srq); }
    void give_up_tags() override { responder_.give_up_tags(); }
    void add(const DeviceWork& request) override { requester_.add(request); }
    bool rendezvous_ended(FaultCause cause) override { return responder_.rendezvous_ended(cause); }

    EngineResult receive(const Packet& packet) override;
    [[nodiscard]] bool take_ahead(const Packet& train) override {
        return train.operation().response() ? requester_.take_ahead(train)
                                            : responder_.take_ahead(train);
    }
    [[nodiscard]] bool would_take(const Packet& train, std::span<const MemorySpan>& to) override {
        return train.operation().response() ? requester_.would_take(train, to)
                                            : responder_.would_take(train, to);
    }
    EngineResult fail_source(Psn psn) override { return requester_.fail_source(psn); }
    EngineResult timer_expired(EngineTimer timer) override;

  private:
    Requester requester_;
    Responder responder_;
};

}  // namespace simverbs

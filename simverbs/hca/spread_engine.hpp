// The engine of a queue pair that receives nothing itself: it gives each frame to the work queue
// that the hash of its headers selects (IBV_QP_CREATE_RX_HASH of ibv_create_qp_ex(3)).
#pragma once

#include "simverbs/hca/receive_work_queue.hpp"
#include "simverbs/transport/engine.hpp"
#include "simverbs/wire/toeplitz.hpp"

namespace simverbs {

class SpreadEngine final : public Engine {
  public:
    SpreadEngine(IndirectionTable& table, const ReceiveHash& hash) : table_(table), hash_(hash) {
        ++table_.uses;
    }
    ~SpreadEngine() override { --table_.uses; }

    [[nodiscard]] const IndirectionTable& table() const { return table_; }

    EngineResult receive_frame(const ReceivedFrame& frame, const FrameHeaders& headers) override {
        table_.queues[hash_of(hash_, headers) & (table_.queues.size() - 1)]->receive(frame);
        return {};
    }

  private:
    IndirectionTable& table_;
    ReceiveHash hash_;
};

}  // namespace simverbs

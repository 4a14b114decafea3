// Blocking verbs end with EINTR as read(2) does: where a signal arrives whose handler was installed
// without SA_RESTART (signal(7)). A signal that comes while the verb still works is not lost.
#pragma once

#include <csignal>

namespace simverbs {

// The calling thread's asynchronous signals wait while this holds them.
class HeldSignals {
  public:
    HeldSignals() { hold(); }
    ~HeldSignals();
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;

    void hold();
    // Lets them run. True: one of them interrupts a blocking call.
    [[nodiscard]] bool let_go();

  private:
    sigset_t before_{};
    bool holding_ = false;
};

// Blocks in the kernel until `descriptor`, a socket, has a message or its peer is gone; 0 or EINTR.
[[nodiscard]] int wait_for_message(int descriptor);
[[nodiscard]] bool has_message(int descriptor);

}  // namespace simverbs

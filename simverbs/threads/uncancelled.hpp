// Keeps the calling thread from being cancelled (pthread_cancel(3)) by what the library does in the
// kernel, while it lives: a thread that ended in the middle of a step, or between a command and its
// answer, would leave a world that nobody can go on with.
#pragma once

#include <pthread.h>

namespace simverbs {

class Uncancelled {
  public:
    // Does nothing if `needed` is false, as for a thread that no other one can cancel.
    explicit Uncancelled(bool needed = true) : changes_(needed) {
        if (changes_) {
            pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
        }
    }
    ~Uncancelled() {
        if (changes_) {
            pthread_setcancelstate(before_, nullptr);
        }
    }
    Uncancelled(const Uncancelled&) = delete;
    Uncancelled& operator=(const Uncancelled&) = delete;

    // Calls what sleeps in the kernel: there the thread may be cancelled, if it may at all.
    template <class Sleep>
    auto except_in(Sleep sleep) const {
        if (!changes_) {
            return sleep();
        }
        const Back back(before_);
        return sleep();
    }

  private:
    class Back {
      public:
        explicit Back(int state) { pthread_setcancelstate(state, nullptr); }
        ~Back() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr); }
        Back(const Back&) = delete;
        Back& operator=(const Back&) = delete;
    };

    const bool changes_;
    int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace simverbs

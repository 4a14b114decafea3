// SIGTERM, SIGINT and SIGHUP as a wish to end, to be looked at where it can be followed.
#pragma once

#include <array>
#include <csignal>

namespace simverbs::cli {

// While it lives, the signals are noted instead of ending this process; one that was ignored before
// (nohup, a shell's background) stays so. One at a time.
class EndSignals {
  public:
    static constexpr std::array<int, 3> kSignals{SIGTERM, SIGINT, SIGHUP};

    enum class Afterwards { kNothing, kRaise };
    explicit EndSignals(Afterwards afterwards = Afterwards::kNothing);
    // Lets them do again what they did; kRaise: the first that came does it now.
    ~EndSignals();
    EndSignals(const EndSignals&) = delete;
    EndSignals& operator=(const EndSignals&) = delete;

    // The first that came, 0: none; and how many have.
    static int first();
    static int count();
    // As if it had come: a program at the terminal was interrupted.
    static void note(int signal);

  private:
    Afterwards afterwards_;
    std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace simverbs::cli

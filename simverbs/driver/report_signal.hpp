// SIGUSR2 asks for a report of what each queue pair waits for. The handler only passes the request
// on; a program that has a handler of its own, or ignores the signal, is left as it is.
#pragma once

namespace simverbs::driver {

// Writes the report, in a thread of its own.
class Reporter {
  public:
    // Called by the signal handler, in any thread: does nothing that is not async-signal-safe.
    virtual void request_report() noexcept = 0;

  protected:
    ~Reporter() = default;
};

// From now on the signal asks this reporter.
void report_on_signal(Reporter& reporter);
// Returns once no handler uses this reporter any more.
void stop_reporting(Reporter& reporter);

}  // namespace simverbs::driver

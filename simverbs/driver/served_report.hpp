// The report on a served world that SIGUSR2 asks for: the server's text, written to stderr by a
// thread that sleeps until then.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include <semaphore.h>

#include "simverbs/driver/report_signal.hpp"

namespace simverbs::driver {

class ServedReport final : private Reporter {
  public:
    // `path`: of the world.
    explicit ServedReport(std::string path);
    ~ServedReport();
    ServedReport(const ServedReport&) = delete;
    ServedReport& operator=(const ServedReport&) = delete;

  private:
    void request_report() noexcept override;
    void write_reports();
    void write_report() const;

    std::string path_;
    sem_t requests_{};  // a forked child has its own copy
    std::atomic<bool> stop_{false};
    std::thread writer_;
};

}  // namespace simverbs::driver

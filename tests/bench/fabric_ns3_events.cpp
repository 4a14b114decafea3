// The hold model of fabric_event_loop_bench.cpp with each scheduler of ns-3. Prints the fastest one
// and what it takes for an event, in nanoseconds of CPU time: bench_ns3_events PENDING.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <ns3/core-module.h>

namespace {

constexpr std::uint64_t kEvents = 1'000'000;

class Load {
  public:
    // Nine out of ten within 2 us (frames), the tenth within 1 ms (timeouts).
    ns3::Time bimodal() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        const std::uint64_t span = (state_ & 0xFF) < 26 ? 1'000'000'000 : 2'000'000;
        return ns3::PicoSeconds((state_ >> 16) % span + 1);
    }

  private:
    std::uint64_t state_ = 88172645463325252U;
};

class Holder {
  public:
    void hold() {
        if (++events_ < kEvents) {
            ns3::Simulator::Schedule(load_.bimodal(), &Holder::hold, this);
        } else {
            ns3::Simulator::Stop();
        }
    }

  private:
    Load load_;
    std::uint64_t events_ = 0;
};

double nanoseconds_with(const char* scheduler, std::uint64_t pending) {
    ns3::ObjectFactory factory;
    factory.SetTypeId(scheduler);
    ns3::Simulator::SetScheduler(factory);
    Holder holder;
    Load load;
    for (std::uint64_t i = 0; i < pending; ++i) {
        ns3::Simulator::Schedule(load.bimodal(), &Holder::hold, &holder);
    }
    const std::clock_t start = std::clock();
    ns3::Simulator::Run();
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    ns3::Simulator::Destroy();
    return seconds / kEvents * 1e9;
}

}  // namespace

int main(int count, char** words) {
    const std::uint64_t pending = count > 1 ? std::strtoull(words[1], nullptr, 10) : 1000;
    ns3::Time::SetResolution(ns3::Time::PS);
    const char* best = "";
    double least = 0;
    for (const char* const scheduler : {"ns3::MapScheduler", "ns3::HeapScheduler",
                                        "ns3::PriorityQueueScheduler", "ns3::CalendarScheduler"}) {
        const double needed = nanoseconds_with(scheduler, pending);
        if (*best == '\0' || needed < least) {
            best = scheduler;
            least = needed;
        }
    }
    std::printf("%s %.1f\n", best, least);
    return 0;
}

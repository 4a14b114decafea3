// The cost of a trace point: unwanted, in the run digest, and recorded by a sink.
#include <cstdint>

#include <benchmark/benchmark.h>

#include "fabric/trace/bus.hpp"
#include "fabric/trace/memory_sink.hpp"

namespace fabric::trace {
namespace {

template <Category kCategory>
struct FourFields {
    static constexpr EventInfo kInfo{"four_fields", kCategory};
    NodeId node;
    std::uint32_t a = 0;
    std::uint32_t b = 0;
    std::uint64_t c = 0;
    bool d = false;

    template <class F>
    void fields(F&& f) const {
        f("a", a);
        f("b", b);
        f("c", c);
        f("d", d);
    }
};

template <Category kCategory>
void emit(benchmark::State& state, Bus& bus) {
    SimTime time = kSimStart;
    FourFields<kCategory> event{.node = NodeId{1}};
    for (auto _ : state) {
        time += 1_ns;
        ++event.c;
        bus.emit(time, event);
        benchmark::DoNotOptimize(event);
    }
    benchmark::DoNotOptimize(bus.run_digest());
}

void unwanted(benchmark::State& state) {
    Bus bus;
    emit<Category::kPacket>(state, bus);
}
BENCHMARK(unwanted);

void run_digest(benchmark::State& state) {
    Bus bus;
    emit<Category::kMessage>(state, bus);
}
BENCHMARK(run_digest);

void memory_sink(benchmark::State& state) {
    Bus bus;
    MemorySink sink(1024);
    bus.attach(sink, CategorySet::all());
    emit<Category::kMessage>(state, bus);
}
BENCHMARK(memory_sink);

}  // namespace
}  // namespace fabric::trace

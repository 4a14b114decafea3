// A run whose programs are not of the scenario, as its trace shows it: processes on hosts, or a
// test that has the library in it. Queue pairs are called HOST/N, the N-th that was made there.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/engine/observed.hpp"
#include "scenarios/engine/scenario.hpp"

namespace scenarios {

class Witness final : public Observed {
  public:
    explicit Witness(const Scenario& scenario);

    // In the order of the trace. Packets that came through unharmed are counted and not kept.
    void see(Record record);
    // The run is over.
    void end(std::int64_t now_ps, std::uint64_t digest);

    [[nodiscard]] std::int64_t now() const override { return now_; }
    [[nodiscard]] std::uint64_t digest() const override { return digest_; }
    [[nodiscard]] const std::vector<Completed>& completed() const override { return completed_; }
    [[nodiscard]] const std::vector<AsyncEventSeen>& events() const override { return events_; }
    [[nodiscard]] const std::vector<CmEventSeen>& cm_events() const override { return cm_events_; }
    [[nodiscard]] const std::vector<Record>& records() const override { return records_; }
    [[nodiscard]] const std::vector<Failure>& broken_invariants() const override { return broken_; }
    [[nodiscard]] std::uint64_t counted(const CounterRow& row,
                                        std::string_view node) const override;
    [[nodiscard]] std::string state_of(std::string_view end) const override;
    // Nobody can look into a program.
    [[nodiscard]] const Memory* memory_of(std::string_view host,
                                          std::string_view memory) const override;
    [[nodiscard]] std::optional<QueuePairPlace> place_of(std::string_view end) const override;
    [[nodiscard]] std::string end_of(std::string_view node, std::uint64_t qpn) const override;
    // Not known.
    [[nodiscard]] std::string peer_of(std::string_view /*node*/,
                                      std::uint64_t /*qpn*/) const override {
        return {};
    }
    [[nodiscard]] std::optional<std::uint32_t> number_of(std::string_view host, NamedObject kind,
                                                         std::string_view name) const override;

    // More records than that are no longer kept, which broken_invariants() says.
    static constexpr std::size_t kMostRecords = 2'000'000;

  private:
    using Counts = std::array<std::uint64_t, kCounters.size()>;
    // The observations of one node.
    struct Seen {
        Counts counts{};
        std::map<std::uint32_t, std::uint32_t> nth_of;  // by queue pair number
        std::map<std::uint32_t, std::string> states;    // by place
    };

    [[nodiscard]] bool is_kept(const Record& record) const;
    void note_queue_pair(const Record& record, Seen& seen);

    std::set<std::string, std::less<>> wanted_records_;  // that a never-clause names
    std::set<std::string, std::less<>> hosts_;
    std::map<std::string, Seen, std::less<>> nodes_;
    std::vector<Completed> completed_;
    std::vector<AsyncEventSeen> events_;
    std::vector<CmEventSeen> cm_events_;
    std::vector<Record> records_;
    std::vector<Failure> broken_;
    std::int64_t now_ = 0;
    std::uint64_t digest_ = 0;
};

}  // namespace scenarios

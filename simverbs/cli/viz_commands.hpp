// `simverbs viz`: pictures of the model and of what a trace tells.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "simverbs/cli/command.hpp"

#include "viz/coverage.hpp"

namespace simverbs::cli {

class VizCommands final : public Command {
  public:
    // Adds the words to `app`, which outlives it.
    explicit VizCommands(CLI::App& app);

    [[nodiscard]] bool is_chosen() const override { return command_->parsed(); }
    [[nodiscard]] int run() override;

  private:
    CLI::App* add(const char* name, const char* help, const char* endings);
    CLI::App* add_view(const char* name, const char* help, const char* endings);
    void add_state_diagrams();
    void add_views();
    [[nodiscard]] int draw_machine() const;
    [[nodiscard]] int draw_ladder() const;
    [[nodiscard]] int draw_topology() const;
    [[nodiscard]] int write_coverage() const;
    [[nodiscard]] int judge_coverage(const std::vector<viz::CoverageGroup>& groups) const;
    [[nodiscard]] int write_report() const;

    CLI::App* command_;
    CLI::App* qp_ = nullptr;
    CLI::App* port_ = nullptr;
    CLI::App* cq_ = nullptr;
    CLI::App* srq_ = nullptr;
    CLI::App* wq_ = nullptr;
    CLI::App* requester_ = nullptr;
    CLI::App* responder_ = nullptr;
    CLI::App* cm_ = nullptr;
    CLI::App* lap_ = nullptr;
    CLI::App* rdma_cm_ = nullptr;
    CLI::App* ladder_ = nullptr;
    CLI::App* timeline_ = nullptr;
    CLI::App* topology_ = nullptr;
    CLI::App* coverage_ = nullptr;
    CLI::App* report_ = nullptr;
    std::string service_ = "RC";
    std::string personality_ = "spec";
    std::string side_ = "active";
    std::vector<std::string> traces_;
    std::string output_;
    std::string trace_;
    std::vector<std::string> qps_;
    std::size_t rows_ = 400;
    std::int64_t from_ = 0;           // ps
    std::int64_t until_ = INT64_MAX;  // ps
    bool every_packet_ = false;
    bool all_nodes_ = false;
    bool as_json_ = false;
    std::string title_ = "Coverage";
    std::string badge_;
    std::vector<std::string> required_;
};

}  // namespace simverbs::cli

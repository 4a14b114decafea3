// The fabric of a scenario as worlds are told of one: a generator, or the path of a file. One that
// stands in the scenario gets a file in /tmp, which goes with this.
#pragma once

#include <string>

#include "scenarios/engine/scenario.hpp"

namespace scenarios {

class TopologyFile {
  public:
    explicit TopologyFile(const Scenario& scenario);
    ~TopologyFile();
    TopologyFile(const TopologyFile&) = delete;
    TopologyFile& operator=(const TopologyFile&) = delete;

    // As simverbs_set_topology() takes it, while this lives.
    [[nodiscard]] const std::string& spec() const { return spec_; }
    // Why it could not be written; "" where it is.
    [[nodiscard]] const std::string& error() const { return error_; }

  private:
    std::string spec_;
    std::string error_;
    bool is_ours_ = false;
};

}  // namespace scenarios

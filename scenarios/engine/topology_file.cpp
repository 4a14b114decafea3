#include "scenarios/engine/topology_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>
#include <unistd.h>

#include "fabric/topology/yaml_text.hpp"

namespace scenarios {

TopologyFile::TopologyFile(const Scenario& scenario) : spec_(scenario.topology_spec) {
    if (!spec_.empty()) {
        return;
    }
    constexpr int kSuffixLength = 5;
    spec_ = "/tmp/simverbs-scenario-XXXXXX.yaml";
    const int descriptor = mkstemps(spec_.data(), kSuffixLength);
    is_ours_ = descriptor >= 0;
    const std::string text = fabric::write_yaml(scenario.topology);
    const bool written = is_ours_ && write(descriptor, text.data(), text.size()) ==
                                         static_cast<ssize_t>(text.size());
    if (!written) {
        error_ = fmt::format("{}: the topology cannot be written: {}", spec_, std::strerror(errno));
    }
    if (is_ours_) {
        close(descriptor);
    }
}

TopologyFile::~TopologyFile() {
    if (is_ours_) {
        unlink(spec_.c_str());
    }
}

}  // namespace scenarios

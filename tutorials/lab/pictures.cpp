#include "tutorials/lab/pictures.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "tutorials/lab/exercise.hpp"
#include "viz/graphviz.hpp"
#include "viz/ladder.hpp"
#include "viz/state_diagram.hpp"
#include "viz/state_machine.hpp"
#include "viz/timeline.hpp"
#include "viz/topology_picture.hpp"

namespace simverbs::lab {
namespace {

std::string name_of(const viz::StateMachine& machine) {
    return fmt::format("states_{}.svg", machine.id);
}

// All that a picture may be named.
std::vector<std::string> names_of(Picture picture) {
    switch (picture) {
        case Picture::kLadder:
            return {"ladder.svg"};
        case Picture::kTimeline:
            return {"timeline.json"};
        case Picture::kTopology:
            return {"topology.svg"};
        case Picture::kStates:
            break;
    }
    std::vector<std::string> names;
    for (const viz::StateMachine& machine : viz::all_machines()) {
        names.push_back(name_of(machine));
    }
    return names;
}

// The services of the queue pairs that there were, as diagrams.
std::vector<viz::StateMachine> machines_of(const viz::Trace& trace, const viz::Run& run) {
    std::vector<viz::StateMachine> machines;
    for (viz::StateMachine& machine : viz::all_machines()) {
        const bool is_used =
            std::any_of(run.services.begin(), run.services.end(),
                        [&machine](const auto& qp) { return machine.id == "qp_" + qp.second; });
        if (is_used) {
            viz::count_moves(machine, trace);
            machines.push_back(std::move(machine));
        }
    }
    return machines;
}

class Painter {
  public:
    explicit Painter(std::string folder) : folder_(std::move(folder)) {}

    void remove(Picture picture) {
        for (const std::string& name : names_of(picture)) {
            std::error_code failure;
            std::filesystem::remove(folder_ + "/" + name, failure);
            if (failure) {
                fail(fmt::format("{}/{} is of an earlier check and cannot be removed: {}", folder_,
                                 name, failure.message()));
            }
        }
    }

    void draw(Picture picture, const viz::Trace& trace, const viz::Run& run) {
        switch (picture) {
            case Picture::kLadder:
                if (!run.services.empty()) {
                    save("ladder.svg", viz::ladder(trace, run, {}));
                }
                return;
            case Picture::kTimeline:
                save("timeline.json", viz::timeline(trace, run));
                return;
            case Picture::kTopology:
                save_drawn("topology.svg", viz::topology_picture(run, {}));
                return;
            case Picture::kStates:
                for (const viz::StateMachine& machine : machines_of(trace, run)) {
                    save_drawn(name_of(machine), viz::state_diagram(machine));
                }
        }
    }

    [[nodiscard]] const Drawn& drawn() const { return drawn_; }

  private:
    void fail(const std::string& reason) {
        drawn_.error = drawn_.error.empty() ? reason : drawn_.error;
    }
    void save(const std::string& name, std::string_view text) {
        const std::string file = folder_ + "/" + name;
        if (write_file(file, text)) {
            drawn_.files.push_back(file);
        } else {
            fail(file + " cannot be written");
        }
    }
    void save_drawn(const std::string& name, const std::string& dot) {
        if (const auto svg = viz::draw(dot, "svg")) {
            save(name, *svg);
        } else {
            fail(svg.error());
        }
    }

    std::string folder_;
    Drawn drawn_;
};

}  // namespace

Drawn draw(const Rubric& rubric, const Performance& performance, const std::string& folder) {
    Painter painter(folder);
    for (const Picture picture : rubric.pictures) {
        painter.remove(picture);
        if (!performance.trace.records.empty()) {
            painter.draw(picture, performance.trace, performance.run);
        }
    }
    return painter.drawn();
}

}  // namespace simverbs::lab

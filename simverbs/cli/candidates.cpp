#include "simverbs/cli/candidates.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "simverbs/cli/candidate_values.hpp"
#include "simverbs/cli/program_words.hpp"

namespace simverbs::cli {
namespace {

bool takes_value(const CLI::Option& option) {
    return option.get_items_expected_max() != 0;  // a flag: none
}

bool repeats(const CLI::Option& option) {
    return option.get_expected_max() == CLI::detail::expected_max_vector_size;
}

// A command line as far as it goes: which command it has reached, and what that has been given.
class Line {
  public:
    explicit Line(const CLI::App& app) : command_(&app) {}

    void take(const std::string& word) {
        if (waiting_ != nullptr) {
            give(*waiting_, word);
            waiting_ = nullptr;
            return;
        }
        if (word.size() > 1 && word.front() == '-') {
            const std::size_t equals = word.find('=');
            const CLI::Option* const option = find_option(word.substr(0, equals));
            if (option == nullptr) {
                return;
            }
            if (equals != std::string::npos || !takes_value(*option)) {
                give(*option, equals == std::string::npos ? "" : word.substr(equals + 1));
            } else {
                waiting_ = option;
            }
            return;
        }
        if (const CLI::App* const below = words_.empty() ? find_command(word) : nullptr) {
            above_.push_back(command_);
            command_ = below;
            return;
        }
        words_.push_back(word);
    }

    [[nodiscard]] Candidates at_end(const std::string& begun) const {
        if (waiting_ != nullptr) {
            return values_of(*waiting_, begun);
        }
        const std::size_t equals = begun.find('=');
        if (begun.starts_with("--") && equals != std::string::npos) {
            return values_behind_equals(begun, equals);
        }
        if (begun.starts_with('-')) {
            return {options()};
        }
        Candidates found = word(begun);
        if (words_.empty()) {
            const std::vector<Candidate> below = commands();
            found.words.insert(found.words.begin(), below.begin(), below.end());
        }
        return found;
    }

  private:
    void give(const CLI::Option& option, std::string value) {
        given_.emplace_back(&option, std::move(value));
    }

    // Options of commands above count where the command lets them through.
    [[nodiscard]] std::vector<const CLI::App*> reachable() const {
        std::vector<const CLI::App*> apps{command_};
        for (auto above = above_.rbegin(); above != above_.rend() && apps.back()->get_fallthrough();
             ++above) {
            apps.push_back(*above);
        }
        return apps;
    }

    [[nodiscard]] const CLI::Option* find_option(const std::string& name) const {
        for (const CLI::App* const app : reachable()) {
            const CLI::Option* const option = app->get_option_no_throw(name);
            if (option != nullptr && !option->get_positional()) {
                return option;
            }
        }
        return nullptr;
    }

    [[nodiscard]] const CLI::App* find_command(const std::string& name) const {
        const auto below = command_->get_subcommands(
            [&name](const CLI::App* each) { return each->get_name() == name; });
        return below.empty() ? nullptr : below.front();
    }

    [[nodiscard]] std::vector<Candidate> commands() const {
        std::vector<Candidate> found;
        for (const CLI::App* const each : command_->get_subcommands(
                 [](const CLI::App* one) { return !one->get_group().empty(); })) {
            found.push_back({each->get_name(), each->get_description()});
        }
        return found;
    }

    [[nodiscard]] bool is_given(const CLI::Option& option) const {
        return std::ranges::any_of(given_, [&](const auto& each) {
            return each.first == &option ||
                   option.get_excludes().contains(const_cast<CLI::Option*>(each.first));
        });
    }

    // Leaves out those that stand there already and are given once, or exclude one that does.
    [[nodiscard]] std::vector<Candidate> options() const {
        std::vector<Candidate> found;
        for (const CLI::App* const app : reachable()) {
            for (const CLI::Option* const option : app->get_options()) {
                if (!option->get_lnames().empty() && (repeats(*option) || !is_given(*option))) {
                    found.push_back(
                        {"--" + option->get_lnames().front(), option->get_description()});
                }
            }
        }
        return found;
    }

    [[nodiscard]] Context context() const {
        return {[this](std::string_view name) {
                    for (const auto& [option, value] : given_) {
                        if (option->get_name() == name) {
                            return value;
                        }
                    }
                    return std::string();
                },
                command_->get_option_no_throw("--topology") != nullptr};
    }

    [[nodiscard]] Candidates values_of(const CLI::Option& option, const std::string& begun) const {
        return values_of_kind(option.get_type_name(), context(), begun);
    }

    // "--seed=7": bash and zsh replace the whole word.
    [[nodiscard]] Candidates values_behind_equals(const std::string& begun,
                                                  std::size_t equals) const {
        const CLI::Option* const option = find_option(begun.substr(0, equals));
        if (option == nullptr) {
            return {};
        }
        Candidates found = values_of(*option, begun.substr(equals + 1));
        for (Candidate& each : found.words) {
            each.word.insert(0, begun, 0, equals + 1);
        }
        return found;
    }

    // The word that the command expects next.
    [[nodiscard]] Candidates word(const std::string& begun) const {
        const auto positionals = command_->get_options([](const CLI::Option* option) {
            return option->get_positional() && !option->nonpositional();
        });
        if (positionals.empty()) {
            return {};
        }
        const std::size_t place = std::min(words_.size(), positionals.size() - 1);
        const CLI::Option& option = *positionals[place];
        if (words_.size() >= positionals.size() && !repeats(option)) {
            return {};
        }
        // `run` has its topology and its hosts in one list of words.
        if (option.get_type_name() == "TOPOLOGY HOST=COMMAND" && !has_scenario()) {
            return words_.empty() ? values_of_kind("TOPOLOGY", context(), begun)
                                  : hosts_of_topology(words_.front(), "=");
        }
        return values_of(option, begun);
    }

    [[nodiscard]] bool has_scenario() const { return !context().value_of("--scenario").empty(); }

    const CLI::App* command_;
    std::vector<const CLI::App*> above_;
    std::vector<std::string> words_;  // of the command, that are no options
    std::vector<std::pair<const CLI::Option*, std::string>> given_;
    const CLI::Option* waiting_ = nullptr;  // for its value
};

}  // namespace

Candidates find_candidates(const CLI::App& app, const std::vector<std::string>& words) {
    const std::string begun = words.empty() ? "" : words.back();
    std::vector<std::string> before(words.begin(), words.end() - (words.empty() ? 0 : 1));
    std::vector<char*> argv{const_cast<char*>("simverbs")};
    for (std::string& word : before) {
        argv.push_back(word.data());
    }
    int argc = static_cast<int>(argv.size());
    const std::vector<std::string> program = take_program(argc, argv.data());
    if (!program.empty()) {
        return {{}, ShellWords::kFiles};
    }
    if (static_cast<std::size_t>(argc) < argv.size()) {
        return {{}, ShellWords::kCommands};  // behind "--"
    }
    Line line(app);
    for (const std::string& word : before) {
        line.take(word);
    }
    Candidates found = line.at_end(begun);
    std::erase_if(found.words,
                  [&begun](const Candidate& each) { return !each.word.starts_with(begun); });
    return found;
}

}  // namespace simverbs::cli

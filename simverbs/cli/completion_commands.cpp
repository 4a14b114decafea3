#include "simverbs/cli/completion_commands.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "simverbs/cli/candidates.hpp"
#include "simverbs/cli/completion_scripts.hpp"
#include "simverbs/cli/exit_status.hpp"

namespace simverbs::cli {
namespace {

// The line that `complete` prints for each of ShellWords, behind the candidates.
constexpr std::array<std::string_view, 4> kShellWords = {"", ":files\n", ":folders\n",
                                                         ":commands\n"};

std::string_view script_of(std::string_view shell) {
    return shell == "bash" ? kBashCompletion : shell == "zsh" ? kZshCompletion : kFishCompletion;
}

}  // namespace

CompletionCommands::CompletionCommands(CLI::App& app, std::vector<std::string> program)
    : app_(app),
      completion_(app.add_subcommand("completion",
                                     "Print a script by which a shell completes "
                                     "command lines of simverbs")),
      complete_(app.add_subcommand("complete", "Candidates for the last of the words behind --")),
      words_(std::move(program)) {
    completion_->add_option("shell", shell_, "which one")
        ->check(CLI::IsMember({"bash", "zsh", "fish"}))
        ->required();
    complete_->group("");  // hidden
}

int CompletionCommands::run() {
    if (completion_->parsed()) {
        fmt::print("{}", script_of(shell_));
        return kPassed;
    }
    const Candidates found = find_candidates(app_, words_);
    for (const Candidate& each : found.words) {
        fmt::print("{}{}{}\n", each.word, each.meaning.empty() ? "" : "\t", each.meaning);
    }
    fmt::print("{}", kShellWords[static_cast<std::size_t>(found.others)]);
    return kPassed;
}

}  // namespace simverbs::cli

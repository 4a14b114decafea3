// The `simverbs` command: the list of its commands.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "simverbs/cli/command.hpp"
#include "simverbs/cli/completion_commands.hpp"
#include "simverbs/cli/doctor_command.hpp"
#include "simverbs/cli/examples.hpp"
#include "simverbs/cli/exec_command.hpp"
#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/explore_command.hpp"
#include "simverbs/cli/fabric_commands.hpp"
#include "simverbs/cli/help.hpp"
#include "simverbs/cli/lab_commands.hpp"
#include "simverbs/cli/program_words.hpp"
#include "simverbs/cli/run_command.hpp"
#include "simverbs/cli/scenario_commands.hpp"
#include "simverbs/cli/search_commands.hpp"
#include "simverbs/cli/settings_command.hpp"
#include "simverbs/cli/topology_commands.hpp"
#include "simverbs/cli/usage.hpp"
#include "simverbs/cli/viz_commands.hpp"
#include "simverbs/cli/watch_command.hpp"
#include "simverbs/cli/world_commands.hpp"
#include "simverbs/protocol/served_protocol.hpp"

namespace {

namespace cli = simverbs::cli;

// CLI11 2.1 reads "-1", and numbers of more than 64 bits, as the largest number that there is.
void refuse_numbers_beyond(CLI::App& app) {
    const CLI::Validator is_within(
        [](const std::string& text) {
            std::uint64_t number = 0;
            const auto [end, error] =
                std::from_chars(text.data(), text.data() + text.size(), number);
            return text.starts_with('-')                     ? text + " is below 0"
                   : error == std::errc::result_out_of_range ? text + " is above 2^64-1"
                                                             : std::string();
        },
        "");
    for (CLI::Option* const option : app.get_options()) {
        const std::string type = option->get_type_name();
        if (std::ranges::any_of(cli::kTypesOfNumbers,
                                [&](std::string_view each) { return type.starts_with(each); })) {
            option->transform(is_within);  // before units and ranges are looked at
        }
    }
    for (CLI::App* const each :
         app.get_subcommands([](const CLI::App* /*each*/) { return true; })) {
        refuse_numbers_beyond(*each);
    }
}

int run(int argc, char** argv) {
    CLI::App app("Simulated RDMA: verbs programs on hosts of a simulated fabric.", "simverbs");
    app.set_version_flag("--version", SIMVERBS_VERSION, "print the version and end");
    app.set_help_flag("-h,--help", "print this and end");
    app.require_subcommand(1);
    app.option_defaults()->always_capture_default();
    app.formatter(std::make_shared<cli::Help>());
    app.footer(cli::describe_exit_statuses());

    std::string world(simverbs::kDefaultWorld);
    const std::vector<std::string> program = cli::take_program(argc, argv);
    const std::array<std::unique_ptr<cli::Command>, 14> commands = {
        std::make_unique<cli::RunCommand>(app),
        std::make_unique<cli::ExecCommand>(app, program),
        std::make_unique<cli::WorldCommands>(app, world, program),
        std::make_unique<cli::FabricCommands>(app, world),
        std::make_unique<cli::WatchCommand>(app, world),
        std::make_unique<cli::ScenarioCommands>(app),
        std::make_unique<cli::SearchCommands>(app, program),
        std::make_unique<cli::ExploreCommand>(app, program),
        std::make_unique<cli::VizCommands>(app),
        std::make_unique<cli::TopologyCommands>(app),
        std::make_unique<cli::LabCommands>(app),
        std::make_unique<cli::SettingsCommand>(app),
        std::make_unique<cli::DoctorCommand>(app, program),
        std::make_unique<cli::CompletionCommands>(app, program),
    };
    refuse_numbers_beyond(app);
    cli::add_examples(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return error.get_exit_code() == 0  // help is no error
                   ? app.exit(error)
                   : cli::complain(cli::describe_usage_error(app, error), cli::kUsage);
    }
    const auto chosen =
        std::ranges::find_if(commands, [](const auto& command) { return command->is_chosen(); });
    return (*chosen)->run();  // one is required
}

// The output of a command may still be in the buffer, and the disk may be full.
int flush_output(int status) {
    errno = 0;
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
        return status;
    }
    // Where an earlier write has failed its reason is lost.
    const std::string reason = errno == 0 ? "" : fmt::format(": {}", std::strerror(errno));
    return cli::complain("standard output cannot be written" + reason,
                         status == cli::kPassed ? cli::kFailed : status);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return flush_output(run(argc, argv));
    } catch (const std::exception& error) {  // of memory or descriptors there are no more, say
        std::fprintf(stderr, "simverbs: %s\n", error.what());
        return cli::kFailed;
    }
}

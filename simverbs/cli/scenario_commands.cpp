#include "simverbs/cli/scenario_commands.hpp"

#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "fabric/core/one_file.hpp"

#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/installed_files.hpp"
#include "simverbs/cli/output_option.hpp"
#include "simverbs/cli/progress.hpp"
#include "simverbs/cli/scenario_processes.hpp"

#include "scenarios/engine/batch.hpp"
#include "scenarios/engine/explain.hpp"
#include "scenarios/engine/fired_faults.hpp"
#include "scenarios/engine/format.hpp"
#include "scenarios/engine/lumina.hpp"
#include "scenarios/engine/scenario.hpp"

namespace simverbs::cli {

namespace {

bool write_file(const std::string& path, const std::string& text) {
    std::ofstream out(path);
    out << text;
    out.close();
    if (!out) {
        std::cerr << path << " cannot be written\n";
    }
    return static_cast<bool>(out);
}

}  // namespace

ScenarioCommands::ScenarioCommands(CLI::App& app) {
    scenario_ = app.add_subcommand("scenario", "Run scenarios and judge them");
    CLI::Option* const files =
        scenario_->add_option("files", files_, "scenarios, and folders of .yaml files");
    files->type_name("SCENARIO");
    take_installed_files(*files);
    scenario_->add_option("--set", settings_, "a change of the files")
        ->type_name("KEY.KEY=VALUE")
        ->allow_extra_args(false);
    scenario_->add_option("-j,--jobs", jobs_, "so many at once")->check(CLI::Range(1, 1024));
    scenario_->add_option("--trace", run_files_.trace, "write every event of the one file to FILE")
        ->type_name("FILE");
    scenario_
        ->add_option("--pcap", run_files_.capture,
                     "write every packet of the one file to FILE (pcapng)")
        ->type_name("FILE");
    scenario_->add_option("--junit", junit_file_, "write the results to FILE as JUnit XML")
        ->type_name("FILE");
    scenario_->add_option("--json", json_file_, "write the results to FILE as JSON")
        ->type_name("FILE");
    scenario_->add_flag("--print", print_, "print what would be run, and run nothing");
    scenario_
        ->add_option("--lumina", lumina_file_,
                     "print the scenario that a configuration of Lumina describes")
        ->type_name("FILE");
    scenario_->add_flag("--schema", schema_, "print the JSON Schema of scenarios");
    scenario_->add_flag("--quiet", quiet_, "only what failed, and the sum");
    scenario_->add_flag("--strict", strict_,
                        "a warning is a failure, such as a fault that never fired");

    explain_ = app.add_subcommand("explain", "Why something in a trace failed, in sentences");
    explain_->add_option("trace", explained_, "JSON Lines: of --trace, or of SIMVERBS_TRACE")
        ->type_name("FILE")
        ->required();
    explain_->add_option("--wr", request_, "which work request of its queue, from 0")
        ->default_str("the first that failed");
    explain_->add_option("--qp", queue_pair_, "number of its queue pair")->default_str("any");
    explain_->add_option("--node", node_, "of the queue pair: its name, or \"node N\"")
        ->type_name("NODE")
        ->default_str("any");
}

bool ScenarioCommands::is_chosen() const {
    return scenario_->parsed() || explain_->parsed();
}

int ScenarioCommands::run() {
    if (explain_->parsed()) {
        return explain();
    }
    if (schema_) {
        std::cout << scenarios::json_schema(scenarios::format::kScenario, "simverbs scenario");
        return 0;
    }
    if (!lumina_file_.empty()) {
        return print_lumina();
    }
    if (files_.empty()) {
        std::cerr << "simverbs scenario: no files; see --help\n";
        return kUsage;
    }
    return print_ ? print_files() : run_files();
}

int ScenarioCommands::explain() const {
    const auto records = scenarios::read_trace(explained_);
    if (!records) {
        std::cerr << records.error() << "\n";
        return kUsage;
    }
    const scenarios::Question question{queue_pair_, request_, node_};
    if (const std::string unknown = scenarios::describe_unknown(*records, question);
        !unknown.empty()) {
        return complain(fmt::format("{}: {}", explained_, unknown), kUsage);
    }
    const auto why = scenarios::explain(*records, question);
    std::cout << why.value_or(
        "    No work request failed that was asked for, no queue pair, and no message of UC or UD "
        "was lost.\n" +
        scenarios::recovered(*records) + scenarios::describe_fired_faults(*records));
    return 0;
}

int ScenarioCommands::print_lumina() const {
    std::ifstream in(lumina_file_, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    if (!in) {
        std::cerr << lumina_file_ << ": cannot be read\n";
        return kUsage;
    }
    const auto scenario = scenarios::import_lumina(text, lumina_file_);
    if (!scenario) {
        std::cerr << scenario.error() << "\n";
        return kUsage;
    }
    std::cout << *scenario;
    return 0;
}

int ScenarioCommands::print_files() const {
    for (const std::string& file : files_) {
        const auto scenario = scenarios::load(file, settings_);
        if (!scenario) {
            std::cerr << scenario.error() << "\n";
            return kUsage;
        }
        std::cout << "# " << file << "\n" << scenarios::to_text(*scenario);
    }
    return 0;
}

int ScenarioCommands::run_files() const {
    const auto files = scenarios::find_files(files_);
    if (!files) {
        std::cerr << files.error() << "\n";
        return kUsage;
    }
    for (const auto& [option, file] :
         {std::pair("--trace", &run_files_.trace), std::pair("--pcap", &run_files_.capture)}) {
        if (!file->empty() && files->size() != 1) {
            return complain(fmt::format("scenario: {} is for one scenario; there are {}", option,
                                        files->size()),
                            kUsage);
        }
    }
    if (fabric::is_one_file(run_files_.trace, run_files_.capture)) {
        return complain(fmt::format("--trace and --pcap name one file, '{}'", run_files_.trace),
                        kUsage);
    }
    for (const std::string& file : {junit_file_, json_file_}) {
        if (!file.empty() && !can_write(file)) {
            return complain(file + " cannot be written", kUsage);
        }
    }
    std::size_t failed = 0;
    bool is_input = false;
    Progress progress(files->size() == 1 ? "scenario" : "scenarios");
    const auto verdicts = scenarios::run_batch(
        *files,
        {settings_, run_files_, jobs_, strict_, run_scenario,
         [&](const scenarios::Stage& stage) { return progress.look(stage); }},
        [&](const scenarios::Verdict& verdict) {
            failed += verdict.passed() || verdict.interrupted_by != 0 ? 0 : 1;
            is_input = is_input || verdict.is_input;
            if (!quiet_ || !verdict.passed()) {
                progress.clear();
                std::cout << scenarios::report(verdict, settings_) << std::flush;
            }
        });
    progress.clear();
    std::cout << verdicts.size() - failed << " of " << files->size() << " passed";
    if (verdicts.size() < files->size()) {
        std::cout << ", interrupted: " << files->size() - verdicts.size() << " did not end";
    }
    std::cout << "\n";
    bool written = junit_file_.empty() || write_file(junit_file_, scenarios::junit(verdicts));
    written = (json_file_.empty() || write_file(json_file_, scenarios::json(verdicts))) && written;
    return Progress::status(is_input ? kUsage : failed == 0 && written ? kPassed : kFailed);
}

}  // namespace simverbs::cli

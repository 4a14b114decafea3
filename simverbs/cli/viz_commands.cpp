#include "simverbs/cli/viz_commands.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "fabric/yaml/quantities.hpp"

#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/output_option.hpp"
#include "simverbs/model/cm_transitions.hpp"
#include "simverbs/model/personalities.hpp"
#include "simverbs/model/services.hpp"

#include "viz/coverage.hpp"
#include "viz/coverage_views.hpp"
#include "viz/graphviz.hpp"
#include "viz/ladder.hpp"
#include "viz/report.hpp"
#include "viz/run.hpp"
#include "viz/state_diagram.hpp"
#include "viz/state_machine.hpp"
#include "viz/timeline.hpp"
#include "viz/topology_picture.hpp"
#include "viz/trace_file.hpp"

namespace simverbs::cli {
namespace {

// Reports wrong input: a trace, a queue pair or a format that the user has named.
int complain(std::string_view what) {
    return cli::complain(what, kUsage);
}

fabric::Outcome<viz::Trace> read_trace(const std::string& path) {
    fabric::Outcome<viz::Trace> trace = viz::read_trace(path);
    if (trace && trace->is_cut) {
        fmt::print(
            stderr,
            "simverbs: {}: the last line is cut off and left out: its program was killed, or "
            "the disk is full\n",
            path);
    }
    return trace;
}

int write_out(const std::string& path, std::string_view text) {
    if (path.empty()) {
        fmt::print("{}", text);
        return kPassed;
    }
    errno = 0;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << text << std::flush;
    return file ? kPassed
                : cli::complain(fmt::format("{}: {}", path, std::strerror(errno)), kFailed);
}

// By its ending a file is DOT text or what `dot` makes of it; without a file: the text.
int write_graph(const std::string& path, const std::string& dot) {
    const std::size_t point = path.rfind('.');
    const std::string format = point == std::string::npos ? "" : path.substr(point + 1);
    if (path.empty() || format == "dot" || format == "gv") {
        return write_out(path, dot);
    }
    if (format != "svg" && format != "png" && format != "pdf") {
        return complain(fmt::format("{}: the ending is not .dot, .svg, .png or .pdf", path));
    }
    const fabric::Outcome<std::string> picture = viz::draw(dot, format);
    return picture ? write_out(path, *picture) : cli::complain(picture.error(), kFailed);
}

// The traces of folders in the order of their names, files as they are.
fabric::Outcome<std::vector<std::string>> files_of(const std::vector<std::string>& paths) {
    namespace fs = std::filesystem;
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        std::error_code failure;
        if (!fs::is_directory(path, failure)) {
            files.push_back(path);
            continue;
        }
        std::vector<std::string> found;
        for (const fs::directory_entry& entry : fs::directory_iterator(path, failure)) {
            if (entry.path().extension() == ".jsonl") {
                found.push_back(entry.path().string());
            }
        }
        if (found.empty()) {
            return fabric::Failure(fmt::format(
                "{}: {}", path, failure ? failure.message() : "a folder without .jsonl files"));
        }
        std::sort(found.begin(), found.end());
        files.insert(files.end(), found.begin(), found.end());
    }
    return files;
}

// "; queue pairs that send: h0:0x10001, h1:0x10101".
std::string examples_of(const viz::Run& run) {
    constexpr std::size_t kMost = 4;
    std::set<viz::QpName> senders;
    for (const viz::RunPacket& packet : run.packets) {
        senders.insert(packet.from);
    }
    std::string text;
    std::size_t count = 0;
    for (const viz::QpName& qp : senders) {
        if (++count > kMost) {
            return text + ", ...";
        }
        text += fmt::format("{}{}:0x{:x}", text.empty() ? "; queue pairs that send: " : ", ",
                            run.label(qp.node), qp.qpn);
    }
    return text;
}

fabric::Outcome<std::vector<viz::QpName>> find_qps(const viz::Run& run,
                                                   const std::vector<std::string>& names) {
    std::vector<viz::QpName> found;
    for (const std::string& name : names) {
        const std::vector<viz::QpName> qps = run.find_qps(name);
        if (qps.empty()) {
            return fabric::Failure(
                fmt::format("'{}' is neither HOST:NUMBER of a queue pair in the "
                            "trace nor a host that has any{}",
                            name, examples_of(run)));
        }
        found.insert(found.end(), qps.begin(), qps.end());
    }
    return found;
}

std::vector<std::string> service_names() {
    std::vector<std::string> names;
    names.reserve(kServices.size());
    for (const ServiceProperties& row : kServices) {
        names.emplace_back(row.name);
    }
    return names;
}

std::vector<std::string> personality_names() {
    std::vector<std::string> names;
    names.reserve(kPersonalities.size());
    for (const Personality* const personality : kPersonalities) {
        names.emplace_back(personality->name);
    }
    return names;
}

Service service_named(std::string_view name) {
    for (const ServiceProperties& row : kServices) {
        if (row.name == name) {
            return row.service;
        }
    }
    return Service::kRc;  // not reached: the option admits the names of the table
}

std::vector<std::string> side_names() {
    std::vector<std::string> names;
    names.reserve(kCmSides.size());
    for (const CmSide side : kCmSides) {
        names.emplace_back(to_string(side));
    }
    return names;
}

CmSide side_named(std::string_view name) {
    for (const CmSide side : kCmSides) {
        if (to_string(side) == name) {
            return side;
        }
    }
    return CmSide::kActive;  // not reached, likewise
}

// Admits names without an ending, and those whose ending is one of `endings`: ".svg, .png".
CLI::Validator ends_with_one_of(std::string endings) {
    return {[endings = std::move(endings)](const std::string& path) {
                const std::string ending = std::filesystem::path(path).extension().string();
                const bool is_one =
                    (", " + endings + ",").find(" " + ending + ",") != std::string::npos;
                return ending.empty() || is_one
                           ? std::string()
                           : fmt::format("{}: the ending is not {}", path, endings);
            },
            ""};
}

void add_time(CLI::App& command, const std::string& name, std::int64_t& picoseconds,
              const std::string& help) {
    command
        .add_option_function<std::string>(
            name,
            [name, &picoseconds](const std::string& text) {
                const auto time = fabric::yaml::parse_duration(text);
                if (!time) {
                    throw CLI::ValidationError(
                        name, fmt::format("{}: expected a time with a unit, as 5ms ({})", text,
                                          time.error()));
                }
                picoseconds = time->count();
            },
            help)
        ->type_name("TIME");
}

constexpr const char* kGraphEndings = ".dot, .gv, .svg, .png, .pdf";

}  // namespace

VizCommands::VizCommands(CLI::App& app)
    : command_(app.add_subcommand("viz", "Pictures of the model, and of what a trace tells")) {
    command_->require_subcommand(1);
    add_state_diagrams();
    add_views();
}

CLI::App* VizCommands::add(const char* name, const char* help, const char* endings) {
    CLI::App* const command = command_->add_subcommand(name, help);
    add_output(*command, output_, "its ending says which format")->check(ends_with_one_of(endings));
    return command;
}

void VizCommands::add_state_diagrams() {
    qp_ = add("qp", "Life of a queue pair (.dot, .svg, .png)", kGraphEndings);
    qp_->add_option("--service", service_, "its transport service")
        ->check(CLI::IsMember(service_names()));
    qp_->add_option("--personality", personality_, "the device whose moves to show")
        ->check(CLI::IsMember(personality_names()));
    port_ = add("port", "Life of a port", kGraphEndings);
    cq_ = add("cq", "Life of a completion queue", kGraphEndings);
    srq_ = add("srq", "Life of a shared receive queue", kGraphEndings);
    wq_ = add("wq", "Life of a receive work queue", kGraphEndings);
    for (CLI::App* each : {qp_, port_, cq_, srq_, wq_}) {
        each->add_option("--trace", traces_, "shows which moves these traces made")
            ->type_name("FILE");
    }
    requester_ = add("requester", "States of a queue pair's requester", kGraphEndings);
    responder_ = add("responder", "States of a queue pair's responder", kGraphEndings);
    cm_ = add("cm", "States of a connection in the communication manager", kGraphEndings);
    cm_->add_option("--side", side_, "of the connection, or of a service ID resolution")
        ->check(CLI::IsMember(side_names()));
    lap_ = add("lap", "Loading of a connection's alternate path", kGraphEndings);
    rdma_cm_ = add("rdma_cm", "States of an rdma_cm id", kGraphEndings);
}

CLI::App* VizCommands::add_view(const char* name, const char* help, const char* endings) {
    CLI::App* const command = add(name, help, endings);
    command->add_option("trace", trace_, "what SIMVERBS_TRACE or --trace wrote")
        ->type_name("FILE")
        ->required();
    return command;
}

void VizCommands::add_views() {
    ladder_ = add_view("ladder", "Packets between queue pairs (.svg)", ".svg");
    ladder_
        ->add_option("--qp", qps_,
                     "a life line: HOST:NUMBER of a queue pair, or HOST for all that it has; again "
                     "for more")
        ->type_name("QP")
        ->allow_extra_args(false)
        ->default_str("the first that fit");
    ladder_->add_option("--rows", rows_, "how many to draw at most");
    add_time(*ladder_, "--from", from_, "leaves out what was before, 1.5us");
    add_time(*ladder_, "--to", until_, "leaves out what came after");
    ladder_->add_flag("--packets", every_packet_, "an arrow a packet, not a message");
    timeline_ = add_view("timeline", "For Perfetto and chrome://tracing (.json)", ".json");
    topology_ =
        add_view("topology", "Links, and what went over them (.dot, .svg, .png)", kGraphEndings);
    topology_
        ->add_option("--flow", qps_,
                     "whose way to show: HOST:NUMBER of a queue pair, or HOST for all that it has")
        ->type_name("QP")
        ->allow_extra_args(false);
    topology_->add_flag("--all", all_nodes_,
                        "every node of a large fabric, however wide the picture becomes");
    coverage_ = add("coverage", "What of the model traces have reached (.txt, .json, .html, .md)",
                    ".txt, .json, .html, .md");
    coverage_->add_option("traces", traces_, "traces, and folders of them (SIMVERBS_COVERAGE)")
        ->type_name("FILE|DIR")
        ->required();
    coverage_->add_flag("--json", as_json_, "for programs");
    coverage_->add_option("--title", title_, "of a page or a table")->type_name("WORDS");
    coverage_->add_option("--badge", badge_, "write a badge (.svg), and say what it says")
        ->check(ends_with_one_of(".svg"))
        ->type_name("FILE");
    coverage_
        ->add_option("--require", required_,
                     "fail unless all groups with these words in their names are reached whole")
        ->type_name("WORDS")
        ->allow_extra_args(false);
    report_ = add_view("report", "All of it as one page (.html)", ".html");
}

int VizCommands::run() {
    if (*coverage_) {
        return write_coverage();
    }
    if (*topology_) {
        return draw_topology();
    }
    if (*ladder_) {
        return draw_ladder();
    }
    if (*report_) {
        return write_report();
    }
    if (!*timeline_) {
        return draw_machine();
    }
    const fabric::Outcome<viz::Trace> trace = read_trace(trace_);
    return trace ? write_out(output_, viz::timeline(*trace, viz::read_run(*trace)))
                 : complain(trace.error());
}

int VizCommands::draw_ladder() const {
    const fabric::Outcome<viz::Trace> trace = read_trace(trace_);
    if (!trace) {
        return complain(trace.error());
    }
    const viz::Run run = viz::read_run(*trace);
    fabric::Outcome<std::vector<viz::QpName>> qps = find_qps(run, qps_);
    if (!qps) {
        return complain(qps.error());
    }
    const viz::LadderOptions options{.qps = std::move(*qps),
                                     .from = from_,
                                     .until = until_,
                                     .rows = rows_,
                                     .folds = !every_packet_};
    return write_out(output_, viz::ladder(*trace, run, options));
}

int VizCommands::draw_topology() const {
    const fabric::Outcome<viz::Trace> trace = read_trace(trace_);
    if (!trace) {
        return complain(trace.error());
    }
    const viz::Run run = viz::read_run(*trace);
    const fabric::Outcome<std::vector<viz::QpName>> flow = find_qps(run, qps_);
    if (!flow) {
        return complain(flow.error());
    }
    const auto sends = [&run](const viz::QpName& qp) {
        return std::ranges::any_of(
            run.packets, [&qp](const viz::RunPacket& packet) { return packet.from == qp; });
    };
    if (!flow->empty() && std::ranges::none_of(*flow, sends)) {
        return complain(
            fmt::format("{} has sent no packet in this trace", run.label(flow->front())));
    }
    return write_graph(
        output_, viz::topology_picture(
                     run, *flow, all_nodes_ ? viz::DrawnNodes::kAll : viz::DrawnNodes::kThatFit));
}

int VizCommands::write_coverage() const {
    viz::Coverage coverage;
    const fabric::Outcome<std::vector<std::string>> files = files_of(traces_);
    if (!files) {
        return complain(files.error());
    }
    for (const std::string& path : *files) {
        const fabric::Outcome<viz::Trace> trace = read_trace(path);
        if (!trace) {
            return complain(trace.error());
        }
        coverage.add(*trace);
    }
    const std::vector<viz::CoverageGroup> groups = coverage.groups();
    const std::filesystem::path output(output_);
    const std::string text = as_json_ || output.extension() == ".json" ? coverage.json()
                             : output.extension() == ".html" ? viz::coverage_page(groups, title_)
                             : output.extension() == ".md"   ? viz::coverage_table(groups, title_)
                                                             : coverage.text();
    int status = kPassed;
    if (badge_.empty() || !output_.empty() || as_json_) {
        status = write_out(output_, text);
    }
    if (!badge_.empty() && status == kPassed) {
        status = write_out(badge_, viz::coverage_badge(groups));
        fmt::print(stderr, "{}\n", viz::coverage_line(groups));
    }
    return std::max(status, judge_coverage(groups));
}

// Prints what is required and was not reached.
int VizCommands::judge_coverage(const std::vector<viz::CoverageGroup>& groups) const {
    int status = kPassed;
    for (const std::string& wanted : required_) {
        bool found = false;
        for (const viz::CoverageGroup& group : groups) {
            if (group.name.find(wanted) == std::string::npos) {
                continue;
            }
            found = true;
            for (const viz::Covered& item : group.items) {
                if (item.count == 0) {
                    status = cli::complain(
                        fmt::format("not reached: {}: {}", group.name, item.name), kFailed);
                }
            }
        }
        if (!found) {
            std::string names;
            for (const viz::CoverageGroup& group : groups) {
                names += fmt::format("{}'{}'", names.empty() ? "" : ", ", group.name);
            }
            status = complain(
                fmt::format("--require '{}' is in no group; these are: {}", wanted, names));
        }
    }
    return status;
}

int VizCommands::write_report() const {
    const fabric::Outcome<viz::Trace> trace = read_trace(trace_);
    return trace ? write_out(output_, viz::report(*trace, trace_)) : complain(trace.error());
}

int VizCommands::draw_machine() const {
    viz::StateMachine machine =
        *qp_          ? viz::qp_machine(service_named(service_), *find_personality(personality_))
        : *port_      ? viz::port_machine()
        : *cq_        ? viz::cq_machine()
        : *srq_       ? viz::srq_machine()
        : *wq_        ? viz::wq_machine()
        : *requester_ ? viz::requester_machine()
        : *cm_        ? viz::cm_machine(side_named(side_))
        : *lap_       ? viz::lap_machine()
        : *rdma_cm_   ? viz::rdma_cm_machine()
                      : viz::responder_machine();
    for (const std::string& path : traces_) {
        const fabric::Outcome<viz::Trace> trace = read_trace(path);
        if (!trace) {
            return complain(trace.error());
        }
        viz::count_moves(machine, *trace);
    }
    if (machine.unlisted > 0) {
        return complain(fmt::format("{} moves of the trace are in no table", machine.unlisted));
    }
    return write_graph(output_, viz::state_diagram(machine));
}

}  // namespace simverbs::cli

#include "tutorials/lab/machine.hpp"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "fabric/core/temporary_folder.hpp"

#include "tutorials/lab/ending.hpp"
#include "tutorials/lab/exercise.hpp"

namespace simverbs::lab {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kKib = 1024;
constexpr std::uintmax_t kLeastSpace = 4 * kKib * kKib;  // for a compiler, a program and a trace

}  // namespace

std::string first_error(Language language, const std::string& complaints) {
    std::istringstream lines(complaints);
    std::string place;
    std::string last;
    for (std::string line; std::getline(lines, line);) {
        const bool is_error = line.find(" error: ") != std::string::npos ||
                              line.find("undefined reference") != std::string::npos;
        if (language == Language::kC && is_error) {
            const std::size_t folder = line.rfind('/', line.find(':'));
            return folder == std::string::npos ? line : line.substr(folder + 1);
        }
        const std::size_t number = line.rfind(", line ");
        place = number == std::string::npos ? place : line.substr(number + 2) + ", ";
        last = line.empty() ? last : line;
    }
    return language == Language::kPython ? place + last : last;
}

fabric::Outcome<void> require_space() {
    std::error_code failure;
    const fs::path place = fabric::place_of_temporary_files();
    const fs::space_info space = fs::space(place, failure);
    if (failure || space.available >= kLeastSpace) {
        return {};
    }
    return fabric::Failure(
        fmt::format("{} KiB are left in {}, and a check needs {} KiB; TMPDIR names another folder",
                    space.available / kKib, place.string(), kLeastSpace / kKib));
}

std::string why_not_started(const std::string& program, const Ending& ending) {
    return fmt::format("{} cannot be started: {}", program, std::strerror(ending.number));
}

fabric::Outcome<void> require_compiler(const Toolbox& toolbox, const Rubric& rubric,
                                       const std::string& folder) {
    const std::string source = folder + "/nothing.c";
    const std::string_view headers = rubric.uses_rdma_cm
                                         ? "#include <rdma/rdma_cma.h>\n#include \"lab.h\"\n"
                                         : "#include \"lab.h\"\n";
    if (!write_file(source, fmt::format("{}int main(void) {{ return 0; }}\n", headers))) {
        return fabric::Failure(source + " cannot be written");
    }
    const std::string program = folder + "/nothing";
    const std::vector<std::string> words = compiler_words(toolbox, rubric, source, program);
    const Finished finished = run({.words = words});
    if (finished.ending.is_good() && fs::exists(program)) {
        return {};
    }
    if (finished.ending.kind == Ending::Kind::kNotStarted) {
        return fabric::Failure(why_not_started("the C compiler " + words.front(), finished.ending) +
                               "; install gcc, or name one by CC");
    }
    const std::string error = first_error(Language::kC, finished.errors + finished.output);
    return fabric::Failure(
        fmt::format("the C compiler {} cannot compile a program that does nothing: {}; it needs "
                    "libibverbs-dev{} and space for temporary files",
                    words.front(), error.empty() ? "it says no reason" : error,
                    rubric.uses_rdma_cm ? ", librdmacm-dev" : ""));
}

fabric::Outcome<void> require_pyverbs(const Environment& environment) {
    const Finished finished =
        run({.words = {kPython, "-c", "import pyverbs"}, .environment = environment});
    if (finished.ending.is_good()) {
        return {};
    }
    return fabric::Failure(fmt::format("{} has no pyverbs; install python3-pyverbs", kPython));
}

}  // namespace simverbs::lab

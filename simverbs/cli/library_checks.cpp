#include "simverbs/cli/library_checks.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simverbs/cli/launch.hpp"
#include "simverbs/model/settings.hpp"

namespace simverbs::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVerbs = "libibverbs.so.1";
constexpr std::string_view kReinstall = "install all parts of one build to one prefix";

std::string path_of(const fs::path& file) {
    std::error_code failure;
    const fs::path resolved = fs::canonical(file, failure);
    return failure ? "" : resolved.string();
}

// The file that holds a function of this process.
std::string file_of(void* function) {
    Dl_info about{};
    return dladdr(function, &about) != 0 && about.dli_fname != nullptr ? path_of(about.dli_fname)
                                                                       : "";
}

// Calls visit(element) for each element of a list that is not empty, until it returns true.
template <class F>
void for_each_element(std::string_view list, std::string_view separators, F&& visit) {
    while (!list.empty()) {
        const std::size_t end = std::min(list.find_first_of(separators), list.size());
        if (end != 0 && visit(std::string(list.substr(0, end)))) {
            return;
        }
        list.remove_prefix(std::min(end + 1, list.size()));
    }
}

std::string_view variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string_view() : value;
}

// The answer of the loader, and how many devices a program finds.
struct Loaded {
    std::string problem;
    int devices = 0;
};

// Runs in a child, which ends by this.
[[noreturn]] void load_and_count(int told) {
    for (const SettingRow& row : kSettings) {
        unsetenv(row.variable.data());
    }
    const std::string library = fmt::format("{}/{}", library_folder(), kVerbs);
    void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    using List = void** (*)(int*);
    const auto list =
        handle == nullptr ? nullptr : reinterpret_cast<List>(dlsym(handle, "ibv_get_device_list"));
    if (list == nullptr) {
        const std::string why = dlerror();
        [[maybe_unused]] const ssize_t written = write(told, why.data(), why.size());
        _exit(0);
    }
    int count = 0;
    list(&count);
    _exit(count);
}

Loaded load() {
    std::array<int, 2> told{};
    if (pipe2(told.data(), O_CLOEXEC) != 0) {
        return {std::strerror(errno)};
    }
    const pid_t child = fork();
    if (child == 0) {
        load_and_count(told[1]);
    }
    close(told[1]);
    Loaded loaded;
    std::array<char, 1024> said{};
    const ssize_t length = child > 0 ? read(told[0], said.data(), said.size()) : 0;
    close(told[0]);
    loaded.problem.assign(said.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        loaded.problem = std::strerror(errno);
    } else if (WIFSIGNALED(status)) {
        loaded.problem = fmt::format("a program was killed by signal {} ({})", WTERMSIG(status),
                                     strsignal(WTERMSIG(status)));
    } else {
        loaded.devices = WEXITSTATUS(status);
    }
    return loaded;
}

}  // namespace

Finding check_parts() {
    const std::string folder = library_folder();
    if (folder.empty()) {
        return {"libraries", Weight::kProblem, std::string(kNoLibrary),
                "no program finds a simulated device", std::string(kReinstall)};
    }
    const std::string used = file_of(dlsym(RTLD_DEFAULT, "simverbs_restart"));
    std::string beside = path_of(fs::path(folder) / "libsimverbs.so.0");  // as built
    if (beside.empty()) {
        beside = path_of(fs::path(folder) / "../libsimverbs.so.0");
    }
    if (used != beside || !used.ends_with("." SIMVERBS_VERSION)) {
        return {"libraries", Weight::kProblem,
                fmt::format("simverbs {} runs on {}, and {} is beside it", SIMVERBS_VERSION, used,
                            beside.empty() ? "none" : beside),
                "the command and programs may not understand each other",
                "take the other one out of LD_LIBRARY_PATH, or " + std::string(kReinstall)};
    }
    for (const std::string_view name : {"libsimverbs-devices.so", "libsimverbs-scenario.so"}) {
        if (path_of(fs::path(folder) / name).empty() &&
            path_of(fs::path(folder) / "simverbs" / name).empty()) {
            return {"libraries", Weight::kProblem, fmt::format("{} is not in {}", name, folder),
                    "programs that look into /sys and /dev, or run in a scenario, fail",
                    std::string(kReinstall)};
        }
    }
    return {"libraries", Weight::kFine, fmt::format("version {} in {}", SIMVERBS_VERSION, folder)};
}

Finding check_devices_of_a_program() {
    const Loaded loaded = load();
    if (loaded.problem.empty() && loaded.devices > 0) {
        return {"devices", Weight::kFine,
                fmt::format("a program finds {} in a world of its own", loaded.devices)};
    }
    return {"devices", Weight::kProblem,
            loaded.problem.empty() ? "a program finds none in a world of its own" : loaded.problem,
            "no program runs on simverbs", "install what is missing, and see ldd on the library"};
}

Finding check_preloaded_libraries() {
    const std::string ours = path_of(fs::path(library_folder()) / kVerbs);
    Finding finding{"LD_PRELOAD", Weight::kFine, std::string(variable("LD_PRELOAD"))};
    for_each_element(variable("LD_PRELOAD"), ": ", [&](const std::string& library) {
        const bool is_path = library.find('/') != std::string::npos;
        if (fs::path(library).filename().string().starts_with("libibverbs.so") &&
            path_of(library) != ours) {
            finding = {"LD_PRELOAD", Weight::kProblem, library,
                       "the loader takes this verbs library before that of simverbs",
                       "unset LD_PRELOAD"};
            return true;
        }
        if (is_path && path_of(library).empty()) {
            finding = {"LD_PRELOAD", Weight::kNote, library + ": no such file",
                       "the loader complains of it in each program", "unset LD_PRELOAD"};
        }
        return false;
    });
    if (finding.found.empty()) {
        finding.found = "not set";
    }
    return finding;
}

Finding check_library_path() {
    const std::string folder = library_folder();
    const std::string ours = path_of(fs::path(folder) / kVerbs);
    std::string found;
    for_each_element(variable("LD_LIBRARY_PATH"), ":;", [&](const std::string& each) {
        found = path_of(fs::path(each) / kVerbs);
        return !found.empty();
    });
    if (found.empty()) {
        const fs::path system =
            fs::path(file_of(reinterpret_cast<void*>(&std::getenv))).parent_path();
        const std::string real = path_of(system / kVerbs);
        return {"libibverbs.so.1", Weight::kFine,
                real.empty() ? "the machine has none; simverbs exec, run and on start programs"
                             : fmt::format("{}; simverbs exec, run and on put that of simverbs "
                                           "before it",
                                           real)};
    }
    if (found == ours) {
        return {"libibverbs.so.1", Weight::kFine,
                "LD_LIBRARY_PATH has that of simverbs first: every program runs on it"};
    }
    return {"libibverbs.so.1", Weight::kNote, fmt::format("LD_LIBRARY_PATH has {} first", found),
            "a program that is started as it is finds no simulated device",
            fmt::format("start it by simverbs exec, run or on, or put {} first", folder)};
}

}  // namespace simverbs::cli

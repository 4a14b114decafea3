#include "scenarios/engine/batch.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scenarios/engine/verdict_json.hpp"

namespace scenarios {

namespace {

struct Child {
    std::size_t file;
    pid_t process;
    int results;  // its verdict, as JSON, ends with its life
    std::string text;
};

Verdict run_here(const std::string& file, const BatchOptions& options) {
    std::string errors;
    const auto scenario = load(file, options.settings, errors);
    if (!scenario) {
        Verdict verdict;
        verdict.file = file;
        verdict.error = errors;
        return verdict;
    }
    return options.run(*scenario, {options.trace_file});
}

void write_all(int descriptor, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t written = write(descriptor, text.data() + done, text.size() - done);
        if (written <= 0 && errno != EINTR) {
            return;
        }
        done += static_cast<std::size_t>(std::max<ssize_t>(written, 0));
    }
}

bool start(std::size_t index, const std::string& file, const BatchOptions& options,
           std::vector<Child>& children) {
    int ends[2];
    if (pipe(ends) != 0) {
        return false;
    }
    const pid_t process = fork();
    if (process == 0) {
        close(ends[0]);
        write_all(ends[1], to_json(run_here(file, options)).dump());
        _exit(0);
    }
    close(ends[1]);
    if (process < 0) {
        close(ends[0]);
        return false;
    }
    children.push_back({index, process, ends[0], {}});
    return true;
}

Verdict finish(const Child& child, const std::string& file) {
    close(child.results);
    int status = 0;
    while (waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
    }
    const auto parsed = nlohmann::json::parse(child.text, nullptr, false);
    if (status == 0 && !parsed.is_discarded()) {
        return from_json(parsed);
    }
    Verdict verdict;
    verdict.file = file;
    verdict.error = WIFSIGNALED(status)
                        ? fmt::format("its process died of {}", strsignal(WTERMSIG(status)))
                        : fmt::format("its process ended with {}", WEXITSTATUS(status));
    return verdict;
}

// Reads what has come; those at their end are taken out.
void collect(std::vector<Child>& children, const std::vector<std::string>& files,
             std::vector<Verdict>& verdicts, const std::function<void(const Verdict&)>& done) {
    std::vector<pollfd> wanted;
    for (const Child& child : children) {
        wanted.push_back({child.results, POLLIN, 0});
    }
    if (::poll(wanted.data(), wanted.size(), -1) < 0) {
        return;
    }
    for (std::size_t i = children.size(); i-- > 0;) {
        if (wanted[i].revents == 0) {
            continue;
        }
        char block[4096];
        const ssize_t got = read(children[i].results, block, sizeof block);
        if (got > 0) {
            children[i].text.append(block, static_cast<std::size_t>(got));
            continue;
        }
        const std::size_t file = children[i].file;
        verdicts[file] = finish(children[i], files[file]);
        done(verdicts[file]);
        children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

}  // namespace

std::vector<std::string> find_files(const std::vector<std::string>& paths, std::string& error) {
    namespace fs = std::filesystem;
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        if (!fs::is_directory(path)) {
            files.push_back(path);
            continue;
        }
        std::vector<std::string> found;
        for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
            if (entry.path().extension() == ".yaml") {
                found.push_back(entry.path().string());
            }
        }
        std::ranges::sort(found);
        if (found.empty()) {
            error = path + ": a folder without .yaml files";
        }
        files.insert(files.end(), found.begin(), found.end());
    }
    return files;
}

std::vector<Verdict> run_batch(const std::vector<std::string>& files, const BatchOptions& options,
                               const std::function<void(const Verdict&)>& done) {
    std::vector<Verdict> verdicts(files.size());
    std::vector<Child> children;
    std::size_t next = 0;
    while (next < files.size() || !children.empty()) {
        while (next < files.size() && children.size() < std::max(options.jobs, 1U)) {
            if (!start(next, files[next], options, children)) {
                verdicts[next].file = files[next];
                verdicts[next].error = fmt::format("no process for it: {}", std::strerror(errno));
                done(verdicts[next]);
            }
            ++next;
        }
        if (!children.empty()) {
            collect(children, files, verdicts, done);
        }
    }
    return verdicts;
}

std::string report(const Verdict& verdict, const std::vector<std::string>& settings) {
    std::string text = fmt::format("{} {}", verdict.passed() ? "PASS" : "FAIL", verdict.file);
    if (!verdict.error.empty()) {
        return text + "\n" + verdict.error + "\n";
    }
    text += fmt::format("  ({} of virtual time, digest {:016x}{})\n", time_text(verdict.time_ps),
                        verdict.digest, verdict.deterministic ? "" : "; " + verdict.marks);
    for (const Failure& failure : verdict.failures) {
        text += fmt::format("{}:{}:{}: at {}\n    expected: {}\n    happened: {}\n", verdict.file,
                            failure.position.line, failure.position.column,
                            time_text(failure.time_ps), failure.expected, failure.happened);
    }
    if (!verdict.passed()) {
        text += "    why the first thing failed that did:\n" + verdict.explanation;
        text += "    replay: " +
                (verdict.replay.empty() ? "simverbs scenario " + verdict.file : verdict.replay);
        for (const std::string& setting : settings) {
            text += fmt::format(" --set '{}'", setting);
        }
        text += "\n";
    }
    return text;
}

std::string json(const std::vector<Verdict>& verdicts) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Verdict& verdict : verdicts) {
        all.push_back(to_json(verdict));
    }
    return all.dump(2) + "\n";
}

}  // namespace scenarios

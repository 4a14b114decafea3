#include "viz/graphviz.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace simverbs::viz {
namespace {

bool write_all(int to, const std::string& text) {
    std::size_t written = 0;
    while (written < text.size()) {
        const ssize_t count = write(to, text.data() + written, text.size() - written);
        if (count < 0) {
            return false;
        }
        written += static_cast<std::size_t>(count);
    }
    return lseek(to, 0, SEEK_SET) == 0;
}

std::string read_all(int from) {
    std::string text;
    std::array<char, 1 << 16> buffer;
    for (ssize_t count = 0; (count = read(from, buffer.data(), buffer.size())) > 0;) {
        text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
}

// Returns the errno of starting it.
int start_dot(const std::string& format, int input, int output, pid_t& child) {
    std::string type = "-T" + format;
    std::string name = "dot";
    const std::array<char*, 3> words{name.data(), type.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    const int error =
        posix_spawnp(&child, "dot", &actions, nullptr, const_cast<char**>(words.data()), environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

}  // namespace

fabric::Outcome<std::string> draw(const std::string& dot, const std::string& format) {
    const int input = memfd_create("dot", MFD_CLOEXEC);
    std::array<int, 2> output{-1, -1};
    if (input < 0 || !write_all(input, dot) || pipe2(output.data(), O_CLOEXEC) != 0) {
        const int failure = errno;
        close(input);
        return fabric::Failure(std::strerror(failure));
    }
    pid_t child = -1;
    const int failure = start_dot(format, input, output[1], child);
    close(input);
    close(output[1]);
    std::string picture = failure == 0 ? read_all(output[0]) : std::string();
    close(output[0]);
    if (failure != 0) {
        return fabric::Failure(fmt::format("dot (package graphviz): {}", std::strerror(failure)));
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return fabric::Failure("dot (package graphviz) failed");
    }
    return picture;
}

}  // namespace simverbs::viz

#include "simverbs/cli/launch.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "simverbs/cli/exit_status.hpp"
#include "simverbs/model/settings.hpp"
#include "simverbs/protocol/device_protocol.hpp"
#include "simverbs/protocol/served_protocol.hpp"
#include "simverbs/world/environment.hpp"

namespace simverbs::cli {
namespace {

// For programs that look for devices in /sys and /dev by themselves. Ours stands first, so that a
// library that the user preloads is asked through it.
void show_devices(const Placement& placement) {
    const std::string library = library_folder() + "/libsimverbs-devices.so";
    if (placement.devices.empty() || access(library.c_str(), R_OK) != 0) {
        return;
    }
    setenv(row_of(Setting::kDevices).variable.data(), placement.devices.c_str(), 1);
    std::string preload = library;
    if (const char* earlier = std::getenv("LD_PRELOAD");
        earlier != nullptr && std::strstr(earlier, library.c_str()) == nullptr) {
        preload += ":";
        preload += earlier;
    }
    setenv("LD_PRELOAD", preload.c_str(), 1);
    // Else programs with GCC's address sanitizer refuse whatever is loaded before its run time.
    std::string sanitizer = "verify_asan_link_order=0";
    if (const char* earlier = std::getenv("ASAN_OPTIONS"); earlier != nullptr) {
        sanitizer += ":";
        sanitizer += earlier;
    }
    setenv("ASAN_OPTIONS", sanitizer.c_str(), 1);
}

void put_library_first() {
    std::string path = library_folder();
    if (const char* earlier = std::getenv("LD_LIBRARY_PATH");
        earlier != nullptr && *earlier != '\0') {
        path += ":";
        path += earlier;
    }
    setenv("LD_LIBRARY_PATH", path.c_str(), 1);
}

}  // namespace

std::string folder_of_this_program() {
    std::array<char, PATH_MAX> path{};
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
    const std::string whole(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    return whole.substr(0, whole.rfind('/'));
}

HostPlace ask_for_host(const std::string& socket, const std::string& host) {
    DeviceRequest request;
    request.head.kind = RequestKind::kDeviceTree;
    // A name that is too long is nobody's, as is the empty one.
    std::memcpy(request.host, host.c_str(), host.size() < sizeof request.host ? host.size() : 0);
    const auto connection = connect_to_world(socket);
    if (!connection) {
        return {true, {}, {}, connection.error()};
    }
    PathReply reply;
    // A server that hangs up leaves its reason, if it has one, to be read.
    static_cast<void>(send_message(*connection, std::as_bytes(std::span(&request, 1)), {}));
    std::string problem = receive_first_reply(
        *connection, std::as_writable_bytes(std::span(&reply, 1)), {}, socket, Patience::kCommand);
    close(*connection);
    if (!problem.empty()) {
        return {true, {}, {}, std::move(problem)};
    }
    if (reply.error == ENOENT) {
        return {false, {}, reply.path, {}};
    }
    return {true, reply.error == 0 ? reply.path : std::string(), {}, {}};
}

std::string library_folder() {
    const std::string own = folder_of_this_program();
    for (const char* candidate : {"/../lib", SIMVERBS_INSTALLED_LIBRARIES}) {
        const std::string folder = own + candidate;
        const std::string library = folder + "/libibverbs.so.1";
        if (access(library.c_str(), R_OK) == 0) {
            std::array<char, PATH_MAX> resolved{};
            return realpath(folder.c_str(), resolved.data()) != nullptr ? resolved.data() : folder;
        }
    }
    return {};
}

void place_environment(const Placement& placement) {
    setenv(row_of(Setting::kServer).variable.data(), placement.socket.c_str(), 1);
    setenv(row_of(Setting::kHost).variable.data(), placement.host.c_str(), 1);
    put_library_first();
    show_devices(placement);
}

void embed_environment() {
    // A host of a served world is none of the program's own world.
    if (!environment_value(Setting::kServer).empty()) {
        unsetenv(row_of(Setting::kHost).variable.data());
    }
    unsetenv(row_of(Setting::kServer).variable.data());
    unsetenv(row_of(Setting::kDevices).variable.data());
    put_library_first();
}

int run_program(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& word : command) {
        arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    const int failure = errno;
    return complain(fmt::format("{}: {}", command[0], std::strerror(failure)),
                    failure == ENOENT ? kNotFound : kNotExecuted);
}

}  // namespace simverbs::cli

// The files that a served world writes what happens in it to.
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "fabric/core/one_file.hpp"

#include "simverbs/server/server.hpp"

namespace simverbs {
namespace {

// Returns false for a FIFO without a reader: to open it would wait for one.
bool has_reader(const std::string& path) {
    if (!std::filesystem::is_fifo(path)) {
        return true;
    }
    const int file = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0) {
        close(file);
    }
    return file >= 0;
}

}  // namespace

std::string Server::open_outlets() {
    if (fabric::is_one_file(options_.trace_file, options_.capture_file)) {
        return fmt::format("--trace and --pcap name one file, '{}'", options_.trace_file);
    }
    for (const std::string& file : {options_.capture_file, options_.trace_file}) {
        if (!file.empty() && !has_reader(file)) {
            return fmt::format("'{}' is a FIFO that nobody reads: start its reader first", file);
        }
    }
    if (!options_.capture_file.empty()) {
        if (const int error = traces_.open_capture(options_.capture_file); error != 0) {
            return fmt::format("capture file '{}' cannot be written: {}", options_.capture_file,
                               std::strerror(error));
        }
    }
    if (!options_.trace_file.empty()) {
        if (const int error = traces_.open_file(options_.trace_file); error != 0) {
            return fmt::format("trace file '{}' cannot be written: {}", options_.trace_file,
                               std::strerror(error));
        }
    }
    if (!options_.coverage_folder.empty()) {
        if (const int error = traces_.open_coverage(options_.coverage_folder); error != 0) {
            return fmt::format("coverage folder '{}': no file can be written there: {}",
                               options_.coverage_folder, std::strerror(error));
        }
    }
    return "";
}

}  // namespace simverbs

// The symbols that provider libraries (libmlx5, libefa, ...) get from the private nodes. Programs
// hard-link them and bind at start, so every name must be there; no provider ever drives a
// simulated device, so none does anything: registrations are ignored, commands refused
// (symbols.list), and only these two answer.
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "simverbs/abi/provider_abi.hpp"

// Counts attributes that would go into an ioctl; the provider sizes a buffer with it and then calls
// execute_ioctl(), which refuses.
unsigned int simverbs_abi_ioctl_final_num_attrs(unsigned int num_attrs, void* /*link*/) {
    return num_attrs;
}

// A provider speaks when asked about a device that is not its own. Heard only with VERBS_LOG_LEVEL
// at least the message's level; goes to VERBS_LOG_FILE, or stderr.
void simverbs_abi_verbs_log(verbs_context* /*context*/, std::uint32_t level, const char* format,
                            ...) {
    // NOLINTBEGIN(concurrency-mt-unsafe): nobody in this library changes the environment
    const char* wanted = std::getenv("VERBS_LOG_LEVEL");
    const char* path = std::getenv("VERBS_LOG_FILE");
    // NOLINTEND(concurrency-mt-unsafe)
    if (wanted == nullptr || level == 0 || std::strtoul(wanted, nullptr, 10) < level) {
        return;
    }
    std::array<char, 1024> message{};
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(message.data(), message.size(), format, arguments);
    va_end(arguments);

    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
        path != nullptr ? std::fopen(path, "ae") : nullptr, &std::fclose);
    std::fputs(message.data(), file ? file.get() : stderr);
}

#include "fabric/topology/text_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fmt/core.h>

namespace fabric {

Outcome<std::string> read_text_file(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                               std::fclose);
    std::string text;
    std::size_t got = 0;
    if (file != nullptr) {
        do {
            const std::size_t size = text.size();
            constexpr std::size_t kChunk = 1U << 16;
            text.resize(size + kChunk);
            got = std::fread(text.data() + size, 1, kChunk, file.get());
            text.resize(size + got);
        } while (got > 0 && text.size() <= kMaxTextFileBytes);
    }
    if (file == nullptr || std::ferror(file.get()) != 0) {
        return Failure(fmt::format("{}: {}", path, std::strerror(errno)));
    }
    if (text.size() > kMaxTextFileBytes) {
        return Failure(fmt::format("{}: longer than {} bytes", path, kMaxTextFileBytes));
    }
    return text;
}

}  // namespace fabric

#include "simverbs/cli/elf_file.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

namespace simverbs::cli {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
constexpr Elf64_Half kMachine = EM_NONE;  // of no program
#endif

constexpr std::size_t kMostHeaders = 256;
constexpr std::size_t kMostDynamic = 4096;
constexpr std::size_t kMostText = 4096;  // of a path list

class File {
  public:
    explicit File(const std::string& path)
        : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
    ~File() {
        if (descriptor_ >= 0) {
            close(descriptor_);
        }
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    // Returns true if all of `objects` could be read.
    template <class T>
    [[nodiscard]] bool read(std::uint64_t offset, std::span<T> objects) const {
        const ssize_t got =
            pread(descriptor_, objects.data(), objects.size_bytes(), static_cast<off_t>(offset));
        return got == static_cast<ssize_t>(objects.size_bytes());
    }
    // Returns the text from there to its zero byte; "" where there is none.
    [[nodiscard]] std::string text(std::uint64_t offset) const {
        std::array<char, kMostText> bytes{};
        const ssize_t got =
            pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        const std::string_view read(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
        const std::size_t end = read.find('\0');
        return std::string(read.substr(0, end == std::string_view::npos ? 0 : end));
    }

  private:
    int descriptor_;
};

using Headers = std::vector<Elf64_Phdr>;

const Elf64_Phdr* find(const Headers& headers, Elf64_Word type) {
    const auto found = std::find_if(headers.begin(), headers.end(),
                                    [type](const auto& each) { return each.p_type == type; });
    return found == headers.end() ? nullptr : &*found;
}

// The place in the file of what the loader puts at that address.
std::optional<std::uint64_t> offset_of(const Headers& headers, Elf64_Addr address) {
    for (const Elf64_Phdr& each : headers) {
        if (each.p_type == PT_LOAD && address >= each.p_vaddr &&
            address - each.p_vaddr < each.p_filesz) {
            return address - each.p_vaddr + each.p_offset;
        }
    }
    return std::nullopt;
}

void read_dynamic(const File& file, const Headers& headers, ElfFile& elf) {
    const Elf64_Phdr* const place = find(headers, PT_DYNAMIC);
    if (place == nullptr) {
        return;
    }
    std::vector<Elf64_Dyn> entries(
        std::min<std::uint64_t>(place->p_filesz / sizeof(Elf64_Dyn), kMostDynamic));
    if (!file.read(place->p_offset, std::span(entries))) {
        return;
    }
    const auto value = [&entries](Elf64_Sxword tag) -> std::optional<std::uint64_t> {
        for (const Elf64_Dyn& entry : entries) {
            if (entry.d_tag == DT_NULL) {
                break;
            }
            if (entry.d_tag == tag) {
                return entry.d_un.d_val;
            }
        }
        return std::nullopt;
    };
    const auto table = value(DT_STRTAB);
    const auto strings = table ? offset_of(headers, *table) : std::nullopt;
    const auto text = [&](Elf64_Sxword tag) {
        const auto index = value(tag);
        return strings && index ? file.text(*strings + *index) : "";
    };
    elf.name = text(DT_SONAME);
    elf.rpath = value(DT_RUNPATH) ? "" : text(DT_RPATH);
}

}  // namespace

std::optional<ElfFile> read_elf(const std::string& path) {
    const File file(path);
    ElfFile elf;
    Elf64_Ehdr header{};
    if (!file.read(0, std::span(&header, 1)) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB) {
        return std::nullopt;
    }
    if (header.e_ident[EI_CLASS] == ELFCLASS32) {
        elf.is_32_bit = true;
        return elf;
    }
    if (header.e_machine != kMachine || header.e_phentsize != sizeof(Elf64_Phdr) ||
        header.e_phnum > kMostHeaders) {
        return std::nullopt;
    }
    Headers headers(header.e_phnum);
    if (!file.read(header.e_phoff, std::span(headers))) {
        return std::nullopt;
    }
    elf.has_interpreter = find(headers, PT_INTERP) != nullptr;
    read_dynamic(file, headers, elf);
    return elf;
}

}  // namespace simverbs::cli

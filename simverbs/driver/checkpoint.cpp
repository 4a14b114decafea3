#include "simverbs/driver/checkpoint.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simverbs/driver/confined_calls.hpp"
#include "simverbs/driver/process_maps.hpp"

namespace simverbs::driver {
namespace {

namespace fs = std::filesystem;

// An entry of /proc/self/pagemap (admin-guide/mm/pagemap.rst of Linux).
class PageEntry {
  public:
    explicit PageEntry(std::uint64_t bits) : bits_(bits) {}

    // The process has a page of its own here, or shares one with its parent.
    [[nodiscard]] bool has_content() const {
        return is_swapped() || (is_present() && (bits_ >> 61U & 1U) == 0);
    }
    // It is sure that nobody has written to it since the fork.
    [[nodiscard]] bool is_common() const {
        return is_present() && !is_swapped() && (bits_ >> 56U & 1U) == 0;
    }

  private:
    [[nodiscard]] bool is_present() const { return (bits_ >> 63U & 1U) != 0; }
    [[nodiscard]] bool is_swapped() const { return (bits_ >> 62U & 1U) != 0; }

    std::uint64_t bits_;
};

std::uintptr_t rounded_up(std::uintptr_t value, std::uintptr_t unit) {
    return (value + unit - 1) / unit * unit;
}

std::byte* at(std::uintptr_t address) {
    return reinterpret_cast<std::byte*>(address);
}

std::uintptr_t program_break() {
    return reinterpret_cast<std::uintptr_t>(sbrk(0));
}

}  // namespace

void Checkpoint::forget() {
    descriptors_ = 0;
    changes_ = 0;
}

bool Checkpoint::prepare() {
    stack_t stack{};
    if (sysconf(_SC_PAGESIZE) != static_cast<long>(kPageBytes) ||
        sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0) {
        return false;
    }
    stack = {.ss_sp = signal_stack_.data(), .ss_flags = 0, .ss_size = signal_stack_.size()};
    if (sigaltstack(&stack, nullptr) != 0 || !copy_descriptors()) {
        return false;
    }
    const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0) {
        return false;
    }
    pagemap_ = fcntl(pagemap, F_DUPFD_CLOEXEC, kFirstOwnDescriptor);
    close(pagemap);
    // As many as another process needed before. Where the kernel cannot do that, each costs a
    // fault.
    madvise(copy_.data(), copies_ * kPageBytes, MADV_POPULATE_WRITE);
    // To list it may take memory, so it is listed until it takes no more.
    do {
        break_ = program_break();
        if (!list_memory()) {
            return false;
        }
    } while (program_break() != break_);
    return pagemap_ >= 0;
}

bool Checkpoint::copy_descriptors() {
    std::vector<int> numbers;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd", error)) {
        numbers.push_back(
            static_cast<int>(std::strtol(entry.path().filename().c_str(), nullptr, 10)));
    }
    std::ranges::sort(numbers);
    for (const int number : numbers) {
        const int flags = fcntl(number, F_GETFD);
        if (flags < 0) {
            continue;  // the one by which they were listed
        }
        const int copy = fcntl(number, F_DUPFD_CLOEXEC, kFirstOwnDescriptor);
        if (number >= kFirstOwnDescriptor || copy < 0 || descriptors_ == kMaxDescriptors) {
            return false;
        }
        descriptor_[descriptors_++] = {.number = number, .copy = copy, .flags = flags};
    }
    return !error;
}

Checkpoint::Taken Checkpoint::take() {
    has_gone_back_ = false;
    if (getcontext(&context_) != 0) {
        return Taken::kNot;
    }
    // From here on once more.
    if (has_gone_back_) {
        return Taken::kBefore;
    }
    return program_break() == break_ && copy_pages() ? Taken::kNow : Taken::kNot;
}

bool Checkpoint::list_memory() {
    ProcessMaps maps;
    if (!maps.is_open()) {
        return false;
    }
    memories_ = 0;
    std::size_t pages = 0;
    std::uintptr_t from = 0;
    while (const auto mapping = maps.at_or_after(from)) {
        from = mapping->to;
        if (!mapping->writable || mapping->is_shared) {
            continue;
        }
        const std::string_view name = mapping->name.data();
        if (memories_ == kMaxMappings || name.find("hugepage") != std::string_view::npos) {
            return false;
        }
        const Range range{mapping->from, mapping->to};
        memory_[memories_++] = {.range = range,
                                .first_page = pages,
                                .goes_back_whole = range.pages() <= kFewPages,
                                .can_be_mapped_anew = mapping->inode == 0 && name.empty()};
        pages += range.pages();
        if (pages > kMaxPages) {
            return false;
        }
    }
    return true;
}

template <typename Act>
bool Checkpoint::for_each_page(const Range& range, const Act& act) const {
    std::array<std::uint64_t, 2048> entries;
    for (std::size_t page = 0; page < range.pages();) {
        const std::size_t count = std::min(entries.size(), range.pages() - page);
        const auto bytes = static_cast<ssize_t>(count * sizeof entries[0]);
        const auto offset = (range.from / kPageBytes + page) * sizeof entries[0];
        if (pread(pagemap_, entries.data(), static_cast<std::size_t>(bytes),
                  static_cast<off_t>(offset)) != bytes) {
            return false;
        }
        for (std::size_t i = 0; i < count; ++i, ++page) {
            if (!act(page, PageEntry(entries[i]))) {
                return false;
            }
        }
    }
    return true;
}

bool Checkpoint::copy_pages() {
    copies_ = 0;
    return std::all_of(memory_.data(), memory_.data() + memories_,
                       [this](const Memory& memory) { return copy_pages_of(memory); });
}

bool Checkpoint::copy_pages_of(const Memory& memory) {
    const auto copy = [&](std::size_t page) {
        if (copies_ == kMaxCopies) {
            return false;
        }
        std::memcpy(copy_[copies_++].data(), at(memory.range.from + page * kPageBytes), kPageBytes);
        copy_of_[memory.first_page + page] = static_cast<std::uint16_t>(copies_);
        return true;
    };
    if (memory.goes_back_whole) {
        std::size_t page = 0;
        while (page < memory.range.pages() && copy(page)) {
            ++page;
        }
        return page == memory.range.pages();
    }
    return for_each_page(memory.range, [&](std::size_t page, PageEntry entry) {
        copy_of_[memory.first_page + page] = 0;
        return !entry.has_content() || copy(page);
    });
}

void Checkpoint::go_back() {
    const bool is_restored =
        restore_mappings() && restore_descriptors() &&
        std::all_of(memory_.data(), memory_.data() + memories_,
                    [this](const Memory& memory) { return restore_pages_of(memory); });
    if (is_restored) {
        has_gone_back_ = true;
        setcontext(&context_);
    }
}

bool Checkpoint::restore_mappings() {
    if (static_cast<std::uintptr_t>(syscall(SYS_brk, break_)) != break_) {
        return false;
    }
    for (; changes_ > 0; --changes_) {
        const Range& change = change_[changes_ - 1];
        if (call_anyway({SYS_munmap, {change.from, change.to - change.from}}) != 0) {
            return false;
        }
        for (std::size_t i = 0; i < memories_; ++i) {
            const std::uintptr_t from = std::max(change.from, memory_[i].range.from);
            const std::uintptr_t to = std::min(change.to, memory_[i].range.to);
            if (from < to && call_anyway({SYS_mmap,
                                          {from, to - from, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                                           static_cast<std::uint64_t>(-1), 0}}) < 0) {
                return false;
            }
        }
    }
    return true;
}

bool Checkpoint::restore_pages_of(const Memory& memory) const {
    if (memory.goes_back_whole) {
        const std::uint16_t first = copy_of_[memory.first_page];
        std::memcpy(at(memory.range.from), copy_[first - 1].data(),
                    memory.range.pages() * kPageBytes);
        return true;
    }
    return for_each_page(memory.range, [&](std::size_t page, PageEntry entry) {
        const std::uint16_t number = copy_of_[memory.first_page + page];
        std::byte* const content = at(memory.range.from + page * kPageBytes);
        if (number != 0) {
            if (!entry.is_common()) {
                std::memcpy(content, copy_[number - 1].data(), kPageBytes);
            }
            return true;
        }
        // It was as its file has it, or zeros, and is so again.
        return !entry.has_content() || call_anyway({SYS_madvise,
                                                    {reinterpret_cast<std::uintptr_t>(content),
                                                     kPageBytes, MADV_DONTNEED}}) == 0;
    });
}

bool Checkpoint::restore_descriptors() const {
    unsigned next = 0;
    for (std::size_t i = 0; i < descriptors_; ++i) {
        const auto& [number, copy, flags] = descriptor_[i];
        const auto place = static_cast<unsigned>(number);
        if ((next < place && close_range(next, place - 1, 0) != 0) ||
            dup3(copy, number, (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) != number) {
            return false;
        }
        next = place + 1;
    }
    return close_range(next, kFirstOwnDescriptor - 1, 0) == 0;
}

std::optional<long> Checkpoint::change_mappings(const TrappedCall& call) {
    const auto& [address, bytes, rights, flags, file, offset] = call.arguments;
    Range range{address, address + rounded_up(bytes, kPageBytes)};
    const bool maps = call.number == SYS_mmap;
    const bool is_new = maps && (flags & (MAP_FIXED | MAP_SHARED)) == 0;
    if (changes_ == kMaxChanges || bytes > PTRDIFF_MAX ||
        !(is_new || (!maps && can_be_unmapped(range)))) {
        return std::nullopt;
    }
    const long result = call_anyway(call);
    if (maps && result > 0) {
        range = {static_cast<std::uintptr_t>(result),
                 static_cast<std::uintptr_t>(result) + rounded_up(bytes, kPageBytes)};
    }
    if (result >= 0) {
        change_[changes_++] = range;
    }
    return result;
}

bool Checkpoint::can_be_unmapped(const Range& range) const {
    return std::any_of(change_.data(), change_.data() + changes_,
                       [&](const Range& change) { return change.holds(range); }) ||
           std::any_of(memory_.data(), memory_.data() + memories_, [&](const Memory& memory) {
               return memory.can_be_mapped_anew && memory.range.holds(range);
           });
}

}  // namespace simverbs::driver

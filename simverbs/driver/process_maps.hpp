// The mappings of this process, as the kernel lists them (/proc/self/maps).
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>

#include "simverbs/threads/uncancelled.hpp"

namespace simverbs::driver {

struct Mapping {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    bool readable = false;
    bool writable = false;
    bool is_shared = false;
    std::uint64_t inode = 0;      // 0: of no file
    std::array<char, 64> name{};  // its beginning; "": it has none
};

class ProcessMaps {
  public:
    // How mappings are found: by asking for one (Linux 6.11), where the kernel can be asked, or by
    // reading all of them.
    enum class Way : bool { kAsks, kReads };
    explicit ProcessMaps(Way way = Way::kAsks);

    // False where the kernel does not show them to this process.
    [[nodiscard]] bool is_open() const { return file_ != nullptr; }
    // The mapping that holds `address`, or else the next one above it. No address may be below one
    // that was asked for before.
    std::optional<Mapping> at_or_after(std::uint64_t address);

  private:
    bool look_up(std::uint64_t address, std::optional<Mapping>& mapping);
    bool read_line();

    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    Uncancelled uncancelled_;  // the file would stay open
    std::unique_ptr<std::FILE, Close> file_;
    bool can_look_up_;
    Mapping last_;  // the one that was read last
};

}  // namespace simverbs::driver

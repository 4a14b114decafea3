// Memory that the server shares with a client.
#pragma once

#include <cstddef>

namespace simverbs {

// A memfd mapped here: zeroed, its size sealed.
class SharedSegment {
  public:
    enum class Pages : bool { kWhenUsed, kAtOnce };
    // Throws std::system_error when there is no memory or no descriptor left. `name`: as the kernel
    // shows it in /proc/PID/maps. `pages`: when the kernel provides them; one by one takes longer.
    explicit SharedSegment(std::size_t bytes, const char* name = "simverbs",
                           Pages pages = Pages::kWhenUsed);
    ~SharedSegment();
    SharedSegment(const SharedSegment&) = delete;
    SharedSegment& operator=(const SharedSegment&) = delete;

    [[nodiscard]] std::byte* base() const { return base_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    // The descriptor, which stays that of the segment.
    [[nodiscard]] int descriptor() const { return descriptor_; }
    // The same, once: from then on it is the caller's to close.
    [[nodiscard]] int take_descriptor();

  private:
    std::byte* base_ = nullptr;
    std::size_t bytes_;
    int descriptor_ = -1;
};

}  // namespace simverbs

// A capture file as Wireshark reads it (draft-ietf-opsawg-pcapng): one section, an interface a
// port, packets with their direction and a comment where there is one. Times in picoseconds. It
// knows nothing of what is in the packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/core/sim_time.hpp"

namespace fabric::trace {

// LINKTYPE_ values of tcpdump.org/linktypes.html. InfiniBand is an ERF record (197, of type 21):
// Wireshark has no decoder for 247, which is bare InfiniBand.
enum class LinkType : std::uint16_t { kEthernet = 1, kInfiniband = 197 };

class PcapngFile {
  public:
    // Creates or truncates the file; ok() is false when that failed.
    explicit PcapngFile(const std::string& path);

    // Its number, from 0.
    std::uint32_t add_interface(std::string_view name, LinkType type,
                                std::uint64_t bits_per_second);

    struct Packet {
        std::uint32_t interface;
        SimTime time;
        bool inbound;
        std::span<const std::byte> bytes;
        std::uint32_t wire_bytes;  // as long as it was; `bytes` may be its beginning only
        std::string_view comment;  // "": none
    };
    void write(const Packet& packet);

    void flush();
    // Every write so far has succeeded.
    [[nodiscard]] bool ok() const { return file_.good(); }
    // The errno of the first write that failed; 0: none has. Packets after it are lost.
    [[nodiscard]] int error() const { return error_; }

  private:
    void note_error();
    void begin(std::uint32_t type);
    void end();
    void u16(std::uint16_t value);
    void u32(std::uint32_t value);
    void option(std::uint16_t code, std::span<const std::byte> value);
    void option(std::uint16_t code, std::string_view text);
    void padded(std::span<const std::byte> bytes);
    void erf_header(const Packet& packet);

    std::ofstream file_;
    int error_ = 0;
    std::string block_;  // kept for its capacity
    std::vector<LinkType> interfaces_;
};

}  // namespace fabric::trace

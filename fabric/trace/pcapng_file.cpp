#include "fabric/trace/pcapng_file.hpp"

#include <array>
#include <cerrno>
#include <cstring>

namespace fabric::trace {
namespace {

constexpr std::uint32_t kSectionHeader = 0x0A0D0D0A;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrder = 0x1A2B3C4D;

constexpr std::uint16_t kEndOfOptions = 0;
constexpr std::uint16_t kComment = 1;
constexpr std::uint16_t kUserApplication = 4;  // of a section
constexpr std::uint16_t kInterfaceName = 2;    // of an interface
constexpr std::uint16_t kInterfaceSpeed = 8;
constexpr std::uint16_t kTimeResolution = 9;
constexpr std::uint16_t kPacketFlags = 2;  // of a packet

constexpr std::uint32_t kErfBytes = 16;
constexpr std::byte kPicoseconds{12};  // 10^-12 s
constexpr std::uint32_t kInbound = 1;
constexpr std::uint32_t kOutbound = 2;

template <class T>
std::array<std::byte, sizeof(T)> bytes_of(T value) {
    std::array<std::byte, sizeof(T)> bytes;
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

}  // namespace

PcapngFile::PcapngFile(const std::string& path) : file_(path, std::ios::binary | std::ios::trunc) {
    begin(kSectionHeader);
    u32(kByteOrder);
    u16(1);  // version 1.0
    u16(0);
    u32(0xFFFFFFFF);  // how long the section is: not said
    u32(0xFFFFFFFF);
    option(kUserApplication, "simverbs");
    end();
}

std::uint32_t PcapngFile::add_interface(std::string_view name, LinkType type,
                                        std::uint64_t bits_per_second) {
    begin(kInterfaceDescription);
    u16(static_cast<std::uint16_t>(type));
    u16(0);
    u32(0);  // no limit of a packet's bytes
    option(kInterfaceName, name);
    option(kInterfaceSpeed, bytes_of(bits_per_second));
    option(kTimeResolution, std::span(&kPicoseconds, 1));
    end();
    interfaces_.push_back(type);
    return static_cast<std::uint32_t>(interfaces_.size() - 1);
}

void PcapngFile::write(const Packet& packet) {
    const auto time = static_cast<std::uint64_t>(to_picoseconds(packet.time));
    begin(kEnhancedPacket);
    u32(packet.interface);
    u32(static_cast<std::uint32_t>(time >> 32U));
    u32(static_cast<std::uint32_t>(time));
    const bool is_erf = interfaces_.at(packet.interface) == LinkType::kInfiniband;
    const std::uint32_t added = is_erf ? kErfBytes : 0;
    u32(static_cast<std::uint32_t>(packet.bytes.size()) + added);
    u32(packet.wire_bytes + added);
    if (is_erf) {
        erf_header(packet);
    }
    padded(packet.bytes);
    option(kPacketFlags, bytes_of(packet.inbound ? kInbound : kOutbound));
    if (!packet.comment.empty()) {
        option(kComment, packet.comment);
    }
    end();
}

// Endace's extensible record format: time in seconds and 2^-32 of them, low byte first; the rest
// with the high byte first.
void PcapngFile::erf_header(const Packet& packet) {
    constexpr std::uint64_t kSecond = 1'000'000'000'000;
    constexpr char kTypeInfiniband = 21;
    constexpr char kVaryingLength = 4;
    const auto time = static_cast<std::uint64_t>(to_picoseconds(packet.time));
    // 2^32 / 10^12 is 2^20 / 244140625 exactly; the rest of a second fits in 40 bits.
    u32(static_cast<std::uint32_t>((time % kSecond << 20U) / 244'140'625));
    u32(static_cast<std::uint32_t>(time / kSecond));
    const std::size_t record = packet.bytes.size() + kErfBytes;
    const auto high_byte_first = [this](std::size_t value) {
        block_.push_back(static_cast<char>(value >> 8U));
        block_.push_back(static_cast<char>(value));
    };
    block_.push_back(kTypeInfiniband);
    block_.push_back(kVaryingLength);
    high_byte_first(record);
    high_byte_first(0);  // none lost
    high_byte_first(packet.wire_bytes);
}

void PcapngFile::begin(std::uint32_t type) {
    block_.clear();
    u32(type);
    u32(0);  // its length, in end()
}

void PcapngFile::end() {
    u16(kEndOfOptions);
    u16(0);
    const auto length = static_cast<std::uint32_t>(block_.size() + sizeof(std::uint32_t));
    std::memcpy(block_.data() + sizeof(std::uint32_t), &length, sizeof length);
    u32(length);
    file_.write(block_.data(), static_cast<std::streamsize>(block_.size()));
    note_error();
}

void PcapngFile::flush() {
    file_.flush();
    note_error();
}

void PcapngFile::note_error() {
    if (error_ == 0 && !file_.good()) {
        error_ = errno != 0 ? errno : EIO;
    }
}

void PcapngFile::u16(std::uint16_t value) {
    const auto* const bytes = reinterpret_cast<const char*>(&value);
    block_.append(bytes, sizeof value);
}

void PcapngFile::u32(std::uint32_t value) {
    const auto* const bytes = reinterpret_cast<const char*>(&value);
    block_.append(bytes, sizeof value);
}

void PcapngFile::option(std::uint16_t code, std::span<const std::byte> value) {
    u16(code);
    u16(static_cast<std::uint16_t>(value.size()));
    padded(value);
}

void PcapngFile::option(std::uint16_t code, std::string_view text) {
    option(code, std::as_bytes(std::span(text)));
}

void PcapngFile::padded(std::span<const std::byte> bytes) {
    const auto* const first = reinterpret_cast<const char*>(bytes.data());
    block_.append(first, bytes.size());
    block_.resize((block_.size() + 3) & ~std::size_t{3});
}

}  // namespace fabric::trace

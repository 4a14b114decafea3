#include "fabric/net/gid.hpp"

#include <cstddef>

#include <fmt/core.h>

namespace fabric {

namespace {

std::uint64_t load_big_endian(const std::uint8_t* bytes) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < 8; ++i) {
        word = word << 8 | bytes[i];
    }
    return word;
}

void store_big_endian(std::uint8_t* bytes, std::uint64_t word) {
    for (std::size_t i = 8; i-- > 0; word >>= 8) {
        bytes[i] = static_cast<std::uint8_t>(word);
    }
}

struct Run {
    std::size_t begin = 0;
    std::size_t length = 0;
};

// The first of the longest runs of at least two zero groups (RFC 5952).
Run longest_zero_run(const std::array<unsigned, 8>& groups) {
    Run longest;
    Run current;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        if (groups[i] != 0) {
            current.length = 0;
            continue;
        }
        current.begin = current.length == 0 ? i : current.begin;
        ++current.length;
        longest = current.length > longest.length ? current : longest;
    }
    return longest.length >= 2 ? longest : Run{};
}

}  // namespace

std::uint64_t Gid::subnet_prefix() const {
    return load_big_endian(bytes.data());
}
std::uint64_t Gid::interface_id() const {
    return load_big_endian(bytes.data() + 8);
}

Gid make_gid(std::uint64_t subnet_prefix, Guid guid) {
    Gid gid;
    store_big_endian(gid.bytes.data(), subnet_prefix);
    store_big_endian(gid.bytes.data() + 8, guid.value());
    return gid;
}

std::string to_string(const Gid& gid) {
    std::array<unsigned, 8> groups{};
    for (std::size_t i = 0; i < groups.size(); ++i) {
        groups[i] = static_cast<unsigned>(gid.bytes[2 * i]) << 8 | gid.bytes[2 * i + 1];
    }
    const Run zeros = longest_zero_run(groups);
    std::string text;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        if (zeros.length != 0 && i == zeros.begin) {
            text += "::";
            i += zeros.length - 1;
            continue;
        }
        if (!text.empty() && text.back() != ':') {
            text += ':';
        }
        text += fmt::format("{:x}", groups[i]);
    }
    return text;
}

}  // namespace fabric

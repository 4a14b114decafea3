// errno values as scenarios write them.
#pragma once

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>

namespace scenarios {

struct ErrnoName {
    int value;
    std::string_view name;
};
inline constexpr auto kErrnoNames = std::to_array<ErrnoName>({
    {EPERM, "EPERM"},
    {ENOENT, "ENOENT"},
    {EINTR, "EINTR"},
    {EIO, "EIO"},
    {EBADF, "EBADF"},
    {EAGAIN, "EAGAIN"},
    {ENOMEM, "ENOMEM"},
    {EACCES, "EACCES"},
    {EFAULT, "EFAULT"},
    {EBUSY, "EBUSY"},
    {EEXIST, "EEXIST"},
    {ENODEV, "ENODEV"},
    {EINVAL, "EINVAL"},
    {ENOSPC, "ENOSPC"},
    {ENOSYS, "ENOSYS"},
    {EPROTO, "EPROTO"},
    {EOPNOTSUPP, "EOPNOTSUPP"},
    {ETIMEDOUT, "ETIMEDOUT"},
    {EADDRINUSE, "EADDRINUSE"},
    {EADDRNOTAVAIL, "EADDRNOTAVAIL"},
    {ENETUNREACH, "ENETUNREACH"},
    {ENETRESET, "ENETRESET"},
});

inline std::string errno_name(int value) {
    for (const ErrnoName& row : kErrnoNames) {
        if (row.value == value) {
            return std::string(row.name);
        }
    }
    return std::to_string(value);
}
inline std::optional<int> errno_of(std::string_view name) {
    for (const ErrnoName& row : kErrnoNames) {
        if (row.name == name) {
            return row.value;
        }
    }
    return std::nullopt;
}

}  // namespace scenarios

// Describes files of the tree to callers of stat(2) and its relatives: an attribute by a path and
// by a descriptor as the same file, of the size that sysfs gives to every attribute, and a device
// by its number.
#pragma once

#include <cstdint>

#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace simverbs::devices {

inline constexpr int kAttributeBytes = 4096;
inline constexpr int kBlockBytes = 512;  // of st_blocks: a file with fewer of them has holes

// Describes the file of the tree that `descriptor` was opened by; false where it is no attribute.
bool find_attribute(int descriptor, struct stat& found);

// Looks up the number of a device, "/dev/infiniband/umad0"; false: there is no such device. Leaves
// errno alone.
bool find_device_number(const char* name, dev_t& number);

template <class Status>
void size_attribute(Status& about) {
    about.st_size = kAttributeBytes;
    about.st_blocks = kAttributeBytes / kBlockBytes;
}
inline void size_attribute(struct statx& about) {
    about.stx_size = kAttributeBytes;
    about.stx_blocks = kAttributeBytes / kBlockBytes;
}

// Changes a description of a file of the tree: an attribute is a regular file there, and a device
// has the number of /dev/null.
template <class Status>
void describe_file(const char* name, Status& about) {
    if (S_ISREG(about.st_mode)) {
        size_attribute(about);
    } else if (dev_t number = 0; S_ISCHR(about.st_mode) && find_device_number(name, number)) {
        about.st_rdev = number;
    }
}
inline void describe_file(const char* name, struct statx& about) {
    if (S_ISREG(about.stx_mode)) {
        size_attribute(about);
    } else if (dev_t number = 0; S_ISCHR(about.stx_mode) && find_device_number(name, number)) {
        about.stx_rdev_major = major(number);
        about.stx_rdev_minor = minor(number);
    }
}

// Changes a description of the memory file behind an attribute to that of its file in the tree.
template <class Status>
void describe_attribute(int descriptor, Status& about) {
    struct stat found {};
    if (find_attribute(descriptor, found)) {
        about.st_dev = found.st_dev;
        about.st_ino = found.st_ino;
        about.st_mode = found.st_mode;
        about.st_nlink = found.st_nlink;
        about.st_uid = found.st_uid;
        about.st_gid = found.st_gid;
        about.st_atim = found.st_atim;
        about.st_mtim = found.st_mtim;
        about.st_ctim = found.st_ctim;
        size_attribute(about);
    }
}
inline void describe_attribute(int descriptor, struct statx& about) {
    struct stat found {};
    if (find_attribute(descriptor, found)) {
        about.stx_dev_major = major(found.st_dev);
        about.stx_dev_minor = minor(found.st_dev);
        about.stx_ino = found.st_ino;
        about.stx_mode = static_cast<std::uint16_t>(found.st_mode);
        about.stx_nlink = static_cast<std::uint32_t>(found.st_nlink);
        about.stx_uid = found.st_uid;
        about.stx_gid = found.st_gid;
        size_attribute(about);
    }
}

}  // namespace simverbs::devices

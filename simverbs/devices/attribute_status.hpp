// Describes files of the tree to callers of stat(2) and its relatives: an attribute by a path and
// by a descriptor as the same file, of the size that sysfs gives to every attribute, and a device
// by its number.
//
// On disk all attributes are names of one empty file. diff(1) takes files with one inode number for
// the same, and cp(1) and tar(1) copy files with several names once, so each gets a number of its
// own, made from its name, and one name.
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

// FNV-1a.
inline ino_t number_of_name(const char* name) {
    std::uint64_t hash = 0xCBF2'9CE4'8422'2325U;
    for (; *name != '\0'; ++name) {
        hash = (hash ^ static_cast<unsigned char>(*name)) * 0x0000'0100'0000'01B3U;
    }
    return static_cast<ino_t>(hash);
}

// Describes what the file on disk does not say. `name` is absolute, "/sys/class/infiniband/...".
template <class Status>
void complete_attribute(const char* name, Status& about) {
    about.st_ino = number_of_name(name);
    about.st_nlink = 1;
    about.st_size = kAttributeBytes;
    about.st_blocks = kAttributeBytes / kBlockBytes;
}
inline void complete_attribute(const char* name, struct statx& about) {
    about.stx_ino = number_of_name(name);
    about.stx_nlink = 1;
    about.stx_size = kAttributeBytes;
    about.stx_blocks = kAttributeBytes / kBlockBytes;
}

// Changes a description of a file of the tree: an attribute is a regular file there, and a device
// has the number of /dev/null.
template <class Status>
void describe_file(const char* name, Status& about) {
    if (S_ISREG(about.st_mode)) {
        complete_attribute(name, about);
    } else if (dev_t number = 0; S_ISCHR(about.st_mode) && find_device_number(name, number)) {
        about.st_rdev = number;
    }
}
inline void describe_file(const char* name, struct statx& about) {
    if (S_ISREG(about.stx_mode)) {
        complete_attribute(name, about);
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
        about.st_size = found.st_size;
        about.st_blocks = found.st_blocks;
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
        about.stx_size = static_cast<std::uint64_t>(found.st_size);
        about.stx_blocks = static_cast<std::uint64_t>(found.st_blocks);
    }
}

}  // namespace simverbs::devices

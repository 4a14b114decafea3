#include "simverbs/devices/open_files.hpp"

#include <atomic>
#include <cstring>

#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace simverbs::devices {
namespace {

std::atomic<FileKind> g_kinds[kMaxDescriptor];
OpenFile g_files[kMaxDescriptor];
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;  // of g_files, and one call at a time
thread_local bool t_has_lock = false;

__attribute__((constructor)) void survive_fork() {
    pthread_atfork([] { pthread_mutex_lock(&g_lock); }, [] { pthread_mutex_unlock(&g_lock); },
                   [] { pthread_mutex_unlock(&g_lock); });
}

// Programs close descriptors that they do not know.
bool holds_control(const OpenFile& file) {
    return file.control >= 0 && inode_of(file.control) == file.control_inode;
}

void forget(int descriptor) {
    OpenFile& file = g_files[descriptor];
    bool is_shared = false;
    for (int other = 0; other < kMaxDescriptor; ++other) {
        is_shared = is_shared || (other != descriptor && g_files[other].control == file.control);
    }
    if (!is_shared && holds_control(file)) {
        close(file.control);
    }
    g_kinds[descriptor].store(FileKind::kNone, std::memory_order_relaxed);
    file = {};
}

// Those that the program has closed.
void forget_closed() {
    for (int descriptor = 0; descriptor < kMaxDescriptor; ++descriptor) {
        if (g_kinds[descriptor].load(std::memory_order_relaxed) != FileKind::kNone &&
            inode_of(descriptor) != g_files[descriptor].inode) {
            forget(descriptor);
        }
    }
}

}  // namespace

Guard::Guard() {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
    has_waited_ = pthread_mutex_trylock(&g_lock) != 0;
    if (has_waited_) {
        pthread_mutex_lock(&g_lock);
    }
    t_has_lock = true;
}

Guard::~Guard() {
    t_has_lock = false;
    pthread_mutex_unlock(&g_lock);
    pthread_setcancelstate(cancel_state_, nullptr);
}

ino_t inode_of(int descriptor) {
    struct stat about {};
    return syscall(SYS_fstat, descriptor, &about) == 0 ? about.st_ino : 0;
}

FileKind kind_of(int descriptor) {
    const FileKind kind = noted_kind_of(descriptor);
    return kind == FileKind::kNone || t_has_lock ? FileKind::kNone : kind;
}

FileKind noted_kind_of(int descriptor) {
    return descriptor >= 0 && descriptor < kMaxDescriptor
               ? g_kinds[descriptor].load(std::memory_order_acquire)
               : FileKind::kNone;
}

OpenFile* find_open_file(int descriptor) {
    if (noted_kind_of(descriptor) == FileKind::kNone) {
        return nullptr;
    }
    if (inode_of(descriptor) != g_files[descriptor].inode) {
        forget(descriptor);
        return nullptr;
    }
    return &g_files[descriptor];
}

int control_of(const OpenFile& file) {
    return holds_control(file) ? file.control : -1;
}

void set_control(OpenFile& file, int control) {
    file.control = control;
    file.control_inode = control >= 0 ? inode_of(control) : 0;
    file.control_process = getpid();
}

OpenFile& note(int descriptor, FileKind kind, int control, const char* name) {
    forget_closed();
    OpenFile& file = g_files[descriptor];
    file = {};
    file.inode = inode_of(descriptor);
    set_control(file, control);
    std::memcpy(file.name, name, std::strlen(name) + 1);
    g_kinds[descriptor].store(kind, std::memory_order_release);
    return file;
}

void note_copy(int descriptor, int copy) {
    const OpenFile* const file = find_open_file(descriptor);
    if (file == nullptr || copy < 0 || copy >= kMaxDescriptor || copy == descriptor) {
        return;
    }
    if (noted_kind_of(copy) != FileKind::kNone) {
        forget(copy);
    }
    g_files[copy] = *file;
    g_kinds[copy].store(noted_kind_of(descriptor), std::memory_order_release);
}

}  // namespace simverbs::devices

/* Preloaded in front of librspreload.so, for what that of Debian 12 does not do: pass accept4() to
   rsockets, and name the program's descriptors in the result of select() (rdma-core 63 does both),
   and create rsockets if the type of a socket has flags (rsocket() refuses them, and the program
   gets a socket of the kernel). Each is put in terms of calls that librspreload passes on. */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/select.h>
#include <sys/socket.h>

typedef int (*create_socket)(int, int, int);

/* How long select() waits before it asks again, in ms. The rpoll() of rdma-core 44 watches a
   channel of a listener whose events another thread takes, and may see a new connection 5 s late.
 */
static const int between_polls = 20;

/* Sets what SOCK_NONBLOCK asks for. A descriptor of librspreload stays open across exec(). */
static int with_flags(int descriptor, int flags) {
    if (descriptor >= 0 && (flags & SOCK_NONBLOCK) != 0) {
        fcntl(descriptor, F_SETFL, O_NONBLOCK);
    }
    return descriptor;
}

int socket(int domain, int type, int protocol) {
    /* POSIX has dlsym return an object pointer for functions too. */
    union {
        void* object;
        create_socket function;
    } next = {dlsym(RTLD_NEXT, "socket")};
    if (domain != AF_INET && domain != AF_INET6) {
        return next.function(domain, type, protocol);
    }
    const int flags = type & (SOCK_NONBLOCK | SOCK_CLOEXEC);
    return with_flags(next.function(domain, type & ~flags, protocol), flags);
}

int accept4(int descriptor, struct sockaddr* address, socklen_t* bytes, int flags) {
    return with_flags(accept(descriptor, address, bytes), flags);
}

/* Waits by poll() for what the sets ask for. Returns the number of descriptors in `asked`. */
static nfds_t list_descriptors(int end, const fd_set* readable, const fd_set* writable,
                               const fd_set* exceptional, struct pollfd asked[FD_SETSIZE]) {
    nfds_t count = 0;
    for (int descriptor = 0; descriptor < end; ++descriptor) {
        short events = 0;
        events |= readable != NULL && FD_ISSET(descriptor, readable) ? POLLIN : 0;
        events |= writable != NULL && FD_ISSET(descriptor, writable) ? POLLOUT : 0;
        events |= exceptional != NULL && FD_ISSET(descriptor, exceptional) ? POLLPRI : 0;
        if (events != 0) {
            asked[count++] = (struct pollfd){.fd = descriptor, .events = events};
        }
    }
    return count;
}

/* Leaves in `set`, which asked for `event`, the descriptors that have one of `results`. */
static int keep_ready(fd_set* set, short event, short results, const struct pollfd* asked,
                      nfds_t count) {
    if (set == NULL) {
        return 0;
    }
    FD_ZERO(set);
    int ready = 0;
    for (nfds_t i = 0; i < count; ++i) {
        if ((asked[i].events & event) != 0 && (asked[i].revents & results) != 0) {
            FD_SET(asked[i].fd, set);
            ++ready;
        }
    }
    return ready;
}

int select(int end, fd_set* readable, fd_set* writable, fd_set* exceptional,
           struct timeval* limit) {
    struct pollfd asked[FD_SETSIZE];
    const nfds_t count = list_descriptors(end, readable, writable, exceptional, asked);
    long long left = limit == NULL ? 0 : limit->tv_sec * 1000LL + (limit->tv_usec + 999) / 1000;
    int polled = 0;
    do {
        const int now = limit != NULL && left < between_polls ? (int)left : between_polls;
        polled = poll(asked, count, now);
        left -= now;
    } while (polled == 0 && (limit == NULL || left > 0));
    if (polled < 0) {
        return polled;
    }
    return keep_ready(readable, POLLIN, POLLIN | POLLHUP | POLLERR, asked, count) +
           keep_ready(writable, POLLOUT, POLLOUT | POLLERR, asked, count) +
           keep_ready(exceptional, POLLPRI, POLLPRI, asked, count);
}

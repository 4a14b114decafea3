/* Checks what a program may expect of /sys/class/infiniband and /dev/infiniband, asked by plain
 * libc: run it on a host of a served world. It names the line that was disappointed. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(condition)                                                                \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "line %d: %s (errno %d: %s)\n", __LINE__, #condition, errno, \
                    strerror(errno));                                                    \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

enum { kDatagram = 256, kHeader = sizeof(struct ib_user_mad_hdr) };

struct message {
    struct ib_user_mad_hdr header;
    unsigned char bytes[kDatagram];
};

static const char kUmad[] = "/dev/infiniband/umad0";
static const char kLid[] = "/sys/class/infiniband/simverbs0/ports/1/lid";

static int open_umad(int flags) {
    const int umad = open(kUmad, O_RDWR | flags);
    EXPECT(umad >= 0);
    return umad;
}

static int register_agent(int umad, unsigned qpn, unsigned class) {
    struct ib_user_mad_reg_req request;
    memset(&request, 0, sizeof request);
    request.qpn = (unsigned char)qpn;
    request.mgmt_class = (unsigned char)class;
    request.mgmt_class_version = 1;
    if (ioctl(umad, IB_USER_MAD_REGISTER_AGENT, &request) != 0) {
        return -errno;
    }
    return (int)request.id;
}

/* A Get(NodeInfo) of this node itself, by a directed route of no hops. */
static void ask_self(int umad, int agent, unsigned transaction) {
    struct message get;
    memset(&get, 0, sizeof get);
    get.header.id = (unsigned)agent;
    get.header.timeout_ms = 100;
    get.header.lid = htons(0xFFFF);
    get.bytes[0] = 1;
    get.bytes[1] = 0x81;
    get.bytes[2] = 1;
    get.bytes[3] = 1;
    get.bytes[14] = (unsigned char)(transaction >> 8);
    get.bytes[15] = (unsigned char)transaction;
    get.bytes[17] = 0x11;
    memset(get.bytes + 32, 0xFF, 4);
    EXPECT(write(umad, &get, sizeof get) == sizeof get);
}

static void expect_answer(int umad, int agent, unsigned transaction) {
    struct pollfd look = {umad, POLLIN, 0};
    EXPECT(poll(&look, 1, 5000) == 1);
    struct message answer;
    EXPECT(read(umad, &answer, sizeof answer) == sizeof answer);
    EXPECT(answer.header.status == 0 && answer.header.id == (unsigned)agent);
    EXPECT(answer.header.length == sizeof answer);
    EXPECT(answer.bytes[3] == 0x81);
    EXPECT(answer.bytes[14] * 256U + answer.bytes[15] == transaction);
    EXPECT(answer.bytes[64 + 2] == 1); /* NodeInfo: a channel adapter */
}

static void read_text(const char* path, char* text, size_t size) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    EXPECT(file >= 0);
    const ssize_t got = read(file, text, size - 1);
    EXPECT(got > 0);
    text[got] = '\0';
    EXPECT(read(file, text + got, 1) == 0);
    EXPECT(lseek(file, 0, SEEK_SET) == 0);
    EXPECT(pread(file, text, size - 1, 0) == got);
    close(file);
}

static void attributes(void) {
    char text[64];
    read_text(kLid, text, sizeof text);
    EXPECT(strcmp(text, "0x1\n") == 0);
    read_text("/sys/class/infiniband_mad/./umad0//port", text, sizeof text);
    EXPECT(strcmp(text, "1\n") == 0);
    FILE* stream = fopen(kLid, "r");
    EXPECT(stream != NULL && fgets(text, sizeof text, stream) != NULL);
    EXPECT(strcmp(text, "0x1\n") == 0);
    fclose(stream);

    EXPECT(open(kLid, O_WRONLY) < 0 && errno == EACCES);
    EXPECT(open("/sys/class/infiniband/simverbs0/nothing", O_RDONLY) < 0 && errno == ENOENT);
    EXPECT(open("/dev/infiniband/umad7", O_RDWR) < 0 && errno == ENOENT);
    EXPECT(open("/dev/infiniband/uverbs0", O_RDWR) < 0 && errno == ENXIO);

    struct stat about;
    EXPECT(stat("/dev/infiniband/uverbs0", &about) == 0 && S_ISCHR(about.st_mode));
    EXPECT(access("/dev/infiniband/uverbs0", R_OK | W_OK) == 0);
    read_text("/sys/class/infiniband_verbs/uverbs0/dev", text, sizeof text);
    EXPECT(strcmp(text, "231:192\n") == 0);
    read_text("/sys/class/infiniband_verbs/uverbs0/uevent", text, sizeof text);
    EXPECT(strcmp(text, "MAJOR=231\nMINOR=192\nDEVNAME=infiniband/uverbs0\n") == 0);
    read_text("/sys/class/infiniband_mad/issm0/dev", text, sizeof text);
    EXPECT(strcmp(text, "231:64\n") == 0);
    EXPECT(stat("/sys/class/infiniband/simverbs0", &about) == 0 && S_ISDIR(about.st_mode));

    /* diff(1) compares inode numbers, cp(1) and tar(1) look for further names. */
    struct stat other;
    struct stat opened;
    EXPECT(stat(kLid, &about) == 0 && about.st_nlink == 1);
    EXPECT(stat("/sys/class/infiniband/simverbs0/ports/1/sm_lid", &other) == 0);
    EXPECT(about.st_ino != other.st_ino);
    const int lid = open(kLid, O_RDONLY);
    EXPECT(fstat(lid, &opened) == 0 && opened.st_nlink == 1 && opened.st_ino == about.st_ino);
    close(lid);
    char resolved[PATH_MAX];
    EXPECT(realpath("/sys/class/infiniband/simverbs0/ports/../ports/1/lid", resolved) != NULL);

    /* The PCI function: UCX and others ask it where the device is. */
    read_text("/sys/class/infiniband/simverbs0/device/numa_node", text, sizeof text);
    EXPECT(strcmp(text, "0\n") == 0);
    read_text("/sys/class/infiniband_verbs/uverbs0/device/vendor", text, sizeof text);
    EXPECT(strcmp(text, "0xfffe\n") == 0);
    read_text("/sys/class/infiniband/simverbs0/device/local_cpus", text, sizeof text);
    EXPECT(strtoul(text, NULL, 16) != 0);
    char long_text[256];
    read_text("/sys/class/infiniband/simverbs0/device/uevent", long_text, sizeof long_text);
    EXPECT(strstr(long_text, "\nPCI_SLOT_NAME=5356:01:00.0\n") != NULL);
    read_text("/sys/class/infiniband_verbs/uverbs0/device/modalias", long_text, sizeof long_text);
    EXPECT(strcmp(long_text, "pci:v0000FFFEd00000001sv0000FFFEsd00000001bc02sc07i00\n") == 0);
    EXPECT(readlink("/sys/class/infiniband/simverbs0/device", resolved, sizeof resolved) > 0);
    EXPECT(realpath("/sys/class/infiniband/simverbs0/device", resolved) != NULL);
    EXPECT(strcmp(resolved, "/sys/devices/pci5356:00/5356:01:00.0") == 0);
    strcat(resolved, "/current_link_speed");
    read_text(resolved, text, sizeof text);
    EXPECT(strcmp(text, "16.0 GT/s PCIe\n") == 0);
    EXPECT(access("/sys/class/infiniband/simverbs0/ports/1/gid_attrs/ndevs/0", R_OK) == 0);

    EXPECT(chdir("/sys/class/infiniband/simverbs0") == 0);
    read_text("ports/1/lid", text, sizeof text);
    EXPECT(strcmp(text, "0x1\n") == 0);
    const int folder = open("/sys/class/infiniband", O_RDONLY | O_DIRECTORY);
    EXPECT(folder >= 0);
    const int file = openat(folder, "simverbs0/ports/1/lid", O_RDONLY);
    EXPECT(file >= 0 && read(file, text, sizeof text) == 4);
    close(file);
    close(folder);
    EXPECT(chdir("/") == 0);
}

/* A descriptor that the library opens may get the number of an attribute that was closed. */
static void closed_before_another_is_read(void) {
    char text[64];
    const int file = open(kLid, O_RDONLY | O_CLOEXEC);
    const int closed = open(kLid, O_RDONLY | O_CLOEXEC);
    EXPECT(file >= 0 && closed > file);
    close(closed);
    EXPECT(read(file, text, sizeof text) == 4);
    close(file);
}

static void agents(void) {
    const int umad = open_umad(0);
    EXPECT(ioctl(umad, IB_USER_MAD_ENABLE_PKEY, NULL) == 0);
    EXPECT(register_agent(umad, 2, 0x81) == -EINVAL);
    for (int i = 0; i < 32; ++i) {
        EXPECT(register_agent(umad, 0, 0x81) == i);
    }
    EXPECT(register_agent(umad, 0, 0x81) == -ENOMEM);
    unsigned id = 7;
    EXPECT(ioctl(umad, IB_USER_MAD_UNREGISTER_AGENT, &id) == 0);
    EXPECT(ioctl(umad, IB_USER_MAD_UNREGISTER_AGENT, &id) < 0 && errno == EINVAL);
    EXPECT(register_agent(umad, 0, 0x81) == 7);
    id = 99;
    EXPECT(ioctl(umad, IB_USER_MAD_UNREGISTER_AGENT, &id) < 0 && errno == EINVAL);
    EXPECT(ioctl(umad, _IO(IB_IOCTL_MAGIC, 77), NULL) < 0 && errno == ENOTTY);
    close(umad);
}

static void datagrams(void) {
    const int umad = open_umad(O_NONBLOCK);
    struct message message;
    EXPECT(read(umad, &message, sizeof message) < 0 && errno == EAGAIN);
    const int agent = register_agent(umad, 0, 0x81);
    EXPECT(agent == 0);
    ask_self(umad, agent, 5);
    struct pollfd look = {umad, POLLIN, 0};
    EXPECT(poll(&look, 1, 5000) == 1);
    /* A datagram that does not fit stays. */
    EXPECT(read(umad, &message, 8) < 0 && errno == EINVAL);
    EXPECT(read(umad, &message, sizeof message - 1) < 0 && errno == EINVAL);
    expect_answer(umad, agent, 5);

    /* An agent that does not exist: the kernel refuses the write, here it comes back. */
    memset(&message, 0, sizeof message);
    message.header.id = 31;
    EXPECT(write(umad, &message, sizeof message) == sizeof message);
    EXPECT(poll(&look, 1, 5000) == 1);
    EXPECT(read(umad, &message, sizeof message) == sizeof message);
    EXPECT(message.header.status == EINVAL);

    /* Nobody is at that LID: after its time limit, which is virtual, the head comes back. */
    memset(&message, 0, sizeof message);
    message.header.id = (unsigned)agent;
    message.header.timeout_ms = 1000;
    message.header.retries = 3;
    message.header.lid = htons(0x1234);
    message.bytes[0] = 1;
    message.bytes[1] = 0x01;
    message.bytes[2] = 1;
    message.bytes[3] = 1;
    message.bytes[15] = 9;
    message.bytes[17] = 0x11;
    EXPECT(write(umad, &message, sizeof message) == sizeof message);
    EXPECT(poll(&look, 1, 5000) == 1);
    EXPECT(read(umad, &message, sizeof message) == kHeader + 24);
    EXPECT(message.header.status == ETIMEDOUT && message.bytes[15] == 9);

    /* A number that is used for something else is that. */
    const int zero = open("/dev/zero", O_RDONLY);
    EXPECT(zero >= 0 && dup2(zero, umad) == umad);
    char byte = 1;
    EXPECT(read(umad, &byte, 1) == 1 && byte == 0);
    EXPECT(ioctl(umad, IB_USER_MAD_ENABLE_PKEY, NULL) < 0 && errno == ENOTTY);
    close(zero);
    close(umad);
}

static void subnet_manager(void) {
    const int first = open("/dev/infiniband/issm0", O_RDWR | O_NONBLOCK);
    EXPECT(first >= 0);
    EXPECT(open("/dev/infiniband/issm0", O_RDWR | O_NONBLOCK) < 0 && errno == EAGAIN);
    close(first);
    int again = -1;
    for (int i = 0; i < 100 && again < 0; ++i) {
        again = open("/dev/infiniband/issm0", O_RDWR | O_NONBLOCK);
        usleep(10000);
    }
    EXPECT(again >= 0);
    close(again);
}

static void children(void) {
    const int umad = open_umad(0);
    const int agent = register_agent(umad, 0, 0x81);
    const pid_t child = fork();
    if (child == 0) {
        ask_self(umad, agent, 21);
        expect_answer(umad, agent, 21);
        const int own = open_umad(0);
        const int own_agent = register_agent(own, 0, 0x81);
        ask_self(own, own_agent, 22);
        expect_answer(own, own_agent, 22);
        _exit(0);
    }
    int status = 1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    ask_self(umad, agent, 23);
    expect_answer(umad, agent, 23);
    close(umad);
}

static void* one_thread(void* unused) {
    for (unsigned i = 0; i < 20; ++i) {
        const int umad = open_umad(0);
        const int agent = register_agent(umad, 0, 0x81);
        ask_self(umad, agent, i);
        expect_answer(umad, agent, i);
        char text[64];
        read_text(kLid, text, sizeof text);
        close(umad);
    }
    return unused;
}

static void threads(void) {
    pthread_t all[4];
    for (int i = 0; i < 4; ++i) {
        EXPECT(pthread_create(&all[i], NULL, one_thread, NULL) == 0);
    }
    for (int i = 0; i < 4; ++i) {
        EXPECT(pthread_join(all[i], NULL) == 0);
    }
}

/* Datagrams queue without a limit, also where reading does not wait: more than a socket holds. */
static void many_datagrams(void) {
    enum { kMany = 5000 };
    const int umad = open_umad(O_NONBLOCK);
    const int agent = register_agent(umad, 0, 0x81);
    EXPECT(agent >= 0);
    for (unsigned i = 0; i < kMany; ++i) {
        ask_self(umad, agent, i);
    }
    for (unsigned i = 0; i < kMany; ++i) {
        expect_answer(umad, agent, i);
    }
    close(umad);
}

int main(void) {
    attributes();
    closed_before_another_is_read();
    agents();
    datagrams();
    subnet_manager();
    children();
    threads();
    many_datagrams();
    puts("all as expected");
    return 0;
}

// Registers memory of each kind, as programs do, and checks that nothing but speed depends on
// whether the server of the world maps it, too: the program, its threads, its children and a queue
// pair that is connected to itself see what they would see anywhere.
//
// shared_memory munmap|mremap|free: takes registered memory away in this way, then in the others.
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define PAGE ((size_t)4096)
#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_cq* cq;
static struct ibv_qp* qp;
static struct ibv_mr* source;  // one page more than 1 MiB
static int failures;

static void check(int right, const char* what) {
    printf("%s %s\n", right ? "ok" : "WRONG", what);
    failures += !right;
}

static void need(int right, const char* what) {
    if (!right) {
        perror(what);
        exit(2);
    }
}

static void connect_to_itself(void) {
    struct ibv_port_attr port;
    need(ibv_query_port(context, 1, &port) == 0, "ibv_query_port");
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RESET");
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = RIGHTS;
    need(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
         "INIT");
    memset(&attr, 0, sizeof attr);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = qp->qp_num;
    attr.max_dest_rd_atomic = 1;
    attr.ah_attr.dlid = port.lid;
    attr.ah_attr.port_num = 1;
    need(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "RTR");
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.max_rd_atomic = 1;
    need(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
         "RTS");
}

static void make_queue_pair(void) {
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    need(pd && cq, "objects");
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
    init.cap.max_send_wr = init.cap.max_recv_wr = 4;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    qp = ibv_create_qp(pd, &init);
    need(qp != NULL, "ibv_create_qp");
}

static int carry_out(enum ibv_wr_opcode opcode, char* local, size_t length, uint32_t lkey,
                     void* remote, uint32_t rkey) {
    struct ibv_sge sge = {(uintptr_t)local, (uint32_t)length, lkey};
    struct ibv_send_wr request = {.sg_list = &sge, .num_sge = 1, .opcode = opcode};
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = (uintptr_t)remote;
    request.wr.rdma.rkey = rkey;
    struct ibv_send_wr* bad;
    need(!ibv_post_send(qp, &request, &bad), "ibv_post_send");
    struct ibv_wc wc;
    int found;
    while ((found = ibv_poll_cq(cq, 1, &wc)) == 0) {
    }
    return found == 1 && wc.status == IBV_WC_SUCCESS;
}

static char pattern(size_t i, int seed) {
    return (char)(i * 7 + i / 251 + (size_t)seed);
}

// The device writes to [at, at + length), which the program sees, and reads it back from there
// after the program has changed it.
static int is_reached(char* at, size_t length, uint32_t rkey) {
    static int seed;
    char* bytes = source->addr;
    ++seed;
    for (size_t i = 0; i < length; ++i) {
        bytes[i] = pattern(i, seed);
    }
    int right = carry_out(IBV_WR_RDMA_WRITE, bytes, length, source->lkey, at, rkey) &&
                memcmp(bytes, at, length) == 0;
    for (size_t i = 0; i < length; ++i) {
        at[i] = pattern(i, seed + 100);
    }
    right = right && carry_out(IBV_WR_RDMA_READ, bytes, length, source->lkey, at, rkey) &&
            memcmp(bytes, at, length) == 0;
    return right;
}

// Returns whether the mapping of `address` is memory that the server has, too.
static int is_shared(const void* address) {
    FILE* maps = fopen("/proc/self/maps", "r");
    char line[512];
    int answer = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= (uintptr_t)address &&
            (uintptr_t)address < to) {
            answer = strstr(line, "simverbs-region") != NULL;
        }
    }
    fclose(maps);
    return answer;
}

static char* map_pages(void* at, size_t pages) {
    char* memory = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
    need(memory != MAP_FAILED, "mmap");
    return memory;
}

static struct ibv_mr* reg(void* address, size_t length) {
    struct ibv_mr* mr = ibv_reg_mr(pd, address, length, RIGHTS);
    need(mr != NULL, "ibv_reg_mr");
    return mr;
}

static void fill(char* memory, size_t length, int seed) {
    for (size_t i = 0; i < length; ++i) {
        memory[i] = pattern(i, seed);
    }
}

static int holds(const char* memory, size_t length, int seed) {
    size_t i = 0;
    while (i < length && memory[i] == pattern(i, seed)) {
        ++i;
    }
    return i == length;
}

static void ordinary_memory(void) {
    const size_t length = 100 * 1000 + 17;
    char* memory = malloc(length);
    fill(memory, length, 1);
    struct ibv_mr* mr = reg(memory, length);
    check(is_shared(memory + 50000), "memory of one thread is shared");
    check(holds(memory, length, 1), "it holds what it held");
    check(is_reached(memory, length, mr->rkey), "the device reaches all of it");
    check(is_reached(memory + 4000, 200, mr->rkey), "and what lies across its edge");
    fill(memory, length, 2);
    need(!ibv_dereg_mr(mr), "ibv_dereg_mr");
    check(!is_shared(memory + 50000) && holds(memory, length, 2), "and is private afterwards");
    memory = realloc(memory, 4 * length);
    check(holds(memory, length, 2), "realloc() keeps it");
    free(memory);
}

static void released_memory(void) {
    char* memory = map_pages(NULL, 16);
    fill(memory, 16 * PAGE, 3);
    need(!ibv_dereg_mr(reg(memory, 16 * PAGE)), "ibv_dereg_mr");
    need(!madvise(memory, 16 * PAGE, MADV_DONTNEED), "madvise");
    int zero = 1;
    for (size_t i = 0; i < 16 * PAGE; ++i) {
        zero = zero && memory[i] == 0;
    }
    check(zero, "MADV_DONTNEED leaves zeros in a former region");
    memory = mremap(memory, 16 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
    need(memory != MAP_FAILED, "mremap");
    fill(memory, 64 * PAGE, 4);
    check(holds(memory, 64 * PAGE, 4), "mremap() makes a former region longer");
    munmap(memory, 64 * PAGE);
}

static void children(void) {
    char* memory = map_pages(NULL, 16);
    fill(memory, 16 * PAGE, 5);
    struct ibv_mr* mr = reg(memory, 16 * PAGE);
    check(is_shared(memory), "memory is shared before a fork");
    int told[2];
    need(!pipe(told), "pipe");
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        close(told[1]);
        int right = read(told[0], &byte, 1) == 1 && holds(memory, 16 * PAGE, 5);
        fill(memory, 16 * PAGE, 6);
        right = right && !is_shared(memory);
        _exit(right ? 0 : 1);
    }
    fill(memory, 16 * PAGE, 7);
    check(is_reached(memory, 8 * PAGE, mr->rkey), "a parent's region is reached after a fork");
    fill(memory, 16 * PAGE, 7);
    need(write(told[1], "x", 1) == 1, "write");
    int status = -1;
    waitpid(child, &status, 0);
    check(status == 0, "a child sees what was there at the fork");
    check(holds(memory, 16 * PAGE, 7), "a parent does not see what the child writes");
    check(system("exit 7") == 7 << 8, "system() works");
    ibv_dereg_mr(mr);
    munmap(memory, 16 * PAGE);
}

static void protected_memory(void) {
    char* memory = map_pages(NULL, 32);
    fill(memory, 16 * PAGE, 13);
    fill(memory + 16 * PAGE, 16 * PAGE, 14);
    struct ibv_mr* hidden = reg(memory, 16 * PAGE);
    struct ibv_mr* fixed = reg(memory + 16 * PAGE, 16 * PAGE);
    need(!mprotect(memory, 16 * PAGE, PROT_NONE), "mprotect");
    need(!mprotect(memory + 16 * PAGE, 16 * PAGE, PROT_READ), "mprotect");
    const pid_t child = fork();
    if (child == 0) {
        _exit(holds(memory + 16 * PAGE, 16 * PAGE, 14) ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ibv_dereg_mr(hidden);
    ibv_dereg_mr(fixed);
    const int file = open("/dev/zero", O_RDONLY);
    check(status == 0 && read(file, memory, 1) < 0 && errno == EFAULT &&
              read(file, memory + 16 * PAGE, 1) < 0 && errno == EFAULT,
          "protected memory stays so after its region");
    close(file);
    need(!mprotect(memory, 32 * PAGE, PROT_READ | PROT_WRITE), "mprotect");
    check(holds(memory, 16 * PAGE, 13) && holds(memory + 16 * PAGE, 16 * PAGE, 14),
          "and holds what it held");
    munmap(memory, 32 * PAGE);
}

static void take_away(char* memory, size_t length, const char* how) {
    if (strcmp(how, "free") == 0) {
        free(memory);
    } else if (strcmp(how, "mremap") == 0) {
        char* place = map_pages(NULL, length / PAGE);
        need(mremap(memory, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place,
             "mremap");
        munmap(place, length);
    } else {
        munmap(memory, length);
    }
}

static void memory_taken_away(const char* how) {
    const size_t length = 64 * PAGE;
    mallopt(M_MMAP_THRESHOLD, (int)length);  // free() unmaps it
    char* memory = strcmp(how, "free") == 0 ? malloc(length) : map_pages(NULL, 64);
    struct ibv_mr* mr = reg(memory, length);
    struct ibv_mr* kept = reg(map_pages(NULL, 1), PAGE);
    char* inside = memory + 4 * PAGE;
    check(is_shared(inside) && is_reached(inside, 8 * PAGE, mr->rkey), "memory is shared");
    take_away(memory, length, how);
    check(carry_out(IBV_WR_RDMA_WRITE, source->addr, PAGE, source->lkey, kept->addr, kept->rkey) &&
              !carry_out(IBV_WR_RDMA_WRITE, source->addr, PAGE, source->lkey, inside, mr->rkey),
          how);
    ibv_dereg_mr(mr);
    connect_to_itself();
    check(is_reached(kept->addr, PAGE, kept->rkey), "other memory is reached as before");
    munmap(kept->addr, PAGE);
    ibv_dereg_mr(kept);
}

static void overlaps(void) {
    char* memory = map_pages(NULL, 64);
    fill(memory, 64 * PAGE, 8);
    struct ibv_mr* first = reg(memory, 16 * PAGE);
    struct ibv_mr* within = reg(memory + 4 * PAGE, 2 * PAGE);
    struct ibv_mr* beyond = reg(memory + 8 * PAGE, 16 * PAGE);
    struct ibv_mr* whole = reg(memory, 64 * PAGE);
    check(holds(memory, 64 * PAGE, 8), "regions that overlap hold what they held");
    check(is_reached(memory, 16 * PAGE, first->rkey) &&
              is_reached(memory + 4 * PAGE, 2 * PAGE, within->rkey) &&
              is_reached(memory + 8 * PAGE, 16 * PAGE, beyond->rkey) &&
              is_reached(memory, 64 * PAGE, whole->rkey),
          "each is reached");
    fill(memory, 64 * PAGE, 9);
    ibv_dereg_mr(first);
    ibv_dereg_mr(beyond);
    check(holds(memory, 64 * PAGE, 9) && is_reached(memory, 64 * PAGE, whole->rkey) &&
              is_reached(memory + 4 * PAGE, 2 * PAGE, within->rkey),
          "those that are left are reached when others have ended");
    fill(memory, 64 * PAGE, 10);
    ibv_dereg_mr(whole);
    check(holds(memory, 64 * PAGE, 10) && is_reached(memory + 4 * PAGE, 2 * PAGE, within->rkey),
          "the last one, too");
    ibv_dereg_mr(within);
    munmap(memory, 64 * PAGE);
}

static void mapped_anew(void) {
    char* memory = map_pages(NULL, 16);
    struct ibv_mr* old = reg(memory, 16 * PAGE);
    check(is_shared(memory), "memory is shared before it is replaced");
    munmap(memory, 16 * PAGE);
    map_pages(memory, 16);
    struct ibv_mr* part = reg(memory + PAGE + 100, 200);
    check(is_reached(memory + PAGE + 100, 200, part->rkey),
          "other memory in its place is reached by a small region");
    struct ibv_mr* mr = reg(memory, 16 * PAGE);
    check(is_reached(memory, 16 * PAGE, mr->rkey), "and by a large one");
    fill(memory, 16 * PAGE, 11);
    ibv_dereg_mr(old);
    check(holds(memory, 16 * PAGE, 11) && is_reached(memory, 16 * PAGE, mr->rkey),
          "also after the end of the former region");
    ibv_dereg_mr(part);
    ibv_dereg_mr(mr);
    munmap(memory, 16 * PAGE);
}

static atomic_int stop;
static void* count_in(void* memory) {
    volatile unsigned long* counter = memory;
    while (!atomic_load(&stop)) {
        ++*counter;
        usleep(1);
    }
    return (void*)*counter;
}

static void threads(void) {
    char* memory = map_pages(NULL, 16);
    struct ibv_mr* before = reg(memory, 8 * PAGE);
    pthread_t thread;
    need(!pthread_create(&thread, NULL, count_in, memory + 512), "pthread_create");
    struct ibv_mr* beside = reg(memory + 8 * PAGE, 8 * PAGE);
    check(is_shared(memory) && !is_shared(memory + 8 * PAGE),
          "where several threads run no more is shared");
    check(is_reached(memory + PAGE, 7 * PAGE, before->rkey) &&
              is_reached(memory + 8 * PAGE, 8 * PAGE, beside->rkey),
          "both are reached");
    ibv_dereg_mr(before);
    usleep(1000);
    atomic_store(&stop, 1);
    void* counted;
    pthread_join(thread, &counted);
    check(*(unsigned long*)(memory + 512) == (unsigned long)counted,
          "the end of a region loses nothing that a thread writes meanwhile");
    ibv_dereg_mr(beside);
    munmap(memory, 16 * PAGE);
}

static void other_kinds(void) {
    char on_stack[20 * 4096];
    struct ibv_mr* mr = reg(on_stack, sizeof on_stack);
    check(!is_shared(on_stack + 10 * PAGE) && is_reached(on_stack, sizeof on_stack, mr->rkey),
          "a region on the stack is reached");
    ibv_dereg_mr(mr);

    static char in_program[20 * 4096];
    mr = reg(in_program, sizeof in_program);
    check(is_reached(in_program, sizeof in_program, mr->rkey), "one in the program's data");
    ibv_dereg_mr(mr);

    FILE* file = tmpfile();
    need(file && !ftruncate(fileno(file), 16 * (off_t)PAGE), "a file");
    for (int kind = 0; kind < 2; ++kind) {
        char* memory = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
                            kind ? MAP_SHARED : MAP_PRIVATE, fileno(file), 0);
        need(memory != MAP_FAILED, "mmap of a file");
        mr = reg(memory, 16 * PAGE);
        check(!is_shared(memory) && is_reached(memory, 16 * PAGE, mr->rkey), "one in a file");
        ibv_dereg_mr(mr);
        munmap(memory, 16 * PAGE);
    }
    fclose(file);

    const size_t pages = 100 * 256;
    char* memory = map_pages(NULL, pages);
    mr = reg(memory, pages * PAGE);
    check(!is_shared(memory) && is_reached(memory + 99 * 256 * PAGE, 16 * PAGE, mr->rkey),
          "one of 100 MiB");
    ibv_dereg_mr(mr);
    munmap(memory, pages * PAGE);
}

static void limits(void) {
    struct rlimit limit;
    need(!getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    const int next = dup(0);
    close(next);
    const struct rlimit none = {(rlim_t)next, limit.rlim_max};
    char* memory = map_pages(NULL, 16);
    need(!setrlimit(RLIMIT_NOFILE, &none), "setrlimit");
    struct ibv_mr* mr = reg(memory, 16 * PAGE);
    need(!setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
    check(!is_shared(memory) && is_reached(memory, 16 * PAGE, mr->rkey),
          "a region without a free descriptor is reached");
    need(dup(0) == next, "a descriptor was left open");
    ibv_dereg_mr(mr);
    mr = reg(memory, 16 * PAGE);
    check(is_shared(memory), "it would have been shared");
    ibv_dereg_mr(mr);
    munmap(memory, 16 * PAGE);

    enum { kRegions = 600 };
    memory = map_pages(NULL, 2 * kRegions);
    struct ibv_mr* mrs[kRegions];
    int right = 1;
    for (int i = 0; i < kRegions; ++i) {
        mrs[i] = reg(memory + 2 * (size_t)i * PAGE, PAGE);
    }
    for (int i = 0; i < kRegions; ++i) {
        right = right && is_reached(mrs[i]->addr, PAGE, mrs[i]->rkey);
    }
    check(right, "each of 600 regions is reached");
    for (int i = 0; i < kRegions; ++i) {
        ibv_dereg_mr(mrs[i]);
    }
    // None of them has paid.
    int shared = 0;
    right = 1;
    for (int i = 0; i < 2 * kRegions; i += 16) {
        mr = reg(memory + (size_t)i * PAGE, 16 * PAGE);
        shared += is_shared(memory + (size_t)i * PAGE);
        right = right && is_reached(mr->addr, 16 * PAGE, mr->rkey);
        ibv_dereg_mr(mr);
    }
    check(right && shared >= 2 && shared <= 4, "one of 32 regions is shared after them");
    munmap(memory, 2 * kRegions * PAGE);
}

static void moved_region(void) {
    char* memory = map_pages(NULL, 32);
    fill(memory, 32 * PAGE, 12);
    struct ibv_mr* mr = reg(memory, 16 * PAGE);
    need(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, pd, memory + 8 * PAGE, 24 * PAGE, 0),
         "ibv_rereg_mr");
    check(holds(memory, 32 * PAGE, 12) && is_reached(memory + 8 * PAGE, 24 * PAGE, mr->rkey),
          "a region is reached where it was moved to");
    ibv_dereg_mr(mr);
    munmap(memory, 32 * PAGE);
}

static void every_kind(void) {
    ordinary_memory();
    released_memory();
    children();
    protected_memory();
    overlaps();
    mapped_anew();
    other_kinds();
    moved_region();
    threads();
    limits();
}

int main(int argc, char** argv) {
    struct ibv_device** devices = ibv_get_device_list(NULL);
    context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
    need(context != NULL, "a device");
    ibv_free_device_list(devices);
    make_queue_pair();
    connect_to_itself();
    source = reg(map_pages(NULL, 257), 257 * PAGE);
    if (argc > 1) {
        memory_taken_away(argv[1]);
        memory_taken_away("munmap");
        memory_taken_away("mremap");
        memory_taken_away("free");
    } else {
        every_kind();
    }
    ibv_destroy_qp(qp);
    ibv_dereg_mr(source);
    ibv_destroy_cq(cq);
    ibv_dealloc_pd(pd);
    ibv_close_device(context);
    printf("%d wrong\n", failures);
    return failures != 0;
}

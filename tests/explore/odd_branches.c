/* Does something odd to its process wherever a fault shows, another thing at each place, and prints
 * what it finds of itself before and after. A branch must not see what the branches before it did
 * (branches_alone.py). */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "ends.h"

enum { kMessages = 6, kLength = 3000, kBss = 300000, kHeap = 400000 };

static int in_data = 1;
static unsigned char in_bss[kBss];
static unsigned char* in_heap;
static unsigned char* large;
static jmp_buf start;

static void fill_bss(void) {
    memset(in_bss, 1, kBss);
}

static void fill_heap(void) {
    memset(in_heap, 2, kHeap);
}

static void free_large(void) {
    free(large);
    large = NULL;
}

static void grow_large(void) {
    large = realloc(large, 5000000);
    memset(large, 3, 5000000);
}

static void allocate_much(void) {
    for (int i = 0; i < 20000; ++i) {
        memset(malloc(100), i, 100);
    }
}

static void map_pages(void) {
    unsigned char* const pages =
        mmap(NULL, 100000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 3, 100000);
    munmap(pages, 50000);
}

static void share_pages(void) {
    memset(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), 1, 8192);
}

static void set_variable(void) {
    setenv("OF_A_BRANCH", "yes", 1);
}

static void on_signal(int number) {
    in_data += number;
}

static void handle_signal(void) {
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
}

static void block_signals(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}

static void* return_it(void* what) {
    return what;
}

static void start_thread(void) {
    pthread_t thread;
    check(pthread_create(&thread, NULL, return_it, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
}

static void start_process(void) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        _exit(3);
    }
    waitpid(child, &status, 0);
    printf("a child ended with %d\n", WEXITSTATUS(status));
}

static void start_shell(void) {
    printf("a shell ended with %d\n", WEXITSTATUS(system("exit 5")));
}

static void use_pipe(void) {
    int ends[2];
    char byte = 'p';
    check(pipe(ends) == 0 && write(ends[1], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1, "pipe");
}

static void read_file(void) {
    char line[64] = "";
    FILE* const file = fopen("/proc/self/comm", "r");
    check(file != NULL && fgets(line, sizeof line, file) != NULL, "fopen");
    printf("read %s", line);
    fclose(file);
}

static void close_output(void) {
    close(STDOUT_FILENO);
}

static void move_output(void) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

static void close_events(void) {
    close(near_end.context->async_fd);
}

static void set_timer(void) {
    alarm(100);
}

static void end_at_once(void) {
    _exit(4);
}

static void die(void) {
    *(volatile int*)NULL = 1;
}

typedef void (*odd_act)(void);
static const odd_act kOddActs[] = {fill_bss,      fill_heap,
                                   free_large,    grow_large,
                                   allocate_much, map_pages,
                                   share_pages,   set_variable,
                                   handle_signal, block_signals,
                                   start_thread,  start_process,
                                   start_shell,   use_pipe,
                                   read_file,     close_output,
                                   move_output,   close_events,
                                   set_timer,     end_at_once,
                                   abort,         die};

static void describe(const char* when) {
    unsigned sum = 0;
    for (int i = 0; i < kBss; i += 97) {
        sum = sum * 31 + in_bss[i];
    }
    for (int i = 0; i < kHeap; i += 97) {
        sum = sum * 31 + in_heap[i];
    }
    printf("%s: %d, sum %u, large %d, variable %s, process %d\n", when, in_data, sum,
           large == NULL ? -1 : large[7], getenv("OF_A_BRANCH"), getpid());
}

/* Each place has a number of its own. */
static void be_odd(int place) {
    in_data += place;
    describe("before");
    kOddActs[(size_t)place % (sizeof kOddActs / sizeof *kOddActs)]();
    fflush(stdout);
    longjmp(start, 1);
}

static void exchange(int message) {
    struct end* const ends[] = {&near_end, &far_end};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    post_receive(&far_end, (uint64_t)message, 0, kLength);
    post_send(&near_end, &wr, kLength);
    for (int polls = 0, done = 0; done < 2; ++polls) {
        for (int i = 0; i < 2; ++i) {
            struct ibv_wc wc;
            const int found = ibv_poll_cq(ends[i]->cq, 1, &wc);
            if (found < 0) {
                be_odd(1 + message);
            } else if (found > 0 && wc.status != IBV_WC_SUCCESS) {
                be_odd(10 + (int)wc.status + 3 * message + i);
            }
            done += found;
        }
        if (polls == kEmptyPolls) {
            be_odd(50 + message);
        }
    }
    memset(in_heap + message * 1000, message, 1000);
}

int main(void) {
    in_heap = calloc(1, kHeap);
    large = calloc(1, 700000);
    check(in_heap != NULL && large != NULL, "calloc");
    memset(in_bss, 5, kBss);
    printf("begins\n"); /* stays in the buffer of the stream for the time being */
    if (setjmp(start) != 0) {
        describe("after");
        return 1;
    }
    open_ends((struct connection){.timeout = 8, .retries = 1, .rnr_retries = 1});
    for (int i = 0; i < kMessages; ++i) {
        exchange(i);
    }
    describe("all went well");
    close_ends();
    free(in_heap);
    free(large);
    return 0;
}

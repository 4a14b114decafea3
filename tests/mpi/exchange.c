// Exchanges messages in every way that MPI has, and looks at every byte: a ring of messages of 1 B
// to 1 MiB, collectives, one-sided operations. Ends with MPI_Abort() where one is wrong.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20 };

static int rank, ranks;

static void fail(const char* what, int at) {
    fprintf(stderr, "rank %d: %s differs at %d\n", rank, what, at);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// Returns the byte at place `at` of a message of `size` bytes; its lowest bits differ for each
// place.
static unsigned char content(int from, int to, int size, int at) {
    return (unsigned char)(from * 31 + to * 17 + size * 7 + at * 13 + at / 251);
}

static void fill(unsigned char* bytes, int from, int to, int size) {
    for (int i = 0; i < size; ++i) {
        bytes[i] = content(from, to, size, i);
    }
}

static void check(const unsigned char* bytes, int from, int to, int size, const char* what) {
    for (int i = 0; i < size; ++i) {
        if (bytes[i] != content(from, to, size, i)) {
            fail(what, i);
        }
    }
}

// Each rank sends to the next.
static void ring(unsigned char* out, unsigned char* in) {
    const int next = (rank + 1) % ranks;
    const int previous = (rank + ranks - 1) % ranks;
    for (int size = 1; size <= MOST; size *= 4) {
        fill(out, rank, next, size);
        MPI_Sendrecv(out, size, MPI_BYTE, next, 1, in, size, MPI_BYTE, previous, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        check(in, previous, rank, size, "the ring");
    }
}

static void collectives(unsigned char* out, unsigned char* in) {
    enum { SHARED = 65536, EACH = 4096, NUMBERS = 1000 };
    for (int root = 0; root < ranks; ++root) {
        if (rank == root) {
            fill(out, root, root, SHARED);
        }
        MPI_Bcast(out, SHARED, MPI_BYTE, root, MPI_COMM_WORLD);
        check(out, root, root, SHARED, "the broadcast");
    }
    for (int to = 0; to < ranks; ++to) {
        fill(out + to * EACH, rank, to, EACH);
    }
    MPI_Alltoall(out, EACH, MPI_BYTE, in, EACH, MPI_BYTE, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; ++from) {
        check(in + from * EACH, from, rank, EACH, "the exchange of all");
    }
    int64_t mine[NUMBERS];
    int64_t sum[NUMBERS];
    for (int i = 0; i < NUMBERS; ++i) {
        mine[i] = (int64_t)rank * NUMBERS + i;
    }
    MPI_Allreduce(mine, sum, NUMBERS, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < NUMBERS; ++i) {
        const int64_t of_ranks = (int64_t)ranks * (ranks - 1) / 2 * NUMBERS;
        if (sum[i] != of_ranks + (int64_t)ranks * i) {
            fail("the sum", i);
        }
    }
}

// Puts to the next rank, gets what the previous one was put, and counts all ranks at rank 0.
static void one_sided(unsigned char* out) {
    enum { BYTES = 65536 };
    unsigned char* exposed;
    MPI_Win window;
    MPI_Win_allocate(BYTES + sizeof(int64_t), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &exposed, &window);
    memset(exposed, 0, BYTES + sizeof(int64_t));
    const int next = (rank + 1) % ranks;
    const int previous = (rank + ranks - 1) % ranks;
    fill(out, rank, next, BYTES);
    MPI_Win_fence(0, window);
    MPI_Put(out, BYTES, MPI_BYTE, next, 0, BYTES, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    check(exposed, previous, rank, BYTES, "what was put");
    memset(out, 0, BYTES);
    MPI_Get(out, BYTES, MPI_BYTE, previous, 0, BYTES, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    check(out, (previous + ranks - 1) % ranks, previous, BYTES, "what was got");
    const int64_t one = 1;
    int64_t before;
    MPI_Win_lock_all(0, window);
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, BYTES, MPI_SUM, window);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    int64_t count;
    memcpy(&count, exposed + BYTES, sizeof count);
    if (rank == 0 && count != ranks) {
        fail("the counter", (int)count);
    }
    MPI_Win_free(&window);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    unsigned char* out = malloc(MOST);
    unsigned char* in = malloc(MOST);
    ring(out, in);
    collectives(out, in);
    one_sided(out);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks: all bytes as expected\n", ranks);
    MPI_Finalize();
    free(out);
    free(in);
    return 0;
}

// Memory that all ranks of OpenSHMEM share: each puts a block to its neighbour, reads one back,
// counts by atomics at rank 0, and reduces; every byte and number is looked at.
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBlock = 256 * 1024, kRounds = 8 };

static int from_neighbour[kBlock];
static int read_back[kBlock];
static long counter = 0;
static long swapped = -1;
static int largest_of[1];
static int largest = 0;
static int work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static long synchronised[SHMEM_REDUCE_SYNC_SIZE];

static void expect(int holds, const char* what) {
    if (!holds) {
        fprintf(stderr, "rank %d: %s\n", shmem_my_pe(), what);
        shmem_global_exit(1);
    }
}

static int value(int rank, int round, int at) {
    return rank * 1000003 + round * 7919 + at;
}

static void put_and_get(int rank, int ranks, int* block) {
    const int next = (rank + 1) % ranks;
    const int before = (rank + ranks - 1) % ranks;
    for (int round = 0; round < kRounds; ++round) {
        for (int i = 0; i < kBlock; ++i) {
            block[i] = value(rank, round, i);
        }
        shmem_int_put(from_neighbour, block, kBlock, next);
        shmem_barrier_all();
        for (int i = 0; i < kBlock; ++i) {
            expect(from_neighbour[i] == value(before, round, i), "a block that was put is wrong");
        }
        shmem_int_get(read_back, from_neighbour, kBlock, next);
        for (int i = 0; i < kBlock; ++i) {
            expect(read_back[i] == value(rank, round, i), "a block that was read is wrong");
        }
        shmem_barrier_all();
    }
}

static void count(int rank, int ranks) {
    for (int i = 0; i < 100; ++i) {
        shmem_long_atomic_add(&counter, 1, 0);
    }
    const long winner = shmem_long_atomic_compare_swap(&swapped, -1, rank, 0);
    expect(winner >= -1 && winner < ranks, "a swap returned what nobody wrote");
    shmem_barrier_all();
    expect(shmem_long_atomic_fetch(&counter, 0) == 100L * ranks, "the counter is wrong");
    expect(shmem_long_atomic_fetch(&swapped, 0) >= 0, "nobody has swapped");
}

int main(void) {
    shmem_init();
    const int rank = shmem_my_pe();
    const int ranks = shmem_n_pes();
    int* const block = malloc(kBlock * sizeof *block);
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; ++i) {
        synchronised[i] = SHMEM_SYNC_VALUE;
    }
    shmem_barrier_all();
    put_and_get(rank, ranks, block);
    count(rank, ranks);
    largest_of[0] = rank * 3;
    shmem_int_max_to_all(&largest, largest_of, 1, 0, 0, ranks, work, synchronised);
    expect(largest == (ranks - 1) * 3, "the reduction is wrong");
    shmem_barrier_all();
    if (rank == 0) {
        printf("%d ranks: all bytes as expected\n", ranks);
    }
    free(block);
    shmem_finalize();
    return 0;
}

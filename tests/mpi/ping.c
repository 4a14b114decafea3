/* Times messages of 8 bytes between the first and the last rank, while the others wait in a
 * barrier, and checks them. Prints the median of five rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRounds = 5, kMessages = 2000 };

static int compare(const void* a, const void* b) {
    const double left = *(const double*)a;
    const double right = *(const double*)b;
    return (left > right) - (left < right);
}

static void check(long long received, long long sent) {
    if (received != sent) {
        fprintf(stderr, "received %lld in place of %lld\n", received, sent);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
}

/* Returns the seconds of a half round trip. */
static double play(int rank, int last) {
    const int peer = last - rank;
    const double begin = MPI_Wtime();
    for (long long i = 0; i < kMessages; ++i) {
        long long word = i;
        if (rank == 0) {
            MPI_Send(&word, 1, MPI_LONG_LONG, peer, 0, MPI_COMM_WORLD);
        }
        word = -1;
        MPI_Recv(&word, 1, MPI_LONG_LONG, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(word, rank == 0 ? -i : i);
        if (rank != 0) {
            word = -i;
            MPI_Send(&word, 1, MPI_LONG_LONG, peer, 0, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - begin) / kMessages / 2;
}

int main(int argc, char** argv) {
    int rank = 0;
    int size = 0;
    double seconds[kRounds] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < kRounds; ++round) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0 || rank == size - 1) {
            seconds[round] = play(rank, size - 1);
        }
    }
    qsort(seconds, kRounds, sizeof seconds[0], compare);
    if (rank == 0) {
        printf("8 B half round trip: %.1f us\n", seconds[kRounds / 2] * 1e6);
    }
    MPI_Finalize();
    return 0;
}

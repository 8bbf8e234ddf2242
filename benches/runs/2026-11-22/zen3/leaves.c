/* Runs versions of dot leaves, for up to eight tokens, over weights in memory, taking turns as reads.c does.
 *
 *   cc -O2 leaves.c -o leaves -lpthread && ./leaves TILE_BYTES THREADS FILE..
 *
 * A file holds a leaf's machine code, as kernmill_kernels::wide::assemble gives it; one whose name has "one_" in it takes one tile at a time, others four.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define CHUNK ((size_t)8 << 20)
#define MEMORY ((size_t)3 << 30)
#define ROUNDS 600
#define MOST 16
#define CODE 65536
#define TOKENS 8

typedef void leaf(const char *tiles, const char *const *rows, float *out, uint64_t stride);

static leaf *leaves[MOST];
static int tiles[MOST];
static size_t tile_bytes;
static char *memory;
static pthread_barrier_t barrier;
static volatile int current;
static volatile size_t position;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static size_t tiles_of_chunk(void) { return CHUNK / (4 * tile_bytes) * 4; }

static void work(int worker) {
    const char *weights = memory + position + worker * CHUNK, *rows[TOKENS];
    float out[TOKENS * 64] __attribute__((aligned(64)));
    int step = tiles[current];
    for (int i = 0; i < TOKENS; i++) rows[i] = memory + MEMORY + (worker << 16) + (i << 12);
    for (size_t tile = 0; tile < tiles_of_chunk(); tile += step) leaves[current](weights + tile * tile_bytes, rows, out, 256);
}

static void *helper(void *unused) {
    (void)unused;
    for (;;) {
        pthread_barrier_wait(&barrier);
        work(1);
        pthread_barrier_wait(&barrier);
    }
    return 0;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **arguments) {
    static double times[MOST][ROUNDS];
    int versions = count - 3, threads = count > 3 ? atoi(arguments[2]) : 0;
    pthread_t other;
    if (versions < 1 || versions > MOST) return 2;
    tile_bytes = atol(arguments[1]);
    memory = mmap(0, MEMORY + (4 << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, MEMORY + (4 << 20), MADV_HUGEPAGE);
    /* Normal numbers as scales of every format. */
    memset(memory, 0x3c, MEMORY + (4 << 20));
    for (int i = 0; i < versions; i++) {
        void *code = mmap(0, CODE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        FILE *file = fopen(arguments[3 + i], "rb");
        if (!file || !fread(code, 1, CODE, file)) return 1;
        fclose(file);
        leaves[i] = (leaf *)code;
        tiles[i] = strstr(arguments[3 + i], "one_") ? 1 : 4;
    }
    pthread_barrier_init(&barrier, 0, 2);
    if (threads == 2) pthread_create(&other, 0, helper, 0);
    size_t next = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < versions; i++) {
            current = (i + round) % versions;
            position = next;
            next = next + 5 * CHUNK > MEMORY ? 0 : next + 2 * CHUNK;
            double start = seconds();
            if (threads == 2) pthread_barrier_wait(&barrier);
            work(0);
            if (threads == 2) pthread_barrier_wait(&barrier);
            times[current][round] = seconds() - start;
        }
    for (int i = 0; i < versions; i++) {
        qsort(times[i], ROUNDS, sizeof(double), compare);
        double gb = threads * (double)(tiles_of_chunk() * tile_bytes) / 1e9;
        printf("%s, threads %d: median %.1f, quartiles %.1f %.1f GB/s\n", arguments[3 + i], threads, gb / times[i][ROUNDS / 2],
               gb / times[i][ROUNDS * 3 / 4], gb / times[i][ROUNDS / 4]);
    }
    exit(0);
}

/* Reads memory in several ways, which take turns: 8 MB each, so that what neighbours do to the memory is done to all of them alike.
 *
 *   cc -O2 -mavx2 reads.c -o reads -lpthread && ./reads 1 && ./reads 2        the number of threads
 *
 * A way has so many streams, which take turns after so many lines, and prefetches so many bytes ahead of each. With a gap, streams are that far
 * apart, as tiles of weights are; without, as far as the 8 MB allow.
 */
#include <immintrin.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define CHUNK ((size_t)8 << 20)
#define MEMORY ((size_t)3 << 30)
#define ROUNDS 400

static const struct way {
    int streams, lines, ahead;
    size_t gap;
} WAYS[] = {
    {1, 1, 1024, 0},     {2, 1, 1024, 0},     {4, 1, 512, 0},       {4, 1, 1024, 0},      {4, 1, 2048, 0},      {4, 2, 1024, 0},
    {4, 4, 1024, 0},     {4, 8, 1024, 0},     {8, 1, 512, 0},       {8, 1, 1024, 0},      {16, 1, 512, 0},      {1, 1, 1024, 24576},
    {2, 1, 1024, 24576}, {4, 1, 512, 24576},  {4, 1, 1024, 24576},  {4, 2, 1024, 24576},  {4, 4, 1024, 24576},
};
#define COUNT ((int)(sizeof WAYS / sizeof *WAYS))

static char *memory;
static pthread_barrier_t barrier;
static volatile int current;
static volatile size_t position;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static __attribute__((noinline)) long long read_streams(const char *base, size_t bytes, struct way way) {
    __m256i a = _mm256_setzero_si256(), b = a;
    for (size_t at = 0; at < bytes; at += 64 * way.lines)
        for (int stream = 0; stream < way.streams; stream++) {
            const char *place = base + stream * bytes + at;
            for (int line = 0; line < way.lines; line++) {
                _mm_prefetch(place + way.ahead + line * 64, _MM_HINT_T1);
                a = _mm256_xor_si256(a, _mm256_loadu_si256((const void *)(place + line * 64)));
                b = _mm256_xor_si256(b, _mm256_loadu_si256((const void *)(place + line * 64 + 32)));
            }
        }
    return _mm256_extract_epi64(_mm256_xor_si256(a, b), 0);
}

static size_t bytes_of(struct way way) { return way.gap ? CHUNK / (way.gap * way.streams) * way.gap * way.streams : CHUNK; }

static void work(int worker) {
    struct way way = WAYS[current];
    const char *base = memory + position + worker * CHUNK;
    size_t stream = way.gap ? way.gap : CHUNK / way.streams;
    volatile long long sum = 0;
    for (size_t at = 0; at < bytes_of(way); at += stream * way.streams) sum += read_streams(base + at, stream, way);
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
    int threads = count > 1 ? atoi(arguments[1]) : 1;
    static double times[COUNT][ROUNDS];
    pthread_t other;
    memory = mmap(0, MEMORY + (4 << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, MEMORY + (4 << 20), MADV_HUGEPAGE);
    memset(memory, 0x3c, MEMORY + (4 << 20));
    pthread_barrier_init(&barrier, 0, 2);
    if (threads == 2) pthread_create(&other, 0, helper, 0);
    size_t next = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < COUNT; i++) {
            current = (i + round) % COUNT;
            position = next;
            next = next + 5 * CHUNK > MEMORY ? 0 : next + 2 * CHUNK;
            double start = seconds();
            if (threads == 2) pthread_barrier_wait(&barrier);
            work(0);
            if (threads == 2) pthread_barrier_wait(&barrier);
            times[current][round] = seconds() - start;
        }
    for (int i = 0; i < COUNT; i++) {
        qsort(times[i], ROUNDS, sizeof(double), compare);
        double gb = threads * (double)bytes_of(WAYS[i]) / 1e9;
        printf("threads %d, streams %2d, lines %d, ahead %4d, gap %5zu: median %.1f, quartiles %.1f %.1f GB/s\n", threads, WAYS[i].streams,
               WAYS[i].lines, WAYS[i].ahead, WAYS[i].gap, gb / times[i][ROUNDS / 2], gb / times[i][ROUNDS * 3 / 4], gb / times[i][ROUNDS / 4]);
    }
    exit(0);
}

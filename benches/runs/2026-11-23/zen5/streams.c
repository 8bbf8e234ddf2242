// How fast two threads stream MXFP4 weights, by the order in which their lines are read: gcc -O3 -march=native streams.c -o streams -lpthread; ./streams ROUNDS
// Every variant reads 32 MB a thread in turn with the others; printed are medians, and the median [quartiles] of the ratio to a plain read of four places in the same round.
//
// Arithmetic is that of the leaf of adjacent tiles: 16 rows, blocks of 32 k in four lines, a byte of scale a row and block. A tile has its scales first and k = 2880
// unless it says otherwise. "N together" goes through N tiles line by line in turn and fetches the bytes of each that lie so far ahead, near the tiles' end those of
// the N behind them. "Linear" takes one tile after the other and fetches all bytes, scales too, in the order in which they lie.
#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef uint8_t u8;
enum { L1 = 0, L2 = 1 };
#define PIECE (32L << 20)
#define TOTAL (6L << 30)
#define EACH(n) _Pragma("GCC unroll 16") for (int s = 0; s < n; s++)

// Bytes of scales and data, blocks.
typedef struct { long scales, data; int blocks; } Tile;
static const Tile K2880 = {1472, 23040, 90}, LONG8 = {1472 * 8, 23040 * 8, 720}, NO_SCALES = {0, 23040, 90};
static u8 *memory, *row;

static inline __attribute__((always_inline)) void fetch(const void *p, int level) {
  if (level == L1) _mm_prefetch(p, _MM_HINT_T0); else _mm_prefetch(p, _MM_HINT_T1);
}

#define READ(n) static void read##n(const u8 *p, long ahead, int level) { \
  long part = PIECE / n; \
  for (long i = 0; i < part; i += 64) EACH(n) { \
    fetch(p + i + s * part + ahead, level); \
    __m512i line = _mm512_loadu_si512(p + i + s * part); \
    __asm__ volatile("" ::"v"(line)); } }
READ(1) READ(2) READ(4)

#define BLOCK(n, scale_at, scale_step, data_at, fetch_at) { \
  __m512i anchor[n], sum[n]; \
  __m512i first = _mm512_dpwssd_epi32(_mm512_setzero_si512(), factor, _mm512_set1_epi32(*(int *)(row + 4096 + b * 4))); \
  EACH(n) { \
    __m512i byte = _mm512_cvtepu8_epi32(_mm_loadu_si128((void *)((scale_at) + s * (scale_step)))); \
    anchor[s] = _mm512_add_epi32(_mm512_slli_epi32(byte, 23), base); sum[s] = _mm512_add_epi32(first, anchor[s]); } \
  _Pragma("GCC unroll 4") for (int l = 0; l < 4; l++) { \
    __m512i low = _mm512_set1_epi32(*(int *)(row + b * 32 + l * 8)), high = _mm512_set1_epi32(*(int *)(row + b * 32 + l * 8 + 4)); \
    EACH(n) { \
      fetch((fetch_at) + s * step + l * 64, level); \
      __m512i w = _mm512_loadu_si512((data_at) + s * step + l * 64), v = _mm512_srli_epi16(w, 4); \
      sum[s] = _mm512_dpbusd_epi32(sum[s], _mm512_permutexvar_epi8(w, table), low); \
      sum[s] = _mm512_dpbusd_epi32(sum[s], _mm512_permutexvar_epi8(v, table), high); } } \
  EACH(n) { \
    __m512 value = _mm512_sub_ps((__m512)sum[s], (__m512)anchor[s]); \
    total[s] = _mm512_fmadd_ps(value, _mm512_set1_ps(*(float *)(row + 6144 + b * 4)), total[s]); } }

#define CONSTANTS \
  const __m512i table = _mm512_loadu_si512(row + 8192), base = _mm512_set1_epi32(0x0b400000), factor = _mm512_set1_epi32(0xfff4);

#define TOGETHER(n) static __attribute__((noinline)) void together##n(const u8 *p, long step, Tile t, long ahead, int level, float *out) { \
  CONSTANTS __m512 total[n]; EACH(n) total[s] = _mm512_setzero_ps(); \
  const u8 *scales = p, *data = p + t.scales, *next = p + n * step, *later = data + ahead; \
  int own = t.blocks - (ahead + 255) / 256; \
  for (int b = 0; b < t.blocks; b++) { \
    if (b == own) later = next + t.scales + (b * 256L + ahead - t.data); \
    if (t.scales && b % 4 == 0) EACH(n) fetch(next + b * 16 + s * step, level); \
    if (t.scales) BLOCK(n, scales, step, data, later) else BLOCK(n, row + b % 4 * 16, 64, data, later) \
    scales += 16; data += 256; later += 256; } \
  EACH(n) _mm512_storeu_ps(out + 16 * s, total[s]); }
TOGETHER(4) TOGETHER(2) TOGETHER(1)

static __attribute__((noinline)) void linear1(const u8 *p, long step, Tile t, long ahead, int level, float *out) {
  CONSTANTS __m512 total[1] = {_mm512_setzero_ps()};
  const u8 *scales = p, *data = p + t.scales, *later = p + ahead;
  for (int b = 0; b < t.blocks; b++) {
    if (b % 4 == 0) { fetch(later, level); later += 64; }
    BLOCK(1, scales, step, data, later)
    scales += 16; data += 256; later += 256;
  }
  _mm512_storeu_ps(out, total[0]);
}

typedef void (*Read)(const u8 *, long, int);
typedef void (*Leaf)(const u8 *, long, Tile, long, int, float *);
typedef struct { const char *name; Read read; Leaf leaf; int tiles; int far; const Tile *tile; long ahead; int level; } Variant;
static const Variant VARIANTS[] = {
  {"read 4 places, 1 KiB ahead into L2", read4, 0, 0, 0, 0, 1024, L2},
  {"read 4 places, 1 KiB ahead into L1", read4, 0, 0, 0, 0, 1024, L1},
  {"read 2 places, 2 KiB ahead into L1", read2, 0, 0, 0, 0, 2048, L1},
  {"read 1 place, 2 KiB ahead into L1", read1, 0, 0, 0, 0, 2048, L1},
  {"4 together, 1 KiB into L2", 0, together4, 4, 0, &K2880, 1024, L2},
  {"4 together, 1 KiB into L1", 0, together4, 4, 0, &K2880, 1024, L1},
  {"4 together, 2 KiB into L2", 0, together4, 4, 0, &K2880, 2048, L2},
  {"2 together, 2 KiB into L1", 0, together2, 2, 0, &K2880, 2048, L1},
  {"2 together, 4 KiB into L1", 0, together2, 2, 0, &K2880, 4096, L1},
  {"2 together, tiles 8 times as long", 0, together2, 2, 0, &LONG8, 2048, L1},
  {"2 together, no scales", 0, together2, 2, 0, &NO_SCALES, 2048, L1},
  {"2 together, no scales, no jumps", 0, together2, 2, 1, &NO_SCALES, 2048, L1},
  {"1 at a time, 2 KiB into L1", 0, together1, 1, 0, &K2880, 2048, L1},
  {"linear, 2 KiB into L1", 0, linear1, 1, 0, &K2880, 2048, L1},
  {"linear, 4 KiB into L1", 0, linear1, 1, 0, &K2880, 4096, L1},
  {"linear, 6 KiB into L1", 0, linear1, 1, 0, &K2880, 6144, L1},
  {"linear, 8 KiB into L1", 0, linear1, 1, 0, &K2880, 8192, L1},
  {"linear, 8 KiB into L2", 0, linear1, 1, 0, &K2880, 8192, L2},
};
#define COUNT ((int)(sizeof VARIANTS / sizeof *VARIANTS))

// Bytes read of a thread's piece. "far": tiles that go together lie a part of the piece apart, so that each place is read on without jumps.
static long run(const Variant *v, const u8 *p) {
  if (v->read) { v->read(p, v->ahead, v->level); return PIECE; }
  float out[64];
  long size = v->tile->scales + v->tile->data, groups = PIECE / size / v->tiles;
  for (long g = 0; g < groups; g++) {
    if (v->far) v->leaf(p + g * size, groups * size, *v->tile, v->ahead, v->level, out);
    else v->leaf(p + g * v->tiles * size, size, *v->tile, v->ahead, v->level, out);
  }
  return groups * v->tiles * size;
}

static pthread_barrier_t barrier;
static const Variant *current;
static long offset, done[2];

static void *work(void *argument) {
  long id = (long)argument;
  cpu_set_t cpus;
  CPU_ZERO(&cpus); CPU_SET(id, &cpus); sched_setaffinity(0, sizeof cpus, &cpus);
  for (;;) {
    pthread_barrier_wait(&barrier);
    if (!current) return 0;
    done[id] = run(current, memory + offset + id * PIECE);
    pthread_barrier_wait(&barrier);
  }
}

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static int compare(const void *a, const void *b) { double x = *(double *)a, y = *(double *)b; return (x > y) - (x < y); }

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 100;
  memory = mmap(0, TOTAL + (2L << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memory = (u8 *)(((uintptr_t)memory + (2L << 20) - 1) & -(2L << 20));
  madvise(memory, TOTAL, MADV_HUGEPAGE);
  memset(memory, 0x3c, TOTAL);
  row = aligned_alloc(64, 65536); memset(row, 0x3c, 65536);
  double *rates = calloc(COUNT * rounds, sizeof *rates), *ratios = calloc(COUNT * rounds, sizeof *rates);
  pthread_barrier_init(&barrier, 0, 3);
  pthread_t threads[2];
  for (long id = 0; id < 2; id++) pthread_create(&threads[id], 0, work, (void *)id);
  for (int round = 0; round < rounds; round++) for (int v = 0; v < COUNT; v++) {
    current = &VARIANTS[v];
    offset = (offset + 2 * PIECE) % (TOTAL - 3 * PIECE);
    double start = now();
    pthread_barrier_wait(&barrier); pthread_barrier_wait(&barrier);
    rates[v * rounds + round] = (done[0] + done[1]) / (now() - start) / 1e9;
    ratios[v * rounds + round] = rates[v * rounds + round] / rates[round];
  }
  for (int v = 0; v < COUNT; v++) {
    double *rate = rates + v * rounds, *ratio = ratios + v * rounds;
    qsort(rate, rounds, sizeof *rate, compare); qsort(ratio, rounds, sizeof *ratio, compare);
    printf("%-36s %5.1f GB/s  %.3f [%.3f, %.3f]\n", VARIANTS[v].name, rate[rounds / 2], ratio[rounds / 2], ratio[rounds / 4], ratio[3 * rounds / 4]);
  }
  current = 0;
  pthread_barrier_wait(&barrier);
  for (int id = 0; id < 2; id++) pthread_join(threads[id], 0);
}

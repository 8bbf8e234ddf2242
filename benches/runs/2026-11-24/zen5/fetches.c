// What keeps one place of MXFP4 weights from streaming as fast as a plain read where memory is fast: gcc -O3 -march=native fetches.c -o fetches -lpthread; ./fetches ROUNDS
// Every variant reads 32 MB a thread in turn with the others, with two threads, in rounds that begin with four reads of 62 GB/s in the mean (slower ones are begun anew); printed are medians, and the
// median [quartiles] of the ratio to the first read of the round, by the mean of the round's four reads.
//
// Arithmetic and layout are those of streams.c of the day before, with tiles of 92 blocks, one after the other, scales fetched with the data as they lie.
// gcc gathers the prefetches of a turn of four blocks at its head: those are the bursts.
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
#ifndef FLOOR
#define FLOOR 62
#endif
#define EACH(n) _Pragma("GCC unroll 16") for (int s = 0; s < n; s++)

// Bytes of scales and data, blocks.
typedef struct { long scales, data; int blocks; } Tile;
static const Tile K2880 = {1472, 23552, 92};
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
READ(1) READ(4)
static void only(const u8 *p, long ahead, int level) { for (long i = 0; i < PIECE; i += 64) { fetch(p + i, level); } }

#define CONSTANTS \
  const __m512i table = _mm512_loadu_si512(row + 8192), base = _mm512_set1_epi32(0x0b400000), factor = _mm512_set1_epi32(0xfff4);

#define LINEAR(NAME, FETCH, FS, ACT) static __attribute__((noinline)) void NAME(const u8 *p, long step, Tile t, long ahead, int level, float *out) { \
  CONSTANTS __m512 total[1] = {_mm512_setzero_ps()}; \
  const u8 *scales = p, *data = p + t.scales, *later = p + ahead; \
  __m512i I[8]; EACH(8) { I[s] = _mm512_set1_epi32(s); __asm__("" : "+v"(I[s])); } \
  for (int b = 0; b < t.blocks; b++) { \
    if (b % 4 == 0) { FS(later) later += 64; } \
    __m512i anchor, sum; \
    __m512i first = _mm512_dpwssd_epi32(_mm512_setzero_si512(), factor, _mm512_set1_epi32(*(int *)(row + 4096 + b * 4))); \
    __m512i byte = _mm512_cvtepu8_epi32(_mm_loadu_si128((void *)(scales))); \
    __m512i acts = _mm512_castsi256_si512(_mm256_loadu_si256((void*)(row + b * 32))); \
    anchor = _mm512_add_epi32(_mm512_slli_epi32(byte, 23), base); sum = _mm512_add_epi32(first, anchor); \
    _Pragma("GCC unroll 4") for (int l = 0; l < 4; l++) { \
      FETCH(later + l * 64, l) \
      __m512i w = _mm512_loadu_si512(data + l * 64); __asm__("" : "+v"(w)); __m512i v = _mm512_srli_epi16(w, 4); \
      sum = _mm512_dpbusd_epi32(sum, _mm512_permutexvar_epi8(w, table), ACT(2 * l)); \
      sum = _mm512_dpbusd_epi32(sum, _mm512_permutexvar_epi8(v, table), ACT(2 * l + 1)); } \
    __m512 value = _mm512_sub_ps((__m512)sum, (__m512)anchor); \
    total[0] = _mm512_fmadd_ps(value, _mm512_set1_ps(*(float *)(row + 6144 + b * 4)), total[0]); \
    scales += 16; data += 256; later += 256; } \
  _mm512_storeu_ps(out, total[0]); }
#define UNROLLED(NAME, FETCH, FS, ACT) static __attribute__((noinline)) void NAME(const u8 *p, long step, Tile t, long ahead, int level, float *out) { \
  CONSTANTS __m512 total[1] = {_mm512_setzero_ps()}; \
  const u8 *scales = p, *data = p + t.scales, *later = p + ahead; \
  __m512i I[8]; EACH(8) { I[s] = _mm512_set1_epi32(s); __asm__("" : "+v"(I[s])); } \
  for (int b4 = 0; b4 + 4 <= t.blocks; b4 += 4) { FS(later) later += 64; _Pragma("GCC unroll 4") for (int b = b4; b < b4 + 4; b++) { \
    __m512i anchor, sum; \
    __m512i first = _mm512_dpwssd_epi32(_mm512_setzero_si512(), factor, _mm512_set1_epi32(*(int *)(row + 4096 + b * 4))); \
    __m512i byte = _mm512_cvtepu8_epi32(_mm_loadu_si128((void *)(scales))); \
    __m512i acts = _mm512_castsi256_si512(_mm256_loadu_si256((void*)(row + b * 32))); \
    anchor = _mm512_add_epi32(_mm512_slli_epi32(byte, 23), base); sum = _mm512_add_epi32(first, anchor); \
    _Pragma("GCC unroll 4") for (int l = 0; l < 4; l++) { \
      FETCH(later + l * 64, l) \
      __m512i w = _mm512_loadu_si512(data + l * 64); __asm__("" : "+v"(w)); __m512i v = _mm512_srli_epi16(w, 4); \
      sum = _mm512_dpbusd_epi32(sum, _mm512_permutexvar_epi8(w, table), ACT(2 * l)); \
      sum = _mm512_dpbusd_epi32(sum, _mm512_permutexvar_epi8(v, table), ACT(2 * l + 1)); } \
    __m512 value = _mm512_sub_ps((__m512)sum, (__m512)anchor); \
    total[0] = _mm512_fmadd_ps(value, _mm512_set1_ps(*(float *)(row + 6144 + b * 4)), total[0]); \
    scales += 16; data += 256; later += 256; } } \
  _mm512_storeu_ps(out, total[0]); }
#define BC(n) _mm512_set1_epi32(*(int *)(row + b * 32 + (n) * 4))
static inline __attribute__((always_inline)) __m512i alone(const u8 *p) { __m512i x = _mm512_set1_epi32(*(int *)p); __asm__("" : "+v"(x)); return x; }
#define UN(n) alone(row + b * 32 + (n) * 4)
#define PERM(n) _mm512_permutexvar_epi32(I[n], acts)
#define CONST(n) I[n]
#define F0(q, l) _mm_prefetch((q), _MM_HINT_T0);
#define FN(q, l) _mm_prefetch((q), _MM_HINT_NTA);
#define FE(q, l) if (l % 2 == 0) _mm_prefetch((q), _MM_HINT_T0);
#define F2(q, l) F0(q, l) _mm_prefetch((q) - 2048, _MM_HINT_T0);
#define S2(q) S0(q) _mm_prefetch((q) - 2048, _MM_HINT_T0);
#define CLOCK(q, from, how) { long z = *(unsigned *)(from); __asm__ volatile("and $0, %k0\n\t" how " (%0,%1)" : "+r"(z) : "r"(q) : "memory"); }
#define FC(q, l) CLOCK(q, data + l * 64, "prefetcht0")
#define SC(q) CLOCK(q, data, "prefetcht0")
#define S0(q) _mm_prefetch((q), _MM_HINT_T0);
#define SN(q) _mm_prefetch((q), _MM_HINT_NTA);
LINEAR(fused, F0, S0, BC) LINEAR(alone1, F0, S0, UN) UNROLLED(fused4, F0, S0, BC) UNROLLED(alone4, F0, S0, UN) LINEAR(vpermd, F0, S0, PERM) LINEAR(constant, F0, S0, CONST)
LINEAR(even, FE, S0, BC) LINEAR(twice, F2, S2, BC) LINEAR(nta, FN, SN, BC) LINEAR(clocked, FC, SC, UN)
typedef void (*Read)(const u8 *, long, int);
typedef void (*Leaf)(const u8 *, long, Tile, long, int, float *);
typedef struct { const char *name; Read read; Leaf leaf; int tiles; int far; const Tile *tile; long ahead; int level; } Variant;
static const Variant VARIANTS[] = {
  {"read 4 places, 1 KiB ahead into L2", read4, 0, 0, 0, 0, 1024, L2},
  {"read 4 places, 1 KiB ahead into L2", read4, 0, 0, 0, 0, 1024, L2},
  {"read 4 places, 1 KiB ahead into L2", read4, 0, 0, 0, 0, 1024, L2},
  {"read 4 places, 1 KiB ahead into L2", read4, 0, 0, 0, 0, 1024, L2},
  {"read 1 place, 2 KiB ahead into L1", read1, 0, 0, 0, 0, 2048, L1},
  {"read 1 place, 6 KiB ahead into L1", read1, 0, 0, 0, 0, 6144, L1},
  {"only prefetches, into L1", only, 0, 0, 0, 0, 0, L1},
  {"only prefetches, into L2", only, 0, 0, 0, 0, 0, L2},
  {"broadcast by the product", 0, fused, 1, 0, &K2880, 6144, L1},
  {"broadcast by itself", 0, alone1, 1, 0, &K2880, 6144, L1},
  {"by the product, bursts of 17", 0, fused4, 1, 0, &K2880, 6144, L1},
  {"by itself, bursts of 17", 0, alone4, 1, 0, &K2880, 6144, L1},
  {"activations by vpermd", 0, vpermd, 1, 0, &K2880, 6144, L1},
  {"activations constant", 0, constant, 1, 0, &K2880, 6144, L1},
  {"every second line", 0, even, 1, 0, &K2880, 6144, L1},
  {"asked for again 2 KiB later", 0, twice, 1, 0, &K2880, 6144, L1},
  {"prefetchnta", 0, nta, 1, 0, &K2880, 6144, L1},
  {"once its line is there, 2 KiB ahead", 0, clocked, 1, 0, &K2880, 2048, L1},
  {"once its line is there, 4 KiB ahead", 0, clocked, 1, 0, &K2880, 4096, L1},
  {"once its line is there, 6 KiB ahead", 0, clocked, 1, 0, &K2880, 6144, L1},
  {"once its line is there, 8 KiB ahead", 0, clocked, 1, 0, &K2880, 8192, L1},
  {"once its line is there, 12 KiB ahead", 0, clocked, 1, 0, &K2880, 12288, L1},
  {"broadcast by itself", 0, alone1, 1, 0, &K2880, 6144, L1},
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
  int tries = 0; for (int round = 0; round < rounds; round++) for (int v = 0; v < COUNT; v++) { if (v == 4 && (rates[round] + rates[rounds + round]+ rates[2*rounds + round]+ rates[3*rounds + round]) / 4 < FLOOR && tries++ < 60000) v = 0;
    current = &VARIANTS[v];
    offset = (offset + 2 * PIECE) % (TOTAL - 3 * PIECE);
    double start = now();
    pthread_barrier_wait(&barrier); pthread_barrier_wait(&barrier);
    rates[v * rounds + round] = (done[0] + done[1]) / (now() - start) / 1e9;
    ratios[v * rounds + round] = rates[v * rounds + round] / rates[round];
  }
  double edges[] = {0, 50, 60, 70, 1000};
  for (int e = 0; e < 4; e++) {
    double *ra = malloc(8 * rounds), *rb = malloc(8 * rounds);
    for (int v = 0; v < COUNT; v++) {
      int n = 0;
      for (int r = 0; r < rounds; r++) { double m = 0; for (int q = 0; q < 4; q++) m += rates[q * rounds + r] / 4;
        if (m >= edges[e] && m < edges[e + 1]) { ra[n] = rates[v * rounds + r]; rb[n++] = ratios[v * rounds + r]; } }
      if (!n) continue;
      qsort(ra, n, 8, compare); qsort(rb, n, 8, compare);
      printf("%3.0f.. n %4d %-36s %5.1f GB/s  %.3f [%.3f, %.3f]\n", edges[e], n, VARIANTS[v].name, ra[n / 2], rb[n / 2], rb[n / 4], rb[3 * n / 4]);
    }
  }
  current = 0;
  pthread_barrier_wait(&barrier);
  for (int id = 0; id < 2; id++) pthread_join(threads[id], 0);
}

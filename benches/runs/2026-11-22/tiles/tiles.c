// What AMX tiles would give products of int8 by int8 whose scales are per 32 k, beside `vpdpbusd` and beside tiles of bf16.
//
//   cc -O2 -march=sapphirerapids tiles.c -o tiles && taskset -c 0 ./tiles
//
// One line of JSON for each way: ns per block of 32 k, 16 rows and one token, the least of many turns, all ways in turn; data in L1 and L2.
// Chunks of 15 blocks, as the leaves of kernmill have them.

#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 15, TOKENS = 16, WEIGHTS = 640, PANEL = TOKENS * 32 + 128, TURNS = 3000, RING = 15 };

typedef __m512 V;
typedef void Way(const char *weights, const char *panel, float *sums);

static struct __attribute__((packed)) {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} config;

// A decoded block: 16 scales, 16 unused, 8 lines of 16 rows by 4 bytes. A panel's block: 16 rows of 32 bytes, 16 scales, unused. bf16 in the same places.
static __attribute__((aligned(4096))) char weights[2][BLOCKS * 1024], panels[4][BLOCKS * 2048];
static __attribute__((aligned(64))) float sums[4][TOKENS * 64];
static __attribute__((aligned(64))) int products[RING + 1][TOKENS * 16];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

// Tiles 0 to 3 are sums; with `bytes` of a row, 4 and 5 are activations, 6 and 7 weights.
static void configure(int bytes) {
    memset(&config, 0, sizeof config);
    config.palette = 1;
    for (int i = 0; i < 8; i++) {
        config.bytes[i] = i == 4 || i == 5 ? bytes : 64;
        config.rows[i] = i > 5 ? bytes / 4 : 16;
    }
    __asm__ volatile("" ::: "memory");
    _tile_loadconfig(&config);
}

#define MULTIPLY(block, sum) \
    _tile_zero(sum); \
    _tile_loadd(4, panel + (block) * PANEL, 32); \
    _tile_loadd(6, weights + (block) * WEIGHTS + 128, 64); \
    _tile_dpbssd(sum, 4, 6);
#define STORE(block, sum) _tile_stored(sum, products[(block) % (RING + 1)], 64);
// A quarter of a block's int32 sums, scaled and added: v[token] += float(int) * w * a.
#define SCALE(block, quarter) { \
    V w = _mm512_load_ps((float *)(weights + (block) * WEIGHTS)); \
    int *from = products[(block) % (RING + 1)]; \
    _Pragma("GCC unroll 4") for (int t = 4 * (quarter); t < 4 * (quarter) + 4; t++) { \
        V a = _mm512_set1_ps(*(float *)(panel + (block) * PANEL + TOKENS * 32 + 4 * t)); \
        v[t] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(from + 16 * t)), w), a, v[t]); \
    } \
    __asm__ volatile("" ::: "memory"); }
#define LOAD V v[TOKENS]; for (int t = 0; t < TOKENS; t++) v[t] = _mm512_load_ps(sums + 32 * t);
#define KEEP for (int t = 0; t < TOKENS; t++) _mm512_store_ps(sums + 32 * t, v[t]);
#define WAY(name) __attribute__((noinline)) static void name(const char *weights, const char *panel, float *sums)

// Products run four blocks ahead of scaling and are stored one block late, all of it in small pieces in turn.
#define STEP(b, next, last) MULTIPLY((b) + 4, next) SCALE(b, 0) SCALE(b, 1) STORE((b) + 3, last) SCALE(b, 2) SCALE(b, 3)
#define ALL(b) SCALE(b, 0) SCALE(b, 1) SCALE(b, 2) SCALE(b, 3)
WAY(tiles_in_turn) {
    LOAD
    MULTIPLY(0, 0) MULTIPLY(1, 1) STORE(0, 0) MULTIPLY(2, 2) STORE(1, 1) MULTIPLY(3, 3) STORE(2, 2)
    for (int b = 0; b < 8; b += 4) { STEP(b, 0, 3) STEP(b + 1, 1, 0) STEP(b + 2, 2, 1) STEP(b + 3, 3, 2) }
    STEP(8, 0, 3) STEP(9, 1, 0) STEP(10, 2, 1) STORE(14, 2) ALL(11) ALL(12) ALL(13) ALL(14)
    KEEP
}

WAY(tiles_then_scales) {
    LOAD
    for (int b = 0; b < BLOCKS; b++) { MULTIPLY(b, 0) STORE(b, 0) }
    for (int b = 0; b < BLOCKS; b++) { ALL(b) }
    KEEP
}

WAY(only_tiles) {
    for (int b = 0; b + 3 < BLOCKS; b += 4) {
        MULTIPLY(b, 0) MULTIPLY(b + 1, 1) MULTIPLY(b + 2, 2) MULTIPLY(b + 3, 3)
        STORE(b, 0) STORE(b + 1, 1) STORE(b + 2, 2) STORE(b + 3, 3)
    }
    sums[0] += 1;
}

WAY(only_scales) { LOAD for (int b = 0; b < BLOCKS; b++) { ALL(b) } KEEP }

// Two tiles of weights by six tokens, as `kernels-gen/src/wide/gemm_q8_avx512.rs` multiplies them.
WAY(vpdpbusd) {
    const char *second = weights + sizeof(char[BLOCKS * 1024]);
    V v[2][6];
    for (int t = 0; t < 6; t++) v[0][t] = _mm512_load_ps(sums + 32 * t), v[1][t] = _mm512_load_ps(sums + 32 * t + 16);
    for (int b = 0; b < BLOCKS; b++, weights += WEIGHTS, second += WEIGHTS, panel += PANEL) {
        __m512i n[2][6];
        _Pragma("GCC unroll 6") for (int t = 0; t < 6; t++) n[0][t] = n[1][t] = _mm512_set1_epi32(*(int *)(panel + TOKENS * 32 + 64 + 4 * t));
        _Pragma("GCC unroll 8") for (int q = 0; q < 8; q++) {
            __m512i one = _mm512_load_si512(weights + 128 + 64 * q), other = _mm512_load_si512(second + 128 + 64 * q);
            _Pragma("GCC unroll 6") for (int t = 0; t < 6; t++) {
                __m512i a = _mm512_set1_epi32(*(int *)(panel + 32 * t + 4 * q));
                n[0][t] = _mm512_dpbusd_epi32(n[0][t], one, a);
                n[1][t] = _mm512_dpbusd_epi32(n[1][t], other, a);
            }
        }
        V w[2] = {_mm512_load_ps((float *)weights), _mm512_load_ps((float *)second)};
        V m[2] = {_mm512_load_ps((float *)(weights + 64)), _mm512_load_ps((float *)(second + 64))};
        _Pragma("GCC unroll 6") for (int t = 0; t < 6; t++) {
            V a = _mm512_set1_ps(*(float *)(panel + TOKENS * 32 + 4 * t));
            for (int i = 0; i < 2; i++) v[i][t] = _mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_castsi512_ps(n[i][t]), w[i], m[i]), a, v[i][t]);
        }
    }
    for (int t = 0; t < 6; t++) _mm512_store_ps(sums + 32 * t, v[0][t]), _mm512_store_ps(sums + 32 * t + 16, v[1][t]);
}

// Two tiles by 32 tokens, as `kernels-gen/src/wide/gemm_bf16_amx.rs` multiplies them: scales are in the weights.
WAY(tiles_of_bf16) {
    const char *second = weights + sizeof(char[BLOCKS * 1024]);
    _tile_loadd(0, sums, 256); _tile_loadd(1, sums + 16, 256); _tile_loadd(2, sums + 32, 256); _tile_loadd(3, sums + 48, 256);
    for (int b = 0; b < BLOCKS; b++, weights += 1024, second += 1024, panel += 2048) {
        _tile_loadd(6, weights, 64); _tile_loadd(7, second, 64); _tile_loadd(4, panel, 64);
        _tile_dpbf16ps(0, 4, 6); _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, panel + 1024, 64);
        _tile_dpbf16ps(2, 5, 6); _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, 256); _tile_stored(1, sums + 16, 256); _tile_stored(2, sums + 32, 256); _tile_stored(3, sums + 48, 256);
}

int main(void) {
    // ARCH_REQ_XCOMP_PERM of XFEATURE_XTILEDATA.
    syscall(SYS_arch_prctl, 0x1023, 18);
    struct { const char *name; Way *way; int bytes, tokens; double best; } ways[] = {
        {"vpdpbusd, 2 tiles by 6 tokens", vpdpbusd, 32, 12, 1}, {"tiles of int8, scaled in turn", tiles_in_turn, 32, 16, 1},
        {"tiles of int8, then scaled", tiles_then_scales, 32, 16, 1}, {"tiles of int8, not scaled", only_tiles, 32, 16, 1},
        {"scaling alone", only_scales, 32, 16, 1}, {"tiles of bf16, 2 tiles by 32 tokens", tiles_of_bf16, 64, 64, 1},
    };
    enum { WAYS = sizeof ways / sizeof *ways };
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < WAYS; i++) {
            configure(ways[i].bytes);
            double start = now();
            for (int call = 0; call < 12; call++) ways[i].way(weights[0], panels[call % 4], sums[call % 4]);
            double ns = (now() - start) * 1e9 / 12 / BLOCKS / ways[i].tokens;
            if (turn == 0 || ns < ways[i].best) ways[i].best = ns;
        }
    for (int i = 0; i < WAYS; i++) printf("{\"way\": \"%s\", \"ns\": %.3f}\n", ways[i].name, ways[i].best);
    return 0;
}

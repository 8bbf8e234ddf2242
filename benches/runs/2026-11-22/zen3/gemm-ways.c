/* Ways to multiply decoded weights with activations by AVX2 without VNNI, beside leaves of the program; they take turns.
 *
 *   cc -O2 -march=x86-64-v3 gemm-ways.c -o gemm-ways && ./gemm-ways MXFP4_LEAF BYTES_LEAF
 *
 * The files hold the machine code of GemmQ8 for two tiles and six tokens, as kernmill_kernels::wide::assemble gives it.
 *
 * `words`: signed weights in memory times unsigned activations (a + 128). Sums of all 32 products fit 16 bits once -128 * sum(w), which stands with the
 * weights, is added: they are widened once a block. `dwords`: bytes as int16, which vpmaddwd adds in pairs to 32 bits. Both for two tiles of 16 rows and
 * T tokens; LOADED of the four vectors of weights are loaded once for all tokens, the others are memory operands.
 */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define BLOCKS 15
#define ROUNDS 300
#define CALLS 100

typedef void gemm(const char *weights, const char *panel, char *sums, uint64_t blocks, uint64_t stride, uint64_t gap);

#define UNROLL _Pragma("GCC unroll 16")
/* By hand, because the compiler would add in another order and run out of registers. */
#define OPERATION(name, to, a, b) asm volatile(name " %2,%1,%0" : "=x"(to) : "x"(a), "xm"(b))

static inline __attribute__((always_inline)) void scale(__m256i ints, __m256 by, const char *row_scales, char *sum) {
    __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(ints), _mm256_loadu_ps((const float *)row_scales));
    _mm256_storeu_ps((float *)sum, _mm256_fmadd_ps(scaled, by, _mm256_loadu_ps((const float *)sum)));
}

/* A block: 16 scales, LINES_BEFORE lines more, LINES lines. A panel's block: PANEL bytes, of a token ROW, its scales last but 64. */
#define WAY(NAME, T, LOADED, LINES_BEFORE, LINES, ROW, PANEL, MULTIPLY, ADD, CORRECT, WIDEN)                                    \
    static void NAME(const char *weights, const char *panel, char *sums, uint64_t blocks, uint64_t stride, uint64_t gap) {      \
        const uint64_t block_bytes = 64 * (1 + LINES_BEFORE + LINES), tile = BLOCKS * block_bytes;                              \
        const __m256i ones = _mm256_set1_epi16(1);                                                                              \
        for (; blocks; blocks--, weights += block_bytes, panel += PANEL) {                                                      \
            __m256i acc[T][4];                                                                                                  \
            UNROLL for (int line = 0; line < LINES; line++) {                                                                   \
                __m256i a[T];                                                                                                   \
                UNROLL for (int t = 0; t < T; t++) a[t] = _mm256_set1_epi32(*(const int *)(panel + t * ROW + line * 4));        \
                UNROLL for (int v = 0; v < 4; v++) {                                                                            \
                    const char *from = weights + v / 2 * tile + v % 2 * 32;                                                     \
                    const __m256i *w = (const __m256i *)(from + 64 * (1 + LINES_BEFORE + line));                                \
                    __m256i loaded, product;                                                                                    \
                    if (v < LOADED) {                                                                                           \
                        loaded = _mm256_loadu_si256(w);                                                                         \
                        asm("" : "+x"(loaded));                                                                                 \
                    }                                                                                                           \
                    UNROLL for (int t = 0; t < T; t++) {                                                                        \
                        if (v < LOADED) OPERATION(MULTIPLY, product, a[t], loaded);                                             \
                        else OPERATION(MULTIPLY, product, a[t], *w);                                                            \
                        if (line) OPERATION(ADD, acc[t][v], acc[t][v], product);                                                \
                        else if (CORRECT) OPERATION(ADD, acc[t][v], product, *(const __m256i *)(from + 64));                    \
                        else acc[t][v] = product;                                                                               \
                    }                                                                                                           \
                }                                                                                                               \
            }                                                                                                                   \
            UNROLL for (int t = 0; t < T; t++) {                                                                                \
                __m256 by = _mm256_broadcast_ss((const float *)(panel + PANEL - 64 + t * 4));                                   \
                UNROLL for (int v = 0; v < 4; v++)                                                                              \
                    scale(WIDEN ? _mm256_madd_epi16(acc[t][v], ones) : acc[t][v], by, weights + v / 2 * tile + v % 2 * 32,      \
                          sums + t * stride + v / 2 * gap + v % 2 * 32);                                                        \
            }                                                                                                                   \
        }                                                                                                                       \
    }

#define WORDS(NAME, T, LOADED) WAY(NAME, T, LOADED, 1, 8, 32, 256, "vpmaddubsw", "vpaddw", 1, 1)
#define DWORDS(NAME, T, LOADED) WAY(NAME, T, LOADED, 0, 16, 64, 448, "vpmaddwd", "vpaddd", 0, 0)
WORDS(words_2_0, 2, 0)
WORDS(words_2_2, 2, 2)
WORDS(words_2_4, 2, 4)
WORDS(words_3_0, 3, 0)
DWORDS(dwords_2_0, 2, 0)
DWORDS(dwords_2_2, 2, 2)
DWORDS(dwords_2_4, 2, 4)
DWORDS(dwords_3_0, 3, 0)

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static gemm *leaf(const char *name) {
    void *code = mmap(0, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FILE *file = fopen(name, "rb");
    if (!file || !fread(code, 1, 1 << 16, file)) exit(1);
    fclose(file);
    return (gemm *)code;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    struct {
        const char *name;
        gemm *run;
        int tokens;
    } ways[] = {{"leaf, mxfp4", leaf(arguments[1]), 6}, {"words, 2 tokens, 0 loaded", words_2_0, 2},
                {"words, 2 tokens, 2 loaded", words_2_2, 2}, {"words, 2 tokens, 4 loaded", words_2_4, 2},
                {"words, 3 tokens, 0 loaded", words_3_0, 3}, {"leaf, bytes", leaf(arguments[2]), 6},
                {"dwords, 2 tokens, 0 loaded", dwords_2_0, 2}, {"dwords, 2 tokens, 2 loaded", dwords_2_2, 2},
                {"dwords, 2 tokens, 4 loaded", dwords_2_4, 2}, {"dwords, 3 tokens, 0 loaded", dwords_3_0, 3}};
    enum { WAYS = sizeof ways / sizeof *ways };
    static double times[WAYS][ROUNDS];
    char *memory = mmap(0, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < WAYS; i++) {
            double start = seconds();
            for (int call = 0; call < CALLS; call++)
                ways[i].run(memory, memory + (1 << 20) + call % 11 * 4096, memory + (2 << 20) + call % 11 * 1024, BLOCKS, 128, 64);
            times[i][round] = seconds() - start;
        }
    for (int i = 0; i < WAYS; i++) {
        /* ns for 32 k of eight rows and a token. */
        double each = 1e9 / (CALLS * BLOCKS * 4.0 * ways[i].tokens);
        qsort(times[i], ROUNDS, sizeof(double), compare);
        printf("%-28s least %.2f, median %.2f ns\n", ways[i].name, times[i][0] * each, times[i][ROUNDS / 2] * each);
    }
}

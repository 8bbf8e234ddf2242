/* The best of 60 times that a one-token dot leaf takes over four tiles that stay in L2.
 *
 *   cc -O2 cached.c -o cached && ./cached K TILE_BYTES FILE..        files as in leaves.c
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define CODE 65536
#define CALLS 200

typedef void leaf(const char *tiles, const char *const *rows, float *out, uint64_t stride);

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int count, char **arguments) {
    if (count < 4) return 2;
    size_t k = atol(arguments[1]), tile_bytes = atol(arguments[2]);
    char *memory = mmap(0, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, 4 << 20, MADV_HUGEPAGE);
    memset(memory, 0x3c, 4 << 20);
    const char *row = memory + (2 << 20);
    for (int i = 3; i < count; i++) {
        void *code = mmap(0, CODE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        FILE *file = fopen(arguments[i], "rb");
        if (!file || !fread(code, 1, CODE, file)) return 1;
        fclose(file);
        int step = strstr(arguments[i], "one_") ? 1 : 4;
        float out[64] __attribute__((aligned(64)));
        double best = 1e9;
        for (int round = 0; round < 60; round++) {
            double start = seconds();
            for (int call = 0; call < CALLS; call++)
                for (int tile = 0; tile < 4; tile += step) ((leaf *)code)(memory + tile * tile_bytes, &row, out, 64);
            double time = seconds() - start;
            if (time < best) best = time;
        }
        printf("%s: %.1f GB/s, %.2f ns for 32 k of eight rows\n", arguments[i], 4.0 * CALLS * tile_bytes / best / 1e9,
               best * 1e9 / (4.0 * CALLS * 2 * (k / 32)));
    }
}

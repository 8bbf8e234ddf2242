/* Reads memory from one end to the other with several threads, for llama_paired.py. */

#include <immintrin.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define LINE 64
#define MOST_THREADS 256
#define MOST_PLACES 8

typedef long long vector __attribute__((vector_size(32)));

struct part {
    const char *from;
    size_t bytes;
    size_t places;
    size_t ahead;
    vector sum;
};

/* Every thread has one stretch, which it reads in as many places at once. */
static void *read_part(void *argument) {
    struct part *part = argument;
    size_t each = part->bytes / part->places / LINE * LINE;
    vector sum = {0, 0, 0, 0};
    for (size_t at = 0; at < each; at += LINE) {
        for (size_t place = 0; place < part->places; place++) {
            const char *line = part->from + place * each + at;
            if (part->ahead) {
                _mm_prefetch(line + part->ahead, _MM_HINT_T0);
            }
            sum ^= *(const vector *)line ^ *(const vector *)(line + LINE / 2);
        }
    }
    part->sum = sum;
    return NULL;
}

/* Reads `bytes` bytes from `from` on, which is aligned to a line; 0, or a number when a thread cannot be made. Behind the end nothing is
   read: a prefetch of what is not there does nothing. */
int read_all(const char *from, size_t bytes, int threads, int places, size_t ahead) {
    pthread_t others[MOST_THREADS];
    struct part parts[MOST_THREADS];
    if (threads < 1 || threads > MOST_THREADS || places < 1 || places > MOST_PLACES) {
        return -1;
    }
    size_t each = bytes / threads / LINE * LINE;
    for (int i = 0; i < threads; i++) {
        parts[i] = (struct part){from + i * each, each, places, ahead, {0, 0, 0, 0}};
    }
    for (int i = 1; i < threads; i++) {
        int error = pthread_create(&others[i], NULL, read_part, &parts[i]);
        if (error) {
            while (--i > 0) {
                pthread_join(others[i], NULL);
            }
            return error;
        }
    }
    read_part(&parts[0]);
    volatile long long sink = parts[0].sum[0];
    for (int i = 1; i < threads; i++) {
        pthread_join(others[i], NULL);
        sink ^= parts[i].sum[0];
    }
    return 0;
}

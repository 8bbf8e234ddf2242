/* A collector for tests: what it is told goes into the file that KERNMILL_COLLECTED names. Types are those of
 * ITT's headers as far as they are used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int flags; const char *name; } domain;
typedef struct { const char *text; } handle;
typedef struct { unsigned long long parts[3]; } id;
typedef struct { unsigned number; const char *name; void *address; unsigned size; } method;

static void note(const char *kind, const char *name, unsigned long long address, unsigned size) {
    FILE *file = fopen(getenv("KERNMILL_COLLECTED"), "a");
    fprintf(file, "%s\t%s\t%llx\t%x\n", kind, name, address, size);
    fclose(file);
}

/* The interface to JIT compilers. */
unsigned Initialize(void) { return 1; }

int NotifyEvent(int event, void *data) {
    const method *loaded = data;
    if (event == 13)
        note("method", loaded->name, (unsigned long long)loaded->address, loaded->size);
    else
        note("event", "", event, 0);
    return 1;
}

/* The interface to programs. That there is a version says that functions are found by their names. */
const char *__itt_api_version(void) { return "3"; }

/* Domains and names before the first task are the loader's; these are of the same kind. They stay. */
domain *__itt_domain_create(const char *name) {
    domain *made = calloc(1, 128);
    made->name = strdup(name);
    return made;
}

handle *__itt_string_handle_create(const char *text) {
    handle *made = calloc(1, 128);
    made->text = strdup(text);
    return made;
}

void __itt_task_begin(const domain *of, id task, id parent, const handle *name) {
    (void)task, (void)parent;
    note(of->name, name->text, 0, 0);
}

void __itt_task_end(const domain *of) { note(of->name, "", 0, 0); }

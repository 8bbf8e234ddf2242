# Runs the program that standard input brings, and tells how it ended. The first line has a word that the
# program does not know, and the limits.
import os, resource, sys

word, memory, seconds, size, processes = sys.stdin.buffer.readline().split()
program = sys.stdin.buffer.read().decode()
for what, value in (
    (resource.RLIMIT_AS, int(memory)),
    (resource.RLIMIT_CPU, int(seconds)),
    (resource.RLIMIT_FSIZE, int(size)),
    (resource.RLIMIT_NPROC, int(processes)),
    (resource.RLIMIT_NOFILE, 64),
    (resource.RLIMIT_CORE, 0),
):
    resource.setrlimit(what, (value, value))
out, own = os.dup(1), os.getpid()
null = os.open(os.devnull, os.O_RDWR)
for number in range(3):
    os.dup2(null, number)


def tell(end):
    if os.getpid() == own:
        os.write(out, word + b" " + end + b"\n")
    os._exit(0)


try:
    exec(compile(program, "program", "exec"), {})
except BaseException as error:
    said = f"{type(error).__name__}: {error}".split("\n")[0][:200]
    tell(b"failed " + said.encode(errors="replace"))
else:
    tell(b"passed")

"""llama.cpp through llama-cpp-python's low-level interface: a model, its contexts, and runs of random tokens in them."""

import ctypes
import os
import random
import resource
import time
from pathlib import Path

import llama_cpp as ll

UBATCH = 512  # llama.cpp's default, and a whole prompt of 512
PAD = 256  # llama.cpp rounds a sequence's context up to this
LOAD_MODES = {"mmap": ll.LLAMA_LOAD_MODE_MMAP, "read": ll.LLAMA_LOAD_MODE_NONE}


class Run:
    """Seconds and page faults of what is done inside `with`, and the processor seconds that everything else took meanwhile."""

    def __enter__(self):
        self._faults, self._foreign = faults(), foreign_seconds()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self._start
        self.major_faults = faults() - self._faults
        self.foreign_seconds = max(0.0, foreign_seconds() - self._foreign)


class Model:
    """A GGUF file, loaded in one of the ways that llama.cpp offers."""

    def __init__(self, path: Path, load: str, repack: bool, threads: int):
        ll.llama_backend_init()
        self._log = []
        self._callback = ll.llama_log_callback(lambda _level, text, _data: self._log.append(text.decode(errors="replace")))
        ll.llama_log_set(self._callback, ctypes.c_void_p(0))
        params = ll.llama_model_default_params()
        params.load_mode = LOAD_MODES[load]
        params.use_extra_bufts = repack
        params.n_gpu_layers = 0
        self.threads = threads
        self.handle = ll.llama_model_load_from_file(str(path).encode(), params)
        if not self.handle:
            raise SystemExit(f"llama.cpp does not load {path}:\n" + self.log()[-2000:])
        self.vocab = ll.llama_vocab_n_tokens(ll.llama_model_get_vocab(self.handle))

    def log(self) -> str:
        return "".join(self._log)

    def buffers(self) -> list[str]:
        """The lines of the log that say where the weights are."""
        return [line.split(":", 1)[-1].strip() for line in self.log().splitlines() if "model buffer size" in line]

    def adapter(self, path: Path):
        """A LoRA, for contexts of this model."""
        adapter = ll.llama_adapter_lora_init(self.handle, str(path).encode())
        if not adapter:
            raise SystemExit(f"llama.cpp does not load {path}:\n" + self.log()[-2000:])
        return adapter

    def context(self, tokens: int, flash: bool, sequences: int = 1) -> "Context":
        return Context(self, tokens, flash, sequences)


class Context:
    """A KV cache in f16, just large enough for `sequences` of `tokens`. Layers with a window keep only their window."""

    def __init__(self, model: Model, tokens: int, flash: bool, sequences: int):
        params = ll.llama_context_default_params()
        per_sequence = -(-tokens // PAD) * PAD
        params.n_ctx = per_sequence * sequences
        params.n_batch = params.n_ubatch = min(UBATCH, per_sequence)
        params.n_seq_max = sequences
        params.n_threads = params.n_threads_batch = model.threads
        params.flash_attn_type = ll.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash else ll.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.type_k = params.type_v = ll.GGML_TYPE_F16
        params.swa_full = False
        self.model = model
        self.handle = ll.llama_init_from_model(model.handle, params)
        if not self.handle:
            raise SystemExit("llama.cpp makes no context:\n" + model.log()[-2000:])
        self._batch = ll.llama_batch_init(params.n_batch, 0, sequences)
        self._limit = params.n_batch

    def __enter__(self):
        return self

    def __exit__(self, *_):
        ll.llama_batch_free(self._batch)
        ll.llama_free(self.handle)

    def use(self, adapter) -> None:
        """This LoRA at its full strength from now on, or none."""
        adapters, scales = (ll.llama_adapter_lora_p_ctypes * 1)(adapter), (ctypes.c_float * 1)(1.0)
        if code := ll.llama_set_adapters_lora(self.handle, adapters, int(adapter is not None), scales):
            raise SystemExit(f"llama.cpp takes no adapter: {code}\n" + self.model.log()[-2000:])

    def clear(self) -> None:
        ll.llama_memory_clear(ll.llama_get_memory(self.handle), False)

    def step(self, tokens: list[tuple[int, int, int]], every: bool = False) -> None:
        """Runs tokens given as (id, position, sequence); logits of the last one, or of `every` one."""
        batch = self._batch
        batch.n_tokens = len(tokens)
        for i, (token, position, sequence) in enumerate(tokens):
            batch.token[i], batch.pos[i] = token, position
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = sequence
            batch.logits[i] = every or i + 1 == len(tokens)
        if code := ll.llama_decode(self.handle, batch):
            raise SystemExit(f"llama_decode returned {code}:\n" + self.model.log()[-2000:])
        ll.llama_synchronize(self.handle)

    def prompt(self, ids: list[int], start: int = 0) -> None:
        for begin in range(0, len(ids), self._limit):
            piece = ids[begin : begin + self._limit]
            self.step([(token, start + begin + i, 0) for i, token in enumerate(piece)])

    def decode(self, streams: list[list[int]], start: int) -> None:
        """One token of every sequence at a time, whatever the logits say: speed does not depend on the ids' origin."""
        for i in range(len(streams[0])):
            self.step([(stream[i], start + i, s) for s, stream in enumerate(streams)], every=True)

    def logits(self, ids: list[int]):
        """f32 [T, vocab] after every token of a prompt."""
        import numpy as np

        out = np.empty((len(ids), self.model.vocab), np.float32)
        for begin in range(0, len(ids), self._limit):
            piece = ids[begin : begin + self._limit]
            self.step([(token, begin + i, 0) for i, token in enumerate(piece)], every=True)
            for i in range(len(piece)):
                row = ll.llama_get_logits_ith(self.handle, i)
                out[begin + i] = np.ctypeslib.as_array(row, (self.model.vocab,))
        return out

    def save(self, path: Path) -> None:
        partial = path.with_name(path.name + ".partial")
        none = (ll.llama_token * 1)()
        if not ll.llama_state_seq_save_file(self.handle, str(partial).encode(), 0, none, 0):
            raise SystemExit("llama.cpp does not save the sequence")
        partial.rename(path)

    def restore(self, path: Path) -> None:
        self.clear()
        none, count = (ll.llama_token * 1)(), ctypes.c_size_t()
        if not ll.llama_state_seq_load_file(self.handle, str(path).encode(), 0, none, 1, ctypes.byref(count)):
            raise SystemExit(f"llama.cpp does not restore {path}:\n" + self.model.log()[-2000:])


def random_ids(seed: int, count: int, vocab: int) -> list[int]:
    source = random.Random(seed)
    return [source.randrange(vocab) for _ in range(count)]


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


def foreign_seconds() -> float:
    """Processor time that this machine has spent on anything but this process, and that it was not given by its host."""
    user, nice, system, _idle, _wait, irq, softirq, stolen = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + stolen) / os.sysconf("SC_CLK_TCK") - time.process_time()


def peak_resident() -> int:
    """Bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def system_info() -> dict:
    base = ctypes.CDLL(None)
    info = {"llama_cpp_python": ll.__version__, "features": ll.llama_print_system_info().decode().strip()}
    directory = Path(ll.__file__).parent / "lib"
    for library in directory.glob("libggml-base.so"):
        base = ctypes.CDLL(str(library))
        for name in ("ggml_version", "ggml_commit"):
            function = getattr(base, name, None)
            if function:
                function.restype = ctypes.c_char_p
                info[name] = function().decode()
    return info

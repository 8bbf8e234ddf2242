#!/usr/bin/env python3
"""gRPC by Python's own client, against `kernmill serve --grpc-port` with nano.

    python3 tools/grpc/check.py [KERNMILL]

KERNMILL is the program, built with the feature `grpc` (target/release/kernmill where none is given). The
packages of requirements.txt are needed.

Exit status: 0 all holds, 1 something does not, 3 the packages are not there, so that nothing was checked.
"""

import argparse
import importlib
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_RUN = 3
PROMPT = "A slice is a view into"
MESSAGE_BYTES = 4 << 20

try:
    import grpc
    from google.protobuf import descriptor_pb2
    from grpc_health.v1 import health_pb2, health_pb2_grpc
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
    from grpc_tools import protoc
except ImportError as error:
    print(f"NOT RUN: tools/grpc/check.py: {error} (pip install -r tools/grpc/requirements.txt)")
    sys.exit(NOT_RUN)


def equal(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}: {found!r}, expected {expected!r}")


def protos():
    """Directory of the protocol's files: that of the crate, as cargo has it."""
    # Crates of other platforms were not fetched.
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1", "--features", "grpc"]
    command += ["--filter-platform", "x86_64-unknown-linux-gnu"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    found = next(package for package in metadata["packages"] if package["name"] == "vllm-proto")
    return Path(found["manifest_path"]).parent


def compiled(directory, out):
    """Makes the stubs in `out`; the descriptors of the files."""
    descriptors = out / "descriptors"
    files = [str(directory / name) for name in ("inference.proto", "control.proto")]
    well_known = Path(importlib.import_module("grpc_tools").__file__).parent / "_proto"
    arguments = ["protoc", f"-I{directory}", f"-I{well_known}", f"--python_out={out}", f"--grpc_python_out={out}"]
    if protoc.main([*arguments, f"--descriptor_set_out={descriptors}", "--include_imports", *files]) != 0:
        raise SystemExit("error: protoc has failed")
    sys.path.insert(0, str(out))
    return descriptor_pb2.FileDescriptorSet.FromString(descriptors.read_bytes())


class Server:
    """`kernmill serve`, until it is told to end."""

    def __init__(self, program, *options):
        command = [program, "serve", "--port", "0", "--grpc-port", "0", "--allow-grammars", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        said = []
        for line in self.process.stderr:
            said.append(line)
            found = re.search(r"is served at (http://\S+) .*gRPC at (\S+);", line)
            if found:
                self.http, self.grpc = found[1], found[2]
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return
        raise SystemExit(f"error: {' '.join(command)} has ended: {''.join(said)}")

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.http + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    def completion(self, **fields):
        return self.ask("/v1/completions", {"model": "nano", "prompt": PROMPT, **fields})

    def idle(self):
        """Waits until nothing runs or waits; the bytes of the KV cache that requests still use."""
        while True:
            load = self.ask("/v1/loads")
            if not any([*load["running"].values(), *load["waiting"].values()]):
                return load["kv"]["used_bytes"]
            time.sleep(0.02)

    def end(self):
        self.process.terminate()
        equal(self.process.wait(), 0, "exit status")


class Check:
    def __init__(self, server, program):
        self.server, self.program = server, program
        self.pb = importlib.import_module("inference_pb2")
        self.control_pb = importlib.import_module("control_pb2")
        options = [("grpc.max_receive_message_length", -1)]
        self.channel = grpc.insecure_channel(server.grpc, options)
        self.inference = importlib.import_module("inference_pb2_grpc").InferenceStub(self.channel)
        self.control = importlib.import_module("control_pb2_grpc").ControlStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)

    def request(self, tokens=24, stopping=None, **fields):
        """A request whose tokens are shown; without a prompt in `fields`, for PROMPT."""
        if "token_ids" not in fields:
            fields.setdefault("text", PROMPT)
        fields.setdefault("response", self.pb.ResponseOptions(output_token_ids=True, prompt_token_ids=True))
        criteria = self.pb.StoppingCriteria(max_new_tokens=tokens, **(stopping or {}))
        return self.pb.GenerateRequest(stopping=criteria, **fields)

    def refused(self, code, request, named, call=None):
        try:
            (call or self.inference.Generate)(request)
        except grpc.RpcError as error:
            equal(error.code(), code, error.details())
            if named not in error.details():
                raise AssertionError(f"{error.details()!r} does not name {named}")
            return
        raise AssertionError(f"{named}: not refused")

    def streamed(self, request):
        """Prompt's figures, and by number of the sequence: text, ids, end."""
        prompt, sequences = None, {}
        for response in self.inference.GenerateStream(request):
            if response.HasField("prompt_info"):
                equal(prompt, None, "one response tells of the prompt")
                prompt = response.prompt_info
            if response.HasField("outputs"):
                text, ids, end = sequences.get(response.outputs.index, ("", [], None))
                equal(end, None, "nothing comes behind the end")
                new = response.outputs
                end = new.finish_info if new.HasField("finish_info") else None
                sequences[new.index] = (text + new.text, ids + list(new.token_ids), end)
        return prompt, sequences

    def tokens_are_those_of_http_and_of_run(self):
        sampling = {"top_k": 50, "top_p": 0.9, "min_p": 0.02, "seed": 7}
        for fields, body, options in [
            ({}, {"temperature": 0}, ["--temp", "0"]),
            (
                {"temperature": 0.75, "sampling": self.pb.RandomSampling(**sampling)},
                {"temperature": 0.75, **sampling},
                ["--temp", "0.75", "--top-k", "50", "--top-p", "0.9", "--min-p", "0.02", "--seed", "7"],
            ),
        ]:
            whole = self.inference.Generate(self.request(**fields))
            _, sequences = self.streamed(self.request(**fields))
            text, ids, end = sequences[0]
            equal((text, ids), (whole.outputs.text, list(whole.outputs.token_ids)), "stream and whole")
            equal(end.num_output_tokens, len(ids), "tokens")
            by_ids = self.request(token_ids=self.pb.TokenIds(ids=whole.prompt_info.token_ids), **fields)
            equal(list(self.inference.Generate(by_ids).outputs.token_ids), ids, "ids as a prompt")
            equal(self.server.completion(max_tokens=24, **body)["choices"][0]["text"], text, "HTTP")
            command = [self.program, "run", "--prompt", PROMPT, "-n", "24", "--json", "--quiet", *options]
            run = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            equal((run["text"], run["tokens"]), (text, ids), "kernmill run")

    def sequences_have_seeds_of_their_own(self):
        sampling = self.pb.RandomSampling(num_sequences=3, seed=11)
        _, sequences = self.streamed(self.request(temperature=1.0, sampling=sampling))
        choices = self.server.completion(max_tokens=24, temperature=1, seed=11, n=3)["choices"]
        equal([sequences[at][0] for at in range(3)], [choice["text"] for choice in choices], "HTTP")
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, self.request(sampling=sampling), "num_sequences")

    def logarithms_are_those_of_http(self):
        options = self.pb.ResponseOptions(
            prompt_token_ids=True,
            prompt_logprobs=True,
            output_token_ids=True,
            output_logprobs=True,
            output_candidates=self.pb.CandidateTokens(top_n=3),
        )
        whole = self.inference.Generate(self.request(8, response=options))
        body = self.server.completion(max_tokens=8, temperature=0, echo=True, logprobs=3)
        expected = body["choices"][0]["logprobs"]["token_logprobs"]
        found = [*whole.prompt_info.logprobs, *whole.outputs.logprobs]
        equal((found[0], whole.prompt_info.ranks[0]), (0.0, 0), "the first token")
        equal([round(value, 5) for value in found[1:]], [round(value, 5) for value in expected[1:]], "logarithms")
        equal(list(whole.outputs.ranks), [1] * 8, "greedy tokens are the first ones")
        equal([len(info.tokens) for info in whole.outputs.candidate_tokens], [2] * 8, "two others of three")
        prompt, sequences = self.streamed(self.request(8, response=options))
        equal((prompt, sequences[0][1]), (whole.prompt_info, list(whole.outputs.token_ids)), "a stream")

    def texts_are_held_to_their_forms(self):
        def text(tokens=60, **decoding):
            request = self.request(tokens, decoding=self.pb.DecodingParameters(**decoding))
            return self.inference.Generate(request).outputs

        choice = text(choice=self.pb.DecodingParameters.StringChoices(choices=["yes", "no (not yet)"])).text
        if choice not in ("yes", "no (not yet)"):
            raise AssertionError(f"{choice!r} is none of the choices")
        schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 99}}}
        schema |= {"required": ["n"], "additionalProperties": False}
        equal(list(json.loads(text(json=json.dumps(schema)).text)), ["n"], "the schema")
        if not re.fullmatch("[ab]{3}", text(regex="[ab]{3}").text):
            raise AssertionError("the expression does not match")
        equal(text(grammar='start: "one" " " "two"').text, "one two", "the grammar")
        allowed = list(text(8).token_ids)[:3]
        if not set(text(12, allowed_token_ids=allowed).token_ids) <= set(allowed):
            raise AssertionError("a token that is not allowed came")
        first = text(4).token_ids[0]
        banned = text(4, bad_words_token_ids=[self.pb.TokenIds(ids=[first])]).token_ids
        if first in banned:
            raise AssertionError("a token that is banned came")

    def stops_end_texts_and_least_numbers_hold(self):
        free = self.inference.Generate(self.request(30)).outputs
        ids = list(free.token_ids)
        stop = ids[10]
        at = ids.index(stop)
        cut = self.inference.Generate(self.request(30, {"stop_token_ids": [stop]})).outputs
        equal((list(cut.token_ids), cut.finish_info.stop_token_id), (ids[:at], stop), "a stop token")
        late = self.inference.Generate(self.request(30, {"stop_token_ids": [stop], "min_new_tokens": at + 3})).outputs
        if len(late.token_ids) < at + 3 or stop in late.token_ids[: at + 3]:
            raise AssertionError("the text has ended before its least number of tokens")
        word = free.text.split()[4]
        for include in (False, True):
            stopping = {"stop_strings": [word], "include_stop_strings": include}
            cut = self.inference.Generate(self.request(30, stopping)).outputs
            equal(cut.finish_info.stop_string, word, "a stop string")
            equal(cut.text, free.text[: free.text.index(word) + include * len(word)], "the text before it")

    def salts_part_the_prefix_cache(self):
        ids = self.pb.TokenIds(ids=[random.Random(5).randrange(10, 2000) for _ in range(200)])

        def cached(**kv):
            request = self.request(1, token_ids=ids, kv=self.pb.KVCacheParameters(**kv))
            return self.inference.Generate(request).outputs.finish_info.num_cached_tokens

        equal(cached(), 0, "the first time")
        if cached() < 100:
            raise AssertionError("nothing is found the second time")
        equal((cached(cache_salt="a"), cached(bypass_prefix_cache=True)), (0, 0), "salted, and by the cache's side")
        if cached(cache_salt="a") < 100:
            raise AssertionError("nothing is found by the same salt")

    def what_is_left_leaves_nothing(self):
        before = self.server.idle()
        draw = random.Random(3)
        ways = [(draw.randrange(4), draw.uniform(0, 0.4), draw.randrange(5)) for _ in range(100)]

        def one(at, way, seconds, few):
            stopping = {"ignore_eos": True}
            request = self.request(1500, stopping, request_id=f"call-{at}")
            stream = self.inference.GenerateStream(request, timeout=0.05 + seconds if way == 0 else None)
            try:
                for n, _ in enumerate(stream):
                    if way == 1 and n >= few:
                        stream.cancel()
                    if way == 2 and n >= few:
                        self.control.Abort(self.control_pb.AbortRequest(request_ids=[f"call-{at}"]))
                    if way == 3 and n >= few:
                        return
            except grpc.RpcError as error:
                known = (grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)
                if error.code() not in known:
                    failed.append(f"{way}: {error.code()} {error.details()}")
            finally:
                stream.cancel()

        failed = []
        threads = [threading.Thread(target=one, args=(at, *way)) for at, way in enumerate(ways)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equal(failed, [], "streams")
        equal(self.server.idle(), before, "bytes of the KV cache")
        # No machine makes 1,500 tokens within the deadline.
        self.refused(
            grpc.StatusCode.DEADLINE_EXCEEDED,
            self.request(1500, {"ignore_eos": True}),
            "",
            lambda request: self.inference.Generate(request, timeout=0.05),
        )
        equal(self.server.idle(), before, "bytes after a deadline")

    def what_is_wrong_is_named(self):
        pb, code = self.pb, grpc.StatusCode
        large = pb.GenerateRequest(token_ids=pb.TokenIds(ids=[2000] * (MESSAGE_BYTES // 2 + 100)))
        self.refused(code.RESOURCE_EXHAUSTED, large, str(MESSAGE_BYTES))
        self.refused(code.NOT_FOUND, self.request(model="other"), "other")
        self.refused(code.NOT_FOUND, self.request(lora_name="poet"), "lora_name")
        self.refused(code.UNIMPLEMENTED, self.request(media=[pb.MediaItem()]), "media")
        self.refused(code.UNIMPLEMENTED, self.request(watermarking=True), "watermarking")
        self.refused(code.INVALID_ARGUMENT, self.request(temperature=-1), "temperature")
        self.refused(code.UNIMPLEMENTED, self.control_pb.SleepRequest(), "Sleep", self.control.Sleep)

    def control_says_what_is_served(self):
        info = self.control.GetServerInfo(self.control_pb.GetServerInfoRequest())
        model = self.control.GetModelInfo(self.control_pb.GetModelInfoRequest())
        equal((info.proto_version, model.model_id), ("0.6.0", "nano"), "facts")
        equal(len(self.control.ListLoras(self.control_pb.ListLorasRequest()).adapters), 0, "adapters")

    def reflection_tells_the_files(self, files):
        database = ProtoReflectionDescriptorDatabase(self.channel)
        for service in ("vllm.Inference", "vllm.Control", "grpc.health.v1.Health"):
            if service not in database.get_services():
                raise AssertionError(f"reflection has no {service}")

        def plain(file):
            """What of a file is schema: its names of options and JSON are not."""
            plain = descriptor_pb2.FileDescriptorProto()
            plain.CopyFrom(file)
            plain.ClearField("options")
            plain.ClearField("source_code_info")

            def strip(messages):
                for message in messages:
                    strip(message.nested_type)
                    for field in message.field:
                        field.ClearField("json_name")

            strip(plain.message_type)
            for service in plain.service:
                for method in service.method:
                    method.ClearField("options")
            # The order of messages inside of another means nothing.
            return plain

        for file in files.file:
            found, expected = plain(database.FindFileByName(file.name)), plain(file)
            for kind in ("message_type", "enum_type", "service"):
                found_by = {item.name: item for item in getattr(found, kind)}
                expected_by = {item.name: item for item in getattr(expected, kind)}
                equal(sorted(found_by), sorted(expected_by), f"{file.name}: {kind}")
                for name, item in expected_by.items():
                    equal(text(found_by[name]), text(item), f"{file.name}: {name}")

    def health_follows_the_drain(self):
        status = health_pb2.HealthCheckResponse
        check = lambda name: self.health.Check(health_pb2.HealthCheckRequest(service=name)).status  # noqa: E731
        equal([check(""), check("vllm.Inference")], [status.SERVING] * 2, "before")
        watch = self.health.Watch(health_pb2.HealthCheckRequest(service="vllm.Inference"))
        equal(next(watch).status, status.SERVING, "watched")
        self.control.Shutdown(self.control_pb.ShutdownRequest())
        equal(next(watch).status, status.NOT_SERVING, "watched")
        equal(check(""), status.NOT_SERVING, "after")
        self.refused(grpc.StatusCode.UNAVAILABLE, self.request(), "")


def text(message):
    """A message as text, for comparing; lists of what has names in the order of these."""
    lists = {}
    for field, value in message.ListFields():
        is_list = isinstance(value, (list, tuple)) or hasattr(value, "append")
        named = is_list and len(value) > 0 and hasattr(value[0], "name") and field.name != "oneof_decl"
        items = sorted(value, key=lambda item: item.name) if named else value
        lists[field.name] = [text(item) for item in items] if named else str(value)
    return json.dumps(lists, sort_keys=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernmill", metavar="KERNMILL", nargs="?", default=str(ROOT / "target/release/kernmill"))
    program = parser.parse_args().kernmill
    failed = 0
    with tempfile.TemporaryDirectory() as out:
        files = compiled(protos(), Path(out))
        server = Server(program)
        try:
            check = Check(server, program)
            for name, arguments in [
                ("tokens_are_those_of_http_and_of_run", []),
                ("sequences_have_seeds_of_their_own", []),
                ("logarithms_are_those_of_http", []),
                ("texts_are_held_to_their_forms", []),
                ("stops_end_texts_and_least_numbers_hold", []),
                ("salts_part_the_prefix_cache", []),
                ("what_is_left_leaves_nothing", []),
                ("what_is_wrong_is_named", []),
                ("control_says_what_is_served", []),
                ("reflection_tells_the_files", [files]),
                ("health_follows_the_drain", []),
            ]:
                try:
                    getattr(check, name)(*arguments)
                    print(f"ok      {name}", flush=True)
                except (AssertionError, grpc.RpcError, KeyError, ValueError, StopIteration) as error:
                    failed += 1
                    print(f"FAILED  {name}: {error}", flush=True)
            server.end()
        finally:
            server.process.kill()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

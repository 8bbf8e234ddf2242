"""Random schemas and tools: every answer must have its form, whatever the model would say.

A server with random weights and GPT-OSS's vocabulary shows it best (see README.md). Prints how many answers
were schemas and calls, and fails if one does not have its form.
"""

import argparse
import collections
import concurrent.futures
import json
import random
import sys
import urllib.error
import urllib.request

import jsonschema

NAMES = ["name", "age", "city", "tags", "size", "kind", "note", "sure", "count"]


def schema(rng, depth=0):
    """A random schema; an object at the top."""
    plain = ["string", "integer", "number", "boolean", "enum"]
    kind = "object" if depth == 0 else rng.choice(plain + (["object", "array"] if depth < 2 else []))
    if kind == "object":
        names = rng.sample(NAMES, rng.randint(1, 4))
        properties = {name: schema(rng, depth + 1) for name in names}
        required = names[: rng.randint(1, len(names))]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    if kind == "array":
        return {"type": "array", "items": schema(rng, depth + 1), "maxItems": rng.randint(1, 3)}
    if kind == "string":
        return {"type": "string", "maxLength": rng.randint(1, 12)}
    if kind == "integer":
        return {"type": "integer", "minimum": 0, "maximum": rng.choice([9, 99, 1000])}
    if kind == "enum":
        return {"enum": rng.sample(["red", "green", "blue", 1, 2, None], 2)}
    return {"type": kind}


def ask(address, model, number):
    """Sends the request of a number; what came of it, and a sentence if it is wrong."""
    rng = random.Random(number)
    body = {"model": model, "messages": [{"role": "user", "content": f"Do it, {number}."}], "seed": number, "max_tokens": 800}
    calls = rng.random() < 0.5
    if calls:
        functions = [{"name": f"f{n}", "description": "Does it.", "parameters": schema(rng)} for n in range(rng.randint(1, 3))]
        body["tools"] = [{"type": "function", "function": function} for function in functions]
        body["tool_choice"] = rng.choice(["required", {"type": "function", "function": {"name": "f0"}}])
    else:
        form = schema(rng)
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "form", "schema": form, "strict": True}}
        # Random weights do not end their reasoning.
        body["reasoning_effort"] = "none"
    request = urllib.request.Request(
        address + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=600) as response:
            choice = json.load(response)["choices"][0]
    except urllib.error.HTTPError as error:
        return "refused", error.read().decode()[:300]
    if choice["finish_reason"] == "length":
        return "cut", None
    try:
        if not calls:
            jsonschema.validate(json.loads(choice["message"]["content"]), form)
            return "schema", None
        call = choice["message"]["tool_calls"][0]["function"]
        function = next(function for function in functions if function["name"] == call["name"])
        if isinstance(body["tool_choice"], dict) and call["name"] != "f0":
            return "wrong", f"{call['name']} was called, expected f0"
        jsonschema.validate(json.loads(call["arguments"]), function["parameters"])
        return "call", None
    except (ValueError, KeyError, StopIteration, jsonschema.ValidationError) as error:
        return "wrong", f"{type(error).__name__}: {error}: {json.dumps(choice)[:400]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="of the server, such as http://127.0.0.1:8080")
    parser.add_argument("--model", default="gpt-oss-20b")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--parallel", type=int, default=8)
    args = parser.parse_args()
    counts, wrong = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(args.parallel) as pool:
        answers = pool.map(lambda number: ask(args.address, args.model, number), range(args.count))
        for number, (kind, why) in enumerate(answers):
            counts[kind] += 1
            if why is not None:
                wrong.append(f"{number}: {why}")
    print(dict(counts))
    for line in wrong[:10]:
        print(line)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

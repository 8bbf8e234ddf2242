"""Clients that others wrote, each over what it can do, as a table.

The server is nano (`kernmill serve`), or answers from a script (tools/serve/answers.json, and --model
gpt-oss-20b here). With --node DIR, clients for JavaScript run too: DIR has check.mjs and its packages. With
--script, Codex asks a second server. With --older PYTHON, clients run that need older libraries. See README.md.
A client that is not installed is left out. The status is 1 if one of the others fails.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import traceback
from pathlib import Path

import apis
import frameworks
import programs
from common import FEATURES, GREETINGS

CLIENTS = {
    "openai, chat": apis.OpenAIChat,
    "openai, responses": apis.OpenAIResponses,
    "anthropic": apis.Anthropic,
    "ollama": apis.Ollama,
    "litellm, openai": frameworks.LiteLLMOpenAI,
    "litellm, hosted_vllm": frameworks.LiteLLMVllm,
    "litellm, anthropic": frameworks.LiteLLMAnthropic,
    "litellm, ollama": frameworks.LiteLLMOllama,
    "langchain, openai": frameworks.LangChain,
    "langchain, responses": frameworks.LangChainResponses,
    "langchain, anthropic": frameworks.LangChainAnthropic,
    "langchain, ollama": frameworks.LangChainOllama,
    "llama-index": frameworks.LlamaIndex,
    "openai-agents, chat": frameworks.Agents,
    "openai-agents, responses": frameworks.AgentsResponses,
    "pydantic-ai, chat": frameworks.PydanticAI,
    "pydantic-ai, responses": frameworks.PydanticAIResponses,
    "pydantic-ai, anthropic": frameworks.PydanticAIAnthropic,
    "instructor": frameworks.Instructor,
    "smolagents": frameworks.Smolagents,
    "guidance": frameworks.Guidance,
    "dspy": frameworks.DSPy,
    "lm-eval": programs.LmEval,
    "codex": programs.Codex,
}


def is_there(package):
    """Whether a package is installed, with those that it is inside of."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def python(args):
    """Name, feature, cell and reason of each part."""
    for name, kind in CLIENTS.items():
        is_codex = kind is programs.Codex
        if (args.only and args.only not in name) or not is_there(kind.package) or (is_codex and not (args.script and args.node)):
            continue
        client = kind(args)
        for feature in FEATURES:
            run = getattr(client, feature, None)
            if run is None:
                continue
            try:
                run()
                yield name, feature, "Y", None
            except Exception as error:
                if args.verbose:
                    traceback.print_exc()
                cell = "n" if feature in kind.beyond and args.model == "nano" else "N"
                yield name, feature, cell, kind.beyond[feature] if cell == "n" else f"{type(error).__name__}: {error}"


def told(command):
    """Name, feature, cell and reason of each part that another program checks: a line of JSON for each."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    if not found and ran.returncode:
        raise SystemExit(ran.stderr)
    return [(line["client"], line["feature"], line["cell"], line["why"]) for line in found]


def node(args):
    """Clients for JavaScript, by the node of their directory if it has one."""
    own = Path(args.node, "node_modules/.bin/node")
    program = str(own) if own.exists() else "node"
    return told([program, f"{args.node}/check.mjs", args.base, args.model, args.only or ""])


def older(args):
    """Clients that need older libraries, and those libraries, under names of their own."""
    command = [args.older, __file__, args.base, "--model", args.model, "--lines"]
    found = told(command + (["--only", args.only] if args.only else []))
    return [(name if CLIENTS[name].package not in ("openai", "anthropic") else f"{name}, older", *rest) for name, *rest in found]


def table(found):
    """Prints cells and reasons; whether a part fails by the server's fault."""
    width = max([len(name) for name, *_ in found], default=0)
    print(" " * width, *(f"{feature:>10}" for feature in FEATURES))
    for name in dict.fromkeys(name for name, *_ in found):
        cells = {feature: cell for other, feature, cell, _ in found if other == name}
        print(f"{name:{width}}", *(f"{cells.get(feature, '-'):>10}" for feature in FEATURES))
    for name, feature, cell, why in found:
        if cell != "Y":
            print(f"{cell}: {name}, {feature}: {' '.join(why.split())[:300]}")
    return any(cell == "N" for _, _, cell, _ in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", help="such as http://127.0.0.1:8080/v1")
    parser.add_argument("--model", default="nano", choices=GREETINGS)
    parser.add_argument("--only", help="part of a client's name")
    parser.add_argument("--node", help="directory with check.mjs and its packages")
    parser.add_argument("--script", help="address of the server that Codex asks")
    parser.add_argument("--older", help="python with the packages of requirements-older.txt")
    parser.add_argument("--lines", action="store_true", help="print a line of JSON for each part, and no table")
    parser.add_argument("-v", "--verbose", action="store_true", help="say where an error comes from")
    args = parser.parse_args()
    found = list(python(args))
    if args.lines:
        for client, feature, cell, why in found:
            print(json.dumps({"client": client, "feature": feature, "cell": cell, "why": why}))
        return
    found += [*(older(args) if args.older else []), *(node(args) if args.node else [])]
    sys.exit(table(found))


if __name__ == "__main__":
    main()

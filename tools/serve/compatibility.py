"""Calls of tools as OpenAI's compatibility test for GPT-OSS asks for them, over Responses and chat completions.

    compatibility.py script TOKENIZER.json > SCRIPT.json
    kernmill serve --script SCRIPT.json
    compatibility.py run http://127.0.0.1:8080/v1

Each case is a prompt, and the call that the script makes of it: no arguments, texts with quotes and lines, lists of
lists of numbers, alternatives, what may be null. It runs whole and as a stream, over both APIs, and each run must
give the call with these arguments, valid by the tool's schema; reasoning that is not empty, also in the stream;
and, after the result was handed back with the reasoning, the final text.
"""

import argparse
import collections
import json
import re
import sys
import traceback

import jsonschema

MODEL = "gpt-oss-20b"
DONE = "That is done."


def tool(name, **properties):
    form = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"name": name, "description": f"Does what {name} says.", "parameters": form}


TEXT, COUNT = {"type": "string"}, {"type": "integer"}
TOOLS = {
    one["name"]: one
    for one in [
        tool("service_status"),
        tool("translate", text=TEXT, language={"type": "string", "enum": ["de", "fr", "ja", "sw"]}),
        tool("render_markdown", source={**TEXT, "description": "Markdown, with its line ends."}),
        tool(
            "plot",
            points={"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
            kind={"type": "string", "enum": ["line", "bar", "scatter"]},
            title={"type": ["string", "null"]},
        ),
        tool(
            "search_table",
            table=TEXT,
            columns={"type": "array", "items": TEXT},
            where={"type": ["string", "null"]},
            limit={"type": "integer", "minimum": 1, "maximum": 1000},
            order={
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"column": TEXT, "descending": {"type": "boolean"}},
                    "required": ["column", "descending"],
                    "additionalProperties": False,
                },
            },
        ),
    ]
}

# Prompts and the calls that they lead to.
CASES = [
    *((prompt, "service_status", {}) for prompt in [
        "Is everything up?",
        "Are all services healthy now?",
        "Status, please",
        "Check the platform before I deploy",
        "Did anything go down in the night?",
        "Give me a health report",
    ]),
    *((f"Say {text!r} in {language}", "translate", {"text": text, "language": language}) for text, language in [
        ("Good morning", "de"),
        ("It's \"late\", isn't it?", "fr"),
        ("Zwölf Boxkämpfer jagen Viktor", "sw"),
        ("寿司を食べます", "fr"),
        ("back\\slash and / slash", "ja"),
        ("🙂 a smile", "de"),
    ]),
    *((f"Make a page of note {number}", "render_markdown", {"source": source}) for number, source in enumerate([
        "# Title\n\nA *word*.",
        "- one\n- two\n  - three\n",
        "```rust\nfn main() { println!(\"{}\", 1); }\n```",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "",
        "<b>bold</b> & <i>more</i>\ttab",
    ])),
    *((f"Draw figure {number}", "plot", {"points": points, "kind": kind, "title": title}) for number, (points, kind, title) in enumerate([
        ([[1, 2], [3, 4]], "line", "Sales"),
        ([[0, 0]], "scatter", None),
        ([], "bar", "Nothing"),
        ([[-1.5, 2.25], [0.001, 1000000]], "scatter", "Numbers"),
        ([[n, n * n] for n in range(12)], "line", None),
        ([[1, 10], [2, 20], [3, 15]], "bar", "Größe (m²)"),
    ])),
    *((f"Look up query {number}", "search_table", arguments) for number, arguments in enumerate([
        {"table": "users", "columns": ["id"], "where": None, "limit": 1, "order": []},
        {"table": "users", "columns": ["id", "name"], "where": "age > 30", "limit": 10, "order": [{"column": "name", "descending": False}]},
        {"table": "orders", "columns": [], "where": "city = 'Oslo'", "limit": 1000, "order": []},
        {"table": "logs", "columns": ["at", "text"], "where": "text LIKE '%error%'", "limit": 50, "order": [{"column": "at", "descending": True}]},
        {"table": "a b", "columns": ["x y"], "where": None, "limit": 7, "order": [{"column": "x y", "descending": True}, {"column": "z", "descending": False}]},
        {"table": "prices", "columns": ["sku"], "where": "price < 9.99 AND note <> \"none\"", "limit": 100, "order": []},
    ])),
]


def script(tokenizer):
    rules = [{"match": "^functions", "reasoning": "The tool has answered.", "answer": DONE}]
    for prompt, name, arguments in CASES:
        rules.append({"match": re.escape(prompt), "reasoning": f"I call {name}.", "call": {"name": name, "arguments": arguments}})
    print(json.dumps({"tokenizer": tokenizer, "model": MODEL, "rules": rules}, ensure_ascii=False, indent=1))


def held(holds, what):
    if not holds:
        raise AssertionError(what)


def check_call(name, arguments, expected):
    """Checks a call against the tool's schema and the case."""
    found = json.loads(arguments)
    held(name == expected[1], f"{name} was called, expected {expected[1]}")
    jsonschema.validate(found, TOOLS[name]["parameters"])
    held(found == expected[2], f"{arguments}, expected {expected[2]}")


def chat(client, case, streams):
    tools = [{"type": "function", "function": {**one, "strict": True}} for one in TOOLS.values()]
    messages = [{"role": "system", "content": "Use the tools."}, {"role": "user", "content": case[0]}]
    for turn in range(2):
        fields = {"model": MODEL, "messages": messages, "tools": tools}
        if streams:
            content, reasoning, reason, calls = "", "", None, {}
            for piece in client.chat.completions.create(stream=True, **fields):
                delta = piece.choices[0].delta
                content += delta.content or ""
                reasoning += getattr(delta, "reasoning", None) or ""
                reason = piece.choices[0].finish_reason or reason
                for part in delta.tool_calls or []:
                    call = calls.setdefault(part.index, {"id": part.id, "name": part.function.name, "arguments": ""})
                    call["arguments"] += part.function.arguments or ""
            calls = [calls[index] for index in sorted(calls)]
        else:
            choice = client.chat.completions.create(**fields).choices[0]
            content, reasoning, reason = choice.message.content or "", choice.message.reasoning, choice.finish_reason
            calls = [{"id": call.id, **call.function.model_dump()} for call in choice.message.tool_calls or []]
        held(reasoning, "no reasoning")
        if turn == 1:
            held((content, reason, calls) == (DONE, "stop", []), f"{content!r}, {reason}, {calls}")
            return
        held((len(calls), reason) == (1, "tool_calls"), f"{calls}, {reason}")
        check_call(calls[0]["name"], calls[0]["arguments"], case)
        function = {"name": calls[0]["name"], "arguments": calls[0]["arguments"]}
        call = {"id": calls[0]["id"], "type": "function", "function": function}
        messages.append({"role": "assistant", "content": content or None, "reasoning": reasoning, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": calls[0]["id"], "content": "done"})


def responses(client, case, streams):
    tools = [{"type": "function", "strict": True, **one} for one in TOOLS.values()]
    given = [{"role": "user", "content": case[0]}]
    for turn in range(2):
        fields = {"model": MODEL, "instructions": "Use the tools.", "input": given, "tools": tools, "store": False}
        if streams:
            deltas = collections.Counter()
            for number, event in enumerate(client.responses.create(stream=True, **fields)):
                held(event.sequence_number == number, f"event {number} is numbered {event.sequence_number}")
                deltas[event.type] += 1
                if event.type == "response.completed":
                    response = event.response
            held(deltas["response.reasoning_text.delta"] and deltas["response.completed"] == 1, f"events {dict(deltas)}")
        else:
            response = client.responses.create(**fields)
        reasoning = [part for item in response.output if item.type == "reasoning" for part in item.content]
        held(reasoning and all(part.type == "reasoning_text" and part.text for part in reasoning), "no reasoning")
        calls = [item for item in response.output if item.type == "function_call"]
        if turn == 1:
            held((response.output_text, response.status, calls) == (DONE, "completed", []), response.to_json())
            return
        held(len(calls) == 1, response.to_json())
        check_call(calls[0].name, calls[0].arguments, case)
        given = given + [item.to_dict() for item in response.output]
        given.append({"type": "function_call_output", "call_id": calls[0].call_id, "output": "done"})


def run(base):
    from openai import OpenAI

    client = OpenAI(base_url=base, api_key="none", max_retries=0)
    failed = 0
    for api in (chat, responses):
        for streams in (False, True):
            passed = 0
            for case in CASES:
                try:
                    api(client, case, streams)
                    passed += 1
                except Exception:
                    print(f"FAILED {api.__name__}, {'streamed' if streams else 'whole'}: {case}\n{traceback.format_exc()}")
            print(f"{api.__name__}, {'streamed' if streams else 'whole'}: {passed} of {len(CASES)} cases")
            failed += len(CASES) - passed
    sys.exit(bool(failed))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("script", help="prints the script").add_argument("tokenizer", help="path from where the script will lie")
    commands.add_parser("run", help="runs the cases").add_argument("base", help="such as http://127.0.0.1:8080/v1")
    args = parser.parse_args()
    if args.command == "script":
        script(args.tokenizer)
    else:
        run(args.base)


if __name__ == "__main__":
    main()

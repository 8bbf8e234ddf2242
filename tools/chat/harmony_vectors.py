"""The test vectors of openai-harmony: prompts and outputs of its `test-data`, against kernmill-chat.

    harmony_vectors.py TEST_DATA --vocabulary DIR [--program FILE]

TEST_DATA is the directory `test-data` of the package's source distribution, DIR holds `o200k_base.tiktoken`. Each
text is read back into a conversation, which the example `harmony` renders; the ids must be those of the text,
but for the deviations that are meant. Each file's are named in `RENDERED` and made in `meant`. Fails if one differs.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

SYSTEM = (
    "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\n\n"
    "Reasoning: medium\n\n# Valid channels: analysis, commentary, final. Channel must be included for every message."
)
FUNCTIONS_LINE = "\nCalls to these tools must go to the commentary channel: 'functions'."
MESSAGE = re.compile(r"<\|start\|>([^<]*(?:<\|(?:channel|constrain)\|>[^<]*)*)<\|message\|>(.*?)<\|(?:end|call)\|>", re.S)

# Files with prompts, and in what ours is meant to differ.
RENDERED = {
    "simple_convo": "",
    "simple_convo_low_effort": "",
    "simple_convo_medium_effort": "",
    "simple_convo_high_effort": "",
    "simple_convo_low_effort_no_instruction": "",
    "simple_convo_medium_effort_no_instruction": "",
    "simple_convo_high_effort_no_instruction": "",
    "reasoning_system_message": "channels",
    "reasoning_system_message_no_instruction": "channels",
    "reasoning_system_message_with_dates": "channels cutoff",
    "render_functions_with_parameters": "",
    "no_tools": "",
    "browser_tool_only": "",
    "browser_and_function_tool": "",
    "browser_and_python_tool": "",
    "dropping_cot_by_default": "system",
    "does_not_drop_if_ongoing_analysis": "system call output",
    "preserve_cot": "system reasoning",
    "keep_analysis_between_finals": "system reasoning start",
    "tool_response_parsing": "system channel start",
}
WHY = {
    "channels": "all three channels are always valid",
    "cutoff": "one knowledge cutoff",
    "system": "there is always a system message",
    "call": "past calls have the template's content type",
    "output": "outputs have a recipient and a channel",
    "channel": "outputs of builtin tools come in the channel of their calls",
    "reasoning": "reasoning goes if an answer follows",
    "start": "a prompt ends with the start of the answer",
}


def string(description=None, **more):
    return {"type": "string", **({"description": description} if description else {}), **more}


def function(name, description, properties=None, required=(), about=None):
    parameters = None if properties is None else {"type": "object", "properties": properties, "required": list(required)}
    if about:
        parameters["description"] = about
    return {"name": name, "description": description, "parameters": parameters}


UNIT = string(enum=["celsius", "fahrenheit"], default="celsius")
TOOLS = {
    "render_functions_with_parameters": [
        function("get_location", "Gets the location of the user."),
        function(
            "get_current_weather",
            "Gets the current weather in the provided location.",
            {"location": string("The city and state, e.g. San Francisco, CA"), "format": UNIT},
            ["location"],
        ),
        function(
            "get_multiple_weathers",
            "Gets the current weather in the provided list of locations.",
            {
                "locations": {
                    "type": "array",
                    "items": string(),
                    "description": 'List of city and state, e.g. ["San Francisco, CA", "New York, NY"]',
                },
                "format": UNIT,
            },
            ["locations"],
        ),
        function(
            "kitchensink",
            "A function with various complex schemas.",
            {
                "string": string("A string", title="STRING", examples=["hello", "world"]),
                "string_nullable": string("A nullable string", nullable=True, default="the default"),
                "string_enum": string(enum=["a", "b", "c"]),
                "oneof_string_or_number": {
                    "oneOf": [string(default="default_string_in_oneof"), {"type": "number", "description": "numbers can happen too"}],
                    "description": "a oneof",
                    "default": 20,
                },
            },
            about="params object",
        ),
    ],
    "browser_and_function_tool": [
        function(
            "lookup_weather",
            "Use this tool to lookup the weather in a given location. Call it with the parameter 'location', can be any textual description "
            "of a location.",
            {"location": string()},
            ["location"],
        )
    ],
}

# Outputs of a model, and the parts that they have. The last message of `streamable_parser` is a tool's, which no
# model should write: nothing of it may be lost.
PARSED = {
    "simple_reasoning_response": [
        ("Reasoning", 'User asks: "What is 2 + 2?" Simple arithmetic. Provide answer.'),
        ("Answer", "2 + 2 = 4."),
    ],
    "simple_tool_call": [
        ("Reasoning", 'User asks: "What is the weather in Tokyo?" We need to use lookup_weather tool.'),
        ("Call lookup_weather", '{"location": "Tokyo"}'),
    ],
    "streamable_parser": [
        (
            "Reasoning",
            'User asks "Who is the current US president?" It\'s 2025, presumably current president is Joe Biden? Actually as of 2025-07-28, '
            "there was a 2024 election. In 2024, President is probably President Biden still? But w\ne need up to date info. Let's browse to "
            "confirm.",
        ),
        ("Call browser.search", '{"query": "current US president July 2025", "topn": 10, "source": "news"}'),
        ("Preamble", '{"result": "https://openai.com/"}'),
    ],
}


def conversation(name, text):
    """The conversation that a text shows."""
    made = {"items": [], "tools": TOOLS.get(name, []), "builtin": [], "effort": "medium", "date": None}
    for header, content in MESSAGE.findall(text):
        items = made["items"]
        if header == "system":
            made["effort"] = re.search("Reasoning: (.*)", content)[1]
            date = re.search("Current date: (.*)", content)
            made["date"] = date and date[1]
            made["builtin"] = re.findall("^## (browser|python)$", content, re.M)
        elif header == "developer":
            said = re.search(r"# Instructions\n\n(.*?)(?:\n\n# Tools|$)", content, re.S)
            items += [{"instructions": said[1]}] if said else []
        elif header == "user":
            items.append({"user": {"name": None, "text": content}})
        elif header.startswith("assistant<|channel|>"):
            items.append({{"analysis": "reasoning", "final": "answer"}[header.rsplit(">", 1)[1]]: content})
        elif header.startswith("assistant to="):
            items.append({"call": {"id": "c", "name": header.split("functions.")[1].split("<")[0], "arguments": content}})
        else:
            called = re.match(r"functions\.(\w+)|([\w.]+)", header)
            items.append({"output": {"id": "c", "name": called[1] or called[2], "text": content, "is_builtin": called[1] is None}})
    return made


def meant(deviations, text):
    """A text with the deviations that are meant."""
    if "channels" in deviations:
        text = text.replace("channels: analysis, final.", "channels: analysis, commentary, final.")
    if "cutoff" in deviations:
        text = text.replace("2021-01\n", "2024-06\n", 1)
    if "call" in deviations:
        text = text.replace(" <|constrain|>json", " json")
    if "output" in deviations:
        text = re.sub(r"(<\|start\|>functions\.\w+)", r"\1 to=assistant<|channel|>commentary", text)
    if "channel" in deviations:
        text = text.replace("<|channel|>commentary", "<|channel|>analysis")
    if "reasoning" in deviations:
        text = re.sub(r"<\|start\|>assistant<\|channel\|>analysis<\|message\|>.*?<\|end\|>", "", text)
    if "start" in deviations:
        text = text.removesuffix("<|end|>") + "<|end|><|start|>assistant"
    return SYSTEM + "<|end|>" + text if "system" in deviations else text


def parts(line):
    """Kinds and contents of the parts in the example's events."""
    found = []
    for begin, delta in re.findall(r'Begin\((\w+(?: \{[^}]*\})?)\)|Delta\("((?:[^"\\]|\\.)*)"\)', line):
        if begin:
            name = re.search('name: "(.*?)"', begin)
            found.append(["Call " + name[1] if name else begin, ""])
        else:
            found[-1][1] += json.loads(f'"{delta}"'.replace("\\'", "'"))
    return [tuple(part) for part in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("test_data", type=Path)
    parser.add_argument("--vocabulary", required=True, help="directory of o200k_base.tiktoken")
    parser.add_argument("--program", default="target/debug/examples/harmony", help="the example `harmony`")
    args = parser.parse_args()
    os.environ["TIKTOKEN_ENCODINGS_BASE"] = args.vocabulary
    import openai_harmony as harmony

    encoding = harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)
    files = {path.stem.removeprefix("test_"): path.read_text(encoding="utf-8").rstrip() for path in args.test_data.glob("*.txt")}
    if files.keys() != RENDERED.keys() | PARSED.keys():
        sys.exit(f"files and cases differ: {sorted(files.keys() ^ (RENDERED.keys() | PARSED.keys()))}")

    def run(lines, *mode):
        ran = subprocess.run([args.program, *mode], input="".join(json.dumps(line) + "\n" for line in lines), text=True, capture_output=True, check=True)
        return ran.stdout.splitlines()

    failed = 0
    texts = {name: files[name] + ("<|end|>" if name == "tool_response_parsing" else "") for name in RENDERED}
    ours = run([conversation(name, text) for name, text in texts.items()])
    for (name, deviations), found in zip(RENDERED.items(), ours, strict=True):
        wanted = encoding.encode(meant(deviations.split(), texts[name]), allowed_special="all")
        found = json.loads(found)
        failed += found != wanted
        if found != wanted:
            print(f"FAILED {name}\n  ours: {encoding.decode(found)!r}\n  wanted: {encoding.decode(wanted)!r}")
        else:
            print(f"  ok  {name}" + "".join(f"; {WHY[one]}" for one in deviations.split()))
    is_text = {name: files[name].startswith("<") for name in PARSED}
    outputs = [encoding.encode(files[name], allowed_special="all") if is_text[name] else [int(id) for id in files[name].split()] for name in PARSED]
    for (name, wanted), line in zip(PARSED.items(), run(outputs, "parse"), strict=True):
        found = parts(line)
        failed += found != wanted
        print(f"  ok  {name}" if found == wanted else f"FAILED {name}\n  ours: {found}\n  wanted: {wanted}")
    print(f"{len(files)} files, {failed} differ")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()

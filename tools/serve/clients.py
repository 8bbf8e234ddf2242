"""Clients that others wrote, against a server: what each of them is for, once.

The server answers from `answers.json` (`kernmill serve --script tools/serve/answers.json`, see README.md).
Clients that are not installed are named and left out. Fails if one of the others does.
"""

import argparse
import asyncio
import importlib.util
import json
import sys
import traceback

MODEL = "gpt-oss-20b"
PARAMETERS = {
    "type": "object",
    "properties": {"location": {"type": "string"}},
    "required": ["location"],
    "additionalProperties": False,
}
FUNCTION = {"name": "get_weather", "description": "Tells the weather.", "parameters": PARAMETERS}
WEATHER = "How is the weather in Oslo?"
GREETING = "Hello! One, two, three, four, five."


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"{found!r}, expected {expected!r}")


def openai_chat(base):
    from openai import BadRequestError, NotFoundError, OpenAI
    from pydantic import BaseModel

    class Person(BaseModel):
        name: str
        age: int

    client = OpenAI(base_url=base, api_key="none")
    equal([model.id for model in client.models.list()][0], MODEL)
    messages = [{"role": "user", "content": "Hi"}]
    whole = client.chat.completions.create(model=MODEL, messages=messages)
    equal(whole.choices[0].message.content, GREETING)
    pieces = client.chat.completions.create(model=MODEL, messages=messages, stream=True, stream_options={"include_usage": True})
    text, usage = "", None
    for piece in pieces:
        text += (piece.choices[0].delta.content or "") if piece.choices else ""
        usage = piece.usage or usage
    equal((text, usage.completion_tokens), (GREETING, whole.usage.completion_tokens))
    parsed = client.chat.completions.parse(model=MODEL, messages=[{"role": "user", "content": "A person"}], response_format=Person)
    equal(parsed.choices[0].message.parsed, Person(name="Alice", age=30))
    messages = [{"role": "user", "content": WEATHER}]
    tools = [{"type": "function", "function": FUNCTION}]
    called = client.chat.completions.create(model=MODEL, messages=messages, tools=tools).choices[0]
    equal((called.finish_reason, called.message.tool_calls[0].function.name), ("tool_calls", "get_weather"))
    messages += [called.message, {"role": "tool", "tool_call_id": called.message.tool_calls[0].id, "content": "sun"}]
    equal(client.chat.completions.create(model=MODEL, messages=messages, tools=tools).choices[0].message.content, "It is sunny.")
    for error, fields in [(NotFoundError, {"model": "other"}), (BadRequestError, {"model": MODEL, "temperature": 1000})]:
        try:
            client.chat.completions.create(messages=messages, **fields)
        except error:
            continue
        raise AssertionError(f"{fields} is no {error.__name__}")


def openai_responses(base):
    from openai import OpenAI

    client = OpenAI(base_url=base, api_key="none")
    equal(client.responses.create(model=MODEL, input="Hi").output_text, GREETING)
    with client.responses.stream(model=MODEL, input="Hi") as stream:
        kinds = [event.type for event in stream]
        equal(stream.get_final_response().output_text, GREETING)
    equal((kinds[0], kinds[-1]), ("response.created", "response.completed"))
    tools = [{"type": "function", **FUNCTION}]
    response = client.responses.create(model=MODEL, input=WEATHER, tools=tools)
    call = next(item for item in response.output if item.type == "function_call")
    equal(json.loads(call.arguments), {"location": "Oslo"})
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "sun"}
    answer = client.responses.create(model=MODEL, input=[result], previous_response_id=response.id, tools=tools)
    equal(answer.output_text, "It is sunny.")


def anthropic_messages(base):
    from anthropic import Anthropic

    client = Anthropic(base_url=base.removesuffix("/v1"), api_key="none")
    messages = [{"role": "user", "content": "Hi"}]
    message = client.messages.create(model=MODEL, max_tokens=200, messages=messages)
    equal([block.text for block in message.content if block.type == "text"], [GREETING])
    with client.messages.stream(model=MODEL, max_tokens=200, messages=messages) as stream:
        equal("".join(stream.text_stream), GREETING)
    tools = [{"name": FUNCTION["name"], "description": FUNCTION["description"], "input_schema": PARAMETERS}]
    messages = [{"role": "user", "content": WEATHER}]
    message = client.messages.create(model=MODEL, max_tokens=200, messages=messages, tools=tools)
    use = next(block for block in message.content if block.type == "tool_use")
    equal((message.stop_reason, use.input), ("tool_use", {"location": "Oslo"}))
    result = {"type": "tool_result", "tool_use_id": use.id, "content": "sun"}
    messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
    message = client.messages.create(model=MODEL, max_tokens=200, messages=messages, tools=tools)
    equal(message.content[-1].text, "It is sunny.")


def agents(base):
    from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)

    @function_tool
    def get_weather(location: str) -> str:
        """Tells the weather."""
        return f"sun in {location}"

    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        model = kind(model=MODEL, openai_client=AsyncOpenAI(base_url=base, api_key="none"))
        agent = Agent(name="helper", instructions="Help.", tools=[get_weather], model=model)
        equal(asyncio.run(Runner.run(agent, WEATHER)).final_output, "It is sunny.")


def langchain_openai(base):
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool
    def get_weather(location: str) -> str:
        """Tells the weather."""
        return "sun"

    model = ChatOpenAI(base_url=base, api_key="none", model=MODEL)
    equal(model.invoke("Hi").content, GREETING)
    equal("".join(piece.content for piece in model.stream("Hi")), GREETING)
    equal(model.bind_tools([get_weather]).invoke(WEATHER).tool_calls[0]["args"], {"location": "Oslo"})
    equal(model.with_structured_output(PERSON, method="json_schema").invoke("A person"), {"name": "Alice", "age": 30})


PERSON = {
    "title": "person",
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def litellm(base):
    import litellm as client

    client.telemetry = False
    fields = {"model": f"openai/{MODEL}", "api_base": base, "api_key": "none"}
    answer = client.completion(messages=[{"role": "user", "content": "Hi"}], **fields)
    equal(answer.choices[0].message.content, GREETING)
    pieces = client.completion(messages=[{"role": "user", "content": "Hi"}], stream=True, **fields)
    equal("".join(piece.choices[0].delta.content or "" for piece in pieces), GREETING)


def instructor(base):
    import instructor as client
    from openai import OpenAI
    from pydantic import BaseModel

    class Person(BaseModel):
        name: str
        age: int

    patched = client.from_openai(OpenAI(base_url=base, api_key="none"), mode=client.Mode.JSON_SCHEMA)
    person = patched.chat.completions.create(model=MODEL, response_model=Person, messages=[{"role": "user", "content": "A person"}])
    equal((person.name, person.age), ("Alice", 30))


def pydantic_ai(base):
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    agent = Agent(OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=base, api_key="none")))

    @agent.tool_plain
    def get_weather(location: str) -> str:
        """Tells the weather."""
        return f"sun in {location}"

    equal(agent.run_sync("Hi").output, GREETING)
    equal(agent.run_sync(WEATHER).output, "It is sunny.")


CLIENTS = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "anthropic": anthropic_messages,
    "agents": agents,
    "langchain_openai": langchain_openai,
    "litellm": litellm,
    "instructor": instructor,
    "pydantic_ai": pydantic_ai,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", help="such as http://127.0.0.1:8080/v1")
    parser.add_argument("--only", help="one of " + ", ".join(CLIENTS))
    args = parser.parse_args()
    failed = 0
    for name, run in CLIENTS.items():
        if args.only and name != args.only:
            continue
        if importlib.util.find_spec(name.removesuffix("_chat").removesuffix("_responses")) is None:
            print(f"  --  {name}: not installed")
            continue
        try:
            run(args.base)
            print(f"  ok  {name}")
        except Exception:
            failed += 1
            print(f"FAILED {name}\n{traceback.format_exc()}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()

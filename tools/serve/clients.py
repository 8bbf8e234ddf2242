"""Clients that others wrote, against a server: what each of them is for, once.

The server answers from `answers.json` (`kernmill serve --script tools/serve/answers.json`, see README.md), or
is nano (`kernmill serve`, and --model nano here). Clients that are not installed are named and left out. Fails
if one of the others does.
"""

import argparse
import asyncio
import importlib.util
import json
import sys
import traceback

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Name of the city."}},
    "required": ["city"],
    "additionalProperties": False,
}
FUNCTION = {"name": "get_weather", "description": "Gets the weather of a city.", "parameters": PARAMETERS}
WEATHER = "What is the weather in Oslo?"
RESULT = json.dumps({"sky": "rainy", "degrees": 7}, separators=(",", ":"))
PERSON_TEXT = "As JSON: name: Alice, age: 30"
MODEL = "gpt-oss-20b"
# What the models say to "Hi", and about the weather.
ANSWERS = {
    "gpt-oss-20b": ("Hello! One, two, three, four, five.", "It is rainy in Oslo, 7 degrees."),
    "nano": ("Hello! How can I help you?", "It is rainy in Oslo, 7 degrees."),
}
GREETING, SUMMARY = ANSWERS[MODEL]


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
    equal(client.models.list().data[0].id, MODEL)
    messages = [{"role": "user", "content": "Hi"}]
    whole = client.chat.completions.create(model=MODEL, temperature=0, messages=messages)
    equal(whole.choices[0].message.content, GREETING)
    pieces = client.chat.completions.create(model=MODEL, temperature=0, messages=messages, stream=True, stream_options={"include_usage": True})
    text, usage = "", None
    for piece in pieces:
        text += (piece.choices[0].delta.content or "") if piece.choices else ""
        usage = piece.usage or usage
    equal((text, usage.completion_tokens), (GREETING, whole.usage.completion_tokens))
    parsed = client.chat.completions.parse(model=MODEL, temperature=0, messages=[{"role": "user", "content": PERSON_TEXT}], response_format=Person)
    equal(parsed.choices[0].message.parsed, Person(name="Alice", age=30))
    messages = [{"role": "user", "content": WEATHER}]
    tools = [{"type": "function", "function": FUNCTION}]
    called = client.chat.completions.create(model=MODEL, temperature=0, messages=messages, tools=tools).choices[0]
    equal((called.finish_reason, called.message.tool_calls[0].function.name), ("tool_calls", "get_weather"))
    messages += [called.message, {"role": "tool", "tool_call_id": called.message.tool_calls[0].id, "content": RESULT}]
    equal(client.chat.completions.create(model=MODEL, temperature=0, messages=messages, tools=tools).choices[0].message.content, SUMMARY)
    for error, fields in [(NotFoundError, {"model": "other"}), (BadRequestError, {"model": MODEL, "temperature": 1000})]:
        try:
            client.chat.completions.create(messages=messages, **fields)
        except error:
            continue
        raise AssertionError(f"{fields} is no {error.__name__}")


def openai_responses(base):
    from openai import OpenAI

    client = OpenAI(base_url=base, api_key="none")
    equal(client.responses.create(model=MODEL, temperature=0, input="Hi").output_text, GREETING)
    with client.responses.stream(model=MODEL, temperature=0, input="Hi") as stream:
        kinds = [event.type for event in stream]
        equal(stream.get_final_response().output_text, GREETING)
    equal((kinds[0], kinds[-1]), ("response.created", "response.completed"))
    tools = [{"type": "function", **FUNCTION}]
    response = client.responses.create(model=MODEL, temperature=0, input=WEATHER, tools=tools)
    call = next(item for item in response.output if item.type == "function_call")
    equal(json.loads(call.arguments), {"city": "Oslo"})
    result = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
    answer = client.responses.create(model=MODEL, temperature=0, input=[result], previous_response_id=response.id, tools=tools)
    equal(answer.output_text, SUMMARY)


def anthropic_messages(base):
    from anthropic import Anthropic

    client = Anthropic(base_url=base.removesuffix("/v1"), api_key="none")
    # The client has no name for the temperature any more.
    fields = {"model": MODEL, "max_tokens": 200, "extra_body": {"temperature": 0}}
    messages = [{"role": "user", "content": "Hi"}]
    message = client.messages.create(**fields, messages=messages)
    equal([block.text for block in message.content if block.type == "text"], [GREETING])
    with client.messages.stream(**fields, messages=messages) as stream:
        equal("".join(stream.text_stream), GREETING)
    tools = [{"name": FUNCTION["name"], "description": FUNCTION["description"], "input_schema": PARAMETERS}]
    messages = [{"role": "user", "content": WEATHER}]
    message = client.messages.create(**fields, messages=messages, tools=tools)
    use = next(block for block in message.content if block.type == "tool_use")
    equal((message.stop_reason, use.input), ("tool_use", {"city": "Oslo"}))
    result = {"type": "tool_result", "tool_use_id": use.id, "content": RESULT}
    messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
    message = client.messages.create(**fields, messages=messages, tools=tools)
    equal(message.content[-1].text, SUMMARY)


def ollama(base):
    from ollama import Client, ResponseError

    client = Client(base.removesuffix("/v1"))
    equal(client.list().models[0].model, MODEL + ":latest")
    equal(client.ps().models[0].model, MODEL + ":latest")
    shown = client.show(MODEL)
    equal("completion" in shown.capabilities, True)
    options = {"temperature": 0, "num_predict": 200}
    messages = [{"role": "user", "content": "Hi"}]
    whole = client.chat(MODEL, messages, options=options)
    equal((whole.message.content, whole.done, whole.done_reason), (GREETING, True, "stop"))
    pieces = list(client.chat(MODEL, messages, options=options, stream=True))
    equal("".join(piece.message.content for piece in pieces), GREETING)
    equal("".join(piece.message.thinking or "" for piece in pieces), whole.message.thinking or "")
    equal((pieces[-1].eval_count, pieces[-1].prompt_eval_count), (whole.eval_count, whole.prompt_eval_count))
    equal(client.generate(MODEL, "Hi", options=options).response, GREETING)
    equal("".join(piece.response for piece in client.generate(MODEL, "Hi", options=options, stream=True)), GREETING)
    equal(client.generate(MODEL, keep_alive="5m").done_reason, "load")
    properties = {"name": {"type": "string"}, "age": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["name", "age"]}
    person = client.chat(MODEL, [{"role": "user", "content": PERSON_TEXT}], format=schema, options=options)
    equal(json.loads(person.message.content), {"name": "Alice", "age": 30})
    messages = [{"role": "user", "content": WEATHER}]
    tools = [{"type": "function", "function": FUNCTION}]
    called = client.chat(MODEL, messages, tools=tools, options=options).message
    function = called.tool_calls[0].function
    equal((function.name, function.arguments), ("get_weather", {"city": "Oslo"}))
    messages += [called, {"role": "tool", "tool_name": "get_weather", "content": RESULT}]
    equal(client.chat(MODEL, messages, tools=tools, options=options).message.content, SUMMARY)
    for ask in (lambda: client.chat("none", messages), lambda: client.pull(MODEL), lambda: client.embed(MODEL, "Hi")):
        try:
            ask()
            raise AssertionError("it is not refused")
        except ResponseError as error:
            equal(error.status_code, 404)


def agents(base):
    from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)

    @function_tool
    def get_weather(city: str) -> str:
        """Gets the weather of a city.

        Args:
            city: Name of the city.
        """
        return RESULT

    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        model = kind(model=MODEL, openai_client=AsyncOpenAI(base_url=base, api_key="none"))
        agent = Agent(name="helper", instructions="Help the user.", tools=[get_weather], model=model, model_settings=ModelSettings(temperature=0))
        equal(asyncio.run(Runner.run(agent, WEATHER)).final_output, SUMMARY)


def langchain_openai(base):
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool
    def get_weather(city: str) -> str:
        """Gets the weather of a city.

        Args:
            city: Name of the city.
        """
        return RESULT

    model = ChatOpenAI(base_url=base, api_key="none", model=MODEL, temperature=0)
    equal(model.invoke("Hi").content, GREETING)
    equal("".join(piece.content for piece in model.stream("Hi")), GREETING)
    equal(model.bind_tools([get_weather]).invoke(WEATHER).tool_calls[0]["args"], {"city": "Oslo"})
    equal(model.with_structured_output(PERSON, method="json_schema").invoke(PERSON_TEXT), {"name": "Alice", "age": 30})


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
    fields = {"model": f"openai/{MODEL}", "api_base": base, "api_key": "none", "temperature": 0}
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
    person = patched.chat.completions.create(model=MODEL, temperature=0, response_model=Person, messages=[{"role": "user", "content": PERSON_TEXT}])
    equal((person.name, person.age), ("Alice", 30))


def pydantic_ai(base):
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=base, api_key="none"))
    settings = {"temperature": 0}
    equal(Agent(model, model_settings=settings).run_sync("Hi").output, GREETING)
    agent = Agent(model, model_settings=settings)

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """Gets the weather of a city.

        Args:
            city: Name of the city.
        """
        return RESULT

    equal(agent.run_sync(WEATHER).output, SUMMARY)


CLIENTS = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "anthropic": anthropic_messages,
    "ollama": ollama,
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
    parser.add_argument("--model", default="gpt-oss-20b", choices=ANSWERS)
    args = parser.parse_args()
    global MODEL, GREETING, SUMMARY
    MODEL, (GREETING, SUMMARY) = args.model, ANSWERS[args.model]
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

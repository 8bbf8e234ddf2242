"""Clients that others wrote, each over what it can do, as a table: chat, stream, tools, structured, reasoning.

The server is nano (`kernmill serve`), or answers from a script (tools/serve/answers.json, and --model
gpt-oss-20b here). With --node DIR, clients for JavaScript run too: DIR has check.mjs and its packages. See
README.md. A client that is not installed is named and left out. The status is 1 if one of the others fails.
"""

import argparse
import asyncio
import importlib.util
import json
import subprocess
import sys
import traceback

FEATURES = ("chat", "stream", "tools", "structured", "reasoning")
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Name of the city."}},
    "required": ["city"],
    "additionalProperties": False,
}
FUNCTION = {"name": "get_weather", "description": "Gets the weather of a city.", "parameters": PARAMETERS}
PERSON = {
    "title": "person",
    "description": "A person.",
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
HELLO, WEATHER, JSON = "Hi", "What is the weather in Oslo?", "As JSON: name: Alice, age: 30"
RESULT = json.dumps({"sky": "rainy", "degrees": 7}, separators=(",", ":"))
SUMMARY = "It is rainy in Oslo, 7 degrees."
ALICE = {"name": "Alice", "age": 30}
# One loop for all: clients close their connections in the loop that they were opened in.
LOOP = asyncio.new_event_loop()
# What the models say to "Hi".
GREETINGS = {"gpt-oss-20b": "Hello! One, two, three, four, five.", "nano": "Hello! How can I help you?"}


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"{found!r}, expected {expected!r}")


def some(text):
    if not text:
        raise AssertionError("there is no reasoning")


def user(text):
    return [{"role": "user", "content": text}]


class Client:
    """A client: a method for each of the features that it has. What it imports is `package`."""

    def __init__(self, base, model):
        self.base, self.root, self.model, self.greeting = base, base.removesuffix("/v1"), model, GREETINGS[model]


class OpenAIChat(Client):
    package = "openai"

    def ask(self, **fields):
        from openai import OpenAI

        return OpenAI(base_url=self.base, api_key="none", max_retries=0).chat.completions.create(model=self.model, temperature=0, **fields)

    def chat(self):
        equal(self.ask(messages=user(HELLO)).choices[0].message.content, self.greeting)

    def stream(self):
        pieces = list(self.ask(messages=user(HELLO), stream=True, stream_options={"include_usage": True}))
        equal("".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices), self.greeting)
        equal(pieces[-1].usage.completion_tokens > 0, True)

    def tools(self):
        tools, messages = [{"type": "function", "function": FUNCTION}], user(WEATHER)
        allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "get_weather"}}]}}
        for choice in ("auto", allowed):
            message = self.ask(messages=messages, tools=tools, tool_choice=choice, parallel_tool_calls=False).choices[0].message
            call = message.tool_calls[0]
            equal((call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Oslo"}))
            result = {"role": "tool", "tool_call_id": call.id, "content": RESULT}
            equal(self.ask(messages=[*messages, message, result], tools=tools).choices[0].message.content, SUMMARY)
        older = self.ask(messages=messages, functions=[FUNCTION]).choices[0]
        equal((older.finish_reason, older.message.function_call.name), ("function_call", "get_weather"))

    def structured(self):
        from openai import OpenAI
        from pydantic import BaseModel

        class Person(BaseModel):
            name: str
            age: int

        client = OpenAI(base_url=self.base, api_key="none")
        parsed = client.chat.completions.parse(model=self.model, temperature=0, messages=user(JSON), response_format=Person)
        equal(parsed.choices[0].message.parsed, Person(**ALICE))
        for fields in ({"guided_json": PERSON}, {"structured_outputs": {"json": PERSON}}):
            equal(json.loads(self.ask(messages=user(JSON), extra_body=fields).choices[0].message.content), ALICE)

    def reasoning(self):
        some(self.ask(messages=user(WEATHER), reasoning_effort="high").choices[0].message.reasoning_content)


class OpenAIResponses(Client):
    package = "openai"

    def client(self):
        from openai import OpenAI

        return OpenAI(base_url=self.base, api_key="none", max_retries=0).responses

    def chat(self):
        equal(self.client().create(model=self.model, temperature=0, input=HELLO).output_text, self.greeting)

    def stream(self):
        with self.client().stream(model=self.model, temperature=0, input=HELLO) as stream:
            kinds = [event.type for event in stream]
            equal(stream.get_final_response().output_text, self.greeting)
        equal((kinds[0], kinds[-1]), ("response.created", "response.completed"))

    def tools(self):
        fields = {"model": self.model, "temperature": 0, "tools": [{"type": "function", **FUNCTION}]}
        response = self.client().create(input=WEATHER, **fields)
        call = next(item for item in response.output if item.type == "function_call")
        equal(json.loads(call.arguments), {"city": "Oslo"})
        result = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
        equal(self.client().create(input=[result], previous_response_id=response.id, **fields).output_text, SUMMARY)
        named = [{"type": "item_reference", "id": item.id} for item in response.output]
        equal(self.client().create(input=[*user(WEATHER), *named, result], **fields).output_text, SUMMARY)

    def structured(self):
        form = {"format": {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}}
        equal(json.loads(self.client().create(model=self.model, temperature=0, input=JSON, text=form).output_text), ALICE)

    def reasoning(self):
        response = self.client().create(model=self.model, temperature=0, input=WEATHER, reasoning={"effort": "high"})
        some([item for item in response.output if item.type == "reasoning"])


class Anthropic(Client):
    package = "anthropic"

    def client(self):
        from anthropic import Anthropic as Library

        return Library(base_url=self.root, api_key="none", max_retries=0)

    def ask(self, text, **fields):
        messages = text if isinstance(text, list) else user(text)
        # The client has no name for the temperature any more.
        return self.client().messages.create(model=self.model, max_tokens=200, messages=messages, extra_body={"temperature": 0}, **fields)

    def chat(self):
        equal([block.text for block in self.ask(HELLO).content if block.type == "text"], [self.greeting])
        equal(self.model in [model.id for model in self.client().models.list()], True)

    def stream(self):
        with self.client().messages.stream(model=self.model, max_tokens=200, messages=user(HELLO), extra_body={"temperature": 0}) as stream:
            equal("".join(stream.text_stream), self.greeting)

    def tools(self):
        tools = [{"name": FUNCTION["name"], "description": FUNCTION["description"], "input_schema": PARAMETERS}]
        message = self.ask(WEATHER, tools=tools)
        use = next(block for block in message.content if block.type == "tool_use")
        equal((message.stop_reason, use.input), ("tool_use", {"city": "Oslo"}))
        result = {"type": "tool_result", "tool_use_id": use.id, "content": RESULT}
        messages = [*user(WEATHER), {"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
        equal(self.ask(messages, tools=tools).content[-1].text, SUMMARY)

    def structured(self):
        form = {"format": {"type": "json_schema", "schema": PERSON}}
        equal(json.loads(self.ask(JSON, output_config=form).content[-1].text), ALICE)

    def reasoning(self):
        message = self.ask(WEATHER, thinking={"type": "enabled", "budget_tokens": 1024})
        some([block.thinking for block in message.content if block.type == "thinking"])


class Ollama(Client):
    package = "ollama"

    def ask(self, text, **fields):
        from ollama import Client as Library

        messages = text if isinstance(text, list) else user(text)
        return Library(self.root).chat(self.model, messages, options={"temperature": 0, "num_predict": 200}, **fields)

    def chat(self):
        equal(self.ask(HELLO).message.content, self.greeting)

    def stream(self):
        equal("".join(piece.message.content for piece in self.ask(HELLO, stream=True)), self.greeting)

    def tools(self):
        tools = [{"type": "function", "function": FUNCTION}]
        called = self.ask(WEATHER, tools=tools).message
        function = called.tool_calls[0].function
        equal((function.name, function.arguments), ("get_weather", {"city": "Oslo"}))
        result = {"role": "tool", "tool_name": "get_weather", "content": RESULT}
        equal(self.ask([*user(WEATHER), called, result], tools=tools).message.content, SUMMARY)

    def structured(self):
        equal(json.loads(self.ask(JSON, format=PERSON).message.content), ALICE)

    def reasoning(self):
        some(self.ask(WEATHER, think="high").message.thinking)


class LiteLLM(Client):
    package, route = "litellm", "openai"

    def ask(self, text, **fields):
        import litellm

        litellm.telemetry, litellm.suppress_debug_info = False, True
        base = self.base if self.route == "openai" else self.root
        messages = text if isinstance(text, list) else user(text)
        fields = {"max_tokens": 200, **fields}
        return litellm.completion(model=f"{self.route}/{self.model}", api_base=base, api_key="none", temperature=0, messages=messages, **fields)

    def chat(self):
        equal(self.ask(HELLO).choices[0].message.content, self.greeting)

    def stream(self):
        equal("".join(piece.choices[0].delta.content or "" for piece in self.ask(HELLO, stream=True)), self.greeting)

    def tools(self):
        tools = [{"type": "function", "function": FUNCTION}]
        message = self.ask(WEATHER, tools=tools).choices[0].message
        call = message.tool_calls[0]
        equal((call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Oslo"}))
        result = {"role": "tool", "tool_call_id": call.id, "name": "get_weather", "content": RESULT}
        equal(self.ask([*user(WEATHER), message.model_dump(), result], tools=tools).choices[0].message.content, SUMMARY)

    def structured(self):
        form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
        equal(json.loads(self.ask(JSON, response_format=form).choices[0].message.content), ALICE)

    def reasoning(self):
        some(self.ask(WEATHER).choices[0].message.reasoning_content)


class LiteLLMAnthropic(LiteLLM):
    route = "anthropic"


class LiteLLMOllama(LiteLLM):
    route = "ollama_chat"


class LangChain(Client):
    package = "langchain_openai"

    def make(self, **fields):
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(base_url=self.base, api_key="none", model=self.model, temperature=0, **fields)

    def chat(self):
        equal(self.make().invoke(HELLO).text, self.greeting)

    def stream(self):
        equal("".join(piece.text for piece in self.make().stream(HELLO)), self.greeting)

    def tools(self):
        from langchain_core.messages import HumanMessage, ToolMessage

        model = self.make().bind_tools([{"type": "function", "function": FUNCTION}])
        called = model.invoke(WEATHER)
        call = called.tool_calls[0]
        equal((call["name"], call["args"]), ("get_weather", {"city": "Oslo"}))
        answer = model.invoke([HumanMessage(WEATHER), called, ToolMessage(RESULT, tool_call_id=call["id"], name="get_weather")])
        equal(answer.text, SUMMARY)

    def structured(self):
        equal(self.make().with_structured_output(PERSON, method="json_schema").invoke(JSON), ALICE)


class LangChainAnthropic(LangChain):
    package = "langchain_anthropic"

    def make(self, **fields):
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(base_url=self.root, api_key="none", model=self.model, max_tokens=1500, temperature=0, **fields)

    def reasoning(self):
        from langchain_anthropic import ChatAnthropic

        thinking = {"type": "enabled", "budget_tokens": 1024}
        message = ChatAnthropic(base_url=self.root, api_key="none", model=self.model, max_tokens=1500, thinking=thinking).invoke(WEATHER)
        some([block for block in message.content if block["type"] == "thinking"])


class LangChainOllama(LangChain):
    package = "langchain_ollama"

    def make(self, **fields):
        from langchain_ollama import ChatOllama

        return ChatOllama(base_url=self.root, model=self.model, temperature=0, num_predict=200, **fields)

    def reasoning(self):
        some(self.make(reasoning=True).invoke(WEATHER).additional_kwargs.get("reasoning_content"))


class Agents(Client):
    package, kind = "agents", "OpenAIChatCompletionsModel"

    def agent(self, **fields):
        import agents
        from openai import AsyncOpenAI

        agents.set_tracing_disabled(True)
        model = getattr(agents, self.kind)(model=self.model, openai_client=AsyncOpenAI(base_url=self.base, api_key="none", max_retries=0))
        return agents.Agent(name="helper", model=model, model_settings=agents.ModelSettings(temperature=0), **fields)

    def run(self, text, **fields):
        from agents import Runner

        return LOOP.run_until_complete(Runner.run(self.agent(**fields), text)).final_output

    def chat(self):
        equal(self.run(HELLO), self.greeting)

    def stream(self):
        from agents import Runner

        async def streamed():
            result = Runner.run_streamed(self.agent(), HELLO)
            async for _ in result.stream_events():
                pass
            return result.final_output

        equal(LOOP.run_until_complete(streamed()), self.greeting)

    def tools(self):
        from agents import function_tool

        @function_tool
        def get_weather(city: str) -> str:
            """Gets the weather of a city.

            Args:
                city: Name of the city.
            """
            return RESULT

        equal(self.run(WEATHER, tools=[get_weather]), SUMMARY)

    def structured(self):
        from pydantic import BaseModel

        class Person(BaseModel):
            name: str
            age: int

        equal(self.run(JSON, output_type=Person), Person(**ALICE))


class AgentsResponses(Agents):
    kind = "OpenAIResponsesModel"


class PydanticAI(Client):
    package = "pydantic_ai"

    def agent(self, **fields):
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        model = OpenAIChatModel(self.model, provider=OpenAIProvider(base_url=self.base, api_key="none"))
        return Agent(model, model_settings={"temperature": 0}, **fields)

    def chat(self):
        equal(self.agent().run_sync(HELLO).output, self.greeting)

    def stream(self):
        async def streamed():
            async with self.agent().run_stream(HELLO) as result:
                return await result.get_output()

        equal(LOOP.run_until_complete(streamed()), self.greeting)

    def tools(self):
        agent = self.agent()

        @agent.tool_plain
        def get_weather(city: str) -> str:
            """Gets the weather of a city.

            Args:
                city: Name of the city.
            """
            return RESULT

        equal(agent.run_sync(WEATHER).output, SUMMARY)

    def structured(self):
        from pydantic import BaseModel
        from pydantic_ai import NativeOutput

        class Person(BaseModel):
            name: str
            age: int

        equal(self.agent(output_type=NativeOutput(Person)).run_sync(JSON).output, Person(**ALICE))


class Instructor(Client):
    package = "instructor"

    def structured(self):
        import instructor
        from openai import OpenAI
        from pydantic import BaseModel

        class Person(BaseModel):
            name: str
            age: int

        patched = instructor.from_openai(OpenAI(base_url=self.base, api_key="none"), mode=instructor.Mode.JSON_SCHEMA)
        person = patched.chat.completions.create(model=self.model, temperature=0, response_model=Person, messages=user(JSON))
        equal(person.model_dump(), ALICE)


CLIENTS = {
    "openai, chat": OpenAIChat,
    "openai, responses": OpenAIResponses,
    "anthropic": Anthropic,
    "ollama": Ollama,
    "litellm, openai": LiteLLM,
    "litellm, anthropic": LiteLLMAnthropic,
    "litellm, ollama": LiteLLMOllama,
    "langchain, openai": LangChain,
    "langchain, anthropic": LangChainAnthropic,
    "langchain, ollama": LangChainOllama,
    "openai-agents, chat": Agents,
    "openai-agents, responses": AgentsResponses,
    "pydantic-ai": PydanticAI,
    "instructor": Instructor,
}


def python(args):
    """Name, feature and reason of each part: no reason where it works."""
    for name, kind in CLIENTS.items():
        if args.only and args.only not in name:
            continue
        if importlib.util.find_spec(kind.package) is None:
            print(f"{name}: not installed", file=sys.stderr)
            continue
        client = kind(args.base, args.model)
        for feature in FEATURES:
            run = getattr(client, feature, None)
            if run is None:
                continue
            try:
                run()
                yield name, feature, None
            except Exception as error:
                if args.verbose:
                    traceback.print_exc()
                yield name, feature, f"{type(error).__name__}: {error}"


def node(args):
    """What check.mjs says, a line of JSON for each part."""
    command = ["node", f"{args.node}/check.mjs", args.base, args.model, args.only or ""]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    if not lines and ran.returncode:
        raise SystemExit(ran.stderr)
    return [(line["client"], line["feature"], line["why"]) for line in lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", help="such as http://127.0.0.1:8080/v1")
    parser.add_argument("--model", default="nano", choices=GREETINGS)
    parser.add_argument("--only", help="part of a client's name")
    parser.add_argument("--node", help="directory with check.mjs and its packages")
    parser.add_argument("-v", "--verbose", action="store_true", help="say where an error comes from")
    args = parser.parse_args()
    found = [*python(args), *(node(args) if args.node else [])]
    width = max([len(name) for name, *_ in found], default=0)
    print(" " * width, *(f"{feature:>10}" for feature in FEATURES))
    for name in dict.fromkeys(name for name, *_ in found):
        cells = {feature: "N" if why else "Y" for other, feature, why in found if other == name}
        print(f"{name:{width}}", *(f"{cells.get(feature, '-'):>10}" for feature in FEATURES))
    failed = [(name, feature, why) for name, feature, why in found if why]
    for name, feature, why in failed:
        print(f"{name}, {feature}: {' '.join(why.split())[:300]}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()

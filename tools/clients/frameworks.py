"""Libraries over the APIs: gateways, chains and agents."""

import json
import os

from common import ALICE, FUNCTION, HELLO, JSON, LOOP, PERSON, RESULT, SUMMARY, WEATHER, Client, equal, get_weather, person, some, user

# Its list of prices is looked for elsewhere otherwise.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"


class LiteLLM(Client):
    package, route = "litellm", "openai"

    def where(self):
        import litellm

        litellm.telemetry, litellm.suppress_debug_info = False, True
        base = self.base if self.route in ("openai", "hosted_vllm") else self.root
        return {"model": f"{self.route}/{self.model}", "api_base": base, "api_key": "none"}

    def ask(self, text, **fields):
        import litellm

        messages = text if isinstance(text, list) else user(text)
        return litellm.completion(**self.where(), temperature=0, messages=messages, **{"max_tokens": 200, **fields})

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


class LiteLLMOpenAI(LiteLLM):
    def other(self):
        import litellm

        response = litellm.responses(**self.where(), temperature=0, input=HELLO)
        equal(response.output[-1].content[0].text, self.greeting)


class LiteLLMVllm(LiteLLM):
    route = "hosted_vllm"


class LiteLLMAnthropic(LiteLLM):
    route = "anthropic"


class LiteLLMOllama(LiteLLM):
    route = "ollama_chat"

    def other(self):
        import litellm

        where = self.where() | {"model": f"ollama/{self.model}"}
        some(litellm.completion(**where, temperature=0, max_tokens=200, messages=user(HELLO)).choices[0].message.content)


class LangChain(Client):
    package, fields = "langchain_openai", {}

    def make(self):
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(base_url=self.base, api_key="none", model=self.model, temperature=0, **self.fields)

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
        for method in ("json_schema", "function_calling"):
            equal(self.make().with_structured_output(PERSON, method=method).invoke(JSON), ALICE)

    def other(self):
        equal([answer.text for answer in self.make().batch([HELLO, HELLO])], [self.greeting] * 2)


class LangChainResponses(LangChain):
    fields = {"use_responses_api": True}

    def reasoning(self):
        content = self.make().invoke(WEATHER).content
        some([block for block in content if block["type"] == "reasoning"])


class LangChainAnthropic(LangChain):
    package = "langchain_anthropic"

    def make(self, **fields):
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(base_url=self.root, api_key="none", model=self.model, max_tokens=1500, **({"temperature": 0} | fields))

    def reasoning(self):
        # The library takes no temperature beside it.
        message = self.make(temperature=None, thinking={"type": "enabled", "budget_tokens": 1024}).invoke(WEATHER)
        some([block for block in message.content if block["type"] == "thinking"])


class LangChainOllama(LangChain):
    package = "langchain_ollama"

    def make(self, **fields):
        from langchain_ollama import ChatOllama

        return ChatOllama(base_url=self.root, model=self.model, temperature=0, num_predict=200, **fields)

    def reasoning(self):
        some(self.make(reasoning=True).invoke(WEATHER).additional_kwargs.get("reasoning_content"))


class LlamaIndex(Client):
    package = "llama_index.llms.openai_like"

    def make(self, **fields):
        from llama_index.llms.openai_like import OpenAILike

        fields = {"is_chat_model": True, "is_function_calling_model": True, "context_window": 2048, "max_tokens": 200} | fields
        return OpenAILike(model=self.model, api_base=self.base, api_key="none", temperature=0, **fields)

    def said(self, text):
        from llama_index.core.llms import ChatMessage

        return [ChatMessage(role="user", content=text)]

    def chat(self):
        equal(self.make().chat(self.said(HELLO)).message.content, self.greeting)

    def stream(self):
        equal(list(self.make().stream_chat(self.said(HELLO)))[-1].message.content, self.greeting)

    def tools(self):
        from llama_index.core.llms import ChatMessage
        from llama_index.core.tools import FunctionTool

        tools, model = [FunctionTool.from_defaults(get_weather)], self.make()
        called = model.chat_with_tools(tools, chat_history=self.said(WEATHER))
        (call,) = model.get_tool_calls_from_response(called)
        equal((call.tool_name, call.tool_kwargs), ("get_weather", {"city": "Oslo"}))
        result = ChatMessage(role="tool", content=RESULT, additional_kwargs={"tool_call_id": call.tool_id})
        equal(model.chat_with_tools(tools, chat_history=[*self.said(WEATHER), called.message, result]).message.content, SUMMARY)

    def structured(self):
        from llama_index.core.prompts import PromptTemplate

        equal(self.make().structured_predict(person(), PromptTemplate(JSON)).model_dump(), ALICE)

    def other(self):
        some(self.make(is_chat_model=False, max_tokens=3).complete("A slice is").text)


class Agents(Client):
    package, kind = "agents", "OpenAIChatCompletionsModel"

    def agent(self, **fields):
        import agents
        from openai import AsyncOpenAI

        agents.set_tracing_disabled(True)
        model = getattr(agents, self.kind)(model=self.model, openai_client=AsyncOpenAI(base_url=self.base, api_key="none", max_retries=0))
        return agents.Agent(name="helper", model=model, model_settings=agents.ModelSettings(temperature=0), **fields)

    def run(self, text, session=None, **fields):
        from agents import Runner

        return LOOP.run_until_complete(Runner.run(self.agent(**fields), text, session=session)).final_output

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

        equal(self.run(WEATHER, tools=[function_tool(get_weather)]), SUMMARY)

    def structured(self):
        equal(self.run(JSON, output_type=person()).model_dump(), ALICE)

    def other(self):
        from agents import SQLiteSession

        session = SQLiteSession("clients")
        equal(self.run(HELLO, session), self.greeting)
        some(self.run(WEATHER, session))
        equal(len([item for item in LOOP.run_until_complete(session.get_items()) if item.get("role") == "user"]), 2)


class AgentsResponses(Agents):
    kind = "OpenAIResponsesModel"

    def reasoning(self):
        from agents import Runner

        result = LOOP.run_until_complete(Runner.run(self.agent(), WEATHER))
        some([item for item in result.new_items if item.type == "reasoning_item"])
        after = LOOP.run_until_complete(Runner.run(self.agent(), HELLO, previous_response_id=result.last_response_id))
        some(after.final_output)


class PydanticAI(Client):
    package = "pydantic_ai"

    def make(self):
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIChatModel(self.model, provider=OpenAIProvider(base_url=self.base, api_key="none"))

    def agent(self, **fields):
        from pydantic_ai import Agent

        return Agent(self.make(), model_settings={"max_tokens": 500, "extra_body": {"temperature": 0}}, **fields)

    def chat(self):
        equal(self.agent().run_sync(HELLO).output, self.greeting)

    def stream(self):
        async def streamed():
            async with self.agent().run_stream(HELLO) as result:
                return await result.get_output()

        equal(LOOP.run_until_complete(streamed()), self.greeting)

    def tools(self):
        agent = self.agent()
        agent.tool_plain(get_weather)
        equal(agent.run_sync(WEATHER).output, SUMMARY)

    def structured(self):
        from pydantic_ai import NativeOutput

        equal(self.agent(output_type=NativeOutput(person())).run_sync(JSON).output.model_dump(), ALICE)

    def reasoning(self):
        (answer,) = self.agent().run_sync(WEATHER).all_messages()[1:]
        some([part for part in answer.parts if part.part_kind == "thinking"])


class PydanticAIResponses(PydanticAI):
    def make(self):
        from pydantic_ai.models.openai import OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIResponsesModel(self.model, provider=OpenAIProvider(base_url=self.base, api_key="none"))


class PydanticAIAnthropic(PydanticAI):
    def make(self):
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel(self.model, provider=AnthropicProvider(base_url=self.root, api_key="none"))

    def structured(self):
        # The library knows by their names which models have a form of their own.
        equal(self.agent(output_type=person()).run_sync(JSON).output.model_dump(), ALICE)


class Instructor(Client):
    package = "instructor"
    beyond = {"other": "JSON and MD_JSON tell the schema in words alone"}

    def ask(self, mode, kind=None, ask="create"):
        import instructor
        from openai import OpenAI

        patched = instructor.from_openai(OpenAI(base_url=self.base, api_key="none"), mode=instructor.Mode[mode])
        create = getattr(patched.chat.completions, ask)
        return create(model=self.model, temperature=0, response_model=kind or person(), messages=user(JSON), max_retries=1)

    def stream(self):
        equal(list(self.ask("JSON_SCHEMA", ask="create_partial"))[-1].model_dump(), ALICE)

    def tools(self):
        from typing import Iterable

        for mode in ("TOOLS", "TOOLS_STRICT", "RESPONSES_TOOLS"):
            equal(self.ask(mode).model_dump(), ALICE)
        equal([one.model_dump() for one in self.ask("PARALLEL_TOOLS", Iterable[person()])], [ALICE])

    def structured(self):
        import instructor
        from anthropic import Anthropic

        equal(self.ask("JSON_SCHEMA").model_dump(), ALICE)
        patched = instructor.from_anthropic(Anthropic(base_url=self.root, api_key="none"))
        equal(patched.messages.create(model=self.model, max_tokens=200, response_model=person(), messages=user(JSON)).model_dump(), ALICE)

    def other(self):
        for mode in ("JSON", "MD_JSON"):
            equal(self.ask(mode).model_dump(), ALICE)


class Smolagents(Client):
    package = "smolagents"

    def make(self):
        from smolagents import OpenAIModel

        return OpenAIModel(self.model, api_base=self.base, api_key="none", temperature=0)

    def chat(self):
        equal(self.make().generate(user(HELLO)).content, self.greeting)

    def stream(self):
        equal("".join(delta.content or "" for delta in self.make().generate_stream(user(HELLO))), self.greeting)

    def tools(self):
        from smolagents import tool

        (call,) = self.make().generate(user(WEATHER), tools_to_call_from=[tool(get_weather)]).tool_calls
        equal((call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Oslo"}))


class Guidance(Client):
    package = "guidance"

    def ask(self, text, made):
        from guidance import assistant, models
        from guidance import user as role

        model = models.OpenAI(self.model, base_url=self.base, api_key="none", echo=False)
        with role():
            model += text
        with assistant():
            model += made
        return model["made"]

    def chat(self):
        from guidance import gen

        equal(self.ask(HELLO, gen("made", temperature=0.0001, max_tokens=200)), self.greeting)

    def structured(self):
        from guidance import json as form

        equal(json.loads(self.ask(JSON, form("made", schema=PERSON, temperature=0.0001))), ALICE)


class DSPy(Client):
    package = "dspy"
    beyond = {"structured": "the library tells its form in a long text"}

    def make(self):
        import dspy

        where = {"api_base": self.base, "api_key": "none"}
        return dspy.LM(f"openai/{self.model}", temperature=0, max_tokens=200, cache=False, **where)

    def chat(self):
        (answer,) = self.make()(HELLO)
        equal(answer if isinstance(answer, str) else answer["text"], self.greeting)

    def structured(self):
        import dspy

        with dspy.context(lm=self.make(), adapter=dspy.JSONAdapter()):
            made = dspy.Predict("text -> name: str, age: int")(text=JSON)
            equal({"name": made.name, "age": made.age}, ALICE)

"""The libraries of those whose APIs the server has."""

import json

from common import ALICE, FUNCTION, HELLO, JSON, PARAMETERS, PERSON, RESULT, SUMMARY, WEATHER, Client, equal, person, some, user

# What the model is held to in the input of a custom tool.
CITIES = "Oslo|Rome"


def status(run, *expected):
    """Checks that a call is refused with one of some statuses."""
    try:
        run()
    except Exception as error:
        found = getattr(error, "status_code", error)
        equal(found if found not in expected else expected[0], expected[0])
    else:
        raise AssertionError("it is not refused")


class OpenAIChat(Client):
    package = "openai"

    def client(self):
        from openai import OpenAI

        return OpenAI(base_url=self.base, api_key="none", max_retries=0)

    def ask(self, **fields):
        return self.client().chat.completions.create(model=self.model, temperature=0, **fields)

    def chat(self):
        equal(self.ask(messages=user(HELLO)).choices[0].message.content, self.greeting)

    def stream(self):
        pieces = list(self.ask(messages=user(HELLO), stream=True, stream_options={"include_usage": True}))
        equal("".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices), self.greeting)
        equal(pieces[-1].usage.completion_tokens > 0, True)

    def tools(self):
        tools, messages = [{"type": "function", "function": FUNCTION}], user(WEATHER)
        named = {"type": "function", "function": {"name": "get_weather"}}
        allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named]}}
        for choice in ("auto", "required", named, allowed):
            message = self.ask(messages=messages, tools=tools, tool_choice=choice, parallel_tool_calls=False).choices[0].message
            call = message.tool_calls[0]
            equal((call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Oslo"}))
            result = {"role": "tool", "tool_call_id": call.id, "content": RESULT}
            equal(self.ask(messages=[*messages, message, result], tools=tools).choices[0].message.content, SUMMARY)
        equal(self.ask(messages=messages, tools=tools, tool_choice="none").choices[0].message.tool_calls, None)
        with self.client().chat.completions.stream(model=self.model, temperature=0, messages=messages, tools=tools) as stream:
            equal(stream.get_final_completion().choices[0].message.tool_calls[0].function.name, "get_weather")
        older = self.ask(messages=messages, functions=[FUNCTION]).choices[0]
        equal((older.finish_reason, older.message.function_call.name), ("function_call", "get_weather"))
        if self.model == "nano":
            self.custom(messages)

    def custom(self, messages):
        grammar = {"type": "grammar", "grammar": {"syntax": "regex", "definition": CITIES}}
        tools = [{"type": "custom", "custom": {"name": "get_weather", "description": FUNCTION["description"], "format": grammar}}]
        message = self.ask(messages=messages, tools=tools, tool_choice="required").choices[0].message
        call = message.tool_calls[0]
        equal((call.type, call.custom.name, call.custom.input in CITIES), ("custom", "get_weather", True))
        result = {"role": "tool", "tool_call_id": call.id, "content": RESULT}
        some(self.ask(messages=[*messages, message, result], tools=tools, tool_choice="none").choices[0].message.content)

    def structured(self):
        parsed = self.client().chat.completions.parse(model=self.model, temperature=0, messages=user(JSON), response_format=person())
        equal(parsed.choices[0].message.parsed.model_dump(), ALICE)
        for fields in ({"guided_json": PERSON}, {"structured_outputs": {"json": PERSON}}):
            equal(json.loads(self.ask(messages=user(JSON), extra_body=fields).choices[0].message.content), ALICE)
        form = {"type": "json_object"}
        equal(type(json.loads(self.ask(messages=user(JSON), response_format=form).choices[0].message.content)), dict)

    def reasoning(self):
        some(self.ask(messages=user(WEATHER), reasoning_effort="high").choices[0].message.reasoning_content)

    def other(self):
        choice = self.ask(messages=user(HELLO), logprobs=True, top_logprobs=2).choices[0]
        equal("".join(token.token for token in choice.logprobs.content), self.greeting)
        several = self.client().chat.completions.create(model=self.model, messages=user(HELLO), n=2, seed=5)
        again = self.client().chat.completions.create(model=self.model, messages=user(HELLO), n=2, seed=5)
        equal([c.message.content for c in several.choices], [c.message.content for c in again.choices])
        first = self.greeting.split()[0]
        equal(self.ask(messages=user(HELLO), stop=first[2:]).choices[0].message.content, first[:2])
        predicted = {"type": "content", "content": self.greeting}
        equal(self.ask(messages=user(HELLO), prediction=predicted).choices[0].message.content, self.greeting)
        client = self.client()
        text = client.completions.create(model=self.model, prompt="A slice is", max_tokens=3, temperature=0, echo=True).choices[0].text
        equal(text.startswith("A slice is"), True)
        for run in (
            lambda: client.embeddings.create(model=self.model, input="x"),
            lambda: client.moderations.create(input="x"),
            lambda: client.images.generate(model=self.model, prompt="x"),
            lambda: client.audio.speech.create(model=self.model, voice="x", input="x"),
            lambda: client.files.list(),
            lambda: client.batches.list(),
            lambda: client.vector_stores.list(),
        ):
            status(run, 404, 405)


class OpenAIResponses(Client):
    package = "openai"

    def client(self):
        from openai import OpenAI

        return OpenAI(base_url=self.base, api_key="none", max_retries=0).responses

    def chat(self):
        equal(self.client().create(model=self.model, temperature=0, input=HELLO).output_text, self.greeting)

    def stream(self):
        with self.client().stream(model=self.model, temperature=0, input=HELLO) as stream:
            events = list(stream)
            equal(stream.get_final_response().output_text, self.greeting)
        equal((events[0].type, events[-1].type), ("response.created", "response.completed"))
        equal([event.sequence_number for event in events], list(range(len(events))))

    def tools(self):
        fields = {"model": self.model, "temperature": 0, "tools": [{"type": "function", **FUNCTION}]}
        response = self.client().create(input=WEATHER, **fields)
        call = next(item for item in response.output if item.type == "function_call")
        equal(json.loads(call.arguments), {"city": "Oslo"})
        result = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
        equal(self.client().create(input=[result], previous_response_id=response.id, **fields).output_text, SUMMARY)
        named = [{"type": "item_reference", "id": item.id} for item in response.output]
        equal(self.client().create(input=[*user(WEATHER), *named, result], **fields).output_text, SUMMARY)
        allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_weather"}]}
        equal(self.client().create(input=WEATHER, tool_choice=allowed, **fields).output[-1].type, "function_call")
        if self.model == "nano":
            self.custom()

    def custom(self):
        grammar = {"type": "grammar", "syntax": "lark", "definition": 'start: "Oslo" | "Rome"'}
        tools = [{"type": "custom", "name": "get_weather", "description": FUNCTION["description"], "format": grammar}]
        fields = {"model": self.model, "temperature": 0, "tools": tools}
        with self.client().stream(input=WEATHER, tool_choice="required", **fields) as stream:
            text = "".join(event.delta for event in stream if event.type == "response.custom_tool_call_input.delta")
            response = stream.get_final_response()
        call = response.output[-1]
        equal((call.type, call.name, call.input, call.input in CITIES), ("custom_tool_call", "get_weather", text, True))
        result = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": RESULT}
        some(self.client().create(input=[result], previous_response_id=response.id, tool_choice="none", **fields).output_text)

    def structured(self):
        form = {"format": {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}}
        equal(json.loads(self.client().create(model=self.model, temperature=0, input=JSON, text=form).output_text), ALICE)
        parsed = self.client().parse(model=self.model, temperature=0, input=JSON, text_format=person())
        equal(parsed.output_parsed.model_dump(), ALICE)

    def reasoning(self):
        fields = {"model": self.model, "temperature": 0, "reasoning": {"effort": "high"}, "store": False}
        response = self.client().create(input=WEATHER, include=["reasoning.encrypted_content"], **fields)
        sealed = [item for item in response.output if item.type == "reasoning"]
        some(sealed and sealed[0].encrypted_content)
        some(self.client().create(input=[*user(WEATHER), *response.output, *user(HELLO)], **fields).output_text)

    def other(self):
        client = self.client()
        response = client.create(model=self.model, temperature=0, input=HELLO)
        equal(client.retrieve(response.id).output_text, self.greeting)
        equal(len(client.input_items.list(response.id).data), 1)
        client.delete(response.id)
        status(lambda: client.retrieve(response.id), 404)
        equal(client.input_tokens.count(model=self.model, input=HELLO).input_tokens, response.usage.input_tokens)
        status(lambda: client.create(model=self.model, input=HELLO, background=True), 400)
        status(lambda: client.create(model=self.model, input=HELLO, tools=[{"type": "mcp", "server_label": "x"}]), 400)


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
        for choice in ({"type": "auto"}, {"type": "any"}, {"type": "tool", "name": "get_weather"}):
            message = self.ask(WEATHER, tools=tools, tool_choice=choice)
            use = next(block for block in message.content if block.type == "tool_use")
            equal((message.stop_reason, use.input), ("tool_use", {"city": "Oslo"}))
            result = {"type": "tool_result", "tool_use_id": use.id, "content": RESULT}
            messages = [*user(WEATHER), {"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
            equal(self.ask(messages, tools=tools).content[-1].text, SUMMARY)
        self.runner()

    def runner(self):
        from anthropic import beta_tool
        from common import get_weather

        runner = self.client().beta.messages.tool_runner(
            model=self.model, max_tokens=200, messages=user(WEATHER), tools=[beta_tool(get_weather)], extra_body={"temperature": 0}
        )
        equal(runner.until_done().content[-1].text, SUMMARY)

    def structured(self):
        form = {"format": {"type": "json_schema", "schema": PERSON}}
        equal(json.loads(self.ask(JSON, output_config=form).content[-1].text), ALICE)
        parsed = self.client().messages.parse(
            model=self.model, max_tokens=200, messages=user(JSON), output_format=person(), extra_body={"temperature": 0}
        )
        equal(parsed.parsed_output.model_dump(), ALICE)

    def reasoning(self):
        for thinking in ({"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}):
            message = self.ask(WEATHER, thinking=thinking)
            some([block.thinking for block in message.content if block.type == "thinking"])
        message = self.ask(WEATHER, thinking={"type": "disabled"})
        equal([block for block in message.content if block.type == "thinking"], [])

    def other(self):
        client, first = self.client(), self.greeting.split()[0]
        message = self.ask(HELLO, stop_sequences=[first[2:]], system=[{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}])
        equal((message.stop_reason, message.stop_sequence), ("stop_sequence", first[2:]))
        equal(client.messages.count_tokens(model=self.model, messages=user(HELLO)).input_tokens > 0, True)
        if self.model == "nano":
            begun = [*user(HELLO), {"role": "assistant", "content": first}]
            equal((first + self.ask(begun).content[-1].text), self.greeting)
        picture = {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/x.png"}}
        status(lambda: self.ask([{"role": "user", "content": [picture]}]), 400)


class Ollama(Client):
    package = "ollama"

    def client(self):
        from ollama import Client as Library

        return Library(self.root)

    def ask(self, text, **fields):
        messages = text if isinstance(text, list) else user(text)
        return self.client().chat(self.model, messages, options={"temperature": 0, "num_predict": 200}, **fields)

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
        streamed = [piece.message.tool_calls for piece in self.ask(WEATHER, tools=tools, stream=True) if piece.message.tool_calls]
        equal(streamed[0][0].function.arguments, {"city": "Oslo"})

    def structured(self):
        equal(json.loads(self.ask(JSON, format=PERSON).message.content), ALICE)

    def reasoning(self):
        some(self.ask(WEATHER, think="high").message.thinking)
        equal(self.ask(WEATHER, think=False).message.thinking or "", "")

    def other(self):
        client = self.client()
        equal(self.model in [model.model.removesuffix(":latest") for model in client.list().models], True)
        some(client.show(self.model).details and client.ps().models)
        some(client.generate(self.model, "A slice is", raw=True, options={"num_predict": 3, "temperature": 0}).response)
        some(client.chat(self.model, user(HELLO), logprobs=True, options={"temperature": 0}).logprobs)
        for run in (lambda: client.embed(self.model, "x"), lambda: client.pull("x"), lambda: client.delete("x")):
            status(run, 404)

// Clients for JavaScript against a server (see README.md): a line of JSON for each part, which check.py reads.
//
//     node check.mjs http://127.0.0.1:8080/v1 nano [part of a client's name]

import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool as agentTool } from "@openai/agents";
import { ChatOpenAI } from "@langchain/openai";
import { Output, generateText, stepCountIs, streamText, tool } from "ai";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const [base, model, only] = process.argv.slice(2);
const root = base.replace(/\/v1$/, "");
const GREETING = { "gpt-oss-20b": "Hello! One, two, three, four, five.", nano: "Hello! How can I help you?" }[model];
const WEATHER = "What is the weather in Oslo?";
const RESULT = { sky: "rainy", degrees: 7 };
const SUMMARY = "It is rainy in Oslo, 7 degrees.";
const JSON_TEXT = "As JSON: name: Alice, age: 30";
const ALICE = { name: "Alice", age: 30 };
const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string", description: "Name of the city." } },
  required: ["city"],
  additionalProperties: false,
};
const FUNCTION = { name: "get_weather", description: "Gets the weather of a city.", parameters: PARAMETERS };
const Person = z.object({ name: z.string(), age: z.number().int() });
const said = (content) => [{ role: "user", content }];

const openai = new OpenAI({ baseURL: base, apiKey: "none", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: root, apiKey: "none", maxRetries: 0 });
const chat = openai.chat.completions;
const common = { model, temperature: 0 };
const messages = { model, max_tokens: 200, temperature: 0 };
const ollama = new Ollama({ host: root });
const local = { model, options: { temperature: 0, num_predict: 200 } };
const lang = new ChatOpenAI({ configuration: { baseURL: base }, apiKey: "none", model, temperature: 0 });

globalThis.AI_SDK_LOG_WARNINGS = false;
setTracingDisabled(true);

// The AI SDK over one of its providers. `thinks` has the options that ask for reasoning, if it reads any.
const sdk = (provider, thinks) => ({
  async chat() {
    assert.equal((await generateText({ model: provider, temperature: 0, maxOutputTokens: 200, prompt: "Hi" })).text, GREETING);
  },
  async stream() {
    const { textStream } = streamText({ model: provider, temperature: 0, maxOutputTokens: 200, prompt: "Hi" });
    let text = "";
    for await (const piece of textStream) text += piece;
    assert.equal(text, GREETING);
  },
  async tools() {
    const get_weather = tool({ description: FUNCTION.description, inputSchema: z.object({ city: z.string() }), execute: async () => RESULT });
    const asked = { model: provider, temperature: 0, maxOutputTokens: 200, prompt: WEATHER, tools: { get_weather } };
    const answer = await generateText({ ...asked, stopWhen: stepCountIs(3) });
    assert.deepEqual(answer.steps[0].toolCalls[0].input, { city: "Oslo" });
    assert.equal(answer.text, SUMMARY);
  },
  async structured() {
    const output = Output.object({ schema: Person });
    const answer = await generateText({ model: provider, temperature: 0, maxOutputTokens: 200, output, prompt: JSON_TEXT });
    assert.deepEqual(answer.output, ALICE);
  },
  ...(thinks && {
    async reasoning() {
      const asked = { model: provider, maxOutputTokens: 400, prompt: WEATHER, providerOptions: thinks };
      const answer = await generateText(asked);
      assert.ok(answer.reasoning.length);
      // What it reasoned goes back with the rest.
      const messages = [...said(WEATHER), ...answer.response.messages, ...said("Hi")];
      assert.ok((await generateText({ ...asked, prompt: undefined, messages })).text);
    },
  }),
  async other() {
    const { usage } = await generateText({ model: provider, temperature: 0, maxOutputTokens: 200, prompt: "Hi" });
    assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0);
  },
});

// OpenAI's agents over one of their models.
const agents = (kind) => {
  const agent = (more) => new Agent({ name: "helper", model: new kind(openai, model), modelSettings: { temperature: 0 }, ...more });
  return {
    async chat() {
      assert.equal((await run(agent({}), "Hi")).finalOutput, GREETING);
    },
    async stream() {
      const stream = await run(agent({}), "Hi", { stream: true });
      let text = "";
      for await (const piece of stream.toTextStream()) text += piece;
      assert.equal(text, GREETING);
    },
    async tools() {
      const parameters = z.object({ city: z.string() });
      const described = { name: "get_weather", description: FUNCTION.description, parameters, execute: async () => JSON.stringify(RESULT) };
      assert.equal((await run(agent({ tools: [agentTool(described)] }), WEATHER)).finalOutput, SUMMARY);
    },
    async structured() {
      assert.deepEqual((await run(agent({ outputType: Person }), JSON_TEXT)).finalOutput, ALICE);
    },
  };
};

const clients = {
  "openai npm, chat": {
    async chat() {
      assert.equal((await chat.create({ ...common, messages: said("Hi") })).choices[0].message.content, GREETING);
    },
    async stream() {
      const helper = chat.stream({ ...common, messages: said("Hi"), stream_options: { include_usage: true } });
      assert.equal(await helper.finalContent(), GREETING);
      assert.ok((await helper.totalUsage()).total_tokens > 0);
    },
    async tools() {
      const asked = [];
      const get_weather = ({ city }) => asked.push(city) && JSON.stringify(RESULT);
      const described = { ...FUNCTION, parse: JSON.parse, function: get_weather };
      const runner = chat.runTools({ ...common, messages: said(WEATHER), tools: [{ type: "function", function: described }] });
      assert.equal(await runner.finalContent(), SUMMARY);
      assert.deepEqual(asked, ["Oslo"]);
    },
    async structured() {
      const format = zodResponseFormat(Person, "person");
      const parsed = await chat.parse({ ...common, messages: said(JSON_TEXT), response_format: format });
      assert.deepEqual(parsed.choices[0].message.parsed, ALICE);
    },
    async reasoning() {
      const answer = await chat.create({ ...common, messages: said(WEATHER), reasoning_effort: "high" });
      assert.ok(answer.choices[0].message.reasoning);
    },
    async other() {
      const stream = await chat.create({ ...common, messages: said("Hi"), stream: true });
      for await (const _ of stream) break;
      assert.ok(stream.controller.signal.aborted);
    },
  },
  "openai npm, responses": {
    async chat() {
      const response = await openai.responses.create({ ...common, input: "Hi" });
      assert.equal(response.output_text, GREETING);
      assert.equal((await openai.responses.retrieve(response.id)).output_text, GREETING);
    },
    async stream() {
      const stream = openai.responses.stream({ ...common, input: "Hi" });
      assert.equal((await stream.finalResponse()).output_text, GREETING);
    },
    async tools() {
      const tools = [{ type: "function", strict: true, ...FUNCTION }];
      const response = await openai.responses.create({ ...common, input: WEATHER, tools });
      const call = response.output.find((item) => item.type === "function_call");
      assert.deepEqual([call.name, JSON.parse(call.arguments)], ["get_weather", { city: "Oslo" }]);
      const input = [{ type: "function_call_output", call_id: call.call_id, output: JSON.stringify(RESULT) }];
      const answer = await openai.responses.create({ ...common, input, tools, previous_response_id: response.id });
      assert.equal(answer.output_text, SUMMARY);
    },
    async structured() {
      const text = { format: zodTextFormat(Person, "person") };
      assert.deepEqual((await openai.responses.parse({ ...common, input: JSON_TEXT, text })).output_parsed, ALICE);
    },
    async reasoning() {
      const response = await openai.responses.create({ ...common, input: WEATHER, reasoning: { effort: "high" } });
      assert.ok(response.output.some((item) => item.type === "reasoning"));
    },
  },
  "anthropic npm": {
    async chat() {
      const message = await anthropic.messages.create({ ...messages, messages: said("Hi") });
      assert.equal(message.content.at(-1).text, GREETING);
    },
    async stream() {
      const stream = anthropic.messages.stream({ ...messages, messages: said("Hi") });
      assert.equal(await stream.finalText(), GREETING);
    },
    async tools() {
      const tools = [{ name: FUNCTION.name, description: FUNCTION.description, input_schema: PARAMETERS }];
      const message = await anthropic.messages.create({ ...messages, messages: said(WEATHER), tools });
      const use = message.content.find((block) => block.type === "tool_use");
      assert.deepEqual(use.input, { city: "Oslo" });
      const run = async () => JSON.stringify(RESULT);
      const runner = anthropic.beta.messages.toolRunner({ ...messages, messages: said(WEATHER), tools: [{ ...tools[0], run, parse: (input) => input }] });
      assert.equal((await runner.runUntilDone()).content.at(-1).text, SUMMARY);
      const result = { type: "tool_result", tool_use_id: use.id, content: JSON.stringify(RESULT) };
      const turns = [...said(WEATHER), { role: "assistant", content: message.content }, { role: "user", content: [result] }];
      const answer = await anthropic.messages.create({ ...messages, messages: turns, tools });
      assert.equal(answer.content.at(-1).text, SUMMARY);
    },
    async structured() {
      const schema = { type: "object", properties: { name: { type: "string" }, age: { type: "integer" } }, required: ["name", "age"], additionalProperties: false };
      const output_config = { format: { type: "json_schema", schema } };
      const message = await anthropic.messages.create({ ...messages, messages: said(JSON_TEXT), output_config });
      assert.deepEqual(JSON.parse(message.content.at(-1).text), ALICE);
    },
    async reasoning() {
      const thinking = { type: "enabled", budget_tokens: 1024 };
      const message = await anthropic.messages.create({ ...messages, messages: said(WEATHER), thinking });
      assert.ok(message.content.some((block) => block.type === "thinking" && block.thinking));
    },
  },
  "ollama npm": {
    async chat() {
      assert.equal((await ollama.chat({ ...local, messages: said("Hi") })).message.content, GREETING);
    },
    async stream() {
      let text = "";
      for await (const piece of await ollama.chat({ ...local, messages: said("Hi"), stream: true })) text += piece.message.content;
      assert.equal(text, GREETING);
    },
    async tools() {
      const tools = [{ type: "function", function: FUNCTION }];
      const { message } = await ollama.chat({ ...local, messages: said(WEATHER), tools });
      assert.deepEqual(message.tool_calls[0].function.arguments, { city: "Oslo" });
      const result = { role: "tool", tool_name: "get_weather", content: JSON.stringify(RESULT) };
      const answer = await ollama.chat({ ...local, messages: [...said(WEATHER), message, result], tools });
      assert.equal(answer.message.content, SUMMARY);
    },
    async structured() {
      const { message } = await ollama.chat({ ...local, messages: said(JSON_TEXT), format: z.toJSONSchema(Person) });
      assert.deepEqual(JSON.parse(message.content), ALICE);
    },
    async reasoning() {
      assert.ok((await ollama.chat({ ...local, messages: said(WEATHER), think: "high" })).message.thinking);
    },
    async other() {
      assert.ok((await ollama.list()).models.length && (await ollama.show({ model })).details);
    },
  },
  "langchain js": {
    async chat() {
      assert.equal((await lang.invoke("Hi")).text, GREETING);
    },
    async stream() {
      let text = "";
      for await (const piece of await lang.stream("Hi")) text += piece.text;
      assert.equal(text, GREETING);
    },
    async tools() {
      const bound = lang.bindTools([{ type: "function", function: FUNCTION }]);
      const called = await bound.invoke(WEATHER);
      assert.deepEqual(called.tool_calls[0].args, { city: "Oslo" });
      const result = { role: "tool", content: JSON.stringify(RESULT), tool_call_id: called.tool_calls[0].id };
      assert.equal((await bound.invoke([...said(WEATHER), called, result])).text, SUMMARY);
    },
    async structured() {
      for (const method of ["jsonSchema", "functionCalling"]) {
        assert.deepEqual(await lang.withStructuredOutput(Person, { method }).invoke(JSON_TEXT), ALICE);
      }
    },
    async other() {
      assert.equal((await lang.batch(["Hi", "Hi"])).length, 2);
    },
  },
  "@openai/agents, chat": agents(OpenAIChatCompletionsModel),
  "@openai/agents, responses": agents(OpenAIResponsesModel),
  "ai-sdk, openai": sdk(createOpenAI({ baseURL: base, apiKey: "none" })(model), { openai: { reasoningSummary: "auto", forceReasoning: true } }),
  "ai-sdk, openai chat": sdk(createOpenAI({ baseURL: base, apiKey: "none" }).chat(model)),
  "ai-sdk, compatible": sdk(
    createOpenAICompatible({ name: "kernmill", baseURL: base, apiKey: "none", supportsStructuredOutputs: true })(model),
    { kernmill: { reasoningEffort: "high" } },
  ),
  "ai-sdk, anthropic": sdk(createAnthropic({ baseURL: base, apiKey: "none" })(model), { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } }),
};

for (const [client, parts] of Object.entries(clients)) {
  if (only && !client.includes(only)) continue;
  for (const [feature, part] of Object.entries(parts)) {
    let [cell, why] = ["Y", null];
    try {
      await part();
    } catch (error) {
      [cell, why] = ["N", String(error.responseBody ?? error.message ?? error)];
    }
    console.log(JSON.stringify({ client, feature, cell, why }));
  }
}
process.exit(0);

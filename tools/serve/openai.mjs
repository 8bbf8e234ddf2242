// OpenAI's client for JavaScript against a server that answers from answers.json, or is nano (see README.md).
//
//     node openai.mjs http://127.0.0.1:8080/v1 [gpt-oss-20b | nano]
//
// Fails if one of its parts does.

import assert from "node:assert/strict";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const model = process.argv[3] ?? "gpt-oss-20b";
const GREETING = { "gpt-oss-20b": "Hello! One, two, three, four, five.", nano: "Hello! How can I help you?" }[model];
const WEATHER = "What is the weather in Oslo?";
const RESULT = JSON.stringify({ sky: "rainy", degrees: 7 });
const SUMMARY = "It is rainy in Oslo, 7 degrees.";
const PERSON = "As JSON: name: Alice, age: 30";
const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string", description: "Name of the city." } },
  required: ["city"],
  additionalProperties: false,
};
const FUNCTION = { name: "get_weather", description: "Gets the weather of a city.", parameters: PARAMETERS };
const Person = z.object({ name: z.string(), age: z.number().int() });

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none", maxRetries: 0 });
const chat = client.chat.completions;
const said = (content) => [{ role: "user", content }];

const parts = {
  async chat() {
    assert.equal((await client.models.list()).data[0].id, model);
    const whole = await chat.create({ model, temperature: 0, messages: said("Hi") });
    assert.equal(whole.choices[0].message.content, GREETING);
    assert.equal(whole.choices[0].finish_reason, "stop");
  },

  async chat_stream() {
    const fields = { model, temperature: 0, messages: said("Hi"), stream_options: { include_usage: true } };
    let text = "";
    let usage;
    for await (const piece of await chat.create({ ...fields, stream: true })) {
      text += piece.choices[0]?.delta.content ?? "";
      usage = piece.usage ?? usage;
    }
    assert.equal(text, GREETING);
    const helper = chat.stream(fields);
    assert.equal(await helper.finalContent(), GREETING);
    assert.equal((await helper.totalUsage()).total_tokens, usage.total_tokens);
  },

  async chat_abort() {
    const stream = await chat.create({ model, temperature: 0, messages: said("Hi"), stream: true });
    for await (const _ of stream) {
      stream.controller.abort();
    }
    assert.equal((await chat.create({ model, temperature: 0, messages: said("Hi") })).choices.length, 1);
  },

  async chat_tools() {
    const tools = [{ type: "function", function: FUNCTION }];
    const messages = said(WEATHER);
    for (const stream of [false, true]) {
      const asked = { model, temperature: 0, messages, tools };
      const [choice] = (stream ? await chat.stream(asked).finalChatCompletion() : await chat.create(asked)).choices;
      assert.equal(choice.finish_reason, "tool_calls");
      const [call] = choice.message.tool_calls;
      assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ["get_weather", { city: "Oslo" }]);
      const result = { role: "tool", tool_call_id: call.id, content: RESULT };
      const answer = await chat.create({ ...asked, messages: [...messages, choice.message, result] });
      assert.equal(answer.choices[0].message.content, SUMMARY);
    }
  },

  // The client makes the calls by itself.
  async chat_run_tools() {
    const asked = [];
    const get_weather = ({ city }) => asked.push(city) && RESULT;
    const described = { ...FUNCTION, parse: JSON.parse, function: get_weather };
    const runner = chat.runTools({ model, temperature: 0, messages: said(WEATHER), tools: [{ type: "function", function: described }] });
    assert.equal(await runner.finalContent(), SUMMARY);
    assert.deepEqual(asked, ["Oslo"]);
  },

  async chat_schema() {
    const format = zodResponseFormat(Person, "person");
    const parsed = await chat.parse({ model, temperature: 0, messages: said(PERSON), response_format: format });
    assert.deepEqual(parsed.choices[0].message.parsed, { name: "Alice", age: 30 });
  },

  async errors() {
    const wrong = [[{ model: "other" }, OpenAI.NotFoundError], [{ model, temperature: 1000 }, OpenAI.BadRequestError]];
    for (const [fields, kind] of wrong) {
      await assert.rejects(chat.create({ messages: said("Hi"), ...fields }), kind);
    }
  },

  async responses() {
    const response = await client.responses.create({ model, temperature: 0, input: "Hi" });
    assert.equal(response.output_text, GREETING);
    assert.equal((await client.responses.retrieve(response.id)).output_text, GREETING);
    await client.responses.delete(response.id);
    await assert.rejects(client.responses.retrieve(response.id), OpenAI.NotFoundError);
  },

  async responses_stream() {
    const kinds = [];
    const stream = client.responses.stream({ model, temperature: 0, input: "Hi" });
    for await (const event of stream) {
      kinds.push(event.type);
    }
    assert.deepEqual([kinds[0], kinds.at(-1)], ["response.created", "response.completed"]);
    assert.equal((await stream.finalResponse()).output_text, GREETING);
  },

  async responses_tools() {
    const tools = [{ type: "function", strict: true, ...FUNCTION }];
    const response = await client.responses.create({ model, temperature: 0, input: WEATHER, tools });
    const call = response.output.find((item) => item.type === "function_call");
    assert.deepEqual([call.name, JSON.parse(call.arguments)], ["get_weather", { city: "Oslo" }]);
    const input = [{ type: "function_call_output", call_id: call.call_id, output: RESULT }];
    const answer = await client.responses.create({ model, temperature: 0, input, tools, previous_response_id: response.id });
    assert.equal(answer.output_text, SUMMARY);
  },

  async responses_schema() {
    const text = { format: zodTextFormat(Person, "person") };
    const parsed = await client.responses.parse({ model, temperature: 0, input: PERSON, text });
    assert.deepEqual(parsed.output_parsed, { name: "Alice", age: 30 });
  },

  async completions() {
    const whole = await client.completions.create({ model, prompt: "Once", max_tokens: 4, echo: true, logprobs: 1 });
    assert.ok(whole.choices[0].text.startsWith("Once"));
    assert.equal(whole.choices[0].logprobs.tokens.length, whole.choices[0].logprobs.token_logprobs.length);
  },
};

let failed = 0;
for (const [name, part] of Object.entries(parts)) {
  try {
    await part();
    console.log(`  ok  ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}\n${error.stack}`);
  }
}
process.exit(failed ? 1 : 0);

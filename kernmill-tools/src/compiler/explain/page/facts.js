// The report, what follows from it, and its first part: speed and memory.
const report = JSON.parse(at("report").textContent);
const functionOf = new Map(report.functions.map((one) => [one.name, one]));
const typeOf = new Map(report.values.map((one) => [one.name, one.type]));

/** Lists by key. */
function gathered(list, key) {
  const map = new Map();
  for (const one of list) {
    if (!map.has(key(one))) map.set(key(one), []);
    map.get(key(one)).push(one);
  }
  return map;
}
const stepsOfGroup = gathered(report.steps, (step) => step.group);
const stepsOfKernel = gathered(report.steps, (step) => step.kernel);
const stepsOfClass = gathered(report.steps, (step) => step.class);
const callersOf = gathered(
  report.functions.flatMap((caller) => caller.calls.map((name) => ({ name, caller: caller.name }))),
  (call) => call.name,
);

/** A label or value without its layer. */
const withoutLayer = (name) => name.replace(/^layers\.\d+\./, "");
const withoutLayers = (text) => text.replace(/([%@])layers\.\d+\./g, "$1");
const className = (size) => (size === 1 ? "of one token" : `of up to ${count(size)} tokens`);
/** Whether adapters alone need a group. */
const isForAdapters = (index) => (stepsOfGroup.get(index) ?? []).every((step) => step.for_adapters);
/** Decoding in a full context, and a prompt. */
const [start, deep, prompt] = report.estimate;

function showFacts() {
  const { machine, memory } = report;
  document.title = `${report.model}: kernmill explain`;
  at("title").textContent = report.model;
  const { layers, vocabulary, max_context: longest, nodes, groups } = report;
  at("about").textContent =
    `${plural(layers, "layer")}, vocabulary ${count(vocabulary)}, context up to ${count(longest)}; ` +
    `${count(nodes)} nodes in ${count(groups.length)} groups; by kernmill ${report.version}`;
  const speed = (one) => `${digits(one.tokens_per_second, 1)} tokens/s`;
  const allows = (one) => `memory allows ${digits(one.at_most_by_memory, 1)}`;
  const peak = prompt.at_most_by_arithmetic;
  const rows = [
    ["target", `${report.target}, preset ${report.preset}`],
    report.assumed_formats ? ["formats", "it is assumed that every tensor that may have 4 bits does"] : null,
    ["code", `${plural(report.code.kernels, "kernel")}, ${bytes(report.code.bytes)}`],
    ["machine",
      `${machine.cpu ?? "assumed (--machine takes a measured one)"}: ${plural(machine.workers, "worker")}, ` +
      `${digits(machine.gb_per_s, 1)} GB/s, ${digits(machine.step_us, 1)} µs a step` +
      (machine.tops_per_s ? `, ${digits(machine.tops_per_s, 2)} TOPS` : "")],
    ["memory",
      `${bytes(memory.total)} with a context of ${count(memory.context)}: weights ${bytes(memory.weights)}, ` +
      `KV ${bytes(memory.kv)} (${bytes(memory.kv_per_token)} a token), arena ${bytes(memory.arena)}, ` +
      `and ${bytes(Math.max(0, memory.working - memory.arena))} besides`],
    ["decoding at the start", `${speed(start)} (${allows(start)}); limit: ${start.limit}`],
    [`decoding at ${count(memory.context)}`, `${speed(deep)} (${allows(deep)}); limit: ${deep.limit}`],
    ["prompts",
      `${speed(prompt)} in chunks of ${count(prompt.tokens)}` +
      (peak ? ` (int8 allows ${digits(peak, 1)})` : "") + `; limit: ${prompt.limit}`],
  ];
  at("head").append(...rows.filter(Boolean).flatMap(([name, text]) => [html("dt", {}, name), html("dd", {}, text)]));
  showKinds();
  showMissed();
}

const readBy = (kind) => kind.weight_bytes + kind.cache_bytes;

function showKinds() {
  const names = [...new Set([...deep.kinds, ...prompt.kinds].map((kind) => kind.kind))];
  const of = (batch, name) => batch.kinds.find((kind) => kind.kind === name);
  const rows = names.map((name) => ({ name, deep: of(deep, name), prompt: of(prompt, name) }));
  const kernels = (name) => {
    const steps = report.steps.filter((step) => withoutLayer(step.label) === name && !step.for_adapters);
    return html("div", { class: "buttons" }, [...new Set(steps.map((step) => step.kernel))].map(functionButton));
  };
  const ms = (kind) => (kind ? digits(kind.microseconds / 1e3, 3) : "-");
  const share = (kind) => (kind ? digits(kind.percent, 1) : "-");
  const ukernels = (row) => [...new Set([row.deep?.ukernel, row.prompt?.ukernel].filter(Boolean))].join(", ");
  const caption =
    `A token is the last one of ${count(report.memory.context)}, a prompt has ${count(prompt.tokens)}. ` +
    "Times are those of the cost model.";
  at("kinds").append(table(caption, [
    ["kind", (row) => row.name],
    ["steps", (row) => count((row.deep ?? row.prompt).steps), true],
    ["token, MB", (row) => (row.deep ? digits(readBy(row.deep) / 1e6, 1) : "-"), true],
    ["token, ms", (row) => ms(row.deep), true],
    ["%", (row) => share(row.deep), true],
    ["limit", (row) => row.deep?.limit ?? "-"],
    ["prompt, ms", (row) => ms(row.prompt), true],
    ["%", (row) => share(row.prompt), true],
    ["limit", (row) => row.prompt?.limit ?? "-"],
    ["micro-kernels", (row) => ukernels(row)],
    ["kernels", (row) => kernels(row.name)],
  ], rows));
}

function showMissed() {
  const misses = report.near_misses;
  if (misses.length === 0) {
    at("missed").append(html("p", {}, "There are none: no fused-op spec nearly applied."));
    return;
  }
  at("missed").append(table("Places where a fused-op spec nearly applied, by what it would save there.", [
    ["spec", (miss) => miss.rule],
    ["at", (miss) => html("code", {}, `%${miss.value}`)],
    ["layers", (miss) => miss.layers || "-"],
    ["places", (miss) => count(miss.count), true],
    ["steps saved", (miss) => count(miss.steps), true],
    ["bytes a token saved", (miss) => count(miss.bytes), true],
    ["without", (miss) => miss.without.join(", ") || "-"],
    ["reason", (miss) => miss.reason],
  ], misses));
}


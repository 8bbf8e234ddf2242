// The kernel that is chosen: what it does, who calls it, its intermediate code and its assembly.
const functionButton = (name) => button(name, () => showFunction(name));

/** Shows a function; `above` is what stands before it. */
function showFunction(name, above = null) {
  if (!above) press(null);
  const one = functionOf.get(name);
  const steps = stepsOfKernel.get(name) ?? [];
  const callers = callersOf.get(name) ?? [];
  const facts = [
    one.description ? ["does", one.description] : null,
    one.version ? ["version", one.version] : null,
    ["code", bytes(one.bytes)],
    ...[...gathered(steps, (step) => step.class)].map(([size, list]) => [`steps ${className(size)}`, stepNames(list)]),
    ...timesOf(steps),
  ];
  at("chosen-title").textContent = `${one.description ? "Kernel" : "Micro-kernel"} ${name}`;
  const code = (title, id, text) => html("details", { open: "" },
    html("summary", {}, title), html("pre", { id, tabindex: "0", "aria-label": title }, text ?? "It was not kept."));
  at("chosen-body").replaceChildren(...[
    above,
    html("dl", {}, facts.filter(Boolean).flatMap(([term, text]) => [html("dt", {}, term), html("dd", {}, text)])),
    ...buttons("Calls", one.calls),
    ...buttons("Called by", callers.map((call) => call.caller)),
    code("CLIF, Cranelift's intermediate code", "clif", one.clif),
    code("Assembly", "assembly", one.assembly),
  ].filter(Boolean));
  at("chosen-title").focus();
}

const buttons = (title, names) =>
  names.length === 0 ? [] : [html("h4", {}, title), html("div", { class: "buttons" }, names.map(functionButton))];

/** Labels of steps, as few as say them all: `qkv in layers 0 to 22`. */
function stepNames(steps) {
  return [...gathered(steps, (step) => withoutLayer(step.label))].map(([kind, list]) => {
    const layers = list.map((step) => /^layers\.(\d+)\./.exec(step.label)?.[1]).filter(Boolean);
    const alone = list.every((step) => step.for_adapters) ? " (for adapters alone)" : "";
    return kind + (layers.length > 0 ? ` in ${layerNames(layers)}` : "") + alone;
  }).join("; ");
}

const layerNames = (layers) => `${layers.length === 1 ? "layer" : "layers"} ${layers.join(", ")}`;

/** What the cost model says of the kinds that a kernel's steps are of. */
function timesOf(steps) {
  const kinds = new Set(steps.filter((step) => !step.for_adapters).map((step) => withoutLayer(step.label)));
  const says = (batch, what) => batch.kinds.filter((kind) => kinds.has(kind.kind)).map((kind) => [
    `${kind.kind}, ${what}`,
    `${digits(kind.microseconds / 1e3, 3)} ms of ${plural(kind.steps, "step")}, ${digits(kind.percent, 1)} % of all; ` +
    `limit: ${kind.limit}`,
  ]);
  return [...says(deep, "a token"), ...says(prompt, "a prompt")];
}

/** Shows a group and the first of its kernels. */
function showGroup(index, chosen = null) {
  const group = report.groups[index];
  const kernels = gathered(stepsOfGroup.get(index) ?? [], (step) => step.kernel);
  const name = chosen ?? kernels.keys().next().value;
  const parts = { prologue: "first", root: "product", epilogue: "then" };
  const ops = html("ul", { class: "ops" }, group.ops.map((op) =>
    html("li", {}, html("code", {}, `${group.rule ? `${parts[op.part]}: ` : ""}${withoutLayers(op.text)}`))));
  const choices = [...kernels].map(([kernel, steps]) => {
    const classes = [...new Set(steps.map((step) => className(step.class)))].join(" and ");
    return button(`${kernel}: batches ${classes}`, () => showGroup(index, kernel), String(kernel === name));
  });
  const above = html("div", {},
    html("p", {}, `Group ${group.name}${group.rule ? "" : " (an op by itself)"}` +
      (group.layer === null ? "" : ` of layer ${group.layer}`) + (isForAdapters(index) ? ", for adapters alone" : "")),
    ops,
    html("div", { class: "buttons", role: "group", "aria-label": "Kernels of the group" }, choices));
  showFunction(name, above);
}

function showFunctions() {
  const rows = report.functions;
  at("function-table").append(table(`${plural(rows.length, "function")}, in the order of the code.`, [
    ["function", (one) => functionButton(one.name)],
    ["bytes", (one) => count(one.bytes), true],
    ["steps", (one) => count((stepsOfKernel.get(one.name) ?? []).length), true],
    ["what it is", (one) => one.description ?? `micro-kernel, version ${one.version}`],
  ], rows));
}


// Elements, and numbers as people read them. Text only ever becomes text nodes.
const at = (id) => document.getElementById(id);

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

const html = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

/** A button, or a group of SVG that acts as one: a click, Enter or a space runs `act`. */
function actsAsButton(node, act) {
  node.setAttribute("role", "button");
  node.setAttribute("tabindex", "0");
  node.addEventListener("click", act);
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  });
  return node;
}

const button = (text, act, pressed = null) =>
  html("button", { type: "button", click: act, "aria-pressed": pressed }, text);

/** A table. A column is a title, how a row shows in it, and whether that is a number. */
function table(caption, columns, rows) {
  const kind = (isNumber) => (isNumber ? "number" : null);
  const cell = (row) => ([, show, isNumber]) => html("td", { class: kind(isNumber) }, show(row));
  const head = columns.map(([title, , isNumber]) => html("th", { scope: "col", class: kind(isNumber) }, title));
  return html("table", {},
    html("caption", {}, caption),
    html("thead", {}, html("tr", {}, head)),
    html("tbody", {}, rows.map((row) => html("tr", {}, columns.map(cell(row))))));
}

const digits = (value, places) =>
  value.toLocaleString("en-GB", { minimumFractionDigits: places, maximumFractionDigits: places });
const count = (value) => value.toLocaleString("en-GB");
const plural = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;

/** Bytes with a unit, three digits. */
function bytes(value) {
  const unit = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]].find(([, size]) => value >= size);
  return unit ? `${(value / unit[1]).toPrecision(3)} ${unit[0]}` : `${count(value)} B`;
}


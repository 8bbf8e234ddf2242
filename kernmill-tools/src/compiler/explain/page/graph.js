// The graph of a layer: groups as boxes in rows, each below those that it reads from.
const BOX = 336;
const LINE = 15;
const LABEL = 190;
const COLUMNS = 46;
const cut = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

function showLayers() {
  const outside = report.groups.map((group, index) => index).filter((index) => report.groups[index].layer === null);
  const kinds = report.layer_kinds.map(({ layers, window, groups }) => {
    const view = window === null ? "the whole context" : `a window of ${count(window)}`;
    return { name: `${layers.join(", ")}: attention over ${view}`, groups };
  });
  if (outside.length > 0) kinds.push({ name: "none: before and behind the layers", groups: outside });
  const choice = at("layer-kind");
  choice.append(...kinds.map((kind, index) => html("option", { value: index }, kind.name)));
  const adapters = at("with-adapters");
  if (!report.steps.some((step) => step.for_adapters)) adapters.closest("label").hidden = true;
  const draw = () => drawGraph(kinds[choice.value].groups.filter((index) => adapters.checked || !isForAdapters(index)));
  choice.addEventListener("change", draw);
  adapters.addEventListener("change", draw);
  draw();
}

/** Lines of a box: ops with their results, by part. */
function boxLines(group) {
  return group.ops.map((op, index) => {
    const [, out, type] = /^%(\S+) = .* : (.*)$/s.exec(op.text) ?? [null, "", ""];
    const text = `${op.op} → ${withoutLayer(out)} ${type}`;
    return { text, full: op.text, begins: index > 0 && op.part !== group.ops[index - 1].part };
  });
}

/** Groups as boxes, values from outside and for outside as pills, and edges with the values that they carry. */
function nodesAndEdges(indices) {
  const nodes = indices.map((index) => {
    const group = report.groups[index];
    const lines = boxLines(group);
    return { index, group, lines, width: BOX, height: 30 + LINE * lines.length + 8, reads: group.inputs };
  });
  const producer = new Map(nodes.flatMap((node) => node.group.outputs.map((value) => [value, node])));
  const pill = (value, isInput) => ({ value, isInput, width: LABEL, height: 24, reads: isInput ? [] : [value] });
  // What adapters alone make comes from nowhere if it is not drawn.
  const isHidden = (value) => !producer.has(value) && adapted.has(value);
  nodes.forEach((node) => { node.reads = node.reads.filter((value) => !isHidden(value)); });
  const wanted = new Set(nodes.flatMap((node) => node.reads));
  const inputs = [...wanted].filter((value) => !producer.has(value)).map((value) => pill(value, true));
  inputs.forEach((node) => producer.set(node.value, node));
  const isOutside = (index) => !indices.includes(index) && !isForAdapters(index);
  const readOutside = new Set(report.groups.flatMap((group, index) => (isOutside(index) ? group.inputs : [])));
  const read = new Set(report.groups.flatMap((group) => group.inputs));
  const results = nodes.flatMap((node) => node.group.outputs)
    .filter((value) => readOutside.has(value) || !read.has(value));
  const all = [...inputs, ...nodes, ...results.map((value) => pill(value, false))];
  const edges = [];
  for (const to of all) {
    const sources = gathered(to.reads, (value) => producer.get(value));
    sources.forEach((values, from) => edges.push({ from, to, values: to.group || from.group ? values : [] }));
  }
  return { nodes: all, edges };
}

/** Values that adapters alone make. */
const adapted = new Set(report.groups.flatMap((group, index) => (isForAdapters(index) ? group.outputs : [])));

/** Rows of nodes. An edge over several rows gets a place in each of them. */
function rowsOf(nodes, edges) {
  const rank = new Map();
  const rankOf = (node) => {
    if (!rank.has(node)) {
      const sources = edges.filter((edge) => edge.to === node).map((edge) => rankOf(edge.from));
      rank.set(node, sources.length === 0 ? 0 : Math.max(...sources) + 1);
    }
    return rank.get(node);
  };
  nodes.forEach(rankOf);
  const rows = Array.from({ length: Math.max(...rank.values()) + 1 }, () => []);
  nodes.forEach((node) => rows[rank.get(node)].push(node));
  const pieces = [];
  for (const edge of edges) {
    let from = edge.from;
    for (let row = rank.get(edge.from) + 1; row < rank.get(edge.to); row += 1) {
      const bend = { width: LABEL, height: 0, isBend: true };
      rows[row].push(bend);
      pieces.push({ from, to: bend, edge, isFirst: from === edge.from });
      from = bend;
    }
    pieces.push({ from, to: edge.to, edge, isFirst: from === edge.from, isLast: true });
  }
  return { rows, pieces };
}

/** Orders every row by its neighbours, and gives every node a place. */
function place(rows, pieces) {
  const mean = (list) => list.reduce((sum, one) => sum + one, 0) / list.length;
  const near = (node, side, other) => pieces.filter((piece) => piece[side] === node).map((piece) => piece[other].x);
  const pack = (row) => {
    const total = row.reduce((sum, node) => sum + node.width + 28, -28);
    row.reduce((x, node) => { node.x = x + node.width / 2; return x + node.width + 28; }, -total / 2);
  };
  rows.forEach(pack);
  for (let round = 0; round < 8; round += 1) {
    const isDown = round % 2 === 0;
    for (const row of isDown ? rows : rows.toReversed()) {
      const [side, other] = isDown ? ["to", "from"] : ["from", "to"];
      for (const node of row) {
        const places = near(node, side, other);
        node.wish = places.length > 0 ? mean(places) : node.x;
      }
      row.sort((a, b) => a.wish - b.wish);
      // Each as near to its wish as those to its left allow; then the whole row moves to the wishes' mean.
      let free = -Infinity;
      for (const node of row) {
        node.x = Math.max(node.wish, free + node.width / 2);
        free = node.x + node.width / 2 + 28;
      }
      const shift = mean(row.map((node) => node.wish - node.x));
      row.forEach((node) => { node.x += shift; });
    }
  }
  let y = 8;
  rows.forEach((row) => {
    row.forEach((node) => { node.y = y; });
    const lines = Math.max(...row.map((node) => labelsOf(node, pieces).length));
    y += Math.max(...row.map((node) => node.height)) + 44 + lines * 13;
    row.forEach((node) => { node.below = y; });
  });
}

function drawGraph(indices) {
  const { nodes, edges } = nodesAndEdges(indices);
  const { rows, pieces } = rowsOf(nodes, edges);
  place(rows, pieces);
  const all = rows.flat();
  const left = Math.min(...all.map((node) => node.x - node.width / 2)) - 8;
  const right = Math.max(...all.map((node) => node.x + node.width / 2)) + 8;
  const bottom = Math.max(...all.map((node) => node.y + node.height)) + 8;
  const mark = { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" };
  const tip = svg("marker", mark, svg("path", { class: "arrow", d: "M0 0 8 4 0 8z" }));
  const size = { width: right - left, height: bottom, viewBox: `${left} 0 ${right - left} ${bottom}` };
  const picture = svg("svg", { ...size, role: "group", "aria-label": "Groups of the layer" },
    svg("defs", {}, tip), pieces.map((piece) => drawPiece(piece, pieces)), all.map(drawNode),
    all.flatMap((node) => labelsOf(node, pieces)).map(drawLabel));
  at("graph").replaceChildren(picture);
}

/** Where a piece of an edge leaves or meets a node: pieces share its side, in the order of their other ends. */
function port(piece, pieces, side, other) {
  const node = piece[side];
  if (node.isBend) return node.x;
  const shared = pieces.filter((one) => one[side] === node).sort((a, b) => a[other].x - b[other].x);
  const step = Math.min(60, (node.width - 24) / shared.length);
  return node.x + (shared.indexOf(piece) - (shared.length - 1) / 2) * step;
}

function drawPiece(piece, pieces) {
  const { from, to } = piece;
  const [x1, x2] = [port(piece, pieces, "from", "to"), port(piece, pieces, "to", "from")];
  const [y1, y2] = [from.y + from.height, to.y];
  // Below a low node the line goes straight down first, so that it passes beside its higher neighbours.
  const bend = Math.max(y1, from.below - 60);
  const middle = (bend + y2) / 2;
  Object.assign(piece, { x1, x2, y1, y2 });
  const d = `M${x1} ${y1}V${bend}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`;
  return svg("path", { class: "edge", d, "marker-end": piece.isLast ? "url(#tip)" : null });
}

/** Values that a group hands on to others, each once, at the first of the edges that carry it. */
function labelsOf(node, pieces) {
  if (!node.group) return [];
  const first = pieces.filter((piece) => piece.isFirst && piece.from === node && piece.edge.to.group);
  const all = first.flatMap((piece) => piece.edge.values.map((value) => ({ piece, value })));
  return all.filter((one, index) => all.findIndex((other) => other.value === one.value) === index)
    .map((one, index) => ({ ...one, index }));
}

function drawLabel({ piece: { x1, y1 }, value, index }) {
  const text = cut(`${withoutLayer(value)} ${typeOf.get(value) ?? ""}`, 34);
  return svg("text", { class: "label faint", x: x1 + 5, y: y1 + 16 + index * 13 }, text);
}

function drawNode(node) {
  if (node.isBend) return null;
  const [x, y] = [node.x - node.width / 2, node.y];
  const frame = svg("rect", { class: "frame", x, y, width: node.width, height: node.height, rx: 7 });
  if (!node.group) {
    const text = `${withoutLayer(node.value)} ${typeOf.get(node.value) ?? ""}`;
    const title = `${node.value}, ${node.isInput ? "from" : "for"} outside`;
    return svg("g", { class: "outside" }, frame, svg("title", {}, title),
      svg("text", { x: node.x, y: y + 16, "text-anchor": "middle" }, cut(text, 26)));
  }
  const { group, index, lines } = node;
  const top = (line) => y + 40 + line * LINE;
  const rule = (height) => svg("line", { x1: x + 8, x2: x + node.width - 8, y1: height, y2: height });
  const text = lines.map((one, line) => [
    one.begins ? rule(top(line) - 11.5) : null,
    svg("text", { x: x + 10, y: top(line) }, svg("title", {}, one.full), cut(one.text, COLUMNS)),
  ]);
  const box = svg("g", {
    class: isForAdapters(index) ? "box adapters" : "box",
    "data-group": index,
    "aria-label": `group ${group.name}: ${group.members}`,
    "aria-pressed": "false",
  }, frame, svg("text", { class: "name", x: x + 10, y: y + 19 }, group.name), text);
  return actsAsButton(box, () => {
    press(box);
    showGroup(index);
  });
}

/** Marks the box that is chosen, and no other. */
function press(box) {
  for (const other of document.querySelectorAll(".box")) other.setAttribute("aria-pressed", String(other === box));
}


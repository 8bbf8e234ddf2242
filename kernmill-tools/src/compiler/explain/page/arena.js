// The arena over steps.
const ARENA = { width: 1200, height: 460, left: 90, right: 10, top: 10, bottom: 46 };

function showArenas() {
  const [choice, scale] = [at("arena-class"), at("arena-scale")];
  choice.append(...report.arenas.map((arena, index) => html("option", { value: index }, className(arena.class))));
  const draw = () => drawArena(report.arenas[choice.value], scale.value === "even");
  const isFlat = (arena) => {
    const low = arena.buffers.filter((buffer) => (buffer.bytes / arena.bytes) * ARENA.height < 10);
    return low.length * 2 > arena.buffers.length;
  };
  const choose = () => {
    scale.value = isFlat(report.arenas[choice.value]) ? "even" : "bytes";
    draw();
  };
  choice.addEventListener("change", choose);
  scale.addEventListener("change", draw);
  choose();
}

/** The height of a byte of the arena: by its offset, or by how many edges of buffers lie below. */
function heightOf(arena, isEven) {
  const space = ARENA.height - ARENA.top - ARENA.bottom;
  const bottom = ARENA.height - ARENA.bottom;
  if (!isEven) return (offset) => bottom - (offset / Math.max(1, arena.bytes)) * space;
  const both = arena.buffers.flatMap(({ offset, bytes: size }) => [offset, offset + size]);
  const edges = [...new Set(both)].sort((a, b) => a - b);
  const rank = new Map(edges.map((edge, index) => [edge, index]));
  return (offset) => bottom - ((rank.get(offset) ?? 0) / Math.max(1, edges.length - 1)) * space;
}

function drawArena(arena, isEven) {
  const steps = stepsOfClass.get(arena.class) ?? [];
  const total = Math.max(steps.length, ...arena.buffers.map((buffer) => buffer.last + 1));
  const space = ARENA.width - ARENA.left - ARENA.right;
  const x = (step) => ARENA.left + (step / total) * space;
  const y = heightOf(arena, isEven);
  const bottom = ARENA.height - ARENA.bottom;
  const marks = isEven ? [] : [0, 0.25, 0.5, 0.75, 1].map((part) => part * arena.bytes);
  const grid = marks.map((mark) => [
    svg("line", { class: "grid", x1: ARENA.left, x2: ARENA.width - ARENA.right, y1: y(mark), y2: y(mark) }),
    svg("text", { x: ARENA.left - 8, y: y(mark) + 4, "text-anchor": "end" }, bytes(Math.round(mark))),
  ]);
  const layers = steps.map((step, index) => [/^layers\.(\d+)\./.exec(step.label)?.[1] ?? "", index])
    .filter(([layer], index, all) => index === 0 || all[index - 1][0] !== layer);
  const ticks = layers.map(([layer, index]) => [
    svg("line", { class: "grid", x1: x(index), x2: x(index), y1: ARENA.top, y2: bottom + 6 }),
    svg("text", { x: x(index) + 2, y: bottom + 16 }, layer),
  ]);
  const order = [...arena.buffers].sort((a, b) => a.first - b.first || a.offset - b.offset);
  const shapes = order.map((buffer, index) => {
    const [low, high] = [y(buffer.offset), y(buffer.offset + buffer.bytes)];
    const shape = svg("rect", {
      class: `buffer ${"abc"[index % 3]}`, x: x(buffer.first), width: x(buffer.last + 1) - x(buffer.first),
      y: high, height: Math.max(1, low - high),
    }, svg("title", {}, bufferText(buffer, steps)));
    shape.addEventListener("click", () => choose(index));
    shape.addEventListener("mouseenter", () => tell(order[index]));
    return shape;
  });
  const tell = (buffer) => { at("arena-chosen").textContent = bufferText(buffer, steps); };
  let chosen = -1;
  const choose = (index) => {
    shapes[chosen]?.classList.remove("on");
    chosen = (index + order.length) % order.length;
    shapes[chosen].classList.add("on");
    tell(order[chosen]);
  };
  const picture = svg("svg", {
    width: ARENA.width, height: ARENA.height, viewBox: `0 0 ${ARENA.width} ${ARENA.height}`,
    tabindex: "0", role: "group",
    "aria-label": `${order.length} buffers of the arena over ${total} steps; the arrow keys go from buffer to buffer`,
  }, grid, ticks, shapes, svg("text", { x: ARENA.left, y: bottom + 36 }, `layer, over ${total} steps`));
  picture.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (by === undefined || order.length === 0) return;
    event.preventDefault();
    choose(chosen < 0 ? 0 : chosen + by);
  });
  at("arena-plot").replaceChildren(picture);
  at("arena-facts").textContent =
    `${bytes(arena.bytes)} for ${plural(order.length, "buffer")}. Without sharing they would take ` +
    `${bytes(order.reduce((sum, buffer) => sum + buffer.bytes, 0))}; ` +
    `what is in use at once takes at most ${bytes(arena.at_least)}.`;
  at("arena-table").replaceChildren(table("In the order of their first steps.", [
    ["buffer", (buffer) => buffer.name],
    ["offset", (buffer) => count(buffer.offset), true],
    ["bytes", (buffer) => count(buffer.bytes), true],
    ["from", (buffer) => steps[buffer.first]?.label ?? buffer.first],
    ["to", (buffer) => steps[buffer.last]?.label ?? buffer.last],
  ], order));
}

const bufferText = (buffer, steps) =>
  `${buffer.name}: ${bytes(buffer.bytes)} at ${count(buffer.offset)}, steps ${buffer.first} ` +
  `(${steps[buffer.first]?.label ?? "?"}) to ${buffer.last} (${steps[buffer.last]?.label ?? "?"})`;


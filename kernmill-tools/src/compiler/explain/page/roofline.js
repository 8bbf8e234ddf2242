// The roofline: what kinds of steps compute for each byte that they read, and how fast.
const ROOF = { width: 1000, height: 480, left: 80, right: 150, top: 16, bottom: 48 };

/** Kinds of steps with arithmetic, as points. */
function pointsOf(batch, of, word) {
  return batch.kinds.filter((kind) => kind.macs > 0 && kind.microseconds > 0).map((kind) => {
    const ops = 2 * kind.macs;
    return { of, word, kind, intensity: ops / Math.max(readBy(kind), 1), tops: ops / kind.microseconds / 1e6 };
  });
}

function showRoofline() {
  const { gb_per_s: bandwidth, tops_per_s: peak } = report.machine;
  const points = [...pointsOf(deep, "decode", "token"), ...pointsOf(prompt, "prompt", "prompt")];
  at("roofline-facts").textContent =
    "To the right, a step computes more for each byte of weights and cache that it reads; upwards, it computes " +
    `faster, by the cost model. Memory of ${digits(bandwidth, 1)} GB/s allows what lies below the slanted line. ` +
    (peak ? `The integer peak of ${digits(peak, 2)} TOPS allows what lies below the level one.`
      : "The integer peak is not known without --machine, so there is no level line.") +
    ` Steps without products are left out. A token is the last one of ${count(report.memory.context)}, a prompt has ` +
    `${count(prompt.tokens)}.`;
  at("roofline-table").append(table("Two operations for each multiply-add; activations are not counted as reads.", [
    ["of a", (point) => point.word],
    ["kind", (point) => point.kind.kind],
    ["operations a byte", (point) => digits(point.intensity, 2), true],
    ["TOPS", (point) => digits(point.tops, 4), true],
    ["share of what the lines allow, %", (point) => digits((point.tops / roofAt(point.intensity)) * 100, 1), true],
    ["limit", (point) => point.kind.limit],
  ], points));
  if (points.length > 0) at("roofline-plot").append(drawRoofline(points));
}

/** TOPS that memory and arithmetic allow. */
function roofAt(intensity) {
  const { gb_per_s: bandwidth, tops_per_s: peak } = report.machine;
  return Math.min(intensity * bandwidth / 1e3, peak ?? Infinity);
}

function drawRoofline(points) {
  const decades = (values) => [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)))];
  const peak = report.machine.tops_per_s;
  const [x0, x1] = decades(points.map((point) => point.intensity));
  const [y0, y1] = decades([...points.map((point) => point.tops), ...(peak ? [peak] : [])]);
  const [right, bottom] = [ROOF.width - ROOF.right, ROOF.height - ROOF.bottom];
  const x = (value) => ROOF.left + ((Math.log10(value) - x0) / Math.max(1, x1 - x0)) * (right - ROOF.left);
  const y = (value) => bottom - ((Math.log10(value) - y0) / Math.max(1, y1 - y0)) * (bottom - ROOF.top);
  const span = (from, to) => Array.from({ length: Math.max(1, to - from) + 1 }, (_, index) => 10 ** (from + index));
  const grid = [
    ...span(x0, x1).map((value) => [
      svg("line", { class: "grid", x1: x(value), x2: x(value), y1: ROOF.top, y2: bottom }),
      svg("text", { x: x(value), y: bottom + 16, "text-anchor": "middle" }, String(Number(value.toPrecision(3)))),
    ]),
    ...span(y0, y1).map((value) => [
      svg("line", { class: "grid", x1: ROOF.left, x2: right, y1: y(value), y2: y(value) }),
      svg("text", { x: ROOF.left - 8, y: y(value) + 4, "text-anchor": "end" }, String(Number(value.toPrecision(3)))),
    ]),
    svg("text", { x: (ROOF.left + right) / 2, y: bottom + 36, "text-anchor": "middle" }, "operations a byte"),
    svg("text", { x: 14, y: ROOF.top + 4 }, "TOPS"),
  ];
  // The lines are straight between these; what lies outside of the picture is clipped.
  const bends = [10 ** x0, ...(peak ? [peak * 1e3 / report.machine.gb_per_s] : []), 10 ** Math.max(x1, x0 + 1)];
  const roof = bends.sort((a, b) => a - b).map((value) => `${x(value)},${y(roofAt(value))}`).join(" ");
  const frame = svg("clipPath", { id: "frame" },
    svg("rect", { x: ROOF.left, y: ROOF.top, width: right - ROOF.left, height: bottom - ROOF.top }));
  const marks = points.map((point) => {
    const where = `${digits(point.intensity, 2)} operations a byte, ${digits(point.tops, 4)} TOPS`;
    return svg("circle", { class: point.of, cx: x(point.intensity), cy: y(point.tops), r: 6 },
      svg("title", {}, `${point.kind.kind}, ${point.word}: ${where}`));
  });
  // Names stand beside their points, and move down where something stands already.
  const taken = points.map((point) => ({ left: x(point.intensity) - 7, width: 14, top: y(point.tops) + 4 }));
  const names = [...points].sort((a, b) => b.tops - a.tops).map((point) => {
    const text = `${point.kind.kind}, ${point.word}`;
    const [left, width] = [x(point.intensity) + 9, text.length * 6.8];
    let top = y(point.tops) + 4;
    const isBeside = (one) => one.left < left + width && left < one.left + one.width;
    const hits = () => taken.some((one) => Math.abs(one.top - top) < 12 && isBeside(one));
    while (hits()) top += 3;
    taken.push({ left, width, top });
    return svg("text", { class: "label", x: left, y: top }, text);
  });
  return svg("svg", {
    width: ROOF.width, height: ROOF.height, viewBox: `0 0 ${ROOF.width} ${ROOF.height}`, role: "img",
    "aria-label": `${points.length} kinds of steps below the machine's limits; the table has their figures`,
  }, svg("defs", {}, frame), grid,
  svg("polyline", { class: "roof", points: roof, "clip-path": "url(#frame)" }), names, marks);
}


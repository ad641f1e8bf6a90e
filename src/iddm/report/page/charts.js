"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const KNOWN = ["iddm", "gaifo", "gail", "gaifo-s", "bco", "deepmimic", "bc", "none"];
const named = new Map(data.methods.map((method) => [method.key, method]));
// Other methods take the colours of those that are not here.
const FREE = KNOWN.filter((key) => !named.has(key));
const others = [...named.keys()].filter((key) => !KNOWN.includes(key));
const colour = (key) => `var(--m-${KNOWN.includes(key) ? key : FREE[others.indexOf(key) % FREE.length] ?? "other"})`;
// A line is a method's, a variant of one (which has its colour), or one of several values of a setting, which have shades of one colour.
const colourOf = (line) => (line.shade === undefined ? colour(line.variantOf ?? line.method) : `var(--shade-${line.shade})`);
const nameOf = (line) => named.get(line.method)?.name ?? line.method;
const large = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 1 });
const number = { format: (value) => (Math.abs(value) < 10 ? `${+value.toPrecision(3)}` : large.format(value)) };
const state = { hidden: new Set(), seeds: false };

function make(tag, attributes, parent, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return parent.appendChild(element);
}

// What is switched off stands in the address, so that a view can be sent: #hide=gaifo,none&seeds=1
function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  state.hidden = new Set((given.get("hide") ?? "").split(",").filter((key) => named.has(key)));
  state.seeds = given.get("seeds") === "1";
  for (const box of document.querySelectorAll(".switches input"))
    box.checked = box.dataset.method === undefined ? state.seeds : !state.hidden.has(box.dataset.method);
}

function writeAddress() {
  const parts = [];
  if (state.hidden.size) parts.push("hide=" + [...state.hidden].map(encodeURIComponent).join(","));
  if (state.seeds) parts.push("seeds=1");
  history.replaceState(null, "", "#" + parts.join("&"));
}

function addSwitches(place) {
  const add = (text, key) => {
    const label = place.appendChild(document.createElement("label"));
    const box = label.appendChild(document.createElement("input"));
    box.type = "checkbox";
    if (key !== undefined) {
      box.dataset.method = key;
      label.style.setProperty("--colour", colour(key));
      label.appendChild(document.createElement("span")).className = "swatch";
    }
    label.append(text);
    if (named.get(key)?.control) label.appendChild(document.createElement("em")).textContent = "control";
    box.addEventListener("change", () => {
      if (key === undefined) state.seeds = box.checked;
      else if (box.checked) state.hidden.delete(key);
      else state.hidden.add(key);
      writeAddress();
      readAddress();
      drawAll();
    });
  };
  for (const method of data.methods) add(method.name, method.key);
  add("single seeds");
}

function niceTicks(low, high, count) {
  const raw = (high - low || 1) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw) * power;
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step) ticks.push(Math.abs(tick) < step * 1e-9 ? 0 : tick);
  return ticks;
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toFixed(2)}M`;
  return size >= 1e4 ? `${+(value / 1e3).toFixed(1)}k` : number.format(value);
}

function scales(chart, lines, width, height) {
  const x = lines.flatMap((line) => line.x);
  const y = lines.flatMap((line) => (state.seeds ? line.seeds.flat().map((point) => point[1]) : [...line.low, ...line.high]));
  y.push(...chart.marks.map((mark) => mark.value));
  let [bottom, top] = [Math.min(...y), Math.max(...y)];
  const air = 0.06 * (top - bottom || 1);
  [bottom, top] = [bottom - air, top + air];
  const [first, last] = chart.ticks ? [0, Math.max(1, chart.ticks.length - 1)] : [0, Math.max(1, ...x)];
  const longest = Math.max(...[...lines.map(nameOf), ...chart.marks.map((mark) => mark.label)].map((name) => name.length));
  const beside = Math.min(Math.max(76, 12 + 6.2 * longest), 0.45 * width); // for the names at the lines' ends
  const inner = { left: 48, right: width - beside, top: 10, bottom: height - 24 };
  return {
    inner, bottom, top, last,
    x: (value) => inner.left + ((value - first) / (last - first)) * (inner.right - inner.left),
    y: (value) => inner.bottom - ((value - bottom) / (top - bottom)) * (inner.bottom - inner.top),
  };
}

function axes(svg, chart, scale) {
  const { inner } = scale;
  for (const tick of niceTicks(scale.bottom, scale.top, 5)) {
    const y = scale.y(tick);
    make("line", { class: "grid", x1: inner.left, x2: inner.right, y1: y, y2: y }, svg);
    make("text", { x: inner.left - 7, y: y + 4, "text-anchor": "end" }, svg, short(tick) + (chart.percent ? " %" : ""));
  }
  const steps = chart.ticks ? chart.ticks.map((_, i) => i) : niceTicks(0, scale.last, inner.right - inner.left < 260 ? 3 : 5);
  for (const tick of steps) {
    const text = chart.ticks ? chart.ticks[tick].replace(/ episodes?$/, " ep.") : short(tick);
    make("text", { x: scale.x(tick), y: inner.bottom + 17, "text-anchor": "middle" }, svg, text);
  }
  for (const mark of chart.marks) {
    const y = scale.y(mark.value);
    make("line", { class: "mark", x1: inner.left, x2: inner.right, y1: y, y2: y }, svg);
  }
}

// Names stand at the ends of their lines, pushed apart where they would meet.
function labels(svg, chart, lines, scale) {
  const wanted = lines.map((line) => ({ text: nameOf(line), fill: colourOf(line), y: scale.y(line.mean.at(-1)) }));
  wanted.push(...chart.marks.map((mark) => ({ text: mark.label, fill: "var(--soft)", y: scale.y(mark.value) })));
  wanted.sort((a, b) => a.y - b.y);
  wanted.forEach((label, i) => { if (i) label.y = Math.max(label.y, wanted[i - 1].y + 12); });
  let floor = scale.inner.bottom;
  for (const label of wanted.reverse()) {
    label.y = Math.min(label.y, floor);
    floor = label.y - 12;
    const text = label.text === "constant reward" ? "constant" : label.text;
    make("text", { class: "label", x: scale.inner.right + 6, y: label.y + 4, style: `fill:${label.fill}` }, svg, text);
  }
}

const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");

function drawLine(svg, line, scale) {
  const at = (values) => values.map((value, i) => [scale.x(line.x[i]), scale.y(value)]);
  const stroke = `stroke:${colourOf(line)}`;
  if (state.seeds)
    for (const points of line.seeds) make("path", { class: "seed", style: stroke, d: path(points.map(([x, y]) => [scale.x(x), scale.y(y)])) }, svg);
  else if (line.seeds.length > 1)
    make("path", { class: "band", style: `fill:${colourOf(line)}`, d: path([...at(line.low), ...at(line.high).reverse()]) + "Z" }, svg);
  const kind = (line.method === "iddm" ? " ours" : "") + (line.dashed ? " dashed" : "") + (named.get(line.method)?.control ? " control" : "");
  const drawn = make("path", { class: "line" + kind, style: stroke, d: path(at(line.mean)) }, svg);
  drawn.dataset.method = line.method;
  if (line.x.length === 1) make("circle", { cx: scale.x(line.x[0]), cy: scale.y(line.mean[0]), r: 3, style: `fill:${colourOf(line)}` }, svg);
}

function draw(figure, chart) {
  const [svg, readout] = [figure.querySelector("svg"), figure.querySelector(".readout")];
  const [width, height] = [figure.clientWidth, 250];
  const lines = chart.lines.filter((line) => line.x.length && !state.hidden.has(line.method));
  const scale = scales(chart, lines, width, height);
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  readout.replaceChildren();
  axes(svg, chart, scale);
  lines.sort((a, b) => (a.method === "iddm") - (b.method === "iddm")).forEach((line) => drawLine(svg, line, scale));
  labels(svg, chart, lines, scale);
  listen(svg, readout, chart, lines, scale, width);
}

const figures = [];
for (const [id, charts] of Object.entries(data.charts)) {
  const place = document.getElementById(id);
  for (const chart of charts) {
    const figure = place.appendChild(document.createElement("figure"));
    const title = figure.appendChild(document.createElement("h3"));
    title.textContent = chart.title;
    const svg = make("svg", { role: "img", tabindex: "0" }, figure);
    svg.setAttribute("aria-label", `${chart.title}: arrow keys read the values`);
    const readout = figure.appendChild(document.createElement("div"));
    readout.className = "readout";
    readout.setAttribute("role", "status");
    figures.push([figure, chart]);
  }
}
const drawAll = () => figures.forEach(([figure, chart]) => draw(figure, chart));
document.querySelectorAll(".switches").forEach(addSwitches);
addEventListener("hashchange", () => { readAddress(); drawAll(); });
readAddress();
drawAll();
let drawnAt = document.body.clientWidth;
new ResizeObserver(() => {
  if (document.body.clientWidth !== drawnAt) { drawnAt = document.body.clientWidth; drawAll(); }
}).observe(document.body);

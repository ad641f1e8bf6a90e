"use strict";
// The values of a chart at one place, for a pointer, a finger or the arrow keys.

function listen(svg, readout, chart, lines, scale, width) {
  const places = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const cursor = make("g", {}, svg);
  let here = -1;
  const nearest = (values, wanted) => values.reduce((best, value, i) => (Math.abs(value - wanted) < Math.abs(values[best] - wanted) ? i : best), 0);
  const hide = () => { here = -1; cursor.replaceChildren(); readout.replaceChildren(); };
  const show = (index) => {
    if (!places.length) return;
    here = Math.max(0, Math.min(places.length - 1, index));
    const x = scale.x(places[here]);
    cursor.replaceChildren();
    make("line", { class: "cursor", x1: x, x2: x, y1: scale.inner.top, y2: scale.inner.bottom }, cursor);
    const add = (text, fill) => {
      const row = readout.appendChild(document.createElement("div"));
      if (fill) row.style.color = fill;
      row.textContent = text;
    };
    readout.replaceChildren();
    add(chart.ticks ? chart.ticks[places[here]] : `${number.format(places[here])} steps`);
    const found = lines.map((line) => ({ line, i: nearest(line.x, places[here]) })).sort((a, b) => b.line.mean[b.i] - a.line.mean[a.i]);
    for (const { line, i } of found) {
      make("circle", { cx: scale.x(line.x[i]), cy: scale.y(line.mean[i]), r: 3, style: `fill:${colourOf(line)}` }, cursor);
      const range = line.seeds.length > 1 ? ` (${number.format(line.low[i])} to ${number.format(line.high[i])})` : "";
      add(`${nameOf(line)} ${number.format(line.mean[i])}${chart.percent ? " %" : ""}${range}`, colourOf(line));
    }
    readout.style.left = x < width / 2 ? "auto" : "0";
    readout.style.right = x < width / 2 ? "0" : "auto";
  };
  const follow = (event) => {
    const box = svg.getBoundingClientRect();
    const { inner } = scale;
    const share = (event.clientX - box.left - inner.left) / (inner.right - inner.left);
    show(nearest(places, share * scale.last));
  };
  svg.onpointermove = svg.onpointerdown = follow;
  svg.onpointerleave = svg.onblur = hide;
  svg.onkeydown = (event) => {
    const to = { ArrowRight: here + 1, ArrowLeft: here < 0 ? places.length - 1 : here - 1, Home: 0, End: places.length - 1 }[event.key];
    if (event.key === "Escape") hide();
    if (to === undefined) return;
    event.preventDefault();
    show(to);
  };
}

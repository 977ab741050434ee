// A small chart of time: lines, or areas on top of each other. It has an axis with a unit, a legend with the values of now or
// of the moment that is pointed at, and it is drawn anew for each sample at the very width that it has, so text is never scaled.

import { h, s, put, number } from "./dom.js";

const HEIGHT = 176;
const LEFT = 46;
const RIGHT = 10;
const TOP = 27;
const BOTTOM = 20;

/** How far apart the marks of time may be, in seconds. */
const STEPS = [5, 10, 15, 20, 30, 60, 120, 180, 300, 600];

const DASHES = { solid: null, dashed: "7 4", dotted: "2 3", mixed: "9 3 2 3" };

/**
 * One chart. `spec` has a title, a unit, perhaps a note, and `series(samples)`, which gives a list of
 * `{ name, color, values, kind: "area" | "line", dash, note }`: areas are stacked in their order, lines are drawn on top.
 * `times` are seconds; the newest is at the right.
 */
export class Chart {
  constructor(spec) {
    this.spec = spec;
    this.cursor = null;
    this.svg = s("svg", { role: "img", tabindex: "0", height: HEIGHT });
    this.legend = h("ul", { class: "legend" });
    this.moment = h("p", { class: "moment" });
    this.note = h("span", {});
    this.element = h("figure", { "data-chart": spec.id },
      h("figcaption", {}, h("h3", {}, spec.title), this.note),
      h("div", { class: "plot" }, this.svg), this.legend, this.moment);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.select(null));
    this.svg.addEventListener("blur", () => this.select(null));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }

  show(times, series, window, note) {
    Object.assign(this, { times, series, window });
    this.note.textContent = note ?? this.spec.note ?? "";
    this.draw();
  }

  point(event) {
    if (!this.times?.length) return;
    const box = this.svg.getBoundingClientRect();
    const last = this.times[this.times.length - 1];
    const share = (event.clientX - box.left - LEFT) / Math.max(1, box.width - LEFT - RIGHT);
    const time = last - this.window * (1 - share);
    let best = 0;
    this.times.forEach((at, index) => {
      if (Math.abs(at - time) < Math.abs(this.times[best] - time)) best = index;
    });
    this.select(this.times[best]);
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (event.key === "Escape") this.select(null);
    if (!step || !this.times?.length) return;
    event.preventDefault();
    const now = this.cursor === null ? this.times.length - 1 : this.times.indexOf(this.cursor);
    const next = Math.min(this.times.length - 1, Math.max(0, now + step));
    this.select(this.times[next]);
  }

  select(time) {
    this.cursor = time;
    this.draw();
  }

  draw() {
    const width = this.svg.clientWidth;
    if (!this.times || width < 60) return;
    const areas = this.series.filter((one) => one.kind === "area");
    const lines = this.series.filter((one) => one.kind !== "area");
    const stacked = stack(areas, this.times.length);
    const highest = Math.max(0, ...stacked.flatMap((one) => one.top),
      ...lines.flatMap((one) => one.values.filter(Number.isFinite)));
    const { max, step } = scale(highest, this.spec.isWhole);
    const last = this.times[this.times.length - 1] ?? 0;
    const x = (time) => LEFT + (width - LEFT - RIGHT) * (1 - (last - time) / this.window);
    const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / max);
    const parts = [...this.axes(width, max, step, y)];
    stacked.forEach((one) => parts.push(s("path", { class: "area", d: area(this.times, one, x, y), fill: one.color })));
    lines.forEach((one) => parts.push(s("path", {
      class: "line", d: line(this.times, one.values, x, y), stroke: one.color, "stroke-dasharray": DASHES[one.dash] ?? null,
    })));
    const index = this.cursor === null ? this.times.length - 1 : this.times.indexOf(this.cursor);
    if (this.cursor !== null && index >= 0) {
      const at = x(this.cursor);
      parts.push(s("line", { class: "cursor", x1: at, x2: at, y1: TOP, y2: HEIGHT - BOTTOM }));
    }
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    put(this.svg, parts);
    this.words(index, last);
  }

  /** Values on the left, with the unit above them; ages below. */
  axes(width, max, step, y) {
    const parts = [s("text", { x: 0, y: 11 }, this.spec.unit)];
    for (let value = 0; value <= max + step / 2; value += step) {
      const at = y(value);
      parts.push(s("line", { class: value === 0 ? "axis" : "grid", x1: LEFT, x2: width - RIGHT, y1: at, y2: at }));
      parts.push(s("text", { x: LEFT - 6, y: at + 4, "text-anchor": "end" }, short(value)));
    }
    const wide = width - LEFT - RIGHT;
    const every = STEPS.find((seconds) => (wide * seconds) / this.window >= 62) ?? this.window;
    for (let ago = 0; ago <= this.window; ago += every) {
      const at = width - RIGHT - (wide * ago) / this.window;
      const anchor = ago === 0 ? "end" : at - LEFT < 20 ? "start" : "middle";
      parts.push(s("line", { class: "axis", x1: at, x2: at, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 3 }));
      parts.push(s("text", { x: at, y: HEIGHT - 4, "text-anchor": anchor }, ago === 0 ? "now" : `−${span(ago)}`));
    }
    return parts;
  }

  words(index, last) {
    const say = this.spec.say ?? number;
    // What lies on top stands first.
    const order = [...this.series.filter((one) => one.kind !== "area"), ...this.series.filter((one) => one.kind === "area").reverse()];
    put(this.legend, order.map((one) => h("li", { title: one.note ?? null },
      swatch(one), h("span", { class: "name" }, one.name), h("b", {}, say(one.values[index])))));
    this.moment.textContent = this.cursor === null ? "" : `${age(last - this.cursor)}`;
    this.moment.hidden = this.cursor === null;
    const now = order.map((one) => `${one.name} ${say(one.values[index])}`).join(", ");
    this.svg.setAttribute("aria-label", `${this.spec.title}, ${this.spec.unit}: ${now}`);
  }
}

function swatch(one) {
  const mark = one.kind === "area"
    ? s("rect", { width: 12, height: 12, rx: 2, fill: one.color })
    : s("line", { x1: 0, x2: 22, y1: 6, y2: 6, stroke: one.color, "stroke-width": 2.4, "stroke-dasharray": DASHES[one.dash] ?? null });
  return s("svg", { width: one.kind === "area" ? 12 : 22, height: 12, "aria-hidden": "true" }, mark);
}

function stack(areas, length) {
  let below = new Array(length).fill(0);
  return areas.map((one) => {
    const bottom = below;
    const top = bottom.map((value, index) => value + Math.max(0, one.values[index] ?? 0));
    below = top;
    return { ...one, bottom, top };
  });
}

function area(times, one, x, y) {
  if (!times.length) return "";
  const up = times.map((time, index) => `${x(time).toFixed(1)} ${y(one.top[index]).toFixed(1)}`);
  const down = times.map((time, index) => `${x(time).toFixed(1)} ${y(one.bottom[index]).toFixed(1)}`).reverse();
  return `M${up.join("L")}L${down.join("L")}Z`;
}

/** A line, with a gap where nothing is known. A value between two gaps is a short dash, or nobody would see it. */
function line(times, values, x, y) {
  let path = "";
  let open = false;
  times.forEach((time, index) => {
    const value = values[index];
    if (!Number.isFinite(value)) {
      open = false;
      return;
    }
    const here = `${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
    path += open ? `L${here}` : `M${here}h1.5`;
    open = true;
  });
  return path;
}

/** The end of the axis, and where its lines are: 1, 2 or 5 times a power of ten. */
function scale(highest, isWhole) {
  const least = Math.max(highest * 1.03, isWhole ? 1.03 : 1);
  const power = 10 ** Math.floor(Math.log10(least / 3));
  const nice = [1, 2, 5, 10].map((times) => times * power).find((candidate) => candidate >= least / 3);
  const step = isWhole ? Math.max(1, nice) : nice;
  return { max: step * Math.ceil(least / step), step };
}

function short(value) {
  if (value >= 1e6) return `${number(value / 1e6, 1)} M`;
  if (value >= 1e4) return `${number(value / 1e3, 1)} k`;
  return number(value, value < 1 ? 2 : 1);
}

const span = (seconds) => (seconds < 120 && seconds % 60 ? `${seconds} s` : `${number(seconds / 60, 1)} min`);

function age(seconds) {
  const whole = Math.round(seconds);
  if (whole <= 0) return "now";
  return whole < 100 ? `${whole} s ago` : `${number(whole / 60, 1)} min ago`;
}

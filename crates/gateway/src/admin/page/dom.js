// Elements and numbers. Text goes in as text and never as markup: names come from requests, and anybody can send one.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; children are elements or text. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

export const find = (id) => document.getElementById(id);

/** Replaces what an element holds. */
export function put(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

/** A number as people read it: 1,020 or 0.3 or 12.5. Nothing is a dash. */
export function number(value, digits) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const most = digits ?? (size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2);
  return value.toLocaleString("en-GB", { maximumFractionDigits: most });
}

/** A rate, which is seldom known to a digit behind the point. */
export const rate = (value) => number(value, Math.abs(value) >= 10 || Number.isInteger(value) ? 0 : 1);

/** A time in milliseconds, in the unit that fits. */
export function millis(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value >= 10000) return `${number(value / 1000, 1)} s`;
  if (value >= 1000) return `${number(value / 1000, 2)} s`;
  return `${number(value, value >= 100 ? 0 : value >= 10 ? 1 : 2)} ms`;
}

/** The names of the reasons of refusals, as a person would say them. */
export function reason(name) {
  return name.replaceAll("_", " ");
}

export const sum = (values) => values.reduce((total, value) => total + (value ?? 0), 0);

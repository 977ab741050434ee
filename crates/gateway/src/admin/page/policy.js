// The policy in force: every key, what it says, and where that comes from.

import { h, put, find } from "./dom.js";

export let policy = null;

const listeners = [];
export const onPolicy = (callback) => listeners.push(callback);

export async function fetchPolicy() {
  const response = await fetch("/api/policy");
  if (!response.ok) return;
  const text = await response.text();
  if (text === fetchPolicy.before) return;
  fetchPolicy.before = text;
  policy = JSON.parse(text);
  show();
  listeners.forEach((callback) => callback(policy));
}

const SHOWN_MAX = 400;

function source(from) {
  switch (from.kind) {
    case "line": return `${from.file}, line ${from.line}`;
    case "flag": return `command line, ${from.flag}`;
    case "environment": return `environment, ${from.variable}`;
    case "operator": return "set here, until the next reload";
    case "default": return "default";
    default: return "left out";
  }
}

function show() {
  const wanted = find("policy-find").value.trim().toLowerCase();
  const all = find("policy-all").checked || wanted !== "";
  const matches = policy.settings.filter((one) => {
    const isSaid = !["default", "left_out"].includes(one.from.kind);
    const text = `${one.section} ${one.of} ${one.key} ${one.value}`.toLowerCase();
    return (all || isSaid) && text.includes(wanted);
  });
  if (!matches.length) {
    const why = policy.settings.length ? "Nothing is like that." : "Where the values come from is not known: the gateway was given a policy without its text.";
    return put(find("policy"), h("p", { class: "none" }, why));
  }
  const head = (text) => h("th", { scope: "col", class: "text" }, text);
  put(find("policy"),
    h("table", { class: "dense" },
      h("thead", {}, h("tr", {}, head("Key"), head("value"), head("from"))),
      h("tbody", {}, matches.slice(0, SHOWN_MAX).map((one) => h("tr", { title: one.doc },
        h("th", { scope: "row" }, h("code", {}, `${one.section}${one.of ? ` ${one.of}` : ""} · ${one.key}`)),
        h("td", { class: "text", "data-label": "value" }, one.from.kind === "left_out" ? h("span", { class: "from" }, one.value) : h("code", {}, one.value)),
        h("td", { class: "text from", "data-label": "from" }, source(one.from)))))),
    matches.length > SHOWN_MAX ? h("p", { class: "hint" }, `The first ${SHOWN_MAX} of ${matches.length}; look for what you want.`) : null);
}

export function start() {
  for (const id of ["policy-find", "policy-all"]) find(id).addEventListener("input", () => policy && show());
  // A reload, or somebody else at another page, changes it.
  const look = () => fetchPolicy().catch(() => {});
  look();
  setInterval(look, 5000);
}

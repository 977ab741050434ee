// What one can ask and do: explain a request, play "what if", drain, set a limit.

import { h, put, find, number, rate, millis } from "./dom.js";
import { Chart } from "./chart.js";
import { fetchPolicy, onPolicy, policy } from "./policy.js";

const problem = (text) => h("p", { class: "problem", role: "alert" }, text);

async function ask(path, question) {
  const response = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(question) });
  const text = await response.text();
  let said;
  try {
    said = JSON.parse(text);
  } catch {
    throw new Error(text.trim() || `the answer was ${response.status}`);
  }
  if (said.error) throw new Error(said.error);
  return said;
}

/** Does something for a form, once at a time, and shows what went wrong. */
function onSubmit(form, into, act) {
  find(form).addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = find(form).querySelector("button:not(.small)");
    button.disabled = true;
    try {
      await act();
    } catch (error) {
      put(find(into), problem(error.message));
    }
    button.disabled = false;
  });
}

function explained(said) {
  const rows = [["request", said.request]];
  if (said.why) rows.push(["answer", `${said.status}: ${said.why}`]);
  else if (said.status === 404) rows.push(["answer", `404: no route is for ${said.path}`]);
  else {
    rows.push(["route", said.route], ["passed on as", said.target], ["client", `${said.client}${said.trusted ? ", as a trusted proxy tells it" : ""}`]);
    if (said.exempt) rows.push(["exempt", "it takes no slot and uses no rate limit"]);
    else {
      rows.push(["class", `${said.priority.name}: ${said.priority.because}`]);
      rows.push(["tenant", said.tenant ? `${said.tenant.name ?? "one with all who name none that is believed"}, of weight ${said.tenant.weight}` : "nobody is told from anybody"]);
      rows.push(["slots", number(said.cost)]);
      rows.push(["attempt", said.retry ? `a retry, by ${said.retry}` : said.recognised ? "the first; known again if it comes back" : "the first"]);
      rows.push(["rate limits", said.rate_limits.map((one) => `${one.name}: ${one.count} in ${millis(one.period_ms)}, ${one.burst} at once, for ${one.counted}`).join("; ") || "none"]);
      rows.push(["bulkhead", said.bulkhead ? `at most ${said.bulkhead.max} of the route inside, then ${said.bulkhead.status}` : "none"]);
      rows.push(["deadline", said.deadline_ms === null ? "none is said" : `${millis(said.deadline_ms)}, says ${said.deadline_from}`]);
    }
    const { upstream } = said;
    rows.push(["upstream", upstream.name], ["limit", upstream.limit === "adaptive" ? `adaptive (${upstream.algorithm})` : number(upstream.limit)]);
    rows.push(["queue", `at most ${millis(upstream.wait_ms)}, ${upstream.capacity === null ? "as many places as can be served in that time" : `${number(upstream.capacity)} places`}`]);
    rows.push(["timeout", millis(upstream.timeout_ms)]);
  }
  return h("dl", {}, rows.map(([name, value]) => [h("dt", {}, name), h("dd", { "data-explained": name }, value)]));
}

let order = [];

function showOrder() {
  const move = (index, by) => {
    const [name] = order.splice(index, 1);
    order.splice(index + by, 0, name);
    showOrder();
  };
  put(find("whatif-order"), order.map((name, index) => h("li", {}, h("span", { class: "name" }, name),
    h("button", { type: "button", class: "small", disabled: index === 0, "aria-label": `${name}: more important`, onclick: () => move(index, -1) }, "up"),
    h("button", { type: "button", class: "small", disabled: index === order.length - 1, "aria-label": `${name}: less important`, onclick: () => move(index, 1) }, "down"))));
}

const text = (id) => find(id).value.trim();

/** What stands in a field as a number; nothing if it is empty. */
function numberIn(id) {
  if (text(id) === "") return null;
  const value = Number(text(id));
  if (!Number.isFinite(value)) throw new Error(`“${text(id)}” is no number`);
  return value;
}

const COLORS = { happened: ["var(--ink)", "solid"], as_it_is: ["var(--grey)", "dotted"], changed: ["var(--good)", "dashed"] };
const NAMES = { happened: "what happened", as_it_is: "played as it is", changed: "played as changed" };

const classOf = (one) => (one.arrivals === undefined ? number(one.goodput) : `${number(one.goodput)} of ${number(one.arrivals)}`);

function whatif(said) {
  const times = said.happened.series.goodput.map((_, index) => (index + 1) * said.every_seconds);
  const charts = [["goodput", "Useful answers", "answers a second"], ["refused", "Refused", "requests a second"], ["in_flight", "In flight", "slots"]]
    .map(([key, title, unit]) => {
      const chart = new Chart({ id: `whatif-${key}`, title, unit });
      const series = Object.keys(NAMES).map((name) => ({ name: NAMES[name], color: COLORS[name][0], dash: COLORS[name][1], values: said[name].series[key] }));
      chart.show(times, series, said.seconds);
      return chart.element;
    });
  const share = (one) => (one.arrivals > 0 ? `${number((100 * one.goodput) / one.arrivals, 1)} %` : "–");
  const rows = [
    ["useful answers", (one) => number(one.goodput)],
    ["of those who came", share],
    ["refused", (one) => number(one.refused)],
    ["p50", (one) => millis(one.p50_ms)],
    ["p99", (one) => millis(one.p99_ms)],
    ...policy.priorities.filter((name) => said.changed.classes[name]).map((name) => [`${name}: useful`, (one) => classOf(one.classes[name])]),
  ];
  const gained = said.changed.goodput - said.as_it_is.goodput;
  const inWords = Math.abs(gained) < 0.005 * said.as_it_is.goodput + 1
    ? "About as many useful answers as it is."
    : `${rate(Math.abs(gained) / said.seconds)}/s ${gained > 0 ? "more" : "fewer"} useful answers than as it is.`;
  return [
    h("p", { class: gained < 0 && !inWords.startsWith("About") ? "problem" : "done", "data-whatif": gained }, inWords),
    h("p", { class: "hint" }, `${number(said.seconds, 0)} seconds, played in ${millis(said.took_ms)}. The upstream is taken to work on ${number(said.workers)} at once, for as long as it did then (half of it took ${millis(said.work_ms)} or less). If it can do more at once than it was ever given, say so above. What a rate limit refuses is left out of all three; tenants and deadlines are not played.`),
    h("div", { class: "charts" }, charts),
    h("table", { class: "dense single" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, ""), Object.values(NAMES).map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, rows.map(([name, cell]) => h("tr", {}, h("th", { scope: "row" }, name),
        Object.keys(NAMES).map((key) => h("td", { "data-label": NAMES[key] }, cell(said[key]))))))),
  ];
}

/** What needs the token. It is kept by this page alone, and forgotten with it. */
async function change(path, token) {
  const response = await fetch(path, { method: "POST", headers: { authorization: `Bearer ${token}` } });
  const said = (await response.text()).trim();
  if (!response.ok) throw new Error(said);
  return said;
}

function showChange() {
  if (!policy.can_change) {
    return put(find("change"), h("p", { class: "hint" }, "Nothing can be changed here. To allow it, put a line of 16 characters or more into a file and name it in the policy: ",
      h("code", {}, "[server] admin_token_file = \"/run/tidegate/token\""), "."));
  }
  const options = () => policy.upstreams.map((one) => h("option", {}, one.name));
  const before = find("change").querySelector("form select");
  if (before) {
    // A reload may have other upstreams; what is typed, the token above all, stays. If the chosen one has gone, none is.
    const chosen = before.value;
    put(before, options());
    before.value = chosen;
    return;
  }
  const result = h("div", { "aria-live": "polite" });
  const token = h("input", { type: "password", size: 22, autocomplete: "off", "aria-label": "Token" });
  const upstream = h("select", { "aria-label": "Upstream" }, options());
  const limit = h("input", { size: 7, placeholder: "number", "aria-label": "Limit", inputmode: "numeric", autocomplete: "off" });
  const act = async (path, done) => {
    try {
      await change(path, token.value);
      put(result, h("p", { class: "done" }, done));
      await fetchPolicy();
    } catch (error) {
      put(result, problem(error.message));
    }
  };
  const set = (value, done) => act(`/api/limit?upstream=${encodeURIComponent(upstream.value)}&limit=${encodeURIComponent(value)}`, done);
  const button = (name, kind, onclick) => h("button", { type: "button", class: kind, onclick }, name);
  put(find("change"), h("form", { onsubmit: (event) => event.preventDefault() },
    h("div", { class: "row" }, h("label", {}, "Token", token)),
    h("div", { class: "row" }, h("label", {}, "Upstream", upstream), h("label", {}, "Limit", limit),
      button("Set the limit", null, () => set(limit.value.trim(), `The limit of ${upstream.value} is ${limit.value.trim()} now.`)),
      button("Back to the policy", "small", () => set("policy", `The limit of ${upstream.value} is what the policy says again.`))),
    h("div", { class: "row" }, button("Drain this gateway", "danger", () => {
      if (confirm("It will take no new connections, finish what runs, and end. There is no way back.")) act("/api/drain", "It drains.");
    })), result));
}

export function start(chosen) {
  onSubmit("explain", "explanation", async () => {
    put(find("explanation"), explained(await ask("/api/explain", { request: text("explain-request"), client: text("explain-client") })));
  });
  onSubmit("whatif", "whatif-result", async () => {
    put(find("whatif-result"), h("p", { class: "hint" }, "Playing …"));
    const limit = text("whatif-limit");
    const said = await ask("/api/whatif", {
      upstream: chosen(),
      limit: limit === "adaptive" ? limit : numberIn("whatif-limit"),
      wait_ms: numberIn("whatif-wait"), workers: numberIn("whatif-workers"), seconds: numberIn("whatif-seconds") ?? 300,
      priorities: order,
    });
    put(find("whatif-result"), whatif(said));
  });
  onPolicy(() => {
    if (order.length !== policy.priorities.length || policy.priorities.some((name) => !order.includes(name))) {
      order = [...policy.priorities];
      showOrder();
    }
    showChange();
  });
}

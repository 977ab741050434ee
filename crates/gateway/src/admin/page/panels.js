// The panels: for each what it shows of the samples, and how.

import { h, s, put, find, number, rate, millis, reason, sum } from "./dom.js";
import { Chart } from "./chart.js";

const CLASS_COLORS = ["var(--blue)", "var(--amber)", "var(--grey)", "var(--pink)", "var(--good)", "var(--plum)", "var(--sand)", "var(--teal)"];
const DASHES = ["solid", "dashed", "dotted", "mixed"];
const REASON_COLORS = {
  queue_full: "var(--amber)", wait_too_long: "var(--sand)", queue_timeout: "var(--rust)", pushed_out: "var(--pink)",
  rate_limited: "var(--sky)", tenant_limit: "var(--plum)", route_limit: "var(--teal)", retry_budget: "var(--night)",
  deadline: "var(--rust)", breaker_open: "var(--red)", gateway_overloaded: "var(--night)", draining: "var(--grey)",
  upstream_timeout: "var(--red)", upstream_connect: "var(--rust)", upstream_reset: "var(--pink)", client_left: "var(--grey)",
};

const perSecond = (value) => (Number.isFinite(value) ? `${rate(value)}/s` : "–");

/** Those of the list that are anything but zero at some time. */
const used = (series) => series.filter((one) => one.values.some((value) => value > 0));

function classes(ones, newest, pick, kind) {
  const all = Object.keys(newest.priorities).map((name, index) => ({
    name, kind, color: CLASS_COLORS[index % CLASS_COLORS.length], dash: DASHES[index % DASHES.length],
    values: ones.map((one) => (one?.priorities[name] ? pick(one.priorities[name]) : null)),
  }));
  // A class that nobody was in is of no interest, as long as there is another.
  const had = all.filter(({ name }) => ones.some((one) => one?.priorities[name]?.arrivals > 0));
  return had.length ? had : all;
}

/** For each chart: `series(ones, newest)` of the samples of one upstream. */
const CHARTS = [
  {
    id: "flow", title: "What becomes of requests", unit: "requests a second", say: perSecond,
    series: (ones, newest) => [
      { name: "useful answers", kind: "area", color: "var(--good)", values: ones.map((one) => one?.goodput ?? null) },
      ...used([{ name: "other answers", kind: "area", color: "var(--night)", values: ones.map((one) => (one ? Math.max(0, one.completed - one.goodput) : null)) }]),
      ...used(Object.keys(newest.rejected).map((key) => ({
        name: reason(key), kind: "area", color: REASON_COLORS[key] ?? "var(--grey)", values: ones.map((one) => one?.rejected[key] ?? null),
      }))),
      { name: "arrivals", color: "var(--ink)", values: ones.map((one) => one?.arrivals ?? null) },
    ],
  },
  {
    id: "refused", title: "Refused, by class", unit: "requests a second", say: perSecond,
    series: (ones, newest) => classes(ones, newest, (one) => one.refused, "area"),
  },
  {
    id: "useful", title: "Useful answers, by class", unit: "answers a second", say: perSecond,
    series: (ones, newest) => classes(ones, newest, (one) => one.goodput, "area"),
  },
  {
    id: "flight", title: "In flight against the limit", unit: "slots",
    series: (ones) => [
      { name: "orphans", kind: "area", color: "var(--red)", note: "their clients have gone, their work goes on", values: ones.map((one) => one?.orphans ?? null) },
      { name: "for clients", kind: "area", color: "var(--sky)", values: ones.map((one) => (one ? Math.max(0, one.in_flight_mean - one.orphans) : null)) },
      { name: "limit", color: "var(--ink)", dash: "dashed", values: ones.map((one) => one?.limit ?? null) },
    ],
  },
  {
    id: "queue", title: "Waiting, by class", unit: "requests",
    note: (newest) => `${number(newest.queue.capacity)} may wait; the most ever was ${number(newest.queue.max)}`,
    series: (ones, newest) => {
      const most = Math.max(1, ...ones.map((one) => one?.queue.most ?? 0));
      const capacity = { name: "capacity", color: "var(--ink)", dash: "dashed", values: ones.map((one) => one?.queue.capacity ?? null) };
      return [
        ...classes(ones, newest, (one) => one.waiting, "area"),
        // A capacity far above what waits would press that flat; then it is in the note alone.
        ...(newest.queue.capacity <= 8 * most ? [capacity] : []),
      ];
    },
  },
  {
    id: "wait", title: "Mean wait in the queue, by class", unit: "ms", say: millis,
    note: (newest) => `nobody waits longer than ${millis(newest.queue.wait_budget_ms)}`,
    series: (ones, newest) => classes(ones, newest, (one) => one.wait_ms, "line"),
  },
  {
    id: "latency", title: "Time to a whole answer", unit: "ms", say: millis,
    note: (newest) => `last minute: p50 ${millis(newest.latency_ms.minute.p50)}, p90 ${millis(newest.latency_ms.minute.p90)}, p99 ${millis(newest.latency_ms.minute.p99)}`,
    series: (ones) => [
      { name: "p99", color: "var(--red)", dash: "dotted", values: ones.map((one) => one?.latency_ms.second.p99 ?? null) },
      { name: "p90", color: "var(--amber)", dash: "dashed", values: ones.map((one) => one?.latency_ms.second.p90 ?? null) },
      { name: "p50", color: "var(--blue)", values: ones.map((one) => one?.latency_ms.second.p50 ?? null) },
      { name: "upstream alone, p50", color: "var(--grey)", dash: "mixed", values: ones.map((one) => one?.upstream_ms.second.p50 ?? null) },
    ],
  },
  {
    id: "retries", title: "Retries and their budget", unit: "retries",
    series: (ones) => [
      { name: "budget left", color: "var(--blue)", values: ones.map((one) => one?.retries.budget ?? null) },
      { name: "sent again a second", color: "var(--good)", dash: "dashed", values: ones.map((one) => one?.retries.sent ?? null) },
      { name: "refused a second", color: "var(--red)", dash: "dotted", values: ones.map((one) => one?.retries.refused ?? null) },
    ],
  },
  {
    id: "breakers", title: "Endpoints by breaker", unit: "endpoints", isWhole: true,
    series: (ones) => [
      { name: "closed", kind: "area", color: "var(--good)", values: ones.map((one) => one?.breakers.closed ?? null) },
      { name: "half open", kind: "area", color: "var(--amber)", values: ones.map((one) => one?.breakers.half_open ?? null) },
      { name: "open", kind: "area", color: "var(--red)", values: ones.map((one) => one?.breakers.open ?? null) },
    ],
  },
];

const COMPARISONS = [
  { id: "compare-useful", title: "Useful answers", unit: "answers a second", say: perSecond, pick: (one) => one.goodput },
  { id: "compare-latency", title: "Time to a whole answer, p50", unit: "ms", say: millis, pick: (one) => one.latency_ms.second.p50 },
  { id: "compare-slots", title: "In flight", unit: "slots", pick: (one) => one.in_flight_mean },
];

let charts = null;
let comparisons = null;

function build(specs, into) {
  const made = specs.map((spec) => new Chart(spec));
  put(find(into), made.map((chart) => chart.element));
  return made;
}

export function showCharts(samples, upstream, window) {
  charts ??= build(CHARTS, "charts");
  const times = samples.map((sample) => sample.at);
  const ones = samples.map((sample) => sample.upstreams[upstream] ?? null);
  const newest = ones[ones.length - 1];
  if (!newest) return;
  for (const chart of charts) {
    const { note } = chart.spec;
    chart.show(times, chart.spec.series(ones, newest), window, typeof note === "function" ? note(newest) : note);
  }
}

export function showComparison(samples, upstreams, window) {
  find("compare").hidden = upstreams.length < 2;
  if (upstreams.length < 2) return;
  comparisons ??= build(COMPARISONS, "compare-charts");
  const times = samples.map((sample) => sample.at);
  for (const chart of comparisons) {
    const series = upstreams.slice(0, CLASS_COLORS.length).map((name, index) => ({
      name, color: [ "var(--good)", "var(--red)", "var(--blue)", "var(--amber)", "var(--plum)", "var(--grey)", "var(--pink)", "var(--teal)"][index],
      dash: DASHES[index % DASHES.length],
      values: samples.map((sample) => (sample.upstreams[name] ? chart.spec.pick(sample.upstreams[name]) : null)),
    }));
    if (chart.spec.id === "compare-useful") {
      const most = samples.map((sample) => Math.max(...upstreams.map((name) => sample.upstreams[name]?.arrivals ?? 0)));
      series.push({ name: "arrivals at the busiest", color: "var(--grey)", dash: "dotted", values: most });
    }
    chart.show(times, series, window, upstreams.length > CLASS_COLORS.length ? `the first ${CLASS_COLORS.length} of ${upstreams.length} upstreams` : "");
  }
}

export function showTiles(one) {
  const percent = one.arrivals > 0 ? `${number((100 * one.goodput) / one.arrivals, 0)} % of what comes` : "of what comes";
  const tiles = [
    ["arrivals", rate(one.arrivals), "/s", "come", one.arrivals],
    ["goodput", rate(one.goodput), "/s", `useful, ${percent}`, one.goodput],
    ["refused", rate(one.refused), "/s", "refused by the gateway", one.refused],
    ["failed", rate(one.failed), "/s", "failed upstream", one.failed],
    ["client_left", rate(one.client_left), "/s", "clients left first", one.client_left],
    ["in_flight", `${number(one.in_flight)} of ${number(one.limit)}`, "", "slots taken", one.in_flight],
    ["queue", `${number(one.queue.now)} of ${number(one.queue.capacity)}`, "", "places to wait taken", one.queue.now],
    ["p50", ...split(millis(one.latency_ms.minute.p50)), "p50, last minute", one.latency_ms.minute.p50],
    ["p99", ...split(millis(one.latency_ms.minute.p99)), "p99, last minute", one.latency_ms.minute.p99],
  ];
  put(find("now"), tiles.map(([name, value, unit, what, raw]) =>
    h("li", {}, h("b", { "data-metric": name, "data-value": raw ?? "" }, value, h("small", {}, unit ? ` ${unit}`.replace(" /s", "/s") : "")), h("span", {}, what))));
}

const split = (text) => (text === "–" ? ["–", ""] : text.split(" "));

/** Now, highest and limit of everything that has a limit, as HAProxy's page of statistics has it. */
export function showTable(sample, stats) {
  const rows = [];
  for (const [name, one] of Object.entries(sample.upstreams)) {
    const counted = stats?.upstreams?.[name];
    rows.push(row(name, "", { "data-upstream": name }, [
      ["in flight", full(one.in_flight, one.limit), one.in_flight, "in_flight"],
      ["most", number(one.max_in_flight), one.max_in_flight, "max_in_flight"],
      ["limit", number(one.limit), one.limit, "limit"],
      ["waiting", full(one.queue.now, one.queue.capacity), one.queue.now, "queue_depth"],
      ["most waiting", number(one.queue.max), one.queue.max, "max_queue_depth"],
      ["places", number(one.queue.capacity), one.queue.capacity, "queue_capacity"],
      ["arrivals/s", rate(one.arrivals), one.arrivals],
      ["useful/s", rate(one.goodput), one.goodput],
      ["refused/s", rate(one.refused), one.refused],
      ["arrivals", number(counted?.received), counted?.received, "received"],
      ["useful", number(counted?.goodput), counted?.goodput, "goodput"],
      ["refused", number(counted && counted.shed + counted.rate_limited + counted.queue_timed_out), counted?.shed, "shed"],
      ["p99", millis(one.latency_ms.minute.p99), one.latency_ms.minute.p99],
    ]));
    // An upstream that no route leads to has none.
    for (const [label, route] of Object.entries(one.routes ?? {})) {
      rows.push(row(label, "route", { "data-route": label, "data-of": name }, [
        ["inside", full(route.now, route.limit), route.now, "now"],
        ["most", number(route.max), route.max, "max"],
        ["bulkhead", number(route.limit), route.limit, "limit"],
        ["waiting", "", null], ["most waiting", "", null], ["places", "", null],
        ["arrivals/s", rate(route.arrivals), route.arrivals],
        ["useful/s", rate(route.goodput), route.goodput],
        ["refused/s", rate(route.refused), route.refused],
        ["arrivals", "", null], ["useful", "", null], ["refused", "", null], ["p99", "", null],
      ]));
    }
  }
  const group = (text, span) => h("th", { class: "group", colspan: span, scope: "colgroup" }, text);
  const head = (text) => h("th", { scope: "col" }, text);
  put(find("table"), h("table", { class: "dense" },
    h("thead", {},
      h("tr", {}, h("td"), group("Slots", 3), group("Queue", 3), group("A second", 3), group("Since the start", 3), h("td")),
      h("tr", {}, head("Upstream, route"), ["now", "max", "limit", "now", "max", "limit", "arrivals", "useful", "refused", "arrivals", "useful", "refused", "p99"].map(head))),
    h("tbody", {}, rows)));
}

/** What reaches its limit is marked. */
const full = (now, limit) => ({ text: number(now), isFull: limit > 0 && now >= limit });

function row(name, kind, attributes, cells) {
  return h("tr", { class: kind || null, ...attributes }, h("th", { scope: "row" }, name), cells
    // What a route does not have is an empty cell in a table, and nothing on a phone.
    .map(([label, value, raw, column]) => {
      const { text, isFull } = typeof value === "object" ? value : { text: value, isFull: false };
      return h("td", { "data-label": label, "data-column": column, "data-value": raw ?? null, class: isFull ? "at-limit" : null, "data-empty": text === "" }, text);
    }));
}

/** Little's law in numbers and in words. */
export function showLittle(samples, upstream) {
  const ones = samples.slice(-10).map((sample) => sample.upstreams[upstream]).filter(Boolean);
  const newest = ones[ones.length - 1];
  if (!newest) return;
  const mean = (pick) => sum(ones.map(pick)) / ones.length;
  const lambda = mean((one) => one.little.lambda);
  const taken = mean((one) => one.little.l);
  const wait = lambda > 0 ? (taken / lambda) * 1000 : null;
  const { little, queue, limit } = newest;
  const variable = (name) => h("i", {}, name);
  const lines = [
    h("p", { class: "formula" }, variable("L"), " = ", variable("λ"), " × ", variable("W"), ": ", h("b", { "data-metric": "l" }, number(taken, 1)),
      " slots = ", h("b", { "data-metric": "lambda" }, number(lambda, lambda < 100 ? 1 : 0)), "/s × ", h("b", { "data-metric": "w" }, millis(wait))),
    h("p", {}, "What is inside at any moment is what comes in a second times how long each stays: ",
      `${number(lambda, lambda < 100 ? 1 : 0)} requests leave their slot in a second, each has had it for ${millis(wait)}, so ${number(taken, 1)} slots are taken, of ${number(limit)}.`),
  ];
  if (little.service_ms > 0) {
    const most = (limit / little.service_ms) * 1000;
    lines.push(h("p", {}, `With all ${number(limit)} slots busy for ${millis(little.service_ms)} each, ${number(most, 0)}/s can be answered. More than that is too much, whatever the queue.`));
    lines.push(h("p", {}, "A queue that is served so fast empties ", h("b", { "data-metric": "queue_bound" }, number(little.queue_bound)),
      ` places within the wait budget of ${millis(queue.wait_budget_ms)}. Whoever stood behind them would wait in vain, so a longer queue helps nobody; this one has ${number(queue.capacity)} places.`));
  } else {
    lines.push(h("p", {}, "How long a slot is taken is not known until the first answer, nor is how long the queue may be."));
  }
  put(find("little"), h("div", { class: "law" }, lines));
}

export function showEndpoints(stats, upstream) {
  const endpoints = stats?.upstreams?.[upstream]?.endpoints ?? [];
  const head = (text, kind) => h("th", { scope: "col", class: kind }, text);
  put(find("endpoints"), h("table", { class: "dense" },
    h("thead", {}, h("tr", {}, head("Endpoint"), head("breaker"), head("in flight"), head("lately"), head("failed"), head("opened"))),
    h("tbody", {}, endpoints.map((one) => h("tr", {},
      h("th", { scope: "row" }, one.address),
      h("td", { "data-label": "breaker" }, h("span", { class: `state ${one.breaker}` }, reason(one.breaker)),
        one.ejected ? h("span", { class: "state warn" }, "ejected") : null, one.healthy ? null : h("span", { class: "state bad" }, "unhealthy")),
      h("td", { "data-label": "in flight" }, number(one.in_flight)),
      h("td", { "data-label": "lately" }, number(one.lately.requests)),
      h("td", { "data-label": "failed" }, number(one.lately.failures + one.lately.overloads)),
      h("td", { "data-label": "opened" }, number(one.opened)))))));
}

/** Who is refused most: keys of rate limits, or tenants. */
export function showTop(into, list, group, nothing) {
  if (!list?.length) return put(find(into), h("p", { class: "none" }, nothing));
  const most = list[0].refused;
  put(find(into), h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Key"), h("th", { scope: "col", class: "text" }, group === "upstream" ? "upstream" : "limit"), h("th", { scope: "col" }, "refused, half-life 1 min"))),
    h("tbody", {}, list.slice(0, 10).map((one) => h("tr", {},
      h("th", { scope: "row" }, one.key), h("td", { class: "text" }, one[group]),
      h("td", {}, number(one.refused, 0), bar(one.refused / most)))))));
}

function bar(share) {
  return s("svg", { width: 60, height: 6, "aria-hidden": "true" }, s("rect", { x: 8, width: Math.max(1, 52 * share), height: 6, fill: "var(--sky)" }));
}

// One line that says where the bottleneck is. What is so, the gateway has decided from its last few seconds; here it is put
// into words.

import { millis, number, rate, reason, sum } from "./dom.js";

/** `{ level, head, more }`: level is good, warn, bad or nothing. */
export function verdict(newest, topKey) {
  if (!newest) return { level: "", head: "Waiting for the first sample.", more: "" };
  if (newest.gateway.draining) {
    const left = sum(Object.values(newest.upstreams).map((one) => one.in_flight));
    return { level: "warn", head: `Draining: it takes no new connections, and ${number(left)} requests are still under way.`, more: "" };
  }
  const all = Object.entries(newest.upstreams).map(([name, one]) => of(name, one, topKey));
  all.sort((a, b) => b.weight - a.weight);
  const [worst, ...others] = all;
  const also = others.filter((one) => one.matters).map((one) => one.head);
  return { level: worst.level, head: worst.head, more: [worst.more, ...also].filter(Boolean).join(" ") };
}

function of(name, last, topKey) {
  const it = last.verdict;
  const [head, more = ""] = (words[it.kind] ?? unknown)(name, it, last, topKey);
  return { level: it.level, weight: it.weight, matters: it.level !== "good", head, more };
}

const useful = (it) => `${rate(it.goodput)}/s of useful answers`;
const slots = (it) => `${number(it.taken, it.taken < 10 ? 1 : 0)} of ${number(it.limit, 0)} slots taken`;
const why = (it) => (it.reason ? reason(it.reason) : "");

/** What is said of each kind of verdict: the line, and what goes with it. */
const words = {
  down(name, it, last) {
    const endpoints = sum(Object.values(last.breakers));
    return [`${name} is down: the breaker of ${endpoints === 1 ? "its only endpoint" : `all ${endpoints} endpoints`} is open, refusing ${rate(it.refused)}/s.`];
  },
  clients_leave(name, it, last) {
    const orphans = last.orphans > 0 ? ` ${number(last.orphans)} slots are taken for clients who have gone.` : "";
    const half = last.latency_ms.second.p50;
    return [
      `${name}: clients give up before their answer: ${rate(it.client_left)}/s leave, ${useful(it)} of ${rate(it.arrivals)}/s that come.`,
      `${half === null ? "" : `Half of the answers that came took ${millis(half)} or more.`}${orphans}`.trim(),
    ];
  },
  fails(name, it) {
    return [`${name} fails: ${rate(it.failed)}/s of ${rate(it.arrivals)}/s get no answer from it (${why(it)}).`, `${useful(it)}; ${slots(it)}.`];
  },
  full(name, it, last) {
    return [`${name} is full: ${slots(it)}, ${useful(it)}, refusing ${rate(it.refused)}/s.`, `${spared(last)}${orphans(last)}`];
  },
  refuses(name, it, last) {
    return [`${name} refuses ${rate(it.refused)}/s of ${rate(it.arrivals)}/s (${why(it)}), with ${slots(it)}.`, orphans(last)];
  },
  held_back(name, it, last, topKey) {
    const who = it.reason === "rate_limited" && topKey ? ` Most of all ${topKey.key}, by ${topKey.rate_limit}.` : "";
    return [`${name} is held back by policy, not by load: ${rate(it.for_reason)}/s refused (${why(it)}); ${useful(it)}.`, `${slots(it)}.${who}`];
  },
  just_full(name, it, last) {
    const wait = Math.max(0, ...Object.values(last.priorities).map((one) => one.wait_ms ?? 0));
    return [`${name} is just about full: ${slots(it)}, ${number(it.waiting, 1)} waiting for ${millis(wait)}, nobody refused; ${useful(it)}.`];
  },
  well(name, it) {
    return [`All is well: ${useful(it)} of ${rate(it.arrivals)}/s that come to ${name}, ${slots(it)}.`];
  },
  idle(name) {
    return [`Nobody asks ${name} for anything just now.`];
  },
};

/** The page is older than the gateway that it asks. */
const unknown = (name, it) => [`${name}: ${useful(it)} of ${rate(it.arrivals)}/s that come, ${slots(it)}.`, "Load the page again."];

function orphans(last) {
  return last.orphans > 0 ? ` ${number(last.orphans)} of the slots are taken for clients who have gone.` : "";
}

/** Which classes bear it. */
function spared(last) {
  const classes = Object.entries(last.priorities).filter(([, one]) => one.arrivals > 0.5);
  if (classes.length < 2) return "";
  const whole = classes.filter(([, one]) => one.refused < 0.01 * one.arrivals).map(([name]) => name);
  const borne = classes.filter(([, one]) => one.refused >= 0.01 * one.arrivals).map(([name]) => name);
  if (!whole.length) return `Every class is refused in part: ${borne.join(", ")}.`;
  return `${whole.join(", ")}: served whole. ${borne.join(", ")}: refused in part.`;
}

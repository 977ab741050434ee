// One line that says where the bottleneck is, from the last few samples. It says what is so, the worst first, and guesses at
// nothing.

import { millis, number, rate, reason, sum } from "./dom.js";

const SECONDS = 5;

/** `{ level, head, more }`: level is good, warn, bad or nothing. */
export function verdict(samples, topKey) {
  const lately = samples.slice(-SECONDS);
  const newest = lately[lately.length - 1];
  if (!newest) return { level: "", head: "Waiting for the first sample.", more: "" };
  if (newest.gateway.draining) {
    const left = sum(Object.values(newest.upstreams).map((one) => one.in_flight));
    return { level: "warn", head: `Draining: it takes no new connections, and ${number(left)} requests are still under way.`, more: "" };
  }
  const all = Object.keys(newest.upstreams).map((name) => of(name, mean(lately, name), topKey));
  all.sort((a, b) => b.weight - a.weight);
  const [worst, ...others] = all;
  const also = others.filter((one) => one.weight > 1).map((one) => one.head);
  return { level: worst.level, head: worst.head, more: [worst.more, ...also].filter(Boolean).join(" ") };
}

/** The means of what an upstream did in these seconds. */
function mean(samples, name) {
  const ones = samples.map((sample) => sample.upstreams[name]).filter(Boolean);
  const over = (pick) => sum(ones.map(pick)) / ones.length;
  const last = ones[ones.length - 1];
  return {
    last,
    arrivals: over((one) => one.arrivals),
    goodput: over((one) => one.goodput),
    refused: over((one) => one.refused),
    failed: over((one) => one.failed),
    left: over((one) => one.client_left),
    taken: over((one) => one.in_flight_mean),
    limit: over((one) => one.limit),
    waiting: over((one) => one.queue.mean),
    reasons: Object.keys(last.rejected)
      .map((key) => [key, over((one) => one.rejected[key])])
      .filter(([key, count]) => count > 0 && key !== "client_left")
      .sort((a, b) => b[1] - a[1]),
  };
}

function of(name, it, topKey) {
  const useful = `${rate(it.goodput)}/s of useful answers`;
  const endpoints = sum(Object.values(it.last.breakers));
  const slots = `${number(it.taken, it.taken < 10 ? 1 : 0)} of ${number(it.limit, 0)} slots taken`;
  const [first] = it.reasons;
  const why = first ? reason(first[0]) : "";
  const say = (weight, level, head, more = "") => ({ weight, level, head, more });
  if (endpoints > 0 && it.last.breakers.open === endpoints) {
    return say(9, "bad", `${name} is down: the breaker of ${endpoints === 1 ? "its only endpoint" : `all ${endpoints} endpoints`} is open, refusing ${rate(it.refused)}/s.`);
  }
  if (it.arrivals < 0.05 && it.taken < 0.05) return say(0, "good", `Nobody asks ${name} for anything just now.`);
  if (it.left > 0.05 * it.arrivals && it.left > it.refused && it.left >= 0.5) {
    const orphans = it.last.orphans > 0 ? ` ${number(it.last.orphans)} slots are taken for clients who have gone.` : "";
    return say(8 + share(it.left, it.arrivals), "bad", `${name}: clients give up before their answer: ${rate(it.left)}/s leave, ${useful} of ${rate(it.arrivals)}/s that come.`, `${it.last.latency_ms.second.p50 === null ? "" : `Half of the answers that came took ${millis(it.last.latency_ms.second.p50)} or more.`}${orphans}`.trim());
  }
  if (it.failed > 0.05 * it.arrivals) {
    return say(7, "bad", `${name} fails: ${rate(it.failed)}/s of ${rate(it.arrivals)}/s get no answer from it (${why}).`, `${useful}; ${slots}.`);
  }
  if (it.refused >= 0.5 && it.refused > 0.01 * it.arrivals) {
    const ours = { rate_limited: "rate limit", route_limit: "bulkhead", tenant_limit: "tenant", retry_budget: "retries" };
    if (first && ours[first[0]] && first[1] > it.refused / 2) {
      const who = first[0] === "rate_limited" && topKey ? ` Most of all ${topKey.key}, by ${topKey.rate_limit}.` : "";
      return say(4, "warn", `${name} is held back by policy, not by load: ${rate(first[1])}/s refused (${why}); ${useful}.`, `${slots}.${who}`);
    }
    if (it.taken > 0.85 * it.limit) {
      return say(6, "bad", `${name} is full: ${slots}, ${useful}, refusing ${rate(it.refused)}/s.`, `${spared(it.last)}${orphans(it.last)}`);
    }
    return say(5, "warn", `${name} refuses ${rate(it.refused)}/s of ${rate(it.arrivals)}/s (${why}), with ${slots}.`, orphans(it.last));
  }
  if (it.taken > 0.85 * it.limit && it.waiting >= 0.5) {
    const wait = Math.max(0, ...Object.values(it.last.priorities).map((one) => one.wait_ms ?? 0));
    return say(2, "warn", `${name} is just about full: ${slots}, ${number(it.waiting, 1)} waiting for ${millis(wait)}, nobody refused; ${useful}.`);
  }
  return say(1, "good", `All is well: ${useful} of ${rate(it.arrivals)}/s that come to ${name}, ${slots}.`);
}

const share = (part, whole) => Math.min(0.9, part / Math.max(whole, 1e-9));

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

// The page: asks for samples, and shows each as it comes.

import { find, h, put } from "./dom.js";
import * as feed from "./feed.js";
import * as panels from "./panels.js";
import * as policy from "./policy.js";
import * as tools from "./tools.js";
import { verdict } from "./verdict.js";

let stats = null;
let top = { rate_limit: [], tenant: [] };
let names = [];

const chosen = () => find("upstream").value || names[0];

function showFeed() {
  const state = feed.feedState();
  find("feed").className = state;
  const text = { connecting: "connecting", live: "live, once a second", lost: "no word from the gateway; trying again" }[state];
  // Only when it changes: it is read aloud.
  if (find("feed-text").textContent !== text) find("feed-text").textContent = text;
}

function showNames(sample) {
  const now = Object.keys(sample.upstreams);
  if (now.join("\n") === names.join("\n")) return;
  const before = chosen();
  names = now;
  put(find("upstream"), names.map((name) => h("option", {}, name)));
  if (names.includes(before)) find("upstream").value = before;
  find("choose-upstream").hidden = names.length < 2;
}

function showVerdict() {
  const said = verdict(feed.newest(), top.rate_limit[0]);
  const element = find("verdict");
  element.className = `verdict ${said.level}`;
  put(element, said.head, said.more ? h("small", {}, said.more) : null);
  // Numbers change every second; whoever listens wants to hear only when it is another matter.
  element.setAttribute("aria-live", element.dataset.level === said.level ? "off" : "polite");
  element.dataset.level = said.level;
}

function show() {
  showFeed();
  const newest = feed.newest();
  if (!newest) return;
  showNames(newest);
  showVerdict();
  const wanted = Number(find("window").value);
  const samples = feed.samples.filter((sample) => sample.at > newest.at - wanted);
  // A history that has only begun need not be pressed into a corner.
  const window = Math.min(wanted, Math.max(60, Math.ceil((newest.at - samples[0].at) / 30) * 30));
  const upstream = chosen();
  for (const element of document.querySelectorAll(".of-upstream")) element.textContent = names.length > 1 ? `${upstream}: ` : "";
  panels.showComparison(samples, names, window);
  panels.showTiles(newest.upstreams[upstream]);
  panels.showCharts(samples, upstream, window);
  panels.showTable(newest, stats);
  panels.showLittle(feed.samples, upstream);
  panels.showEndpoints(stats, upstream);
  document.body.dataset.sample = newest.id;
}

async function json(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
}

/** What is not in the samples, every two seconds. */
async function look() {
  try {
    stats = await json("/api/stats");
    [top.rate_limit, top.tenant] = (await Promise.all(["rate_limit", "tenant"].map((by) => json(`/api/top?by=${by}`)))).map((said) => said.top);
    find("version").textContent = `${stats.version}, ${stats.stage}`;
    panels.showTop("keys", top.rate_limit, "rate_limit", "No rate limit has refused anybody lately.");
    panels.showTop("tenants", top.tenant, "upstream", "No tenant has been refused lately.");
  } catch {
    // The feed says already that nobody is there.
  }
  setTimeout(look, document.hidden ? 10000 : 2000);
}

for (const id of ["upstream", "window"]) find(id).addEventListener("change", show);
feed.listen(() => document.hidden || show());
document.addEventListener("visibilitychange", () => document.hidden || show());
feed.start();
policy.start();
tools.start(chosen);
look();

// Samples: what has been, once, and then each as it comes. When the stream breaks the browser opens it again by itself, and
// what was missed is fetched.

const KEPT = 900;

export const samples = [];
let listeners = [];
let state = "connecting";

export const newest = () => samples[samples.length - 1];
export const feedState = () => state;

/** Calls back after each sample, and when the stream breaks or is there again. */
export function listen(callback) {
  listeners.push(callback);
}

const tell = () => listeners.forEach((callback) => callback());

/** From an object with an array in the place of each number to objects with numbers. */
function rows(columns) {
  const at = (node, index) => {
    if (Array.isArray(node)) return node[index];
    if (node === null || typeof node !== "object") return node;
    return Object.fromEntries(Object.entries(node).map(([name, child]) => [name, at(child, index)]));
  };
  return columns.id.map((_, index) => at(columns, index));
}

function keep(sample) {
  const last = newest();
  // The gateway was started anew.
  if (last && sample.id < last.id) samples.length = 0;
  else if (last && sample.id === last.id) return;
  samples.push(sample);
  if (samples.length > KEPT) samples.splice(0, samples.length - KEPT);
}

async function fetchHistory() {
  const response = await fetch(`/api/history?seconds=${KEPT}`);
  if (!response.ok) return;
  const past = rows(await response.json());
  const last = past[past.length - 1];
  const later = samples.filter((sample) => last && sample.id > last.id);
  samples.splice(0, samples.length, ...past, ...later);
  tell();
}

export function start() {
  const source = new EventSource("/api/live");
  source.addEventListener("open", () => {
    state = "live";
    fetchHistory().catch(() => tell());
  });
  source.addEventListener("error", () => {
    state = "lost";
    tell();
    // It does not come back by itself after an answer that was no stream.
    if (source.readyState === EventSource.CLOSED) setTimeout(start, 5000);
  });
  source.addEventListener("sample", (event) => {
    state = "live";
    keep(JSON.parse(event.data));
    tell();
  });
}

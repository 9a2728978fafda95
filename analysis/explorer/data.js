// --- the data, and how elements are made. Texts reach the page through textContent alone. -----------------------

const data = JSON.parse(document.getElementById("data").textContent);
const HEADS = data.layers * data.heads;
const CAP = 3 * data.tau; // where every colour scale of scores ends
const FRAMED = window.top !== window; // in a notebook
const UNPACKS = "DecompressionStream" in window;
const PLAIN = "–";

const byId = (name) => document.getElementById(name);
const roleNames = data.roles.map((role) => role.name);
const nameOf = (head) => `${Math.floor(head / data.heads)}-${head % data.heads}`;
const scoresIn = (task, state) => data.scores[task]?.[state];
const sentenceOf = (id) => data.sentences.find((sentence) => sentence.id === id);
const sentencesOf = (task) => {
  const ofTask = data.sentences.filter((sentence) => sentence.task === task);
  return ofTask.length ? ofTask : data.sentences.filter((sentence) => !(sentence.task in data.scores));
};
const hasScores = Object.keys(data.scores).length > 0;

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}
const make = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// Replaces the children of an element; what had the focus keeps it, by its place.
function replace(element, ...children) {
  const reachable = () => [...element.querySelectorAll("button, select")];
  const place = reachable().indexOf(document.activeElement);
  element.replaceChildren(...children);
  if (place >= 0) reachable()[place]?.focus();
}

function setText(element, text) {
  element.textContent = text;
  element.hidden = text === "";
}

// --- numbers in words -------------------------------------------------------------------------------------------

const short = (value) => (Math.abs(value) >= 99.95 ? value.toFixed(0) : value.toFixed(1));
const exact = (value) => (value === null || value === undefined ? PLAIN : value.toFixed(2).replace("-", "−"));
const digits = (value) => (value === null ? PLAIN : String(Number(value.toPrecision(3))).replace("-", "−"));
function signed(value, places = 2) {
  const size = Math.abs(value).toFixed(places);
  return Number(size) === 0 ? size : (value < 0 ? "−" : "+") + size;
}
const percent = (value) => (value < 0.001 ? "below 0.1 %" : `${(100 * value).toFixed(value < 0.0995 ? 1 : 0)} %`);
const piece = (token) => token.replace(/^[Ġ▁]/, "") || token;
const sizeOf = (entry, head) => (Array.isArray(entry.n) ? entry.n[head] : entry.n);

// --- attention: unpacked when it is first shown -----------------------------------------------------------------

const WEIGHTS = Float32Array.from({ length: 256 }, (_, step) => (step / 255) ** 2);
const CACHED = 4; // unpacked sentences that stay in memory
const mapCache = new Map();

const bytesOf = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

async function mapsOf(sentence, state) {
  const key = JSON.stringify([sentence.id, state]);
  if (!mapCache.has(key)) {
    const bytes = new Blob([bytesOf(sentence.attention[state])]);
    const stream = bytes.stream().pipeThrough(new DecompressionStream("deflate"));
    const steps = new Uint8Array(await new Response(stream).arrayBuffer());
    if (mapCache.size >= CACHED) mapCache.delete(mapCache.keys().next().value);
    mapCache.set(key, steps);
  }
  return mapCache.get(key);
}

// The weight of head's row i and column j, on a sentence of T tokens.
const weightIn = (steps, head, T) => (i, j) => WEIGHTS[steps[(head * T + i) * T + j]];

const masks = new Map();
function maskOf(sentence, role) {
  const key = JSON.stringify([sentence.id, role]);
  if (!masks.has(key)) masks.set(key, role in sentence.masks ? bytesOf(sentence.masks[role]) : null);
  const bits = masks.get(key);
  const T = sentence.tokens.length;
  return bits && ((i, j) => ((bits[(i * T + j) >> 3] >> (7 - ((i * T + j) & 7))) & 1) === 1);
}

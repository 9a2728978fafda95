// --- labels: what the rules say of a head together ---------------------------------------------------------------

const LABELS = data.labels; // those of the tables, the published one first
const COUNTED = LABELS[1] ?? LABELS[0]; // the label by which the roles of a head are counted
// By the places of the labels that a head has.
const MARKS = { 0: "○", 1: "◆", 2: "☆", "01": "●", "02": "◐", "12": "◑", "012": "★" };
const NOT_APPLICABLE = { mark: "×", words: "not applicable" }, UNSCORED = { mark: PLAIN, words: "not scored" };

const entryOf = (role = view.role, state = view.state) => scoresIn(view.task, state)?.[role];
const otherState = () => Object.keys(data.scores[view.task] ?? {}).find((state) => state !== view.state);
const hasLabel = (entry, label, head) => entry[label]?.[head] === "1";
const isNotApplicable = (entry, head) => LABELS.every((label) => !(label in entry) || entry[label][head] === "?");

// Mark, words, and shade of the cell in the map of labels.
function verdictOf(entry, head) {
  if (!entry || entry[LABELS[0]][head] === "-") return UNSCORED;
  if (isNotApplicable(entry, head)) return NOT_APPLICABLE;
  const labels = LABELS.filter((label) => hasLabel(entry, label, head));
  if (!labels.length) return { mark: "", words: "no label", shade: 0 };
  return {
    mark: MARKS[labels.map((label) => LABELS.indexOf(label)).join("")],
    words: labels.join(", ").replace(/, ([^,]*)$/, " and $1") + (labels.length < 2 && LABELS.length > 1 ? " only" : ""),
    shade: 0.3 * labels.length,
  };
}

// --- what cells can show ------------------------------------------------------------------------------------------

const plainCell = ({ mark, words } = UNSCORED) => ({ text: mark, words });

function scoreCell(value, entry, head) {
  const { mark, words } = entry ? verdictOf(entry, head) : { mark: "", words: "" };
  if (value === null || value === undefined) return plainCell(mark ? { mark, words } : UNSCORED);
  return { text: short(value), colour: scoreColour(value), mark, words: `${short(value)}${mark ? `, ${words}` : ""}` };
}

function labelCell(entry, head) {
  const { mark, words, shade } = verdictOf(entry, head);
  const value = entry?.mean[head] ?? null;
  if (shade === undefined || value === null) return plainCell({ mark, words });
  return { text: short(value), colour: ramp(shade), mark, words: `${words}, ${short(value)}` };
}

function differences() {
  const [one, other] = [entryOf(), entryOf(view.role, otherState())];
  const values = Array.from({ length: HEADS }, (_, head) => {
    const [mean, otherMean] = [one?.mean[head] ?? null, other?.mean[head] ?? null];
    return mean === null || otherMean === null ? null : mean - otherMean;
  });
  return { values, top: Math.max(...values.map(Math.abs)) || 1 };
}

function changeCell(entry, head, { values, top }) {
  const value = values[head];
  if (value === null) return plainCell();
  const words = `${signed(value)} compared with ${otherState()}`;
  return { text: signed(value, 1), colour: changeColour(value / top), mark: verdictOf(entry, head).mark, words };
}

function countCell(entry, head) {
  const roles = Object.values(scoresIn(view.task, view.state) ?? {});
  if (!roles.length) return plainCell();
  const count = roles.filter((role) => hasLabel(role, COUNTED, head)).length;
  return { text: String(count), colour: ramp(count / roles.length), words: `${count} ${COUNTED} roles` };
}

const sentenceScores = (role = view.role) => {
  const scores = sentenceOf(view.sentence)?.scores[role];
  return scores && (scores[view.state] ?? Object.values(scores)[0]);
};

// Other numbers of heads: of the chosen task, or of all tasks.
const valuesOf = (name) => data.values[name][view.task] ?? data.values[name][""];

function rangeOf(values) {
  const numbers = values.filter((value) => value !== null);
  return { values, low: Math.min(...numbers), high: Math.max(...numbers) };
}

// Two digits of the largest value, so that all cells have as many places; no 0 before the point.
function compact(value, top) {
  const places = 1 - Math.floor(Math.log10(top || 1));
  if (places > 4 || places < -1) return value.toExponential(0).replace(/^-/, "−");
  const text = Math.abs(value).toFixed(Math.max(places, 0));
  return (value < 0 && Number(text) ? "−" : "") + (places > 1 ? text.replace(/^0\./, ".") : text);
}

// Values on both sides of 0 take the colours of change, others the scale from the lowest to the highest.
const bothSides = ({ low, high }) => low < 0 && high > 0;
function valueColour(value, range) {
  if (bothSides(range)) return changeColour(value / Math.max(-range.low, range.high));
  return ramp((value - range.low) / (range.high - range.low || 1));
}

function valueCell(head, range) {
  const value = range.values[head];
  if (value === null) return plainCell({ mark: PLAIN, words: "no value" });
  const text = compact(value, Math.max(-range.low, range.high));
  return { text, colour: valueColour(value, range), words: digits(value) };
}

function valueLegend(range) {
  if (!Number.isFinite(range.low)) return [];
  const top = Math.max(-range.low, range.high);
  const [from, to] = bothSides(range) ? [-top, top] : [range.low, range.high];
  return scale((stop) => valueColour(from + stop * (to - from), range), `${digits(from)} `, ` ${digits(to)}`);
}

// --- legends ------------------------------------------------------------------------------------------------------

const note = (...parts) => make("span", {}, ...parts);

function scale(colourAt, low, high) {
  const stops = Array.from({ length: 12 }, (_, i) => css(colourAt(i / 11))).join(", ");
  const style = `background: linear-gradient(to right, ${stops})`;
  return [note(low, make("span", { class: "ramp", style }), high)];
}

// The verdicts in the grid, and those that are always explained.
function verdictLegend(withShades) {
  const verdicts = Array.from({ length: HEADS }, (_, head) => verdictOf(entryOf(), head));
  const byMark = new Map([...verdicts, NOT_APPLICABLE, UNSCORED].map((verdict) => [verdict.mark, verdict]));
  const swatch = ({ shade }) => make("span", { class: "swatch", style: `background: ${css(ramp(shade))}` });
  return [...byMark.values()].sort((a, b) => (b.shade ?? -1) - (a.shade ?? -1)).flatMap((verdict) => {
    const text = `${verdict.mark} ${verdict.words}`;
    if (withShades && verdict.shade !== undefined) return [note(swatch(verdict), text)];
    return verdict.mark ? [note(text)] : [];
  });
}

const scoreLegend = () => [...scale(ramp, "0 ", ` ${CAP}+`), note(`τ = ${data.tau}, uniform = 1`)];

// Title, whether there is something to show, the numbers it needs, a cell of it, and its legend.
const MODES = {
  mean: {
    title: "mean score",
    ofRole: true,
    available: () => hasScores,
    cell: (entry, head) => scoreCell(entry?.mean[head], entry, head),
    legend: () => [...scoreLegend(), ...verdictLegend(false)],
  },
  labels: {
    title: "labels",
    ofRole: true,
    available: () => hasScores,
    cell: labelCell,
    legend: () => [...verdictLegend(true), note("number: mean score")],
  },
  change: {
    title: "change between states",
    ofRole: true,
    available: () => otherState() !== undefined,
    numbers: differences,
    cell: changeCell,
    legend: () => [
      ...scale((stop) => changeColour(2 * stop - 1), "− ", " +"),
      note(`${view.state} minus ${otherState()}`),
      ...verdictLegend(false),
    ],
  },
  roles: {
    title: "number of roles",
    available: () => hasScores,
    cell: countCell,
    legend: () => [...scale(ramp, "0 ", ` ${roleNames.length}`), note(`roles by the ${COUNTED} label`)],
  },
  attention: {
    title: "attention on the sentence",
    available: () => data.sentences.length > 0,
    cell: (entry, head) => scoreCell(entry?.mean[head] ?? sentenceScores()?.[head], entry, head),
    legend: () => [...scale(ramp, "0 ", ` ${CAP}+`), note("times uniform attention; rows attend to columns")],
  },
  sentence: {
    title: "score on the sentence",
    ofRole: true,
    available: () => data.sentences.length > 0,
    cell: (entry, head) => scoreCell(sentenceScores()?.[head], undefined, head),
    legend: scoreLegend,
  },
};
for (const name of Object.keys(data.values)) {
  MODES[`value:${name}`] = {
    title: name,
    available: () => valuesOf(name) !== undefined,
    numbers: () => rangeOf(valuesOf(name)),
    cell: (entry, head, range) => valueCell(head, range),
    legend: valueLegend,
  };
}
const availableModes = () => Object.entries(MODES).filter(([, mode]) => mode.available());

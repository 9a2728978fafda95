// --- the card of a head -------------------------------------------------------------------------------------------

const AXIS = { width: 124, height: 16, low: 0.25 };
const hasShare = () => Object.values(scoresIn(view.task, view.state) ?? {}).some((entry) => "share" in entry);
const numbersOf = (entry, head) => ["mean", "low", "high"].map((name) => entry[name]?.[head] ?? null);

// The place of a score on the logarithmic axis, which is the same for all roles, tasks and states.
const place = (() => {
  const entries = Object.values(data.scores).flatMap((states) => Object.values(states).flatMap(Object.values));
  const high = 1.2 * Math.max(10 * data.tau, ...entries.flatMap((entry) => entry.mean).map((mean) => mean ?? 0));
  const span = Math.log(high / AXIS.low);
  return (value) => 4 + ((AXIS.width - 8) * Math.log(Math.min(Math.max(value, AXIS.low), high) / AXIS.low)) / span;
})();

function scoreDrawing(entry, other, head) {
  const { ink, outline, uniform } = look();
  const middle = AXIS.height / 2;
  const line = (from, to, attributes) => draw("line", { x1: place(from), x2: place(to), ...attributes });
  const upright = { y1: 0, y2: AXIS.height };
  const parts = [
    line(1, 1, { ...upright, stroke: uniform }),
    line(data.tau, data.tau, { ...upright, stroke: outline, "stroke-dasharray": "2 2" }),
  ];
  const dot = (value, attributes) => draw("circle", { cx: place(value), cy: middle, ...attributes });
  const [mean, low, high] = numbersOf(entry, head);
  if (other?.mean[head] > 0) parts.push(dot(other.mean[head], { class: "ring", r: 4.5, fill: "none", stroke: ink }));
  if (low !== null && high !== null) {
    parts.push(line(low, high, { y1: middle, y2: middle, stroke: ink, "stroke-width": 2 }));
  }
  if (mean !== null) parts.push(dot(mean, { class: "dot", r: 3, fill: ink }));
  const size = { width: AXIS.width, height: AXIS.height };
  return draw("svg", { ...size, role: "img", "aria-label": `score ${exact(mean)}` }, ...parts);
}

function rankIn(values, head) {
  const numbers = values.filter((value) => value !== null);
  const higher = numbers.filter((value) => value > values[head]).length;
  return values[head] === null ? PLAIN : `${1 + higher}/${numbers.length}`;
}

function labelCells(entry, head) {
  if (isNotApplicable(entry, head)) {
    const text = entry.status?.[head] ?? NOT_APPLICABLE.words;
    return [make("td", { colspan: LABELS.length, class: "no", "data-name": "labels" }, text)];
  }
  const words = { 1: "● yes", 0: "no", "?": NOT_APPLICABLE.words };
  return LABELS.map((label) => {
    const code = entry[label]?.[head];
    return make("td", { class: code === "1" ? "yes" : "no", "data-name": label }, words[code] ?? PLAIN);
  });
}

function intervalOf(entry, head) {
  const [mean, low, high] = numbersOf(entry, head);
  return low === null || high === null ? exact(mean) : `${exact(mean)} [${exact(low)}, ${exact(high)}]`;
}

function cardRow(role, entry, other) {
  const head = view.head;
  const name = make("th", { scope: "row" }, make("button", { type: "button", click: () => change({ role }) }, role));
  const row = (...cells) => make("tr", { class: role === view.role && "chosen", "data-role": role }, name, ...cells);
  if (!entry || entry[LABELS[0]][head] === "-") {
    return row(make("td", { colspan: cardTitles().length - 1, class: "no" }, "not scored in this task and state"));
  }
  const [mean, otherMean] = [entry.mean[head], other?.mean[head] ?? null];
  const difference = mean !== null && otherMean !== null ? signed(mean - otherMean) : PLAIN;
  const cell = (title, text, attributes = {}) => make("td", { "data-name": title, ...attributes }, text);
  const control = { title: entry.control ? `control: ${entry.control}` : "" };
  return row(
    make("td", {}, scoreDrawing(entry, other, head)),
    cell("mean", intervalOf(entry, head)),
    ...labelCells(entry, head),
    ...(hasShare() ? [cell("control share", exact(entry.share?.[head]), control)] : []),
    cell("rank", rankIn(entry.mean, head)),
    ...(otherState() === undefined ? [] : [cell(`Δ ${otherState()}`, difference)]),
    cell("n", String(sizeOf(entry, head))),
  );
}

function cardTitles() {
  const interval = `mean [${Math.round(100 * (1 - data.alpha))} %]`;
  const share = hasShare() ? ["control share"] : [];
  const difference = otherState() === undefined ? [] : [`Δ ${otherState().slice(0, 4)}.`];
  return ["role", "score (log scale)", interval, ...LABELS, ...share, "rank", ...difference, "n"];
}

const headings = (...titles) => make("tr", {}, ...titles.map((title) => make("th", { scope: "col" }, title)));

// Other numbers of the head, each with its rank; the highest value has rank 1.
function showValues() {
  const names = Object.keys(data.values).filter((name) => valuesOf(name)?.[view.head] !== undefined);
  byId("values").hidden = names.length === 0;
  const rows = names.map((name) => {
    const values = valuesOf(name);
    const button = make("button", { type: "button", click: () => change({ by: `value:${name}` }) }, name);
    const cells = [digits(values[view.head]), rankIn(values, view.head)].map((text) => make("td", {}, text));
    return make("tr", { "data-value": name }, make("th", { scope: "row" }, button), ...cells);
  });
  replace(byId("values").tBodies[0], headings("other numbers", "value", "rank"), ...rows);
}

function showCard() {
  byId("card-section").hidden = !hasScores;
  const [layer, head] = nameOf(view.head).split("-");
  const origin = [view.task, view.state].filter(Boolean).join(", ");
  byId("h-card").textContent = `Head ${nameOf(view.head)} (layer ${layer}, head ${head})${origin ? ` · ${origin}` : ""}`;
  if (!hasScores) return;
  const [entries, others] = [scoresIn(view.task, view.state) ?? {}, scoresIn(view.task, otherState()) ?? {}];
  const scored = new Set(Object.values(data.scores).flatMap((states) => Object.values(states).flatMap(Object.keys)));
  replace(byId("card").tHead, headings(...cardTitles()));
  const rows = roleNames.filter((role) => scored.has(role)).map((role) => cardRow(role, entries[role], others[role]));
  replace(byId("card").tBodies[0], ...rows);
  const control = hasShare() ? " Control share: what the role's control scores, as a part of the head's score." : "";
  const ring = otherState() === undefined ? "" : ` Ring and Δ: compared with ${otherState()}.`;
  byId("card-legend").textContent = `Grey line: 1, a uniform head. Dashed: τ = ${data.tau}.${ring}${control}`;
  showValues();
}

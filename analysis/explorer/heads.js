// --- labels: what the rules say of a head together ---------------------------------------------------------------

const LABELS = [["published", "published"], ["audited", "audited"], ["controlled", "controlled"]];
const hasLabel = (label) => Object.values(data.scores).some((states) => Object.values(states).some((roles) => Object.values(roles).some((entry) => label in entry)));
const LABELS_HERE = LABELS.filter(([label]) => hasLabel(label));
const CONTROLLED = hasLabel("controlled");
const AUDITED = hasLabel("audited");
const held = (entry, label, head) => entry[label]?.[head] === "1";

// Mark, words, shade of the cell in the map of labels, and which heads have it; the first that fits counts.
const VERDICTS = [
  { mark: PLAIN, words: "not scored", fits: (entry, head) => !entry || entry.published[head] === "-" },
  { mark: "×", words: "untestable", fits: (entry, head) => untestable(entry, head) },
  { mark: "★", words: "published, audited and controlled", shade: 0.9, fits: (e, h) => LABELS.every(([label]) => held(e, label, h)) },
  { mark: "●", words: "published and audited", shade: 0.6, fits: (e, h) => held(e, "published", h) && held(e, "audited", h) },
  { mark: "○", words: AUDITED ? "published only" : "published", shade: 0.35, fits: (e, h) => held(e, "published", h) },
  { mark: "◆", words: "audited only", shade: 0.45, fits: (e, h) => held(e, "audited", h) },
  { mark: "☆", words: "controlled only", shade: 0.2, fits: (e, h) => held(e, "controlled", h) },
  { mark: "", words: "no label", shade: 0, fits: () => true },
];
const LEGEND_ALWAYS = ["×", PLAIN];

const statusOf = (entry, head) => entry.status?.[head] ?? "tested";
function untestable(entry, head) {
  return LABELS_HERE.every(([label]) => !(label in entry) || entry[label][head] === "?");
}
const verdictOf = (entry, head) => VERDICTS.find((verdict) => verdict.fits(entry, head));
const entryOf = (role = view.role, state = view.state) => scoresIn(view.task, state)?.[role];
const otherState = () => Object.keys(data.scores[view.task] ?? {}).find((state) => state !== view.state);

// --- what cells can show ------------------------------------------------------------------------------------------

const plainCell = (mark = PLAIN, words = "not scored") => ({ text: mark, words });

function scoreCell(value, entry, head) {
  const verdict = entry ? verdictOf(entry, head) : null;
  if (value === null || value === undefined) return plainCell(verdict?.mark || PLAIN, verdict?.mark ? verdict.words : "not scored");
  const mark = verdict?.mark ?? "";
  return { text: short(value), colour: scoreColour(value), mark, words: `${short(value)}${mark ? `, ${verdict.words}` : ""}` };
}

function labelCell(entry, head) {
  const verdict = verdictOf(entry, head);
  const value = entry?.mean[head] ?? null;
  if (verdict.shade === undefined || value === null) return plainCell(verdict.mark, verdict.words);
  return { text: short(value), colour: ramp(verdict.shade), mark: verdict.mark, words: `${verdict.words}, ${short(value)}` };
}

const differences = () => {
  const [here, there] = [entryOf(), entryOf(view.role, otherState())];
  if (!here || !there) return null;
  return here.mean.map((mean, head) => (mean === null || there.mean[head] === null ? null : mean - there.mean[head]));
};

function changeCell(entry, head, values) {
  const value = values?.[head] ?? null;
  if (value === null) return plainCell();
  const top = Math.max(...values.map((each) => Math.abs(each ?? 0))) || 1;
  return { text: signed(value, 1), colour: changeColour(value / top), mark: entry ? verdictOf(entry, head).mark : "", words: `${signed(value)} against ${otherState()}` };
}

const countRule = AUDITED ? "audited" : "published";
function countCell(entry, head) {
  const roles = Object.values(scoresIn(view.task, view.state) ?? {});
  if (!roles.length) return plainCell();
  const found = roles.filter((each) => held(each, countRule, head)).length;
  return { text: String(found), colour: ramp(found / Math.max(roles.length, 1)), words: `${found} ${countRule} roles` };
}

const sentenceScores = () => {
  const scores = sentenceOf(view.sentence)?.scores[view.role];
  return scores && (scores[view.state] ?? Object.values(scores)[0]);
};

// Title, when it is there, the values it needs, and a cell of it. A new way to colour the grid is a line here.
const MODES = {
  mean: { title: "mean score", here: () => hasScores, values: () => null, cell: (entry, head) => scoreCell(entry?.mean[head], entry, head) },
  labels: { title: "labels", here: () => hasScores, values: () => null, cell: labelCell },
  change: { title: "change between states", here: () => otherState() !== undefined, values: differences, cell: changeCell },
  roles: { title: "number of roles", here: () => hasScores, values: () => null, cell: countCell },
  attention: { title: "attention on the sentence", here: () => data.sentences.length > 0, values: () => null, cell: (entry, head) => scoreCell(entry?.mean[head] ?? sentenceScores()?.[head], entry, head) },
  sentence: { title: "score on the sentence", here: () => data.sentences.length > 0, values: sentenceScores, cell: (entry, head, values) => scoreCell(values?.[head], undefined, head) },
};
const LABELLED = ["mean", "labels", "change"]; // the modes that mark what cannot be tested
const modesHere = () => [...Object.entries(MODES).filter(([, mode]) => mode.here()), ...columnModes()];
const modeThere = (name) => (MODES[name] ? MODES[name].here() : columnMode(name) !== undefined);
const modeHere = () => MODES[view.by] ?? columnMode(view.by);

// --- roles and grid -----------------------------------------------------------------------------------------------

function showRoles() {
  byId("roles-section").hidden = roleNames.length === 0;
  const here = scoresIn(view.task, view.state);
  const scores = (role) => (hasScores ? here?.[role]?.mean : sentenceOf(view.sentence)?.scores[role] && Object.values(sentenceOf(view.sentence).scores[role])[0]);
  const place = (x, y) => (data.layers - 1 - y) * data.heads + x;
  replace(byId("roles"), ...data.roles.map(({ name, about }) => {
    const means = scores(name);
    const canvas = pixels(make("canvas", { "aria-hidden": "true" }), data.heads, data.layers, (x, y) => {
      const value = means?.[place(x, y)] ?? null;
      return value === null ? null : scoreColour(value);
    });
    const entry = here?.[name];
    const all = entry ? [...entry.published].filter((code) => code === "0" || code === "1").length : 0;
    const count = entry ? [...entry.published].filter((code) => code === "1").length : 0;
    const said = !hasScores ? "" : !entry ? "not scored" : all ? `${count}/${all}` : "untestable";
    const words = entry && all ? `${name}: ${count} of ${all} heads, published label` : `${name}: ${said}`;
    const chosen = name === view.role;
    return make(
      "button",
      { type: "button", class: "role", role: "radio", "aria-checked": String(chosen), "aria-label": words, title: about, tabindex: chosen ? 0 : -1, "data-role": name, click: () => change({ role: name }) },
      make("span", {}, make("span", { class: "role-name" }, name), make("span", { class: "count" }, said)),
      canvas,
    );
  }));
}

function buildGrid() {
  const body = byId("grid").tBodies[0];
  for (let layer = data.layers - 1; layer >= 0; layer--) {
    const row = make("tr", { role: "row" }, make("th", { scope: "row", role: "rowheader" }, String(layer)));
    for (let head = 0; head < data.heads; head++) {
      row.append(make("td", { role: "gridcell", tabindex: -1, "data-h": layer * data.heads + head, "aria-selected": "false" }));
    }
    body.append(row);
  }
  const numbers = Array.from({ length: data.heads }, (_, head) => make("th", { scope: "col", role: "columnheader" }, String(head)));
  body.append(make("tr", { role: "row" }, make("th", {}, make("span", { class: "unseen" }, "layer upwards, head to the right")), ...numbers));
  body.addEventListener("click", (event) => {
    const cell = event.target.closest("td");
    if (cell) change({ head: Number(cell.dataset.h) });
  });
}

const cells = () => [...byId("grid").querySelectorAll("td")];
const cellOf = (head) => byId("grid").querySelector(`td[data-h="${head}"]`);

function gridContent() {
  const [mode, entry] = [modeHere(), entryOf()];
  const values = mode?.values();
  return Array.from({ length: HEADS }, (_, head) => (mode ? mode.cell(entry, head, values) : plainCell()));
}

function showGrid() {
  const [content, entry] = [gridContent(), entryOf()];
  byId("heads-title").textContent = `${data.layers} × ${data.heads} heads: ${gridTitle()}`;
  for (const cell of cells()) {
    const head = Number(cell.dataset.h);
    const { text, colour, mark, words } = content[head];
    cell.className = LABELLED.includes(view.by) && verdictOf(entry, head).words === "untestable" ? "untestable" : "";
    cell.style.backgroundColor = colour ? css(colour) : "";
    cell.style.color = colour ? inkOn(colour) : "";
    cell.setAttribute("aria-label", `layer ${Math.floor(head / data.heads)} head ${head % data.heads}: ${words}`);
    replace(cell, text, ...(mark && mark !== text ? [make("span", { class: "mark", "aria-hidden": "true" }, mark)] : []));
  }
  tell(byId("heads-warning"), scoresMissing());
  showLegend();
  showHead();
  if (view.by === "attention") showThumbnails();
}

function gridTitle() {
  const title = modeHere()?.title ?? "";
  return ["mean", "labels", "change", "sentence"].includes(view.by) ? `${title} of ${view.role}` : title;
}

function scoresMissing() {
  if (!hasScores || !view.task) return "";
  if (!scoresIn(view.task, view.state)) return `There are no scores of ${view.task}, ${view.state}: run make reproduce for this profile, then build the page again.`;
  return entryOf() ? "" : `The role ${view.role} is not scored in this task and state.`;
}

async function showThumbnails() {
  const sentence = sentenceOf(view.sentence);
  const state = sentence && attentionState(sentence);
  if (!sentence || !state || !UNPACKS) return;
  const steps = await mapsOf(sentence, state);
  if (view.by !== "attention" || view.sentence !== sentence.id) return;
  const T = sentence.tokens.length;
  const colours = stepColours(T);
  for (const cell of cells()) {
    const offset = Number(cell.dataset.h) * T * T;
    cell.style.backgroundColor = "";
    replace(cell, pixels(make("canvas", { "aria-hidden": "true" }), T, T, (x, y) => colours[steps[offset + y * T + x]]));
  }
}

function showLegend() {
  const stops = Array.from({ length: 12 }, (_, i) => i / 11);
  const scale = (colourAt, low, high) => [make("span", {}, low, make("span", { class: "ramp", style: `background: linear-gradient(to right, ${stops.map((stop) => css(colourAt(stop))).join(", ")})` }), high)];
  const seen = Array.from({ length: HEADS }, (_, head) => verdictOf(entryOf(), head).mark);
  const marks = (wanted = [...seen, ...LEGEND_ALWAYS]) => VERDICTS.filter(({ mark }) => mark && wanted.includes(mark)).map(({ mark, words }) => make("span", {}, `${mark} ${words}`));
  const shades = () => VERDICTS.filter(({ shade, mark }) => shade !== undefined && seen.includes(mark)).map(({ mark, words, shade }) => make("span", {}, make("span", { class: "swatch", style: `background: ${css(ramp(shade))}` }), `${mark} ${words}`));
  const scores = () => [...scale(ramp, "0 ", ` ${CAP}+`), make("span", {}, `τ = ${data.tau}, uniform = 1`)];
  const parts = {
    mean: () => [...scores(), ...marks()],
    labels: () => [...shades(), ...marks(LEGEND_ALWAYS), make("span", {}, "number: mean score")],
    change: () => [...scale((stop) => changeColour(2 * stop - 1), "− ", " +"), make("span", {}, `${view.state} minus ${otherState()}`), ...marks()],
    roles: () => [...scale(ramp, "0 ", ` ${roleNames.length}`), make("span", {}, `roles by the ${countRule} label`)],
    attention: () => [...scale(ramp, "0 ", ` ${CAP}+`), make("span", {}, "times uniform attention; rows attend to columns")],
    sentence: () => scores(),
  };
  replace(byId("legend"), make("span", {}, "layer upwards, head to the right"), ...(parts[view.by] ?? columnLegend)(scale));
}

// --- the chosen head ----------------------------------------------------------------------------------------------

function showHead() {
  const before = byId("grid").querySelectorAll('td[aria-selected="true"], td[tabindex="0"]');
  for (const cell of before) filled(cell, { "aria-selected": "false", tabindex: -1 }, []);
  filled(cellOf(view.head), { "aria-selected": "true", tabindex: 0 }, []);
}

const ranking = () => {
  const scores = entryOf()?.mean ?? (hasScores ? null : sentenceScores());
  if (!scores) return [];
  return scores.map((score, head) => [score, head]).filter(([score]) => score !== null).sort((a, b) => b[0] - a[0] || a[1] - b[1]);
};

function showTop() {
  const best = ranking().slice(0, 10);
  byId("top-section").hidden = best.length === 0;
  byId("top-title").textContent = `Highest heads of ${view.role}${hasScores ? "" : " on this text"}:`;
  replace(byId("top"), ...best.map(([score, head]) => make("button", { type: "button", "data-head": nameOf(head), click: () => change({ head }) }, `${nameOf(head)} ${short(score)}`)));
}

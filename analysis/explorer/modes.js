// --- labels: what the rules say of a head together ---------------------------------------------------------------

const LABELS = [["published", "published"], ["audited", "audited"], ["controlled", "controlled"]];
const hasLabel = (label) => Object.values(data.scores).some(
  (states) => Object.values(states).some((roles) => Object.values(roles).some((entry) => label in entry)),
);
const LABELS_HERE = LABELS.filter(([label]) => hasLabel(label));
const CONTROLLED = hasLabel("controlled");
const AUDITED = hasLabel("audited");
const held = (entry, label, head) => entry[label]?.[head] === "1";

// Mark, words, shade of the cell in the map of labels, and which heads have it; the first that fits counts.
const VERDICTS = [
  { mark: PLAIN, words: "not scored", fits: (entry, head) => !entry || entry.published[head] === "-" },
  { mark: "×", words: "untestable", fits: (entry, head) => untestable(entry, head) },
  {
    mark: "★",
    words: "published, audited and controlled",
    shade: 0.9,
    fits: (e, h) => LABELS.every(([label]) => held(e, label, h)),
  },
  {
    mark: "●",
    words: "published and audited",
    shade: 0.6,
    fits: (e, h) => held(e, "published", h) && held(e, "audited", h),
  },
  {
    mark: "○",
    words: AUDITED ? "published only" : "published",
    shade: 0.35,
    fits: (e, h) => held(e, "published", h),
  },
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
  if (value === null || value === undefined) return plainCell(
    verdict?.mark || PLAIN,
    verdict?.mark ? verdict.words : "not scored",
  );
  const mark = verdict?.mark ?? "";
  return {
    text: short(value),
    colour: scoreColour(value),
    mark,
    words: `${short(value)}${mark ? `, ${verdict.words}` : ""}`,
  };
}

function labelCell(entry, head) {
  const verdict = verdictOf(entry, head);
  const value = entry?.mean[head] ?? null;
  if (verdict.shade === undefined || value === null) return plainCell(verdict.mark, verdict.words);
  return {
    text: short(value),
    colour: ramp(verdict.shade),
    mark: verdict.mark,
    words: `${verdict.words}, ${short(value)}`,
  };
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
  return {
    text: signed(value, 1),
    colour: changeColour(value / top),
    mark: entry ? verdictOf(entry, head).mark : "",
    words: `${signed(value)} against ${otherState()}`,
  };
}

const countRule = AUDITED ? "audited" : "published";
function countCell(entry, head) {
  const roles = Object.values(scoresIn(view.task, view.state) ?? {});
  if (!roles.length) return plainCell();
  const found = roles.filter((each) => held(each, countRule, head)).length;
  return {
    text: String(found),
    colour: ramp(found / Math.max(roles.length, 1)),
    words: `${found} ${countRule} roles`,
  };
}

const sentenceScores = () => {
  const scores = sentenceOf(view.sentence)?.scores[view.role];
  return scores && (scores[view.state] ?? Object.values(scores)[0]);
};

// Title, when it is there, the values it needs, and a cell of it. A new way to colour the grid is a line here.
const MODES = {
  mean: {
    title: "mean score",
    here: () => hasScores,
    values: () => null,
    cell: (entry, head) => scoreCell(entry?.mean[head], entry, head),
  },
  labels: { title: "labels", here: () => hasScores, values: () => null, cell: labelCell },
  change: {
    title: "change between states",
    here: () => otherState() !== undefined,
    values: differences,
    cell: changeCell,
  },
  roles: { title: "number of roles", here: () => hasScores, values: () => null, cell: countCell },
  attention: {
    title: "attention on the sentence",
    here: () => data.sentences.length > 0,
    values: () => null,
    cell: (entry, head) => scoreCell(entry?.mean[head] ?? sentenceScores()?.[head], entry, head),
  },
  sentence: {
    title: "score on the sentence",
    here: () => data.sentences.length > 0,
    values: sentenceScores,
    cell: (entry, head, values) => scoreCell(values?.[head], undefined, head),
  },
};
const LABELLED = ["mean", "labels", "change"]; // the modes that mark what cannot be tested
const modesHere = () => [...Object.entries(MODES).filter(([, mode]) => mode.here()), ...columnModes()];
const modeThere = (name) => (MODES[name] ? MODES[name].here() : columnMode(name) !== undefined);
const modeHere = () => MODES[view.by] ?? columnMode(view.by);

// --- what is shown: one object, kept in the address -------------------------------------------------------------

const FIRST = "match"; // the role, and its best head, on which a page of the study opens
const VIEWS = { matrix: "Matrix", lines: "Lines" };
const DIRECTIONS = ["given", "received"];
const view = {
  task: "",
  state: "",
  role: "",
  by: "",
  head: 0,
  sentence: "",
  view: "matrix",
  token: null,
  special: true,
  sieve: true,
  dir: "given",
  dose: 0,
};

const numbersIn = (text, pattern) => (pattern.exec(text) ?? []).slice(1).map(Number);
const among = (options) => (text) => (options().includes(text) ? text : undefined);
const onOff = (text) => ({ on: true, off: false })[text];

function headNamed(text) {
  const [layer, head] = numbersIn(text, /^(\d{1,4})-(\d{1,4})$/);
  return layer < data.layers && head < data.heads ? layer * data.heads + head : undefined;
}

function tokenNamed(text) {
  const [token] = numbersIn(text, /^(\d{1,5})$/);
  return token < (sentenceOf(view.sentence)?.tokens.length ?? 0) ? token : undefined;
}

function doseNamed(text) {
  const [place] = numbersIn(text, /^(\d)$/);
  return place < (data.dials[view.sentence]?.doses.length ?? 0) ? place : undefined;
}

// How each part is read from the address; undefined: not a value it can have.
const READ = {
  task: among(() => data.tasks),
  state: among(() => data.states),
  role: among(() => roleNames),
  by: among(() => availableModes().map(([name]) => name)),
  head: headNamed,
  sentence: among(() => sentencesOf(view.task).map((sentence) => sentence.id)),
  view: among(() => Object.keys(VIEWS)),
  token: tokenNamed,
  special: onOff,
  sieve: onOff,
  dir: among(() => DIRECTIONS),
  dose: doseNamed,
};
const toOnOff = (on) => (on ? "on" : "off");
const WRITE = { head: nameOf, token: String, special: toOnOff, sieve: toOnOff };

function begin() {
  view.task = data.tasks[0] ?? "";
  const states = Object.keys(data.scores[view.task] ?? {});
  view.state = data.states.filter((state) => !states.length || states.includes(state)).at(-1) ?? "";
  view.role = roleNames[0] ?? "";
  view.sentence = sentencesOf(view.task)[0]?.id ?? "";
  view.by = availableModes()[0]?.[0] ?? "";
  if (hasScores && roleNames.includes(FIRST)) {
    view.role = FIRST;
    view.head = ranking()[0]?.[1] ?? 0;
    view.by = availableModes().find(([name]) => name.startsWith("value:"))?.[0] ?? view.by;
  }
}

function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  for (const [name, read] of Object.entries(READ)) {
    const value = parts.has(name) ? read(parts.get(name)) : undefined;
    if (value === undefined) continue;
    const sentence = name === "task" && value !== view.task ? { sentence: sentencesOf(value)[0]?.id ?? "" } : {};
    // A link that names its sentence says of token and dose what they are, or leaves out what is not set.
    const namesSentence = name === "sentence" || "sentence" in sentence;
    Object.assign(view, { [name]: value }, sentence, namesSentence ? { token: null, dose: 0 } : {});
  }
  view.token = selectableToken(view);
}

function writeAddress() {
  if (FRAMED) return;
  const parts = new URLSearchParams();
  for (const name of Object.keys(READ)) {
    if (view[name] !== null && view[name] !== "" && !(name === "dose" && view.dose === 0)) parts.set(name, WRITE[name]?.(view[name]) ?? view[name]);
  }
  history.replaceState(null, "", `#${parts}`);
}

// The token of a view that can be selected: none if it is hidden.
function selectableToken({ sentence, token, special }) {
  return token !== null && !special && sentenceOf(sentence)?.text[token] < 0 ? null : token;
}

// What depends on a part: a task has its own sentences, a sentence its own tokens; a hidden token is not selected.
function withDependents(part) {
  const next = { ...view, ...part };
  if (next.task !== view.task && !sentencesOf(next.task).some((sentence) => sentence.id === next.sentence)) {
    next.sentence = sentencesOf(next.task)[0]?.id ?? "";
  }
  if (next.sentence !== view.sentence) {
    const task = sentenceOf(next.sentence)?.task;
    if (task in data.scores) next.task = task;
    next.token = null;
    next.dose = 0;
  }
  next.token = selectableToken(next);
  return next;
}

function change(part) {
  const next = withDependents(part);
  const changed = Object.keys(next).filter((name) => next[name] !== view[name]);
  Object.assign(view, next);
  if (!MODES[view.by]?.available()) {
    view.by = availableModes()[0]?.[0] ?? "";
    changed.push("by");
  }
  if (changed.length) show(changed);
}

// The next of several values, the first after the last.
const nextOf = (options, value, step = 1) => options[
  (options.indexOf(value) + step + options.length) % options.length
];

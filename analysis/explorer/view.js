// --- what is shown: one object, kept in the address -------------------------------------------------------------

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
};

const numbered = (text, pattern) => (pattern.exec(text) ?? []).slice(1).map(Number);
const among = (options) => (text) => (options().includes(text) ? text : undefined);
const onOff = (text) => ({ on: true, off: false })[text];

function headNamed(text) {
  const [layer, head] = numbered(text, /^(\d{1,4})-(\d{1,4})$/);
  return layer < data.layers && head < data.heads ? layer * data.heads + head : undefined;
}

function tokenNamed(text) {
  const [token] = numbered(text, /^(\d{1,5})$/);
  return token < (sentenceOf(view.sentence)?.tokens.length ?? 0) ? token : undefined;
}

// How each part is read from the address; undefined: not a value it can have.
const READ = {
  task: among(() => data.tasks),
  state: among(() => data.states),
  role: among(() => roleNames),
  by: among(() => modesHere().map(([name]) => name)),
  head: headNamed,
  sentence: among(() => sentencesOf(view.task).map((sentence) => sentence.id)),
  view: among(() => Object.keys(VIEWS)),
  token: tokenNamed,
  special: onOff,
  sieve: onOff,
  dir: among(() => DIRECTIONS),
};
const WRITTEN = {
  head: nameOf,
  token: String,
  special: (on) => (on ? "on" : "off"),
  sieve: (on) => (on ? "on" : "off"),
};

function begin() {
  view.task = data.tasks[0] ?? "";
  const own = Object.keys(data.scores[view.task] ?? {});
  view.state = data.states.filter((state) => !own.length || own.includes(state)).at(-1) ?? "";
  view.role = roleNames[0] ?? "";
  view.sentence = sentencesOf(view.task)[0]?.id ?? "";
  view.by = modesHere()[0]?.[0] ?? "";
}

function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  for (const [name, read] of Object.entries(READ)) {
    if (!parts.has(name)) continue;
    const value = read(parts.get(name));
    if (value === undefined) continue;
    if (name === "task" && value !== view.task) Object.assign(
      view,
      { task: value, sentence: sentencesOf(value)[0]?.id ?? "", token: null },
    );
    else if (name === "sentence" && value !== view.sentence) Object.assign(view, { sentence: value, token: null });
    else view[name] = value;
  }
  view.token = tokenShown(view);
}

function writeAddress() {
  if (FRAMED) return;
  const parts = new URLSearchParams();
  for (const name of Object.keys(READ)) {
    if (view[name] !== null && view[name] !== "") parts.set(name, WRITTEN[name]?.(view[name]) ?? view[name]);
  }
  history.replaceState(null, "", `#${parts}`);
}

// The token of a view that can be chosen: none if it is hidden.
function tokenShown({ sentence, token, special }) {
  return token !== null && !special && sentenceOf(sentence)?.text[token] < 0 ? null : token;
}

// What hangs on a part: a task has its own sentences, a sentence its own tokens; a hidden token is not chosen.
function settled(part) {
  const next = { ...view, ...part };
  if (next.task !== view.task && !sentencesOf(next.task).some((sentence) => sentence.id === next.sentence)) {
    next.sentence = sentencesOf(next.task)[0]?.id ?? "";
  }
  if (next.sentence !== view.sentence) {
    const task = sentenceOf(next.sentence)?.task;
    if (task in data.scores) next.task = task;
    next.token = null;
  }
  next.token = tokenShown(next);
  return next;
}

function change(part) {
  const next = settled(part);
  const changed = Object.keys(next).filter((name) => next[name] !== view[name]);
  Object.assign(view, next);
  if (!modeThere(view.by)) view.by = modesHere()[0]?.[0] ?? "";
  if (changed.length) show(changed);
}

// The next of several values, the first after the last.
const following = (options, value, step = 1) => options[
  (options.indexOf(value) + step + options.length) % options.length
];

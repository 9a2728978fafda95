// --- which part of the page depends on what -----------------------------------------------------------------------

const SCORES = ["task", "state"];
const TEXT = hasScores ? [] : ["sentence"]; // without tables, scores are those of the sentence
const PARTS = [
  [showRoles, [...SCORES, ...TEXT]],
  [markRole, ["role"]],
  [showChoices, [...SCORES, "by"]],
  [showGrid, [...SCORES, "role", "by", ...TEXT]],
  [() => ["attention", "sentence"].includes(view.by) && showGrid(), ["sentence"]],
  [showHead, ["head"]],
  [showTop, [...SCORES, "role", ...TEXT]],
  [showCard, [...SCORES, "role", "head"]],
  [announce, ["head", "role", "task", "state"]],
  [showAttention, [...SCORES, "role", "head", "sentence", "view", "token", "special", "sieve", "dir"]],
  [showDial, ["sentence", "dose"]],
  [writeAddress, Object.keys(READ)],
];

function show(changed) {
  const parts = PARTS.filter(([, needs]) => needs.some((name) => changed.includes(name)));
  return Promise.all(parts.map(([part]) => part()));
}
const showAll = () => show(Object.keys(view));

function markRole() {
  for (const button of byId("roles").children) {
    const isSelected = button.dataset.role === view.role;
    filled(button, { "aria-checked": String(isSelected), tabindex: isSelected ? 0 : -1 }, []);
  }
}

const optionOf = (value, title = value) => make("option", { value }, title);

function showChoices() {
  replace(byId("by"), ...availableModes().map(([name, { title }]) => optionOf(name, title)));
  for (const name of ["task", "state", "by"]) byId(name).value = view[name];
}

function announce() {
  const entry = entryOf();
  const mean = entry?.mean[view.head] ?? null;
  const score = mean === null ? "" : short(mean);
  const words = entry ? `, ${view.role} ${score} ${verdictOf(entry, view.head).words}` : "";
  byId("live").textContent = `Head ${nameOf(view.head)}${words}`;
}

// --- keys ---------------------------------------------------------------------------------------------------------

const anotherSentence = (step) => {
  const ids = data.sentences.map((sentence) => sentence.id);
  if (ids.length) change({ sentence: nextOf(ids, view.sentence, step) });
};
function nextBest() {
  const heads = ranking().map(([, head]) => head);
  if (heads.length) change({ head: nextOf(heads, view.head) });
}
const KEYBOARD = {
  r: ["next role", () => change({ role: nextOf(roleNames, view.role) })],
  R: ["previous role", () => change({ role: nextOf(roleNames, view.role, -1) })],
  b: ["next best head of the role", nextBest],
  s: ["next sentence", () => anotherSentence(1)],
  S: ["previous sentence", () => anotherSentence(-1)],
  t: ["next task", () => data.tasks.length && change({ task: nextOf(data.tasks, view.task) })],
  x: ["next state", () => data.states.length && change({ state: nextOf(data.states, view.state) })],
  v: ["matrix or lines", () => change({ view: nextOf(Object.keys(VIEWS), view.view) })],
  h: ["hide or show special tokens", () => change({ special: !view.special })],
  o: ["outline the sieve or not", () => change({ sieve: !view.sieve })],
  d: ["attention given or received", () => change({ dir: nextOf(DIRECTIONS, view.dir) })],
  Escape: ["no token", () => change({ token: null })],
  "?": ["this list", () => byId("keys").showModal()],
};
const MOVES = {
  ArrowUp: (layer, head) => [layer + 1, head],
  ArrowDown: (layer, head) => [layer - 1, head],
  ArrowLeft: (layer, head) => [layer, head - 1],
  ArrowRight: (layer, head) => [layer, head + 1],
  Home: (layer) => [layer, 0],
  End: (layer) => [layer, data.heads - 1],
  PageUp: (layer, head) => [data.layers - 1, head],
  PageDown: (layer, head) => [0, head],
};
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
const isShortcut = (event) => event.ctrlKey || event.metaKey || event.altKey; // of the browser

function handleKey(event) {
  if (isShortcut(event) || event.target.closest("select, input, textarea, dialog")) return;
  const action = KEYBOARD[event.key];
  if (!action) return;
  event.preventDefault();
  action[1]();
}

function moveInGrid(event) {
  const move = MOVES[event.key];
  if (!move || isShortcut(event)) return;
  event.preventDefault();
  const [layer, head] = move(...nameOf(view.head).split("-").map(Number));
  const isInside = layer >= 0 && layer < data.layers && head >= 0 && head < data.heads;
  if (isInside) change({ head: layer * data.heads + head });
  cellOf(view.head).focus();
}

function moveInRoles(event) {
  if (!(event.key in STEPS)) return;
  event.preventDefault();
  change({ role: nextOf(roleNames, view.role, STEPS[event.key]) });
  byId("roles").querySelector('[aria-checked="true"]').focus();
}

function moveInTokens(event) {
  if (!(event.key in STEPS) || !currentAttention) return;
  event.preventDefault();
  const { visible, sentence, state, steps } = currentAttention;
  const token = nextOf(visible, Number(event.target.dataset.token ?? visible[0]), STEPS[event.key]);
  change({ token });
  showTokens(contextOf(sentence, state, steps));
  byId("tokens").querySelector(`[data-token="${token}"]`)?.focus();
}

// --- start --------------------------------------------------------------------------------------------------------

function copyLink() {
  const confirmCopy = () => {
    byId("link").textContent = "Copied";
    setTimeout(() => (byId("link").textContent = "Copy link"), 1500);
  };
  const showLink = () => setText(byId("message"), `Link to this view: ${location.href}`);
  navigator.clipboard ? navigator.clipboard.writeText(location.href).then(confirmCopy, showLink) : showLink();
}

function listen() {
  for (const name of ["task", "state", "by", "sentence"]) {
    byId(name).addEventListener("change", (event) => change({ [name]: event.target.value }));
  }
  byId("dose").addEventListener("input", (event) => change({ dose: Number(event.target.value) }));
  const clicks = {
    link: copyLink,
    help: () => byId("keys").showModal(),
    skip: () => cellOf(view.head).focus(),
    next: () => anotherSentence(1),
    previous: () => anotherSentence(-1),
  };
  for (const suffix of ["svg", "png"]) {
    clicks[`heads-${suffix}`] = () => savePicture(headsPicture(), suffix);
    clicks[`attention-${suffix}`] = () => currentAttention && savePicture(attentionPicture(), suffix);
  }
  for (const [name, action] of Object.entries(clicks)) byId(name).addEventListener("click", action);
  const moves = { grid: moveInGrid, roles: moveInRoles, tokens: moveInTokens };
  for (const [name, action] of Object.entries(moves)) byId(name).addEventListener("keydown", action);
  document.addEventListener("keydown", handleKey);
  darkMode.addEventListener("change", showAll);
  window.addEventListener("hashchange", () => {
    readAddress();
    showAll();
  });
  let width = innerWidth;
  window.addEventListener("resize", () => {
    if (innerWidth !== width) showAttention();
    width = innerWidth;
  });
}

function build() {
  setText(byId("message"), "");
  for (const name of ["skip", "header", "main"]) byId(name).hidden = false;
  for (const [name, values] of Object.entries({ task: data.tasks, state: data.states })) {
    replace(byId(name), ...values.map((value) => optionOf(value)));
    byId(`${name}-field`).hidden = values.filter(Boolean).length < 2;
  }
  byId("link").hidden = FRAMED;
  byId("provenance").textContent = data.provenance;
  const keys = [["arrows, Home, End, Page Up, Page Down", ["move in the heads"]], ...Object.entries(KEYBOARD)];
  replace(byId("keys-list"), ...keys.flatMap(([key, [words]]) => [make("dt", {}, key), make("dd", {}, words)]));
  buildGrid();
  fillSentences();
}

async function start() {
  build();
  begin();
  readAddress();
  listen();
  await showAll();
  document.body.dataset.ready = "";
  window.__ready = performance.now();
}

start();

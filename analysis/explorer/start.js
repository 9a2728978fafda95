// --- which part of the page depends on what -----------------------------------------------------------------------

const SCORES = ["task", "state"];
const PARTS = [
  [showRoles, hasScores ? SCORES : ["sentence", "state"]],
  [markRole, ["role"]],
  [fillModes, [...SCORES, "role"]],
  [showChoices, [...SCORES, "by"]],
  [showGrid, [...SCORES, "role", "by", ...(hasScores ? [] : ["sentence"])]],
  [() => ["attention", "sentence"].includes(view.by) && showGrid(), ["sentence"]],
  [showHead, ["head"]],
  [showTop, [...SCORES, "role", ...(hasScores ? [] : ["sentence"])]],
  [showCard, [...SCORES, "role", "head"]],
  [showTables, [...SCORES, "role", "head"]],
  [announce, ["head", "role", "task", "state"]],
  [showAttention, [...SCORES, "role", "head", "sentence", "view", "token", "special", "sieve", "dir"]],
  [writeAddress, Object.keys(READ)],
];

function show(changed) {
  return Promise.all(
    PARTS.filter(([, needs]) => needs.some((name) => changed.includes(name))).map(([part]) => part()),
  );
}
const showAll = () => show(Object.keys(view));

function markRole() {
  for (const button of byId("roles").children) {
    const chosen = button.dataset.role === view.role;
    filled(button, { "aria-checked": String(chosen), tabindex: chosen ? 0 : -1 }, []);
  }
}

function fillModes() {
  const modes = modesHere();
  const option = ([name, mode]) => make("option", { value: name }, mode.title);
  const groups = [...new Set(modes.map(([, { group }]) => group).filter(Boolean))];
  replace(
    byId("by"),
    ...modes.filter(([, { group }]) => !group).map(option),
    ...groups.map(
      (group) => make("optgroup", { label: group }, ...modes.filter(([, mode]) => mode.group === group).map(option)),
    ),
  );
  byId("by").value = view.by;
}

function showChoices() {
  for (const name of ["task", "state", "by"]) byId(name).value = view[name];
}

function announce() {
  const entry = entryOf();
  const mean = entry?.mean[view.head] ?? null;
  const words = entry
    ? `, ${view.role} ${mean === null ? "" : short(mean)} ${verdictOf(entry, view.head).words}`
    : "";
  byId("live").textContent = `Head ${nameOf(view.head)}${words}`;
}

// --- keys ---------------------------------------------------------------------------------------------------------

const anotherSentence = (step) => {
  const ids = data.sentences.map((sentence) => sentence.id);
  if (ids.length) change({ sentence: following(ids, view.sentence, step) });
};
function nextBest() {
  const heads = ranking().map(([, head]) => head);
  if (heads.length) change({ head: following(heads, view.head) });
}
const KEYBOARD = {
  r: ["next role", () => change({ role: following(roleNames, view.role) })],
  R: ["previous role", () => change({ role: following(roleNames, view.role, -1) })],
  b: ["next best head of the role", nextBest],
  s: ["next sentence", () => anotherSentence(1)],
  S: ["previous sentence", () => anotherSentence(-1)],
  t: ["next task", () => data.tasks.length && change({ task: following(data.tasks, view.task) })],
  x: ["next state", () => data.states.length && change({ state: following(data.states, view.state) })],
  v: ["matrix or lines", () => change({ view: following(Object.keys(VIEWS), view.view) })],
  h: ["hide or show special tokens", () => change({ special: !view.special })],
  o: ["outline the sieve or not", () => change({ sieve: !view.sieve })],
  d: ["attention given or received", () => change({ dir: following(DIRECTIONS, view.dir) })],
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

function pressed(event) {
  if (
    event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, input, textarea, dialog")
  ) return;
  const action = KEYBOARD[event.key];
  if (!action) return;
  event.preventDefault();
  action[1]();
}

function moveInGrid(event) {
  const move = MOVES[event.key];
  if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const [layer, head] = move(...nameOf(view.head).split("-").map(Number));
  if (
    layer >= 0 && layer < data.layers && head >= 0 && head < data.heads
  ) change({ head: layer * data.heads + head });
  cellOf(view.head).focus();
}

function moveInRoles(event) {
  if (!(event.key in STEPS)) return;
  event.preventDefault();
  change({ role: following(roleNames, view.role, STEPS[event.key]) });
  byId("roles").querySelector('[aria-checked="true"]').focus();
}

function moveInTokens(event) {
  if (!(event.key in STEPS) || !shownAttention) return;
  event.preventDefault();
  const now = Number(event.target.dataset.token ?? shownAttention.shown[0]);
  const token = following(shownAttention.shown, now, STEPS[event.key]);
  change({ token });
  showTokens(contextOf(shownAttention.sentence, shownAttention.state, shownAttention.steps));
  byId("tokens").querySelector(`[data-token="${token}"]`)?.focus();
}

// --- start --------------------------------------------------------------------------------------------------------

function copyLink() {
  const done = () => tellFor(byId("link"), "Copied");
  const selectable = () => tell(byId("message"), `Link to this view: ${location.href}`);
  navigator.clipboard ? navigator.clipboard.writeText(location.href).then(done, selectable) : selectable();
}

function tellFor(button, text) {
  const before = button.textContent;
  button.textContent = text;
  setTimeout(() => (button.textContent = before), 1500);
}

function listen() {
  for (const name of ["task", "state", "by", "sentence"]) byId(name).addEventListener(
    "change",
    (event) => change({ [name]: event.target.value }),
  );
  const clicks = {
    link: copyLink,
    help: () => byId("keys").showModal(),
    skip: () => cellOf(view.head).focus(),
    next: () => anotherSentence(1),
    previous: () => anotherSentence(-1),
    "heads-csv": saveHeadsTable,
    "heads-svg": saveHeadsPicture,
    "attention-csv": () => shownAttention && saveAttentionTable(),
    "attention-svg": () => shownAttention && saveAttentionPicture(),
  };
  for (const [name, action] of Object.entries(clicks)) byId(name).addEventListener("click", action);
  const moves = { grid: moveInGrid, roles: moveInRoles, tokens: moveInTokens };
  for (const [name, action] of Object.entries(moves)) byId(name).addEventListener("keydown", action);
  document.addEventListener("keydown", pressed);
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
  tell(byId("message"), "");
  for (const name of ["skip", "header", "main"]) byId(name).hidden = false;
  const option = (name) => make("option", { value: name }, name);
  replace(byId("task"), ...data.tasks.map(option));
  replace(byId("state"), ...data.states.map(option));
  byId("task-field").hidden = data.tasks.filter(Boolean).length < 2;
  byId("state-field").hidden = data.states.filter(Boolean).length < 2;
  byId("link").hidden = FRAMED;
  byId("provenance").textContent = data.provenance;
  replace(
    byId("keys-list"),
    ...[
      ["arrows, Home, End, Page Up, Page Down", ["move in the heads"]],
      ...Object.entries(KEYBOARD),
    ].flatMap(([key, [words]]) => [make("dt", {}, key), make("dd", {}, words)]),
  );
  const left = data.left_out.map(({ id, tokens }) => `${id} (${tokens} tokens)`).join(", ");
  const notes = [
    left && `Left out, since the page would be too large: ${left}.`,
    "Nothing on this page is loaded from the network.",
  ];
  byId("footer").textContent = notes.filter(Boolean).join(" ");
  buildGrid();
  fillSentences();
  showClaims();
}

async function start() {
  build();
  begin();
  const wanted = new URLSearchParams(location.hash.slice(1)).get("by");
  readAddress();
  listen();
  await showAll();
  document.body.dataset.ready = "";
  window.__ready = performance.now();
  await readTables();
  fillModes();
  showTables();
  if (wanted && READ.by(wanted)) change({ by: wanted });
  document.body.dataset.tables = "";
}

start();

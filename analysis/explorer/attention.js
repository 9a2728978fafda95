// --- attention on a sentence --------------------------------------------------------------------------------------

const DIRECTION_WORDS = { given: "Showing: attention given", received: "Showing: attention received" };
const attentionState = ({ attention }) => (view.state in attention ? view.state : Object.keys(attention)[0]);
const stepColours = (T) => Array.from(WEIGHTS, (weight) => scoreColour(weight * T));
let currentAttention = null; // what the last drawing was made of, for saving and pointing
let requests = 0;

async function showAttention() {
  const sentence = sentenceOf(view.sentence);
  const request = ++requests;
  byId("attention-tools").hidden = byId("attention-files").hidden = !sentence;
  showTools();
  if (!sentence || !UNPACKS) return showNoAttention(sentence);
  const state = attentionState(sentence);
  const steps = await mapsOf(sentence, state);
  if (request !== requests) return; // another sentence was chosen meanwhile
  currentAttention = contextOf(sentence, state, steps);
  const origin = sentence.task ? `a sentence of ${sentence.task}` : "this text";
  const size = `${sentence.tokens.length} tokens`;
  byId("h-attention").textContent = `Attention of head ${nameOf(view.head)} on ${origin} (${size})`;
  setText(byId("attention-warning"), stateWarning(state));
  showTokens(currentAttention);
  byId("words").textContent = inWords(currentAttention);
  showScore(sentence);
  showMap(currentAttention);
  document.body.dataset.drawn = [sentence.id, state, nameOf(view.head)].join("|");
}

function showNoAttention(sentence) {
  currentAttention = null;
  byId("h-attention").textContent = "Attention";
  const reason = sentence
    ? "This browser lacks DecompressionStream, which unpacks attention. Scores and labels still work; a newer browser shows attention too."
    : `No sentence${view.task ? ` of ${view.task}` : ""} is packed in this page.`;
  setText(byId("attention-warning"), reason);
  for (const part of ["tokens", "map", "words", "score", "about", "weight"]) replace(byId(part));
  document.body.dataset.drawn = "";
}

function contextOf(sentence, state, steps) {
  const T = sentence.tokens.length;
  const visible = sentence.tokens.map((_, i) => i).filter((i) => view.special || sentence.text[i] >= 0);
  const weight = weightIn(steps, view.head, T);
  return { sentence, state, steps, T, visible, weight, mask: maskOf(sentence, view.role), colours: stepColours(T) };
}

function stateWarning(state) {
  if (!view.state || state === view.state) return "";
  return `Attention shown is that of the ${state} encoder: this page holds none of the ${view.state} one on this sentence.`;
}

// --- tools --------------------------------------------------------------------------------------------------------

function showTools() {
  const button = (label, attributes, part) =>
    make("button", { type: "button", ...attributes, click: () => change(part) }, label);
  const toggle = (label, isOn, part) => button(label, { "aria-pressed": String(isOn) }, part);
  replace(
    byId("toggles"),
    ...Object.entries(VIEWS).map(([name, title]) => toggle(title, view.view === name, { view: name })),
    toggle("Hide special tokens", !view.special, { special: !view.special }),
    toggle("Outline the role's sieve", view.sieve, { sieve: !view.sieve }),
    button(DIRECTION_WORDS[view.dir], { id: "direction" }, { dir: nextOf(DIRECTIONS, view.dir) }),
  );
  byId("sentence").value = view.sentence;
}

function fillSentences() {
  const title = ({ a }) => (a.length > 70 ? `${a.slice(0, 70)}…` : a);
  const option = (sentence) => make("option", { value: sentence.id }, title(sentence));
  const tasks = [...new Set(data.sentences.map((sentence) => sentence.task))];
  const group = (task) => data.sentences.filter((sentence) => sentence.task === task).map(option);
  const groups = tasks.flatMap((task) => (task ? [make("optgroup", { label: task }, ...group(task))] : group(task)));
  replace(byId("sentence"), ...groups);
  byId("sentence").closest(".chips").hidden = data.sentences.length < 2;
}

// --- tokens and words ---------------------------------------------------------------------------------------------

// Attention that token j receives, or gives, in the view: that of the selected token, else the mean over visible ones.
function massOf({ visible, weight }, j) {
  if (view.token === null) return visible.reduce((sum, i) => sum + weight(i, j), 0) / visible.length;
  return view.dir === "given" ? weight(view.token, j) : weight(j, view.token);
}

function tokenButton(context, i) {
  const { sentence, visible, T } = context;
  const colour = scoreColour(massOf(context, i) * T);
  const isSelected = i === view.token;
  const attributes = {
    type: "button",
    class: sentence.text[i] < 0 ? "token special" : "token",
    "data-token": i,
    "aria-pressed": String(isSelected),
    "aria-label": `${piece(sentence.tokens[i])}, ${percent(massOf(context, i))}`,
    tabindex: isSelected || (view.token === null && i === visible[0]) ? 0 : -1,
    style: `background: ${css(colour)}; color: ${inkOn(colour)}`,
    click: () => change({ token: isSelected ? null : i }),
  };
  return make("button", attributes, piece(sentence.tokens[i]));
}

// Two texts stand on two lines.
function showTokens(context) {
  const { sentence, visible } = context;
  const end = sentence.b === null ? -1 : visible.filter((i) => i <= sentence.sep[0]).at(-1);
  const parts = visible.map((i) => [tokenButton(context, i), ...(i === end ? [make("br")] : [])]);
  replace(byId("tokens"), ...parts.flat());
}

function inWords(context) {
  const { sentence, visible } = context;
  const largest = visible.map((j) => [massOf(context, j), j]).sort((a, b) => b[0] - a[0]).slice(0, 3);
  const list = largest.map(([mass, j]) => `${piece(sentence.tokens[j])} ${percent(mass)}`).join(", ");
  if (view.token === null) return `On average over the tokens shown, attention goes to: ${list}`;
  const token = `“${piece(sentence.tokens[view.token])}” (position ${view.token})`;
  return view.dir === "given" ? `${token} attends most to: ${list}` : `${token} gets most attention from: ${list}`;
}

function showScore(sentence) {
  const score = sentence.scores[view.role] && exact(sentenceScores()[view.head]);
  const mean = entryOf()?.mean[view.head] ?? null;
  const ofTask = mean === null ? "." : `; mean over the ${view.task} sample ${exact(mean)}.`;
  const bold = (text) => make("strong", {}, text);
  const parts = score
    ? ["Role ", bold(view.role), " on this sentence: score ", bold(score), ofTask]
    : [`This sentence does not have the role ${view.role}.`];
  replace(byId("score"), ...(view.role ? parts : []));
  const notes = [
    data.roles.find((role) => role.name === view.role)?.about,
    view.sieve && score && "Outlined: the cells that the sieve names.",
    "Rows attend to columns; colour: times more than uniform attention, as in the grid.",
    !view.special && "Weights stay shares of all tokens, hidden ones included.",
    sentence.cut > 0 && `The end of the text was cut: ${sentence.cut} tokens.`,
  ];
  byId("about").textContent = notes.filter(Boolean).join(" ");
}

// --- attention on a sentence --------------------------------------------------------------------------------------

const DIRECTION_WORDS = { given: "Showing: attention given", received: "Showing: attention received" };
const attentionState = (sentence) => (
  view.state in sentence.attention ? view.state : Object.keys(sentence.attention)[0]
);
const stepColours = (T) => Array.from(WEIGHTS, (weight) => scoreColour(weight * T));
let shownAttention = null; // what the last drawing was made of, for saving and pointing
let requested = 0;

async function showAttention() {
  const sentence = sentenceOf(view.sentence);
  const ticket = ++requested;
  byId("attention-tools").hidden = byId("attention-files").hidden = !sentence;
  showTools();
  if (!sentence || !UNPACKS) return withoutAttention(sentence);
  const state = attentionState(sentence);
  const steps = await mapsOf(sentence, state);
  if (ticket !== requested) return; // another sentence was chosen meanwhile
  shownAttention = contextOf(sentence, state, steps);
  const origin = sentence.task ? `a sentence of ${sentence.task}` : "this text";
  byId("h-attention").textContent = `Attention of head ${nameOf(view.head)} on ${origin} (${sentence.tokens.length} tokens)`;
  tell(byId("attention-warning"), stateWarning(sentence, state));
  showTokens(shownAttention);
  byId("words").textContent = inWords(shownAttention);
  showScore(sentence);
  showMap(shownAttention);
  document.body.dataset.drawn = [sentence.id, state, nameOf(view.head)].join("|");
}

function withoutAttention(sentence) {
  shownAttention = null;
  byId("h-attention").textContent = "Attention";
  const reason = sentence
    ? "This browser cannot unpack the attention of this page: it lacks DecompressionStream. Scores and labels still work; a newer browser shows attention too."
    : `No sentence${view.task ? ` of ${view.task}` : ""} is packed in this page.`;
  tell(byId("attention-warning"), reason);
  for (const part of ["tokens", "map", "words", "score", "about", "weight"]) replace(byId(part));
  document.body.dataset.drawn = "";
}

function contextOf(sentence, state, steps) {
  const T = sentence.tokens.length;
  const shown = sentence.tokens.map((_, i) => i).filter((i) => view.special || sentence.text[i] >= 0);
  const weight = weightIn(steps, view.head, T);
  return { sentence, state, steps, T, shown, weight, mask: maskOf(sentence, view.role), colours: stepColours(T) };
}

function stateWarning(sentence, state) {
  if (!view.state || state === view.state) return "";
  return `Attention shown is that of the ${state} encoder: this page holds no attention of the ${view.state} one on this sentence.`;
}

// --- tools --------------------------------------------------------------------------------------------------------

function showTools() {
  const toggle = (label, pressed, part) => make(
    "button",
    { type: "button", "aria-pressed": String(pressed), click: () => change(part) },
    label,
  );
  replace(
    byId("toggles"),
    ...Object.entries(VIEWS).map(([name, title]) => toggle(title, view.view === name, { view: name })),
    toggle("Hide special tokens", !view.special, { special: !view.special }),
    toggle("Outline the role's sieve", view.sieve, { sieve: !view.sieve }),
    make(
      "button",
      { type: "button", id: "direction", click: () => change({ dir: following(DIRECTIONS, view.dir) }) },
      DIRECTION_WORDS[view.dir],
    ),
  );
  byId("sentence").value = view.sentence;
}

function fillSentences() {
  const title = ({ task, a }) => (a.length > 70 ? `${a.slice(0, 70)}…` : a);
  const option = (sentence) => make("option", { value: sentence.id }, title(sentence));
  const tasks = [...new Set(data.sentences.map((sentence) => sentence.task))];
  const group = (task) => data.sentences.filter((sentence) => sentence.task === task).map(option);
  replace(
    byId("sentence"),
    ...tasks.flatMap((task) => (task ? [make("optgroup", { label: task }, ...group(task))] : group(task))),
  );
  byId("sentence").closest(".chips").hidden = data.sentences.length < 2;
}

// --- tokens and words ---------------------------------------------------------------------------------------------

// Attention that token j gets, or gives, in the view: that of the chosen token, else the mean over the shown ones.
function massOf({ shown, weight }, j) {
  if (view.token === null) return shown.reduce((sum, i) => sum + weight(i, j), 0) / shown.length;
  return view.dir === "given" ? weight(view.token, j) : weight(j, view.token);
}

function showTokens(context) {
  const { sentence, shown, T } = context;
  const end = sentence.b === null ? -1 : sentence.sep[0];
  const parts = shown.flatMap((i) => {
    const colour = scoreColour(massOf(context, i) * T);
    const chosen = i === view.token;
    const token = make(
      "button",
      {
        type: "button",
        class: sentence.text[i] < 0 ? "token special" : "token",
        "data-token": i,
        "aria-pressed": String(chosen),
        "aria-label": `${piece(sentence.tokens[i])}, ${percent(massOf(context, i))}`,
        tabindex: chosen || (view.token === null && i === shown[0]) ? 0 : -1,
        style: `background: ${css(colour)}; color: ${inkOn(colour)}`,
        click: () => change({ token: chosen ? null : i }),
      },
      piece(sentence.tokens[i]),
    );
    return lastOfFirstText(sentence, shown, i, end) ? [token, make("br")] : [token];
  });
  replace(byId("tokens"), ...parts);
}

const lastOfFirstText = ({ text }, shown, i, end) => end >= 0 && (
  i === end || (!shown.includes(end) && text[i] === 0 && i === shown.findLast((j) => text[j] === 0))
);

function inWords(context) {
  const { sentence, shown } = context;
  const largest = shown.map((j) => [massOf(context, j), j]).sort((a, b) => b[0] - a[0]).slice(0, 3);
  const list = largest.map(([mass, j]) => `${piece(sentence.tokens[j])} ${percent(mass)}`).join(", ");
  if (view.token === null) return `On average over the tokens shown, attention goes to: ${list}`;
  const token = `“${piece(sentence.tokens[view.token])}” (position ${view.token})`;
  return view.dir === "given" ? `${token} attends most to: ${list}` : `${token} gets most attention from: ${list}`;
}

function showScore(sentence) {
  const scores = sentence.scores[view.role];
  const own = scores?.[view.state] ?? scores?.[attentionState(sentence)];
  const mean = entryOf()?.mean[view.head] ?? null;
  const parts = scores
    ? [
      "Role ",
      make("strong", {}, view.role),
      " on this sentence: score ",
      make("strong", {}, exact(own?.[view.head])),
      mean === null ? "." : `; mean over the ${view.task} sample ${exact(mean)}.`,
    ]
    : [`This sentence does not have the role ${view.role}.`];
  replace(byId("score"), ...(view.role ? parts : []));
  const { about } = data.roles.find((role) => role.name === view.role) ?? { about: "" };
  const outlined = view.sieve && scores ? " Outlined: the cells that the sieve names." : "";
  const cut = sentence.cut ? ` The end of the text was cut: ${sentence.cut} tokens.` : "";
  const hidden = view.special ? "" : " Weights stay shares of all tokens, hidden ones included.";
  byId("about").textContent = `${about}${outlined} Rows attend to columns; colour: times more than uniform attention, as in the grid.${hidden}${cut}`;
}

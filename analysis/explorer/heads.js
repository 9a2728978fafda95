// --- roles and grid -----------------------------------------------------------------------------------------------

function roleButton({ name, about }) {
  const entry = entryOf(name);
  const scores = hasScores ? entry?.mean : sentenceScores(name);
  const canvas = pixels(make("canvas", { "aria-hidden": "true" }), data.heads, data.layers, (x, y) => {
    const value = scores?.[(data.layers - 1 - y) * data.heads + x] ?? null;
    return value === null ? null : scoreColour(value);
  });
  const codes = [...(entry?.[LABELS[0]] ?? "")];
  const count = codes.filter((code) => code === "1").length;
  const tested = codes.filter((code) => code === "0" || code === "1").length;
  const text = !hasScores ? "" : !entry ? "not scored" : tested ? `${count}/${tested}` : "not applicable";
  const words = tested ? `${count} of ${tested} heads, ${LABELS[0]} label` : text;
  const attributes = {
    type: "button",
    class: "role",
    role: "radio",
    "aria-checked": String(name === view.role),
    "aria-label": `${name}: ${words}`,
    title: about,
    tabindex: name === view.role ? 0 : -1,
    "data-role": name,
    click: () => change({ role: name }),
  };
  const title = note(make("span", { class: "role-name" }, name), make("span", { class: "count" }, text));
  return make("button", attributes, title, canvas);
}

function showRoles() {
  byId("roles-section").hidden = roleNames.length === 0;
  replace(byId("roles"), ...data.roles.map(roleButton));
}

function buildGrid() {
  const body = byId("grid").tBodies[0];
  for (let layer = data.layers - 1; layer >= 0; layer--) {
    const row = make("tr", { role: "row" }, make("th", { scope: "row", role: "rowheader" }, String(layer)));
    for (let head = 0; head < data.heads; head++) {
      row.append(make("td", { role: "gridcell", "data-h": layer * data.heads + head }));
    }
    body.append(row);
  }
  const corner = make("th", {}, make("span", { class: "unseen" }, "layer upwards, head to the right"));
  const title = (head) => make("th", { scope: "col", role: "columnheader" }, String(head));
  body.append(make("tr", { role: "row" }, corner, ...Array.from({ length: data.heads }, (_, head) => title(head))));
  body.addEventListener("click", (event) => {
    const cell = event.target.closest("td");
    if (cell) change({ head: Number(cell.dataset.h) });
  });
}

const cells = () => [...byId("grid").querySelectorAll("td")];
const cellOf = (head) => byId("grid").querySelector(`td[data-h="${head}"]`);

function gridContent() {
  const [mode, entry] = [MODES[view.by], entryOf()];
  const numbers = mode?.numbers?.();
  return Array.from({ length: HEADS }, (_, head) => mode?.cell(entry, head, numbers) ?? plainCell());
}

function gridTitle() {
  const { title, ofRole } = MODES[view.by] ?? { title: "" };
  return `${data.layers} × ${data.heads} heads: ${title}${ofRole ? ` of ${view.role}` : ""}`;
}

function showGrid() {
  byId("heads-title").textContent = gridTitle();
  gridContent().forEach(({ text, colour, mark, words }, head) => {
    const cell = cellOf(head);
    cell.className = [text, mark].includes(NOT_APPLICABLE.mark) ? "not-applicable" : "";
    cell.style.backgroundColor = colour ? css(colour) : "";
    cell.style.color = colour ? inkOn(colour) : "";
    cell.setAttribute("aria-label", `layer ${nameOf(head).replace("-", " head ")}: ${words}`);
    const isMarked = mark && mark !== text;
    replace(cell, text, ...(isMarked ? [make("span", { class: "mark", "aria-hidden": "true" }, mark)] : []));
  });
  setText(byId("heads-warning"), missingScores());
  const mode = MODES[view.by];
  replace(byId("legend"), note("layer upwards, head to the right"), ...(mode?.legend(mode.numbers?.()) ?? []));
  showHead();
  if (view.by === "attention") showThumbnails();
}

function missingScores() {
  if (!hasScores || !view.task) return "";
  if (!scoresIn(view.task, view.state)) {
    return `There are no scores of ${view.task}, ${view.state}: run make reproduce for this profile, then build the page again.`;
  }
  return entryOf() ? "" : `The role ${view.role} is not scored in this task and state.`;
}

async function showThumbnails() {
  const sentence = sentenceOf(view.sentence);
  if (!sentence || !UNPACKS) return;
  const steps = await mapsOf(sentence, attentionState(sentence));
  if (view.by !== "attention" || view.sentence !== sentence.id) return;
  const T = sentence.tokens.length;
  const colours = stepColours(T);
  for (const cell of cells()) {
    const offset = Number(cell.dataset.h) * T * T;
    cell.style.backgroundColor = "";
    const colourAt = (x, y) => colours[steps[offset + y * T + x]];
    replace(cell, pixels(make("canvas", { "aria-hidden": "true" }), T, T, colourAt));
  }
}

// --- the selected head --------------------------------------------------------------------------------------------

function showHead() {
  for (const cell of cells()) {
    const isSelected = Number(cell.dataset.h) === view.head;
    filled(cell, { "aria-selected": String(isSelected), tabindex: isSelected ? 0 : -1 }, []);
  }
}

function ranking() {
  const scores = entryOf()?.mean ?? (hasScores ? [] : sentenceScores() ?? []);
  const pairs = scores.map((score, head) => [score, head]).filter(([score]) => score !== null);
  return pairs.sort((a, b) => b[0] - a[0] || a[1] - b[1]);
}

function showTop() {
  const best = ranking().slice(0, 10);
  byId("top-section").hidden = best.length === 0;
  byId("top-title").textContent = `Highest heads of ${view.role}${hasScores ? "" : " on this text"}:`;
  const button = ([score, head]) => make(
    "button",
    { type: "button", "data-head": nameOf(head), click: () => change({ head }) },
    `${nameOf(head)} ${short(score)}`,
  );
  replace(byId("top"), ...best.map(button));
}

// --- roles and grid -----------------------------------------------------------------------------------------------

function showRoles() {
  byId("roles-section").hidden = roleNames.length === 0;
  const here = scoresIn(view.task, view.state);
  const scores = (role) => (
    hasScores
      ? here?.[role]?.mean
      : sentenceOf(view.sentence)?.scores[role] && Object.values(sentenceOf(view.sentence).scores[role])[0]
  );
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
      {
        type: "button",
        class: "role",
        role: "radio",
        "aria-checked": String(chosen),
        "aria-label": words,
        title: about,
        tabindex: chosen ? 0 : -1,
        "data-role": name,
        click: () => change({ role: name }),
      },
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
      row.append(
        make("td", { role: "gridcell", tabindex: -1, "data-h": layer * data.heads + head, "aria-selected": "false" }),
      );
    }
    body.append(row);
  }
  const numbers = Array.from(
    { length: data.heads },
    (_, head) => make("th", { scope: "col", role: "columnheader" }, String(head)),
  );
  body.append(
    make(
      "tr",
      { role: "row" },
      make("th", {}, make("span", { class: "unseen" }, "layer upwards, head to the right")),
      ...numbers,
    ),
  );
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
    replace(
      cell,
      text,
      ...(mark && mark !== text ? [make("span", { class: "mark", "aria-hidden": "true" }, mark)] : []),
    );
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
  if (
    !scoresIn(view.task, view.state)
  ) return `There are no scores of ${view.task}, ${view.state}: run make reproduce for this profile, then build the page again.`;
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
    replace(
      cell,
      pixels(make("canvas", { "aria-hidden": "true" }), T, T, (x, y) => colours[steps[offset + y * T + x]]),
    );
  }
}

function showLegend() {
  const stops = Array.from({ length: 12 }, (_, i) => i / 11);
  const scale = (colourAt, low, high) => [
    make(
      "span",
      {},
      low,
      make(
        "span",
        {
          class: "ramp",
          style: `background: linear-gradient(to right, ${stops.map((stop) => css(colourAt(stop))).join(", ")})`,
        },
      ),
      high,
    ),
  ];
  const seen = Array.from({ length: HEADS }, (_, head) => verdictOf(entryOf(), head).mark);
  const marks = (wanted = [...seen, ...LEGEND_ALWAYS]) => VERDICTS.filter(({ mark }) => mark && wanted.includes(mark)).map(
    ({ mark, words }) => make("span", {}, `${mark} ${words}`),
  );
  const shades = () => VERDICTS.filter(({ shade, mark }) => shade !== undefined && seen.includes(mark)).map(
    ({ mark, words, shade }) => make(
      "span",
      {},
      make("span", { class: "swatch", style: `background: ${css(ramp(shade))}` }),
      `${mark} ${words}`,
    ),
  );
  const scores = () => [...scale(ramp, "0 ", ` ${CAP}+`), make("span", {}, `τ = ${data.tau}, uniform = 1`)];
  const parts = {
    mean: () => [...scores(), ...marks()],
    labels: () => [...shades(), ...marks(LEGEND_ALWAYS), make("span", {}, "number: mean score")],
    change: () => [
      ...scale((stop) => changeColour(2 * stop - 1), "− ", " +"),
      make("span", {}, `${view.state} minus ${otherState()}`),
      ...marks(),
    ],
    roles: () => [...scale(ramp, "0 ", ` ${roleNames.length}`), make("span", {}, `roles by the ${countRule} label`)],
    attention: () => [
      ...scale(ramp, "0 ", ` ${CAP}+`),
      make("span", {}, "times uniform attention; rows attend to columns"),
    ],
    sentence: () => scores(),
  };
  replace(
    byId("legend"),
    make("span", {}, "layer upwards, head to the right"),
    ...(parts[view.by] ?? columnLegend)(scale),
  );
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
  return scores.map((score, head) => [score, head]).filter(([score]) => score !== null).sort(
    (a, b) => b[0] - a[0] || a[1] - b[1],
  );
};

function showTop() {
  const best = ranking().slice(0, 10);
  byId("top-section").hidden = best.length === 0;
  byId("top-title").textContent = `Highest heads of ${view.role}${hasScores ? "" : " on this text"}:`;
  replace(
    byId("top"),
    ...best.map(
      ([score, head]) => make(
        "button",
        { type: "button", "data-head": nameOf(head), click: () => change({ head }) },
        `${nameOf(head)} ${short(score)}`,
      ),
    ),
  );
}

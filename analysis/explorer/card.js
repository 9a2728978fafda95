// --- the card of a head -------------------------------------------------------------------------------------------

const AXIS = { width: 124, height: 16, low: 0.25 };
const shareHere = () => Object.values(scoresIn(view.task, view.state) ?? {}).some((entry) => "share" in entry);

function axis() {
  const highs = Object.values(data.scores).flatMap(
    (states) => Object.values(states).flatMap(
      (roles) => Object.values(roles).map((entry) => Math.max(...entry.mean.map((mean) => mean ?? 0))),
    ),
  );
  const high = Math.max(10 * data.tau, ...highs) * 1.2;
  const span = Math.log(high / AXIS.low);
  return (value) => 4 + ((AXIS.width - 8) * Math.log(Math.min(Math.max(value, AXIS.low), high) / AXIS.low)) / span;
}
const place = axis();

function scoreDrawing(entry, other, head) {
  const { ink, outline, uniform } = look();
  const middle = AXIS.height / 2;
  const upright = (value, colour, dash) => draw(
    "line",
    { x1: place(value), x2: place(value), y1: 0, y2: AXIS.height, stroke: colour, "stroke-dasharray": dash },
  );
  const parts = [upright(1, uniform, null), upright(data.tau, outline, "2 2")];
  const [mean, low, high] = ["mean", "low", "high"].map((name) => entry[name]?.[head] ?? null);
  if (other?.mean[head] > 0) parts.push(
    draw("circle", { class: "ring", cx: place(other.mean[head]), cy: middle, r: 4.5, fill: "none", stroke: ink }),
  );
  if (low !== null && high !== null) parts.push(
    draw("line", { x1: place(low), x2: place(high), y1: middle, y2: middle, stroke: ink, "stroke-width": 2 }),
  );
  if (mean !== null) parts.push(draw("circle", { class: "dot", cx: place(mean), cy: middle, r: 3, fill: ink }));
  return draw(
    "svg",
    { width: AXIS.width, height: AXIS.height, role: "img", "aria-label": `score ${exact(mean)}` },
    ...parts,
  );
}

function rankOf(entry, head) {
  const mean = entry.mean[head];
  const scored = entry.mean.filter((each) => each !== null);
  return mean === null ? PLAIN : `${1 + scored.filter((each) => each > mean).length}/${scored.length}`;
}

const yesNo = (code) => ({ 1: ["yes", "yes"], 0: ["no", "no"], "?": ["untestable", "no"] })[code] ?? [PLAIN, "no"];

function labelCells(entry, head) {
  const status = statusOf(entry, head);
  if (untestable(entry, head)) {
    const text = status.startsWith("untestable") ? status : "untestable";
    return [make("td", { colspan: LABELS_HERE.length, class: "no", "data-name": "labels" }, text)];
  }
  return LABELS_HERE.map(([label]) => {
    const [text, style] = yesNo(entry[label]?.[head]);
    return make("td", { class: style, "data-name": label }, text === "yes" ? "● yes" : text);
  });
}

function intervalOf(entry, head) {
  const [mean, low, high] = ["mean", "low", "high"].map((name) => entry[name]?.[head] ?? null);
  return low === null || high === null ? exact(mean) : `${exact(mean)} [${exact(low)}, ${exact(high)}]`;
}

function cardRow(role, entry, other) {
  const head = view.head;
  const name = make("th", { scope: "row" }, make("button", { type: "button", click: () => change({ role }) }, role));
  const chosen = role === view.role ? { class: "chosen" } : {};
  if (!entry || entry.published[head] === "-") {
    return make(
      "tr",
      { ...chosen, "data-role": role },
      name,
      make("td", { colspan: columnsOfCard().length - 1, class: "no" }, "not scored in this task and state"),
    );
  }
  const mean = entry.mean[head];
  const difference = other && mean !== null && other.mean[head] !== null ? signed(mean - other.mean[head]) : PLAIN;
  const cells = [
    make("td", {}, scoreDrawing(entry, other, head)),
    make("td", { "data-name": "mean" }, intervalOf(entry, head)),
    ...labelCells(entry, head),
  ];
  if (shareHere()) cells.push(
    make(
      "td",
      { "data-name": "control share", title: entry.control ? `control: ${entry.control}` : "" },
      exact(entry.share?.[head]),
    ),
  );
  cells.push(make("td", { "data-name": "rank" }, rankOf(entry, head)));
  if (otherState() !== undefined) cells.push(make("td", { "data-name": `Δ ${otherState()}` }, difference));
  cells.push(make("td", { "data-name": "n" }, String(sizeOf(entry, head))));
  return make("tr", { ...chosen, "data-role": role }, name, ...cells);
}

function columnsOfCard() {
  const interval = `mean [${Math.round(100 * (1 - data.alpha))} %]`;
  const share = shareHere() ? ["control share"] : [];
  const change = otherState() === undefined ? [] : [`Δ ${otherState().slice(0, 4)}.`];
  return [
    "role",
    "score (log scale)",
    interval,
    ...LABELS_HERE.map(([, title]) => title),
    ...share,
    "rank",
    ...change,
    "n",
  ];
}

function showCard() {
  byId("card-section").hidden = !hasScores;
  const [layer, head] = nameOf(view.head).split("-");
  const where = [view.task, view.state].filter(Boolean).join(", ");
  byId("h-card").textContent = `Head ${nameOf(view.head)} (layer ${layer}, head ${head})${where ? ` · ${where}` : ""}`;
  if (!hasScores) return;
  const [here, there] = [scoresIn(view.task, view.state) ?? {}, scoresIn(view.task, otherState()) ?? {}];
  const scoredRoles = roleNames.filter(
    (role) => Object.values(data.scores).some((states) => Object.values(states).some((roles) => role in roles)),
  );
  replace(byId("card").tHead, make("tr", {}, ...columnsOfCard().map((title) => make("th", { scope: "col" }, title))));
  replace(byId("card").tBodies[0], ...scoredRoles.map((role) => cardRow(role, here[role], there[role])));
  const control = shareHere() ? " Control share: what the role's control scores, as a part of the head's score." : "";
  const ring = otherState() === undefined ? "" : ` Ring and Δ: against ${otherState()}.`;
  byId("card-legend").textContent = `Grey line: 1, a uniform head. Dashed: τ = ${data.tau}.${ring}${control}`;
}

// --- the dial: how the classifier answers while its matching heads look elsewhere ---------------------------------

const DIAL = { width: 300, height: 110, left: 34, bottom: 20, top: 8 };
const TARGETS = { across: "to the other text", own: "to their own text" };
const odds = (logit) => 1 / (1 + Math.exp(-logit));

function showDial() {
  const dial = data.dials[view.sentence];
  byId("dial").hidden = !dial;
  if (!dial) return;
  const dose = percent(dial.doses[view.dose]);
  const slider = byId("dose");
  slider.max = dial.doses.length - 1;
  slider.value = view.dose;
  slider.setAttribute("aria-valuetext", dose);
  const answer = (name) => `${exact(dial[name][view.dose])} (p ${odds(dial[name][view.dose]).toFixed(2)})`;
  const heads = dial.heads.length > 1 ? `heads ${dial.heads.join(", ")}` : `head ${dial.heads[0]}`;
  byId("dose-words").textContent = view.dose
    ? `${dose} of the attention of ${heads}, in words without a counterpart, goes elsewhere. Match logit: ` +
      `${answer("across")} ${TARGETS.across}, ${answer("own")} ${TARGETS.own}`
    : `As trained, the fine-tuned classifier has a match logit of ${answer("across")}. Move the dose: words without a ` +
      `counterpart then look, in ${heads}, at the words of the other text, or of their own`;
  replace(byId("dial-map"), dialDrawing(dial));
}

function dialDrawing(dial) {
  const { ink, uniform } = look();
  const logits = [...dial.across, ...dial.own, 0];
  const [low, high] = [Math.min(...logits), Math.max(...logits)];
  const x = (dose) => DIAL.left + dose * (DIAL.width - DIAL.left - 10);
  const y = (logit) => DIAL.top + ((high - logit) / (high - low || 1)) * (DIAL.height - DIAL.top - DIAL.bottom);
  const label = (text, attributes) => draw("text", { fill: ink, "font-size": 10, ...attributes }, text);
  const lines = Object.keys(TARGETS).flatMap((name) => {
    const points = dial[name].map((logit, place) => `${x(dial.doses[place])},${y(logit)}`).join(" ");
    const dashes = name === "own" ? { "stroke-dasharray": "4 3" } : {};
    const at = { cx: x(dial.doses[view.dose]), cy: y(dial[name][view.dose]) };
    return [
      draw("polyline", { points, fill: "none", stroke: ink, "stroke-width": 1.5, ...dashes }),
      draw("circle", { ...at, r: 4, fill: name === "own" ? look().paper : ink, stroke: ink, "data-dial": name }),
    ];
  });
  const size = { width: DIAL.width, height: DIAL.height, role: "img", "aria-label": "match logit by dose" };
  return draw(
    "svg",
    size,
    draw("line", { x1: x(0), x2: x(1), y1: y(0), y2: y(0), stroke: uniform }),
    label("0", { x: DIAL.left - 6, y: y(0) + 3, "text-anchor": "end" }),
    ...[low, high].filter((end) => Math.abs(y(end) - y(0)) > 12).map((end) =>
      label(exact(end), { x: DIAL.left - 6, y: y(end) + 3, "text-anchor": "end" })),
    label("dose 0", { x: x(0), y: DIAL.height - 4 }),
    label("1", { x: x(1), y: DIAL.height - 4, "text-anchor": "middle" }),
    ...lines,
  );
}

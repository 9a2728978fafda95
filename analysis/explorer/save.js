// --- saving what is shown -----------------------------------------------------------------------------------------

function offer(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

const fileName = (...parts) => parts.filter(Boolean).join("-").replace(/[^\w.-]+/g, "-");

function csv(rows) {
  const cell = (value) => (
    value === null || value === undefined
      ? ""
      : /[",\n\r]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value)
  );
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

function headsTable() {
  const content = gridContent();
  const entry = entryOf();
  const numbers = ["mean", "low", "high", "control_mean", "share"].filter((name) => entry && name in entry);
  const labels = LABELS_HERE.filter(([label]) => entry && label in entry);
  const label = (code) => ({ 1: "true", 0: "false" })[code] ?? "";
  const title = modeHere()?.title ?? "shown";
  const columns = [
    "task",
    "state",
    "role",
    "layer",
    "head",
    title,
    ...(entry ? ["n"] : []),
    ...numbers,
    ...labels.map(([name]) => name),
  ];
  const rows = content.map(
    ({ words }, head) => [
      view.task,
      view.state,
      view.role,
      ...nameOf(head).split("-"),
      words,
      ...(entry ? [sizeOf(entry, head)] : []),
      ...numbers.map((name) => entry[name][head]),
      ...labels.map(([name]) => label(entry[name][head])),
    ],
  );
  return [columns, ...rows];
}

const saveHeadsTable = () => offer(
  fileName("heads", view.task, view.state, view.role, `${view.by}.csv`),
  "text/csv",
  csv(headsTable()),
);

function saveHeadsPicture() {
  const { ink, paper } = look();
  const [width, height, left] = [46, 30, 30];
  const content = gridContent();
  const svg = draw(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg",
      width: left + width * data.heads + 4,
      height: height * (data.layers + 2),
      ...FONT,
    },
  );
  svg.append(draw("rect", { width: "100%", height: "100%", fill: paper }));
  svg.append(
    draw(
      "text",
      { x: 4, y: 18, fill: ink, "font-size": 13 },
      [byId("heads-title").textContent, view.task, view.state].filter(Boolean).join(", "),
    ),
  );
  const text = (x, y, words, colour = ink, size = 11) => draw(
    "text",
    { x, y, fill: colour, "text-anchor": "middle", "font-size": size },
    words,
  );
  const top = (layer) => height * (data.layers - layer);
  content.forEach(({ text: words, colour, mark }, at) => {
    const [layer, head] = nameOf(at).split("-").map(Number);
    const [x, y] = [left + head * width, top(layer)];
    const inked = colour ? inkOn(colour) : ink;
    svg.append(
      draw(
        "rect",
        {
          x: x + 1,
          y: y + 1,
          width: width - 2,
          height: height - 2,
          rx: 3,
          fill: colour ? css(colour) : "none",
          stroke: ink,
          "stroke-opacity": 0.2,
        },
      ),
    );
    svg.append(text(x + width / 2, y + 20, words, inked));
    if (mark && mark !== words) svg.append(text(x + width - 7, y + 10, mark, inked, 9));
  });
  for (let layer = 0; layer < data.layers; layer++) svg.append(text(left / 2, top(layer) + 20, String(layer)));
  for (let head = 0; head < data.heads; head++) svg.append(
    text(left + (head + 0.5) * width, height * (data.layers + 1) + 16, String(head)),
  );
  offer(
    fileName("heads", view.task, view.state, view.role, `${view.by}.svg`),
    "image/svg+xml",
    new XMLSerializer().serializeToString(svg),
  );
}

function saveAttentionTable() {
  const { sentence, shown, weight, mask } = shownAttention;
  const columns = ["from_position", "from", "to_position", "to", "weight", ...(mask ? [`sieve_${view.role}`] : [])];
  const wanted = (i, j) => view.token === null || (view.dir === "given" ? i : j) === view.token;
  const pairs = shown.flatMap((i) => shown.filter((j) => wanted(i, j)).map((j) => [i, j]));
  const rows = pairs.map(
    ([i, j]) => [
      i,
      piece(sentence.tokens[i]),
      j,
      piece(sentence.tokens[j]),
      Number(weight(i, j).toPrecision(3)),
      ...(mask ? [Number(mask(i, j))] : []),
    ],
  );
  offer(attentionName("csv"), "text/csv", csv([columns, ...rows]));
}

const attentionName = (ending) => fileName(
  "attention",
  shownAttention.sentence.id,
  shownAttention.state,
  "head",
  nameOf(view.head),
  `${view.view}.${ending}`,
);

// The canvas becomes a picture inside of the drawing, as large as on the page so that no program smooths it.
function saveAttentionPicture() {
  const { svg, canvas, cell, margin } = shownAttention;
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  if (canvas) {
    const side = canvas.width * cell;
    const large = Object.assign(document.createElement("canvas"), { width: side, height: side });
    const context = large.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(canvas, 0, 0, side, side);
    copy.prepend(
      draw("image", { x: margin, y: margin, width: side, height: side, href: large.toDataURL("image/png") }),
    );
  }
  copy.prepend(draw("rect", { width: "100%", height: "100%", fill: look().paper }));
  offer(attentionName("svg"), "image/svg+xml", new XMLSerializer().serializeToString(copy));
}

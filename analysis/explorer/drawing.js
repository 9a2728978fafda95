// --- the map of a head: as a matrix, and as lines -----------------------------------------------------------------

const FONT = { "font-family": 'system-ui, "DejaVu Sans", sans-serif', "font-size": 11 };
const CELL = { least: 3, most: 18, named: 10 }; // pixels; names stand beside cells that are large enough
const SCROLLED = 1.6; // times its room: a wider map has no names, a narrower one scrolls
const LINES = { least: 0.02, most: 1500, row: 17, between: 320 };
const NARROW = 480; // pixels: names are shorter on a narrower map
const longestName = () => (byId("map").clientWidth < NARROW ? 9 : 14); // characters

function named(token) {
  const longest = longestName();
  return piece(token).length > longest ? `${piece(token).slice(0, longest - 1)}…` : piece(token);
}

function showMap(context) {
  const drawn = view.view === "lines" ? linesOf(context) : matrixOf(context);
  replace(byId("map"), ...(drawn.canvas ? [drawn.canvas] : []), drawn.svg);
  Object.assign(context, drawn);
  byId("weight").textContent = drawn.note ?? "";
}

// Beside the grid the matrix also fits the height of the window, as long as names can stand beside its cells.
function frame({ sentence, shown }) {
  const map = byId("map");
  const longest = Math.max(...shown.map((i) => named(sentence.tokens[i]).length), 1);
  const margin = 8 + 6.8 * longest;
  const beside = getComputedStyle(byId("attention")).position === "sticky";
  const height = beside ? innerHeight - map.offsetTop - 60 : Infinity;
  const room = map.clientWidth || NARROW;
  const fit = (space, around) => Math.floor((space - around) / shown.length);
  const across = Math.min(CELL.most, fit(room, margin + 4));
  if (across >= CELL.named || margin + CELL.named * shown.length <= SCROLLED * room) {
    return { cell: Math.max(CELL.named, Math.min(across, fit(height, margin))), margin };
  }
  return { cell: Math.max(CELL.least, Math.min(CELL.named - 1, fit(room, 4))), margin: 2 };
}

function matrixOf(context) {
  const { sentence, shown, steps, T, colours } = context;
  const { cell, margin } = frame(context);
  const side = cell * shown.length;
  const offset = view.head * T * T;
  const canvas = pixels(
    make("canvas", { "aria-hidden": "true" }),
    shown.length,
    shown.length,
    (x, y) => colours[steps[offset + shown[y] * T + shown[x]]],
  );
  canvas.style.cssText = `left: ${margin}px; top: ${margin}px; width: ${side}px; height: ${side}px`;
  const label = `attention matrix of head ${nameOf(view.head)}: rows attend to columns`;
  const svg = draw(
    "svg",
    { width: margin + side + 2, height: margin + side + 2, role: "img", "aria-label": label, ...FONT },
  );
  if (margin > 2) svg.append(...namesOf(sentence, shown, cell, margin));
  const { outline, ink } = look();
  if (view.sieve && context.mask) svg.append(
    draw(
      "path",
      { class: "sieve", d: outlineOf(context, cell, margin), fill: "none", stroke: outline, "stroke-width": 2 },
    ),
  );
  svg.append(...chosenBand(shown, cell, margin, ink));
  const pointed = (event) => {
    const box = svg.getBoundingClientRect();
    const [j, i] = [
      event.clientX - box.left,
      event.clientY - box.top,
    ].map((at) => shown[Math.floor((at - margin) / cell)]);
    return event.clientX - box.left < margin || event.clientY - box.top < margin ? [] : [i, j];
  };
  svg.addEventListener("pointermove", (event) => tellWeight(context, ...pointed(event)));
  svg.addEventListener("click", (event) => {
    const [i, j] = pointed(event);
    if (i !== undefined && j !== undefined) change({ token: view.dir === "given" ? i : j });
    tellWeight(context, i, j);
  });
  return { svg, canvas, cell, margin };
}

function tellWeight({ sentence, weight, T }, i, j) {
  if (i === undefined || j === undefined) return;
  const share = weight(i, j);
  byId("weight").textContent = `${piece(sentence.tokens[i])} → ${piece(sentence.tokens[j])}: ${(100 * share).toFixed(1)} %, ${(T * share).toFixed(2)} times uniform`;
}

function namesOf(sentence, shown, cell, margin) {
  const { ink } = look();
  return shown.flatMap((i, place) => {
    const middle = margin + (place + 0.5) * cell;
    const size = Math.min(11, cell);
    const text = (attributes) => draw(
      "text",
      { fill: ink, "font-size": size, ...attributes },
      named(sentence.tokens[i]),
    );
    return [
      text({ x: margin - 4, y: middle + 3.5, "text-anchor": "end" }),
      text({ transform: `translate(${middle + 3.5} ${margin - 4}) rotate(-90)` }),
    ];
  });
}

// Every edge between a cell that the sieve names and one that it does not.
function outlineOf({ mask, shown }, cell, margin) {
  const inside = (y, x) => y >= 0 && x >= 0 && y < shown.length && x < shown.length && mask(shown[y], shown[x]);
  const at = (place) => margin + place * cell;
  const edges = [];
  for (let y = 0; y <= shown.length; y++) {
    for (let x = 0; x <= shown.length; x++) {
      if (inside(y, x) !== inside(y - 1, x)) edges.push(`M${at(x)} ${at(y)}h${cell}`);
      if (inside(y, x) !== inside(y, x - 1)) edges.push(`M${at(x)} ${at(y)}v${cell}`);
    }
  }
  return edges.join("");
}

function chosenBand(shown, cell, margin, ink) {
  const place = shown.indexOf(view.token);
  if (view.token === null || place < 0) return [];
  const [along, across] = [cell * shown.length, margin + place * cell];
  const row = { x: margin, y: across, width: along, height: cell };
  const column = { x: across, y: margin, width: cell, height: along };
  return [
    draw(
      "rect",
      { class: "band", fill: "none", stroke: ink, "stroke-width": 1.5, ...(view.dir === "given" ? row : column) },
    ),
  ];
}

function linesOf(context) {
  const { sentence, shown, weight, mask } = context;
  const longest = Math.max(...shown.map((i) => named(sentence.tokens[i]).length), 1) * 6.8;
  const between = Math.max(60, Math.min(LINES.between, (byId("map").clientWidth || NARROW) - 2 * longest - 24));
  const [left, right] = [longest + 6, longest + 6 + between];
  const height = 20 + shown.length * LINES.row;
  const at = (place) => 20 + (place + 0.5) * LINES.row;
  const { ink, line, outline, quiet } = look();
  const wanted = (i, j) => view.token === null || (view.dir === "given" ? i : j) === view.token;
  const all = shown.flatMap(
    (i, y) => shown.map((j, x) => [weight(i, j), i, j, y, x]),
  ).filter(([share, i, j]) => share >= LINES.least && wanted(i, j));
  const kept = all.sort((a, b) => b[0] - a[0]).slice(0, LINES.most);
  const svg = draw(
    "svg",
    {
      width: right + longest + 8,
      height,
      role: "img",
      "aria-label": `lines of attention of head ${nameOf(view.head)}, left attends to right`,
      ...FONT,
    },
  );
  const inSieve = ([, i, j]) => Boolean(view.sieve && mask?.(i, j));
  for (const [share, i, j, y, x] of [...kept].sort((a, b) => inSieve(a) - inSieve(b))) { // the sieve's on top
    const chosen = inSieve([share, i, j]);
    svg.append(
      draw(
        "line",
        {
          x1: left,
          y1: at(y),
          x2: right,
          y2: at(x),
          stroke: chosen ? outline : line,
          "stroke-width": (0.5 + 5 * share).toFixed(2),
          "stroke-opacity": chosen ? 0.9 : Math.min(1, 0.25 + share).toFixed(2),
        },
      ),
    );
  }
  const heading = (x, anchor, text) => draw("text", { x, y: 12, fill: quiet, "text-anchor": anchor }, text);
  svg.append(heading(left - 4, "end", "from"), heading(right + 4, "start", "to"));
  shown.forEach((i, place) => {
    const bold = (chosen) => (i === view.token && chosen ? "bold" : "normal");
    const text = (x, anchor, chosen) => draw(
      "text",
      { x, y: at(place) + 4, fill: ink, "text-anchor": anchor, "font-weight": bold(chosen) },
      named(sentence.tokens[i]),
    );
    svg.append(text(left - 4, "end", view.dir === "given"), text(right + 4, "start", view.dir === "received"));
  });
  const more = all.length > kept.length ? `, the ${kept.length} largest of ${all.length}` : "";
  return {
    svg,
    note: `Lines: weights of at least ${100 * LINES.least} %${more}; wider is more.${view.sieve && mask ? " Orange: named by the sieve." : ""}`,
  };
}

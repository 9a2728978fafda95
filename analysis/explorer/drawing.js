// --- the map of a head: as a matrix, and as lines -----------------------------------------------------------------

const FONT = { "font-family": 'system-ui, "DejaVu Sans", sans-serif', "font-size": 11 };
const CELL = { least: 3, most: 18, named: 10 }; // pixels; names stand beside cells that are large enough
const SCROLLED = 1.6; // times its room: a wider map has no names, a narrower one scrolls
const LINES = { least: 0.02, most: 1500, row: 17, between: 320 };
const NARROW = 480; // pixels: names are shorter on a narrower map

function shortName(token) {
  const longest = byId("map").clientWidth < NARROW ? 9 : 14; // characters
  return piece(token).length > longest ? `${piece(token).slice(0, longest - 1)}…` : piece(token);
}
const nameWidth = ({ sentence, visible }) =>
  Math.ceil(6.8 * Math.max(...visible.map((i) => shortName(sentence.tokens[i]).length), 1));

// Whether the weight of i to j belongs to the selected token.
const isOfToken = (i, j) => view.token === null || (view.dir === "given" ? i : j) === view.token;

function showMap(context) {
  Object.assign(context, view.view === "lines" ? linesOf(context) : matrixOf(context));
  replace(byId("map"), ...(context.canvas ? [context.canvas] : []), context.svg);
  byId("weight").textContent = context.note ?? "";
}

// Beside the grid the matrix also fits the height of the window, as long as names can stand beside its cells.
function frameOf(context) {
  const count = context.visible.length;
  const map = byId("map");
  const margin = 8 + nameWidth(context);
  const beside = getComputedStyle(byId("attention")).position === "sticky";
  const height = beside ? innerHeight - map.offsetTop - 60 : Infinity;
  const room = map.clientWidth || NARROW;
  const fit = (space, around) => Math.floor((space - around) / count);
  const across = Math.min(CELL.most, fit(room, margin + 4));
  if (across >= CELL.named || margin + CELL.named * count <= SCROLLED * room) {
    return { cell: Math.max(CELL.named, Math.min(across, fit(height, margin))), margin };
  }
  return { cell: Math.max(CELL.least, Math.min(CELL.named - 1, fit(room, 4))), margin: 2 };
}

function matrixOf(context) {
  const { sentence, visible, steps, T, colours, mask } = context;
  const { cell, margin } = frameOf(context);
  const side = cell * visible.length;
  const colourAt = (x, y) => colours[steps[(view.head * T + visible[y]) * T + visible[x]]];
  const canvas = pixels(make("canvas", { "aria-hidden": "true" }), visible.length, visible.length, colourAt);
  canvas.style.cssText = `left: ${margin}px; top: ${margin}px; width: ${side}px; height: ${side}px`;
  const label = `attention matrix of head ${nameOf(view.head)}: rows attend to columns`;
  const size = { width: margin + side + 2, height: margin + side + 2 };
  const svg = draw("svg", { ...size, role: "img", "aria-label": label, ...FONT });
  if (margin > 2) svg.append(...tokenNames(sentence, visible, cell, margin));
  const { outline, ink } = look();
  if (view.sieve && mask) {
    const d = outlineOf(context, cell, margin);
    svg.append(draw("path", { class: "sieve", d, fill: "none", stroke: outline, "stroke-width": 2 }));
  }
  svg.append(...tokenBand(visible, cell, margin, ink));
  const cellAt = (event) => {
    const box = svg.getBoundingClientRect();
    const places = [event.clientY - box.top, event.clientX - box.left].map((at) => Math.floor((at - margin) / cell));
    return places.map((at) => visible[at]);
  };
  svg.addEventListener("pointermove", (event) => showWeight(context, ...cellAt(event)));
  svg.addEventListener("click", (event) => {
    const [i, j] = cellAt(event);
    if (i !== undefined && j !== undefined) change({ token: view.dir === "given" ? i : j });
    showWeight(context, i, j);
  });
  return { svg, canvas, cell, margin };
}

function showWeight({ sentence, weight, T }, i, j) {
  if (i === undefined || j === undefined) return;
  const pair = `${piece(sentence.tokens[i])} → ${piece(sentence.tokens[j])}`;
  const share = weight(i, j);
  byId("weight").textContent = `${pair}: ${(100 * share).toFixed(1)} %, ${(T * share).toFixed(2)} times uniform`;
}

function tokenNames(sentence, visible, cell, margin) {
  const style = { fill: look().ink, "font-size": Math.min(11, cell) };
  return visible.flatMap((i, at) => {
    const middle = margin + (at + 0.5) * cell + 3.5;
    const text = (attributes) => draw("text", { ...style, ...attributes }, shortName(sentence.tokens[i]));
    return [
      text({ x: margin - 4, y: middle, "text-anchor": "end" }),
      text({ transform: `translate(${middle} ${margin - 4}) rotate(-90)` }),
    ];
  });
}

// Every edge between a cell that the sieve names and one that it does not.
function outlineOf({ mask, visible }, cell, margin) {
  const inside = (y, x) => y in visible && x in visible && mask(visible[y], visible[x]);
  const at = (index) => margin + index * cell;
  const edges = [];
  for (let y = 0; y <= visible.length; y++) {
    for (let x = 0; x <= visible.length; x++) {
      if (inside(y, x) !== inside(y - 1, x)) edges.push(`M${at(x)} ${at(y)}h${cell}`);
      if (inside(y, x) !== inside(y, x - 1)) edges.push(`M${at(x)} ${at(y)}v${cell}`);
    }
  }
  return edges.join("");
}

function tokenBand(visible, cell, margin, ink) {
  const index = visible.indexOf(view.token);
  if (view.token === null || index < 0) return [];
  const [along, across] = [cell * visible.length, margin + index * cell];
  const row = { x: margin, y: across, width: along, height: cell };
  const column = { x: across, y: margin, width: cell, height: along };
  const box = view.dir === "given" ? row : column;
  return [draw("rect", { class: "band", fill: "none", stroke: ink, "stroke-width": 1.5, ...box })];
}

function linesOf(context) {
  const { sentence, visible, weight, mask } = context;
  const longest = nameWidth(context);
  const between = Math.max(60, Math.min(LINES.between, (byId("map").clientWidth || NARROW) - 2 * longest - 24));
  const [left, right] = [longest + 6, longest + 6 + between];
  const at = (index) => 20 + (index + 0.5) * LINES.row;
  const { ink, line, outline, quiet } = look();
  const pairs = visible.flatMap((i, y) => visible.map((j, x) => {
    return { i, j, x, y, share: weight(i, j), inSieve: Boolean(view.sieve && mask?.(i, j)) };
  })).filter(({ share, i, j }) => share >= LINES.least && isOfToken(i, j));
  const largest = pairs.sort((a, b) => b.share - a.share).slice(0, LINES.most);
  const size = { width: right + longest + 8, height: at(visible.length) };
  const label = `lines of attention of head ${nameOf(view.head)}, left attends to right`;
  const svg = draw("svg", { ...size, role: "img", "aria-label": label, ...FONT });
  for (const { share, x, y, inSieve } of largest.sort((a, b) => a.inSieve - b.inSieve)) { // the sieve's on top
    const opacity = inSieve ? 0.9 : Math.min(1, 0.25 + share).toFixed(2);
    const stroke = { stroke: inSieve ? outline : line, "stroke-width": (0.5 + 5 * share).toFixed(2) };
    svg.append(draw("line", { x1: left, y1: at(y), x2: right, y2: at(x), ...stroke, "stroke-opacity": opacity }));
  }
  const text = (x, y, anchor, words, attributes) => draw("text", { x, y, "text-anchor": anchor, ...attributes }, words);
  svg.append(text(left - 4, 12, "end", "from", { fill: quiet }), text(right + 4, 12, "start", "to", { fill: quiet }));
  visible.forEach((i, index) => {
    const name = (x, anchor, isSide) => {
      const weightOfFont = i === view.token && isSide ? "bold" : "normal";
      return text(x, at(index) + 4, anchor, shortName(sentence.tokens[i]), { fill: ink, "font-weight": weightOfFont });
    };
    svg.append(name(left - 4, "end", view.dir === "given"), name(right + 4, "start", view.dir === "received"));
  });
  const more = pairs.length > largest.length ? `, the ${largest.length} largest of ${pairs.length}` : "";
  const sieve = view.sieve && mask ? " Orange: named by the sieve." : "";
  return { svg, canvas: null, note: `Lines: weights of at least ${100 * LINES.least} %${more}; wider is more.${sieve}` };
}

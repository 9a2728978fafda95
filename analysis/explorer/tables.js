// --- other tables of heads, and claims ----------------------------------------------------------------------------

const UNPACKS = "DecompressionStream" in window;
const KEYS = ["layer", "head", "task", "state"];
const ROLE_KEY = "role";
const headTables = {}; // filled after the page is ready: name -> { columns, byHead, numbers }
const openTables = new Set();
const LONG = 60; // characters: a table with longer cells is listed row by row
const WIDE = 12, FEW = 6; // a table with more columns than this and few rows is turned
const SEED = "seed";
const STATUS = "_status"; // ends the name of the column that says why another one is empty

async function readTables() {
  if (!UNPACKS) return;
  const found = JSON.parse(new TextDecoder().decode(await inflated(data.tables)));
  for (const [name, { columns, rows }] of Object.entries(found)) {
    const [layer, head] = [columns.indexOf("layer"), columns.indexOf("head")];
    const byHead = Array.from({ length: HEADS }, () => []);
    for (const row of rows) byHead[row[layer] * data.heads + row[head]]?.push(row);
    const numbers = columns.filter(
      (column, i) => ![...KEYS, SEED].includes(column) && rows.some((row) => typeof row[i] === "number"),
    );
    headTables[name] = { columns, byHead, numbers };
  }
}

// The rows of a head in the chosen task and state; a table without these columns holds for all of them.
function rowsOf({ columns, byHead }, head) {
  const wanted = ["task", "state"].map((key) => [columns.indexOf(key), view[key]]).filter(([column]) => column >= 0);
  return byHead[head].filter(
    (row) => wanted.every(([column, value]) => row[column] === null || row[column] === value),
  );
}

const written = (value) => (
  value === null
    ? PLAIN
    : typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(3))) : String(value)
);

function listing(columns, rows) {
  const told = columns.filter((name) => !columns.includes(name.replace(/_status$/, "")) || !name.endsWith(STATUS));
  const cellOfTable = (row, name) => {
    const value = row[columns.indexOf(name)];
    const status = columns.includes(name + STATUS) ? row[columns.indexOf(name + STATUS)] : null;
    return make("td", { class: typeof value === "number" && "number" }, written(value ?? status));
  };
  const heading = (scope, name) => make("th", { scope }, name.replaceAll("_", " "));
  const turned = told.length > WIDE && rows.length <= FEW;
  const lines = turned
    ? told.map((name) => make("tr", {}, heading("row", name), ...rows.map((row) => cellOfTable(row, name))))
    : [
      make("tr", {}, ...told.map((name) => heading("col", name))),
      ...rows.map((row) => make("tr", {}, ...told.map((name) => cellOfTable(row, name)))),
    ];
  return make("div", { class: "scroll" }, make("table", { class: "listed" }, make("tbody", {}, ...lines)));
}

function tableOf(name, table) {
  const kept = table.columns.map((column, i) => [column, i]).filter(([column]) => !KEYS.includes(column));
  const rows = rowsOf(table, view.head);
  if (!rows.length) return [];
  const columns = kept.map(([column]) => column);
  const values = rows.map((row) => kept.map(([, i]) => row[i]));
  const gist = rows.length === 1
    ? columns.map((column, i) => `${column.replaceAll("_", " ")} ${written(values[0][i])}`).slice(0, 5).join(" · ")
    : `${rows.length} rows`;
  const isOpen = openTables.has(name);
  const content = () => listing(columns, values);
  // A folded table is built when it is opened: a head has many.
  const toggle = ({ target }) => {
    openTables[target.open ? "add" : "delete"](name);
    if (target.open && target.children.length < 2) target.append(content());
  };
  return [
    make(
      "details",
      { open: isOpen, toggle },
      make("summary", {}, `${name.replaceAll("_", " ")}: ${gist}`),
      ...(isOpen ? [content()] : []),
    ),
  ];
}

function showTables() {
  const found = Object.entries(headTables).flatMap(([name, table]) => tableOf(name, table));
  byId("tables-section").hidden = found.length === 0;
  byId("tables-title").textContent = `Other tables of head ${nameOf(view.head)}`;
  replace(byId("tables"), ...found);
  showMeasures();
}

// --- any number of a head table as the colour of the grid ---------------------------------------------------------

// Columns with one number for each head and seed in the chosen task and state (and role, where the table has roles);
// of a measure its value, for each choice of what it depends on.
function columnModes() {
  const keysOf = ([name, table]) => {
    const measure = measureOf(name);
    if (measure) return choicesOf(measure, table).map((choice) => [name, measure.value, ...choice]);
    return onePerSeed(table) ? table.numbers.map((column) => [name, column]) : [];
  };
  return Object.entries(headTables).flatMap(keysOf).map((key) => key.join(":")).map((key) => [key, columnMode(key)]);
}

function onePerSeed(table) {
  const seed = table.columns.indexOf(SEED);
  const distinct = (rows) => rows.length <= 1 || (
    seed >= 0 && new Set(rows.map((row) => row[seed])).size === rows.length
  );
  const found = table.byHead.map((_, head) => shownRows(table, head));
  return found.every(distinct) && found.some((rows) => rows.length);
}

// The rows of a head for the chosen role and for one choice of a measure.
function shownRows(table, head, measure, choice = []) {
  const role = table.columns.indexOf(ROLE_KEY);
  const places = choice.length ? byOf(measure, table).map((column) => table.columns.indexOf(column)) : [];
  return rowsOf(table, head).filter(
    (row) => (role < 0 || row[role] === view.role) && places.every((place, i) => String(row[place]) === choice[i]),
  );
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2;
}
const numbersIn = (rows, place) => rows.map((row) => row[place]).filter((value) => typeof value === "number");

function columnMode(key) {
  const [name, column, ...choice] = key.split(":");
  const [table, measure] = [headTables[name], measureOf(name)];
  if (!table?.columns.includes(column)) return undefined;
  const values = () => {
    const place = table.columns.indexOf(column);
    const found = table.byHead.map((_, head) => numbersIn(shownRows(table, head, measure, choice), place)).map(
      (several) => (several.length ? median(several) : null),
    );
    const there = found.filter((value) => value !== null);
    return { found, low: Math.min(...there), high: Math.max(...there) };
  };
  const named = measure ? wordsOf(measure, table, choice) : `${name}: ${column}`.replaceAll("_", " ");
  return {
    title: named + (measure && table.columns.includes(ROLE_KEY) ? `: ${view.role}` : ""),
    group: (measure ? "measures" : name).replaceAll("_", " "),
    values,
    cell: (entry, head, { found, low, high }) => columnCell(found[head], low, high),
  };
}

// Two digits of the largest value, so that all cells have as many places; no 0 before the point.
function compact(value, top) {
  const places = 1 - Math.floor(Math.log10(top || 1));
  if (places > 4 || places < -1) return value.toExponential(0).replace(/^-/, "−");
  const text = Math.abs(value).toFixed(Math.max(places, 0));
  return (value < 0 && Number(text) ? "−" : "") + (places > 1 ? text.replace(/^0\./, ".") : text);
}

// Values on both sides of 0 take the colours of change, others the scale from the lowest to the highest.
const bothSides = (low, high) => low < 0 && high > 0;
const columnColour = (value, low, high) => (
  bothSides(low, high)
    ? changeColour(value / Math.max(-low, high))
    : ramp((value - low) / (high - low || 1))
);

function columnCell(value, low, high) {
  if (value === null) return plainCell(PLAIN, "no value");
  return { text: compact(value, Math.max(-low, high)), colour: columnColour(value, low, high), words: written(value) };
}

function columnLegend(scale) {
  const { low, high } = modeHere().values();
  if (!Number.isFinite(low)) return [];
  const [from, to] = bothSides(low, high) ? [-Math.max(-low, high), Math.max(-low, high)] : [low, high];
  return scale((stop) => columnColour(from + stop * (to - from), low, high), `${written(from).replace("-", "−")} `, ` ${written(to)}`);
}

// --- claims -------------------------------------------------------------------------------------------------------

const HOLD = { holds: "hold", "does not hold": "do not hold" };

// A section for each paper: its claims, and its further tables of claims folded in.
function showClaims() {
  const contentOf = ({ columns, rows }) => (
    rows.some((row) => row.some((value) => typeof value === "string" && value.length > LONG))
      ? rows.map((row) => claimOf(columns, row))
      : [listing(columns, rows)]
  );
  const folded = (title, table, ...more) => make(
    "details",
    { "data-claims": title },
    make("summary", {}, `${title}: ${countOf(table.columns, table.rows)}`),
    ...contentOf(table),
    ...more,
  );
  const sections = data.claims.map(({ title, tables }) => {
    const [main, ...others] = Object.keys(tables).sort();
    return folded(title, tables[main], ...others.map((name) => folded(name.replaceAll("_", " "), tables[name])));
  });
  replace(byId("claims"), ...(sections.length ? [make("h2", {}, "Claims"), ...sections] : []));
}

function countOf(columns, rows) {
  const verdicts = rows.map((row) => row[columns.indexOf("verdict")]).filter(Boolean);
  if (!verdicts.length) return `${rows.length} rows`;
  const counted = [...new Set(verdicts)].map((kind) => [verdicts.filter((verdict) => verdict === kind).length, kind]);
  return counted.map(([count, kind]) => `${count} ${count > 1 ? HOLD[kind] ?? kind : kind}`).join(", ");
}

function claimOf(columns, row) {
  const value = (name) => row[columns.indexOf(name)];
  const verdict = value("verdict");
  const terms = columns.flatMap(
    (name, i) => (
      name === "claim" || row[i] === null
        ? []
        : [make("dt", {}, name.replaceAll("_", " ")), make("dd", {}, written(row[i]))]
    ),
  );
  return make(
    "details",
    {},
    make("summary", {}, verdict ? make("strong", {}, `${verdict} · `) : "", written(value("claim"))),
    make("dl", {}, ...terms),
  );
}

// --- other tables of heads, and claims ----------------------------------------------------------------------------

const UNPACKS = "DecompressionStream" in window;
const KEYS = ["layer", "head", "task", "state"];
const ROLE_KEY = "role";
const headTables = {}; // filled after the page is ready: name -> { columns, byHead, numbers }
const openTables = new Set();
const LONG = 60; // characters: a table with longer cells is listed row by row

async function readTables() {
  if (!UNPACKS) return;
  const found = JSON.parse(new TextDecoder().decode(await inflated(data.tables)));
  for (const [name, { columns, rows }] of Object.entries(found)) {
    const [layer, head] = [columns.indexOf("layer"), columns.indexOf("head")];
    const byHead = Array.from({ length: HEADS }, () => []);
    for (const row of rows) byHead[row[layer] * data.heads + row[head]]?.push(row);
    const numbers = columns.filter(
      (column, i) => !KEYS.includes(column) && rows.some((row) => typeof row[i] === "number"),
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
  const heading = make("tr", {}, ...columns.map((name) => make("th", { scope: "col" }, name.replaceAll("_", " "))));
  const body = rows.map(
    (row) => make(
      "tr",
      {},
      ...row.map((value) => make("td", { class: typeof value === "number" && "number" }, written(value))),
    ),
  );
  return make(
    "div",
    { class: "scroll" },
    make("table", { class: "listed" }, make("thead", {}, heading), make("tbody", {}, ...body)),
  );
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
  const toggle = (event) => openTables[event.target.open ? "add" : "delete"](name);
  return [
    make(
      "details",
      { open: openTables.has(name), toggle },
      make("summary", {}, `${name.replaceAll("_", " ")}: ${gist}`),
      listing(columns, values),
    ),
  ];
}

function showTables() {
  const found = Object.entries(headTables).flatMap(([name, table]) => tableOf(name, table));
  byId("tables-section").hidden = found.length === 0;
  byId("tables-title").textContent = `Other tables of head ${nameOf(view.head)}`;
  replace(byId("tables"), ...found);
}

// --- any number of a head table as the colour of the grid ---------------------------------------------------------

// Columns with one number for each head in the chosen task and state (and role, where the table has roles).
function columnModes() {
  return Object.entries(headTables).flatMap(([name, table]) => {
    const keys = byHeadOnce(table) ? table.numbers.map((column) => `${name}:${column}`) : [];
    return keys.map((key) => [key, columnMode(key)]);
  });
}

const byHeadOnce = (table) => table.byHead.every(
  (_, head) => shownRows(table, head).length <= 1,
) && table.byHead.some((_, head) => shownRows(table, head).length);

function shownRows(table, head) {
  const role = table.columns.indexOf(ROLE_KEY);
  return rowsOf(table, head).filter((row) => role < 0 || row[role] === view.role);
}

function columnMode(key) {
  const [name, column] = key.split(":");
  const table = headTables[name];
  if (!table?.columns.includes(column)) return undefined;
  const number = table.columns.indexOf(column);
  const values = () => {
    const found = table.byHead.map(
      (_, head) => shownRows(table, head)[0]?.[number] ?? null,
    ).map((value) => (typeof value === "number" ? value : null));
    const there = found.filter((value) => value !== null);
    return { found, low: Math.min(...there), high: Math.max(...there) };
  };
  return {
    title: `${name}: ${column}`.replaceAll("_", " "),
    values,
    cell: (entry, head, { found, low, high }) => columnCell(found[head], low, high),
  };
}

const compact = (value) => (
  Math.abs(value) >= 1000 || (value !== 0 && Math.abs(value) < 0.01)
    ? value.toExponential(0)
    : String(Number(value.toPrecision(2)))
);

function columnCell(value, low, high) {
  if (value === null) return plainCell(PLAIN, "no value");
  return { text: compact(value), colour: ramp((value - low) / (high - low || 1)), words: written(value) };
}

function columnLegend(scale) {
  const { low, high } = modeHere().values();
  return Number.isFinite(low) ? scale(ramp, `${written(low)} `, ` ${written(high)}`) : [];
}

// --- claims -------------------------------------------------------------------------------------------------------

function showClaims() {
  const sections = Object.entries(data.claims).map(([name, { columns, rows }]) => {
    const long = rows.some((row) => row.some((value) => typeof value === "string" && value.length > LONG));
    const content = long ? rows.map((row) => claimOf(columns, row)) : [listing(columns, rows)];
    return make(
      "details",
      { "data-claims": name },
      make("summary", {}, `${name.replaceAll("_", " ")}: ${countOf(columns, rows)}`),
      ...content,
    );
  });
  replace(byId("claims"), ...(sections.length ? [make("h2", {}, "Claims"), ...sections] : []));
}

function countOf(columns, rows) {
  const verdicts = rows.map((row) => row[columns.indexOf("verdict")]).filter(Boolean);
  const kinds = [...new Set(verdicts)];
  return kinds.length
    ? kinds.map((kind) => `${verdicts.filter((verdict) => verdict === kind).length} ${kind}`).join(", ")
    : `${rows.length} rows`;
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

// --- measures: tables of heads with lines of their own on the card ------------------------------------------------

const LABEL_COLUMNS = { assigned: "published", assigned_audited: "audited", assigned_controlled: "controlled" };
const measureOf = (name) => data.measures.find((measure) => measure.table === name);
const byOf = (measure, table) => (measure?.by ?? []).filter((column) => table.columns.includes(column));

// What a measure depends on, as texts: each combination that the table has in the chosen task and state.
function choicesOf(measure, table) {
  const places = byOf(measure, table).map((column) => table.columns.indexOf(column));
  const rows = table.byHead.flatMap((_, head) => shownRows(table, head));
  const found = new Map(rows.map((row) => places.map((place) => String(row[place]))).map((key) => [key.join(), key]));
  return [...found.values()];
}

function wordsOf(measure, table, choice) {
  const words = byOf(measure, table).map((column, i) => ({ yes: column, no: `not ${column}` })[choice[i]] ?? choice[i]);
  return [measure.label, ...words].join(", ").replaceAll("_", " ");
}

// Three digits; with a sign where the measure has values below 0.
function amount(value, isSigned) {
  if (value === null || value === undefined) return PLAIN;
  const text = written(Math.abs(value));
  return value < 0 ? `−${text}` : isSigned && value > 0 ? `+${text}` : text;
}

function intervalIn(rows, values, columns, say) {
  const seed = columns.indexOf(SEED);
  if (rows.length > 1) return `${say(Math.min(...values))} to ${say(Math.max(...values))} over ${rows.length} seeds`;
  const [low, high] = ["low", "high"].map((name) => rows[0][columns.indexOf(name)] ?? null);
  const parts = [low === null || high === null ? "" : `[${say(low)}, ${say(high)}]`];
  return [...parts, seed < 0 ? "" : `seed ${rows[0][seed]}`].filter(Boolean).join(", ") || PLAIN;
}

function testIn(rows, columns, measure) {
  const p = numbersIn(rows, columns.indexOf(measure.p));
  if (p.length > 1) return `p ≤ ${data.alpha} in ${p.filter((value) => value <= data.alpha).length} of ${p.length}`;
  if (p.length) return `p ${written(p[0])}`;
  const labels = Object.entries(LABEL_COLUMNS).filter(([column]) => columns.includes(column));
  const given = labels.filter(([column]) => rows[0][columns.indexOf(column)] === "yes").map(([, label]) => label);
  return labels.length ? given.join(", ") || "no label" : PLAIN;
}

// Label, value, interval or range, and test of a measure of the chosen head, for one choice; null without a row.
function measureLine(measure, table, choice) {
  const rows = shownRows(table, view.head, measure, choice);
  const place = table.columns.indexOf(measure.value);
  const values = numbersIn(rows, place);
  const label = wordsOf(measure, table, choice) + (table.columns.includes(ROLE_KEY) ? `: ${view.role}` : "");
  if (!rows.length) return null;
  if (!values.length) return [label, PLAIN, rows[0][table.columns.indexOf("status")] ?? PLAIN, PLAIN];
  const isSigned = table.byHead.some((own) => numbersIn(own, place).some((value) => value < 0));
  const say = (value) => amount(value, isSigned);
  return [label, say(median(values)), intervalIn(rows, values, table.columns, say), testIn(rows, table.columns, measure)];
}

// Parts of a whole in one line, the largest first.
function partsLine(measure, table, choices) {
  const place = table.columns.indexOf(measure.value);
  const shares = choices.map((choice) => [numbersIn(shownRows(table, view.head, measure, choice), place), choice]);
  const there = shares.filter(([values]) => values.length).map(([values, choice]) => [median(values), choice]);
  const largest = there.filter(([share]) => share > 0).sort((a, b) => b[0] - a[0]);
  const text = largest.map(([share, choice]) => `${choice.join(" ").replaceAll("_", " ")} ${percent(share)}`).join(", ");
  return there.length ? [measure.label, text] : null;
}

function measureLines() {
  return data.measures.filter(({ table }) => table in headTables).flatMap((measure) => {
    const table = headTables[measure.table];
    const choices = choicesOf(measure, table);
    if (measure.parts) return [partsLine(measure, table, choices)];
    return choices.map((choice) => measureLine(measure, table, choice));
  }).filter(Boolean);
}

function showMeasures() {
  const lines = measureLines();
  byId("measures").hidden = lines.length === 0;
  const rowOf = ([label, ...cells]) => {
    const wide = cells.length === 1 ? { colspan: 3 } : {};
    return make("tr", {}, make("th", { scope: "row" }, label), ...cells.map((cell) => make("td", wide, cell)));
  };
  const titles = ["measure", "value", "interval, or range over seeds", "test"];
  replace(
    byId("measures").tBodies[0],
    make("tr", {}, ...titles.map((title) => make("th", { scope: "col" }, title))),
    ...lines.map(rowOf),
  );
}

/** The kinds of changes, each with its mark and tone. */
const CHANGES = {
  added: { sign: "+", tone: "good" },
  removed: { sign: "−", tone: "bad" },
  changed: { sign: "≠", tone: "fair" },
};

function changeMark(change) {
  const { sign, tone } = CHANGES[change];
  return html("span", { class: "marked" }, html("b", { class: tone, "aria-hidden": "true" }, sign), change);
}

/** A text of one of the two sides; null if it lacks it. */
function side(text) {
  return text === null || text === undefined ? NONE : named(String(text));
}

/** A table with the number of its rows as the caption; null without rows. */
function tableOf(rows, columns, one, several) {
  return rows.length ? table(counted(rows.length, one, several), columns, rows) : null;
}

/** The inputs and outputs that differ. */
function endsSection(data) {
  const rows = ["inputs", "outputs"].flatMap((which) => data[which].map((end) => ({ ...end, which })));
  const cell = (end) => (end ? [named(end.name), html("small", {}, end.type)] : NONE);
  const columns = [
    { label: "", cell: ({ which }) => which.slice(0, -1) },
    { label: data.names[0], cell: ({ before }) => cell(before) },
    { label: data.names[1], cell: ({ after }) => cell(after) },
    ...(rows.some(({ note }) => note) ? [{ label: "Note", cell: ({ note }) => note || NONE }] : []),
  ];
  return section(2, "Inputs and outputs", tableOf(rows, columns, "difference", "differences"));
}

/** The operators of nodes that differ. */
function operatorsSection(data, node) {
  const rows = data.operators.filter(({ added, removed, changed }) => added + removed + changed);
  const number = (label, key) => numberColumn(label, (row) => row[key], whole);
  const columns = [
    { label: "Operator", value: ({ op }) => op, cell: ({ op }) => named(op) },
    number("Before", "before"),
    number("After", "after"),
    number("Added", "added"),
    number("Removed", "removed"),
    number("Changed", "changed"),
  ];
  return section(2, "Operators", tableOf(rows, columns, `operator of ${node}s`, `operators of ${node}s`));
}

/** The nodes that differ, by PyTorch module. A module is folded if there are several. */
function nodesSection(data, node) {
  if (!data.nodes.length) return null;
  const tree = moduleTree(data.nodes.map((each) => ({ ...each, ...data.places[each.place] })));
  const summaryOf = (module) => [moduleName(module, data.classes), figure(countsText(module.items, node))];
  const list = moduleList(tree, summaryOf, (own) => own.map(changeItem));
  const [only, ...others] = tree.entries.filter(({ entries }) => entries);
  if (only && !others.length) unfold(only.details);
  return section(2, `${node === "step" ? "Steps" : "Nodes"} by module`, foldButtons(list), list);
}

/** `3 steps: 2 added, 1 changed`. */
function countsText(items, node) {
  const counts = Object.keys(CHANGES).map((kind) => [items.filter(({ change }) => change === kind).length, kind]);
  const texts = counts.filter(([count]) => count).map(([count, kind]) => `${whole(count)} ${kind}`);
  return `${counted(items.length, node)}: ${texts.join(", ")}`;
}

/** A node that differs, with its differences and its origin. */
function changeItem({ change, op, name, details, nodes, source }) {
  const head = html("p", {}, changeMark(change), html("span", { class: "step" }, op), html("small", {}, named(name)));
  const items = details.map(({ what, before, after }) => {
    return html("li", {}, html("span", { class: "word" }, named(what)), side(before), " → ", side(after));
  });
  const differences = items.length ? html("ul", { class: "differences" }, items) : null;
  const origin = html("small", {}, named([source, nodes.join(" + ")].filter(Boolean).join(", ")));
  return html("li", { class: "step-item" }, head, differences, html("p", { class: "more" }, origin));
}

function constantsSection({ constants }) {
  const size = (row, index) => {
    const type = Object.values(row.types)[index];
    return type === null ? NONE : [type, html("small", {}, bytes(Object.values(row.bytes)[index]))];
  };
  const columns = [
    { label: "Constant", value: ({ name }) => name, cell: ({ name }) => named(name) },
    { label: "Change", value: ({ change }) => change, cell: ({ change }) => changeMark(change) },
    { label: "Before", cell: (row) => size(row, 0) },
    { label: "After", cell: (row) => size(row, 1) },
    numberColumn("Difference", (row) => row.max_abs, digits),
  ];
  return section(2, "Constants", tableOf(constants, columns, "constant that differs", "constants that differ"));
}

function factsSection({ facts }) {
  const text = (fact) => {
    if (fact === null || typeof fact !== "object") return side(typeof fact === "number" ? whole(fact) : fact);
    return countsList(Object.entries(fact));
  };
  const columns = [
    { label: "Fact", value: ({ fact }) => fact, cell: ({ fact }) => named(fact.replaceAll("_", " ")) },
    { label: "Before", cell: ({ before }) => text(before) },
    { label: "After", cell: ({ after }) => text(after) },
  ];
  return section(2, "Facts", tableOf(facts, columns, "fact that differs", "facts that differ"));
}

/** The results of both on the same inputs. */
function numbersSection({ numbers }) {
  if (!numbers) return null;
  const { problem, outputs, values, first } = numbers;
  if (problem) return section(2, "Results", html("ul", { class: "remarks" }, html("li", {}, problem)));
  const step = values[first];
  const where = step ? `${step.name}, of step ${whole(step.step)}, ${step.op}` : null;
  const said = where ? html("p", {}, `The first value that differs is ${where}.`) : null;
  const operator = (row) => [whole(row.step), html("small", {}, row.op)];
  const columns = [
    ...resultColumns(),
    { label: "Step", kind: "operator", value: (row) => row.step, cell: operator },
    { label: "Origin", kind: "origin", cell: (row) => html("small", {}, named(row.origin)) },
  ];
  const all = values.length ? table("Intermediate values that correspond", columns, values) : null;
  return section(2, "Results on the same inputs", said, table("Outputs", resultColumns(), outputs), all);
}

function resultColumns() {
  const text = ({ max_abs, verdict, problem, note }) => {
    if (problem || note) return problem || note;
    return max_abs === 0 ? "identical" : verdict === "equal" ? "within the tolerance" : verdict;
  };
  return [
    { label: "Value", value: ({ name }) => name, cell: ({ name }) => named(name) },
    { label: "Result", value: ({ verdict }) => badness(verdict), cell: (row) => verdictMark(row.verdict, text(row)) },
    { label: "Type", kind: "type", cell: ({ dtype, shape }) => `${dtype} [${shape.join(", ")}]` },
    numberColumn("Difference", (row) => (row.problem ? null : row.max_abs), digits),
    numberColumn("Relative", (row) => (row.problem ? null : row.max_rel), digits),
    numberColumn("Last places", (row) => (row.problem ? null : row.max_ulp), whole),
    numberColumn("Tolerance", (row) => (row.problem ? null : row.allowed), digits),
  ];
}

function startDifference() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const node = data.kind === "plan" ? "step" : "node";
  const results = numbersSection(data);
  const graph = [endsSection(data), operatorsSection(data, node), nodesSection(data, node), constantsSection(data)];
  const parts = [results, ...graph, factsSection(data)].filter(Boolean);
  if (parts.length) showSections(parts);
}

startDifference();

/** The numbers among the facts of a plan, and those of a level of the processor, with their names. */
const FACTS = [
  ["plan_bytes", "plan", bytes],
  ["constants", "constants", whole],
  ["constant_bytes", "size of the constants", bytes],
  ["operations", "multiplications and additions", whole],
  ["host_steps", "steps that a GPU leaves to the host", sumOf],
  ["no_kernel", "steps without a GPU kernel", sumOf],
  ["peak_bytes", "peak memory of a run’s values", bytes],
  ["packed_bytes", "packed constants", bytes],
  ["unpacked_bytes", "constants that are not packed", bytes],
  ["block", "channels in a block", whole],
  ["unknown_steps", "steps without known memory", whole],
];

function sumOf(counts) {
  return whole(Object.values(counts).reduce((one, other) => one + other, 0));
}

/** The facts of a plan as a list of names and numbers, with its time and its rounding error where they are known. */
function factsList({ facts, time }, precision) {
  const known = { ...facts.plan, ...Object.values(facts.levels)[0] };
  const items = FACTS.filter(([key]) => known[key]);
  const pairs = items.map(([key, name, text]) => [key, name, text(known[key])]);
  if (time) pairs.push(["time", "of onnxruntime’s time", `${time.percent} % ± ${time.noise} %`]);
  if (precision) pairs.push(["error", "rounding error of the plan", digits(precision.plan)]);
  if (precision) pairs.push(["reference_error", "rounding error of onnxruntime", digits(precision.reference)]);
  const list = pairs.map(([key, name, text]) => {
    return html("div", { "data-fact": key }, html("dt", {}, name), html("dd", {}, text));
  });
  return list.length ? html("dl", { class: "facts" }, list) : null;
}

/** The steps of a plan by operator, with the forms of their kernels. */
function stepsTable(facts) {
  const [level] = Object.values(facts.levels);
  const added = level?.added ?? {};
  const operators = [...new Set([...Object.keys(facts.plan.steps ?? {}), ...Object.keys(added)])];
  if (!operators.length) return null;
  const rows = operators.map((operator) => ({
    operator,
    count: facts.plan.steps?.[operator] ?? 0,
    added: added[operator] ?? 0,
    forms: Object.entries(level?.[`forms.${operator}`] ?? {}),
  }));
  return table("Steps by operator and kernel form", [
    { label: "Operator", value: (row) => row.operator, cell: (row) => row.operator },
    { label: "Steps", number: true, value: (row) => row.count, cell: (row) => whole(row.count) },
    { label: "Added", more: "by prepare", number: true, value: (row) => row.added, cell: (row) => whole(row.added) },
    { label: "Forms", cell: (row) => countsList(row.forms) },
  ], sorted(rows, (row) => row.count, true));
}

function countsList(pairs) {
  if (!pairs.length) return NONE;
  const items = pairs.map(([name, count]) => html("li", {}, html("b", {}, `${whole(count)} ×`), ` ${name}`));
  return html("ul", { class: "counts" }, items);
}

/** The rewrites of each pass by rule. */
function rewritesTable(facts) {
  const passes = Object.entries(facts.plan).filter(([name]) => name.startsWith("rewrites."));
  const rows = passes.map(([name, rules]) => ({ pass: name.slice("rewrites.".length), rules: Object.entries(rules) }));
  const total = ({ rules }) => rules.reduce((sum, [, count]) => sum + count, 0);
  if (!rows.length) return null;
  return table("Rewrites by pass and rule", [
    { label: "Pass", value: (row) => row.pass, cell: (row) => named(row.pass) },
    { label: "Rewrites", number: true, value: total, cell: (row) => whole(total(row)) },
    { label: "Rules", cell: (row) => countsList(row.rules) },
  ], rows);
}

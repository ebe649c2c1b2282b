/**
 * The steps of a plan with their time and memory; null if the check has no profile.
 * Without measured times, the work of the steps takes the place of their time.
 */
function profileSection(check, task) {
  const { profile } = check;
  if (!profile?.steps.op?.length) return null;
  const [steps, what] = [stepsOf(profile), isMeasured(profile) ? "Time" : "Work"];
  const text = isMeasured(profile) ? html("p", {}, machineText(profile)) : workText(profile);
  const isKnown = isMeasured(profile) || sumOfKnown(steps, "operations");
  const tables = isKnown ? groupedTables(profile, steps, what, task) : [];
  return section(task.level ?? 3, `${what} and memory of the steps`, text, ...tables, memoryFigure(profile, steps));
}

/** A table of the steps by layer, by operator or one by one, and the choice of it. */
function groupedTables(profile, steps, what, task) {
  const groups = [
    ...(steps.some((step) => step.layer) ? [["layer", layerRows(steps)]] : []),
    ["operator", operatorRows(steps)],
    ["step", steps.map((step) => ({ ...step, name: step.op }))],
  ];
  const place = html("div");
  const draw = (name, rows) => place.replaceChildren(timesTable(profile, name, rows));
  const choices = groups.map(([name, rows], index) => {
    const input = html("input", { type: "radio", name: `group, ${task.name}`, value: name, checked: index === 0 });
    input.addEventListener("change", () => draw(name, rows));
    return html("label", { class: "choice" }, input, name);
  });
  draw(...groups[0]);
  return [html("fieldset", { class: "groups" }, html("legend", {}, `${what} by`), choices), place];
}

function isMeasured({ milliseconds }) {
  return milliseconds !== null;
}

/** The steps of a profile, with the times of one run in milliseconds. Its own time is that without inner steps. */
function stepsOf({ steps, runs, peaks }) {
  const aRun = (sum) => (sum === null ? null : sum / (runs ?? 1));
  const found = steps.op.map((_, index) => {
    const step = { number: index + 1 };
    for (const key of Object.keys(steps)) step[key] = steps[key][index];
    const [operations, milliseconds] = [aRun(step.operations), step.seconds === null ? null : aRun(1e3 * step.seconds)];
    const least = leastOf(operations, aRun(step.bytes), peaks);
    return { ...step, operations, milliseconds, own: milliseconds, memory: step.alive_bytes, least };
  });
  const outer = [];
  for (const step of found) {
    outer[step.depth] = step;
    if (step.depth) outer[step.depth - 1].own -= step.milliseconds;
  }
  return found.map((step) => ({ ...step, own: Math.max(step.own, 0), known: step.milliseconds }));
}

/** The milliseconds that the peaks of the machine allow a step; null if they or its work are unknown. */
function leastOf(operations, bytes, peaks) {
  if (!peaks || bytes === null) return null;
  return 1e3 * Math.max((operations ?? 0) / peaks.operations, bytes / peaks.bytes);
}

function layerRows(steps) {
  return groupedBy(steps, (step) => step.layer || "no module");
}

function operatorRows(steps) {
  return groupedBy(steps, (step) => step.op);
}

/** The steps of a run by name, with the sums of their own times. The largest time or work comes first. */
function groupedBy(steps, nameOf) {
  const groups = Map.groupBy(steps, nameOf);
  const rows = [...groups].map(([name, group]) => ({ name, ...totalsOf(group) }));
  return sorted(rows, (row) => row.milliseconds || row.operations, true);
}

/** The numbers of several steps together: sums, and the largest memory. A number is null if no step has it. */
function totalsOf(group) {
  const known = group.filter((step) => step.least !== null);
  const memory = group.map((step) => step.memory).filter((each) => each !== null);
  return {
    count: group.length,
    milliseconds: sumOfKnown(group, "own"),
    operations: sumOfKnown(group, "operations"),
    least: sumOfKnown(known, "least"),
    known: sumOfKnown(known, "own"),
    memory: memory.length ? Math.max(...memory) : null,
  };
}

function sumOfKnown(group, key) {
  const known = group.map((step) => step[key]).filter((each) => each !== null);
  return known.length ? known.reduce((total, each) => total + each, 0) : null;
}

function machineText({ threads, level, milliseconds, runs, peaks }) {
  const time = `takes ${duration(milliseconds)} at the level ${level}, the mean of ${counted(runs, "run")}`;
  const run = `A run with ${counted(threads, "thread")} ${time}.`;
  if (!peaks) return run;
  const speed = `${digits(peaks.operations / 1e9)} GFLOP/s and ${digits(peaks.bytes / 1e9)} GB/s`;
  const least = `The line in a bar is the time that the peaks of the machine allow, ${speed}.`;
  return `${run} ${least} A step whose data is in the cache may take less.`;
}

/** What the numbers of steps without times mean, and which dimensions have no size before a run. */
function workText({ symbols }) {
  const meaning = "Operations are the multiplications and additions of the formulas. The memory is an upper bound.";
  const measuring = "The option `--profile` of `candlec compile` measures a run instead.";
  const [what, it] = symbols.length === 1 ? ["The dimension", "it"] : ["The dimensions", "them"];
  const unknown = `${what} ${symbols.join(", ")} may have any size, so most numbers are unknown.`;
  const lacking = symbols.length ? [unknown, `The option \`--dim\` fixes ${it}.`] : [];
  return html("p", {}, withCode([meaning, measuring, ...lacking].join(" ")));
}

/** The rows of a profile with a bar for the time or the work of each. */
function timesTable(profile, group, rows) {
  const work = isMeasured(profile) ? timeColumns(profile, rows) : operationColumns(rows);
  const own = group === "step" ? [...stepColumns(profile), ...work, originColumn()] : [groupColumn(group), ...work];
  return table(`${isMeasured(profile) ? "Time" : "Work"} by ${group}`, own, rows);
}

/** The number and the name of a step. If the page has the step itself, its number is a link. */
function stepColumns({ steps }) {
  const number = (row) => (steps.place ? stepLink(row.number) : whole(row.number));
  return [
    { label: "Step", number: true, value: (row) => row.number, cell: number },
    { label: "Operator", kind: "operator", value: (row) => row.name, cell: stepName },
  ];
}

/** The nodes, the layer and the line of Python that a step comes from. */
function originColumn() {
  const cell = (row) => html("small", {}, named(row.origin));
  return { label: "Origin", kind: "origin", value: (row) => row.origin, cell };
}

function groupColumn(group) {
  const label = group === "layer" ? "Layer" : "Operator";
  return { label, value: (row) => row.name, cell: (row) => named(row.name) };
}

/** The time, the share of the peaks and the memory of a row. The bars have the length of the longest time. */
function timeColumns(profile, rows) {
  const longest = Math.max(...rows.map((row) => row.milliseconds)) || 1;
  const time = (row) => row.milliseconds;
  return [
    numberColumn("Time", time, duration),
    { label: spoken("Time as a bar"), kind: "bars", cell: (row) => bar(time(row) / longest, tickOf(row, longest)) },
    numberColumn("Share", (row) => time(row) / profile.milliseconds, percentage),
    numberColumn("Of peak", ofPeak, percentage),
    numberColumn("Operations", (row) => row.operations, amount),
    ...commonColumns(rows),
  ];
}

/** The operations and the memory of a row. The bars have the length of the largest number of operations. */
function operationColumns(rows) {
  const work = (row) => row.operations;
  const largest = Math.max(...rows.map(work)) || 1;
  const total = sumOfKnown(rows, "operations") || 1;
  return [
    numberColumn("Operations", work, amount),
    { label: spoken("Operations as a bar"), kind: "bars", cell: (row) => bar(work(row) / largest) },
    numberColumn("Share", (row) => (work(row) === null ? null : work(row) / total), percentage),
    ...commonColumns(rows),
  ];
}

function commonColumns(rows) {
  const memory = numberColumn("Memory", (row) => row.memory, bytes);
  return rows[0].count ? [memory, numberColumn("Steps", (row) => row.count, whole)] : [memory];
}

function tickOf({ least }, longest) {
  return least === null ? null : least / longest;
}

/** The share of the time of the steps with known work that the peaks of the machine need. */
function ofPeak({ least, known }) {
  return least === null || !known ? null : least / known;
}

/** The name of a step, with its kernel, and the reason if it runs on the host. */
function stepName({ op, kernel, depth, host }) {
  const where = host ? `on the host: ${host === "nature" ? "by nature" : "the device has no kernel"}` : null;
  const name = html("span", { class: "step", "data-depth": depth }, `${"· ".repeat(depth)}${op}`);
  const texts = [kernel, where].filter(Boolean);
  return [name, ...texts.map((text) => html("small", {}, named(text)))];
}

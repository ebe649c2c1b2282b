/** The time of the steps of a check's plan and the memory of its run; null if the results have no profile. */
function profileSection(check, task) {
  const { profile } = check;
  if (!profile?.steps.op.length) return null;
  const steps = stepsOf(profile);
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
  const choice = html("fieldset", { class: "groups" }, html("legend", {}, "Time by"), choices);
  const text = html("p", {}, machineText(profile));
  return section(3, "Time and memory of the steps", text, choice, place, memoryFigure(steps));
}

/** The steps of a profile, with the times of one run in milliseconds. Its own time is that without inner steps. */
function stepsOf({ steps, runs, peaks }) {
  const found = steps.op.map((_, index) => {
    const step = { number: index + 1 };
    for (const key of Object.keys(steps)) step[key] = steps[key][index];
    const aRun = (sum) => (sum === null ? null : sum / runs);
    const [operations, milliseconds] = [aRun(step.operations), aRun(1e3 * step.seconds)];
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

/** The steps of a run by name, with the sums of their own times. */
function groupedBy(steps, nameOf) {
  const groups = Map.groupBy(steps, nameOf);
  const sum = (group, key) => group.reduce((total, step) => total + (step[key] ?? 0), 0);
  const rows = [...groups].map(([name, group]) => {
    const known = group.filter((step) => step.least !== null);
    return {
      name,
      count: group.length,
      milliseconds: sum(group, "own"),
      operations: sum(group, "operations"),
      least: known.length ? sum(known, "least") : null,
      known: sum(known, "own"),
      memory: Math.max(...group.map((step) => step.memory)),
    };
  });
  return sorted(rows, (row) => row.milliseconds, true);
}

function machineText({ threads, level, milliseconds, runs, peaks }) {
  const time = `takes ${duration(milliseconds)} at the level ${level}, the mean of ${counted(runs, "run")}`;
  const run = `A run with ${counted(threads, "thread")} ${time}.`;
  if (!peaks) return run;
  const speed = `${digits(peaks.operations / 1e9)} GFLOP/s and ${digits(peaks.bytes / 1e9)} GB/s`;
  const least = `The line in a bar is the time that the peaks of the machine allow, ${speed}.`;
  return `${run} ${least} A step whose data is in the cache may take less.`;
}

/** The rows of a profile with a bar for the time of each. */
function timesTable(profile, group, rows) {
  const work = workColumns(profile, rows);
  const columns = group === "step" ? [...stepColumns(), ...work, originColumn()] : [groupColumn(group), ...work];
  return table(`Time by ${group}`, columns, rows);
}

function stepColumns() {
  return [
    { label: "Step", number: true, value: (row) => row.number, cell: (row) => whole(row.number) },
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
function workColumns(profile, rows) {
  const longest = Math.max(...rows.map((row) => row.milliseconds)) || 1;
  const time = (row) => row.milliseconds;
  const number = (label, value, text) => ({ label, number: true, value, cell: (row) => shown(value(row), text) });
  return [
    number("Time", time, duration),
    { label: spoken("Time as a bar"), kind: "bars", cell: (row) => bar(time(row) / longest, tickOf(row, longest)) },
    { label: "Share", number: true, value: time, cell: (row) => percentage(time(row) / profile.milliseconds) },
    number("Of peak", ofPeak, percentage),
    number("Operations", (row) => row.operations, amount),
    number("Memory", (row) => row.memory, bytes),
    ...(rows[0].count ? [number("Steps", (row) => row.count, whole)] : []),
  ];
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

/** The memory of a run's values over its steps, with the step of the peak as a text. */
function memoryFigure(steps) {
  const ran = steps.filter((step) => step.calls);
  const values = ran.map((step) => step.memory);
  const peak = ran[values.indexOf(Math.max(...values))];
  const place = ({ number, op, layer }) => `step ${number}, ${op}${layer ? ` of ${layer}` : ""}`;
  const at = (step) => `${bytes(step.memory)} in ${place(step)}`;
  const text = `The peak is ${at(peak)}.`;
  const drawn = area(values, `Memory of a run over its ${counted(ran.length, "step")}. ${text}`);
  const [said, line] = [html("span", {}, text), html("span", { class: "cursor" })];
  const frame = html("div", { class: "frame" }, drawn, line);
  frame.addEventListener("pointermove", (event) => {
    const { left, width } = drawn.getBoundingClientRect();
    const index = Math.min(Math.max(Math.floor(((event.clientX - left) / width) * ran.length), 0), ran.length - 1);
    line.style.left = `${(100 * (index + 0.5)) / ran.length}%`;
    said.textContent = `${at(ran[index])}. ${text}`;
  });
  frame.addEventListener("pointerleave", () => said.replaceChildren(text));
  const plot = html("div", { class: "plot" }, labels("axis", bytes(peak.memory), "0"), frame);
  const caption = html("figcaption", {}, html("b", {}, "Memory over the steps"), said);
  return html("figure", {}, caption, plot, labels("ends", "first step", "last"));
}

/** The labels of the ends of an axis, which the text of the figure repeats. */
function labels(kind, one, other) {
  return html("div", { class: kind, "aria-hidden": "true" }, html("span", {}, one), html("span", {}, other));
}

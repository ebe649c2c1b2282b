/** The address of a step in the page. */
function stepLink(number) {
  return html("a", { href: `#step-${number}` }, whole(number));
}

/** The graph of a plan as the tree of its modules and as a section, where the modules are folded. */
function graphOf(data, steps) {
  const tree = moduleTree(steps);
  const what = isMeasured(data.profile) ? { key: "own", word: "time" } : { key: "operations", word: "operations" };
  const total = sumOfKnown(steps, what.key);
  const summaryOf = moduleSummary(data.classes, what.key, total);
  const list = moduleList(tree, summaryOf, (own) => own.map(stepItem));
  const place = html("div", {}, endsList("Inputs", data.ends.inputs), list, endsList("Outputs", data.ends.outputs));
  const bars = total ? ` A bar is the share of the ${what.word}.` : "";
  const text = `The steps in the order of a run, by PyTorch module.${bars}`;
  return { tree, section: section(2, "Graph by module", html("p", {}, text), foldButtons(place), place) };
}

/** What makes the summary of a module: its name, its number of steps, and the sum of their times or operations. */
function moduleSummary(classes, key, total) {
  const textOf = key === "own" ? duration : (number) => `${amount(number)} ops`;
  return (node) => {
    const sum = sumOfKnown(node.items, key);
    const count = counted(node.items.length, "step");
    const figures = total ? [count, bar((sum ?? 0) / total), shown(sum, textOf)] : [count];
    return [moduleName(node, classes), ...figures.map((each) => figure(each))];
  };
}

/** The inputs or outputs of the model. */
function endsList(title, ends) {
  const items = ends.map(([name, type]) => html("li", {}, named(name), html("small", {}, type)));
  return html("div", { class: "ends-of-graph" }, html("b", {}, title), html("ul", {}, items));
}

/** A step: its operator, its kernel, what it reads and writes, its numbers and its origin. */
function stepItem(step) {
  const notes = [step.added ? "added by prepare" : "", step.program ?? ""].filter(Boolean);
  const number = html("span", { class: "of" }, whole(step.number));
  const line = (kind, text) => (text ? html("p", { class: kind }, html("small", {}, named(text))) : null);
  return html(
    "li",
    { class: "step-item", id: `step-${step.number}`, tabindex: -1 },
    html("p", {}, number, ...stepName(step), ...notes.map((text) => html("small", {}, named(text)))),
    valuesLine("reads", step.inputs, sourceOf),
    valuesLine("writes", step.outputs, ([name, type]) => [named(name), html("small", {}, type)]),
    line("more", numbersOf(step)),
    line("more", step.origin),
  );
}

function valuesLine(word, values, cellOf) {
  if (!values.length) return null;
  const items = values.map((value) => html("li", {}, cellOf(value)));
  return html("div", { class: "values" }, html("span", { class: "word" }, word), html("ul", {}, items));
}

/** A value that a step reads, with a link to the step that writes it. */
function sourceOf([name, type, source]) {
  const isStep = typeof source === "number";
  const from = isStep ? ["from step ", stepLink(source)] : [source ?? "from another block"];
  return [named(name), html("small", {}, `${type}, `, ...from)];
}

/** The time, the operations and the memory of a step in words. */
function numbersOf({ milliseconds, operations, memory }) {
  const numbers = [
    [milliseconds, duration],
    [operations || null, (number) => `${amount(number)} operations`],
    [memory, (number) => `${bytes(number)} in use`],
  ];
  return numbers.filter(([number]) => number !== null).map(([number, text]) => text(number)).join(", ");
}

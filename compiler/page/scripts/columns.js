/**
 * The columns of the grid, whose numbers are those of a task.
 * A column has a `label`, the content of a `cell`, and a `value` by which the rows are sorted.
 */
function gridColumns(data, task) {
  const variants = data.tasks.flatMap((each) => each.variants.map((variant) => variantColumn(each, variant)));
  return [nameColumn(), statusColumn(), ...variants, ...numberColumns(data, task)];
}

function nameColumn() {
  return {
    label: "Model",
    kind: "name",
    value: (model) => model.name,
    cell: (model) => {
      const link = html("a", { href: placeOf(model), tabindex: -1 }, named(model.name));
      return [link, tagsOf(model)];
    },
  };
}

function statusColumn() {
  return {
    label: "Status",
    kind: "status",
    value: (model) => badness(model.state.verdict) + (model.state.ok === false ? 100 : 0),
    cell: (model) => statusMark(model.state),
  };
}

/** The column of a variant: `optimized, 1 thread`. */
function variantColumn(task, variant) {
  const [label, more] = variant.split(", ");
  const verdict = (model) => {
    const check = model.checks[task.name];
    return check && (check.outcomes?.find((each) => each.variant === variant)?.verdict ?? "missing");
  };
  return {
    label,
    more,
    kind: "variant",
    group: task.name,
    value: (model) => (verdict(model) ? badness(verdict(model)) : null),
    cell: (model) => (verdict(model) ? verdictMark(verdict(model)) : spoken("not checked")),
  };
}

/** The columns of the numbers that a model has, each with a line of its history. */
function numberColumns(data, task) {
  const used = NUMBERS.filter(({ key }) => data.models.some((model) => model.checks[task.name]?.history[key]));
  return used.map(({ key, label, more, text, isSteady }) => ({
    label,
    more,
    kind: key,
    number: true,
    value: (model) => numberOf(model.checks[task.name], key, task.run),
    cell: (model) => {
      const values = model.checks[task.name]?.history[key] ?? [];
      const number = html("span", {}, shown(values[task.run], text));
      if (isSteady || data.runs.length < 2) return number;
      return [number, sparkline(values, text) ?? html("span", { class: "sparkline" })];
    },
  }));
}

/** The tags of a model; null if it has none. */
function tagsOf(model) {
  return model.tags.length ? html("span", { class: "tags" }, model.tags.map((tag) => named(tag, "tag"))) : null;
}

/** The address of a model in the page. */
function placeOf(model) {
  return `#model=${encodeURIComponent(model.name.toWellFormed())}`;
}

/** Fill the controls of the filters, and call `onChange` with a predicate of models when one of them changes. */
function startFilters(data, onChange) {
  const form = document.getElementById("filters");
  const [text, tag] = ["text", "tag"].map((id) => document.getElementById(id));
  document.getElementById("statuses").append(...statusChoices(data.models));
  const tags = [...new Set(data.models.flatMap((model) => model.tags))].sort();
  tag.append(...tags.map((each) => option(each, each)));
  document.getElementById("tag-field").hidden = !tags.length;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    if (event.target.id !== "task") onChange(predicate(form, text.value, tag.value));
  });
}

/** A choice for each status that a model has, with the number of models. */
function statusChoices(models) {
  const known = Object.keys(VERDICTS).filter((verdict) => models.some((model) => model.state.verdict === verdict));
  const choices = ["all", ...(models.some((model) => model.state.ok === false) ? ["not acceptable"] : []), ...known];
  return choices.map((status) => {
    const input = html("input", { type: "radio", name: "status", value: status, checked: status === "all" });
    const count = models.filter((model) => hasStatus(model, status)).length;
    const mark = status === "not acceptable" ? drawnMark("cross", "bad") : null;
    const shownMark = VERDICTS[status] ? drawnMark(VERDICTS[status].mark, VERDICTS[status].tone) : mark;
    return html("label", { class: "choice" }, input, shownMark, status, html("b", {}, whole(count)));
  });
}

function hasStatus(model, status) {
  if (status === "all") return true;
  return status === "not acceptable" ? model.state.ok === false : model.state.verdict === status;
}

/** Whether a model has the chosen status and tag, and each word in its name or in a tag. */
function predicate(form, text, tag) {
  const status = form.elements.status.value;
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (model) => {
    if (!hasStatus(model, status) || (tag && !model.tags.includes(tag))) return false;
    const place = [model.name, ...model.tags].join("\n").toLowerCase();
    return words.every((word) => place.includes(word));
  };
}

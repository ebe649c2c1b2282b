/** The view of a model: the state of each check, with its results, facts, profile and history. */
function showModel(data, model, place) {
  const back = html("nav", { "aria-label": "Back" }, html("a", { href: "#" }, "← All models"));
  const title = html("h1", { tabindex: -1 }, named(model.name));
  const state = html("p", { class: "state" }, statusMark(model.state), tagsOf(model));
  const problems = model.problems.map((problem) => html("li", {}, problem));
  const header = html("header", {}, title, state, problems.length ? html("ul", { class: "remarks" }, problems) : null);
  const tasks = data.tasks.filter((task) => model.checks[task.name]);
  place.replaceChildren(back, header, ...tasks.map((task) => checkSection(data, model, task)));
  title.focus();
}

/** A check of a model: its result with the reason, and what is known of its plan. */
function checkSection(data, model, task) {
  const check = model.checks[task.name];
  const isOnly = Object.keys(model.checks).length === 1;
  const status = isOnly ? null : html("p", { class: "state" }, statusMark(check));
  const history = historySection(data, check);
  if (!check.outcomes) return section(2, task.name, status, history);
  const remarks = section(3, check.verdict === "refused" ? "Diagnostics" : "Remarks", remarksOf(check));
  const results = section(3, "Results", variantsTable(check), outputsTable(check));
  const plan = check.facts ? planSection(check, model.precision) : null;
  return section(2, task.name, status, remarks, results, plan, profileSection(check, task), history);
}

/** The facts of a check's plan; null if there is no plan. */
function planSection(check, precision) {
  const [level] = Object.keys(check.facts.levels);
  const parts = [factsList(check, precision), stepsTable(check.facts), rewritesTable(check.facts)];
  return section(3, level ? `Plan at the level ${level}` : "Plan", ...parts);
}

/** The numbers of a check in each file of results; null for a single file. */
function historySection(data, check) {
  if (data.runs.length < 2) return null;
  const used = NUMBERS.filter(({ key }) => check.history[key]);
  const rows = data.runs.map((name, index) => ({ name, index }));
  const lines = used.map(({ key, label, text }) => {
    const line = sparkline(check.history[key], text, [240, 48]);
    return line ? html("li", {}, html("span", {}, label), line) : null;
  });
  const columns = used.map(({ key, label, more, text }) => ({
    label,
    more,
    number: true,
    cell: ({ index }) => shown(check.history[key][index], text),
  }));
  const file = { label: "File", cell: ({ name }) => named(name) };
  const runs = table("Results by file, the oldest first", [file, ...columns], rows);
  return used.length ? section(3, "History", html("ul", { class: "histories" }, lines), runs) : null;
}

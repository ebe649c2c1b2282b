/** The model that the address names; undefined for the overview. */
function modelOf(data) {
  const [, name] = /^#model=(.*)$/.exec(location.hash) ?? [];
  try {
    return data.models.find((model) => model.name.toWellFormed() === decodeURIComponent(name ?? "%"));
  } catch {
    return undefined;
  }
}

/** Show the model that the address names, or the overview. */
function showPlace(data, table) {
  const [overview, view] = ["overview", "view"].map((id) => document.getElementById(id));
  const model = modelOf(data);
  const isBack = !model && !view.hidden;
  overview.hidden = Boolean(model);
  view.hidden = !model;
  document.title = model ? `${model.name} – ${data.title}` : data.title;
  if (model) {
    scrollTo(0, 0);
    showModel(data, model, view);
  } else if (isBack) {
    view.replaceChildren();
    table.querySelector("[tabindex='0']").focus();
  }
}

/** Let the choice of a task change the numbers of the grid. A single task leaves no choice. */
function startTasks(data, grid) {
  const choice = document.getElementById("task");
  choice.append(...data.tasks.map((task) => option(task.name, task.name)));
  document.getElementById("task-field").hidden = data.tasks.length < 2;
  choice.addEventListener("change", () => grid.draw(data.tasks[choice.selectedIndex]));
}

/** The keys that work everywhere: Escape returns from a model, and the slash goes to the search. */
function startShortcuts() {
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const isTyping = event.target.matches("input:not([type=radio]), select");
    if (event.key === "Escape" && !document.getElementById("view").hidden) location.hash = "";
    if (event.key === "/" && !isTyping && document.getElementById("view").hidden) {
      event.preventDefault();
      document.getElementById("text").focus();
    }
  });
}

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  for (const model of data.models) model.state = stateOf(model);
  const files = data.runs.length > 1 ? `${data.runs.length} files of results, the newest: ` : "Results: ";
  document.getElementById("runs").append(files, named(data.runs.at(-1)));
  const grid = makeGrid(data);
  startFilters(data, grid.show);
  startTasks(data, grid);
  startKeys(grid.table, (row) => row.querySelector("a").click());
  startShortcuts();
  const checks = data.models.flatMap((model) => Object.values(model.checks));
  const outcomes = checks.flatMap((check) => check.outcomes ?? []);
  const verdicts = [...checks, ...outcomes].map((each) => each.verdict);
  document.getElementById("legend").append(...legendOf(new Set(verdicts)));
  addEventListener("hashchange", () => showPlace(data, grid.table));
  showPlace(data, grid.table);
}

start();

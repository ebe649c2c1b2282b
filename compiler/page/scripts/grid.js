/** The grid of models. `show` leaves out models, and `draw` makes the rows again with the numbers of another task. */
function makeGrid(data) {
  const grid = { table: document.getElementById("grid"), data, rows: [], isShown: () => true };
  grid.show = (isShown) => {
    grid.isShown = isShown;
    showRows(grid);
  };
  grid.draw = (task) => drawGrid(grid, task);
  grid.draw(data.tasks[0]);
  watchWidth(grid.table.parentElement, grid.table, "Models");
  return grid;
}

function drawGrid(grid, task) {
  const columns = gridColumns(grid.data, task);
  grid.rows = grid.data.models.map((model) => ({ model, row: html("tr", {}, cellsOf(model, columns)) }));
  const body = html("tbody", {}, ...grid.rows.map(({ row }) => row));
  const onSort = (column) => (isDescending) => {
    body.append(...sorted(grid.rows, ({ model }) => column.value(model), isDescending).map(({ row }) => row));
  };
  const text = `The models and their checks. The numbers are those of ${task.name}.`;
  grid.table.classList.toggle("many", columns.filter((column) => column.group).length > 4);
  grid.table.replaceChildren(html("caption", { class: "spoken" }, text), gridHead(columns, onSort), body);
  showRows(grid);
}

/** Two rows of headings: the variants of a task have a common heading. */
function gridHead(columns, onSort) {
  const [upper, lower] = [html("tr"), html("tr")];
  for (const [index, column] of columns.entries()) {
    const attributes = { "data-column": index, rowspan: column.group ? null : 2 };
    const heading = sortHeading(column, onSort(column), attributes);
    heading.classList.add(column.kind);
    heading.querySelector("button").tabIndex = -1;
    if (column.group && column.group !== columns[index - 1].group) {
      const span = columns.filter((each) => each.group === column.group).length;
      upper.append(html("th", { scope: "colgroup", colspan: span, class: "group" }, column.group));
    }
    (column.group ? lower : upper).append(heading);
  }
  return html("thead", {}, upper, lower);
}

/** Hide the rows of models that the filters leave out, and say how many are shown. */
function showRows(grid) {
  let count = 0;
  for (const { model, row } of grid.rows) {
    row.hidden = !grid.isShown(model);
    count += row.hidden ? 0 : 1;
  }
  const all = counted(grid.rows.length, "model");
  document.getElementById("count").textContent = count === grid.rows.length ? all : `${count} of ${all}`;
  keepStop(grid.table);
}

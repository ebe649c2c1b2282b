/** How many rows PageUp and PageDown move. */
const PAGE = 10;

/** What has the focus in a cell: its link or button, or the cell itself. */
function targetOf(cell) {
  return cell.querySelector("a, button") ?? cell;
}

/** The rows of cells that the keys move through: the headings as one row, then the shown models. */
function shownRows(table) {
  const headings = [...table.tHead.querySelectorAll("[data-column]")];
  headings.sort((one, other) => one.dataset.column - other.dataset.column);
  return [headings, ...[...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => [...row.cells])];
}

/** Let the tab key reach only this cell of the table. */
function stopAt(table, cell) {
  const former = table.querySelector("[tabindex='0']");
  if (former) former.tabIndex = -1;
  targetOf(cell).tabIndex = 0;
}

/** Let the tab key reach a cell that is shown. */
function keepStop(table) {
  const stop = table.querySelector("[tabindex='0']");
  const rows = shownRows(table);
  if (!stop || stop.closest("tr").hidden) stopAt(table, (rows[1] ?? rows[0])[0]);
}

/** The cell to which a key moves from a row and a column; undefined for another key. */
function movedTo(event, rows, [row, column]) {
  const [last, end] = [rows.length - 1, rows[0].length - 1];
  const places = {
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    PageUp: [row - PAGE, column],
    PageDown: [row + PAGE, column],
    Home: [event.ctrlKey ? 0 : row, 0],
    End: [event.ctrlKey ? last : row, end],
  };
  const place = places[event.key];
  return place && rows[Math.min(Math.max(place[0], 0), last)][Math.min(Math.max(place[1], 0), end)];
}

/** Move the focus in a table with the arrow keys. Enter on a cell calls `open` with its row. */
function startKeys(table, open) {
  table.addEventListener("keydown", (event) => {
    const cell = event.target.closest("th, td");
    if (!cell || event.altKey || event.metaKey) return;
    const rows = shownRows(table);
    const row = rows.findIndex((cells) => cells.includes(cell));
    const next = movedTo(event, rows, [row, rows[row].indexOf(cell)]);
    if (next) {
      event.preventDefault();
      stopAt(table, next);
      targetOf(next).focus();
    } else if (event.key === "Enter" && event.target === cell) {
      open(cell.closest("tr"));
    }
  });
  table.addEventListener("focusin", (event) => stopAt(table, event.target.closest("th, td")));
}

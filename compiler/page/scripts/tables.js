/** How many rows a table shows at first. */
const FEW = 40;

/** Rows in the order of a value, missing values last. */
function sorted(rows, value, isDescending) {
  const sign = isDescending ? -1 : 1;
  const rank = (row) => value(row) ?? null;
  return [...rows].sort((one, other) => {
    const [a, b] = [rank(one), rank(other)];
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  });
}

/** A heading that sorts by its column. `onSort` gets whether the order is descending. */
function sortHeading(column, onSort, attributes = {}) {
  const button = html("button", { type: "button" }, html("span", {}, column.label));
  if (column.more) button.append(html("small", {}, column.more));
  const kind = column.number ? "number" : null;
  const heading = html("th", { scope: "col", class: kind, ...attributes }, button);
  button.addEventListener("click", () => {
    const isFirst = column.number ? "descending" : "ascending";
    const order = heading.ariaSort === isFirst ? (column.number ? "ascending" : "descending") : isFirst;
    onSort(order === "descending");
    for (const each of heading.closest("thead").querySelectorAll("th")) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order);
  });
  return heading;
}

function plainHeading(column) {
  const more = column.more ? html("small", {}, column.more) : null;
  return html("th", { scope: "col", class: column.number ? "number" : null }, html("span", {}, column.label), more);
}

/** A column of numbers, which may be null. */
function numberColumn(label, value, text) {
  return { label, number: true, value, cell: (row) => shown(value(row), text) };
}

/** The cells of a row. The cell of the first column is the row's heading. */
function cellsOf(row, columns) {
  return columns.map((column, index) => {
    const kind = [column.number ? "number" : "", column.kind ?? ""].join(" ").trim() || null;
    const attributes = { class: kind, "data-value": column.value?.(row) ?? null };
    const name = index ? "td" : "th";
    return html(name, { scope: index ? null : "row", ...attributes }, column.cell(row));
  });
}

/**
 * A table of rows. A column has a `label` and the content of a `cell`; with a `value`, a click on its heading sorts.
 * A long table shows its first rows, and a button shows the others.
 */
function table(caption, columns, rows) {
  let [order, most] = [rows, FEW];
  const body = html("tbody");
  const all = html("button", { type: "button", class: "all" }, `Show all ${counted(rows.length, "row")}`);
  const fill = () => {
    body.replaceChildren(...order.slice(0, most).map((row) => html("tr", {}, cellsOf(row, columns))));
    all.hidden = order.length <= most;
  };
  const sortBy = (column) => (isDescending) => {
    order = sorted(rows, column.value, isDescending);
    fill();
  };
  const headings = columns.map((each) => (each.value ? sortHeading(each, sortBy(each)) : plainHeading(each)));
  all.addEventListener("click", () => {
    most = rows.length;
    fill();
    body.rows[FEW].querySelector("th").tabIndex = -1;
    body.rows[FEW].querySelector("th").focus();
  });
  fill();
  const made = html("table", {}, html("caption", {}, caption), html("thead", {}, html("tr", {}, headings)), body);
  const frame = html("div", { class: "scroll" }, made);
  watchWidth(frame, made, caption);
  return html("div", { class: "tabular" }, frame, all);
}

/** Scroll the frame of a table that is too wide for it. The tab key reaches the frame if it reaches nothing inside. */
function watchWidth(frame, made, label) {
  const isReached = made.querySelector("a, button") !== null;
  const reachable = isReached ? [] : Object.entries({ tabindex: 0, role: "group", "aria-label": label });
  const observer = new ResizeObserver(() => {
    const fits = made.offsetWidth <= frame.clientWidth;
    frame.classList.toggle("fits", fits);
    for (const [name, value] of reachable) fits ? frame.removeAttribute(name) : frame.setAttribute(name, value);
  });
  observer.observe(frame);
  observer.observe(made);
}

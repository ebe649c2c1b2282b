/** How many places of the same module and line a table shows unfolded. */
const FEW_PLACES = 4;

/** What each pass did and where, and its near misses. A click on a pass shows its rules, and on a rule its places. */
function passesSection(data) {
  const active = data.passes.filter(({ fired, missed }) => fired.length || missed.length);
  const names = new Set(active.map(({ name }) => name));
  const idle = [...new Set(data.passes.map(({ name }) => name))].filter((name) => !names.has(name));
  const list = html("ul", { class: "passes" }, active.map((pass) => html("li", {}, passDetails(data, pass))));
  const idleNames = () => html("p", {}, idle.flatMap((name, index) => [index ? ", " : "", named(name)]));
  const others = `${counted(idle.length, "other pass", "other passes")} changed nothing`;
  const [which, near] = ["The passes that changed the graph or almost did", "places where a rule almost applied"];
  const text = html("p", {}, `${which}, in the order of their runs. Near misses are ${near}.`);
  return section(2, "Passes", text, foldButtons(list), list, idle.length ? folded(others, idleNames) : null);
}

function passDetails(data, pass) {
  const { name, about, fired, missed, before, after } = pass;
  const [done, near] = [fired, missed].map((groups) => groups.reduce((sum, { places }) => sum + places.length, 0));
  const texts = [
    done ? `${pass.result}: ${whole(done)}` : "",
    near ? counted(near, "near miss", "near misses") : "",
    `${before === after ? "" : `${whole(before)} → `}${whole(after)} nodes`,
    duration(1e3 * pass.seconds),
  ];
  const summary = [html("span", { class: "path" }, named(name)), ...texts.map((each) => figure(each))];
  const content = () => [
    about ? html("p", {}, withCode(about)) : null,
    groupsOf("Rewrites", fired, (group) => placesTable(data, group.places)),
    groupsOf("Near misses", missed, (group) => placesTable(data, group.places.map((place) => [place, ""]))),
  ];
  return folded(summary, content, { "data-pass": name });
}

/** The rules of a pass with the number of their places. A single rule is open. */
function groupsOf(title, groups, tableOf) {
  if (!groups.length) return null;
  const items = groups.map((group) => {
    const reason = group.reason ? `: ${group.reason}` : null;
    const summary = [html("b", {}, `${whole(group.places.length)} ×`), " ", html("code", {}, group.rule), reason];
    const about = group.about ? html("p", {}, withCode(group.about)) : null;
    const details = folded(summary, () => [about, tableOf(group)]);
    if (groups.length === 1) unfold(details);
    return html("li", {}, details);
  });
  return html("div", { class: "groups-of-pass" }, html("h3", {}, title), html("ul", {}, items));
}

/** The places of a rule by module and line of Python, with the nodes of the model. A place comes with a note. */
function placesTable(data, pairs) {
  const found = pairs.map(([index, note]) => ({ ...data.places[index], note }));
  const groups = Map.groupBy(found, ({ module, source, note }) => JSON.stringify([module, source, note]));
  const rows = [...groups.values()].map((group) => ({ ...group[0], places: group }));
  const columns = [
    { label: "Module", value: (row) => row.module, cell: (row) => moduleCell(data, row.module) },
    { label: "Line of Python", value: (row) => row.source, cell: (row) => (row.source ? named(row.source) : NONE) },
    { label: "Places", number: true, value: (row) => row.places.length, cell: (row) => whole(row.places.length) },
    { label: "Nodes", cell: (row) => nodesCell(row.places) },
    { label: "Note", value: (row) => row.note, cell: (row) => (row.note ? named(row.note) : NONE) },
  ];
  const isUsed = ({ label, value }) => !value || label === "Places" || rows.some((row) => value(row));
  return table(counted(pairs.length, "place"), columns.filter(isUsed), rows);
}

/** The nodes of each place. */
function nodesCell(places) {
  const items = () => places.map(({ nodes }) => html("li", {}, named(nodes.join(" + "))));
  const list = () => html("ul", { class: "nodes" }, items());
  return places.length > FEW_PLACES ? folded(counted(places.length, "place"), list) : list();
}

/** A module, as a link to the graph, with its class. */
function moduleCell({ classes }, path) {
  if (!path) return NONE;
  const link = html("a", { href: `#module=${encodeURIComponent(path.toWellFormed())}` }, named(path));
  return classes[path] ? [link, html("small", {}, classes[path])] : link;
}

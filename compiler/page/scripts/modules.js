/**
 * Items in a tree by the path of their `module`. A node has the items in it and in the nodes below it, and `entries`:
 * its own items and its nodes, in the order of the items. A module that holds only another module is one with it. Many
 * items without a module have a node of their own.
 */
function moduleTree(items) {
  const root = moduleNode("", "");
  for (const item of items) {
    let node = root;
    root.items.push(item);
    for (const name of item.module ? item.module.split(".") : []) {
      node = childOf(node, name);
      node.items.push(item);
    }
    node.entries.push(item);
  }
  return withGroups(merged(root));
}

/** The root of a tree, where long rows of items become nodes. */
function withGroups(root) {
  const entries = [];
  let row = [];
  const flush = () => {
    const group = { ...moduleNode("no module", ""), items: row, entries: row };
    entries.push(...(row.length > FEW ? [group] : row));
    row = [];
  };
  for (const entry of root.entries) {
    if (entry.entries) flush();
    (entry.entries ? entries : row).push(entry);
  }
  flush();
  return { ...root, entries };
}

function moduleNode(name, path) {
  return { name, path, items: [], entries: [], children: new Map(), details: null };
}

function childOf(node, name) {
  if (!node.children.has(name)) {
    const child = moduleNode(name, node.path ? `${node.path}.${name}` : name);
    node.children.set(name, child);
    node.entries.push(child);
  }
  return node.children.get(name);
}

/** The same tree without modules that hold nothing but another one. */
function merged(node) {
  const entries = node.entries.map((entry) => (entry.entries ? merged(entry) : entry));
  const [only] = entries;
  if (node.path && entries.length === 1 && only.entries) return { ...only, name: `${node.name}.${only.name}` };
  return { ...node, entries };
}

/**
 * The entries of a node as a list. A module is folded: `summaryOf` makes its summary. `listOf` makes the elements of
 * items that follow one another.
 */
function moduleList(node, summaryOf, listOf) {
  const list = html("ul", { class: "modules" });
  let own = [];
  const flush = () => {
    if (own.length) list.append(...listOf(own));
    own = [];
  };
  for (const entry of node.entries) {
    if (entry.entries) {
      flush();
      entry.details = folded(summaryOf(entry), () => moduleList(entry, summaryOf, listOf));
      list.append(html("li", { class: "module" }, entry.details));
    } else {
      own.push(entry);
    }
  }
  flush();
  return list;
}

/** Show the modules around an item. */
function revealItem(node, item) {
  const next = node.entries.find((entry) => entry.entries && entry.items.includes(item));
  if (!next) return;
  unfold(next.details);
  revealItem(next, item);
}

/** Show a module, or the innermost one around it, and return its summary; null if no module contains it. */
function revealModule(node, path) {
  const isAround = (entry) => `${path}.`.startsWith(`${entry.path}.`);
  const next = node.entries.find((entry) => entry.entries && (isAround(entry) || entry.path.startsWith(`${path}.`)));
  if (!next) return node.details?.querySelector("summary") ?? null;
  unfold(next.details);
  return next.path.length < path.length ? revealModule(next, path) : next.details.querySelector("summary");
}

/** The name of a module and its class. */
function moduleName({ name, path }, classes) {
  const kind = classes[path];
  return html("span", { class: "path" }, named(name), kind ? html("small", {}, kind) : null);
}

// The icicle of views.icicle: the tree of a forward, zoomed by click or by keyboard. No kernel is needed.
// root: the figure. data: [{name, tree}], a tree being [name, look, calls, own µs, children].
function icicle(root, data) {
  const ROW = 30, LETTER = 7, WIDE_ENOUGH = 50, THIN = 4, SMALLEST = 0.2;
  const find = (what) => root.querySelector(`[data-part=${what}]`);
  const [stage, crumbs, modes, readout] = ["stage", "crumbs", "modes", "readout"].map(find);

  function grow([name, look, calls, own, below], parent, depth, start) {
    const node = { name, look, calls, own, parent, depth, start, total: own, children: [] };
    for (const one of below) {
      const child = grow(one, node, depth + 1, start + node.total - own);
      node.children.push(child);
      node.total += child.total;
    }
    return node;
  }
  const levels = (node) => 1 + Math.max(0, ...node.children.map(levels));
  const path = (node) => (node ? [...path(node.parent), node] : []);
  const inside = (node, outer) => path(node).includes(outer);
  const trees = data.map(({ tree }) => grow(tree, null, 0, 0));

  let mode = 0, zoom = trees[mode], at = zoom, cells = new Map();

  function time(us) {
    const [size, unit] = us >= 1e6 ? [1e6, "s"] : us >= 1e3 ? [1e3, "ms"] : [1, "µs"];
    return `${Number((us / size).toPrecision(3))} ${unit}`;
  }
  const percent = (part, whole) => `${((100 * part) / (whole || 1)).toFixed(1)} %`;

  function said(node) {
    const words = [`${path(node).slice(1).map((one) => one.name).join(" › ") || node.name}: ${time(node.total)}`];
    if (node.calls > 1) words[0] += ` in ${node.calls} calls`;
    words.push(`${percent(node.total, trees[mode].total)} of the forward`);
    if (node.depth > 1) words.push(`${percent(node.total, node.parent.total)} of ${node.parent.name}`);
    if (node.children.length && node.own) words.push(`${time(node.own)} of it outside of what is drawn below`);
    return words.join(", ");
  }

  function label(node, pixels) {
    const fits = (text) => text.length * LETTER + 8 <= pixels;
    if (fits(node.name)) return node.name;
    const end = node.name.split(/[._]/).pop(); // layers.11, linear_q
    if (end.length <= 3 && fits(end)) return end;
    return pixels >= WIDE_ENOUGH ? node.name : "";
  }

  function place(box, left, width, depth) {
    box.style.left = `${left}%`;
    box.style.width = `${width}%`;
    box.style.top = `${depth * ROW}px`;
    box.style.height = `${ROW - 2}px`;
  }

  function draw(node, pixels) {
    const isAround = inside(zoom, node);
    const left = isAround ? 0 : (100 * (node.start - zoom.start)) / zoom.total;
    const width = isAround ? 100 : (100 * node.total) / zoom.total;
    const seen = (width / 100) * pixels;
    if (seen < SMALLEST && !inside(at, node)) return;
    const box = document.createElement("div");
    box.className = `look-${node.look}`;
    box.classList.toggle("around", isAround && node !== zoom);
    box.classList.toggle("thin", seen < THIN);
    place(box, left, width, node.depth);
    box.setAttribute("role", "treeitem");
    box.setAttribute("aria-level", node.depth + 1);
    box.setAttribute("aria-label", said(node));
    box.setAttribute("data-lm-suppress-shortcuts", "true"); // JupyterLab's own keys stay out
    box.title = said(node);
    box.textContent = label(node, seen);
    box.addEventListener("click", () => go(node, node.children.length ? node : node.parent || node));
    box.addEventListener("mouseenter", () => tell(node));
    box.addEventListener("mouseleave", () => tell(at));
    box.addEventListener("focus", () => tell(node));
    cells.set(node, box);
    stage.append(box);
    const shown = isAround && node !== zoom ? node.children.filter((one) => inside(zoom, one)) : node.children;
    for (const child of shown) draw(child, pixels);
    if ((!isAround || node === zoom) && node.children.length) drawOwn(node, pixels);
  }

  function drawOwn(node, pixels) {
    const width = (100 * node.own) / zoom.total, seen = (width / 100) * pixels;
    if (seen < 2) return;
    const box = document.createElement("div");
    box.className = "own";
    place(box, (100 * (node.start + node.total - node.own - zoom.start)) / zoom.total, width, node.depth + 1);
    box.setAttribute("aria-hidden", "true");
    box.title = `${node.name} itself: ${time(node.own)} of Python, hooks and the profiler's labels`;
    box.textContent = seen > 90 ? "Python, hooks" : "";
    stage.append(box);
  }

  function tell(node) {
    readout.textContent = said(node);
  }

  function mark(hasFocus) {
    for (const [node, box] of cells) {
      box.tabIndex = node === at ? 0 : -1;
      box.setAttribute("aria-selected", node === at);
    }
    tell(at);
    if (hasFocus) cells.get(at).focus({ preventScroll: true });
  }

  function render(hasFocus) {
    cells = new Map();
    stage.replaceChildren();
    draw(trees[mode], stage.clientWidth);
    crumbs.replaceChildren();
    path(zoom).forEach((node, number, all) => {
      if (number) crumbs.append(" › ");
      crumbs.append(button(node.name, () => go(node, node), number === all.length - 1 && "location"));
    });
    [...modes.children].forEach((one, number) => one.setAttribute("aria-pressed", number === mode));
    mark(hasFocus);
  }

  function button(name, act, current) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = name;
    made.setAttribute("data-lm-suppress-shortcuts", "true");
    if (current) made.setAttribute("aria-current", current);
    made.addEventListener("click", act);
    return made;
  }

  function go(node, to) {
    const isSame = to === zoom;
    at = node;
    zoom = to;
    if (isSame && cells.has(node)) mark(true);
    else render(true);
  }

  function sibling(step) {
    const all = at.parent ? at.parent.children : [at];
    const next = all[all.indexOf(at) + step];
    if (next) go(next, inside(next, zoom) ? zoom : next.children.length ? next : zoom);
  }

  const keys = {
    ArrowLeft: () => sibling(-1),
    ArrowRight: () => sibling(1),
    ArrowUp: () => at.parent && go(at.parent, inside(at.parent, zoom) ? zoom : at.parent),
    ArrowDown: () => at.children.length && go(at.children[0], zoom),
    Enter: () => go(at, at.children.length ? at : at.parent || at),
    " ": () => go(at, at.children.length ? at : at.parent || at),
    Escape: () => zoom.parent && go(zoom, zoom.parent),
    Home: () => go(trees[mode], trees[mode]),
  };
  stage.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });

  data.forEach(({ name }, number) => {
    modes.append(button(name, () => {
      mode = number;
      at = zoom = trees[mode];
      render(false);
    }));
  });
  stage.style.height = `${ROW * Math.max(...trees.map(levels))}px`;
  find("still").hidden = true; // what is shown where no script runs
  find("live").hidden = false;
  render(false);
  let before = stage.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(stage.clientWidth - before) < 2) return;
    before = stage.clientWidth;
    render(stage.contains(document.activeElement));
  }).observe(stage);
}

"use strict";
// The flame graph, root on top, of one of the three values at a time.
(() => {
  const tree = hakmem.data.flame;
  if (!tree) return;
  const box = document.getElementById("flame-chart");
  const detail = document.getElementById("flame-detail");
  const search = document.getElementById("flame-search");
  const choices = [...document.querySelectorAll('input[name="flame-value"]')];
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let value = Number(choices.find((choice) => choice.checked).value), chart = null, root = null, current = null;

  // The tree of one value: what has none of it is left out.
  const chosen = (node) => ({
    name: node.n, place: node.p || "", value: node.v[value],
    children: (node.c || []).filter((child) => child.v[value] > 0).map(chosen).sort((a, b) => b.value - a.value),
  });

  const text = (node) => {
    const part = tree.v[value] ? (100 * node.data.value) / tree.v[value] : 0;
    const place = node.data.place ? `, ${node.data.place}` : "";
    return `${node.data.name}${place}: ${hakmem.size(node.data.value)}, ${part.toFixed(1)} %`;
  };

  // A function keeps its shade; neighbours mostly have different ones.
  const shade = (name) => {
    let hash = 0;
    for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)) % 997;
    return hash / 997;
  };
  const colour = (node) => {
    if (node.highlight) return hakmem.colour("found");
    const own = node.data.place || !node.parent;
    return own ? `hsl(${30 + 16 * shade(node.data.name)} 85% ${64 + 12 * shade(node.data.name)}%)`
      : `hsl(212 38% ${72 + 10 * shade(node.data.name)}%)`;
  };

  const groups = () => [...box.querySelectorAll("g")];
  const datum = (group) => group.__data__;
  const mark = (node) => {
    current = node;
    groups().forEach((group) => group.classList.toggle("current", datum(group) === node));
    detail.textContent = node ? text(node) : text(root);
  };

  const found = () => {
    const term = search.value.trim().toLowerCase();
    if (!term) {
      chart.clear();
      detail.textContent = text(root);
      return;
    }
    chart.search(term);
    // Bytes of a match within a match count once.
    const sum = (node) => (node.highlight ? node.data.value : (node.children || []).reduce((all, child) => all + sum(child), 0));
    const bytes = sum(root), part = tree.v[value] ? (100 * bytes) / tree.v[value] : 0;
    detail.textContent = bytes ? `“${search.value.trim()}”: ${hakmem.size(bytes)}, ${part.toFixed(1)} %` : `“${search.value.trim()}”: not found`;
  };

  const draw = (width) => {
    box.replaceChildren();
    chart = flamegraph().width(width).cellHeight(20).inverted(true).minFrameSize(1).transitionDuration(0)
      .setLabelHandler(text).setColorMapper(colour).setSearchMatch((node, term) => node.data.name.toLowerCase().includes(term))
      .setSearchHandler(() => {}).setDetailsHandler(() => {}).onHover((node) => { detail.textContent = text(node); })
      .onClick((node) => mark(node));
    d3.select(box).datum(chosen(tree)).call(chart);
    chart.transitionDuration(still ? 0 : 250);
    root = datum(box.querySelector("g"));
    while (root.parent) root = root.parent;
    // The library draws in animation frames, which a page in the background or on paper does not get.
    const scale = width / (root.x1 - root.x0);
    for (const group of groups()) {
      group.querySelector("rect").setAttribute("width", (datum(group).x1 - datum(group).x0) * scale);
      group.querySelector(".d3-flame-graph-label").textContent = datum(group).data.name;
    }
    // It leaves room for a title that there is none of.
    const svg = box.querySelector("svg");
    svg.setAttribute("height", (root.height + 1) * 20 + 2);
    svg.setAttribute("aria-hidden", "true");
    svg.querySelector("text.title")?.remove();
    current = null;
    detail.textContent = text(root);
    if (search.value) found();
  };

  hakmem.drawn(box, draw);
  box.addEventListener("mouseleave", () => { detail.textContent = text(current || root); });
  choices.forEach((choice) => choice.addEventListener("change", () => {
    value = Number(choice.value);
    draw(box.clientWidth);
  }));
  search.addEventListener("input", found);
  const reset = () => {
    search.value = "";
    chart.clear();
    chart.resetZoom();
    mark(null);
  };
  document.getElementById("flame-reset").addEventListener("click", reset);

  const beside = (node, by) => {
    const shown = node.parent ? node.parent.children.filter((one) => one.value > 0).sort((a, b) => a.x0 - b.x0) : [node];
    return shown[shown.indexOf(node) + by] || node;
  };
  const moves = {
    ArrowUp: (node) => node.parent || node,
    ArrowDown: (node) => (node.children || []).reduce((best, one) => (!best || one.value > best.value ? one : best), null) || node,
    ArrowLeft: (node) => beside(node, -1),
    ArrowRight: (node) => beside(node, 1),
  };
  box.addEventListener("keydown", (event) => {
    if (event.key in moves) mark(moves[event.key](current || root));
    else if (event.key === "Enter" && current) chart.zoomTo(current);
    else if (event.key === "Escape") reset();
    else return;
    event.preventDefault();
  });
})();

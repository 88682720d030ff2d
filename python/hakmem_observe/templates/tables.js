"use strict";
// Size classes with little in them are shown when asked for.
document.getElementById("few-show")?.addEventListener("click", (event) => {
  const few = document.getElementById("few");
  few.hidden = !few.hidden;
  event.target.setAttribute("aria-expanded", String(!few.hidden));
});

// A table's rows in the order of the column whose heading was pressed; pressed again, the other way round.
(() => {
  const table = document.querySelector("table.sites");
  if (!table) return;
  const body = table.tBodies[0];
  const compare = (a, b) => (isNaN(a) || isNaN(b) ? a.localeCompare(b) : Number(a) - Number(b));
  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const heading = button.closest("th"), column = Number(button.dataset.column);
    const first = column === 0 ? "ascending" : "descending", second = column === 0 ? "descending" : "ascending";
    const order = heading.getAttribute("aria-sort") === first ? second : first;
    for (const one of table.tHead.querySelectorAll("th")) one.setAttribute("aria-sort", one === heading ? order : "none");
    const value = (row) => row.cells[column].dataset.value;
    const sign = order === "ascending" ? 1 : -1;
    body.append(...[...body.rows].sort((a, b) => sign * compare(value(a), value(b))));
  });
})();

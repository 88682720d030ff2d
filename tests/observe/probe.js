// Put at the end of a report's page by test_report_browser.py: uses the page as a reader would, and leaves in the
// title what it saw, as JSON.
window.addEventListener("load", () => setTimeout(() => {
  const saw = {};
  const one = (selector) => document.querySelector(selector), all = (selector) => [...document.querySelectorAll(selector)];
  const press = (element, key) => element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const detail = () => one("#flame-detail").textContent;
  try {
    const box = one("#flame-chart"), search = one("#flame-search");
    const look = (term) => {
      search.value = term;
      search.dispatchEvent(new Event("input"));
      return detail();
    };
    saw.frames = all("#flame-chart g").length;
    saw.labels = all("#flame-chart .d3-flame-graph-label").map((label) => label.textContent);
    saw.root = detail();
    one('input[name="flame-value"][value="1"]').click();
    saw.allocated = detail();
    saw.search = look("MAIN");
    saw.odd = look("([");
    one("#flame-reset").click();
    press(box, "ArrowDown");
    saw.below = detail();
    press(box, "ArrowDown");
    press(box, "Enter");
    saw.faded = all("#flame-chart g.fade").length;
    press(box, "Escape");
    saw.reset = all("#flame-chart g.fade").length;
    if (one("#plots")) {
      press(one("#plots"), "Home");
      saw.when = one("#parts-when").textContent;
      saw.small = one('[data-part="small_live_bytes"] b').textContent;
    }
    one('table.sites button[data-column="3"]').click();
    saw.order = all("table.sites tbody tr").map((row) => Number(row.cells[3].dataset.value));
    saw.sideways = document.documentElement.scrollWidth > document.documentElement.clientWidth;
    saw.images = all("img").length;
  } catch (error) {
    saw.error = String(error.stack);
  }
  document.title = JSON.stringify(saw);
}, 200));

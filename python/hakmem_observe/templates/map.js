"use strict";
// The map of superslabs: a row each, a cell for each unit.
(() => {
  const map = hakmem.data.map;
  if (!map) return;
  const canvas = document.getElementById("map-canvas");
  const detail = document.getElementById("map-detail");
  const columns = Math.max(...map.rows.map((row) => row.units.length));
  const gap = 2;
  const names = map.names;
  let height = 12;

  const colours = () => ({
    slab: hakmem.colour("small_live_bytes"), large: hakmem.colour("large_live_bytes"), kept: hakmem.colour("bigcache_bytes"),
    checked: hakmem.colour("checked_live_bytes"), sampled: hakmem.colour("sampled_live_bytes"),
    stock: hakmem.colour("stock_bytes"), dirty: hakmem.colour("dirty_bytes"), free: hakmem.colour("panel"), hole: hakmem.colour("hole"),
  });

  hakmem.drawn(canvas, (width) => {
    const of = colours(), scale = devicePixelRatio || 1;
    height = map.rows.length > 100 ? 6 : 14;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(map.rows.length * (height + gap) * scale);
    canvas.style.height = `${map.rows.length * (height + gap)}px`;
    const context = canvas.getContext("2d");
    const cell = canvas.width / columns, line = cell / scale > 5 ? 1 : 0;
    map.rows.forEach((row, y) => {
      row.units.forEach(([kind, fill], x) => {
        const left = Math.round(x * cell), right = Math.round((x + 1) * cell) - line;
        const top = Math.round(y * (height + gap) * scale);
        context.globalAlpha = 1;
        context.fillStyle = of.free;
        context.fillRect(left, top, right - left, Math.round(height * scale));
        context.globalAlpha = names[kind] === "slab" ? 0.15 + 0.85 * (fill / 100) : 1;
        context.fillStyle = of[names[kind]];
        context.fillRect(left, top, right - left, Math.round(height * scale));
      });
    });
  });

  canvas.addEventListener("pointermove", (event) => {
    const x = Math.floor((event.offsetX / canvas.clientWidth) * columns);
    const row = map.rows[Math.floor(event.offsetY / (height + gap))];
    if (!row || !row.units[x]) return;
    const [kind, fill] = row.units[x];
    const full = names[kind] === "slab" ? `, ${fill} % full` : "";
    detail.textContent = `Superslab ${row.index}, unit ${x}: ${names[kind]}${full}`;
  });
})();

"use strict";
// Memory over time: stacked areas, and below what was given back to the system. The table beside shows the values.
(() => {
  const chart = hakmem.data.chart;
  if (!chart) return;
  const plots = document.getElementById("plots");
  const above = document.getElementById("memory-chart");
  const below = document.getElementById("purge-chart");
  const last = chart.seconds.length - 1;
  const steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400,
    28800, 86400, 172800, 604800];
  const sizes = [];
  for (let power = 1; power < 2 ** 52; power *= 2) sizes.push(power);

  // Each area's upper edge; an area is filled down to the edge below it.
  const edges = [];
  chart.parts.forEach((part, at) => edges.push(part.bytes.map((bytes, i) => bytes + (at ? edges[at - 1][i] : 0))));
  const total = edges.length ? edges[edges.length - 1] : chart.seconds.map(() => 0);

  const axes = (hasTimes) => {
    const common = {
      stroke: hakmem.colour("soft"), font: '12px system-ui, "DejaVu Sans", sans-serif',
      grid: { stroke: hakmem.colour("line"), width: 1 }, ticks: { stroke: hakmem.colour("line"), width: 1 },
    };
    return [
      { ...common, show: hasTimes, incrs: steps, space: 80, values: (u, at, axis, space, step) => at.map((s) => hakmem.clock(s, step)) },
      { ...common, incrs: sizes, size: 66, space: hasTimes === "small" ? 30 : 44, values: (u, at) => at.map((bytes) => hakmem.size(bytes).replace(/\.0+ /, " ")) },
    ];
  };

  const show = (i) => {
    document.getElementById("parts-now").textContent = i === last ? "at the end" : "then";
    const moment = new Date(chart.start_ms + chart.seconds[i] * 1000).toLocaleTimeString([], { hour12: false });
    document.getElementById("parts-when").textContent = `${hakmem.clock(chart.seconds[i])} after the start, at ${moment}`;
    for (const part of chart.parts) {
      const cell = document.querySelector(`[data-part="${part.key}"] b`);
      if (cell) cell.textContent = hakmem.size(part.bytes[i]);
    }
    document.querySelector('[data-part="all"] b').textContent = hakmem.size(total[i]);
  };

  const limitNames = (u) => {
    u.ctx.save();
    u.ctx.fillStyle = hakmem.colour("worse");
    u.ctx.font = `${12 * devicePixelRatio}px system-ui, "DejaVu Sans", sans-serif`;
    u.ctx.textBaseline = "bottom";
    u.ctx.textAlign = "left";
    for (const limit of chart.limits) u.ctx.fillText(limit.name, u.bbox.left + 6 * devicePixelRatio, u.valToPos(limit.bytes, "y", true) - 3 * devicePixelRatio);
    u.ctx.restore();
  };

  // Decisions are lines from top to bottom.
  const decisions = (u) => {
    u.ctx.save();
    u.ctx.strokeStyle = hakmem.colour("ink");
    u.ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    u.ctx.lineWidth = 1.5 * devicePixelRatio;
    for (const one of chart.decisions) {
      const x = Math.round(u.valToPos(one.seconds, "x", true));
      if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
      u.ctx.beginPath();
      u.ctx.moveTo(x, u.bbox.top);
      u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
      u.ctx.stroke();
    }
    u.ctx.restore();
  };

  const cursor = {
    sync: { key: "hakmem" }, y: false, points: { show: false }, drag: { x: true, y: false },
  };
  const x = { time: false, range: () => [chart.seconds[0], chart.seconds[last]] };
  const padding = [10, 24, 6, 0];
  const made = [];

  const memory = (width) => {
    const colour = (at) => hakmem.colour(chart.parts[at].key) || hakmem.colour("metadata_bytes");
    const areas = edges.map((edge, at) => ({
      label: chart.parts[at].name, stroke: hakmem.colour("paper"), width: 0.75, fill: colour(at), points: { show: false },
    }));
    const limits = chart.limits.map((limit) => ({
      label: limit.name, stroke: hakmem.colour("worse"), width: 1.5, dash: [6, 4], points: { show: false },
    }));
    const options = {
      width, height: width < 500 ? 280 : 380, cursor, legend: { show: false }, padding, scales: { x, y: { range: (u, low, high) => [0, high * 1.08 || 1] } },
      series: [{}, ...areas, ...limits], axes: axes(true),
      bands: edges.slice(1).map((_, at) => ({ series: [at + 2, at + 1] })),
      hooks: { draw: [decisions, limitNames], setCursor: [(u) => show(u.cursor.idx ?? last)] },
    };
    const lines = chart.limits.map((limit) => chart.seconds.map(() => limit.bytes));
    return new uPlot(options, [chart.seconds, ...edges, ...lines], above);
  };

  const purges = (width) => {
    const options = {
      width, height: 100, cursor, legend: { show: false }, padding, scales: { x, y: { range: (u, low, high) => [0, high * 1.1 || 1] } },
      series: [{}, { label: "given back", stroke: hakmem.colour("ours"), fill: hakmem.colour("ours"), paths: uPlot.paths.bars({ size: [0.7, 12], align: 0 }), points: { show: false } }],
      axes: axes("small").map((axis, at) => (at ? axis : { ...axis, show: false })),
    };
    return new uPlot(options, [chart.seconds, chart.purged], below);
  };

  hakmem.drawn(plots, (width) => {
    made.splice(0).forEach((plot) => plot.destroy());
    made.push(memory(width));
    if (below) made.push(purges(width));
  });
  show(last);

  let at = last;
  plots.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -last, End: last };
    if (!(event.key in moves)) return;
    event.preventDefault();
    at = Math.min(Math.max((made[0].cursor.idx ?? at) + moves[event.key], 0), last);
    made[0].setCursor({ left: made[0].valToPos(chart.seconds[at], "x"), top: 10 });
  });
})();

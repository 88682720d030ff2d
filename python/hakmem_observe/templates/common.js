"use strict";
// What the page's parts share. All names come from files: they reach the page as text, never as markup.
const hakmem = {
  data: JSON.parse(document.getElementById("data").textContent),

  // As count_bytes() in words.py.
  size(bytes) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let number = bytes, unit = 0;
    while (Math.abs(number) >= 999.5 && unit < units.length - 1) {
      number /= 1024;
      unit++;
    }
    const digits = unit === 0 || Math.abs(number) >= 99.95 ? 0 : 1;
    return `${number.toFixed(digits)} ${units[unit]}`;
  },

  // Seconds since the start of the process, as precise as neighbours on an axis need it.
  clock(seconds, step = 1) {
    if (step < 1) return `${seconds.toFixed(step < 0.1 ? 2 : 1)} s`;
    const whole = Math.round(seconds), s = whole % 60, m = Math.floor(whole / 60) % 60, h = Math.floor(whole / 3600);
    const two = (number) => String(number).padStart(2, "0");
    return h ? `${h}:${two(m)}:${two(s)}` : m ? `${m}:${two(s)} min` : `${s} s`;
  },

  colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  },

  // Draws now, and again when the width, the colours, or the medium change.
  drawn(element, draw) {
    let width = 0;
    const again = () => {
      width = element.clientWidth;
      if (width > 0) draw(width);
    };
    new ResizeObserver(() => {
      if (element.clientWidth !== width) again();
    }).observe(element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    again();
  },
};

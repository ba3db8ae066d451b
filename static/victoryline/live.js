// Renews the live parts of a page, the elements with data-live="seconds": requests the page again and changes only what
// differs, so that scroll, selection, focus and what is being typed stay. Pauses while the page is hidden.
"use strict";

(() => {
  const PATIENCE_MS = 10000;
  const LATE_AFTER = 3; // intervals without an answer
  let renewed = performance.now();
  let problem = "";
  let timer = null;

  const parts = () => [...document.querySelectorAll("[data-live]")];
  const interval = () => Math.min(...parts().map((part) => Number(part.dataset.live) || 5)) * 1000;

  function same(old, fresh) {
    return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && old.id === fresh.id;
  }

  function redraw(canvas, fresh) {
    if (canvas.dataset.value === fresh.dataset.value) return;
    canvas.dataset.value = fresh.dataset.value;
    const chart = window.Chart?.getChart(canvas);
    if (!chart) return;
    const next = JSON.parse(fresh.dataset.value);
    const isAlike = next.datasets.length === chart.data.datasets.length;
    chart.data.labels = next.labels;
    if (isAlike) next.datasets.forEach((one, index) => Object.assign(chart.data.datasets[index], { data: one.data, label: one.label }));
    else chart.data.datasets = next.datasets;
    chart.update("none");
  }

  function morph(old, fresh) {
    if (old.isEqualNode(fresh)) return;
    if (!same(old, fresh)) return void old.replaceWith(document.importNode(fresh, true));
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
      return;
    }
    if (old.matches("canvas")) return redraw(old, fresh);
    if (old.matches("input, textarea, select, dialog")) return;
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && name !== "open" && name !== "style") old.removeAttribute(name);
    const [before, after] = [[...old.childNodes], [...fresh.childNodes]];
    after.forEach((node, index) => (before[index] ? morph(before[index], node) : old.append(document.importNode(node, true))));
    before.slice(after.length).forEach((node) => node.remove());
  }

  async function ask() {
    const response = await fetch(location.href, { credentials: "same-origin", cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    if (response.redirected) throw new Error("you are not logged in any more");
    if (!response.ok) throw new Error(`the server answered with ${response.status}`);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const part of parts()) {
      const next = fresh.getElementById(part.id);
      if (next) morph(part, next);
    }
  }

  function note() {
    const seconds = Math.floor((performance.now() - renewed) / 1000);
    const shown = seconds < 90 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
    const isLate = Boolean(problem) || (parts().length > 0 && seconds * 1000 > LATE_AFTER * interval());
    for (const node of document.querySelectorAll("[data-live-note]")) {
      const text = isLate ? `Not renewed for ${shown}${problem && `: ${problem}`}` : `Last renewed ${shown} ago`;
      if (node.textContent !== text) node.textContent = text;
      node.classList.toggle("is-late", isLate);
    }
    document.documentElement.classList.toggle("is-outdated", isLate);
  }

  async function run() {
    clearTimeout(timer);
    if (document.hidden || !parts().length) return;
    try {
      await ask();
      renewed = performance.now();
      problem = "";
    } catch (error) {
      problem = error.name === "TypeError" || error.name === "TimeoutError" ? "the server does not answer" : error.message;
    }
    note();
    clearTimeout(timer);
    if (parts().length) timer = setTimeout(run, interval());
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (!parts().length) return;
    setInterval(() => document.hidden || note(), 1000);
    timer = setTimeout(run, interval());
    document.addEventListener("visibilitychange", run);
  });
})();

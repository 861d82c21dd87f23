"use strict";
(function () {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  root.classList.add("js");

  // Theme: the system's, unless the button said otherwise; it is kept where the browser allows it.
  function kept() {
    try { return localStorage.getItem("loaderbench-theme"); } catch { return null; }
  }
  function keep(theme) {
    try { localStorage.setItem("loaderbench-theme", theme); } catch { /* a page from disk may have no storage */ }
  }
  const theme = () => root.dataset.theme || (system.matches ? "dark" : "light");
  function showTheme() {
    byId("theme").textContent = theme() === "dark" ? "Light" : "Dark";
    byId("theme").setAttribute("aria-label", theme() === "dark" ? "Light colours" : "Dark colours");
    redraw();
  }
  function toggleTheme() {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    keep(root.dataset.theme);
    showTheme();
  }

  // Packed parts: base64 of gzip, so that the page needs no network and stays small.
  async function unpack(id) {
    const bytes = Uint8Array.from(atob(byId(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  // Charts
  const settings = JSON.parse(byId("settings").textContent);
  let figures = null;
  const chosen = {};
  function draw(place, colours, width) {
    const figure = figures[place.dataset.figure][chosen[place.dataset.figure] || 0];
    const layout = structuredClone(figure.layout[colours]);
    layout.height = figure.height;
    if (width) { layout.width = width; layout.autosize = false; } else { layout.autosize = true; }
    return window.Plotly.react(place, figure.data, layout, settings.plotly);
  }
  function redraw() {
    if (figures && window.Plotly) all(".chart").forEach((place) => draw(place, theme()));
  }
  async function startCharts() {
    if (!byId("figures")) return;
    try {
      const [library, data] = await Promise.all([unpack("plotly"), unpack("figures")]);
      const script = document.createElement("script");
      script.textContent = library;
      document.head.append(script);
      figures = JSON.parse(data);
      await Promise.all(all(".chart").map((place) => draw(place, theme())));
      root.classList.add("drawn");
    } catch (error) {
      console.warn(error);
      all(".chart").forEach((place) => {
        place.classList.add("failed");
        place.textContent = "This browser could not draw the chart; its numbers are in the table below.";
      });
    }
  }
  function chooseTrial(event) {
    const select = event.target;
    chosen[select.dataset.chooses] = Number(select.value);
    byId("timeline-note").textContent = select.selectedOptions[0].dataset.note;
    redraw();
  }

  // Tables: each heading sorts, what was not measured stays at the end.
  function sortValue(cell) {
    if (cell.classList.contains("missing")) return null;
    return cell.dataset.sort !== undefined ? Number(cell.dataset.sort) : cell.textContent.trim();
  }
  function compare(a, b) {
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  }
  function sortBy(heading) {
    const table = heading.closest("table");
    const column = heading.cellIndex;
    const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    table.querySelectorAll("th").forEach((th) => th.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
    const rows = Array.from(table.tBodies[0].rows).map((row) => [sortValue(row.cells[column]), row]);
    rows.sort(([a], [b]) => (a === null) - (b === null) || (a === null ? 0 : sign * compare(a, b)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }
  function makeSortable(heading) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(heading));
    heading.append(button);
  }

  // Copy and download
  async function copy(event) {
    const button = event.currentTarget;
    const code = button.closest("figure").querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      window.getSelection().selectAllChildren(code);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }
  async function download(event) {
    const { content, name, mime } = event.currentTarget.dataset;
    const text = JSON.parse(await unpack("contents"))[Number(content)];
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: mime }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // Paper is light and has no folds.
  function beforePrint() {
    all("details:not([open])").forEach((fold) => { fold.open = true; fold.dataset.closed = ""; });
    root.dataset.screen = root.dataset.theme || "";
    root.dataset.theme = "light";
    if (figures && window.Plotly) all(".chart").forEach((place) => draw(place, "light", 680));
  }
  function afterPrint() {
    all("details[data-closed]").forEach((fold) => { fold.open = false; delete fold.dataset.closed; });
    if (root.dataset.screen) root.dataset.theme = root.dataset.screen; else delete root.dataset.theme;
    delete root.dataset.screen;
    redraw();
  }

  if (kept() === "dark" || kept() === "light") root.dataset.theme = kept();
  byId("theme").addEventListener("click", toggleTheme);
  system.addEventListener("change", showTheme);
  all("select[data-chooses]").forEach((select) => select.addEventListener("change", chooseTrial));
  all("table.sortable thead th").forEach(makeSortable);
  all("button.copy").forEach((button) => button.addEventListener("click", copy));
  all("button.download").forEach((button) => button.addEventListener("click", download));
  window.addEventListener("beforeprint", beforePrint);
  window.addEventListener("afterprint", afterPrint);
  showTheme();
  startCharts();
})();

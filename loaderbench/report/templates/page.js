"use strict";
(function () {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  root.classList.add("js");

  // Theme: the system's, unless another was selected; the selection is kept where the browser allows it.
  function kept() {
    try { return localStorage.getItem("loaderbench-theme"); } catch { return null; }
  }
  function keep(theme) {
    try { localStorage.setItem("loaderbench-theme", theme); } catch { /* a file from disk may have no storage */ }
  }
  const theme = () => root.dataset.theme || (system.matches ? "dark" : "light");
  function setTheme(name) {
    if (name === "dark" || name === "light") root.dataset.theme = name; else delete root.dataset.theme;
    all("input[name=theme]").forEach((radio) => { radio.checked = radio.value === (root.dataset.theme || "system"); });
    redraw();
  }

  // Packed parts: base64 of gzip, which keeps the file small and offline.
  const canUnpack = typeof DecompressionStream === "function";
  async function unpack(id) {
    const text = atob(byId(id).textContent);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  // Charts
  const settings = JSON.parse(byId("settings").textContent);
  let figures = null;
  const chosen = {};
  function draw(place, colors, width) {
    const figure = figures[place.dataset.figure][chosen[place.dataset.figure] || 0];
    const layout = structuredClone(figure.layout[colors]);
    layout.height = figure.height;
    if (width) { layout.width = width; layout.autosize = false; } else { layout.autosize = true; }
    return window.Plotly.react(place, figure.data, layout, settings.plotly);
  }
  function redraw() {
    if (root.dataset.screen !== undefined) return;  // on paper
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
      performance.mark("drawn");
      root.classList.add("drawn");
    } catch (error) {
      console.warn(error);
      all(".chart").forEach((place) => {
        place.classList.add("failed");
        place.textContent = "This browser cannot draw the chart; the numbers are in the table below.";
      });
    }
  }
  function redrawOne(name) {
    const place = document.querySelector(`.chart[data-figure=${name}]`);
    if (place && figures && window.Plotly) draw(place, theme());
  }

  // One configuration is selected at a time: in the heat map, in the table by rank, at the timeline, or by the address.
  let fragments = null, latest = 0, shown = byId("chosen") ? byId("chosen").dataset.choice : null;
  const firstShown = shown;
  const optionOf = (number) => document.querySelector(`#timeline-trial option[data-choice="${number}"]`);
  async function choose(number) {
    if (!byId("choices") || !canUnpack) return false;
    const mine = latest += 1;
    fragments = fragments || unpack("choices").then(JSON.parse);
    const parts = await fragments;
    if (mine !== latest || !Object.hasOwn(parts, number)) return false;
    if (number === shown) return true;
    shown = number;
    [byId("chosen").innerHTML, byId("chosen-inside").innerHTML] = parts[number];
    byId("chosen-status").textContent = `Selected: ${byId("chosen").querySelector("code").textContent}`;
    mark(number);
    showTimeline(optionOf(number));
    return true;
  }
  function mark(number) {
    all("td[data-choice]").forEach((cell) => cell.classList.toggle("is-chosen", cell.dataset.choice === number));
    all("td[data-choice] a").forEach((link) => {
      if (link.parentElement.dataset.choice === number) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
    all("input[name=configuration]").forEach((radio) => { radio.checked = radio.value === number; });
    const cells = all("td.is-chosen");
    if (cells.length && cells.every((cell) => cell.closest(".facet").hidden)) pickFacet("");
    all("table.heat a").forEach((link) => { link.tabIndex = -1; });
    const reached = (cells.length && cells[0].querySelector("a")) || document.querySelector("table.heat a");
    if (reached) reached.tabIndex = 0;  // one stop of the Tab key; the arrow keys move within the map
  }
  async function chooseAndTell(number) {
    if (!await choose(number)) return;
    history.replaceState(null, "", `#configuration=${number}`);
    byId("chosen").classList.add("by-hand");
  }
  async function chooseByAddress(event) {
    const found = /^#configuration=(\d+)$/.exec(location.hash);
    if (!found && location.hash === "" && event) await choose(firstShown);
    if (found && await choose(found[1]) && !event) byId("sweep").scrollIntoView();
  }
  function showTimeline(option) {
    const note = byId("timeline-note");
    if (!note) return;
    const place = document.querySelector(".chart[data-figure=timeline]");
    place.hidden = !option;
    if (!option) {
      byId("timeline-trial").selectedIndex = -1;
      note.textContent = "The report has no monitor readings of the selected config.";
      return;
    }
    option.selected = true;
    note.textContent = option.dataset.note;
    chosen.timeline = Number(option.value);
    redrawOne("timeline");
  }
  function chooseTrial(event) {
    const option = event.target.selectedOptions[0];
    if (option.dataset.choice) chooseAndTell(option.dataset.choice); else showTimeline(option);
  }
  function chooseCell(event) {
    if (!canUnpack) return;
    event.preventDefault();
    chooseAndTell(event.currentTarget.closest("td").dataset.choice);
  }
  const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  function moveInMap(event) {
    const cell = event.target.closest("td.cell"), step = ARROWS[event.key];
    if (!cell || !step) return;
    const rows = cell.closest("tbody").rows;
    let row = cell.parentElement.sectionRowIndex, column = cell.cellIndex, link = null;
    do {
      row += step[0];
      column += step[1];
      link = rows[row]?.cells[column]?.querySelector("a");
    } while (!link && rows[row]?.cells[column]);
    if (!link) return;
    event.preventDefault();
    event.target.closest("a").tabIndex = -1;
    link.tabIndex = 0;
    link.focus();
  }
  function pickFacet(wanted) {
    const radio = document.querySelector(`input[name=facet][value="${wanted}"]`);
    if (radio) radio.checked = true;
    all(".facet").forEach((facet) => { facet.hidden = wanted !== "" && facet.dataset.facet !== wanted; });
  }

  // Tables: each heading sorts; missing values stay at the end.
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
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);  // a busy machine may take seconds to read it
  }

  // Paper is light and has no folds.
  function beforePrint() {
    if (root.dataset.screen !== undefined) return;
    all("details:not([open])").forEach((fold) => { fold.open = true; fold.dataset.closed = ""; });
    root.dataset.screen = root.dataset.theme || "";
    root.dataset.theme = "light";
    if (figures && window.Plotly) all(".chart").forEach((place) => draw(place, "light", 680));
  }
  function afterPrint() {
    all("details[data-closed]").forEach((fold) => { fold.open = false; delete fold.dataset.closed; });
    const before = root.dataset.screen;
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
    delete root.dataset.screen;
    redraw();
  }

  setTheme(kept());
  all("input[name=theme]").forEach((radio) => radio.addEventListener("change", () => {
    keep(radio.value);
    setTheme(radio.value);
  }));
  system.addEventListener("change", redraw);
  all("td[data-choice] a").forEach((link) => link.addEventListener("click", chooseCell));
  all("table.heat").forEach((map) => map.addEventListener("keydown", moveInMap));
  all("input[name=configuration]").forEach((radio) => radio.addEventListener("change", () => chooseAndTell(radio.value)));
  all("input[name=facet]").forEach((radio) => radio.addEventListener("change", () => pickFacet(radio.value)));
  if (shown !== null) {
    mark(shown);
    showTimeline(optionOf(shown));
  }
  if (!canUnpack) all(".downloads, .choose, .pick-trial").forEach((part) => { part.hidden = true; });
  window.addEventListener("hashchange", chooseByAddress);
  all("select[data-chooses]").forEach((select) => select.addEventListener("change", chooseTrial));
  all("table.sortable thead th:not(.choose)").forEach(makeSortable);
  all("button.copy").forEach((button) => button.addEventListener("click", copy));
  all("button.download").forEach((button) => button.addEventListener("click", download));
  window.addEventListener("beforeprint", beforePrint);
  window.addEventListener("afterprint", afterPrint);
  chooseByAddress();
  startCharts();
})();

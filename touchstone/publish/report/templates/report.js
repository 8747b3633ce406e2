"use strict";
// Makes tables sortable when they come into view, and opens what the address names.
const data = JSON.parse(document.getElementById("report-data").textContent);

function load(name, ready) {
  if (ready()) return;
  const script = document.createElement("script");
  script.textContent = document.getElementById(`${name}-source`).textContent;
  document.head.append(script);
}

const part = (cell, place) => (Array.isArray(cell) ? cell[place] : place ? null : cell);

function order(cell) {
  const value = part(cell, 1) ?? parseFloat(part(cell, 0).replace(/[$,]/g, ""));
  return Number.isNaN(value) ? -Infinity : value;
}

function shown(cell) {
  const text = document.createElement(part(cell, 2) ? "a" : "span");
  text.textContent = part(cell, 0);
  if (part(cell, 2)) text.href = part(cell, 2);
  return text.outerHTML;
}

function columns(kinds) {
  return kinds.map((kind, place) => ({
    data: place,
    type: kind === "number" ? "num" : "string",
    className: kind,
    orderSequence: kind === "number" ? ["desc", "asc"] : ["asc", "desc"],
    render: (cell, type) =>
      type === "display" ? shown(cell) : type === "filter" || kind !== "number" ? part(cell, 0) : order(cell),
    createdCell: (td, cell) => {
      td.classList.toggle("short", part(cell, 0).length < 25);
      if (kind === "verdict") td.dataset.value = part(cell, 0);
    },
  }));
}

function drawTable(table, grid) {
  load("datatables", () => window.DataTable);
  const long = grid.rows.length > 25, searching = grid.rows.length > 12;
  new DataTable(table, {
    data: grid.rows, columns: columns(grid.kinds), order: [], autoWidth: false, deferRender: true,
    paging: long, searching, pageLength: 25,
    layout: { topStart: null, topEnd: searching ? "search" : null, bottomStart: long ? "info" : null, bottomEnd: long ? "paging" : null },
    language: { search: "Search", searchPlaceholder: "" },
  });
}

function draw(element) {
  if (element.dataset.drawn) return;
  element.dataset.drawn = "yes";
  if (data.grids[element.id].rows.length > 1) drawTable(element, data.grids[element.id]);
}

const seen = new IntersectionObserver((entries) => entries.forEach((entry) => entry.isIntersecting && draw(entry.target)), { rootMargin: "0px 0px 300px 0px" });
requestAnimationFrame(() => setTimeout(() => document.querySelectorAll("table.grid").forEach((element) => seen.observe(element))));
addEventListener("beforeprint", () => {
  if (document.getElementById("print-cases")?.checked) document.querySelectorAll("details").forEach((details) => (details.open = true));
});

// The problems of one model, in a dialog
const dialog = document.getElementById("model");

function showModel(place) {
  const { names, problems, means, n, c, links, left_out } = data.models;
  const attempts = (at) => (Array.isArray(n[place]) ? n[place][at] : n[place]);
  const cases = new Map(links.filter((link) => link[0] === place).map((link) => [link[1], link[2]]));
  const rows = problems.map((problem, at) => [problem, at]).filter(([, at]) => c[place][at] >= 0).map(([problem, at]) => {
    const rate = c[place][at] / attempts(at);
    return [[problem, null, cases.get(at)], [`${c[place][at]} of ${attempts(at)}`, c[place][at]], [rate.toFixed(3), rate], [means[at]?.toFixed(3) ?? "-", means[at]]];
  });
  document.getElementById("model-title").textContent = names[place];
  document.getElementById("model-note").textContent = `${rows.length.toLocaleString("en")} problems with a decided attempt, the hardest first.` +
    (cases.size ? " A linked problem leads to its attempts." : "") + (left_out ? ` ${left_out.toLocaleString("en")} easier problems are in the table problem_statistics.` : "");
  const table = document.createElement("table");
  table.innerHTML = `<thead><tr>${["problem", "passed", "pass rate", "all models"].map((title) => `<th scope="col">${title}</th>`).join("")}</tr></thead>`;
  dialog.querySelector(".scroll").replaceChildren(table);
  drawTable(table, { kinds: ["text", "number", "number", "number"], rows });
  if (!dialog.open) dialog.showModal();
}

function follow() {
  const target = decodeURIComponent(location.hash.slice(1));
  const model = /^model-(\d+)$/.exec(target);
  if (model && data.models.names[model[1]] !== undefined) return showModel(Number(model[1]));
  if (dialog.open) dialog.close();
  const element = target && document.getElementById(target);
  for (let open = element; open; open = open.parentElement) if (open.tagName === "DETAILS") open.open = true;
  if (element?.tagName === "DETAILS") element.querySelector("summary").focus();
  element?.scrollIntoView();
}

dialog.addEventListener("close", () => location.hash.startsWith("#model-") && history.replaceState(null, "", "#leaderboard"));
addEventListener("hashchange", follow);
if (location.hash) follow();

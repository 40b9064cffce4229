// What a page can do beyond showing itself. Without this script everything essential is still there.
// All texts come formatted from the page; nothing is loaded, stored or sent.
"use strict";

const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// --- a table that can be searched and sorted ------------------------------------------------

// "1,234.5" and "94.6 %" are numbers; dates and names are compared as text.
function sortKey(cell) {
  const text = cell.textContent.trim();
  const number = Number(text.replace(/[,\s%]/g, ""));
  return text === "" ? null : Number.isNaN(number) ? text : number;
}

function compare(one, other) {
  if (one === null || other === null) return (one === null) - (other === null);
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other));
}

function sortBy(table, heading) {
  const column = heading.cellIndex;
  const descending = heading.getAttribute("aria-sort") === "ascending";
  const rows = all("tbody tr", table).map(row => [sortKey(row.cells[column]), row]);
  rows.sort(([a], [b]) =>
    a === null || b === null ? compare(a, b) : descending ? compare(b, a) : compare(a, b));
  table.tBodies[0].append(...rows.map(([, row]) => row));
  for (const other of all("th", table)) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
}

function makeSortable(table) {
  for (const heading of all("th", table)) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sortBy(table, heading));
  }
}

function makeSearchable(tools) {
  const table = document.getElementById(tools.dataset.table);
  const [words, kind, found] = all("input, select, output", tools);
  const rows = all("tbody tr", table);
  const texts = new Map(rows.map(row => [row, row.textContent.toLowerCase()]));
  const filter = () => {
    const wanted = words.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = kind.value === "" || row.classList.contains(kind.value);
      row.hidden = !(fits && texts.get(row).includes(wanted));
      shown += !row.hidden;
    }
    found.textContent = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows`;
  };
  words.addEventListener("input", filter);
  kind.addEventListener("change", filter);
  tools.hidden = false;
  filter();
}

// --- coverage and width at the level that a slider chooses ----------------------------------

function makeLevels(panel) {
  const { stated, groups } = JSON.parse(panel.dataset.levels);
  const slider = panel.querySelector("input[type=range]");
  const part = name => panel.querySelector(`[data-part=${name}]`);
  const show = () => {
    const at = Number(slider.value);
    const group = groups[panel.querySelector("input[type=radio]:checked").value];
    slider.setAttribute("aria-valuetext", stated[at]);
    part("stated").textContent = stated[at];
    for (const name of ["covered", "width", "without"]) part(name).textContent = group[name][at];
    part("rows").textContent = group.rows;
    part("aim").style.left = group.places.stated[at] + "%";
    part("dot").style.left = group.places.covered[at] + "%";
    part("bar").style.width = group.places.width[at] + "%";
    part("limit").style.left = group.places.without[at] + "%";
  };
  panel.addEventListener("input", show);
  panel.hidden = false;
  show();
}

// --- the values of a point, by pointer or by arrow keys ---------------------------------------

function makeReadable(plot) {
  const points = JSON.parse(plot.dataset.points);
  const tip = document.createElement("div");
  const mark = document.createElement("i");
  tip.className = "tip";
  mark.className = "mark";
  tip.setAttribute("role", "status");
  plot.append(mark, tip);
  plot.tabIndex = 0;
  plot.setAttribute("role", "group");
  plot.setAttribute("aria-label", "Values of each row: arrow keys go from row to row");
  let now = -1;
  const show = place => {
    now = Math.min(Math.max(place, 0), points.length - 1);
    const { x, y, text } = points[now];
    tip.replaceChildren(...text.map((line, number) => {
      const element = document.createElement(number ? "span" : "b");
      element.textContent = line;
      return element;
    }));
    mark.style.left = 100 * x + "%";
    mark.style.top = 100 * y + "%";
    tip.style.left = 100 * Math.min(Math.max(x, 0.2), 0.8) + "%";
    plot.classList.toggle("below", y < 0.4);
    tip.style.top = 100 * y + "%";
    plot.classList.add("reading");
  };
  const hide = () => plot.classList.remove("reading");
  plot.addEventListener("pointermove", event => {
    const box = plot.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width;
    const apart = points.map(point => Math.abs(point.x - x));
    show(apart.indexOf(Math.min(...apart)));
  });
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("focus", () => plot.matches(":focus-visible") && show(Math.max(now, 0)));
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", event => {
    const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (event.key === "Escape") hide();
    if (step === undefined) return;
    event.preventDefault();
    show(now + step);
  });
}

all("table.sortable").forEach(makeSortable);
all("[data-table]").forEach(makeSearchable);
all("[data-levels]").forEach(makeLevels);
all("[data-points]").forEach(makeReadable);

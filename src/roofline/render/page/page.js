// What a page can do beyond showing its answer: tell about a point, zoom, filter, search, sort. Nothing is loaded, nothing
// is sent; without scripts the page still shows everything.
(() => {
  "use strict";
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // ---- what a mouse that rests on something is told ----
  const tip = document.getElementById("tip");
  const told = new Map();
  for (const title of all("figure svg g > title, figure svg rect > title, figure svg polygon > title")) {
    told.set(title.parentNode, title.textContent);
    title.remove(); // the browser's own would come on top of ours
  }
  document.addEventListener("pointermove", (event) => {
    let node = event.target;
    while (node && node !== document && !told.has(node)) node = node.parentNode;
    if (!node || !told.has(node)) { tip.style.display = "none"; return; }
    tip.textContent = told.get(node);
    tip.style.display = "block";
    const wide = tip.offsetWidth, high = tip.offsetHeight;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - wide - 8)) + "px";
    tip.style.top = (event.clientY + 18 + high > innerHeight ? event.clientY - high - 10 : event.clientY + 18) + "px";
  });

  // ---- rows and marks of one thing: by its name, and by the stage that the table or the heading above it tells ----
  const marks = all("figure svg [data-name]");
  const names = new Set(marks.map((mark) => mark.dataset.name));
  const rows = [];
  for (const table of all("table")) {
    const titles = all("th", table).map((head) => head.textContent);
    const heading = table.closest("section").querySelector("h2");
    for (const row of all("tbody tr", table)) {
      const cell = (title) => titles.includes(title) ? row.children[titles.indexOf(title)].textContent : "";
      if (!names.has(row.children[0].textContent)) continue;
      row.dataset.name = row.children[0].textContent;
      row.dataset.stage = cell("stage") || (heading ? heading.textContent : "");
      row.dataset.group = cell("group");
      rows.push(row);
    }
  }
  const same = (a, b) => a.dataset.name === b.dataset.name &&
    (!a.dataset.report || !b.dataset.report || a.dataset.report === b.dataset.report) &&
    (!a.dataset.stage || !b.dataset.stage || a.dataset.stage.includes(b.dataset.stage) || b.dataset.stage.includes(a.dataset.stage));
  const light = (one, on) => {
    for (const other of [...marks, ...rows]) if (same(one, other)) other.classList.toggle("here", on);
  };
  let lit = null;
  document.addEventListener("pointerover", (event) => {
    const one = event.target.closest ? event.target.closest("[data-name]") : null;
    if (one === lit) return;
    if (lit) light(lit, false);
    lit = one && one.dataset.name ? one : null;
    if (lit) light(lit, true);
  });

  // ---- filters ----
  const boxes = all(".controls input");
  const filter = () => {
    const off = { stage: [], group: [], report: [] };
    for (const box of boxes) if (!box.checked) off[box.dataset.key].push(box.value);
    for (const node of all("figure svg [data-stage], tbody tr[data-stage]")) {
      const d = node.dataset;
      const hidden = off.stage.some((stage) => d.stage === stage || (node.tagName === "TR" && d.stage.startsWith(stage + " "))) ||
        off.group.includes(d.group) || off.report.includes(d.report);
      node.classList.toggle(node.classList.contains("piece") ? "faded" : "gone", hidden);
    }
  };
  for (const box of boxes) box.addEventListener("change", filter);

  // ---- tables: sorted by a heading, searched where they are long ----
  const prefixes = { n: 1e-9, u: 1e-6, "µ": 1e-6, m: 1e-3, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 };
  const number = (text) => { // "3.350 TB/s", "1,024", "+12.5%", "2.1x"
    const found = /^([+-]?[\d,]*\.?\d+(?:e[+-]?\d+)?) ?([nuµmkKMGTPE](?=$|i?B|s|FLOP|OP|W|J|Hz))?/.exec(text);
    if (text === "inf") return Infinity;
    return found ? Number(found[1].replaceAll(",", "")) * (found[2] ? prefixes[found[2]] : 1) : -Infinity;
  };
  for (const table of all("table")) {
    const body = table.querySelector("tbody");
    const lines = all("tr", body);
    const heads = all("th", table);
    for (const line of lines) for (const cell of line.children) if (cell.textContent.length > 48) cell.classList.add("long");
    heads.forEach((head, column) => {
      // A column without any number is one of words, whatever side it stands on.
      const cells = lines.map((line) => line.children[column]);
      if (cells.every((cell) => number(cell.textContent) === -Infinity)) for (const cell of [head, ...cells]) cell.classList.add("words");
      head.querySelector("button").addEventListener("click", () => {
        const words = head.classList.contains("words");
        const before = head.getAttribute("aria-sort");
        const down = before ? before !== "descending" : !words; // numbers: the largest first; words: from a on
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const text = (line) => line.children[column].textContent;
        const order = (a, b) => words ? text(a).localeCompare(text(b), "en", { numeric: true }) : number(text(a)) - number(text(b));
        const sorted = lines.slice().sort((a, b) => {
          const empty = (line) => /^-?$/.test(text(line)) ? 1 : 0; // what is not known comes last, whatever the order
          return empty(a) - empty(b) || (down ? -order(a, b) : order(a, b)) || 0;
        });
        body.append(...sorted);
      });
    });
    if (lines.length < 25) continue;
    const find = document.createElement("input");
    find.type = "search"; find.className = "find"; find.placeholder = `search ${lines.length} rows`;
    find.setAttribute("aria-label", "search rows");
    find.addEventListener("input", () => {
      const wanted = find.value.toLowerCase().split(/\s+/);
      for (const line of lines) line.hidden = !wanted.every((word) => line.textContent.toLowerCase().includes(word));
    });
    table.parentNode.before(find);
  }

  // ---- a shade where a picture or a table goes on to the right ----
  for (const box of all(".picture, .table")) {
    const around = box.matches(".picture") ? box.parentNode : document.createElement("div");
    if (around !== box.parentNode) { box.before(around); around.append(box); }
    const look = () => around.classList.toggle("onward", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
    box.addEventListener("scroll", look, { passive: true });
    new ResizeObserver(look).observe(box);
  }

  // ---- zoom: in a roofline lines are stretched, marks and words are moved and keep their size; others grow as a whole ----
  let scrolled = 0; // a wheel that is scrolling the page goes on doing so when a picture comes under it
  addEventListener("scroll", () => { scrolled = performance.now(); }, { passive: true });
  for (const figure of all("figure")) {
    const svg = figure.querySelector("svg");
    const plot = figure.classList.contains("zooms") ? svg.querySelector(".plot") : null;
    const whole = svg.viewBox.baseVal;
    const box = plot ? { x: +plot.getAttribute("x"), y: +plot.getAttribute("y"), w: +plot.getAttribute("width"), h: +plot.getAttribute("height") }
      : { x: whole.x, y: whole.y, w: whole.width, h: whole.height };
    const moving = plot ? all(".move, .move-x, .move-y", svg).map((node) => {
      const at = /translate\(([-\d.]+) ([-\d.]+)\)/.exec(node.getAttribute("transform"));
      return { node, x: +at[1], y: +at[2], along: node.classList.contains("move-x") ? "x" : node.classList.contains("move-y") ? "y" : "xy" };
    }) : [];
    const stretch = plot ? all(".stretch, .inside > .ridge, .inside > .gap", svg) : [];
    if (plot) for (const line of all(".stretch *, .ridge, .gap", svg)) line.setAttribute("vector-effect", "non-scaling-stroke");
    let k = 1, tx = 0, ty = 0;
    const show = () => {
      k = Math.max(1, Math.min(plot ? 60 : 12, k));
      tx = Math.min(box.x * (1 - k), Math.max((box.x + box.w) * (1 - k), tx));
      ty = Math.min(box.y * (1 - k), Math.max((box.y + box.h) * (1 - k), ty));
      for (const { node, x, y, along } of moving) {
        const nx = along === "y" ? x : k * x + tx, ny = along === "x" ? y : k * y + ty;
        node.setAttribute("transform", `translate(${nx} ${ny})`);
        if (node.classList.contains("tick")) {
          const out = (along === "x" && (nx < box.x - 1 || nx > box.x + box.w + 1)) || (along === "y" && (ny < box.y - 1 || ny > box.y + box.h + 1));
          node.classList.toggle("off", out);
        }
      }
      for (const node of stretch) node.setAttribute("transform", `matrix(${k} 0 0 ${k} ${tx} ${ty})`);
      if (!plot) svg.setAttribute("viewBox", `${(box.x - tx) / k} ${(box.y - ty) / k} ${box.w / k} ${box.h / k}`);
      figure.classList.toggle("zoomed", k > 1);
    };
    const place = (event) => { // in the picture as it is when nothing is zoomed
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      return plot ? at : { x: at.x * k + tx, y: at.y * k + ty };
    };
    const zoom = (at, factor) => {
      const before = k;
      k = Math.max(1, Math.min(plot ? 60 : 12, k * factor));
      tx = at.x - (at.x - tx) * k / before;
      ty = at.y - (at.y - ty) * k / before;
      show();
    };
    svg.addEventListener("wheel", (event) => {
      const at = place(event);
      const outside = at.x < box.x || at.x > box.x + box.w || at.y < box.y || at.y > box.y + box.h;
      if (outside || (k === 1 && (event.deltaY > 0 || performance.now() - scrolled < 400))) return;
      event.preventDefault();
      zoom(at, Math.exp(-event.deltaY * 0.002));
    }, { passive: false });
    const fingers = new Map();
    svg.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, place(event));
      if (k > 1 || fingers.size > 1) svg.setPointerCapture(event.pointerId);
    });
    const lift = (event) => fingers.delete(event.pointerId);
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) svg.addEventListener(end, lift);
    svg.addEventListener("pointermove", (event) => {
      const from = fingers.get(event.pointerId);
      if (!from) return;
      const at = place(event);
      if (fingers.size === 1) {
        if (k === 1) return;
        tx += at.x - from.x;
        ty += at.y - from.y;
        show();
      } else {
        const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
        const apart = (a) => Math.max(1, Math.hypot(a.x - other.x, a.y - other.y));
        zoom(other, apart(at) / apart(from));
      }
      fingers.set(event.pointerId, at);
    });
    const reset = () => { k = 1; show(); };
    svg.addEventListener("dblclick", (event) => k > 1 ? reset() : zoom(place(event), 3));
    figure.querySelector(":scope > button").addEventListener("click", reset);
  }
})();

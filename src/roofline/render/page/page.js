// What a page of charts can do beyond showing them: tell about a point, zoom, filter, sort. Nothing is loaded, nothing
// is sent; without scripts the page still shows everything.
(() => {
  "use strict";
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // ---- what a mouse that rests on something is told ----
  const tip = document.getElementById("tip");
  const told = new Map();
  for (const title of all("figure svg g > title, figure svg rect > title, figure svg polygon > title")) {
    told.set(title.parentNode, title.textContent);
    title.parentNode.setAttribute("aria-label", title.textContent);
    title.remove(); // the browser's own would come on top of ours
  }
  const rows = all("tbody tr");
  const parts = all("figure svg [data-name]");
  const same = (a, b) => a.dataset.name === b.dataset.name && a.dataset.stage === b.dataset.stage &&
    (!a.dataset.report || !b.dataset.report || a.dataset.report === b.dataset.report);
  const light = (one, on) => {
    for (const other of [...parts, ...rows]) if (same(one, other)) other.classList.toggle("here", on);
  };
  const named = (node) => node && node.closest ? node.closest("[data-name]") : null;
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
  let lit = null;
  document.addEventListener("pointerover", (event) => {
    const one = named(event.target);
    if (one === lit) return;
    if (lit) light(lit, false);
    lit = one && one.dataset.name ? one : null;
    if (lit) light(lit, true);
  });

  // ---- zoom: lines are stretched, marks and words are moved and keep their size ----
  for (const figure of all("figure.zooms")) {
    const svg = figure.querySelector("svg");
    const plot = svg.querySelector(".plot");
    const box = { x: +plot.getAttribute("x"), y: +plot.getAttribute("y"), w: +plot.getAttribute("width"), h: +plot.getAttribute("height") };
    const moving = all(".move, .move-x, .move-y", svg).map((node) => {
      const at = /translate\(([-\d.]+) ([-\d.]+)\)/.exec(node.getAttribute("transform"));
      return { node, x: +at[1], y: +at[2], along: node.classList.contains("move-x") ? "x" : node.classList.contains("move-y") ? "y" : "xy" };
    });
    const stretch = all(".stretch", svg);
    for (const line of all(".stretch *, .ridge, .gap", svg)) line.setAttribute("vector-effect", "non-scaling-stroke");
    const loose = all(".inside > .ridge, .inside > .gap", svg);
    let k = 1, tx = 0, ty = 0;
    const button = figure.querySelector("button");
    const show = () => {
      k = Math.max(1, Math.min(60, k));
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
      for (const node of [...stretch, ...loose]) node.setAttribute("transform", `matrix(${k} 0 0 ${k} ${tx} ${ty})`);
      figure.classList.toggle("zoomed", k > 1);
    };
    const place = (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      return { x: at.x, y: at.y };
    };
    svg.addEventListener("wheel", (event) => {
      const at = place(event);
      if (at.x < box.x || at.x > box.x + box.w || at.y < box.y || at.y > box.y + box.h) return;
      event.preventDefault();
      const before = k;
      k = Math.max(1, Math.min(60, k * Math.exp(-event.deltaY * 0.002)));
      tx = at.x - (at.x - tx) * k / before;
      ty = at.y - (at.y - ty) * k / before;
      show();
    }, { passive: false });
    const fingers = new Map();
    svg.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, place(event)); svg.setPointerCapture(event.pointerId); });
    const lift = (event) => fingers.delete(event.pointerId);
    svg.addEventListener("pointerup", lift);
    svg.addEventListener("pointercancel", lift);
    svg.addEventListener("pointermove", (event) => {
      const from = fingers.get(event.pointerId);
      if (!from) return;
      const at = place(event);
      if (fingers.size === 1) { tx += at.x - from.x; ty += at.y - from.y; }
      else {
        const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
        const apart = (a) => Math.max(1, Math.hypot(a.x - other.x, a.y - other.y));
        const before = k;
        k = Math.max(1, Math.min(60, k * apart(at) / apart(from)));
        tx = other.x - (other.x - tx) * k / before;
        ty = other.y - (other.y - ty) * k / before;
      }
      fingers.set(event.pointerId, at);
      show();
    });
    const reset = () => { k = 1; tx = 0; ty = 0; show(); };
    svg.addEventListener("dblclick", reset);
    button.addEventListener("click", reset);
  }

  // ---- filters ----
  const boxes = all(".controls input");
  const filter = () => {
    const off = { stage: new Set(), group: new Set(), report: new Set() };
    for (const box of boxes) if (!box.checked) off[box.dataset.key].add(box.value);
    for (const node of all("figure svg [data-stage], tbody tr")) {
      const d = node.dataset;
      const hidden = off.stage.has(d.stage) || (d.group && off.group.has(d.group)) || (d.report && off.report.has(d.report));
      node.classList.toggle(node.classList.contains("piece") ? "faded" : "gone", Boolean(hidden));
    }
  };
  for (const box of boxes) box.addEventListener("change", filter);

  // ---- sort ----
  const body = document.querySelector("tbody");
  all("th button").forEach((button) => {
    const head = button.parentNode;
    const column = Array.from(head.parentNode.children).indexOf(head);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const other of all("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.children[column].dataset.value ?? row.children[column].textContent;
      const number = !head.classList.contains("words");
      const order = (a, b) => number ? Number(key(a)) - Number(key(b)) : key(a).localeCompare(key(b));
      rows.slice().sort((a, b) => down ? -order(a, b) : order(a, b)).forEach((row) => body.append(row));
    });
  });
})();

"use strict";
const KINDS = {table: "table", tab: "table", figure: "figure", fig: "figure"};
const SKIPPED = new Set("of the in a and et al 2023 2024 paper".split(" "));
const words = text => text.toLowerCase().replace(/'/g, "").match(/[a-z]+\d*(?:-\d+)?|[0-9]+/g) || [];

// Enlarged figures: a link without this script, a dialog with it
const BASE = document.currentScript.src.replace(/[^/]*$/, "");
const box = document.getElementById("zoom"), inside = box.querySelector("div");
document.addEventListener("click", event => {
  const link = event.target.closest("a.zoom");
  if (event.target === box) box.close();
  if (!link || !box.showModal || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const small = link.querySelector("img"), image = document.createElement("img");
  image.src = link.href;
  image.alt = small ? small.alt : link.dataset.alt || "";
  inside.replaceChildren(image);
  box.showModal();
});

// Search: as `uetrust find`
function answers(text) {
  const named = text.toLowerCase().match(/\b(table|tab|figure|fig)\b\.?\s*(\d*)/);
  const kind = named ? KINDS[named[1]] : "", number = named ? named[2] : "";
  const rest = words(named ? text.toLowerCase().replace(named[0], " ") : text).filter(w => !SKIPPED.has(w));
  if (!kind && !rest.length) return [];
  return INDEX.filter(([label, , shows, aliases, of, n]) => {
    if (kind && (of !== kind || (number && n !== +number))) return false;
    const there = words([label, shows, aliases].join(" "));
    return rest.every(word => there.some(other => /^\d+$/.test(word) ? other === word : other.startsWith(word)));
  });
}
function pairs(word) {
  return new Set([...word].map((_, i) => word.slice(i, i + 2)).filter(pair => pair.length === 2));
}
function nearest(text) {
  const known = [...new Set(INDEX.flatMap(([label, , , aliases]) => words(label + " " + aliases)))];
  const likeness = (a, b) => {
    const [p, q] = [pairs(a), pairs(b)];
    return 2 * [...p].filter(x => q.has(x)).length / (p.size + q.size || 1);
  };
  return words(text).map(word => known.map(other => [likeness(word, other), other]).sort((a, b) => b[0] - a[0])[0])
    .filter(found => found && found[0] > .4).map(found => found[1]);
}
const field = document.getElementById("q"), list = document.getElementById("found");
function item(label, address, shows) {
  const li = document.createElement("li"), link = document.createElement(address ? "a" : "span");
  if (address) link.href = BASE + address;
  link.textContent = label;
  li.append(link);
  if (shows) li.append(Object.assign(document.createElement("span"), {textContent: shows}));
  return li;
}
let loading = null;
function load() {  // The index is large: it comes when somebody searches
  loading ||= new Promise(done => {
    const script = Object.assign(document.createElement("script"), {src: `${BASE}index.js`, onload: done});
    document.head.append(script);
  });
  return loading;
}
async function search() {
  await load();
  const text = field.value.trim(), found = answers(text);
  list.hidden = !text;
  if (found.length) {
    list.replaceChildren(...found.slice(0, 12).map(([label, address, shows]) => item(label, address, shows)));
    if (found.length > 12) list.append(item(`and ${found.length - 12} more`));
  } else {
    const near = nearest(text);
    list.replaceChildren(item(`Nothing answers to this.${near.length ? " Nearest: " + near.join(", ") : ""}`));
  }
}
field.addEventListener("focus", load);
field.addEventListener("input", search);
document.addEventListener("keydown", event => { if (event.key === "Escape") list.hidden = true; });
document.getElementById("find").addEventListener("submit", event => {
  event.preventDefault();
  search().then(() => {
    const first = list.querySelector("a");
    if (first) location.href = first.href;
  });
});

// Lists that can be filtered
for (const part of document.querySelectorAll(".filtered")) {
  const items = [...part.querySelectorAll(".item")], count = part.querySelector("output");
  const choices = [...part.querySelectorAll("select")], text = part.querySelector("input[type=search]");
  const pick = () => {
    let shown = 0;
    for (const one of items) {
      const fits = choices.every(c => !c.value || one.dataset[c.dataset.by].includes(`|${c.value}|`));
      one.hidden = !(fits && one.textContent.toLowerCase().includes(text.value.toLowerCase()));
      shown += !one.hidden;
    }
    count.textContent = `${shown} of ${items.length}`;
  };
  part.querySelector("form").addEventListener("submit", event => event.preventDefault());
  for (const control of [...choices, text]) control.addEventListener("input", pick);
  pick();
}
// A link to a card opens it
function open() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const details = target && target.querySelector("details");
  if (details) details.open = true;
}
addEventListener("hashchange", open);
open();

// The part of a page that is shown is marked in the list of its parts
function mark() {
  const parts = [...document.querySelectorAll(".parts > section")];
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const shown = parts.find(part => part.contains(target)) || parts[0];
  for (const link of document.querySelectorAll(".pick a")) {
    if (link.hash === `#${shown.id}`) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}
addEventListener("hashchange", mark);
mark();

// What is wider than its box can be scrolled by keyboard, and says what it is
function reachable() {
  for (const box of document.querySelectorAll("main pre, .output, .output div, .wide, .math")) {
    if (box.scrollWidth > box.clientWidth) {
      for (const [name, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", "Wide content, scrolls sideways"]])
        box.setAttribute(name, value);
    }
  }
}
addEventListener("load", reachable);
addEventListener("resize", reachable);
document.addEventListener("toggle", reachable, true);

// Code can be copied
for (const code of document.querySelectorAll("pre.code")) {
  const button = Object.assign(document.createElement("button"), {textContent: "Copy", className: "copy", type: "button"});
  const text = code.textContent;
  button.addEventListener("click", () => navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; }));
  code.after(button);
}

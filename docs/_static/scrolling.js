// What is wider than its box can be reached and scrolled by keyboard, and says what it is.
const boxes = () => document.querySelectorAll("pre, .cell_output, .cell_output div, .table-wrapper, div.math");
const scrolls = box => box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX !== "visible";

function reachable() {
  for (const box of boxes()) {
    if (scrolls(box)) {
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", "Wide content, scrolls sideways");
    } else if (box.getAttribute("role") === "region") {
      for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
    }
  }
}

addEventListener("load", reachable);
addEventListener("resize", reachable);
document.addEventListener("toggle", reachable, true);

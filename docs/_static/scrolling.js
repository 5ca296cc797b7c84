// What is wider than its box can be reached and scrolled by keyboard, and says what it is.
const boxes = () => document.querySelectorAll("pre, .cell_output, .table-wrapper, div.math");

function reachable() {
  for (const box of boxes()) {
    if (box.scrollWidth > box.clientWidth) {
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

// The contents are folded on a narrow screen; what scrolls sideways can be reached with the keyboard.
(() => {
  const contents = document.querySelector(".contents details");
  if (innerWidth < 1250) contents.removeAttribute("open");

  const wide = ".highlight, .jp-RenderedText, .jp-RenderedImage, .jp-RenderedHTML, .jp-MarkdownOutput p, .jp-MarkdownOutput pre, .scrolls";
  function reach() {
    for (const table of document.querySelectorAll(".jp-MarkdownOutput table")) {
      if (table.parentElement.matches(".scrolls")) continue;
      const box = document.createElement("div");
      box.className = "scrolls";
      table.replaceWith(box);
      box.append(table);
    }
    for (const box of document.querySelectorAll(wide)) {
      const scrolls = box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX === "auto";
      if (scrolls) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  }
  addEventListener("resize", reach);
  addEventListener("toggle", reach, true); // a solution that is unfolded
  addEventListener("load", () => MathJax.startup.promise.then(reach));
})();

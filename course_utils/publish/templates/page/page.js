// The contents are folded on a narrow screen, and show which section is read; what scrolls sideways can be reached with
// the keyboard; headings have their address, code can be copied, and a switch shows the speaker notes.
(() => {
  const contents = document.querySelector(".contents details");
  const narrow = () => innerWidth < 1250;
  if (narrow()) contents.removeAttribute("open");
  const links = [...contents.querySelectorAll("a")];
  const sections = links.map((link) => document.getElementById(link.hash.slice(1)));
  contents.addEventListener("click", (event) => {
    if (narrow() && event.target.matches("a")) contents.removeAttribute("open");
  });

  // The last section that has begun above a third of the window.
  function follow() {
    const read = sections.findLastIndex((section) => section?.getBoundingClientRect().top < innerHeight / 3);
    links.forEach((link, k) => {
      if (k !== read) return link.removeAttribute("aria-current");
      if (!link.hasAttribute("aria-current") && !narrow()) link.scrollIntoView({ block: "nearest" });
      return link.setAttribute("aria-current", "true");
    });
    contents.querySelector("summary").textContent = narrow() && read >= 0 ? `Contents · ${links[read].textContent}` : "Contents";
  }
  let frame = 0;
  addEventListener("scroll", () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(follow);
  }, { passive: true });
  follow();

  const wide = ".highlight, .jp-RenderedText, .jp-RenderedImage, .jp-RenderedHTML, .jp-MarkdownOutput p, .jp-MarkdownOutput pre, mjx-container[display], .scrolls";
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
      goesOn(box);
    }
  }
  // What is cut at the right edge fades there, until one has scrolled to its end.
  function goesOn(box) {
    box.classList.toggle("goes-on", box.tabIndex === 0 && box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
  }
  addEventListener("scroll", (event) => event.target.matches?.(wide) && goesOn(event.target), { passive: true, capture: true });
  addEventListener("resize", reach);
  addEventListener("toggle", reach, true); // a solution that is unfolded

  document.querySelector(".notes-switch input")?.addEventListener("change", ({ target }) => {
    document.body.classList.toggle("with-notes", target.checked);
    for (const note of document.querySelectorAll(".notes details")) note.open = target.checked;
  });
  for (const heading of document.querySelectorAll(".jp-MarkdownOutput :is(h2, h3)")) {
    const link = document.createElement("a");
    Object.assign(link, { className: "permalink", textContent: "#", href: `#${heading.closest(".jp-Cell").id}` });
    link.setAttribute("aria-label", "link to this section");
    heading.append(" ", link);
  }
  if (navigator.clipboard) {
    for (const code of document.querySelectorAll(".jp-CodeCell .highlight")) {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: "copy", textContent: "copy" });
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(code.textContent.trim());
        button.textContent = "copied";
        setTimeout(() => { button.textContent = "copy"; }, 1500);
      });
      code.parentElement.classList.add("can-copy");
      code.after(button);
    }
  }
  addEventListener("load", () => MathJax.startup.promise.then(reach));
})();

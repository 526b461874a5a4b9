// Live slides in class: keys work without a click, a cell that runs says so and stays in sight with its result, and the
// notes' window leaves the slides where they are. A JupyterLab extension, written as one that needs no build step.
window._JUPYTERLAB ??= {};
window._JUPYTERLAB["course-live"] = {
  init() {},
  get: async () => () => ({ __esModule: true, default: [{ id: "course-live:slides", autoStart: true, activate }] }),
};

function activate({ commands }) {
  // RISE goes on to the next cell, and with it to the next slide.
  for (const mode of ["jp-mod-commandMode", "jp-mod-editMode"]) {
    commands.addKeyBinding({ command: "notebook:run-cell", keys: ["Shift Enter"], selector: `.reveal .jp-Notebook.${mode}` });
  }
  const found = new MutationObserver(() => {
    const slides = document.querySelector(".reveal .jp-Notebook section.present")?.closest(".jp-Notebook");
    if (!slides) return;
    found.disconnect();
    slides.focus();
    // Escape left a widget, and the focus nowhere: the next Shift and Enter would run nothing.
    document.addEventListener("keyup", () => document.activeElement === document.body && slides.focus());
    new MutationObserver(show).observe(slides, { childList: true, subtree: true });
  });
  // Right and left are one step, as Space and Shift+Space: alone they pass over the slides below.
  document.addEventListener("keydown", (event) => {
    const { key, target, shiftKey, ctrlKey, altKey, metaKey } = event;
    if (!["ArrowRight", "ArrowLeft"].includes(key) || shiftKey || ctrlKey || altKey || metaKey) return;
    if (!document.querySelector(".reveal") || target.closest("input, textarea, select, [contenteditable=true]")) return;
    event.stopImmediatePropagation();
    document.dispatchEvent(new KeyboardEvent("keydown", { keyCode: 32, shiftKey: key === "ArrowLeft" }));
  });
  found.observe(document.body, { childList: true, subtree: true });
  keepTheSlide();
}

// That a cell runs, and the end of a result that came below the edge, the start of one that is longer than the slide.
function show(changes) {
  if (changes.some(({ target }) => target.matches(".jp-InputPrompt"))) {
    const prompts = [...document.querySelectorAll(".jp-InputPrompt")];
    document.body.classList.toggle("course-runs", prompts.some((prompt) => prompt.textContent.startsWith("[*")));
  }
  const results = changes.flatMap(({ addedNodes }) => [...addedNodes])
    .filter((node) => node.matches?.("section.present section.present .jp-OutputArea-child"));
  results.at(-1)?.scrollIntoView({ block: "nearest" });
}

// The notes' window loads the slides anew. They begin with the title, and would take these slides there. And its notes
// are copies of what stands here, without the rules that formulas are drawn by.
function keepTheSlide() {
  const { open } = window;
  let notes = null, atTitle = false;
  window.open = (...given) => {
    atTitle = false;
    return (notes = open.apply(window, given));
  };
  window.addEventListener("message", (event) => {
    if (!notes || event.source !== notes) return;
    const { type, method, args } = JSON.parse(event.data);
    if (type === "heartbeat") return formulas(notes.document);
    if (atTitle || method !== "setState" || args[0].indexh || args[0].indexv || /#\/slide-0\b/.test(location.hash)) return;
    atTitle = true; // after this once one may go there
    event.stopImmediatePropagation();
    window.postMessage(JSON.stringify({ namespace: "reveal-notes", type: "connected" }), location.origin);
  }, { capture: true });
}

function formulas({ head }) {
  const rules = [...document.styleSheets].flatMap((sheet) => (sheet.href ? [] : [...sheet.cssRules]))
    .map((rule) => rule.cssText).filter((rule) => /mjx|MJX/.test(rule)).join("\n");
  const style = head.querySelector("#formulas") ?? head.appendChild(Object.assign(document.createElement("style"), { id: "formulas" }));
  if (style.textContent !== rules) style.textContent = rules;
}

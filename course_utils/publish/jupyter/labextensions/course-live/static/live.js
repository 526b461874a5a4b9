// Live slides in class: keys work without a click, a cell that has run stays in sight with its result, and the notes'
// window leaves the slides where they are. A JupyterLab extension, written as one that needs no build step.
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
    new MutationObserver(show).observe(slides, { childList: true, subtree: true });
  });
  found.observe(document.body, { childList: true, subtree: true });
  keepTheSlide();
}

// The end of a result that came below the edge, the start of one that is longer than the slide.
function show(changes) {
  const results = changes.flatMap(({ addedNodes }) => [...addedNodes])
    .filter((node) => node.matches?.("section.present section.present .jp-OutputArea-child"));
  results.at(-1)?.scrollIntoView({ block: "nearest" });
}

// The notes' window loads the slides anew. They begin with the title, and would take these slides there.
function keepTheSlide() {
  const { open } = window;
  let fresh = null;
  window.open = (...given) => (fresh = open.apply(window, given));
  window.addEventListener("message", (event) => {
    let message;
    try { message = JSON.parse(event.data); } catch { return; }
    const state = event.source === fresh && message?.method === "setState" && message.args[0];
    if (!state || state.indexh || state.indexv || /#\/slide-0\b/.test(location.hash)) return;
    fresh = null; // later it may lead to the title
    event.stopImmediatePropagation();
    window.postMessage(JSON.stringify({ namespace: "reveal-notes", type: "connected" }), location.origin);
  }, { capture: true });
}

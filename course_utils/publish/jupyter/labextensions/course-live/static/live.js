// Live slides in class: keys work without a click, a cell that runs says so and stays in sight with its result, and the
// notes' window leaves the slides where they are. A JupyterLab extension, written as one that needs no build step.
window._JUPYTERLAB ??= {};
window._JUPYTERLAB["course-live"] = {
  init() {},
  get: async () => () => ({ __esModule: true, default: [{ id: "course-live:slides", autoStart: true, activate }] }),
};

const TAKES_A_STEP = 2000; // milliseconds, from a click in the notes' window to its message

function activate({ commands }) {
  // RISE goes on to the next cell, and with it to the next slide.
  for (const mode of ["jp-mod-commandMode", "jp-mod-editMode"]) {
    const selector = `.lm-Widget.reveal .lm-Widget.jp-WindowedPanel.jp-Notebook.${mode}`;   // more exact than RISE's
    commands.addKeyBinding({ command: "notebook:run-cell", keys: ["Shift Enter"], selector });
  }
  const found = new MutationObserver(() => {
    const slides = document.querySelector(".reveal .jp-Notebook section.present")?.closest(".jp-Notebook");
    if (!slides) return;
    found.disconnect();
    slides.focus();
    grow();
    // Escape left a widget, and the focus nowhere: the next Shift and Enter would run nothing.
    const back = () => document.activeElement === document.body && slides.focus();
    document.addEventListener("keyup", back);
    window.addEventListener("hashchange", () => setTimeout(() => (back(), grow(), foot()), 300)); // after a jump, too
    new MutationObserver(show).observe(slides, { childList: true, subtree: true });
    const kernel = document.querySelector(".jp-Notebook-ExecutionIndicator");
    const tell = () => {
      const { status } = kernel.dataset;
      const runs = document.body.classList.toggle("course-runs", status === "busy");
      if (!runs) before().forEach((old) => old.remove());
      document.body.classList.toggle("course-starts", /starting|connecting|initializing/.test(status)); // a run waits
    };
    if (!kernel) return;
    new MutationObserver(tell).observe(kernel, { attributeFilter: ["data-status"] });
    tell();
  });
  found.observe(document.body, { childList: true, subtree: true });
  window.addEventListener("keydown", steer, { capture: true });
  document.body.addEventListener("keydown", spare);
  keepTheSlide();
}

// Before anybody else hears of a key. Right and left are one step, as Space and Shift+Space: to Reveal they are a jump
// over fragments and the slides below. And Shift+Enter is for code, also where a jump left a heading selected. Of the
// letters and signs, b makes the screen dark, t and w are RISE's (notes, all slides); the others would pause, or add and
// remove cells.
function steer(event) {
  const { key, target, shiftKey, ctrlKey, altKey, metaKey } = event;
  const slide = document.querySelector(".reveal section.present > section.present");
  if (!slide || ctrlKey || altKey || metaKey) return;
  if (key === "Enter" && shiftKey) {
    const active = slide.querySelector(".jp-CodeCell.jp-mod-active");
    const shown = active ?? [...slide.querySelectorAll(".jp-CodeCell:not(.reveal-skip)")]
      .find((cell) => cell.offsetParent && !cell.closest(".fragment:not(.visible)"));
    if (!shown) return event.stopImmediatePropagation(); // nothing to run here
    if (!active) shown.dispatchEvent(new MouseEvent("mousedown", { bubbles: true }));
    keepThePicture(shown);
  }
  if (target.closest?.(TYPED)) return;
  if (isSign(key) && !"twTW".includes(key)) {
    event.stopImmediatePropagation();
    if ("bB".includes(key)) document.dispatchEvent(new KeyboardEvent("keydown", { keyCode: 190 }));
  }
  if (!["ArrowRight", "ArrowLeft"].includes(key) || shiftKey) return;
  event.stopImmediatePropagation();
  event.preventDefault();
  document.dispatchEvent(new KeyboardEvent("keydown", { keyCode: 32, shiftKey: key === "ArrowLeft" }));
}

// JupyterLab takes a result away when its cell starts: a copy of its picture stays until there is a new one, or the end.
function keepThePicture(cell) {
  const picture = [...cell.querySelectorAll(".jp-OutputArea-output > img")].at(-1);
  if (!picture || before().length) return;
  const copy = Object.assign(document.createElement("div"), { className: "jp-OutputArea-output course-before" });
  copy.append(picture.cloneNode());
  cell.querySelector(".jp-Cell-outputWrapper").after(copy);
}

const before = () => [...document.querySelectorAll(".course-before")];

const TYPED = "input, textarea, select, [contenteditable=true], .jp-OutputArea, .jp-Dialog"; // a key there is theirs

const isSign = (key) => key.length === 1 && key !== " ";

// What is typed in a cell or pressed in a widget: Reveal, which listens above the page's body, would pause at some.
function spare(event) {
  if (isSign(event.key)) event.stopPropagation();
}

// The end of a result that came below the edge, the start of one that is longer than the slide.
function show(changes) {
  const results = changes.flatMap(({ addedNodes }) => [...addedNodes])
    .filter((node) => node.matches?.("section.present section.present .jp-OutputArea-child"));
  if (results.some((node) => node.querySelector("img"))) before().forEach((old) => old.remove());
  results.at(-1)?.scrollIntoView({ block: "nearest" });
  // what changes inside a widget, under the pointer too, leaves its size alone
  if (changes.some(({ target }) => target.closest?.(".jp-OutputArea") && !target.closest(".course-widget"))) grow();
  foot();
}

// The number and the arrows give way to what reaches down to them.
function foot() {
  const slide = document.querySelector(".reveal section.present > section.present");
  const number = document.querySelector(".reveal .slide-number a");
  if (!slide || !number) return;
  const card = ".jp-OutputArea-output > div:not(.course-loaded)";
  const content = [...slide.querySelectorAll(`p, li, pre, img, table, .cm-editor, .course-widget, ${card}`)];
  const lowest = Math.max(...content.map((part) => part.getBoundingClientRect().bottom));
  document.body.classList.toggle("course-full", Math.min(lowest, innerHeight) > number.getBoundingClientRect().top);
}

// A drawing or a widget alone on its slide takes the space there is, as in an exported deck.
function grow() {
  const slide = document.querySelector(".reveal section.present > section.present");
  const room = (part) => Math.min(684, 0.95 * innerHeight) - (slide.scrollHeight - part.offsetHeight);
  const [drawing, second] = [...slide?.querySelectorAll(".jp-MarkdownOutput img") ?? []].filter((img) => img.offsetParent);
  if (drawing && !second) {
    drawing.style.cssText = "width: 100%; object-fit: contain; max-height: 220px";
    drawing.style.maxHeight = `${Math.max(220, room(drawing))}px`;
  }
  const [view, ...others] = [...slide?.querySelectorAll(".jp-OutputArea .course-widget") ?? []]
    .filter((widget) => widget.offsetParent && !widget.parentElement.closest(".course-widget"));
  if (!view || others.length) return;
  view.style.zoom = "";
  const { offsetHeight: height, offsetWidth: width } = view;
  view.style.zoom = Math.max(0.85, Math.min(2, room(view) / height, slide.clientWidth / width));
}

// The notes' window shows the slides once more. While its copy finds its place, it says where it is, and would take these
// slides to the title, or a fragment back: so a key there is pressed here, and these follow it only after a click there.
// And its notes are copies of what stands here, without the rules that formulas are drawn by.
function keepTheSlide() {
  const { open } = window;
  let notes = null, clicked = 0;
  const click = () => { clicked = Date.now(); };
  window.open = (...given) => (notes = open.apply(window, given));
  window.addEventListener("message", (event) => {
    if (!notes || event.source !== notes) return;
    const { type, method } = JSON.parse(event.data);
    if (type === "heartbeat") {
      for (const frame of [notes, ...Array.from({ length: notes.length }, (_, k) => notes[k])]) {
        frame.addEventListener("keydown", pressHere, { capture: true });                                       // once each
        frame.addEventListener("pointerdown", click, { capture: true });
      }
      fitNote(notes.document);
      return formulas(notes.document);
    }
    if (method !== "setState" || Date.now() - clicked < TAKES_A_STEP) return;
    event.stopImmediatePropagation();
    window.postMessage(JSON.stringify({ namespace: "reveal-notes", type: "connected" }), location.origin); // where these are
  }, { capture: true });
}

const STEERS = ["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End", " ", "b", "B"];

function pressHere(event) {
  const { key, keyCode, target, shiftKey, ctrlKey, altKey, metaKey } = event;
  if (!STEERS.includes(key) || ctrlKey || altKey || metaKey || target.closest?.(TYPED)) return;
  event.stopImmediatePropagation();
  event.preventDefault();
  document.dispatchEvent(new KeyboardEvent("keydown", { key, keyCode, shiftKey }));
}

function formulas({ head }) {
  const rules = [...document.styleSheets].flatMap((sheet) => (sheet.href ? [] : [...sheet.cssRules]))
    .map((rule) => rule.cssText).filter((rule) => /mjx|MJX/.test(rule)).join("\n");
  const style = head.querySelector("#formulas") ?? head.appendChild(Object.assign(document.createElement("style"), { id: "formulas" }));
  if (style.textContent !== rules) style.textContent = rules;
}

// A note is read without scrolling: in the largest type in which it fits the window.
function fitNote(page) {
  const [column, note] = ["#speaker-controls", ".speaker-controls-notes .value"].map((part) => page.querySelector(part));
  const is = note && `${note.textContent.length} ${column.clientWidth} ${column.clientHeight}`;
  if (!note || note.dataset.is === is) return;
  note.dataset.is = is;
  note.style.lineHeight = 1.3;
  for (let size = 22; size >= 14; size -= 1) {
    note.style.fontSize = `${size}px`;
    if (column.scrollHeight <= column.clientHeight) return;
  }
}

// Lay out every slide once, let its pictures take the space there is, then start reveal.js.
// `window.deckReady` says that it is done.
(() => {
  const WIDTH = 1152, HEIGHT = 720; // of a slide: between its margins, from edge to edge
  // Heights below which nothing is shrunk: a plot keeps its shape, a view's tokens must stay readable.
  const smallest = (picture, height) => (picture.matches(".course-widget") ? 0.9 * height : 220);
  const LARGEST_GROWTH = 2;
  const LARGEST_CODE = 25; // pixels

  const overflow = (slide) => slide.scrollHeight - HEIGHT;

  // plots, drawings and attention views, but not what is inside a view
  const pictures = (slide) => [...slide.querySelectorAll("img, .course-widget")]
    .filter((picture) => !picture.parentElement.closest(".course-widget, aside.notes"));

  const scale = (picture, factor) => { picture.style.zoom = factor; };

  // The tallest first, until the slide fits.
  function shrink(slide) {
    const heights = new Map(pictures(slide).map((picture) => [picture, picture.offsetHeight]));
    for (const [picture, height] of [...heights].sort((a, b) => b[1] - a[1])) {
      if (overflow(slide) <= 0) return;
      scale(picture, Math.min(1, Math.max(smallest(picture, height), height - overflow(slide) - 1) / height));
    }
  }

  // One picture alone may grow, so that it can be read from the back row.
  function grow(slide) {
    const [picture, ...others] = pictures(slide);
    if (!picture || others.length || picture.style.zoom) return;
    const height = picture.offsetHeight;
    const room = (height - overflow(slide) - 1) / height;
    scale(picture, Math.max(1, Math.min(LARGEST_GROWTH, room, WIDTH / picture.offsetWidth)));
  }

  // how many rows each block of code or print has, and whether it is cut on the right
  const rows = (slide) => [...slide.querySelectorAll("pre")].map((pre) => [
    Math.round(pre.scrollHeight / parseFloat(getComputedStyle(pre).fontSize)), pre.scrollWidth > pre.clientWidth,
  ]).join();

  // Text alone grows, too, as long as no line of code breaks that did not.
  function enlarge(slide) {
    if (pictures(slide).length || slide.matches(".dense") || slide.querySelector("h1")) return;
    const before = rows(slide);
    for (const size of ["larger", "large"]) {
      slide.classList.add(size);
      if (overflow(slide) <= 0 && rows(slide) === before) return;
      slide.classList.remove(size);
    }
  }

  // Then code by itself, up to the size of the text: it is read from the back row, too.
  function enlargeCode(slide) {
    if (!slide.querySelector(".highlight")) return;
    const before = rows(slide), given = parseFloat(getComputedStyle(slide).getPropertyValue("--code-size"));
    for (let size = LARGEST_CODE; size > given; size -= 1) {
      slide.style.setProperty("--code-size", `${size}px`);
      if (overflow(slide) <= 0 && rows(slide) === before) return;
    }
    slide.style.removeProperty("--code-size");
  }

  function fit(slide) {
    shrink(slide);
    if (overflow(slide) > 0) {
      slide.classList.add("dense");
      pictures(slide).forEach((picture) => scale(picture, ""));
      shrink(slide);
    }
    if (overflow(slide) > 0) return;
    enlarge(slide);
    enlargeCode(slide);
    grow(slide);
  }

  // MathJax writes each formula twice, the second time for screen readers, and hides that by a rule of this page. The
  // speaker view takes the notes and not the rule.
  function hideSpokenMath() {
    for (const spoken of document.querySelectorAll("aside.notes mjx-assistive-mml")) {
      spoken.style.cssText = "position: absolute; clip-path: inset(50%)";
    }
  }

  // A slide without notes of its own has those of the slide before it in its section, and says from where.
  function carryNotes() {
    for (const section of document.querySelectorAll(".slides > section")) {
      let last = "";
      for (const slide of section.children) {
        const notes = [...slide.querySelectorAll("aside.notes")];
        slide.append(...notes); // also when their cell follows a fragment
        if (notes.length) {
          const title = slide.querySelector("h1, h2, h3, h4")?.textContent ?? "the slide before";
          last = document.createElement("aside");
          last.className = "notes carried";
          last.append("From: ", title, ...notes.flatMap((note) => [...note.cloneNode(true).childNodes]));
        } else if (last) {
          slide.append(last.cloneNode(true));
        }
      }
    }
  }

  // Tab stays in the slide that is shown: views of the others cannot get the focus.
  function wakeOne() {
    const shown = Reveal.getCurrentSlide();
    const all = Reveal.isOverview(); // there a slide is chosen by a click
    for (const slide of document.querySelectorAll(".slides section section")) slide.inert = !all && slide !== shown;
  }

  async function start() {
    await MathJax.startup.promise;
    await Promise.all([...document.images].map((image) => image.decode().catch(() => {})));
    hideSpokenMath();
    carryNotes();
    for (const slide of document.querySelectorAll(".slides section section")) {
      fit(slide);
    }
    document.body.classList.remove("measuring");
    await Reveal.initialize({
      width: 1280, height: HEIGHT, margin: 0, center: false, hash: true, transition: "none",
      slideNumber: "c/t", pdfSeparateFragments: false, pdfMaxPagesPerSlide: 1, plugins: [RevealNotes], navigationMode: "linear", // a presenter's arrow keys miss no slide
      // Esc, v and . are keys of our views; without the focus nothing happens. Of the keys that pause, b is left.
      keyboard: { 27: null, 58: null, 59: null, 86: null, 190: null, 191: null },
      help: false, // ? may be typed in a view
      // a view or the ledger, with the focus, gets every key but those of a presenter's remote control
      keyboardCondition: (event) => !event.target.closest?.(".course-widget, .claims-ledger")
        || ["PageDown", "PageUp"].includes(event.key),
    });
    for (const event of ["slidechanged", "overviewshown", "overviewhidden"]) Reveal.on(event, wakeOne);
    wakeOne();
    window.deckReady = true;
  }
  start();
})();

// The search over all sections: the beginnings of words in any order, a page's title before a heading, a heading before
// the text below it. The words come when the field is first used. The arrow keys go from the field through the links,
// Escape closes.
(() => {
  const MOST = 12;
  const box = document.querySelector(".site-search");
  const field = box.querySelector("input");
  const list = box.querySelector("ul");
  const said = box.querySelector("[role=status]");
  const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  // what is said otherwise here
  const ALSO = { embedding: "embed", finetuning: "tuning", overfitting: "overfit", positional: "position", rope: "rotary", skip: "residual", tokeniser: "tokenizer" };
  let places = null;

  function load() {
    if (box.querySelector("script")) return;
    const script = made("script", { src: "assets/headings.js" });
    script.addEventListener("load", () => {
      places = HEADINGS.flatMap(([file, title, words, sections]) => [
        { page: file, address: file, text: title, under: "", key: plain(title), words, rank: 0 },
        ...sections.map(([place, text, own]) => ({ page: file, address: `${file}#${place}`, text, under: title, key: plain(text), words: own, rank: 1 })),
      ]);
      if (field.value) show();
    });
    box.append(script);
  }

  // 0 or 1 if the title or heading has all words, 2 if the text has the rest of them, else Infinity.
  function rankOf({ key, words, rank }, wanted) {
    const inText = (word) => word.split(/[^\p{L}\p{N}]+/u).every((part) => ` ${key} ${words}`.includes(` ${ALSO[part] || part}`));
    if (wanted.every((word) => key.includes(word) || key.includes(ALSO[word]))) return rank;
    return wanted.every(inText) ? 2 : Infinity;
  }

  function made(tag, properties, ...children) {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  }

  // By rank; of the sections that have the words in their text, those first whose page has many, and three of a page.
  function ordered(found) {
    const counts = {};
    for (const place of found.filter(({ rank }) => rank === 2)) {
      counts[place.page] = (counts[place.page] || 0) + 1;
      if (counts[place.page] > 3) place.rank = 3;
    }
    return found.sort((a, b) => a.rank - b.rank || (a.rank < 2 ? 0 : counts[b.page] - counts[a.page]));
  }

  function show() {
    const words = plain(field.value).split(/\s+/).filter(Boolean);
    if (!places) return;
    const found = ordered(places.map((place) => ({ ...place, rank: rankOf(place, words) })).filter(({ rank }) => rank <= 2));
    list.replaceChildren(...found.slice(0, MOST).map(({ address, text, under, rank }) => (
      made("li", {}, made("a", { href: address, textContent: text },
        made("span", { textContent: [under, ...(rank > 1 ? ["in its text"] : [])].filter(Boolean).join(" · ") }))))));
    said.textContent = found.length
      ? `${found.length} section${found.length > 1 ? "s" : ""}${found.length > MOST ? `, the first ${MOST} are shown` : ""}`
      : "No section has all of these words, neither in its heading nor in its text. Fewer words, or only their beginnings, find more.";
    open(words.length > 0);
  }

  function open(shown) {
    box.querySelector("div").hidden = !shown;
  }

  field.addEventListener("input", show);
  field.addEventListener("focus", () => {
    load();
    if (field.value) show();
  });
  list.addEventListener("click", () => open(false));
  box.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") {
      field.focus();
      open(false);
    } else if (event.key === "Enter" && event.target === field) links[0]?.click();
    else if (step && links.length) {
      event.preventDefault();
      (links[links.indexOf(event.target) + step] || field).focus();
    }
  });
  document.addEventListener("pointerdown", (event) => {
    if (!box.contains(event.target)) open(false);
  });
})();

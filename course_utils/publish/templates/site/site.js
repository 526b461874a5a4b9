// The search over all headings: words in any order, a page's title before a heading. The arrow keys go from the field
// through the links, Escape closes.
(() => {
  const MOST = 12;
  const box = document.querySelector(".site-search");
  const field = box.querySelector("input");
  const list = box.querySelector("ul");
  const said = box.querySelector("[role=status]");
  const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  const places = HEADINGS.flatMap(([file, title, headings]) => [
    { address: file, text: title, under: "", key: plain(title), rank: 0 },
    ...headings.map(([place, text]) => ({ address: `${file}#${place}`, text, under: title, key: plain(text), rank: 1 })),
  ]);

  function made(tag, properties, ...children) {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  }

  function show() {
    const words = plain(field.value).split(/\s+/).filter(Boolean);
    const found = places.filter(({ key }) => words.every((word) => key.includes(word))).sort((a, b) => a.rank - b.rank);
    list.replaceChildren(...found.slice(0, MOST).map(({ address, text, under }) => (
      made("li", {}, made("a", { href: address, textContent: text }, made("span", { textContent: under }))))));
    said.textContent = found.length ? `${found.length} heading${found.length > 1 ? "s" : ""}` : "No heading has these words.";
    open(words.length > 0);
  }

  function open(shown) {
    box.querySelector("div").hidden = !shown;
  }

  field.addEventListener("input", show);
  field.addEventListener("focus", () => field.value && show());
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

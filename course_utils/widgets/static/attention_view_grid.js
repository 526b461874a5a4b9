// --- grid -------------------------------------------------------------------------------------------------------

// Every head as a small picture, one row a layer. The one that is framed opens with Enter or a click.
class GridDrawing {
  constructor(view) {
    this.view = view;
    const { layers, heads } = view;
    const side = Math.max(22, Math.min(110, Math.floor(370 / layers), Math.floor(960 / heads)) - 4);
    this.side = side;
    this.padded = paddingOver(view);
    const name = (text, className) => element("span", { class: className, text, "aria-hidden": "true" });
    this.tiles = Array.from({ length: layers * heads }, (_, k) => this.tile(Math.floor(k / heads), k % heads));
    const rows = Array.from({ length: layers }, (_, layer) => [
      name(layer, "av-grid-layer"), ...this.tiles.slice(layer * heads, (layer + 1) * heads),
    ]);
    const heading = Array.from({ length: heads }, (_, head) => name(view.nameOf(head), "av-grid-head"));
    this.node = element("div", { class: "av-grid" }, [name(`layer ↓ ${view.headName} →`, "av-grid-corner"), ...heading, ...rows.flat()]);
    this.node.style.gridTemplateColumns = `auto repeat(${heads}, ${side}px)`;
    this.node.style.setProperty("--side", `${side}px`);
  }

  tile(layer, head) {
    const { view } = this;
    const canvas = element("canvas", { class: "av-thumbnail", width: 1, height: 1 });
    const canShow = view.store.canShow(layer, head);
    const label = `layer ${layer}, ${view.headName} ${view.nameOf(head)}${canShow ? "" : ": not in this page"}`;
    const padded = canShow ? this.padded.map((stripe) => stripe.cloneNode()) : [];
    const tile = element("div", { class: "av-tile", role: "img", "aria-label": label, title: label }, [canvas, ...padded]);
    tile.classList.toggle("is-cut", !canShow);
    tile.classList.toggle("has-masked", view.causal);
    const open = () => canShow && (view.chooseHead(layer, head), this.open());
    tile.addEventListener("click", open, { signal: view.closing.signal });
    return tile;
  }

  showHead() {
    const { view } = this;
    const { layer, head } = view.state;
    this.tiles.forEach((tile, k) => {
      tile.classList.toggle("is-current", k === layer * view.heads + head);
      if (tile.dataset.painted || tile.classList.contains("is-cut")) return;
      const picture = view.store.thumbnail(Math.floor(k / view.heads), k % view.heads);
      if (!picture) return;
      paintMatrix(tile.firstChild, picture.values, picture.rows, picture.columns, 256);
      if (view.causal) clearMasked(tile.firstChild);
      tile.firstChild.classList.toggle("is-shrunk", Math.max(picture.rows, picture.columns) > this.side);
      tile.dataset.painted = "true";
    });
  }

  showCell() {}

  says() {
    const { layer, head } = this.view.state;
    const here = this.tiles[layer * this.view.heads + head].dataset.painted;
    const what = here ? "Enter or a click opens it" : "waiting for the kernel";
    return [element("b", { text: `layer ${layer}, ${this.view.headName} ${this.view.nameOf(head)}` }), " ", element("span", { class: "av-where", text: what })];
  }

  // Arrow keys go from head to head, over those that are not in this page.
  move(down, right) {
    const { view } = this;
    const { layer, head } = view.state;
    const to = [clamp(layer + down, view.layers), clamp(head + right, view.heads)];
    if (view.store.canShow(...to)) view.chooseHead(...to);
  }

  open() {
    this.view.choose({ view: "matrix" });
  }

  legend() {
    const bar = scaleWithEnds(colourRamp("av-ramp"), this.view.top, "colour");
    return [bar, ...this.view.maskedKey(), ...this.view.paddingKey(), this.view.hint("arrows move", "Enter opens")];
  }
}

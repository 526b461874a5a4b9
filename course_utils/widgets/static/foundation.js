// What every widget of the course shares: elements, colour, tokens as text, keys, and the two places a widget
// can live in (a running notebook, an exported page).
//
// There are no imports and no build step: Python joins `const CIVIDIS`, this file and the widget's own file into
// one scope (see base.py). A widget is a class with
//     new Widget(place, state, tell)   draws `state` into the element `place`; tell(changes) reports what the
//                                      reader chose
//     update(state)                    draws another state in place, and reports nothing
//     answer(content, buffers)         optional: hears the kernel's answer to the constructor's fourth argument,
//                                      ask(question), which only a running notebook gives
//     destroy()                        removes the drawing and every listener

const SVG = "http://www.w3.org/2000/svg";

// An HTML element; the attribute `text` becomes its text. Data reaches the page only through here, never as markup.
function element(tag, attributes = {}, children = []) {
  return furnish(document.createElement(tag), attributes, children);
}

// The same for SVG.
function shape(tag, attributes = {}, children = []) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") node.textContent = value;
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// --- tokens -----------------------------------------------------------------------------------------------------

const UNSEEN = { " ": "␣", "\n": "⏎", "\t": "⇥" };

// What to show for a token: an empty one, or one made of blanks only, gets a visible mark.
function visible(token) {
  if (token === "") return "∅";
  return token.trim() ? token : Array.from(token, (blank) => UNSEEN[blank] || "␣").join("");
}

// A token as an element: its own writing direction, its full text on hover, muted if the text is only a mark.
function tokenElement(token, className) {
  const node = element("span", { class: className });
  showToken(node, token);
  return node;
}

function showToken(node, token) {
  const mark = element("bdi", { text: visible(token) });
  node.title = token === "" ? "empty token" : token;
  node.classList.toggle("is-blank", !token.trim());
  node.replaceChildren(mark);
}

// Width of a text in CSS pixels. Measured on a canvas, because an element in a hidden slide has no size.
const measuring = document.createElement("canvas").getContext("2d");
function textWidth(text, font) {
  measuring.font = font;
  return measuring.measureText(text).width;
}

// --- colour and numbers -----------------------------------------------------------------------------------------

// CIVIDIS is a string of 256 colours, six hexadecimal digits each.
const CIVIDIS_BYTES = Uint8Array.from({ length: 768 }, (_, k) => parseInt(CIVIDIS.slice(2 * k, 2 * k + 2), 16));

// Position (0 to 255) of a value in the colour scale that runs from 0 to `top`.
function colourIndex(value, top) {
  return Math.max(0, Math.min(255, Math.floor((value / top) * 256)));
}

// The same colours as pixels of a canvas.
const CIVIDIS_PIXELS = new Uint32Array(
  Uint8Array.from({ length: 1024 }, (_, k) => (k % 4 < 3 ? CIVIDIS_BYTES[3 * (k >> 2) + (k % 4)] : 255)).buffer);

// Paint a matrix, one canvas pixel per value, the colours from `low` to `top`; CSS makes the pixels larger.
function paintMatrix(canvas, values, rows, columns, top, low = 0) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const span = top - low || 1;
  for (let k = 0; k < pixels.length; k++) pixels[k] = CIVIDIS_PIXELS[colourIndex(values[k] - low, span)];
  context.putImageData(image, 0, 0);
}

// All colours from left to right, for a legend.
function colourRamp(className) {
  const ramp = element("canvas", { class: className, "aria-hidden": "true" });
  paintMatrix(ramp, Float32Array.from({ length: 256 }, (_, k) => k), 1, 256, 256);
  return ramp;
}

// A vector as bars above and below a line, as wide as its place allows: show(values, largest), point(index, count).
function strip(className, height) {
  const middle = height / 2;
  const svg = shape("svg", {
    class: `is-strip ${className}`, viewBox: `0 0 100 ${height}`, height, preserveAspectRatio: "none", "aria-hidden": "true",
  });
  const marker = shape("rect", { class: "is-strip-marker", y: 0, height, width: 0 });
  const bars = shape("path", { class: "is-strip-bars" });
  svg.append(marker, bars, shape("path", { class: "is-strip-zero", d: `M0,${middle} H100` }));
  return {
    svg,
    show(values, largest) {
      const step = 100 / values.length;
      const bar = (value, k) => `M${(k * step + step * 0.15).toFixed(3)},${middle}h${(step * 0.7).toFixed(3)}`
        + `v${((-value / largest) * (middle - 1)).toFixed(2)}h${(-step * 0.7).toFixed(3)}z`;
      bars.setAttribute("d", Array.from(values, bar).join(""));
    },
    point(k, count) {
      marker.setAttribute("x", (100 * k) / count);
      marker.setAttribute("width", 100 / count);
    },
  };
}

// Four decimals, so that what is read off is right to 1e-4; two significant digits for what would look like zero.
function readable(value) {
  return value === 0 || value >= 0.00005 ? value.toFixed(4) : value.toPrecision(2);
}

// The same in a narrow column: what would look like zero gets an exponent.
function narrow(value) {
  return value === 0 || value >= 0.00005 ? value.toFixed(4) : value.toExponential(1);
}

// Where the largest value is, of those in an array or of `count` that a function gives; the first of equal ones.
function strongestOf(values) {
  return strongest(values.length, (k) => values[k]);
}

function strongest(count, valueAt) {
  let best = 0;
  for (let k = 1; k < count; k++) if (valueAt(k) > valueAt(best)) best = k;
  return best;
}

// Decimals, with a minus as wide as a plus, and none before a zero.
function signed(value, digits = 2) {
  const text = value.toFixed(digits);
  return Number(text) ? text.replace("-", "−") : text.replace("-", "");
}

// Numbers as they travel: float32 bytes from a kernel; in an exported page base64, as {float32} or as
// {peak, uint16}, where 65535 stands for `peak`.
function numbers(sent) {
  if (sent instanceof DataView) {
    return new Float32Array(sent.buffer.slice(sent.byteOffset, sent.byteOffset + sent.byteLength));
  }
  const text = atob(sent.uint16 || sent.float32);
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  if (sent.float32) return new Float32Array(bytes.buffer);
  const steps = new Uint16Array(bytes.buffer);
  const values = new Float32Array(steps.length);
  for (let k = 0; k < steps.length; k++) values[k] = (steps[k] / 65535) * sent.peak; // several times faster than a map
  return values;
}

// --- keys and pointer -------------------------------------------------------------------------------------------

// Call the function bound to the key. A key that is answered goes no further: neither the notebook's shortcuts nor
// a slide show may act on it too.
function answerKeys(node, bindings, signal) {
  keepFromNotebook(node);
  node.addEventListener("keydown", (event) => {
    const answer = bindings[event.key];
    if (!answer || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    answer();
  }, { signal });
}

// JupyterLab looks for this attribute on the element that has the focus.
function keepFromNotebook(node) {
  node.dataset.lmSuppressShortcuts = "true";
}

// Call answer(event) when the pointer moves over the node or presses on it. Scrolling the page under a resting
// pointer also fires pointermove, without movement; that is not a choice.
function answerPointer(node, answer, signal) {
  node.addEventListener("pointerdown", answer, { signal });
  node.addEventListener("pointermove", (event) => {
    if (event.movementX || event.movementY) answer(event);
  }, { signal });
}

// --- a widget ---------------------------------------------------------------------------------------------------

// What a widget can extend: an element of its own, listeners that end with it, keys that stay in it. A subclass
// has build() and show(), or its own update(state), which keeps `state` as this.state.
class CourseWidget {
  constructor(place, state, tell, name, ask) {
    Object.assign(this, { tell, ask, closing: new AbortController() });
    this.root = element("div", { class: `course-widget ${name} mathjax_ignore tex2jax_ignore`, role: "group", tabindex: -1 });
    place.append(this.root);
    const { signal } = this.closing;
    this.root.addEventListener("focusin", (event) => keepFromNotebook(event.target), { signal });
    answerKeys(this.root, { Escape: () => document.activeElement.blur() }, signal); // back to notebook or slides
    // a press anywhere on the widget gives it the keys, which would otherwise turn the slide
    this.root.addEventListener("mousedown", (event) => {
      if (event.target.closest("button, input, select, label, a, [tabindex]") !== this.root) return;
      event.preventDefault();
      (this.stage || this.root).focus({ preventScroll: true });
    }, { signal });
    // other keys are for the widget alone, except those of a presenter's remote control; reveal.js hears no key while
    // an input has the focus
    this.root.addEventListener("keydown", (event) => {
      if (!["PageUp", "PageDown"].includes(event.key)) event.stopPropagation();
      else if (event.target.matches("input")) event.target.blur();
    }, { signal });
    this.update(state);
  }

  // Another content or title: everything anew.
  update(state) {
    const before = this.state || {};
    this.state = state;
    if (before._content !== state._content || before.title !== state.title) this.rebuild();
    this.show();
  }

  // The kernel may send another content while the reader is here: what had the focus has it again.
  rebuild() {
    const stops = () => [...this.root.querySelectorAll("[tabindex], button, input, select")];
    const place = stops().indexOf(document.activeElement);
    this.build();
    if (place >= 0) stops()[place]?.focus({ preventScroll: true });
  }

  destroy() {
    this.closing.abort();
    this.root.remove();
  }

  // The reader chose something: draw it, and tell the kernel if there is one.
  choose(changes) {
    this.update({ ...this.state, ...changes });
    this.tell(changes);
  }

  // A button that shows a sign; `label` says in words what it does.
  button(sign, label, answer) {
    const button = element("button", { type: "button", text: sign, title: label, "aria-label": label });
    button.addEventListener("click", answer, { signal: this.closing.signal });
    return button;
  }

  // A slider between its name and its value; `range` are its attributes.
  slider(className, name, range, answer) {
    const input = element("input", { type: "range", ...range });
    input.addEventListener("input", () => answer(Number(input.value)), { signal: this.closing.signal });
    const [label, value] = [element("span", { text: name }), element("span", { class: "is-value" })];
    return { input, label, value, node: element("label", { class: className }, [label, input, value]) };
  }
}

// --- the two hosts ----------------------------------------------------------------------------------------------

// In a running notebook: an anywidget whose traits are `names`.
function liveHost(Widget, names) {
  return {
    render({ model, el }) {
      const read = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
      let frame = 0;
      const widget = new Widget(el, read(), (changes) => {
        for (const [name, value] of Object.entries(changes)) model.set(name, value);
        cancelAnimationFrame(frame); // a fast pointer sends one message a frame
        frame = requestAnimationFrame(() => model.save_changes());
      }, (question) => model.send(question));
      const refresh = () => widget.update(read());
      const answer = (content, buffers) => widget.answer?.(content, buffers);
      model.on("change", refresh);
      model.on("msg:custom", answer);
      return () => {
        model.off("change", refresh);
        model.off("msg:custom", answer);
        widget.destroy();
      };
    },
  };
}

// In an exported page: take the place of the still picture. The same view may stand on a page more than once, so
// every copy that is still a picture is woken.
function exportHost(Widget, key, state) {
  for (const still of document.querySelectorAll(`[data-still="${key}"]`)) {
    const place = element("div");
    still.replaceWith(place);
    new Widget(place, state, () => {});
  }
}

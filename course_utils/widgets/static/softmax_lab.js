// The softmax lab: scores that can be moved, and what a softmax makes of them.
//
// State: {scores, labels, temperature, width, scaled, title}.

const STEP = 0.1; // a score moves by this much
const LEAST_RANGE = 4; // scores from -4 to 4, or as far as they reach

// What goes into the softmax, what comes out, the entropy in bits, and the Frobenius norm of the Jacobian
// diag(p) - p p^T. The same as in softmax_lab.py.
function soften({ scores, temperature, width, scaled }) {
  const inputs = scores.map((score) => score * (scaled ? 1 : Math.sqrt(width)) / temperature);
  const top = Math.max(...inputs);
  const powers = inputs.map((input) => Math.exp(input - top));
  const weights = powers.map((power) => power / total(powers));
  const entropy = Math.abs(total(weights.map((p) => (p ? p * Math.log2(p) : 0))));
  const squares = weights.map((p, i) => {
    const products = weights.map((q, j) => (i === j ? 0 : p * q));
    return total(products) ** 2 + total(products.map((product) => product ** 2)); // p (1 - p), without the difference
  });
  return { inputs, weights, entropy, gradient: Math.sqrt(total(squares)) };
}

function total(values) {
  return values.reduce((sum, value) => sum + value, 0);
}

class SoftmaxLab extends CourseWidget {
  constructor(place, state, tell) {
    super(place, state, tell, "softmax-lab");
  }

  update(state) {
    const before = this.state || {};
    this.state = state;
    if (before.labels !== state.labels || before.title !== state.title) this.build();
    this.show();
  }

  build() {
    const { labels, title } = this.state;
    const slider = (name, range, answer) => this.slider("sl-slider", name, { ...range, "aria-label": name }, answer);
    this.widthSlider = slider("width d", { min: 0, max: 10 }, (power) => this.choose({ width: 2 ** power }));
    this.temperatureSlider = slider("temperature", { min: -1, max: 1, step: 0.1 }, (power) => {
      this.choose({ temperature: Number((10 ** power).toPrecision(2)) });
    });
    this.box = element("input", { type: "checkbox" });
    this.box.addEventListener("change", () => this.choose({ scaled: this.box.checked }), { signal: this.closing.signal });
    this.formula = element("div", { class: "sl-formula" });
    this.rows = labels.map((label, k) => this.row(label, k));
    this.entropy = meter("entropy");
    this.gradient = meter("gradient");

    const heads = ["key", "score: drag, or ← →", "", "into the softmax", "weight", ""];
    this.root.setAttribute("aria-label", title || "Softmax lab");
    this.root.classList.toggle("is-roomy", labels.length <= 6);
    this.root.replaceChildren(
      ...(title ? [element("div", { class: "is-title", text: title })] : []),
      element("div", { class: "sl-controls" }, [
        this.widthSlider.node,
        element("label", { class: "sl-scaled" }, [this.box, " divide by √d"]),
        this.temperatureSlider.node,
      ]),
      this.formula,
      element("div", { class: "sl-scroll" }, [element("div", { class: "sl-table" }, [
        ...heads.map((text) => element("span", { class: "sl-head", text })),
        ...this.rows.flatMap(({ nodes }) => nodes),
      ])]),
      element("div", { class: "sl-meters", role: "status" }, [this.entropy.node, this.gradient.node]),
    );
  }

  // One key: its name, its score as a bar under a slider, what goes into the softmax, and its weight as a bar.
  row(label, k) {
    const slider = element("input", { type: "range", step: "any", "aria-label": `score of ${visible(label)}` });
    const move = (by) => () => this.setScore(k, this.state.scores[k] + by);
    slider.addEventListener("input", () => this.setScore(k, Number(slider.value)), { signal: this.closing.signal });
    answerKeys(slider, {
      ArrowRight: move(STEP), ArrowUp: move(STEP), ArrowLeft: move(-STEP), ArrowDown: move(-STEP),
    }, this.closing.signal);
    const [score, input, weight] = ["sl-score", "sl-input", "sl-weight"].map((name) => element("span", { class: name }));
    const [scoreBar, weightBar] = [element("i"), element("i")];
    const nodes = [
      tokenElement(label, "sl-key"), element("span", { class: "sl-track" }, [element("span", { class: "sl-lane" }, [scoreBar]), slider]), score, input,
      element("span", { class: "sl-bar" }, [weightBar]), weight,
    ];
    return { nodes, slider, score, input, weight, scoreBar, weightBar };
  }

  setScore(k, value) {
    const rounded = Math.round(Math.max(-this.range, Math.min(this.range, value)) / STEP) * STEP;
    this.choose({ scores: this.state.scores.map((score, j) => (j === k ? Number(rounded.toFixed(1)) : score)) });
  }

  show() {
    const { scores, temperature, width, scaled } = this.state;
    const { inputs, weights, entropy, gradient } = soften(this.state);
    const furthest = Math.max(...scores.map(Math.abs));
    // the range grows with the scores and never shrinks, so that a bar stays under the pointer
    this.range = Math.max(this.range || LEAST_RANGE, 2 ** Math.ceil(Math.log2(furthest)));

    this.widthSlider.input.value = Math.log2(width);
    this.widthSlider.input.setAttribute("aria-valuetext", width);
    this.widthSlider.value.textContent = width;
    this.temperatureSlider.input.value = Math.log10(temperature);
    this.temperatureSlider.input.setAttribute("aria-valuetext", temperature);
    this.temperatureSlider.value.textContent = temperature;
    this.box.checked = scaled;
    const factor = (scaled ? 1 : Math.sqrt(width)) / temperature;
    this.formula.textContent = `Into the softmax goes score × √${width}${scaled ? ` ÷ √${width}` : ""} ÷ ${temperature}`
      + ` = score × ${Number(factor.toPrecision(3))}.`;

    this.rows.forEach((row, k) => {
      const { slider, scoreBar } = row;
      Object.assign(slider, { min: -this.range, max: this.range, value: scores[k] });
      slider.setAttribute("aria-valuetext", `${signed(scores[k])}, weight ${narrow(weights[k])}`);
      row.score.textContent = signed(scores[k]);
      row.input.textContent = signed(inputs[k]);
      row.weight.textContent = narrow(weights[k]);
      const share = (50 * scores[k]) / this.range;
      scoreBar.style.cssText = `left:${50 + Math.min(0, share)}%; width:${Math.abs(share)}%`;
      row.weightBar.style.width = `${100 * weights[k]}%`;
    });
    const most = Math.log2(scores.length);
    this.entropy.set(most ? entropy / most : 0, `${entropy.toFixed(2)} bits of ${most.toFixed(2)}`,
      `as if ${(2 ** entropy).toFixed(1)} of ${scores.length} keys shared it evenly`);
    this.gradient.set(gradient / 0.5, narrow(gradient), "norm of the softmax's Jacobian; at most 0.5");
  }
}

// A number with its name, a bar of its share, and what it means.
function meter(name) {
  const bar = element("i");
  const [number, meaning] = [element("b"), element("span")];
  const node = element("div", { class: `sl-meter sl-${name}` }, [
    element("div", {}, [`${name} `, number]), element("div", { class: "sl-bar" }, [bar]), meaning,
  ]);
  const set = (share, value, says) => {
    bar.style.width = `${100 * share}%`;
    number.textContent = value;
    meaning.textContent = says;
  };
  return { node, set };
}

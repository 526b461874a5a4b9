// The quiz: one question at a time, an explanation for every choice.
//
// State: {_questions: [[asks, [[text, explanation, right], …]], …], question, title}. What was chosen is in the
// radio buttons and nowhere else.

class Quiz extends CourseWidget {
  constructor(place, state, tell) {
    super(place, state, tell, "quiz");
    const choose = (number) => {
      const radio = this.forms[this.state.question].querySelectorAll("input")[number - 1];
      radio?.focus();
      radio?.click();
    };
    answerKeys(this.root, {
      ArrowLeft: () => this.turn(-1),
      ArrowRight: () => this.turn(1),
      ...Object.fromEntries(Array.from({ length: 9 }, (_, k) => [k + 1, () => choose(k + 1)])),
    }, this.closing.signal);
  }

  update(state) {
    const before = this.state || {};
    this.state = state;
    if (before._questions !== state._questions || before.title !== state.title) this.build();
    this.show(state.question);
  }

  build() {
    const { _questions: questions, title } = this.state;
    const most = Math.max(...questions.map(([, choices]) => choices.length));
    this.forms = questions.map(([asks, choices]) => questionForm(asks, choices, this.closing.signal));
    this.where = element("span", { class: "qz-where", role: "status" });
    this.back = this.button("‹", "previous question", () => this.turn(-1));
    this.next = this.button("›", "next question", () => this.turn(1));
    const turning = questions.length > 1 ? [this.back, this.where, this.next] : [];
    const hint = `${questions.length > 1 ? "← → question · " : ""}1–${most} or ↑ ↓ choose · Esc leaves`;
    this.root.setAttribute("aria-label", title || "Quiz");
    this.root.replaceChildren(
      element("div", { class: "qz-bar" }, [
        ...(title ? [element("span", { class: "is-title", text: title })] : []),
        element("span", { class: "qz-turn" }, turning),
      ]),
      element("div", { class: "qz-questions" }, this.forms),
      element("div", { class: "is-hint", text: hint }),
    );
  }

  // All questions lie on top of each other, so that the quiz has one size; all but one are hidden.
  show(question) {
    this.forms.forEach((form, k) => form.classList.toggle("is-shown", k === question));
    this.where.textContent = `question ${question + 1} of ${this.forms.length}`;
    this.back.setAttribute("aria-disabled", question === 0);
    this.next.setAttribute("aria-disabled", question === this.forms.length - 1);
  }

  turn(by) {
    const question = this.state.question + by;
    if (!this.forms[question]) return;
    const inside = this.forms[this.state.question].contains(document.activeElement);
    this.choose({ question });
    const form = this.forms[question];
    if (inside) (form.querySelector(":checked") || form.querySelector("input")).focus(); // what is hidden loses it
  }
}

// One question. A form of its own keeps its radio buttons apart from all others on the page.
function questionForm(asks, choices, signal) {
  const whys = choices.map(([, explanation, right]) => element("div", { class: `qz-why ${kind(right)}` },
    [mark(right), " ", ...withCode(explanation)]));
  const labels = choices.map(([text, , right], k) => element("label", { class: `qz-choice ${kind(right)}` }, [
    element("input", { type: "radio", name: "choice", value: k }),
    element("span", { class: "qz-number", text: k + 1, "aria-hidden": "true" }),
    element("span", { class: "qz-text" }, withCode(text)),
    mark(right),
  ]));
  const form = element("form", { class: "qz-question" }, [
    element("fieldset", { role: "radiogroup" }, [element("legend", {}, withCode(asks)), ...labels]),
    element("div", { class: "qz-whys", role: "status" }, whys),
  ]);
  form.addEventListener("change", (event) => {
    const chosen = Number(event.target.value);
    event.target.focus(); // a click on the words does not give it the keys everywhere
    for (const list of [labels, whys]) list.forEach((node, k) => node.classList.toggle("is-chosen", k === chosen));
  }, { signal });
  form.addEventListener("submit", (event) => event.preventDefault(), { signal }); // Enter must not leave the page
  return form;
}

function kind(right) {
  return right ? "is-right" : "is-wrong";
}

function mark(right) {
  const [sign, word] = right ? ["✓", "right"] : ["✗", "wrong"];
  return element("span", { class: "qz-mark", role: "img", "aria-label": word, text: sign });
}

// A text as nodes: `code` in backticks as an element, everything else as text.
function withCode(text) {
  return text.split(/`([^`]+)`/).map((part, k) => (k % 2 ? element("code", { text: part }) : part));
}

// Ask: a text that can be typed over, and what a model answers, as bars.
//
// State: {_prepared: replies to the texts of a list, _reply: {text, answers: [[label, probability], …], others, error},
// text, label, title}. Only Python can answer a new text. Where there is no kernel, the prepared replies can be chosen.

const PAUSE = 300; // milliseconds without a key, after which the text is sent

class Ask extends CourseWidget {
  constructor(place, state, tell, ask) {
    super(place, state, tell, "ask", ask);
  }

  update(state) {
    const before = this.state || {};
    this.state = state;
    const changed = (name) => before[name] !== state[name];
    const anew = changed("_prepared") || changed("label") || changed("title");
    if (anew) this.build();
    if (anew || changed("text")) this.showText();
    this.show();
  }

  destroy() {
    clearTimeout(this.timer);
    super.destroy();
  }

  build() {
    const { _prepared: prepared, label, title } = this.state;
    const live = Boolean(this.ask); // only a running notebook can be asked
    this.field = element("input", {
      type: "text", class: "ak-text", dir: "auto", spellcheck: "false", autocomplete: "off", readonly: live ? null : "",
    });
    this.field.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.send(this.field.value), PAUSE);
      this.show();
    }, { signal: this.closing.signal });
    answerKeys(this.field, { Enter: () => this.send(this.field.value) }, this.closing.signal);
    this.choices = prepared.map(({ text }) => {
      const button = this.button("", text, () => this.send(text));
      button.removeAttribute("aria-label"); // its text says it
      button.append(element("bdi", { text: visible(text) }));
      return button;
    });
    this.said = element("div", { class: "ak-said", role: "status" });
    this.bars = element("ol", { class: "ak-bars", "aria-label": "answers" });

    const here = prepared.length ? "Choose a text. Typing another one" : "Typing";
    this.shown = null;
    this.root.setAttribute("aria-label", title || "Ask a model");
    this.root.replaceChildren(
      ...(title ? [element("div", { class: "is-title", text: title })] : []),
      element("label", { class: "ak-field" }, [element("span", { text: label }), this.field]),
      ...(prepared.length ? [element("ul", { class: "ak-prepared", "aria-label": "texts to choose from" },
        this.choices.map((button) => element("li", {}, [button])))] : []),
      this.said,
      this.bars,
      element("div", { class: "is-hint", text: live ? "type · Enter, or a pause, asks · Esc leaves"
        : `${here} needs the running notebook.` }),
    );
  }

  // Another text: what was typed and not sent is dropped.
  showText() {
    const { text } = this.state;
    clearTimeout(this.timer);
    this.timer = 0;
    this.field.value = text.replace(/[\r\n]+/g, " "); // the field has one line
    this.choices.forEach((button, k) => button.setAttribute("aria-pressed", this.state._prepared[k].text === text));
  }

  send(text) {
    clearTimeout(this.timer);
    this.timer = 0;
    this.choose({ text });
    this.showText(); // also if it is the text from before, and another was being typed
  }

  // The answers to what stands in the field. Until they come, those of an earlier text stay, pale; a reply to an
  // earlier text changes nothing.
  show() {
    const { _reply: last, _prepared: prepared, text } = this.state;
    const reply = [last, ...(this.ask ? [] : prepared)].find((each) => each.text === text);
    const waiting = Boolean(this.timer) || !reply;
    this.root.classList.toggle("is-waiting", waiting);
    this.bars.setAttribute("aria-busy", waiting);
    if (this.timer) return;
    this.said.classList.toggle("is-asking", !reply);
    this.said.classList.toggle("is-error", Boolean(reply?.error));
    if (!reply) this.said.textContent = "asking …";
    else if (reply !== this.shown) this.showReply(reply);
    this.shown = reply;
  }

  showReply({ answers, others, error }) {
    const [first] = answers;
    const most = first ? ["most probable: ", tokenElement(first[0], "ak-first"), ` ${readable(first[1])}`] : ["no answer"];
    this.said.replaceChildren(...(error ? [error] : most));
    const rest = others ? [bar("all others", others, "is-others")] : [];
    this.bars.replaceChildren(...answers.map(([label, probability]) => bar(label, probability, "")), ...rest);
    // the room for bars grows and does not shrink, so that the page below stays where it is
    this.most = Math.max(this.most || 0, this.bars.children.length);
    this.bars.style.minHeight = `calc(${this.most} * var(--row))`;
  }
}

function bar(label, probability, className) {
  const share = element("i");
  share.style.width = `${100 * probability}%`;
  return element("li", { class: className }, [
    tokenElement(label, "ak-label"), element("span", { class: "ak-bar" }, [share]),
    element("span", { class: "ak-share", text: readable(probability) }),
  ]);
}

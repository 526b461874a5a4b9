import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { cases, sayTheSame } from "./translations.js";
import { scopeOf } from "./widgets.js";

const scope = scopeOf("two_translators");
const [readWeights, RecurrentModel, shared] = scope("[readWeights, RecurrentModel, shared]");
const { weights } = readWeights(new Uint8Array(readFileSync(process.env.TRANSLATOR)));
const model = new RecurrentModel(weights, process.env.NAME);

test("logits are PyTorch's to 1e-3, and the words are the same", () => sayTheSame(model));

test("with attention, every word looked at every state, and its weights sum to one", () => {
  const { ids, state } = model.translate(cases[0].source, 120);
  const columns = cases[0].source.length + 1;
  assert.equal(state.weights.length, process.env.NAME === "with" ? ids.length : 0);
  for (const row of state.weights) {
    assert.equal(row.length, columns);
    assert.ok(Math.abs(row.reduce((sum, share) => sum + share, 0) - 1) < 1e-6);
  }
});

test("shared words are found in their order", () => {
  const found = (a, b) => Array.from(shared(a.split(" "), b.split(" ")), ([i, j]) => `${i}${j}`).join(" ");
  assert.equal(found("a b c", "a b c"), "00 11 22");
  assert.equal(found("a x c d", "b a c"), "01 22");
  assert.equal(found("a b", "b a").split(" ").length, 1);
  assert.equal(found("a", "b"), "");
});

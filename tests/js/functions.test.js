import assert from "node:assert/strict";
import test from "node:test";

import { scopeOf } from "./widgets.js";

const same = (actual, expected) => assert.deepEqual(JSON.parse(JSON.stringify(actual)), expected); // from another scope
const base64 = (array) => Buffer.from(array.buffer).toString("base64");

test("weights of 16 bits are steps up to the largest", () => {
  const numbers = scopeOf("attention_view")("numbers");
  const sent = { peak: 0.5, uint16: base64(new Uint16Array([0, 65535, 32768])) };
  same([...numbers(sent)], [0, 0.5, Math.fround((32768 / 65535) * 0.5)]);
});

test("float32 travels as it is, from a page and from a kernel", () => {
  const numbers = scopeOf("step_through")("numbers");
  same([...numbers({ float32: base64(new Float32Array([-1.5, 1e-20])) })], [-1.5, Math.fround(1e-20)]);
});

test("the colour scale runs from 0 to its top, and goes no further", () => {
  const colourIndex = scopeOf("attention_view")("colourIndex");
  same([0, 0.5, 1, 2, -1].map((value) => colourIndex(value, 1)), [0, 128, 255, 255, 0]);
  same(colourIndex(0.1, 0.2), 128);
});

test("numbers are written for readers", () => {
  const [readable, narrow, signed, percent] = scopeOf("decoding_tree")("[readable, narrow, signed, percent]");
  same([0, 0.25, 0.00005, 0.000012].map(readable), ["0.0000", "0.2500", "0.0001", "0.000012"]);
  same(narrow(0.000012), "1.2e-5");
  same([-1.934, -0.001, 0, 2].map((value) => signed(value)), ["−1.93", "0.00", "0.00", "2.00"]);
  same([1, 0.625, 0.009, 0].map(percent), ["100%", "63%", "<1%", "0%"]);
});

test("the first of the largest is the strongest", () => {
  same(scopeOf("attention_view")("[strongestOf([1, 3, 3, 2]), strongestOf([0])]"), [1, 0]);
});

test("an empty or blank token is seen", () => {
  same(scopeOf("attention_view")('["", " ", "\\n\\t", " a"].map(visible)'), ["∅", "␣", "⏎⇥", " a"]);
});

test("a tree is as large as it can be, and a node holds its numbers", () => {
  const treeLayout = scopeOf("decoding_tree")("treeLayout");
  const widthOf = (text, font) => text.length * parseFloat(font.match(/(\d+)px/)[1]) * 0.6;
  const labels = [["<bos>", "", ""], ["européenne".repeat(5), "100%", "−10.31"]];
  const sizes = [[4, 4], [10, 6], [30, 12]].map(([columns, rows]) => treeLayout(labels, columns, rows, widthOf));
  same(sizes.map(({ type }) => type), [16, 13, 13]);
  for (const { type, width, pitch, height, pitchY } of sizes) {
    assert.ok(width >= widthOf("100% −10.31", `${type}px`) + 8);
    assert.ok(pitch >= width + 10);
    assert.ok(height >= 1.2 * (2 * type + 3) && pitchY > height);
  }
});

test("a token is as large as its row, up to a size", () => {
  const [pitchFor, typeFor] = scopeOf("attention_view")("[pitchFor, typeFor]");
  same([4, 12, 30, 500].map((count) => pitchFor(count, 285, 40)), [40, 23, 13, 1]);
  same([40, 23, 13, 1].map(typeFor), [20, 19, 13, 13]);
});

test("WordPiece takes the longest piece, or gives up the word", () => {
  const [cutWord, splitWords, unpacked] = scopeOf("tokenizer_view")("[cutWord, splitWords, unpacked]");
  const pieces = unpacked("0##able 2watch 0un");
  same([...pieces], ["##able", "##watch", "un"]);
  same(cutWord("unwatchable", pieces).map(({ piece }) => piece), ["un", "##watch", "##able"]);
  same(cutWord("unwatched", pieces), [{ piece: "[UNK]", rest: "##ed", tried: ["##ed", "##e"] }]);
  same(splitWords("Ça va? [MASK]\u00a0中", true), ["ca", "va", "?", "[MASK]", "中"]);
});

test("BPE merges the pair that was learnt first, at every place", () => {
  const segment = scopeOf("tokenizer_view")("segment");
  const { words, used } = segment("aab ab", new Map([["a b</w>", 0], ["a ab</w>", 1]]));
  same(words.map((word) => word.map(({ text }) => text)), [["aab</w>"], ["ab</w>"]]);
  same(used, [{ rank: 0, places: 2 }, { rank: 1, places: 1 }]);
});

test("a softmax sums to one, also of large scores", () => {
  const soften = scopeOf("softmax_lab")("soften");
  const { weights } = soften({ scores: [1000, 999], temperature: 1, width: 1, scaled: false });
  assert.ok(Math.abs(weights[0] + weights[1] - 1) < 1e-12 && Math.abs(weights[0] - 1 / (1 + Math.exp(-1))) < 1e-12);
});

test("a causal mask lets nobody look ahead", () => {
  const maskOf = scopeOf("mask_explorer")("maskOf");
  const mask = maskOf({ pattern: "causal", length: 3, window: 1, stride: 1, causal: true });
  same(Array.from(mask, (row) => Array.from(row, Number)), [[1, 0, 0], [1, 1, 0], [1, 1, 1]]);
});

import assert from "node:assert/strict";
import test from "node:test";

import js from "@eslint/js";
import { Linter } from "eslint";

import { widgets } from "./widgets.js";

const PAGE = ["AbortController", "HEADINGS", "KeyboardEvent", "MathJax", "MouseEvent", "MutationObserver", "ResizeObserver", "Reveal", "RevealNotes", "TextDecoder",
  "addEventListener", "atob", "cancelAnimationFrame", "clearTimeout", "document", "getComputedStyle", "innerHeight",
  "innerWidth", "location", "matchMedia", "navigator", "requestAnimationFrame", "setTimeout", "window"];
const config = {
  languageOptions: {
    ecmaVersion: 2023, sourceType: "script", globals: Object.fromEntries(PAGE.map((name) => [name, "readonly"])),
  },
  rules: {
    ...js.configs.recommended.rules,
    "no-unused-vars": ["error", { vars: "local", ignoreRestSiblings: true }], // a widget need not use all of the foundation
    "no-control-regex": "off", // blanks are what Python takes for them
    eqeqeq: "error", "no-var": "error", "prefer-const": "error",
  },
};

for (const [name, code] of Object.entries(widgets)) {
  test(`${name} is clean`, () => {
    const found = new Linter().verify(code, config)
      .map(({ line, message, ruleId }) => `${ruleId}: ${message} ${code.split("\n")[line - 1]}`);
    assert.deepEqual(found, []);
  });
}

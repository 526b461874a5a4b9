// Read by MathJax when it starts. Tokens in the attention view are data, never formulas.
window.MathJax = {
  tex: {
    inlineMath: [["$", "$"], ["\\(", "\\)"]],
    displayMath: [["$$", "$$"], ["\\[", "\\]"]],
    processEscapes: true,
    tags: "ams",
  },
  svg: {fontCache: "local"},
  options: {
    enableMenu: false,
    ignoreHtmlClass: "course-widget",
    skipHtmlTags: ["script", "noscript", "style", "textarea", "pre", "code"],
  },
};

// Puts three lists above each ledger on the page: rows that do not fit are hidden, lessons with rows that do fit open.
document.querySelectorAll(".claims-ledger:not([data-live])").forEach((ledger) => {
  const rows = [...ledger.querySelectorAll("tbody tr")];
  const count = document.createElement("output");
  const bar = document.createElement("div");
  bar.className = "claims-filter";
  const values = (row, name) => row.dataset[name].split("; ");
  const lists = ["lesson", "verdict", "kind"].map((name) => {
    const list = document.createElement("select");
    list.name = name;
    list.append(new Option("all", ""));
    [...new Set(rows.flatMap((row) => values(row, name)))].sort()
      .forEach((value) => list.append(new Option(value, value)));
    list.addEventListener("change", filter);
    const label = document.createElement("label");
    label.append(name, list);
    bar.append(label);
    return list;
  });
  function filter() {
    rows.forEach((row) => {
      row.hidden = !lists.every((list) => !list.value || values(row, list.name).includes(list.value));
    });
    ledger.querySelectorAll(".claims-lesson").forEach((lesson) => {
      lesson.hidden = !lesson.querySelector("tbody tr:not([hidden])");
      lesson.open = lists.some((list) => list.value);
    });
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} claims`;
  }
  bar.append(count);
  ledger.dataset.live = "";
  ledger.prepend(bar);
  filter();
});

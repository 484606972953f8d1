"use strict";
(() => {
  const find = document.getElementById("find");
  const shown = document.getElementById("shown");
  const rows = [...document.querySelectorAll("#rows tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const boxes = [...document.querySelectorAll('input[name="state"]')];

  function filter() {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const states = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    let count = 0;
    rows.forEach((row, index) => {
      const wanted = states.has(row.dataset.state) && words.every((word) => texts[index].includes(word));
      row.hidden = !wanted;
      count += wanted;
    });
    shown.textContent = `${count} of ${rows.length} shown`;
  }

  function openTarget() {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) {
      for (let part = target; part; part = part.parentElement.closest("details")) { part.open = true; }
      target.scrollIntoView();
      target.querySelector("summary").focus();
    }
  }

  find.addEventListener("input", filter);
  boxes.forEach((box) => box.addEventListener("change", filter));
  find.form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", openTarget);
  addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== find) {
      event.preventDefault();
      find.focus();
    }
  });
  addEventListener("beforeprint", () => {
    document.querySelectorAll(".finding").forEach((finding) => { finding.open = true; });
  });
  filter();
  openTarget();
})();

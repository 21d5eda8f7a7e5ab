const specs = JSON.parse(document.getElementById("plots").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
let shown = [];
async function show() {
  for (const view of shown) { view.finalize(); }
  shown = [];
  const look = getComputedStyle(document.documentElement);
  const text = look.getPropertyValue("--text").trim();
  const line = look.getPropertyValue("--line").trim();
  const words = { labelColor: text, titleColor: text };
  const config = {
    background: "transparent",
    font: "system-ui, sans-serif",
    axis: { ...words, gridColor: line, domainColor: line, tickColor: line },
    legend: words,
    view: { stroke: "transparent" },
  };
  const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true,
    config, tooltip: { theme: dark.matches ? "dark" : "light" } };
  for (const [index, spec] of specs.entries()) {
    shown.push(await vegaEmbed("#plot" + index, spec, options));
  }
  document.documentElement.dataset.drawn = String(shown.length);
}
dark.addEventListener("change", show);
show();

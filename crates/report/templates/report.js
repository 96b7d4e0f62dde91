"use strict";
// Draws each chart from the data beside it. Axes and texts take their colours from the style sheet,
// so the charts follow light, dark and paper as the rest of the page does.
(() => {
  const config = {
    displaylogo: false,
    responsive: true,
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
  };
  const plots = [...document.querySelectorAll("script[data-plot]")].map((data) => ({
    node: document.getElementById(data.dataset.plot),
    ...JSON.parse(data.textContent),
  }));

  // What the theme and the room decide, as flat keys that both a new plot and a relayout understand.
  function theme({ layout, node }, fontSize = 12) {
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    const inner = parseInt(node.style.height) - layout.margin.t - layout.margin.b;
    const themed = {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      "font.family": color("--sans"),
      "font.size": fontSize,
      // Below the axis title, however high the chart is.
      "legend.y": (-34 - 2 * fontSize) / inner,
      "font.color": color("--dim"),
      "hoverlabel.bgcolor": color("--raised"),
      "hoverlabel.bordercolor": color("--line"),
      "hoverlabel.font.color": color("--ink"),
      "modebar.color": color("--line"),
      "modebar.activecolor": color("--dim"),
      "modebar.bgcolor": "rgba(0,0,0,0)",
    };
    for (const axis of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
      themed[`${axis}.gridcolor`] = color("--grid");
      themed[`${axis}.linecolor`] = color("--line");
      themed[`${axis}.zerolinecolor`] = color("--line");
    }
    return themed;
  }

  function nested(flat, into) {
    for (const [path, value] of Object.entries(flat)) {
      const keys = path.split(".");
      const last = keys.pop();
      keys.reduce((object, key) => (object[key] ??= {}), into)[last] = value;
    }
    return into;
  }

  for (const plot of plots) {
    plot.layout = {
      margin: { l: 64, r: 16, t: 8, b: 48 },
      hovermode: "closest",
      legend: { orientation: "h", x: 0, yanchor: "top" },
      ...plot.layout,
    };
    Plotly.newPlot(plot.node, plot.data, nested(theme(plot), plot.layout), config);
  }

  const repaint = () => plots.forEach((plot) => Plotly.relayout(plot.node, theme(plot)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

  // Paper is narrower than a screen and always light, and it cannot unfold a table.
  const width = { third: 220, half: 335, whole: 685 };
  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("details:not([open])")];
    unfolded.forEach((details) => { details.open = true; });
    for (const plot of plots) {
      const node = plot.node;
      const share = Object.keys(width).find((name) => node.parentElement.classList.contains(name));
      node.dataset.height = node.style.height;
      const height = Math.round(parseInt(node.style.height) * 0.75);
      node.style.height = `${height}px`;
      Plotly.relayout(node, { ...theme(plot, 9), width: width[share], height });
    }
  });
  addEventListener("afterprint", () => {
    unfolded.forEach((details) => { details.open = false; });
    for (const plot of plots) {
      const node = plot.node;
      node.style.height = node.dataset.height;
      Plotly.relayout(node, { ...theme(plot), width: null, height: null, autosize: true });
    }
  });
})();

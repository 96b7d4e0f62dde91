"use strict";
// Draws the block map and plays its pictures. A picture is two digits a block: ninths of it that are
// in use, and that are stale.
(() => {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();

  for (const figure of document.querySelectorAll("figure.map")) {
    const [canvas, button, slider, output] = ["canvas", "button", "input", "output"].map((name) =>
      figure.querySelector(name),
    );
    const pictures = JSON.parse(figure.querySelector("script").textContent);
    if (!pictures.length) {
      continue;
    }
    const blocks = pictures[0][1].length / 2;
    slider.max = pictures.length - 1;
    let timer = 0;

    function draw() {
      const scale = devicePixelRatio || 1;
      const width = figure.clientWidth;
      const columns = Math.max(10, Math.floor(width / 18));
      const side = Math.floor(width / columns);
      const rows = Math.ceil(blocks / columns);
      canvas.width = columns * side * scale;
      canvas.height = rows * side * scale;
      canvas.style.width = `${columns * side}px`;
      canvas.style.height = `${rows * side}px`;
      const context = canvas.getContext("2d");
      context.scale(scale, scale);
      const [fills, cells] = pictures[slider.value];
      const colors = [color("--grid"), "#2f81d6", "#d9730d"];
      for (let block = 0; block < blocks; block += 1) {
        const x = (block % columns) * side;
        const y = Math.floor(block / columns) * side;
        const inner = side - 2;
        const used = (cells.charCodeAt(2 * block) - 48) / 9;
        const stale = Math.min((cells.charCodeAt(2 * block + 1) - 48) / 9, 1 - used);
        [[0, 1], [1 - used - stale, used + stale], [1 - used, used]].forEach(([from, part], index) => {
          context.fillStyle = colors[index === 0 ? 0 : 3 - index];
          context.fillRect(x, y + from * inner, inner, part * inner);
        });
      }
      output.textContent = `${fills.toFixed(2)} drive fills`;
    }

    function stop() {
      clearInterval(timer);
      timer = 0;
      button.textContent = "Play";
    }
    button.addEventListener("click", () => {
      if (timer) {
        stop();
        return;
      }
      if (Number(slider.value) === pictures.length - 1) {
        slider.value = 0;
      }
      button.textContent = "Pause";
      timer = setInterval(() => {
        slider.value = Number(slider.value) + 1;
        draw();
        if (Number(slider.value) === pictures.length - 1) {
          stop();
        }
      }, 120);
    });
    slider.addEventListener("input", draw);
    addEventListener("resize", draw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    draw();
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) {
      button.click();
    }
  }
})();

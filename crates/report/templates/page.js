"use strict";
// Values under the pointer, one cursor across all charts over time, a time window that all tables
// follow, sorting, filtering, copying. The page is complete without it.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  };

  // Numbers as the page writes them: the same rules as format.rs.
  const thousands = (n) => String(Math.abs(n)).replace(/\B(?=(\d{3})+$)/g, ",");
  // Rust rounds exact halves to even, toFixed upwards. Only a dyadic number can be an exact half.
  function fixed(value, digits) {
    const scaled = value * 10 ** digits;
    const half = Math.abs(scaled % 1) === 0.5 && Number.isInteger(value * 2 ** (digits + 1));
    return (half ? 2 * Math.round(scaled / 2) / 10 ** digits : value).toFixed(digits);
  }
  const trimmed = (text) => text.replace(/\.?0+$/, "");
  function threeDigits(value) {
    const size = Math.abs(value);
    if (size >= 100 || Number.isInteger(value)) {
      return (value < 0 ? "-" : "") + thousands(Math.round(size));
    }
    return trimmed(fixed(value, size >= 10 ? 1 : 2));
  }
  function scaled(value, base, limit, units) {
    let index = 0;
    while (Math.abs(value) >= limit && index + 1 < units.length) {
      value /= base;
      index += 1;
    }
    return `${threeDigits(value)} ${units[index]}`;
  }
  const percent = (share) => {
    const value = share * 100;
    const size = Math.abs(value);
    if (size >= 999.5) return `${threeDigits(value)} %`;
    return `${fixed(value, size >= 9.95 ? 0 : 1).replace(/\.0$/, "")} %`;
  };
  function small(value) {
    const places = Math.min(9, Math.max(2, 1 - Math.floor(Math.log10(Math.abs(value)))));
    return trimmed(fixed(value, places));
  }
  function written(value, measure) {
    switch (measure) {
      case "c": return value !== 0 && Math.abs(value) < 0.1 ? small(value) : threeDigits(value);
      case "r":
        return `${value !== 0 && Math.abs(value) < 1 ? fixed(value, 3) : threeDigits(value)}×`;
      case "q": return value >= 1000 ? `${threeDigits(value)}:1` : `${value.toFixed(2)}:1`;
      case "b":
        return scaled(Math.round(Math.max(value, 0)), 1024, 1024,
          ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
      case "f": return value === 0 ? "0" : scaled(value, 1e3, 999.5, ["B/s", "kB/s", "MB/s", "GB/s"]);
      case "t": return scaled(value, 1e3, 999.5, ["ns", "µs", "ms", "s"]);
      case "s": return percent(value);
      default: return threeDigits(value);
    }
  }
  const two = (n) => String(n).padStart(2, "0");
  const dated = (span) => data.began != null && span >= 10e9;
  function clock(ns, span) {
    if (!dated(span)) return elapsed(ns, span);
    const iso = new Date(Math.round((data.began[0] + ns / 1e6) / 1e3) * 1e3).toISOString();
    return span < 86400e9 ? iso.slice(11, 19) : iso.slice(5, 16).replace("T", " ");
  }
  function elapsed(ns, span) {
    const s = ns / 1e9;
    const whole = Math.round(s);
    if (span < 120e9) return `${Math.round(s * 1e3) / 1e3} s`;
    if (span < 7200e9) return `${Math.floor(whole / 60)}:${two(whole % 60)}`;
    const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
    if (span < 172800e9) return `${hours} h ${two(minutes)}`;
    return `${Math.floor(hours / 24)} d ${two(hours % 24)}:${two(minutes)}`;
  }

  // Axes: [scale, measure, low, high].
  const place = ([scale, , low, high], value) => scale === "log"
    ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  const valueAt = ([scale, , low, high], at) => scale === "log"
    ? low * (high / low) ** at : low + at * (high - low);
  function said([scale, measure, , high], value) {
    if (scale === "time") return clock(value, high);
    return Array.isArray(scale) ? scale[Math.round(value)] ?? "" : written(value, measure);
  }

  // Charts.
  const plots = all(".plot").map((node) => {
    const chart = data.charts[node.dataset.chart];
    let xs = [];
    for (const layer of chart.l) xs = layer.x = layer.x ?? xs;
    return { node, chart, time: "time" in node.dataset };
  });
  const timed = plots.filter((plot) => plot.time);
  const tip = make("div", { id: "tip", "aria-hidden": "true", hidden: "" });
  document.body.append(tip);

  const share = (plot, event) => {
    const box = plot.node.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  };
  function nearest(chart, xs, at) {
    let best = -1;
    let least = Infinity;
    xs.forEach((x, index) => {
      const distance = Math.abs(place(chart.x, x) - at);
      if (distance < least) [best, least] = [index, distance];
    });
    return best;
  }
  function lines({ chart, node }, at, event) {
    const found = [];
    let heading = said(chart.x, valueAt(chart.x, at));
    const box = node.querySelector("svg.shapes").getBoundingClientRect();
    const up = 1 - (event.clientY - box.top) / box.height;
    let closest = Infinity;
    for (const layer of chart.l) {
      if (layer.q) {
        const [x, y] = [valueAt(chart.x, at), valueAt(chart.y, up)];
        const cell = layer.q.find(([[x0, x1, y0, y1]]) => x >= x0 && x < x1
          && y >= Math.min(y0, y1) && y < Math.max(y0, y1));
        if (cell) found.push([layer, cell[1]]);
        continue;
      }
      const index = nearest(chart, layer.x, at);
      if (index < 0 || layer.y[index] == null) continue;
      const distance = Math.abs(place(chart.x, layer.x[index]) - at);
      if (distance < closest) {
        closest = distance;
        heading = said(chart.x, layer.x[index]);
        if (chart.x[0] === "time" && dated(chart.x[3])) {
          heading += ` ${data.began[1]} · ${elapsed(layer.x[index], chart.x[3])}`;
        }
      }
      let text = said(chart.y, layer.y[index]);
      const [low, high] = (layer.i ?? [[], []]).map((ends) => ends[index]);
      if (low != null && high != null) text += ` (${said(chart.y, low)} – ${said(chart.y, high)})`;
      if (layer.c?.includes(index)) text += " condemned";
      found.push([layer, text]);
    }
    return [heading, found];
  }
  function showTip(plot, at, event) {
    const [heading, found] = lines(plot, at, event);
    // Areas are stacked: the last layer is at the top.
    tip.replaceChildren(make("b", {}, heading), ...found.reverse().map(([layer, text]) =>
      make("span", { class: `k${layer.k}` }, make("i"), make("em", {}, layer.n), text)));
    tip.hidden = false;
    const right = event.clientX + 16 + tip.offsetWidth < innerWidth;
    tip.style.left = `${Math.max(4, event.clientX + (right ? 14 : -14 - tip.offsetWidth))}px`;
    tip.style.top = `${Math.max(4, Math.min(innerHeight - tip.offsetHeight - 4, event.clientY + 14))}px`;
  }
  function moveCursor(plot, at) {
    for (const other of plot.time ? timed : [plot]) {
      other.cursor ??= other.node.appendChild(make("div", { class: "cursor" }));
      other.cursor.hidden = false;
      other.cursor.style.left = `${at * 100}%`;
    }
  }
  function leave() {
    tip.hidden = true;
    for (const { cursor } of plots) if (cursor) cursor.hidden = true;
  }

  // The time window, in nanoseconds since the recording began, or null.
  const edges = data.edges ?? [];
  const span = timed.length ? timed[0].chart.x.slice(2) : [edges[0] ?? 0, edges.at(-1) ?? 0];
  let chosen = null;
  let shownWindow = "null";
  const readout = make("span", { id: "window", role: "status" });
  const clear = make("button", { type: "button", hidden: "", onclick: () => choose(null) },
    "Whole time");

  // The slices whose middle lies in the window, else the one at its middle; as timeline.rs.
  function slices(edges, [from, to]) {
    const count = Math.max(0, edges.length - 1);
    const middle = (slice) => (edges[slice] + edges[slice + 1]) / 2;
    let [first, end] = [0, 0];
    while (first < count && middle(first) < from) first += 1;
    while (end < count && middle(end) < to) end += 1;
    if (first < end || count === 0) return [first, end];
    first = 0;
    while (first < count - 1 && edges[first + 1] <= (from + to) / 2) first += 1;
    return [first, first + 1];
  }

  const spoken = ([from, to]) => `${clock(from, span[1])} – ${clock(to, span[1])}`
    + (dated(span[1]) ? ` ${data.began[1]}` : "");

  function choose(window, remember = true) {
    chosen = window && [Math.max(span[0], window[0]), Math.min(span[1], window[1])];
    // Tables show slices.
    if (chosen && edges.length > 1) chosen = slices(edges, chosen).map((edge) => edges[edge]);
    readout.textContent = chosen ? spoken(chosen) : "";
    clear.hidden = !chosen;
    root.classList.toggle("chosen", chosen !== null);
    for (const plot of timed) {
      plot.brush ??= plot.node.appendChild(make("div", { class: "brush" }));
      plot.brush.hidden = !chosen;
      if (chosen) {
        const [left, right] = chosen.map((at) => place(plot.chart.x, at) * 100);
        plot.brush.style.left = `${left}%`;
        plot.brush.style.width = `${right - left}%`;
      }
    }
    // A drag passes many points within one slice.
    if (String(chosen) !== shownWindow) for (const table of tables) table.follow(chosen);
    shownWindow = String(chosen);
    if (remember) address();
  }

  // Tables.
  const order = (a, b, words) => {
    if (a == null || b == null) return (a == null) - (b == null);
    return words ? String(a).localeCompare(String(b)) : b - a;
  };
  const text = (cell) => cell.firstChild?.nodeType === 3 ? cell.firstChild.data.trim()
    : cell.querySelector("s")?.textContent ?? cell.textContent.trim();

  class Table {
    constructor(node) {
      this.node = node;
      this.body = node.tBodies[0];
      Object.assign(this, { e: edges }, data.tables[node.dataset.table]);
      this.record = node.classList.contains("record");
      this.rows = this.record ? [] : [...this.body.rows].map((line, index) =>
        this.row(line, this.r[index]));
      this.whole = this.record ? [...this.body.rows] : this.rows;
      this.filter = "";
      this.sorted = null;
      if (!this.record) this.tools();
    }

    // The numbers of a row, and the text of cells that have none.
    row(line, numbers) {
      const values = numbers.map((value, index) => {
        if (Array.isArray(value)) return value[0];
        const cell = line.cells[index];
        return value == null && !cell.classList.contains("m") ? text(cell) : value;
      });
      return { line, values, numbers };
    }

    tools() {
      const button = (name, title, action) => make("button", { type: "button", title,
        onclick: (event) => copy(action(), event.currentTarget) }, name);
      const bar = make("div", { class: "toolbar" });
      if (this.rows.length > 12) {
        bar.append(make("input", { type: "search", placeholder: "filter rows",
          "aria-label": `Filter ${this.node.caption.textContent}`,
          oninput: (event) => { this.filter = event.target.value.toLowerCase(); this.draw(); } }));
      }
      bar.append(button("CSV", "Copy CSV", () => this.csv()),
        button("Markdown", "Copy Markdown", () => this.markdown()));
      this.node.closest(".block").prepend(bar);
      [...this.node.tHead.rows[0].cells].forEach((cell, index) => {
        cell.replaceChildren(make("button", { type: "button", onclick: () => this.sort(index) },
          ...cell.childNodes));
      });
    }

    sort(column) {
      const again = this.sorted?.column === column;
      this.sorted = { column, back: again && !this.sorted.back };
      const down = (this.c[column][1] !== "") !== this.sorted.back;
      for (const cell of this.node.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
      this.node.tHead.rows[0].cells[column].ariaSort = down ? "descending" : "ascending";
      this.draw();
    }

    draw() {
      let rows = [...this.rows];
      if (this.sorted) {
        const { column, back } = this.sorted;
        const words = rows.some((row) => typeof row.values[column] === "string");
        rows.sort((a, b) => {
          const [x, y] = [a.values[column], b.values[column]];
          return (back && x != null && y != null ? -1 : 1) * order(x, y, words);
        });
      }
      if (this.filter) {
        rows = rows.filter(({ line }) => line.textContent.toLowerCase().includes(this.filter));
      }
      this.body.replaceChildren(...rows.map((row) => row.line));
    }

    // Shows the rows of the slices of a window, or those of the whole time.
    follow(window) {
      if (!this.v) return undefined;
      let part = null;
      if (window) {
        const [first, end] = slices(this.e, window);
        part = [...this.v.keys()].slice(first, end).filter((slice) => this.v[slice]);
      }
      this.node.classList.toggle("windowed", part !== null);
      this.node.caption.dataset.window = part?.length
        ? spoken([this.e[part[0]], this.e[part.at(-1) + 1]]) : "not measured then";
      if (this.record) return this.turned(part && this.merged(part)[0]);
      this.rows = part ? this.merged(part).map((row) => this.line(row)) : this.whole;
      return this.draw();
    }

    // A table of one row, drawn as names and values.
    turned(row) {
      const cells = row ? [...this.line(row).line.cells] : [];
      this.body.replaceChildren(...this.whole.map((line, index) => !row ? line
        : make("tr", {}, line.cells[0].cloneNode(true),
          make("td", { class: cells[index].className }, ...cells[index].childNodes))));
    }

    // The rule of each column makes one value of those of the slices.
    merged(part) {
      const width = this.c.filter(([, , merge]) => merge !== "k").length + 1;
      const names = new Map();
      part.forEach((slice, index) => {
        const flat = this.v[slice];
        for (let at = 0; at < flat.length; at += width) {
          if (!names.has(flat[at])) names.set(flat[at], []);
          names.get(flat[at])[index] ??= flat.slice(at + 1, at + width);
        }
      });
      const rows = [...names].sort((a, b) => a[0] - b[0]).map(([name, parts]) => {
        const values = this.merge(name, part, parts);
        const rules = (this.j ?? []).filter(([slice, row]) =>
          row === name && part.includes(slice)).flatMap(([, , rules]) => rules);
        return { name, values, rules: [...new Set(rules)] };
      });
      if (this.s != null) {
        const words = this.c[this.s][2] === "k";
        const value = ({ values }) => (words || typeof values[this.s] === "number"
          ? values[this.s] : null);
        rows.sort((a, b) => words ? (value(a) > value(b)) - (value(a) < value(b))
          : order(value(a), value(b), false));
      }
      return rows;
    }

    merge(name, part, parts) {
      const names = this.d[name];
      const lengths = part.map((slice) => this.e[slice + 1] - this.e[slice]);
      let [key, at] = [0, 0];
      // Where the cells of a column are in the rows of slices.
      const places = this.c.map(([, , merge]) => (merge === "k" ? -1 : at++));
      const values = this.c.map(([, , merge], column) => {
        if (merge === "k") return names[key++];
        const of = (place) => lengths.map((_, slice) => parts[slice]?.[place]);
        const cells = of(places[column]);
        if (lengths.length === 1) return cellOf(cells[0]);
        if (this.q?.[column]) {
          const { part: whole, within, divisors } = this.q[column];
          const all = (cells) => combine(this.c[whole][2], cells, lengths);
          const unknown = merge === "h" ? 0 : "?";
          const values = [combine("m", cells, lengths), all(of(places[whole])), all(part
            .map((slice) => divisors[slice][within.map((at) => names[at]).join("\x1f")]
              ?? unknown))];
          return values.find((value, at) => value.missing || (at && value.missing === ""))
            ?? (values[2] ? values[1] / values[2] : { missing: "" });
        }
        const counted = this.c[merge]?.[2] === "s";
        const events = typeof merge === "number" ? { rates: of(places[merge]), counted } : null;
        return combine(merge, cells, lengths, events);
      });
      if (lengths.length === 1) return values;
      // Quotients and quantiles are made of what is merged.
      return values.map((value, column) => {
        const merge = this.c[column][2];
        if (!Array.isArray(merge)) return value;
        const made = merge.length > 1 ? values[merge[0]] / values[merge[1]]
          : this.quantile(name, part, merge[0]);
        return Number.isFinite(made) ? made : { missing: "" };
      });
    }

    // As base::table::Spread.
    quantile(name, part, share) {
      const counts = [];
      let greatest = 0;
      for (const slice of part) {
        const [most, ...spread] = this.h[slice][name] ?? [0];
        greatest = Math.max(greatest, most);
        let bucket = 0;
        for (const count of spread) {
          if (count >= 0) counts[bucket] = (counts[bucket] ?? 0) + count;
          bucket += count < 0 ? -count : 1;
        }
      }
      const all = counts.reduce((a, b) => a + b, 0);
      if (all < Math.max(1, Math.ceil(Math.log(0.025) / Math.log(share)))) return NaN;
      const rank = Math.max(1, Math.ceil(all * share));
      const lower = (bucket) => {
        const octave = Math.max(0, Math.floor(bucket / 16) - 1);
        return (bucket - octave * 16) * 2 ** octave;
      };
      let below = 0;
      const found = counts.findIndex((count = 0) => { below += count; return below >= rank; });
      const high = lower(found + 1);
      return Math.min(greatest, high - (high - lower(found)) * (below - rank) / counts[found]);
    }

    line({ name, values, rules }) {
      const line = make("tr");
      if (rules.length) {
        line.className = "condemned";
        line.title = `condemned: ${rules.join(", ")}`;
      }
      values.forEach((value, column) => {
        let isNumber = false;
        const measure = this.c[column][1] === "o" ? this.o[name] : this.c[column][1];
        const cell = make(column ? "td" : "th", column ? {} : { scope: "row" });
        let words = value;
        if (typeof value === "number") {
          words = written(value, measure);
          isNumber = true;
        } else if (value?.missing !== undefined) {
          words = value.missing || "–";
          cell.className = "m";
          cell.title = value.why ?? "not measured in this window";
        } else {
          words = value?.word ?? value;
          if (column) cell.className = "t";
        }
        cell.append(rules.length && isNumber && column ? make("s", {}, words) : words);
        if (!column) {
          for (const rule of rules) {
            cell.append(" ", make("span", { class: "badge fail" }, `condemned: ${rule}`));
          }
        }
        line.append(cell);
      });
      const plain = values.map((v) => (v?.missing !== undefined ? null : v?.word ?? v));
      return { line, values: plain, numbers: plain.map((v) => (typeof v === "number" ? v : null)) };
    }

    shown() {
      const lines = new Map(this.rows.map((row) => [row.line, row]));
      return [...this.body.rows].map((line) => lines.get(line));
    }

    csv() {
      const rows = this.shown();
      const wide = this.c.map((_, index) => rows.some((row) => Array.isArray(row.numbers[index])));
      const judged = rows.some(({ line }) => line.classList.contains("condemned"));
      const quoted = (field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field);
      const parts = ["", "_low", "_high", "_samples"];
      const head = this.c.flatMap(([key], index) =>
        (wide[index] ? parts.map((part) => key + part) : [key]));
      const inPart = rows.some(({ line }) => line.dataset.condemned);
      if (judged) head.push("condemned_by");
      if (inPart) head.push("condemned_columns");
      const fields = (row) => {
        const cells = row.values.flatMap((value, index) => {
          const estimate = row.numbers[index];
          if (Array.isArray(estimate)) return estimate;
          return wide[index] ? [value, "", "", ""] : [value];
        });
        if (judged) cells.push(row.line.title.replace(/^condemned: /, "").replaceAll(", ", " "));
        if (inPart) cells.push(row.line.dataset.condemned ?? "");
        return cells;
      };
      return [head, ...rows.map(fields)]
        .map((row) => `${row.map((field) => quoted(String(field ?? ""))).join(",")}\r\n`).join("");
    }

    markdown() {
      const cells = (line) => [...line.cells].map((cell) => {
        const words = cell.textContent.trim().replaceAll("|", "\\|").replace(/\s+/g, " ");
        return cell.querySelector("s") ? `~~${words}~~` : words;
      });
      const row = (fields) => `| ${fields.join(" | ")} |\n`;
      const rule = this.c.map(([, measure]) => (measure === "" ? "---" : "---:"));
      return row(cells(this.node.tHead.rows[0])) + row(rule)
        + this.shown().map(({ line }) => row(cells(line))).join("");
    }
  }

  function cellOf(cell) {
    if (Array.isArray(cell)) return { word: cell[0] };
    return typeof cell === "string" ? { missing: cell } : cell;
  }

  // As base::table::merge. A cell is a number, the letters for why there is none ("" where nothing
  // happened, "?" where it is unknown), or undefined where the slice does not have the row.
  function combine(merge, cells, lengths, events) {
    if (merge === "l") return cellOf(cells.findLast((cell) => cell !== undefined));
    if (merge === "n") return { missing: "", why: "cannot be derived for this window" };
    const first = cells.findIndex((cell) => cell !== undefined);
    const last = cells.findLastIndex((cell) => cell !== undefined);
    // It takes two rows of its counters to say how far they moved.
    const cameOrWent = (at) => (at === first && first > 0) || (at === last && last + 1 < cells.length);
    const reason = (cell, at) => typeof cell === "string" && cell && !(cell === "?" && cameOrWent(at));
    const isNumber = (cell) => typeof cell === "number";
    const numbers = (cells) => cells.find(reason)
      ?? (cells.some(isNumber) ? cells.map((cell) => (isNumber(cell) ? cell : 0))
        : cells.includes("") ? "" : "?");
    if (!events || !cells.some(isNumber)) {
      const values = numbers(cells);
      if (!Array.isArray(values)) return { missing: values };
      if (merge === "s") return values.reduce((a, b) => a + b, 0);
      if (merge === "g") return Math.max(...values);
      return mean(values, lengths);
    }
    const rates = numbers(events.rates);
    if (!Array.isArray(rates)) return { missing: rates };
    const weights = events.counted ? rates : rates.map((rate, at) => rate * lengths[at]);
    const present = cells.map((cell, at) => [cell, weights[at]])
      .filter(([cell, weight]) => cell !== undefined && cell !== "" && (cell !== "?" || weight));
    const gap = present.find(([cell]) => !isNumber(cell));
    if (gap) return { missing: gap[0] };
    const value = mean(present.map(([cell]) => cell), present.map(([, weight]) => weight));
    return Number.isFinite(value) ? value : { missing: "" };
  }

  function mean(values, weights) {
    const sum = values.reduce((sum, value, at) => sum + value * weights[at], 0);
    return sum / weights.reduce((a, b) => a + b, 0);
  }

  function copy(content, button) {
    const done = () => {
      const name = button.textContent;
      button.textContent = "copied";
      setTimeout(() => { button.textContent = name; }, 1200);
    };
    const byHand = () => {
      const area = make("textarea", {}, content);
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      done();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(content).then(done, byHand);
    else byHand();
  }

  const tables = all("table[data-table]").map((node) => new Table(node));

  // The address holds section and window, so that a link can be mailed.
  const sections = all("main section");
  let here = "";
  const seconds = (ns) => String(Number((ns / 1e9).toPrecision(12)));
  function address() {
    const query = chosen ? `?from=${seconds(chosen[0])}&to=${seconds(chosen[1])}` : "";
    const hash = here || query ? `#${here}${query}` : "";
    if (hash !== location.hash) history.replaceState(null, "", hash || location.pathname);
  }
  function arrive() {
    const [id, query] = decodeURIComponent(location.hash.slice(1)).split("?");
    here = id;
    const wanted = new URLSearchParams(query ?? "");
    const window = [wanted.get("from"), wanted.get("to")].map((s) => parseFloat(s) * 1e9);
    if (window.every(Number.isFinite) && window[0] < window[1]) choose(window, false);
    else if (!query) address();
    if (query !== undefined && id) document.getElementById(id)?.scrollIntoView();
  }
  addEventListener("hashchange", () => {
    const [id, query] = location.hash.slice(1).split("?");
    here = id;
    if (query === undefined) address();
    else arrive();
  });
  for (const section of sections) {
    section.querySelector("h2")?.append(make("a", { class: "anchor", href: `#${section.id}`,
      "aria-label": `Link to ${section.querySelector("h2").textContent}` }, "#"));
  }

  // Pointer and keyboard.
  for (const plot of plots) {
    const { node, chart } = plot;
    let start = null;
    node.addEventListener("pointermove", (event) => {
      const at = share(plot, event);
      moveCursor(plot, at);
      showTip(plot, at, event);
      if (start === null) return;
      const ends = [start, at].map((end) => valueAt(chart.x, end)).sort((a, b) => a - b);
      if (Math.abs(at - start) > 0.005) choose(ends, false);
    });
    node.addEventListener("pointerleave", leave);
    if (!plot.time) continue;
    node.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      start = share(plot, event);
      node.setPointerCapture(event.pointerId);
    });
    const stop = (event) => {
      if (start === null) return;
      if (Math.abs(share(plot, event) - start) <= 0.005) choose(null);
      else address();
      start = null;
    };
    node.addEventListener("pointerup", stop);
    node.addEventListener("pointercancel", stop);
    node.tabIndex = 0;
    node.setAttribute("role", "group");
    const title = node.closest("figure").querySelector("h3").textContent;
    node.setAttribute("aria-label", `${title}: the arrow keys choose a window, shift widens it, `
      + "escape clears it");
    node.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return choose(null);
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return undefined;
      event.preventDefault();
      return choose(stepped(step, event.shiftKey));
    });
  }
  addEventListener("keydown", (event) => { if (event.key === "Escape" && chosen) choose(null); });

  // The window moved or widened by one slice; the first slice if none is chosen.
  function stepped(step, wider) {
    const stops = edges.length > 1 ? edges
      : [...Array(21)].map((_, n) => span[0] + (span[1] - span[0]) * n / 20);
    const last = stops.length - 1;
    if (!chosen) return step > 0 ? [stops[0], stops[1]] : [stops[last - 1], stops[last]];
    const index = (at) => stops.findLastIndex((stop) => stop <= at);
    let [from, to] = [index(chosen[0]), Math.max(index(chosen[1]), 1)];
    if (wider && step > 0) to = Math.min(last, to + 1);
    else if (wider) from = Math.max(0, from - 1);
    else if (from + step >= 0 && to + step <= last) [from, to] = [from + step, to + step];
    return [stops[from], stops[to]];
  }

  // Palettes.
  const store = (key, value) => {
    try {
      if (value !== undefined) localStorage.setItem(`blockstone-${key}`, value);
      return localStorage.getItem(`blockstone-${key}`);
    } catch {
      return null;
    }
  };
  const toggle = (label, title, key, values, first) => {
    const show = (value) => {
      root.dataset[key] = value;
      button.setAttribute("aria-pressed", String(value === values[1]));
    };
    const button = make("button", { type: "button", title, onclick: () => {
      const next = root.dataset[key] === values[1] ? values[0] : values[1];
      store(key, next);
      show(next);
    } }, label);
    show(store(key) ?? first);
    return button;
  };
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const tools = document.getElementById("tools");
  if (timed.length) tools.append(readout, clear);
  if (plots.length) {
    tools.append(toggle("Safe colours", "Colour-blind safe palette", "palette",
      ["usual", "safe"], "usual"));
  }
  tools.append(toggle("Dark", "Dark theme", "theme", ["light", "dark"],
    dark ? "dark" : "light"));

  arrive();
  root.dataset.ready = "";
})();

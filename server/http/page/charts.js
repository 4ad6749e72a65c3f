// Charts of a value over time, drawn by uPlot, which index.html loads.

import { byId, element } from "./dom.js";

const HEIGHT = 180;
const NAMES = ["--accent", "--second", "--third", "--fourth"];

export class Chart {
  #place;
  #title;
  #options;
  #data;
  #plot = null;

  // `lines` are names; `x` and `unit` label the axes.
  constructor({ title, lines, x, unit }) {
    this.#title = title;
    this.#options = { lines, x, unit };
    this.#data = [[], ...lines.map(() => [])];
    const drawing = element("div", { role: "img", "aria-label": title });
    byId("charts").append(element("figure", {},
      element("figcaption", {}, title), drawing));
    this.#place = drawing;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change",
      () => this.#remake());
    addEventListener("resize", () => this.#remake());
  }

  // Columns: x first. `spoken` is what the picture says to who does not see it.
  // A chart that is hidden is drawn by `draw` once it is not.
  show(data, spoken) {
    this.#data = data;
    this.#place.setAttribute("aria-label", `${this.#title}: ${spoken}`);
    this.draw();
  }

  draw() {
    if (this.#place.clientWidth === 0) return;
    if (this.#plot === null) this.#make();
    else this.#plot.setData(this.#data);
  }

  #remake() {
    this.#plot?.destroy();
    this.#plot = null;
    if (this.#place.clientWidth > 0) this.#make();
  }

  #make() {
    const colors = getComputedStyle(this.#place);
    const color = (name) => colors.getPropertyValue(name).trim();
    const { lines, x, unit } = this.#options;
    const axis = { stroke: color("--text"), grid: { stroke: color("--line") },
      ticks: { stroke: color("--line") } };
    this.#plot = new uPlot({
      width: this.#place.clientWidth, height: HEIGHT,
      scales: { x: { time: false }, y: { range: (_, low, high) =>
        [Math.min(0, low ?? 0), Math.max(1, 1.1 * (high ?? 0))] } },
      axes: [{ ...axis, label: x }, { ...axis, label: unit, size: 60 }],
      series: [{ label: x }, ...lines.map((label, i) =>
        ({ label, stroke: color(NAMES[i]), width: 2,
          dash: i === 0 ? undefined : [4 * i, 4] }))],
    }, this.#data, this.#place);
  }
}

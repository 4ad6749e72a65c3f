// How fast a turn's tokens came, as this page saw it.

export class TurnClock {
  // Milliseconds between tokens, the first one since the request.
  gaps = [];
  #asked;
  #now;
  #first = null;
  #last;

  // `now` tells milliseconds.
  constructor(now = () => performance.now()) {
    this.#now = now;
    this.#asked = now();
    this.#last = this.#asked;
  }

  // So many tokens came together.
  tokens(count) {
    const now = this.#now();
    this.#first ??= now;
    for (let i = 0; i < count; i += 1) {
      this.gaps.push(now - this.#last);
      this.#last = now;
    }
  }

  // "20 tokens, 41.3 a second, the first after 120 ms"
  summary() {
    const count = this.gaps.length;
    if (count === 0) return "no tokens";
    const time = this.#last - this.#first;
    const rate = time > 0
      ? `, ${Number((1e3 * (count - 1) / time).toPrecision(3))} a second` : "";
    return `${count} token${count === 1 ? "" : "s"}${rate}, ` +
      `the first after ${Math.round(this.#first - this.#asked)} ms`;
  }
}

// The server's status, asked for each second while the page is visible.

import { Chart } from "./charts.js";
import { byId, fillFacts, showError } from "./dom.js";
import { History, ROW_KINDS, bytesText, count, durationText, ratesBetween,
  seconds } from "./rates.js";

const PERIOD_MS = 1000;
// Seconds that the charts reach back.
const HISTORY = 300;

const round = (value) => Number((value ?? 0).toPrecision(3));

export class Status {
  #api;
  #before = null;
  #timer = null;
  #asking = false;
  #rates = new History(1, HISTORY);
  #steps = new History(1, HISTORY);
  #load = new History(3, HISTORY);
  #charts = makeCharts();

  constructor(api) {
    this.#api = api;
    document.addEventListener("visibilitychange", () => this.#wake());
    this.#wake();
  }

  // The part of the page is shown from now on.
  draw() {
    for (const chart of Object.values(this.#charts)) chart.draw();
  }

  // `clock` has the gaps of a turn's tokens.
  showTurn({ gaps }) {
    if (gaps.length === 0) return;
    this.#charts.turn.show([gaps.map((_, i) => i + 1), gaps],
      `${gaps.length} tokens, the first after ${round(gaps[0])} ms`);
  }

  #wake() {
    clearTimeout(this.#timer);
    if (document.hidden || this.#asking) return;
    this.#poll();
  }

  async #poll() {
    this.#asking = true;
    try {
      const status = await this.#api.status();
      showError(byId("status-error"), null);
      this.#show(status);
    } catch (error) {
      this.#before = null;
      this.#header(error.status === 503 ? "not ready" : "no answer", "");
      showError(byId("status-error"), error);
    }
    this.#asking = false;
    if (!document.hidden) {
      this.#timer = setTimeout(() => this.#poll(), PERIOD_MS);
    }
  }

  #show(status) {
    const rates = this.#before && ratesBetween(this.#before, status);
    this.#before = status;
    const state = (status.state ?? "").replace("SERVER_STATE_", "")
      .toLowerCase();
    this.#header(state, rates ? `${round(rates.tokensPerSecond)} tokens/s` : "");
    fillFacts(byId("status-facts"), facts(status, state, rates));
    if (rates) this.#chart(status, rates);
  }

  #header(state, rate) {
    const place = byId("server-state");
    if (place.textContent !== state) place.textContent = state;
    place.dataset.state = state;
    byId("server-rate").textContent = rate;
  }

  #chart(status, rates) {
    const time = seconds(status.uptime);
    const load = ["queued_calls", "sessions_busy", "slots_used"].map((name) =>
      count(status[name]));
    this.#rates.push(time, [rates.tokensPerSecond]);
    this.#steps.push(time, [rates.stepMilliseconds]);
    this.#load.push(time, load);
    const charts = this.#charts;
    charts.rate.show(this.#rates.columns,
      `now ${round(rates.tokensPerSecond)} tokens/s`);
    charts.step.show(this.#steps.columns, rates.stepMilliseconds === null
      ? "no steps now" : `now ${round(rates.stepMilliseconds)} ms`);
    charts.load.show(this.#load.columns, `now ${load[0]} queued calls, ` +
      `${load[1]} busy sessions, ${load[2]} used slots`);
  }
}

function makeCharts() {
  const x = "seconds since the server's start";
  return {
    rate: new Chart({ title: "Tokens", lines: ["tokens/s"], x,
      unit: "tokens/s" }),
    step: new Chart({ title: "Latency of a step", lines: ["mean"], x,
      unit: "ms" }),
    load: new Chart({ title: "Load",
      lines: ["queued calls", "busy sessions", "used slots"], x, unit: "" }),
    turn: new Chart({ title: "Latency of this page's last turn",
      lines: ["time since the token before"], x: "token", unit: "ms" }),
  };
}

function facts(status, state, rates) {
  const perSecond = Object.values(ROW_KINDS).map((kind) =>
    `${kind} ${rates ? round(rates.rowsPerSecond[kind]) : "…"}`).join(", ");
  const number = (name) => count(status[name]).toLocaleString("en");
  const all = [
    ["State", status.shedding ? `${state}, short of memory` : state],
    ["Up for", durationText(seconds(status.uptime))],
    ["Tokens/s", rates ? String(round(rates.tokensPerSecond)) : "…"],
    ["Rows/s", perSecond],
    ["Decoding rows of a step", batchText(rates)],
    ["Step", rates?.stepMilliseconds
      ? `${round(rates.stepMilliseconds)} ms` : "none"],
    ["Queue", `${number("queued_calls")} calls, ` +
      `${number("queued_tokens")} tokens`],
    ["Slots", `${number("slots_used")} of ${number("slots_total")}`],
    ["Sessions", `${number("sessions_busy")} busy, ` +
      `${number("sessions_idle")} idle`],
    ["Turns", `${number("turns_active")} active, ` +
      `${number("turns_parked")} parked`],
    ["Memory of the process", bytesText(status.resident_bytes)],
    ["Connections", number("connections_open")],
  ];
  if (count(status.prefix_lookups) > 0) {
    all.push(["Prompts that began alike", `${number("prefix_hits")} of ` +
      `${number("prefix_lookups")}, ${number("tokens_cached")} tokens cached`]);
  }
  const store = status.store;
  if (store) {
    all.push(["Store", `${store.state}, ${count(store.sessions)} sessions, ` +
      bytesText(store.database_bytes)]);
  }
  return all;
}

function batchText(rates) {
  return rates?.batch ? String(round(rates.batch)) : "none";
}

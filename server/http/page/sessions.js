// The list of sessions, page by page.

import { ask, byId, element, showError } from "./dom.js";
import { count } from "./rates.js";
import { SessionDetail } from "./session_detail.js";

const PAGE_SIZE = 20;

export class Sessions {
  #api;
  #detail;
  // Asks for the page that is shown; "" for the first one.
  #pageToken = "";
  #nextPageToken = "";
  // Counts questions for a page: an answer to an older one is dropped.
  #asked = 0;

  // `onContinue(id, text)` is told of a session to go on with in the
  // playground.
  constructor(api, onContinue) {
    this.#api = api;
    this.#detail = new SessionDetail(api, { onContinue,
      onChange: () => this.refresh(), onDelete: (id) => this.#delete(id),
      attempt: (action) => this.#attempt(action) });
    byId("sessions-first").addEventListener("click", () => this.#turnTo(""));
    byId("sessions-next").addEventListener("click",
      () => this.#turnTo(this.#nextPageToken));
    byId("sessions-refresh").addEventListener("click", () => this.refresh());
    byId("create-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#create(byId("create-id").value.trim());
    });
  }

  setModel(model) {
    this.#detail.setModel(model);
  }

  refresh() {
    return this.#attempt(async () => {
      const asked = (this.#asked += 1);
      const page = await this.#api.listSessions(PAGE_SIZE, this.#pageToken);
      if (asked !== this.#asked) return;
      this.#nextPageToken = page.next_page_token ?? "";
      const sessions = page.data ?? [];
      byId("session-rows").replaceChildren(
        ...sessions.map((session) => this.#row(session)));
      byId("sessions-next").disabled = this.#nextPageToken === "";
      byId("sessions-first").disabled = this.#pageToken === "";
      this.#say(sessions.length === 0 ? "There are no sessions here."
        : `${sessions.length} sessions on this page.`);
    });
  }

  #turnTo(pageToken) {
    this.#pageToken = pageToken;
    return this.refresh();
  }

  #row(session) {
    const id = session.session_id;
    const used = session.last_use_time;
    const button = (name, action) => element("button", { type: "button",
      "aria-label": `${name} ${id}`, click: action }, name);
    return element("tr", {},
      element("th", { scope: "row" }, id),
      element("td", {}, stateName(session.state)),
      element("td", { class: "number" }, String(count(session.position))),
      element("td", {}, used ? new Date(used).toLocaleString() : ""),
      element("td", {}, session.last_turn?.outcome ?? ""),
      element("td", {}, button("Open", () => this.#detail.open(id)), " ",
        button("Delete", () => this.#delete(id))));
  }

  #create(id) {
    return this.#attempt(async () => {
      const session = await this.#api.createSession(id);
      byId("create-id").value = "";
      await this.refresh();
      this.#say(`${session.session_id} is there.`);
    });
  }

  async #delete(id) {
    if (!await ask(`Delete session ${id}? Its text is lost.`, "Delete")) return;
    await this.#attempt(async () => {
      await this.#api.deleteSession(id);
      this.#detail.close(id);
      await this.refresh();
      this.#say(`${id} is deleted.`);
      byId("sessions-refresh").focus();
    });
  }

  // Does something, and says what went wrong.
  async #attempt(action) {
    showError(byId("sessions-error"), null);
    try {
      await action();
    } catch (error) {
      showError(byId("sessions-error"), error);
    }
  }

  #say(text) {
    byId("sessions-status").textContent = text;
  }
}

// "SESSION_STATE_IDLE" as "idle".
function stateName(state) {
  return (state ?? "").replace("SESSION_STATE_", "").toLowerCase();
}

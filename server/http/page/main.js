// The page: its parts, and which of them is shown.

import { Api } from "./api.js";
import { byId, showError } from "./dom.js";
import { KeyField } from "./key.js";
import { showModel } from "./model.js";
import { Playground } from "./playground.js";
import { sleep } from "./retry.js";
import { Sessions } from "./sessions.js";
import { Status } from "./status.js";

const PARTS = ["playground", "sessions", "status", "model"];
// How long the page waits before it asks a server that is not ready again.
const AGAIN_MS = 2000;

const api = new Api(new URL(".", location.href).href);
const keyField = new KeyField(api);
const status = new Status(api);
const playground = new Playground(api, (clock) => status.showTurn(clock));
const sessions = new Sessions(api, (id, text) => {
  location.hash = "playground";
  showPart();
  playground.openSession(id, text);
});

let shown = PARTS[0];

// Shows the part that the address names. Another name ("Skip to the content")
// leaves the part that is shown.
function showPart() {
  const name = location.hash.slice(1);
  if (name === "") shown = PARTS[0];
  else if (PARTS.includes(name)) shown = name;
  for (const part of PARTS) {
    byId(`${part}-part`).hidden = part !== shown;
    const link = document.querySelector(`nav a[href="#${part}"]`);
    if (part === shown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (shown === "sessions") sessions.refresh();
  if (shown === "status") status.draw();
}

async function loadModel() {
  for (;;) {
    try {
      const answer = await api.models();
      showError(byId("page-error"), null);
      return answer.data[0].txl;
    } catch (error) {
      showError(byId("page-error"), error);
      await Promise.race([keyField.changed(),
        sleep(error.retryAfter ?? AGAIN_MS)]);
    }
  }
}

addEventListener("hashchange", showPart);
showPart();
const model = await loadModel();
byId("server-model").textContent = model.name;
document.title = `${model.name} – txl-server`;
showModel(model);
playground.setModel(model);
sessions.setModel(model);

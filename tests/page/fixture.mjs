// What the tests in a browser share: a server, a browser, and pages that must
// have nothing to report at a test's end.

import assert from "node:assert/strict";
import { after, afterEach, before } from "node:test";

import { openBrowser, openPage } from "./browser.mjs";
import { startMock } from "./mock_server.mjs";

// The server that TXL_HTTP names, else a mock server.
function startServer() {
  return process.env.TXL_HTTP
    ? { url: new URL("/", process.env.TXL_HTTP).href, close: () => {} }
    : startMock();
}

// Starts a server and a browser around a file's tests.
export class Fixture {
  #browser;
  #pages = [];

  constructor(start = startServer) {
    before(async () => {
      this.server = await start();
      this.#browser = await openBrowser();
    });
    after(async () => {
      await this.#browser.close();
      await this.server.close();
    });
    afterEach(async () => {
      for (const page of this.#pages.splice(0)) {
        assert.deepEqual(page.problems, []);
        await page.context().close();
      }
    });
  }

  async open(options) {
    const page = await openPage(this.#browser, this.server.url, options);
    this.#pages.push(page);
    return page;
  }

  // The server's answer to GET, POST with `fields`, or another method.
  async ask(path, fields, method = fields === undefined ? "GET" : "POST") {
    const answer = await fetch(this.server.url + path, { method,
      ...(fields === undefined ? {} : { body: JSON.stringify(fields),
        headers: { "content-type": "application/json" } }) });
    const text = await answer.text();
    return text === "" ? {} : JSON.parse(text);
  }

  // A session of that name that holds nothing.
  async makeSession(id) {
    await this.ask(`v1/sessions/${id}`, undefined, "DELETE");
    await this.ask("v1/sessions", { session_id: id });
  }

  async tokensOf(prompt) {
    return (await this.ask("tokenize", { prompt })).tokens.length;
  }
}

export const tokens = (page) => page.locator("#output .token");

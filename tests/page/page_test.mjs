// The page in a browser: every function used once. Runs against the server that
// TXL_HTTP names ("http://127.0.0.1:8080/"), else against the mock server.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";

import { accessibilityFindings, fill, generate, openBrowser, openPage,
  outputText, screenshot, turnEnded } from "./browser.mjs";
import { startMock } from "./mock_server.mjs";

const PROMPT = "ROMEO:";

let browser;
let mock = null;
let base;
const open = [];
before(async () => {
  browser = await openBrowser();
  if (!process.env.TXL_HTTP) mock = await startMock();
  base = mock?.url ?? new URL("/", process.env.TXL_HTTP).href;
});
after(async () => {
  await browser.close();
  await mock?.close();
});
// Whatever a test does, the page has nothing to report.
afterEach(async () => {
  for (const page of open.splice(0)) {
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

async function openPart(part, options = {}) {
  const page = await openPage(browser, base, { part, ...options });
  open.push(page);
  return page;
}

const tokens = (page) => page.locator("#output .token");
const get = async (path) => (await fetch(base + path)).json();
async function make(id) {
  await fetch(`${base}v1/sessions/${id}`, { method: "DELETE" });
  await fetch(`${base}v1/sessions`, { method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ session_id: id }) });
}

test("tokens stream in, each with its class of probability", async () => {
  const page = await openPart("playground");
  await generate(page, { prompt: PROMPT, max_tokens: 30 });
  assert.equal(await tokens(page).count(), 30);
  const classes = await tokens(page).evaluateAll((spans) =>
    spans.map(({ className }) => className));
  for (const name of classes) assert.match(name, /^token p[0-9]( empty)?$/);
  assert.ok((await outputText(page)).startsWith(PROMPT));
  assert.match(await page.locator("#turn-status").textContent(),
    /^Ended at the length asked for: 30 tokens/);
});

test("the seed that the server chose gives the same text again", async () => {
  const page = await openPart("playground");
  await generate(page, { prompt: PROMPT, max_tokens: 20 });
  const text = await outputText(page);
  await page.click("#use-seed");
  assert.match(await page.inputValue("#seed"), /^\d+$/);
  await generate(page, {});
  assert.equal(await outputText(page), text);
});

test("alternatives show under the pointer", async () => {
  const page = await openPart("playground");
  await generate(page, { prompt: PROMPT, max_tokens: 5, logprobs: 4 });
  await tokens(page).nth(3).hover();
  const panel = page.locator("#token-panel");
  assert.match(await panel.textContent(), /token 4, id \d+, [\d.]+ %/);
  assert.ok(await panel.locator("tbody tr").count() >= 4);
});

test("alternatives show on a tap", async () => {
  const page = await openPart("playground", { touch: true, width: 390 });
  await generate(page, { prompt: PROMPT, max_tokens: 5 });
  await tokens(page).nth(2).tap();
  assert.match(await page.locator("#token-panel").textContent(), /token 3,/);
});

test("the text is one stop of Tab, arrow keys move in it", async () => {
  const page = await openPart("playground", { width: 390 });
  await generate(page, { prompt: PROMPT, max_tokens: 120 });
  await page.focus("#use-seed");
  const chosen = () => page.locator("#token-panel").textContent()
    .then((text) => Number(/token (\d+)/.exec(text)[1]));
  await page.keyboard.press("Tab");
  assert.equal(await chosen(), 1);
  await page.keyboard.press("ArrowRight");
  assert.equal(await chosen(), 2);
  await page.keyboard.press("ArrowLeft");
  assert.equal(await chosen(), 1);
  await page.keyboard.press("ArrowDown");
  const below = await chosen();
  assert.ok(below > 1 && below < 120);
  await page.keyboard.press("ArrowUp");
  assert.ok(await chosen() < below);
  await page.keyboard.press("End");
  assert.equal(await chosen(), 120);
  const active = await page.locator("#output").evaluate((place) =>
    document.getElementById(place.getAttribute("aria-activedescendant"))
      .getAttribute("aria-label"));
  assert.match(active, /, [\d.]+ %$/);
  await page.keyboard.press("Tab");
  assert.notEqual(await page.evaluate(() => document.activeElement.id),
    "output");
});

test("the view follows new tokens, unless it was scrolled away", async () => {
  const page = await openPart("playground", { width: 390 });
  await generate(page, { prompt: PROMPT, max_tokens: 400 });
  const below = () => page.locator("#output").evaluate((place) =>
    place.scrollHeight - place.scrollTop - place.clientHeight);
  assert.ok(await page.locator("#output").evaluate((place) =>
    place.scrollHeight > 2 * place.clientHeight));
  assert.ok(await below() < 2);
  await page.locator("#output").evaluate((place) => { place.scrollTop = 0; });
  const before = await below();
  await page.click("#continue");
  await turnEnded(page);
  assert.equal(await page.locator("#output").evaluate((place) =>
    place.scrollTop), 0);
  assert.ok(await below() > before);
});

test("a turn is stopped and continued; the session is what is shown",
  async () => {
    const page = await openPart("playground");
    const name = "page-test-stop";
    await make(name);
    await fill(page, { prompt: PROMPT, max_tokens: 4000, session_id: name });
    await page.click("#generate");
    await tokens(page).nth(20).waitFor();
    await page.click("#stop");
    await turnEnded(page);
    assert.match(await page.locator("#turn-status").textContent(), /^Stopped/);
    const held = async () => (await get(
      `v1/sessions/${name}?include_tokens=true`)).token_ids.length;
    const shown = await tokens(page).count();
    const { count } = await countOf(PROMPT);
    assert.equal(await held(), count + shown);
    await fill(page, { max_tokens: 10 });
    await page.click("#continue");
    await turnEnded(page);
    assert.equal(await tokens(page).count(), shown + 10);
    assert.equal(await held(), count + shown + 10);
  });

async function countOf(prompt) {
  const answer = await fetch(`${base}tokenize`, { method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ prompt }) });
  return answer.json();
}

test("a session of the page's own ends with the next text", async () => {
  const page = await openPart("playground");
  const ids = async () => (await get("v1/sessions?page_size=1000")).data
    .map(({ session_id: id }) => id);
  const before = await ids();
  for (let i = 0; i < 3; i += 1) {
    await generate(page, { prompt: PROMPT, max_tokens: 2 });
  }
  await page.waitForFunction(async (most) => (await (await fetch(
    "v1/sessions?page_size=1000")).json()).data.length <= most,
  before.length + 1);
  await page.click("#clear");
  assert.equal(await tokens(page).count(), 0);
  assert.ok(await page.locator("#continue").isDisabled());
});

test("an error names its field, which is marked", async () => {
  const page = await openPart("playground");
  await generate(page, { prompt: PROMPT, temperature: 200 });
  const error = page.locator("#turn-error");
  assert.match(await error.textContent(), /\(field (sampling\.)?temperature\)/);
  const field = page.locator("#temperature");
  assert.equal(await field.getAttribute("aria-invalid"), "true");
  assert.ok(await field.evaluate((one) => one === document.activeElement));
  await generate(page, { temperature: 1, seed: "one" });
  assert.match(await error.textContent(), /whole number \(field seed\)/);
  await page.click("#reset-parameters");
  await generate(page, { max_tokens: 2 });
  assert.ok(await error.isHidden());
});

test("the request is copied as three commands", async () => {
  const page = await openPart("playground");
  await fill(page, { prompt: "it's", seed: 7, max_tokens: 3 });
  for (const [name, start] of Object.entries({ curl: "curl -sS -N 'http",
    python: "import json", grpcurl: "grpcurl -plaintext" })) {
    await page.click(`[data-copy="${name}"]`);
    await page.waitForFunction(() =>
      document.getElementById("copy-status").textContent === "Copied.");
    const shown = await page.locator("#command").textContent();
    assert.ok(shown.startsWith(start), shown);
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()),
      shown);
  }
});

test("sessions are listed page by page", async () => {
  const names = Array.from({ length: 23 }, (_, i) =>
    `page-test-${String(i).padStart(2, "0")}`);
  await Promise.all(names.map(make));
  const page = await openPart("sessions");
  const rows = page.locator("#session-rows tr");
  await page.waitForFunction(() =>
    document.querySelectorAll("#session-rows tr").length === 20);
  const first = await rows.first().locator("th").textContent();
  await page.click("#sessions-next");
  await page.waitForFunction((id) =>
    document.querySelector("#session-rows th").textContent !== id, first);
  assert.ok(await rows.count() >= 3);
  await page.click("#sessions-first");
  await page.waitForFunction((id) =>
    document.querySelector("#session-rows th").textContent === id, first);
});

// A session with some text, by the playground; the page shows it opened.
async function openSession(name, more = 12) {
  await make(name);
  const page = await openPart("playground");
  await generate(page, { prompt: PROMPT, max_tokens: more, session_id: name });
  const text = await outputText(page);
  await page.click("nav a[href='#sessions']");
  await page.click(`[aria-label="Open ${name}"]`);
  await page.locator("#detail-tokens .token").first().waitFor();
  return { page, text, total: (await countOf(PROMPT)).count + more };
}

test("a session shows its text and is continued in the playground",
  async () => {
    const { page, text } = await openSession("a-page-test-open");
    assert.equal(await page.locator("#detail-text").textContent(), text);
    await page.click("#detail-continue");
    await page.waitForFunction((wanted) =>
      document.getElementById("output").textContent === wanted, text);
    await fill(page, { max_tokens: 5 });
    await page.click("#continue");
    await turnEnded(page);
    assert.equal(await tokens(page).count(), 5);
  });

test("a session is rewound to a chosen token", async () => {
  const { page, total } = await openSession("a-page-test-rewind");
  assert.equal(await page.locator("#detail-tokens .token").count(), total);
  await page.locator("#detail-tokens .token").nth(4).click();
  assert.equal(await page.inputValue("#detail-position"), "5");
  await page.click("#detail-rewind");
  await page.click("dialog >> text=Cancel");
  assert.match(await page.locator("#detail-facts").textContent(),
    new RegExp(`^${total} tokens`));
  await page.click("#detail-rewind");
  await page.click("dialog .danger");
  await page.waitForFunction(() => /^5 tokens/.test(
    document.getElementById("detail-facts").textContent));
  const answer = await get("v1/sessions/a-page-test-rewind");
  assert.equal(answer.session.position, "5");
});

test("a session is forked at a chosen token", async () => {
  await fetch(`${base}v1/sessions/a-page-test-twig`, { method: "DELETE" });
  const { page, total } = await openSession("a-page-test-fork");
  await page.locator("#detail-tokens").focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await page.fill("#detail-fork-id", "a-page-test-twig");
  await page.click("#detail-fork");
  await page.waitForFunction(() => document.getElementById("detail-title")
    .textContent === "Session a-page-test-twig");
  const position = async (id) =>
    (await get(`v1/sessions/${id}`)).session.position;
  assert.equal(await position("a-page-test-twig"), "2");
  assert.equal(await position("a-page-test-fork"), String(total));
});

test("a session is created, and deleted once that is confirmed", async () => {
  const name = "a-page-test-new";
  await fetch(`${base}v1/sessions/${name}`, { method: "DELETE" });
  const page = await openPart("sessions");
  await page.fill("#create-id", name);
  await page.click("#create-form button");
  const button = page.locator(`[aria-label="Delete ${name}"]`);
  await button.click();
  assert.deepEqual(await accessibilityFindings(page), []);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector("dialog") === null);
  assert.ok((await get(`v1/sessions/${name}`)).session);
  await button.click();
  await page.click("dialog .danger");
  await button.waitFor({ state: "detached" });
  assert.ok((await get(`v1/sessions/${name}`)).error);
});

test("a name that is refused is an error of the list", async () => {
  const page = await openPart("sessions");
  await page.fill("#create-id", "no spaces");
  await page.click("#create-form button");
  await page.waitForFunction(() =>
    document.getElementById("sessions-error").textContent.includes(
      "field session_id"));
});

test("the status is drawn, and asked for while the page is visible",
  async () => {
    const page = await openPart("playground");
    await generate(page, { prompt: PROMPT, max_tokens: 20 });
    await page.click("nav a[href='#status']");
    await page.waitForFunction(() =>
      document.querySelectorAll("#charts canvas").length === 4);
    assert.match(await page.locator("#status-facts").textContent(),
      /Stateready/);
    assert.match(await page.locator("#server-state").textContent(), /ready/);
    let polls = 0;
    page.on("request", (request) => {
      if (request.url().endsWith("v1/status")) polls += 1;
    });
    await page.waitForTimeout(2500);
    assert.ok(polls >= 1 && polls <= 3, `${polls} in 2.5 s`);
    await page.evaluate(() => {
      Object.defineProperty(document, "hidden", { get: () => true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await page.waitForTimeout(100);
    polls = 0;
    await page.waitForTimeout(2500);
    assert.equal(polls, 0);
  });

test("the keyboard skips to the content; an unknown part is the first one",
  async () => {
    const page = await openPart("nowhere");
    assert.ok(await page.locator("#playground-part").isVisible());
    await page.click("nav a[href='#model']");
    await page.focus(".skip");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() =>
      document.activeElement.id === "content");
    assert.ok(await page.locator("#model-part").isVisible());
  });

test("the model's card is what the server says", async () => {
  const page = await openPart("model");
  const { txl } = (await get("v1/models")).data[0];
  const text = await page.locator("#model-part").textContent();
  for (const fact of [txl.name, txl.fingerprint, txl.kernel]) {
    assert.ok(text.includes(fact), fact);
  }
});

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1280, 390]) {
    test(`${colorScheme}, ${width} pixels: accessible, and as wide`,
      async () => {
        const { page } = await openSessionIn(colorScheme, width);
        for (const part of ["sessions", "status", "model", "playground"]) {
          await page.click(`nav a[href='#${part}']`);
          await page.locator(`#${part}-part`).waitFor();
          assert.deepEqual(await accessibilityFindings(page), [], part);
          assert.ok(await page.evaluate(() =>
            document.documentElement.scrollWidth) <= width, part);
          await screenshot(page, `${part}-${width}-${colorScheme}.png`);
        }
      });
  }
}

// A page with a text, a chosen token, a command, an error and an open session.
async function openSessionIn(colorScheme, width) {
  const name = `a-page-test-${colorScheme}-${width}`;
  await make(name);
  const page = await openPart("playground", { colorScheme, width });
  await generate(page, { prompt: PROMPT, max_tokens: 200, session_id: name });
  await page.click("nav a[href='#sessions']");
  await page.click(`[aria-label="Open ${name}"]`);
  await page.locator("#detail-tokens .token").first().waitFor();
  await page.click("nav a[href='#status']");
  await page.waitForTimeout(2500);
  await page.click("nav a[href='#playground']");
  await tokens(page).nth(5).click();
  await page.click("[data-copy='curl']");
  await generate(page, { temperature: 200 });
  return { page };
}

// Sessions, status and the model's card in a browser, every function used once.
// Runs against the server that TXL_HTTP names, else against the mock server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { accessibilityFindings, fill, generate, outputText, turnEnded }
  from "./browser.mjs";
import { Fixture, tokens } from "./fixture.mjs";

const PROMPT = "ROMEO:";

const fixture = new Fixture();

test("sessions are listed page by page", async () => {
  const names = Array.from({ length: 23 }, (_, i) =>
    `page-test-${String(i).padStart(2, "0")}`);
  await Promise.all(names.map((name) => fixture.makeSession(name)));
  const page = await fixture.open({ part: "sessions" });
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
  await fixture.makeSession(name);
  const page = await fixture.open();
  await generate(page, { prompt: PROMPT, max_tokens: more, session_id: name });
  const text = await outputText(page);
  await page.click("nav a[href='#sessions']");
  await page.click(`[aria-label="Open ${name}"]`);
  await page.locator("#detail-tokens .token").first().waitFor();
  return { page, text, total: await fixture.tokensOf(PROMPT) + more };
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
    const all = await page.locator("#turn-error, #turn-status, #output")
      .allTextContents();
    assert.equal(await tokens(page).count(), 5, JSON.stringify(all));
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
  const answer = await fixture.ask("v1/sessions/a-page-test-rewind");
  assert.equal(Number(answer.session.position), 5);
});

test("a number of tokens to keep that was emptied rewinds nothing",
  async () => {
    const { page, total } = await openSession("a-page-test-emptied");
    await page.fill("#detail-position", "");
    await page.click("#detail-rewind");
    await page.waitForFunction(() => /how many tokens to keep/.test(
      document.getElementById("sessions-error").textContent));
    assert.equal(await page.locator("dialog").count(), 0);
    const answer = await fixture.ask("v1/sessions/a-page-test-emptied");
    assert.equal(Number(answer.session.position), total);
  });

test("a session is forked at a chosen token", async () => {
  await fixture.ask("v1/sessions/a-page-test-twig", undefined, "DELETE");
  const { page, total } = await openSession("a-page-test-fork");
  await page.locator("#detail-tokens").focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await page.fill("#detail-fork-id", "a-page-test-twig");
  await page.click("#detail-fork");
  await page.waitForFunction(() => document.getElementById("detail-title")
    .textContent === "Session a-page-test-twig");
  const position = async (id) =>
    Number((await fixture.ask(`v1/sessions/${id}`)).session.position);
  assert.equal(await position("a-page-test-twig"), 2);
  assert.equal(await position("a-page-test-fork"), total);
});

test("a session is created, and deleted once that is confirmed", async () => {
  const name = "a-page-test-new";
  await fixture.ask(`v1/sessions/${name}`, undefined, "DELETE");
  const page = await fixture.open({ part: "sessions" });
  await page.fill("#create-id", name);
  await page.click("#create-form button");
  const button = page.locator(`[aria-label="Delete ${name}"]`);
  await button.click();
  assert.deepEqual(await accessibilityFindings(page), []);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector("dialog") === null);
  assert.ok((await fixture.ask(`v1/sessions/${name}`)).session);
  await button.click();
  await page.click("dialog .danger");
  await button.waitFor({ state: "detached" });
  assert.ok((await fixture.ask(`v1/sessions/${name}`)).error);
});

test("a name that is refused is an error of the list", async () => {
  const page = await fixture.open({ part: "sessions" });
  await page.fill("#create-id", "no spaces");
  await page.click("#create-form button");
  await page.waitForFunction(() =>
    document.getElementById("sessions-error").textContent.startsWith(
      "session_id: must be"));
});

test("the status is drawn, and asked for while the page is visible",
  async () => {
    const page = await fixture.open();
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
    const page = await fixture.open({ part: "nowhere" });
    assert.ok(await page.locator("#playground-part").isVisible());
    await page.click("nav a[href='#model']");
    await page.focus(".skip");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() =>
      document.activeElement.id === "content");
    assert.ok(await page.locator("#model-part").isVisible());
  });

test("the model's card is what the server says", async () => {
  const page = await fixture.open({ part: "model" });
  const { txl } = (await fixture.ask("v1/models")).data[0];
  const text = await page.locator("#model-part").textContent();
  for (const fact of [txl.name, txl.fingerprint, txl.kernel]) {
    assert.ok(text.includes(fact), fact);
  }
});

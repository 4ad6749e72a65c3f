// The page in a browser where answers come late, or in another order than they
// were asked for. Runs against the mock server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { fill, generate, outputText, turnEnded } from "./browser.mjs";
import { Fixture, tokens } from "./fixture.mjs";
import { startMock } from "./mock_server.mjs";

const PROMPT = "ROMEO:";

const text = new Fixture(() => startMock());
const music = new Fixture(() => startMock({ music: true }));

// Holds back requests whose URL matches. `next()` resolves to a function that
// lets the next one go, in their order; `all()` lets all go from now on.
async function hold(page, pattern) {
  const held = [];
  const wanted = [];
  let open = false;
  await page.route(pattern, (route) => {
    const release = () => route.continue();
    if (open) release();
    else if (wanted.length > 0) wanted.shift()(release);
    else held.push(release);
  });
  return {
    next: () => held.length > 0 ? Promise.resolve(held.shift())
      : new Promise((resolve) => wanted.push(resolve)),
    all: () => {
      open = true;
      return Promise.all(held.splice(0).map((release) => release()));
    },
  };
}

// No frame is drawn from now on, as in a tab that nobody looks at.
function stopFrames(page) {
  return page.evaluate(() => { window.requestAnimationFrame = () => 0; });
}

// A session with a text, opened in the list of sessions.
async function openSession(page, name) {
  await page.click("nav a[href='#sessions']");
  await page.click(`[aria-label="Open ${name}"]`);
}

async function makeSession(page, name, fields) {
  await text.makeSession(name);
  await generate(page, { session_id: name, ...fields });
  return outputText(page);
}

const value = (page, id) => page.inputValue(`#${id}`);
const content = (page, id) => page.locator(`#${id}`).textContent();

test("a turn's end is said once its last token is shown", async () => {
  const page = await text.open();
  await stopFrames(page);
  await generate(page, { prompt: PROMPT, max_tokens: 40 });
  assert.match(await content(page, "turn-status"), /^Ended/);
  assert.equal(await tokens(page).count(), 40);
});

test("an error is said once the tokens before it are shown", async () => {
  const page = await text.open();
  await stopFrames(page);
  await generate(page, { prompt: "@fail", max_tokens: 9 });
  assert.equal(await tokens(page).count(), 3);
});

test("a turn's end is said once its last note is drawn", async () => {
  const page = await music.open();
  await stopFrames(page);
  await generate(page, { prompt: "", max_tokens: 48 });
  assert.match(await content(page, "roll-summary"), /^9 notes in 2 bars/);
});

test("an opened session has nothing of the one before, and waits for its text",
  async () => {
    const page = await text.open();
    await makeSession(page, "first", { prompt: "one", max_tokens: 30 });
    const wanted = await makeSession(page, "second",
      { prompt: "two", max_tokens: 5 });
    await openSession(page, "first");
    await page.locator("#detail-tokens .token").first().waitFor();
    const answers = await hold(page, "**/v1/sessions/second?*");
    await page.click('[aria-label="Open second"]');
    const answer = await answers.next();
    assert.equal(await content(page, "detail-title"), "Session second");
    for (const part of ["text", "facts", "tokens"]) {
      assert.equal(await content(page, `detail-${part}`), "", part);
    }
    assert.equal(await value(page, "detail-position"), "");
    for (const action of ["continue", "rewind", "fork"]) {
      assert.ok(await page.locator(`#detail-${action}`).isDisabled(), action);
    }
    assert.ok(await page.locator("#detail-delete").isEnabled());
    await answer();
    await page.click("#detail-continue");
    await page.waitForFunction(() => location.hash === "#playground");
    assert.equal(await outputText(page), wanted);
  });

test("an older session's answer and its error come too late", async () => {
  const page = await text.open();
  await makeSession(page, "gone", { prompt: "one", max_tokens: 5 });
  const wanted = await makeSession(page, "there",
    { prompt: "two", max_tokens: 5 });
  const answers = await hold(page, "**/v1/sessions/gone?*");
  await openSession(page, "gone");
  const answer = await answers.next();
  await text.ask("v1/sessions/gone", undefined, "DELETE");
  await page.click('[aria-label="Open there"]');
  await page.locator("#detail-tokens .token").first().waitFor();
  const refused = page.waitForResponse((one) => one.status() === 404);
  await answer();
  await (await refused).finished();
  await page.evaluate(() => new Promise(requestAnimationFrame));
  assert.ok(await page.locator("#sessions-error").isHidden());
  assert.equal(await content(page, "detail-text"), wanted);
});

test("a token that is chosen while others load keeps its position",
  async () => {
    const page = await text.open();
    await makeSession(page, "long", { prompt: "@rate=9999", max_tokens: 390 });
    const total = Number((await text.ask("v1/sessions/long")).session.position);
    await openSession(page, "long");
    await page.locator("#detail-tokens .token").nth(199).waitFor();
    const answers = await hold(page, "**/detokenize");
    await page.evaluate(() => {
      const button = document.getElementById("detail-older");
      button.click();
      document.querySelector("#detail-tokens .token").click();
    });
    assert.equal(Number(await value(page, "detail-position")), total - 199);
    await answers.all();
  });

test("the list shows the page that was asked for last", async () => {
  const page = await text.open({ part: "sessions" });
  for (let i = 0; i < 25; i += 1) {
    await text.makeSession(`z-list-${String(i).padStart(2, "0")}`);
  }
  await page.click("#sessions-refresh");
  await page.locator("#sessions-next:enabled").waitFor();
  const first = await content(page, "session-rows");
  await page.click("#sessions-next");
  await page.waitForFunction((before) =>
    document.getElementById("session-rows").textContent !== before, first);
  const answers = await hold(page, "**/v1/sessions?*");
  await page.click("#sessions-refresh");
  const older = await answers.next();
  await page.click("#sessions-first");
  await (await answers.next())();
  await page.waitForFunction((wanted) =>
    document.getElementById("session-rows").textContent === wanted, first);
  const late = page.waitForResponse("**/v1/sessions?*");
  await older();
  await (await late).finished();
  await page.evaluate(() => new Promise(requestAnimationFrame));
  assert.equal(await content(page, "session-rows"), first);
});

test("a session that is opened beside a turn waits for that turn's end",
  async () => {
    const page = await text.open();
    const wanted = await makeSession(page, "other",
      { prompt: "two", max_tokens: 5 });
    await text.makeSession("busy");
    await fill(page, { prompt: "@rate=9", max_tokens: 4000,
      session_id: "busy" });
    await page.click("#generate");
    await tokens(page).nth(3).waitFor();
    await openSession(page, "other");
    const answers = await hold(page, "**/v1/sessions/busy");
    await page.click("#detail-continue");
    const settled = await answers.next();
    assert.equal(await value(page, "session_id"), "busy");
    await settled();
    await answers.all();
    await page.waitForFunction(() =>
      document.getElementById("session_id").value === "other");
    assert.equal(await outputText(page), wanted);
    assert.equal(await content(page, "turn-status"), "");
    assert.ok(await page.locator("#continue").isEnabled());
  });

test("a session whose turn runs goes on in the playground", async () => {
  const page = await text.open();
  await text.makeSession("running");
  await fill(page, { prompt: "@rate=9", max_tokens: 4000,
    session_id: "running" });
  await page.click("#generate");
  await tokens(page).nth(3).waitFor();
  await openSession(page, "running");
  await page.click("#detail-continue");
  const shown = await tokens(page).count();
  await tokens(page).nth(shown + 2).waitFor();
  await page.click("#stop");
  await turnEnded(page);
  assert.match(await content(page, "turn-status"), /^Stopped/);
  assert.ok(await page.locator("#continue").isEnabled());
});

test("a session that is opened while another is made stays open", async () => {
  const page = await text.open();
  const wanted = await makeSession(page, "open",
    { prompt: "two", max_tokens: 5 });
  await text.makeSession("there-already");
  const answers = await hold(page, (url) =>
    url.pathname === "/v1/sessions" && url.search === "");
  await fill(page, { prompt: "one", session_id: "there-already" });
  await page.click("#generate");
  const made = await answers.next();
  await openSession(page, "open");
  await page.click("#detail-continue");
  await made();
  await page.waitForFunction(() =>
    document.getElementById("session_id").value === "open");
  assert.equal(await outputText(page), wanted);
  await fill(page, { max_tokens: 3 });
  await page.click("#continue");
  await turnEnded(page);
  assert.ok((await outputText(page)).startsWith(wanted));
});

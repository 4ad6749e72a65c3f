// The playground in a browser, every function used once, and how all parts look
// and read. Runs against the server that TXL_HTTP names
// ("http://127.0.0.1:8080/"), else against the mock server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { accessibilityFindings, fill, generate, outputText, screenshot,
  turnEnded } from "./browser.mjs";
import { Fixture, tokens } from "./fixture.mjs";

const PROMPT = "ROMEO:";

const fixture = new Fixture();

test("tokens stream in, each with its class of probability", async () => {
  const page = await fixture.open();
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
  const page = await fixture.open();
  await generate(page, { prompt: PROMPT, max_tokens: 20 });
  const text = await outputText(page);
  await page.click("#use-seed");
  assert.match(await page.inputValue("#seed"), /^\d+$/);
  await generate(page, {});
  assert.equal(await outputText(page), text);
});

test("alternatives show under the pointer", async () => {
  const page = await fixture.open();
  await generate(page, { prompt: PROMPT, max_tokens: 5, logprobs: 4 });
  await tokens(page).nth(3).hover();
  const panel = page.locator("#token-panel");
  assert.match(await panel.textContent(), /token 4, id \d+, [\d.]+ %/);
  assert.ok(await panel.locator("tbody tr").count() >= 4);
});

test("alternatives show on a tap", async () => {
  const page = await fixture.open({ touch: true, width: 390 });
  await generate(page, { prompt: PROMPT, max_tokens: 5 });
  await tokens(page).nth(2).tap();
  assert.match(await page.locator("#token-panel").textContent(), /token 3,/);
});

test("the text is one stop of Tab, arrow keys move in it", async () => {
  const page = await fixture.open({ width: 390 });
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
  const page = await fixture.open({ width: 390 });
  const prompt = `${PROMPT}\n`.repeat(60);
  await generate(page, { prompt, max_tokens: 60 });
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
  assert.ok(await below() >= before);
  assert.equal(await tokens(page).count(), 120);
});

test("a turn is stopped and continued; the session is what is shown",
  async () => {
    const page = await fixture.open();
    const name = "page-test-stop";
    await fixture.makeSession(name);
    await fill(page, { prompt: PROMPT, max_tokens: 4000, session_id: name });
    await page.click("#generate");
    await tokens(page).nth(20).waitFor();
    await page.click("#stop");
    await turnEnded(page);
    assert.match(await page.locator("#turn-status").textContent(), /^Stopped/);
    const held = async () => (await fixture.ask(
      `v1/sessions/${name}?include_tokens=true`)).token_ids.length;
    const shown = await tokens(page).count();
    const count = await fixture.tokensOf(PROMPT);
    assert.equal(await held(), count + shown);
    await fill(page, { max_tokens: 10 });
    await page.click("#continue");
    await turnEnded(page);
    assert.equal(await tokens(page).count(), shown + 10);
    assert.equal(await held(), count + shown + 10);
  });

test("a session of the page's own ends with its text, or with the page",
  async () => {
    const page = await fixture.open();
    const sessions = async () =>
      (await fixture.ask("v1/sessions?page_size=1000")).data.length;
    const before = await sessions();
    // Sessions end behind the reader's back.
    const settled = (most) => page.waitForFunction(async (wanted) =>
      (await (await fetch("v1/sessions?page_size=1000")).json()).data.length
        <= wanted, most);
    for (let i = 0; i < 3; i += 1) {
      await generate(page, { prompt: PROMPT, max_tokens: 2 });
    }
    await settled(before + 1);
    assert.equal(await sessions(), before + 1);
    await page.click("#clear");
    assert.equal(await tokens(page).count(), 0);
    assert.ok(await page.locator("#continue").isDisabled());
    await settled(before);
    await generate(page, { prompt: PROMPT, max_tokens: 2 });
    assert.equal(await sessions(), before + 1);
    await page.reload();
    await settled(before);
  });

test("an error names its field, which is marked", async () => {
  const page = await fixture.open();
  await generate(page, { prompt: PROMPT, temperature: 200 });
  const error = page.locator("#turn-error");
  assert.match(await error.textContent(), /^temperature: must be in .* \[FIELD_INVALID\]$/);
  const field = page.locator("#temperature");
  assert.equal(await field.getAttribute("aria-invalid"), "true");
  assert.ok(await field.evaluate((one) => one === document.activeElement));
  await generate(page, { temperature: 1, seed: "one" });
  assert.match(await error.textContent(), /^seed: must be a whole number$/);
  await page.click("#reset-parameters");
  await generate(page, { max_tokens: 2 });
  assert.ok(await error.isHidden());
});

test("the request is copied as three commands", async () => {
  const page = await fixture.open();
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
  await fixture.makeSession(name);
  const page = await fixture.open({ colorScheme, width });
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

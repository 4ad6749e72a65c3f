// The page in a browser, with what only a mock server does: markup as text, a
// thousand tokens a second, refusals, broken connections, music.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { accessibilityFindings, fill, generate, outputText, screenshot,
  turnEnded } from "./browser.mjs";
import { Fixture, tokens } from "./fixture.mjs";
import { startMock } from "./mock_server.mjs";

const text = new Fixture(() => startMock());
const music = new Fixture(() => startMock({ music: true }));
const keyed = new Fixture(() => startMock({ key: "a-key_1" }));

const status = (page) => page.locator("#turn-status").textContent();

test("markup that is generated is shown as text", async () => {
  const page = await text.open();
  await generate(page, { prompt: "@markup<b>x</b>", max_tokens: 40 });
  const shown = await outputText(page);
  assert.ok(shown.includes("<img src=x onerror="));
  assert.ok(shown.includes("<script>"));
  assert.ok(shown.includes("&lt;b&gt;"));
  await tokens(page).first().hover();
  assert.equal(await page.locator("main img, main script, main b:not(.spelling)")
    .count(), 0);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  await page.click("[data-copy='python']");
  assert.ok((await page.locator("#command").textContent())
    .includes("<b>x</b>"));
});

test("markup in a session is shown as text", async () => {
  const page = await text.open();
  await generate(page, { prompt: "@markup", max_tokens: 20,
    session_id: "marked" });
  await page.click("nav a[href='#sessions']");
  await page.click("[aria-label='Open marked']");
  await page.locator("#detail-tokens .token").first().waitFor();
  assert.ok((await page.locator("#detail-text").textContent())
    .includes("<img src=x"));
  assert.equal(await page.locator("main img, main script").count(), 0);
});

test("characters cut between pieces are whole", async () => {
  const page = await text.open();
  await generate(page, { prompt: "@bytes", max_tokens: 60, seed: 3 });
  assert.doesNotMatch(await outputText(page), /\ufffd/);
  assert.match(await outputText(page), /naïve|中|😀/);
});

// How long the machine holds up a process that waits for 5 ms: milliseconds
// beyond them, at most, until stop() is called.
function watchStalls() {
  let longest = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last - 5);
    last = now;
  }, 5);
  return { stop() { clearInterval(timer); return longest; } };
}

// Streams 5,000 tokens; gives the longest time between two frames and the
// machine's longest stall meanwhile, in milliseconds, and the rate that the
// page says.
async function streamFast() {
  const page = await text.open();
  await fill(page, { prompt: "@rate=1000", max_tokens: 5000 });
  await page.evaluate(() => {
    window.longest = 0;
    let last = performance.now();
    const frame = (now) => {
      window.longest = Math.max(window.longest, now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  const stalls = watchStalls();
  await page.click("#generate");
  await turnEnded(page);
  const longest = await page.evaluate(() => window.longest);
  const stall = stalls.stop();
  await page.waitForFunction(() =>
    document.querySelectorAll("#output .token").length === 5000);
  const rate = Number(/, ([\d.]+) a second/.exec(await status(page))[1]);
  await page.close();
  return { longest, stall, rate };
}

test("a thousand tokens a second for 5 s leave no frame waiting for 100 ms",
  async (context) => {
    // A machine that others use may hold up any one run, and holds up the
    // processes of a browser in turns.
    const runs = [];
    const late = ({ longest, stall }) => longest > 100 + 3 * stall;
    do {
      runs.push(await streamFast());
      const { rate, longest, stall } = runs.at(-1);
      context.diagnostic(`${rate} tokens/s, longest frame ` +
        `${longest.toFixed(1)} ms, longest stall ${stall.toFixed(1)} ms`);
    } while (late(runs.at(-1)) && runs.length < 3);
    assert.ok(runs.at(-1).rate > 900);
    assert.ok(!late(runs.at(-1)), JSON.stringify(runs));
  });

for (const wish of ["@busy", "@down"]) {
  test(`${wish}: the page says that it waits, and tries again`, async () => {
    const page = await text.open();
    await fill(page, { prompt: wish, max_tokens: 4 });
    await page.click("#generate");
    await page.waitForFunction(() => /too much to do\. Trying again in 0\.7 s/
      .test(document.getElementById("turn-status").textContent));
    await turnEnded(page);
    assert.equal(await tokens(page).count(), 4);
  });
}

test("waiting can be stopped", async () => {
  const page = await text.open();
  await fill(page, { prompt: "@busy", max_tokens: 4 });
  await page.click("#generate");
  await page.waitForFunction(() => /Trying again/.test(
    document.getElementById("turn-status").textContent));
  await page.click("#stop");
  await turnEnded(page);
  assert.match(await status(page), /^Stopped: no tokens/);
});

test("an error behind the first tokens is shown; the tokens stay", async () => {
  const page = await text.open();
  await generate(page, { prompt: "@fail", max_tokens: 9 });
  assert.equal(await page.locator("#turn-error").textContent(),
    "A step failed. [STEP_FAILED]");
  assert.equal(await tokens(page).count(), 3);
});

test("a turn that is cut off goes on by itself", async () => {
  const page = await text.open();
  await generate(page, { prompt: "@cut", max_tokens: 9 });
  assert.match(await status(page), /^Ended.*: 9 tokens/);
  assert.equal(await tokens(page).count(), 9);
});

test("a seed of 64 bits reaches the server as it is", async () => {
  const page = await text.open();
  await generate(page, { prompt: "a", max_tokens: 1,
    seed: "18446744073709551615" });
  assert.match(text.server.turns.bodies.at(-1), /"seed": 18446744073709551615[,}]/);
  assert.equal(await page.locator("#seed-shown").textContent(),
    "18446744073709551615");
});

test("a long session is read page by page", async () => {
  const page = await text.open();
  await generate(page, { prompt: "@rate=9999", max_tokens: 900,
    session_id: "long" });
  const shown = await outputText(page);
  await page.click("nav a[href='#sessions']");
  await page.click("[aria-label='Open long']");
  await page.locator("#detail-tokens .token").nth(199).waitFor();
  await page.click("#detail-older");
  await page.locator("#detail-tokens .token").nth(399).waitFor();
  await page.click("#detail-more");
  await page.waitForFunction(() =>
    / 800 shown/.test(document.getElementById("detail-facts").textContent));
  await page.click("#detail-more");
  await page.waitForFunction((wanted) =>
    document.getElementById("detail-text").textContent === wanted, shown);
  assert.ok(await page.locator("#detail-more").isHidden());
});

test("the status counts the prompts that began alike", async () => {
  const page = await text.open({ part: "status" });
  await page.getByText("7 of 9, 1,234 tokens cached").waitFor();
});

test("a model of text shows no music", async () => {
  const page = await text.open();
  assert.ok(await page.locator("#music").isHidden());
});

test("events are drawn as they come, and downloaded as a MIDI file",
  async () => {
    const page = await music.open();
    // The piece has nine notes in two bars; 48 events are once through it.
    await generate(page, { prompt: "", max_tokens: 48 });
    await page.waitForFunction(() => /^9 notes in 2 bars, from C4 to C5/
      .test(document.getElementById("roll-summary").textContent));
    const drawn = await page.locator("#roll").evaluate((canvas) => {
      const { data } = canvas.getContext("2d")
        .getImageData(0, 0, canvas.width, canvas.height);
      return data.some((value, i) => i % 4 === 3 && value > 0);
    });
    assert.ok(drawn);
    const [download] = await Promise.all([page.waitForEvent("download"),
      page.click("#download-midi")]);
    assert.equal(download.suggestedFilename(), "music.mid");
    const bytes = await readFile(await download.path());
    assert.equal(bytes.subarray(0, 4).toString(), "MThd");
    // The first chord: velocity bin 20 is 80, tempo class mid + 30 is 120.
    assert.ok(bytes.includes(Buffer.from("00ff510307a12000903c50", "hex")));
    assert.equal(bytes.filter((byte) => byte === 0x90).length, 9);
    await screenshot(page, "music-1280.png");
    assert.deepEqual(await accessibilityFindings(page), []);
  });

test("music goes on where a turn continues", async () => {
  const page = await music.open({ colorScheme: "dark", width: 390 });
  await generate(page, { prompt: "Bar_None Position_1/16 Note%20On_60",
    max_tokens: 1 });
  await fill(page, { max_tokens: 60 });
  await page.click("#continue");
  await turnEnded(page);
  assert.match(await page.locator("#roll-summary").textContent(), /notes in/);
  await screenshot(page, "music-390-dark.png");
  assert.deepEqual(await accessibilityFindings(page), []);
});

test("a server with keys is used with the key that it asks for", async () => {
  const page = await keyed.open();
  await page.locator("#key").waitFor();
  assert.match(await page.locator("#page-error").textContent(), /valid key/);
  assert.deepEqual(await accessibilityFindings(page), []);
  const use = async (key) => {
    await page.locator("#key").fill(key);
    await page.locator("#key").press("Enter");
  };
  await use("two words");
  assert.match(await page.locator("#key-error").textContent(), /spaces/);
  await use("wrong");
  await page.locator("#key").waitFor();
  await use("a-key_1");
  await generate(page, { prompt: "ROMEO:", max_tokens: 5 });
  assert.equal(await tokens(page).count(), 5);
  assert.ok(await page.locator("#key").isHidden());
  await page.reload();
  await page.waitForFunction(() =>
    document.getElementById("server-model").textContent === "mock");
  await page.locator("#key-part summary").click();
  await page.click("#forget-key");
  await page.reload();
  await page.locator("#page-error").filter({ hasText: "valid key" }).waitFor();
});

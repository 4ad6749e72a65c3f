// MIDI files as prompts, on a mock server whose files are "MThd" and ids.

import assert from "node:assert/strict";
import { test } from "node:test";

import { accessibilityFindings, fill, generate, outputText, screenshot,
  turnEnded } from "./browser.mjs";
import { Fixture } from "./fixture.mjs";
import { startMock } from "./mock_server.mjs";

const text = new Fixture(() => startMock());
const music = new Fixture(() => startMock({ music: true }));

// The mock's piece begins so: a bar, a position, a tempo, a chord's first note.
const START = [0, 1, 2, 3, 1, 4, 5, 6];
const START_TEXT = "Bar_None Position_1/16 Tempo%20Class_mid " +
  "Tempo%20Value_30 Position_1/16 Note%20Velocity_20 Note%20On_60 " +
  "Note%20Duration_7";
const file = (ids, name = "song.mid") => ({ name, mimeType: "audio/midi",
  buffer: Buffer.from([...Buffer.from("MThd"), ...ids]) });

const choose = (page, chosen) =>
  page.getByLabel("MIDI file").setInputFiles(chosen);
const said = (page, pattern) => page.waitForFunction((source) =>
  new RegExp(source).test(document.getElementById("turn-status").textContent),
pattern);
const refused = async (page) => {
  await page.locator("#turn-error:not([hidden])").waitFor();
  return page.locator("#turn-error").textContent();
};
const roll = (page) => page.locator("#roll-summary").textContent();
const lastBody = () => JSON.parse(music.server.turns.bodies.at(-1));

// Drops a file on the playground, as a pointer does.
async function drop(page, { name, buffer }) {
  const data = await page.evaluateHandle(({ name, bytes }) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([new Uint8Array(bytes)], name));
    return transfer;
  }, { name, bytes: [...buffer] });
  for (const type of ["dragover", "drop"]) {
    await page.dispatchEvent("#prompt", type, { dataTransfer: data });
  }
}

test("a MIDI file becomes the prompt, and is drawn before it goes on",
  async () => {
    const page = await music.open();
    await choose(page, file([...START, 99, 99]));
    await said(page,
      "^song.mid: 8 tokens\\. Left out: Note On_109 \\(2\\)\\.$");
    assert.equal(await page.locator("#prompt").inputValue(), START_TEXT);
    assert.equal(await roll(page), "1 note in 1 bar, from C4 to C4");
    await screenshot(page, "midi-1280.png");
    assert.deepEqual(await accessibilityFindings(page), []);
    await fill(page, { max_tokens: 8 });
    await page.click("#generate");
    await turnEnded(page);
    assert.deepEqual(lastBody().prompt, START);
    assert.ok((await outputText(page)).startsWith(START_TEXT));
    // Two more notes of the chord.
    assert.equal(await roll(page), "3 notes in 1 bar, from C4 to G4");
  });

test("a file that is dropped is as good as one that is chosen", async () => {
  const page = await music.open();
  await drop(page, file(START, "dropped.mid"));
  await said(page, "^dropped.mid: 8 tokens\\.$");
  assert.equal(await page.locator("#prompt").inputValue(), START_TEXT);
});

test("music is played until it ends, or until one stops it", async () => {
  const page = await music.open();
  const button = page.locator("#play-music");
  assert.ok(await button.isDisabled());
  await choose(page, file(START));
  await said(page, "8 tokens");
  // Its one note is short: what the button said is noted, not looked for.
  await button.evaluate((element) => {
    globalThis.said = [element.textContent];
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes) {
        const text = addedNodes[0]?.textContent;
        if (text !== globalThis.said.at(-1)) globalThis.said.push(text);
      }
    }).observe(element, { childList: true });
  });
  const has = (words) => page.waitForFunction((wanted) =>
    globalThis.said.join(" ") === wanted, words);
  await button.click();
  await has("Play Stop Play");
  await button.evaluate((element) => { element.click(); element.click(); });
  await has("Play Stop Play Stop Play");
});

test("a prompt that was changed since is a text", async () => {
  const page = await music.open();
  await choose(page, file(START));
  await said(page, "8 tokens");
  await generate(page, { prompt: "Bar_None", max_tokens: 2 });
  assert.equal(lastBody().prompt, "Bar_None");
});

test("a file of more tokens than a turn takes is fed in parts", async () => {
  const page = await music.open();
  const ids = Array.from({ length: 120 }, (_, i) => START[i % 8]);
  await choose(page, file(ids));
  await said(page, "120 tokens");
  await generate(page, { max_tokens: 3, session_id: "long-song" });
  assert.deepEqual(lastBody().prompt, ids.slice(100));
  const session = music.server.sessions.find("long-song");
  assert.deepEqual(session.ids.slice(0, 120), ids);
  assert.equal(session.ids.length, 123);
});

test("a file begins a new text", async () => {
  const page = await music.open();
  await generate(page, { prompt: "Bar_None", max_tokens: 9,
    session_id: "before" });
  await choose(page, file(START));
  await said(page, "8 tokens");
  assert.equal(await outputText(page), "");
  assert.equal(await page.locator("#session_id").inputValue(), "");
  assert.ok(await page.locator("#continue").isDisabled());
});

test("an error of a file is its field's, and the prompt stays", async () => {
  const page = await music.open();
  await fill(page, { prompt: "Bar_None" });
  const field = page.getByLabel("MIDI file");
  for (const [chosen, message] of [
    [{ ...file([]), buffer: Buffer.from("ROMEO:") }, "is not a MIDI file"],
    [{ ...file([]), buffer: Buffer.alloc(0) }, "is not a MIDI file"],
    [file(Array(2000).fill(0)), "song.mid: 2004 bytes, at most 1000"]]) {
    await choose(page, chosen);
    assert.match(await refused(page), new RegExp(`^midi: ${message} \\[`));
    assert.equal(await field.getAttribute("aria-invalid"), "true");
    await choose(page, file(START));
    await said(page, "8 tokens");
    assert.ok(await page.locator("#turn-error").isHidden());
    assert.equal(await field.getAttribute("aria-invalid"), null);
  }
  await fill(page, { prompt: "Bar_None" });
  await choose(page, { ...file([]), buffer: Buffer.from("ROMEO:") });
  await refused(page);
  assert.equal(await page.locator("#prompt").inputValue(), "Bar_None");
  assert.deepEqual(await accessibilityFindings(page), []);
});

test("kinds of tokens are followed where the model has them", async () => {
  const field = "Only tokens of kinds that may follow";
  const page = await music.open();
  await page.locator("#parameters summary").click();
  await page.getByLabel(field).check();
  await generate(page, { prompt: "Bar_None", max_tokens: 2 });
  assert.equal(lastBody().follow_kinds, true);
  await page.getByLabel(field).uncheck();
  await generate(page, { prompt: "Bar_None", max_tokens: 2 });
  assert.ok(!("follow_kinds" in lastBody()));
  const other = await text.open();
  await other.locator("#parameters summary").click();
  assert.ok(await other.getByLabel(field).isHidden());
});

test("the keyboard reaches the file", async () => {
  const page = await music.open();
  await page.locator("#prompt").focus();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "midi");
  const chooser = page.waitForEvent("filechooser");
  // The browser has to know that the dialog is awaited before it opens.
  await page.evaluate(() => {});
  await page.keyboard.press("Space");
  await (await chooser).setFiles(file(START));
  await said(page, "8 tokens");
});

test("while a turn runs no file takes its place", async () => {
  const page = await music.open();
  await fill(page, { prompt: "Bar_None", max_tokens: 9000 });
  await page.click("#generate");
  await said(page, "Generating");
  assert.ok(await page.getByLabel("MIDI file").isDisabled());
  await drop(page, file(START));
  await page.click("#stop");
  await turnEnded(page);
  assert.equal(await page.locator("#prompt").inputValue(), "Bar_None");
  assert.ok(await page.getByLabel("MIDI file").isEnabled());
});

test("a model of text says that it takes no MIDI file", async () => {
  const page = await text.open();
  assert.ok(await page.locator("#midi").isHidden());
  await fill(page, { prompt: "ROMEO:" });
  await drop(page, file(START));
  assert.equal(await refused(page),
    "midi: MIDI needs a model of music [FIELD_INVALID]");
  assert.equal(await page.locator("#prompt").inputValue(), "ROMEO:");
});

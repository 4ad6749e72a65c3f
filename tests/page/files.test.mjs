// The page as files: complete, safe under its policy, in small pieces.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const PAGE = fileURLToPath(new URL("../../server/http/page", import.meta.url));
const CHARTS = fileURLToPath(
  new URL("../../server/http/uplot", import.meta.url));
const names = readdirSync(PAGE);
const text = (name) => readFileSync(path.join(PAGE, name), "utf8");
const scripts = names.filter((name) => name.endsWith(".js"));
const html = text("index.html");

test("every file that the page loads is there", () => {
  const loaded = [...html.matchAll(/(?:src|href)="ui\/([^"]+)"/g)]
    .map(([, name]) => name);
  assert.ok(loaded.length >= 5);
  for (const name of loaded) {
    const known = [...names, ...readdirSync(CHARTS)];
    assert.ok(known.includes(name), name);
  }
});

test("every module is reached from main.js, and no other is named", () => {
  const reached = new Set();
  const visit = (name) => {
    if (reached.has(name)) return;
    reached.add(name);
    for (const [, next] of text(name).matchAll(/from "\.\/([^"]+)"/g)) {
      assert.ok(scripts.includes(next), `${name} names ${next}`);
      visit(next);
    }
  };
  visit("main.js");
  assert.deepEqual([...reached].sort(), scripts.sort());
});

test("no script makes markup or code of text", () => {
  for (const name of scripts) {
    assert.doesNotMatch(text(name), new RegExp("innerHTML|outerHTML|" +
      "insertAdjacentHTML|document\\.write|\\beval\\(|new Function|" +
      "createContextualFragment|setAttribute\\(\"style"), name);
  }
});

test("the document has no script, style or handler of its own", () => {
  assert.doesNotMatch(html, /<style|\sstyle=|\son\w+=|javascript:/i);
  for (const [, body] of html.matchAll(/<script[^>]*>([^<]*)<\/script>/g)) {
    assert.equal(body, "");
  }
});

test("nothing comes from elsewhere", () => {
  for (const name of names) {
    const addresses = text(name).match(/https?:\/\/[^"'\s)]+/g) ?? [];
    assert.deepEqual(addresses.filter((address) =>
      // The namespace of SVG, and an example in a comment.
      !address.startsWith("http://www.w3.org/2000/svg") &&
      !address.startsWith("http://127.0.0.1:8080/")), [], name);
  }
});

test("ids are unique, and every id that a script names is there", () => {
  const ids = [...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id);
  assert.equal(new Set(ids).size, ids.length);
  const made = ["stop-texts", "ignore_eos", "follow_kinds"];
  for (const name of scripts) {
    for (const [, id] of text(name).matchAll(/byId\("([^"$]+)"\)/g)) {
      assert.ok([...ids, ...made].includes(id), `${name} names ${id}`);
    }
  }
});

test("every label, and every description, is of something", () => {
  const ids = new Set([...html.matchAll(/\sid="([^"]+)"/g)]
    .map(([, id]) => id));
  const pattern = /(?:for|aria-labelledby|aria-describedby)="([^"]+)"/g;
  for (const [, id] of html.matchAll(pattern)) assert.ok(ids.has(id), id);
});

test("files have at most 400 lines of at most 100 characters", () => {
  const here = fileURLToPath(new URL(".", import.meta.url));
  const tests = readdirSync(here).filter((name) => name.endsWith(".mjs"))
    .map((name) => path.join(here, name));
  for (const file of [...names.map((name) => path.join(PAGE, name)),
    ...tests]) {
    const lines = readFileSync(file, "utf8").split("\n");
    assert.ok(lines.length <= 401, `${file}: ${lines.length} lines`);
    if (file.endsWith(".html")) continue;
    for (const line of lines) assert.ok(line.length <= 100, `${file}: ${line}`);
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";

import { percent, probabilityClass, visibleText }
  from "../../server/http/page/probability.js";

test("each tenth of probability has its class", () => {
  for (let tenth = 0; tenth < 10; tenth += 1) {
    const low = tenth / 10;
    for (const p of [low, low + 0.001, low + 0.099]) {
      assert.equal(probabilityClass(Math.log(p || 1e-12)), `p${tenth}`,
        `${p}`);
    }
  }
});

test("certainty is the highest class, impossibility the lowest", () => {
  assert.equal(probabilityClass(0), "p9");
  // How minus infinity comes in JSON.
  assert.equal(probabilityClass(-9999), "p0");
});

test("a token without probability has no class", () => {
  assert.equal(probabilityClass(undefined), "");
  assert.equal(probabilityClass(null), "");
  assert.equal(probabilityClass(-Infinity), "");
});

test("percentages have three digits that count", () => {
  assert.equal(percent(Math.log(0.31415)), "31.4 %");
  assert.equal(percent(0), "100 %");
  assert.equal(percent(Math.log(0.00012345)), "0.0123 %");
  assert.equal(percent(Math.log(1e-9)), "< 0.0001 %");
  assert.equal(percent(-9999), "0 %");
  assert.equal(percent(undefined), "unknown");
});

test("spaces, breaks and what turns the order of text around can be seen",
  () => {
    assert.equal(visibleText(" a\n\tb\r"), "␣a↵⇥b␍");
    assert.equal(visibleText("\u202eevil\u0000"), "U+202EevilU+0000");
    assert.equal(visibleText("naïve 中😀"), "naïve␣中😀");
    assert.equal(visibleText(""), "(no text)");
  });

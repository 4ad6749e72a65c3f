// A browser that uses the page as a reader would, and what it must not report.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import path from "node:path";

// run.sh installs the tools into this folder.
const tools = createRequire(path.join(process.env.PAGE_TOOLS, "tools.js"));
const { chromium } = tools("playwright-core");
const AXE = readFileSync(tools.resolve("axe-core/axe.min.js"), "utf8");
const SHOTS = process.env.PAGE_SHOTS ?? process.env.PAGE_TOOLS;

export function openBrowser() {
  return chromium.launch({ executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox"] });
}

// Opens the page, until it knows its model or asks for a key. `problems` of
// what is returned has everything that was wrong:
// violations of the policy, errors of scripts, and requests to elsewhere.
export async function openPage(browser, url, { part = "playground",
  colorScheme = "light", width = 1280, height = 900, touch = false } = {}) {
  const context = await browser.newContext({ colorScheme, hasTouch: touch,
    viewport: { width, height }, acceptDownloads: true,
    permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.problems = [];
  watch(page, new URL(url).origin);
  await page.addInitScript(() => addEventListener("securitypolicyviolation",
    (event) => console.error(`policy: ${event.violatedDirective} ` +
      `${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`)));
  await page.goto(`${url}#${part}`);
  await page.waitForFunction(
    () => document.getElementById("server-model").textContent !== "…" ||
      !document.getElementById("key-part").hidden);
  return page;
}

function watch(page, origin) {
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => {
    // Chromium reports every request that is refused or cut; tests ask for
    // some.
    const asked = new RegExp("^Failed to load resource: " +
      "(the server responded|net::ERR_INCOMPLETE_CHUNKED_ENCODING)");
    if (message.type() === "error" && !asked.test(message.text())) {
      page.problems.push(message.text());
    }
  });
  page.on("request", (request) => {
    const address = new URL(request.url());
    if (address.origin !== origin && address.protocol !== "blob:") {
      page.problems.push(`request to ${request.url()}`);
    }
  });
}

// What axe-core finds to be serious or critical.
export async function accessibilityFindings(page) {
  // The debugger's evaluation is not bound by the page's policy.
  const debug = await page.context().newCDPSession(page);
  await debug.send("Runtime.evaluate", { expression: AXE });
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  return violations.filter(({ impact }) => /serious|critical/.test(impact))
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) =>
      `${id}: ${html.slice(0, 200)} ${failureSummary}`));
}

export function screenshot(page, name) {
  return page.screenshot({ path: path.join(SHOTS, name), fullPage: true });
}

// Waits for the turn's end, whatever it is.
export function turnEnded(page) {
  return page.waitForFunction(() =>
    /^(Ended|Stopped)/.test(document.getElementById("turn-status").textContent)
    || !document.getElementById("turn-error").hidden);
}

// Fills fields by name, and opens the parameters.
export async function fill(page, fields) {
  await page.evaluate(() => {
    document.getElementById("parameters").open = true;
  });
  for (const [name, value] of Object.entries(fields)) {
    await page.locator(`#turn-form [name="${name}"]`).fill(String(value));
  }
}

// Runs one turn by the Generate button to its end.
export async function generate(page, fields) {
  await fill(page, fields);
  await page.click("#generate");
  await turnEnded(page);
}

// The text without the signs that stand for empty tokens.
export function outputText(page) {
  return page.locator("#output").evaluate((place) => place.textContent);
}

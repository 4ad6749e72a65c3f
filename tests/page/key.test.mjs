import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Api } from "../../server/http/page/api.js";
import { startMock } from "./mock_server.mjs";

let mock;
before(async () => {
  mock = await startMock({ key: "a-key_1" });
});
after(() => mock.close());

test("a refused key is sent once, and another one is", async () => {
  const api = new Api(mock.url);
  let asked = 0;
  api.onRefused = () => ++asked;
  const refused = mock.refused();
  for (const key of ["", "", "wrong", "wrong", ""]) {
    api.key = key;
    await assert.rejects(api.models(), { status: 401, code: "UNAUTHENTICATED" });
  }
  assert.equal(mock.refused() - refused, 3);
  assert.equal(asked, 3);
  api.key = "a-key_1";
  assert.equal((await api.models()).data[0].txl.name, "mock");
  assert.equal(asked, 3);
});

// Node's own clients, which send a body in chunks unless they know its length:
// http.request with write, and fetch of a stream. Prints both answers' texts.
import http from "node:http";

const [url, body] = process.argv.slice(2);
const headers = { "Content-Type": "application/json" };

function request() {
  return new Promise((resolve, reject) => {
    const sent = http.request(url, { method: "POST", headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (part) => { text += part; });
      answer.on("end", () => resolve(text));
    });
    sent.on("error", reject);
    for (const part of body.match(/.{1,9}/gs)) sent.write(part);
    sent.end();
  });
}

async function stream() {
  const bytes = new Blob([body]).stream();
  const answer = await fetch(url, {
    method: "POST", headers, body: bytes, duplex: "half",
  });
  return answer.text();
}

for (const text of [await request(), await stream()]) {
  console.log(JSON.parse(text).choices[0].text);
}

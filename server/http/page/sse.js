// Server-sent events, read by hand: EventSource cannot POST.

// Makes events of text that comes in pieces cut anywhere. Lines end with LF,
// CR or CRLF; of an event only its data counts, comments are dropped.
export class EventParser {
  #rest = "";
  #data = [];
  #endedWithReturn = false;

  // Returns the data of each event that this piece completes.
  push(text) {
    // A line feed behind a carriage return of the piece before belongs to it.
    if (this.#endedWithReturn && text.startsWith("\n")) text = text.slice(1);
    else if (text === "") return [];
    const lines = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#endedWithReturn = text.endsWith("\r");
    this.#rest = lines.pop();
    return lines.flatMap((line) => this.#takeLine(line));
  }

  #takeLine(line) {
    if (line === "") return this.#takeEvent();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1);
    if (field === "data") {
      this.#data.push(value.startsWith(" ") ? value.slice(1) : value);
    }
    return [];
  }

  #takeEvent() {
    if (this.#data.length === 0) return [];
    const event = this.#data.join("\n");
    this.#data = [];
    return [event];
  }
}

// The same for bytes of UTF-8: a character may be cut, too.
export class EventDecoder {
  #utf8 = new TextDecoder();
  #parser = new EventParser();

  push(bytes) {
    return this.#parser.push(this.#utf8.decode(bytes, { stream: true }));
  }
}

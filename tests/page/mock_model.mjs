// A model that costs nothing: what it says follows from seed and position. It
// says what a trained model would rarely say: markup, and a piece of music.

const CHARACTERS = Array.from({ length: 95 }, (_, i) =>
  String.fromCharCode(32 + i)).concat(["\n", "é", "中", "😀"]);
const WORDS = ["To be", ", or", " not", " to", " be", ":", "\n", " naïve", " 中",
  " 😀", " that", " is", " the", " question", "."];
const MARKUP = ["<img src=x onerror=\"window.hacked=1\">",
  "<script>window.hacked=1</script>", "&lt;b&gt;", "</div>"];

const BAR = ["Bar_None", "Position_1/16", "Tempo%20Class_mid",
  "Tempo%20Value_30"];
const chord = (position, ...pitches) => pitches.flatMap((pitch) =>
  [`Position_${position}/16`, "Note%20Velocity_20", `Note%20On_${pitch}`,
    "Note%20Duration_7"]);
const PIECE = [...BAR, ...chord(1, 60, 64, 67), ...chord(9, 62, 65),
  "Bar_None", ...chord(1, 64, 67, 72), ...chord(9, 60)];

class TextModel {
  kind = "characters";
  vocabulary = [...CHARACTERS, ...WORDS, ...MARKUP];

  tokenize(text) {
    return Array.from(text, (character) => this.vocabulary.indexOf(character));
  }

  text(ids) {
    return ids.map((id) => this.vocabulary[id]).join("");
  }

  // The id at a position, then others.
  next(random, position, markup) {
    const words = markup ? MARKUP : WORDS;
    const first = Math.floor(random * words.length);
    return words.map((_, i) =>
      this.vocabulary.indexOf(words[(first + i) % words.length]));
  }
}

class MusicModel {
  kind = "events";
  kinds = ["Bar", "Position"];
  vocabulary = [...new Set(PIECE)];

  tokenize(text) {
    return text.split(/\s+/).filter((word) => word !== "")
      .map((word) => this.vocabulary.indexOf(word));
  }

  text(ids) {
    return ids.map((id) => this.vocabulary[id]).join(" ");
  }

  // A file is "MThd" and a byte for each id; others have no event.
  readMidi(bytes) {
    if (bytes.subarray(0, 4).toString() !== "MThd") return null;
    const ids = [...bytes.subarray(4)];
    const known = ids.filter((id) => id < this.vocabulary.length);
    const rest = ids.length - known.length;
    return { tokens: known, count: known.length,
      left_out: rest > 0 ? [{ what: "Note On_109", count: rest }] : [] };
  }

  next(random, position) {
    const id = this.vocabulary.indexOf(PIECE[position % PIECE.length]);
    return this.vocabulary.map((_, i) => (id + i) % this.vocabulary.length);
  }
}

export function makeModel(music) {
  return music ? new MusicModel() : new TextModel();
}

// A number in [0, 1) that follows from seed and position.
function draw(seed, position) {
  const mixed = Math.imul(Number(BigInt.asUintN(31, seed)) ^ (position * 40503),
    2654435761) >>> 0;
  return ((mixed ^ (mixed >>> 15)) >>> 0) % 65536 / 65536;
}

// One token with its `count` alternatives, the way /v1/completions has it.
export function sample(model, { seed, position, markup, alternatives }) {
  const random = draw(seed, position);
  const ids = model.next(random, position, markup);
  // The one that is taken is the most probable one; each next has half.
  const share = 0.05 + 0.9 * draw(seed + 1n, position);
  const top = ids.slice(0, alternatives).map((id, i) =>
    [model.vocabulary[id], Math.log(share * 0.5 ** i)]);
  const space = model.kind === "events" && position > 0 ? " " : "";
  return { id: ids[0], text: space + model.vocabulary[ids[0]],
    logprob: Math.log(share), top: Object.fromEntries(top) };
}

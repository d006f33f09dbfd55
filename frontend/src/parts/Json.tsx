import { Block } from "./Block";
import classes from "./Json.module.css";
import { visible } from "./text";

const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Formatted JSON with a copy button. */
export function Json({ value, label }: { value: unknown; label: string }) {
  const text = visible(JSON.stringify(value, null, 2));
  return (
    <Block text={text} label={label} copy={`Copy ${label}`} wraps>
      {coloured(text)}
    </Block>
  );
}

function coloured(text: string) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(TOKEN)) {
    const [whole, quoted, colon, word] = found;
    const kind = quoted === undefined ? (word === undefined ? "number" : "word") : colon === undefined ? "text" : "name";
    parts.push(text.slice(end, found.index));
    parts.push(
      <span key={found.index} className={kind === "text" ? undefined : classes[kind]}>
        {quoted ?? whole}
      </span>,
    );
    end = found.index + (quoted ?? whole).length;
  }
  parts.push(text.slice(end));
  return parts;
}

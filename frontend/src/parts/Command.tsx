import { Block } from "./Block";

/** Shell commands with a copy button. */
export function Command({ text }: { text: string }) {
  return <Block text={text} label="Commands" copy="Copy the commands" />;
}

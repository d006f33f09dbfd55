import { Block } from "./Block";

/** Lines for a shell, to be copied whole. */
export function Command({ text }: { text: string }) {
  return <Block text={text} label="Commands" copy="Copy the commands" />;
}

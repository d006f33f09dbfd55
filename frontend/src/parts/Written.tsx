import { TextInput, type TextInputProps } from "@mantine/core";

interface Props extends Pick<TextInputProps, "label" | "placeholder" | "pattern" | "type" | "step" | "error" | "inputMode" | "w"> {
  name: string; // accessible name, if there is no visible label
  value: string;
  onWritten: (text: string) => void;
}

/** A search field that is applied with Enter or on blur. */
export function Written({ name, value, onWritten, ...input }: Props) {
  const settle = (field: HTMLInputElement) => {
    const text = field.value.trim();
    if (text !== value && field.checkValidity()) onWritten(text);
  };
  return (
    <TextInput
      {...input}
      key={value}
      aria-label={input.label === undefined ? name : undefined}
      defaultValue={value}
      onBlur={(event) => settle(event.currentTarget)}
      onKeyDown={(event) => event.key === "Enter" && settle(event.currentTarget)}
    />
  );
}

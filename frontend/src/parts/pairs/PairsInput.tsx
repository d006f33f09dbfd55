import { ActionIcon, Button, Group, Input, NativeSelect, Stack, TextInput } from "@mantine/core";
import { IconPlus, IconX } from "@tabler/icons-react";
import { useId } from "react";

import { KINDS, NEW_PAIR, type Pair, PLACEHOLDERS } from "./pairs";
import classes from "./PairsInput.module.css";

interface Props {
  pairs: Pair[];
  names?: readonly string[]; // that are proposed
  onChange: (change: (latest: Pair[]) => Pair[]) => void; // two changes may come before the pairs are drawn again
  errorOf?: (pair: Pair) => string | undefined;
}

/** The attributes that an event must have, by name, type and value. */
export function PairsInput({ pairs, names = [], onChange, errorOf }: Props) {
  const list = useId();
  const change = (at: number, part: Partial<Pair>) =>
    onChange((latest) => latest.map((pair, index) => (index === at ? { ...pair, ...part } : pair)));

  return (
    <Stack gap={6} role="group" aria-label="Attributes">
      <Input.Label component="div">Attributes</Input.Label>
      <datalist id={list}>
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {pairs.map((pair, index) => (
        // a pair has no identity except its index
        <Group key={index} gap={6} wrap="nowrap" align="start">
          <TextInput
            className={classes.name}
            aria-label={`Name of attribute ${index + 1}`}
            placeholder="address.city"
            list={list}
            value={pair.name}
            error={errorOf?.(pair)}
            onChange={(event) => change(index, { name: event.currentTarget.value })}
          />
          <NativeSelect
            className={classes.kind}
            aria-label={`Type of attribute ${index + 1}`}
            data={[...KINDS]}
            value={pair.kind}
            onChange={(event) => change(index, { kind: event.currentTarget.value as Pair["kind"] })}
          />
          <TextInput
            className={classes.value}
            aria-label={`Value of attribute ${index + 1}`}
            placeholder={PLACEHOLDERS[pair.kind]}
            inputMode={pair.kind === "number" ? "decimal" : undefined}
            disabled={pair.kind !== "text" && pair.kind !== "number"}
            value={pair.kind === "text" || pair.kind === "number" ? pair.text : ""}
            onChange={(event) => change(index, { text: event.currentTarget.value })}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            size={36}
            aria-label={`Remove attribute ${index + 1}`}
            onClick={() => onChange((latest) => latest.filter((_, at) => at !== index))}
          >
            <IconX size={16} />
          </ActionIcon>
        </Group>
      ))}
      <div>
        <Button
          variant="default"
          size="compact-sm"
          leftSection={<IconPlus size={14} />}
          onClick={() => onChange((latest) => [...latest, NEW_PAIR])}
        >
          Add an attribute
        </Button>
      </div>
    </Stack>
  );
}

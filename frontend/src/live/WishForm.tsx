import { Button, Collapse, Group, Input, NumberInput, SegmentedControl, Select, SimpleGrid, Stack, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconFilter } from "@tabler/icons-react";
import { type SubmitEvent, useState } from "react";

import type { Faults } from "../api/address";
import { attributesOf, complaint, type Pair, pairsOf } from "../pairs/pairs";
import { PairsInput } from "../pairs/PairsInput";
import type { Wish } from "./frames";

interface Props {
  wish: Wish | undefined;
  faults: Faults; // of the address that the wish was read from
  streams: string[];
  onListen: (wish: Omit<Wish, "zone">) => void;
}

const STARTS = [
  { value: "now", label: "Now" },
  { value: "oldest", label: "Oldest held" },
  { value: "sequence", label: "Sequence" },
];

function startOf(wish: Wish | undefined, faults: Faults): string {
  if ("from" in faults || typeof wish?.from === "number") return "sequence";
  return wish?.from === "oldest" ? "oldest" : "now";
}

/** Which events to listen to, and from where on. */
export function WishForm({ wish, faults, streams, onListen }: Props) {
  const [stream, setStream] = useState(wish?.stream ?? null);
  const [start, setStart] = useState(startOf(wish, faults));
  const [sequence, setSequence] = useState<number | string>(typeof wish?.from === "number" ? wish.from : "from" in faults ? "" : 1);
  const [domain, setDomain] = useState(wish?.domain ?? "");
  const [type, setType] = useState(wish?.type ?? "");
  const [pairs, setPairs] = useState<Pair[]>(pairsOf(wish?.attributes ?? {}));
  const [checked, setChecked] = useState(false);
  const filters = [domain, type, ...pairs.map((pair) => pair.name)].filter((text) => text !== "").length;
  const [open, { toggle }] = useDisclosure(filters > 0 || "attributes" in faults);

  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    setChecked(true);
    if (stream === null || pairs.some((pair) => complaint(pair) !== undefined)) return;
    const from = start === "sequence" ? Number(sequence) : start === "oldest" ? "oldest" : "now";
    onListen({ stream, from, domain, type, attributes: attributesOf(pairs) });
  };

  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <Group align="end" gap="sm">
          <Select
            label="Stream"
            data={streams}
            value={stream}
            onChange={setStream}
            allowDeselect={false}
            searchable
            w={{ base: "100%", xs: 240 }}
            error={checked && stream === null ? "Choose a stream." : undefined}
          />
          <div>
            <SegmentedControl aria-label="Start from" data={STARTS} value={start} onChange={setStart} />
          </div>
          {start === "sequence" && (
            <NumberInput
              label="From sequence"
              min={1}
              w={130}
              value={sequence}
              onChange={setSequence}
              error={"from" in faults}
              hideControls
            />
          )}
          <Button
            variant="default"
            leftSection={<IconFilter size={16} stroke={1.7} />}
            aria-expanded={open}
            onClick={toggle}
          >
            {filters === 0 ? "Filter" : `Filter (${filters})`}
          </Button>
          <Button type="submit">Listen</Button>
        </Group>
        <Collapse expanded={open}>
          <Stack gap="sm" maw={640}>
            <SimpleGrid cols={2} spacing="sm">
              <TextInput label="Domain" placeholder="any" value={domain} onChange={(event) => setDomain(event.currentTarget.value)} />
              <TextInput label="Type" placeholder="any" value={type} onChange={(event) => setType(event.currentTarget.value)} />
            </SimpleGrid>
            <PairsInput pairs={pairs} onChange={setPairs} errorOf={checked ? complaint : undefined} />
            {"attributes" in faults && <Input.Error>{faults.attributes}</Input.Error>}
          </Stack>
        </Collapse>
      </Stack>
    </form>
  );
}

import { Select, SimpleGrid, Stack, Textarea, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { errorAt, Problem } from "../api/problem";
import { complaint, type Pair } from "../pairs/pairs";
import { PairsInput } from "../pairs/PairsInput";
import { type FilterDraft, languages, PAIRS } from "./filter";

interface Props {
  draft: FilterDraft;
  onChange: (draft: FilterDraft) => void;
  checked: boolean; // is it time to say what is missing?
  error: unknown;
}

/** Which events, in a language of choice: fields for pairs, a text for any other. */
export function FilterInput({ draft, onChange, checked, error }: Props) {
  const known = useQuery(languages).data ?? [];
  const chosen = known.find(({ name }) => name === draft.language);
  const example = chosen === undefined ? "" : typeof chosen.example === "string" ? chosen.example : JSON.stringify(chosen.example, null, 2);
  return (
    <Stack gap="sm">
      <Select
        label="Language"
        description={chosen?.about ?? "How the filter is written."}
        data={known.length === 0 ? [draft.language] : known.map(({ name }) => name)}
        value={draft.language}
        allowDeselect={false}
        onChange={(language) => onChange({ ...draft, language: known.find(({ name }) => name === language)?.name ?? PAIRS })}
        error={errorAt(error, "language")}
      />
      {draft.language === PAIRS ? (
        <PairsFields draft={draft} onChange={onChange} checked={checked} error={error} />
      ) : (
        <Textarea
          label="Filter"
          placeholder={example}
          autosize
          minRows={4}
          maxRows={16}
          spellCheck={false}
          classNames={{ input: "mono" }}
          value={draft.text}
          onChange={(event) => onChange({ ...draft, text: event.currentTarget.value })}
          error={placed(error) ?? errorAt(error, "filter")}
        />
      )}
    </Stack>
  );
}

function PairsFields({ draft, onChange, checked, error }: Props) {
  const pairError = (pair: Pair) => {
    if (checked && complaint(pair) !== undefined) return complaint(pair);
    return pair.name !== "" && error instanceof Problem && error.field === `attributes.${pair.name}` ? error.message : undefined;
  };
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
        {(["domain", "type", "application"] as const).map((name) => (
          <TextInput
            key={name}
            label={name.charAt(0).toUpperCase() + name.slice(1)}
            placeholder="any"
            value={draft[name]}
            onChange={(event) => onChange({ ...draft, [name]: event.currentTarget.value })}
            error={errorAt(error, name)}
          />
        ))}
      </SimpleGrid>
      <PairsInput pairs={draft.pairs} onChange={(pairs) => onChange({ ...draft, pairs })} errorOf={pairError} />
    </>
  );
}

function placed(error: unknown): string | undefined {
  if (!(error instanceof Problem) || error.line === undefined) return undefined;
  return `Line ${error.line}, column ${error.column ?? 1}: ${error.message}`;
}

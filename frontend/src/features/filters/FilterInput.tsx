import { Select, SimpleGrid, Stack, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";

import { errorAt, Problem } from "../../api/problem";
import { complaint, type Pair } from "../../parts/pairs/pairs";
import { PairsInput } from "../../parts/pairs/PairsInput";
import { Loading } from "../../parts/Loading";
import { mistakeIn, useCheck, type Whose } from "./check";
import { type FilterDraft, isEmpty, languages, PAIRS } from "./draft";
import { useNames } from "./names";
import { Verdict } from "./Verdict";

// CodeMirror, loaded on demand
const FilterEditor = lazy(async () => ({ default: (await import("./FilterEditor")).FilterEditor }));

/** Changes the latest draft: two changes may come before it is drawn again. */
type ChangeDraft = (change: (latest: FilterDraft) => FilterDraft) => void;

interface Props {
  zone: string;
  stream: string | undefined; // the names of attributes come from its recent events
  draft: FilterDraft;
  onChange: ChangeDraft;
  checked: boolean; // whether to report missing values
  error: unknown;
  verdict?: boolean; // whether to show the predicate form and the cost
  whose?: Whose; // of a new registration
}

/** The input of a filter in a chosen language, with its predicate form: fields for pairs, an editor for other languages. */
export function FilterInput({ zone, stream, draft, onChange, checked, error, verdict = true, whose }: Props) {
  const known = useQuery(languages).data ?? [];
  const chosen = known.find(({ name }) => name === draft.language);
  const example = chosen === undefined ? "" : typeof chosen.example === "string" ? chosen.example : JSON.stringify(chosen.example, null, 2);
  const names = useNames(zone, stream);
  const found = useCheck(zone, draft, whose);
  const before = found.said === undefined ? error : undefined; // a valid draft clears the error of the last request
  const fault = found.said?.mistake == null ? before : new Problem(400, found.said.mistake);
  return (
    <Stack gap="sm">
      <Select
        label="Language"
        description={chosen?.about ?? "The language of the filter."}
        data={known.length === 0 ? [draft.language] : known.map(({ name }) => name)}
        value={draft.language}
        allowDeselect={false}
        onChange={(language) => onChange((latest) => ({ ...latest, language: known.find(({ name }) => name === language)?.name ?? PAIRS }))}
        error={errorAt(error, "language")}
      />
      {draft.language === PAIRS ? (
        <PairsFields draft={draft} names={names} onChange={onChange} checked={checked} error={fault} />
      ) : (
        <Suspense fallback={<Loading h={150} />}>
          <FilterEditor
            key={draft.language}
            language={draft.language}
            example={example}
            value={draft.text}
            mistake={found.mistake ?? mistakeIn(before)}
            names={names}
            onChange={(text) => onChange((latest) => ({ ...latest, text }))}
          />
        </Suspense>
      )}
      {verdict && (
        <Verdict
          zone={zone}
          checked={found}
          empty={isEmpty(draft)}
          onPredicate={draft.language === "predicate" ? undefined : (text) => onChange((latest) => ({ ...latest, language: "predicate", text }))}
        />
      )}
    </Stack>
  );
}

interface PairsProps {
  draft: FilterDraft;
  names: readonly string[];
  onChange: ChangeDraft;
  checked: boolean;
  error: unknown;
}

function PairsFields({ draft, names, onChange, checked, error }: PairsProps) {
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
            onChange={({ currentTarget: { value } }) => onChange((latest) => ({ ...latest, [name]: value }))}
            error={errorAt(error, name)}
          />
        ))}
      </SimpleGrid>
      <PairsInput pairs={draft.pairs} names={names} onChange={(change) => onChange((latest) => ({ ...latest, pairs: change(latest.pairs) }))} errorOf={pairError} />
    </>
  );
}

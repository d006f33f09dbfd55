import { Alert, List, SegmentedControl, Stack, Text, Textarea } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";

import { whole } from "../../parts/text";
import { type Check, type Language, LANGUAGES, usePatternCheck } from "./patterns";

const WARNINGS: Record<Check["warnings"][number], string> = {
  never_matches: "No event can pass one of its filters",
  every_event: "A filter is evaluated for every event",
  default_window: "A match may take a day: the pattern has no `within`",
};
const EXAMPLES: Record<Language, string> = {
  ready: "{fails[3..10]: Login | $ok == FALSE}; {in: Login | $ok == TRUE} per $user within 10m",
  temporal: "(event (time ?t1) (user ?u)) (event (time ?t2) (user ?u)) (test (< ?t1 ?t2))",
  agent: "(on (= type 'error)) (when (= (length (recent 10 (= type 'error))) 3) (notify (recent 10)))",
};

interface Props {
  zone: string;
  language: Language;
  text: string;
  onLanguage?: (language: Language) => void; // without it the language is fixed
  onChange: (text: string) => void;
  error?: string;
}

interface Tree {
  text: string;
  parts: Tree[];
}

/** The text of a pattern, checked while it is typed: its mistake, or its parts and what they cost. */
export function PatternEditor({ zone, language, text, onLanguage, onChange, error }: Props) {
  const { said } = usePatternCheck(zone, language, text);
  return (
    <Stack gap="xs">
      {onLanguage !== undefined && (
        <SegmentedControl
          aria-label="Language"
          data={[...LANGUAGES]}
          value={language}
          onChange={(next) => onLanguage(LANGUAGES.find(({ value }) => value === next)?.value ?? language)}
        />
      )}
      <Textarea
        label="Pattern"
        placeholder={EXAMPLES[language]}
        value={text}
        onChange={(event) => onChange(event.currentTarget.value)}
        autosize
        minRows={4}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        spellCheck={false}
        error={error ?? mistakeText(said?.mistake)}
      />
      {said !== undefined && said.mistake === null && <Understood check={said} />}
    </Stack>
  );
}

function Understood({ check }: { check: Check }) {
  const tree = check.tree as Tree | null;
  return (
    <section aria-label="Check">
      {check.warnings.map((warning) => (
        <Alert key={warning} color="yellow" variant="light" mb="xs" icon={<IconAlertTriangle />} title={WARNINGS[warning]} />
      ))}
      {tree !== null && (
        <List listStyleType="none" size="sm" aria-label="Parts">
          <Parts tree={tree} />
        </List>
      )}
      <Text size="sm" c="dimmed">
        {windowText(check)} Distinct filters: {whole(check.cost?.filters ?? 0)}.
      </Text>
    </section>
  );
}

function Parts({ tree }: { tree: Tree }) {
  return (
    <List.Item>
      <code>{tree.text}</code>
      {tree.parts.length > 0 && (
        <List ps="lg" listStyleType="none" size="sm">
          {tree.parts.map((part, index) => (
            <Parts key={index} tree={part} />
          ))}
        </List>
      )}
    </List.Item>
  );
}

function windowText({ window }: Check): string {
  if (window === null) return "";
  const events = `at most the last ${whole(window.last)} events`;
  return window.within_s === null ? `It remembers ${events}.` : `A match spans at most ${whole(window.within_s)} s and ${events}.`;
}

function mistakeText(mistake: Check["mistake"] | undefined): string | undefined {
  if (mistake == null) return undefined;
  const { detail, line, column } = mistake as { detail: string; line?: number; column?: number };
  return line === undefined ? detail : `Line ${line}, column ${column ?? 1}: ${detail}`;
}

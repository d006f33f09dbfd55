import { Group, Input, Text, UnstyledButton } from "@mantine/core";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useEffect, useId, useRef } from "react";

import frame from "../../parts/code/Frame.module.css";
import type { Mistake } from "./check";
import type { Language } from "./draft";
import { extensionsOf, setMistake } from "./editor";
import classes from "./FilterEditor.module.css";
import { written } from "./paths";

interface Props {
  language: Language["name"];
  example: string;
  value: string; // initial text
  mistake: Mistake | undefined;
  names: readonly string[]; // of attributes, to insert
  onChange: (text: string) => void;
}

/** A text editor for a filter, with syntax colours and the mistake underlined. */
export function FilterEditor({ language, example, value, mistake, names, onChange }: Props) {
  const id = useId();
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const first = useRef(value);
  const latest = useRef(onChange);
  useEffect(() => {
    latest.current = onChange;
  }, [onChange]);

  useEffect(() => {
    if (host.current === null) return;
    const state = EditorState.create({
      doc: first.current,
      extensions: [
        extensionsOf(language, "Filter", id, example),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          first.current = update.state.doc.toString();
          latest.current(first.current);
        }),
      ],
    });
    const made = new EditorView({ state, parent: host.current });
    view.current = made;
    return () => made.destroy();
  }, [example, id, language]);

  const { text, line, column, field } = mistake ?? {};
  useEffect(() => {
    view.current?.dispatch({ effects: setMistake.of(text === undefined ? undefined : { text, line, column, field }) });
  }, [text, line, column, field, example]);

  const put = (path: string) => {
    view.current?.dispatch(view.current.state.replaceSelection(`${path} `));
    view.current?.focus();
  };
  const shown = names.map((name) => written(language, name)).filter((name) => name !== undefined);
  return (
    <Input.Wrapper label="Filter" labelElement="div">
      <div ref={host} className={frame.frame} data-fault={mistake !== undefined} style={{ minHeight: 104 }} />
      <div id={id} aria-live="polite">
        {mistake !== undefined && <Input.Error mb={6}>{placed(mistake)}</Input.Error>}
      </div>
      {shown.length > 0 && <Names names={shown} onPut={put} />}
    </Input.Wrapper>
  );
}

function Names({ names, onPut }: { names: readonly string[]; onPut: (name: string) => void }) {
  return (
    <Group gap={4} mb={4} role="group" aria-label="Names in recent events">
      <Text size="xs" c="dimmed" component="span">
        In recent events:
      </Text>
      {names.map((name) => (
        <UnstyledButton key={name} className={classes.name} aria-label={`Insert ${name}`} onClick={() => onPut(name)}>
          {name}
        </UnstyledButton>
      ))}
    </Group>
  );
}

function placed({ text, line, column, field }: Mistake) {
  if (line !== undefined) return `Line ${line}, column ${column ?? 1}: ${text}`;
  const path = field?.replace(/^filter\.?/, "") ?? "";
  return path === "" ? text : `${path}: ${text}`;
}

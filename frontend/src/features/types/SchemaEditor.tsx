import { Input } from "@mantine/core";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useEffect, useId, useRef } from "react";

import frame from "../../parts/code/Frame.module.css";
import { placeIn } from "../../parts/code/place";
import { extensionsOf, setFaults } from "./editor";
import classes from "./SchemaEditor.module.css";

const LINE_PX = 20;

/** What is wrong, and where in the JSON: `.properties.total.type`, or nothing for the whole of it. */
export interface Fault {
  path: string;
  text: string;
}

interface Props {
  label: string;
  description: string;
  value: string; // when it is mounted; later texts come from the keys
  readOnly: boolean;
  rows: number; // at least
  faults: readonly Fault[];
  onChange: (text: string) => void;
}

/** JSON with colours and numbered lines; the line of a fault stands out. */
export function SchemaEditor({ label, description, value, readOnly, rows, faults, onChange }: Props) {
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
        extensionsOf({ label, describedBy: id, readOnly }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) latest.current(update.state.doc.toString());
        }),
      ],
    });
    const made = new EditorView({ state, parent: host.current });
    view.current = made;
    return () => made.destroy();
  }, [id, label, readOnly]);

  const paths = faults.map(({ path }) => path).join("\n");
  useEffect(() => {
    const shown = view.current;
    if (shown === null) return;
    const places = paths.split("\n").filter((path) => path !== "").map((path) => placeIn(shown.state, path));
    const [at] = places;
    shown.dispatch({
      effects: [setFaults.of(places), ...(at === undefined ? [] : [EditorView.scrollIntoView(at, { y: "center" })])],
    });
  }, [paths]);

  return (
    <Input.Wrapper label={label} labelElement="div" description={description} error={faults.length > 0 && <Faults faults={faults} />} descriptionProps={{ id }}>
      <div
        ref={host}
        className={frame.frame}
        data-fault={faults.length > 0}
        style={{ minHeight: rows * LINE_PX }}
      />
    </Input.Wrapper>
  );
}

function Faults({ faults }: { faults: readonly Fault[] }) {
  return faults.map(({ path, text }) => (
    <span key={`${path} ${text}`} className={classes.fault}>
      {path !== "" && <span className="mono">{path.slice(1)}</span>} {text}
    </span>
  ));
}

import { Select, TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import { type ApplicationState, STATES, useReport } from "./applications";

interface Props {
  zone: string;
  name?: string; // of an existing application
  onReported: (name: string) => void;
}

/** Reports a state, of a new application or of an existing one. */
export function ReportForm({ zone, name: known, onReported }: Props) {
  const report = useReport(zone);
  const [typed, setTyped] = useState("");
  const [state, setState] = useState<ApplicationState>("online");
  const [reason, setReason] = useState("");
  const name = known ?? typed;
  return (
    <Form
      fields={["application", "state", "reason"]}
      error={report.error}
      busy={report.isPending}
      action="Report"
      ready={name !== ""}
      onSubmit={() => report.mutate({ name, state, reason }, { onSuccess: () => onReported(name) })}
    >
      {known === undefined && (
        <TextInput
          label="Name"
          description="Of an application, or NAME/COMPONENT."
          placeholder="till"
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          error={errorAt(report.error, "application")}
        />
      )}
      <Select
        label="State"
        data={STATES}
        value={state}
        allowDeselect={false}
        onChange={(next) => setState(STATES.find((one) => one === next) ?? state)}
        error={errorAt(report.error, "state")}
      />
      <TextInput
        label="Reason"
        description="Optional; it is in the event."
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
        error={errorAt(report.error, "reason")}
      />
    </Form>
  );
}

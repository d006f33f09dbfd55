import { Alert, Checkbox, Stack, Textarea } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";

import { errorAt } from "../../api/problem";
import { Facts } from "../../parts/Facts";
import { Moment } from "../../parts/Moment";
import { objectOf } from "../../parts/objectOf";
import { bytes, whole } from "../../parts/text";
import { EndpointFields } from "./EndpointFields";
import { Expiry } from "./EndpointState";
import { bodyOf, FIELD_NAMES } from "./fields";
import { type Endpoint, FORMATS } from "./endpoints";
import { type Editing, type Found, Setting, SettingForm } from "./Setting";
import { isSink, KINDS } from "./sinks";

/** The card with what an endpoint is: URL, format, order. */
export function About(endpoint: Found) {
  return (
    <Setting {...endpoint} title="Settings" about="Where callbacks are sent, and in which form." form={AboutForm}>
      <Facts facts={factsOf(endpoint.found.value)} />
    </Setting>
  );
}

function factsOf(endpoint: Endpoint): [string, ReactNode][] {
  const { url, client, format, description } = endpoint;
  return [
    ["Kind", KINDS.find((one) => one.value === endpoint.kind)?.label ?? endpoint.kind],
    ["URL", <span key="url" className="mono">{url}</span>],
    ...settingsOf(endpoint),
    ["Client", client],
    ["Description", description || "none"],
    ["Format", FORMATS.find((one) => one.value === format)?.label ?? format],
    ["Order", orderOf(endpoint)],
    ["Batches", batchOf(endpoint)],
    ["Expires", <Expiry key="expires" at={endpoint.expires_at} />],
    ["Created", <Moment key="created" at={endpoint.created_at} />],
    ["Changed", <Moment key="changed" at={endpoint.changed_at} />],
  ];
}

function settingsOf({ kind, settings }: Endpoint): [string, ReactNode][] {
  if (!isSink(kind)) return [];
  return [["Settings", <span key="settings" className="mono">{JSON.stringify(settings)}</span>]];
}

function orderOf({ ordered, order_by: key }: Endpoint): ReactNode {
  if (!ordered) return "in parallel";
  if (key === "") return "in order, one event of a stream at a time";
  return (
    <>
      in order, one event of each <span className="mono">{key}</span> at a time
    </>
  );
}

function batchOf({ batch }: Endpoint): string {
  if (batch === null) return "none: one event in each request";
  const { events_max: events, bytes_max: size, linger_ms: linger } = batch;
  const wait = linger === 0 ? "an event does not wait for others" : `an event waits for others up to ${whole(linger)} ms`;
  return `up to ${whole(events)} events and ${bytes(size)} in a request; ${wait}`;
}

function AboutForm({ endpoint, ...form }: Editing) {
  const { url, description, format, ordered, order_by, batch } = endpoint;
  const [fields, setFields] = useState({ url, description, format, ordered, order_by, batch });
  const [removing, setRemoving] = useState(false);
  const [settings, setSettings] = useState(() => JSON.stringify(endpoint.settings, null, 1));
  const given = objectOf(settings);
  const ofSink = isSink(endpoint.kind) ? { settings: given } : {};
  const bound = !isSink(endpoint.kind) && hasCredentials(endpoint) && originOf(fields.url) !== originOf(url);
  const removed = bound && removing ? { headers: null, authentication: null, tls: null } : {};
  return (
    <SettingForm
      {...form}
      fields={[...FIELD_NAMES, "settings"]}
      ready={(!bound || removing) && given !== undefined}
      body={() => ({ ...bodyOf(fields), ...ofSink, ...removed })}
    >
      <EndpointFields fields={fields} error={form.change.error} onChange={(change) => setFields((latest) => ({ ...latest, ...change }))} />
      {isSink(endpoint.kind) && (
        <Textarea
          label="Settings"
          description="Of the kind, as JSON. After a change the sink is checked again."
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
          value={settings}
          onChange={(change) => setSettings(change.currentTarget.value)}
          autosize
          error={given === undefined ? "This is not a JSON object." : errorAt(form.change.error, "settings")}
        />
      )}
      {bound && (
        <Alert color="yellow" variant="light" icon={<IconAlertTriangle />} title="The URL leads to another server">
          <Stack gap="sm">
            <span>The endpoint’s headers, authentication and certificates are not sent to another server. Remove them, and set them again afterwards.</span>
            <Checkbox
              label="Remove headers, authentication and certificates"
              checked={removing}
              onChange={(event) => setRemoving(event.currentTarget.checked)}
            />
          </Stack>
        </Alert>
      )}
    </SettingForm>
  );
}

function hasCredentials({ headers, authentication, tls }: Endpoint): boolean {
  return (headers ?? []).length > 0 || authentication !== null || tls !== null;
}

/** Scheme, host and port; of a URL that is not complete yet, the whole text. */
function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}
